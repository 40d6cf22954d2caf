#!/usr/bin/env bash
# Holds the API table against what the toolkit exports: every memory-like function of cudart and of the stub driver is a
# row of the table or deliberately passed, with a reason; every row exists; no reason is left without a function.
#   test_table.sh API_NAMES LIBCUDART LIBCUDA_STUB PASSED
set -u
names=$1 cudart=$2 cuda=$3 passed=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # NAME FILE: the file lists what is wrong
  if [ -s "$2" ]; then
    echo "not ok $1:" "$(tr '\n' ' ' <"$2")"
    failed=1
  else
    echo "ok $1"
  fi
}

exports() { nm -D --defined-only "$1" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u; }

"$names" | awk '{ print $3 }' | sort >"$work/table"
exports "$cudart" >"$work/runtime"
exports "$cuda" >"$work/driver"
[ "$(wc -l <"$work/runtime")" -gt 300 ] && [ "$(wc -l <"$work/driver")" -gt 500 ] || {
  echo "not ok exports: the toolkit's libraries list too few functions to be the right ones"
  exit 1
}
sort -u "$work/runtime" "$work/driver" >"$work/all"

uniq -d "$work/table" >"$work/wrong"
check "no row twice" "$work/wrong"

"$names" | awk '$1 == "driver" { print $3 }' | sort | comm -23 - "$work/driver" >"$work/wrong"
check "every driver row is a function of the driver" "$work/wrong"
"$names" | awk '$1 == "runtime" { print $3 }' | sort | comm -23 - "$work/runtime" >"$work/wrong"
check "every runtime row is a function of the runtime" "$work/wrong"

like='mem|alloc|free|array|pool|host|ipc|map|external|pointer|managed|addr|cache|multicast'
grep -iE "$like" "$work/all" >"$work/memory"
comm -23 "$work/memory" "$work/table" >"$work/rest"
awk '!/^#/ && NF { print "^(" $1 ")$" }' "$passed" >"$work/patterns"
grep -vE -f "$work/patterns" "$work/rest" >"$work/wrong"
check "every memory-like function is a row or passed with a reason" "$work/wrong"

while IFS= read -r pattern; do
  grep -qE "$pattern" "$work/rest" || echo "$pattern"
done <"$work/patterns" >"$work/wrong"
check "no passed pattern without a function" "$work/wrong"

awk '!/^#/ && NF == 1' "$passed" >"$work/wrong"
check "every passed pattern has a reason" "$work/wrong"

# The same rules must be able to fail: without its row, cudaMalloc is found missing.
grep -vx cudaMalloc "$work/table" >"$work/less"
comm -23 "$work/memory" "$work/less" | grep -vE -f "$work/patterns" | grep -qx cudaMalloc ||
  echo "a missing row goes unnoticed" >"$work/less.wrong"
touch "$work/less.wrong"
check "a missing row is noticed" "$work/less.wrong"

# A per-thread-default-stream twin of a row is a row.
sed -nE 's/_pt(sz|ds)$//p' "$work/all" | sort -u | comm -12 - "$work/table" >"$work/twins"
: >"$work/wrong"
while IFS= read -r name; do
  for twin in "${name}_ptsz" "${name}_ptds"; do
    grep -qx "$twin" "$work/all" && ! grep -qx "$twin" "$work/table" && echo "$twin" >>"$work/wrong"
  done
done <"$work/twins"
check "every per-thread twin of a row is a row" "$work/wrong"

exit $failed
