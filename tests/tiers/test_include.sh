#!/usr/bin/env bash
# An engine's first minute: the example of docs/TIERS.md includes the one header, compiles as C and as C++ without a warning, links with the
# library alone, and prints what the document says.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
not_ok() { echo "not ok $1: $2"; bad=1; }

# block LANGUAGE: the document's block of that language.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" docs/TIERS.md | sed '1d;$d'; }

block c >"$work/example.c"
block text >"$work/wanted"
if [ "$(grep -c '#include "' "$work/example.c")" = 1 ] && grep -qx '#include "tiers/tenure_tiers.h"' "$work/example.c"; then
  echo "ok one_header"
else
  not_ok one_header "the example includes another of ours, or none"
fi

library=(tiers/libtiers.a)
try() {
  local name=$1 linker=$2
  shift
  if ! "$@" -Wall -Wextra -Wpedantic -Werror -I. -c "$work/example.c" -o "$work/$name.o" 2>"$work/said"; then
    not_ok "$name" "it does not compile: $(head -n 3 "$work/said")"
  elif ! $linker "$work/$name.o" "${library[@]}" -lpthread -o "$work/$name" 2>"$work/said"; then
    not_ok "$name" "it does not link: $(head -n 3 "$work/said")"
  elif ! "$work/$name" >"$work/got" 2>&1; then
    not_ok "$name" "it fails: $(head -n 3 "$work/got")"
  elif ! diff "$work/wanted" "$work/got"; then
    not_ok "$name" "it prints something else"
  else
    echo "ok $name"
  fi
}
try c_example gcc -std=gnu17 -x c
try cpp_example g++ -std=gnu++17 -x c++
exit $bad
