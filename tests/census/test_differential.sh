#!/usr/bin/env bash
# The census's lexer against clang's, on this repository's own C, as it is and
# with pieces changed (the last folder). Skipped where there is no clang or no python3.
set -uo pipefail

[ $# -ge 3 ] || { echo "usage: test_differential.sh DIFFERENTIAL DUMP_NAMES FOLDER..." >&2; exit 2; }
differential=$1 dump_names=$(realpath -s "$2")
shift 2
for tool in clang python3; do
  command -v "$tool" >/dev/null || { echo "skip differential: there is no $tool"; exit 0; }
done
bad=0

# compare NAME ARGUMENT...
compare() {
  local name=$1 said
  shift
  if said=$(python3 "$differential" "$dump_names" "$@"); then
    echo "ok $name: $(tail -n 1 <<<"$said")"
  else
    echo "not ok $name: $said"
    bad=1
  fi
  # Nothing compared is no comparison.
  grep -qE '^[1-9][0-9]+ files, [0-9]{4,} names' <<<"$said" || { echo "not ok $name: too few"; bad=1; }
}
compare as_it_is "$@"
compare changed --mutate 1 "${@: -1}"
exit $bad
