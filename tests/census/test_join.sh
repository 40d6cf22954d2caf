#!/usr/bin/env bash
# A program recorded on the fake card and joined with its source: each line
# comes out as the comment beside it says, whatever the compiler made of it.
set -uo pipefail

[ $# -eq 7 ] || { echo "usage: test_join.sh CHECK TENURE LIBTENURE LIBCUDA SHARED STATIC SOURCE" >&2; exit 2; }
TENURE=$(realpath -s "$2") shared=$(realpath -s "$5") static=$(realpath -s "$6")
TENURE_LIB_PATH=$(realpath -s "$3")
source=$(cd "$(dirname "$7")" && pwd)
LD_LIBRARY_PATH=$(cd "$(dirname "$4")" && pwd)
export LD_LIBRARY_PATH
# shellcheck source=tests/cli/check.sh
. "$1"
export TENURE_LIB=$TENURE_LIB_PATH
cp -rL "$source" "$WORK/elsewhere"
tree=$WORK/elsewhere

# The comments: FILE:LINE WHAT
wanted() {
  (cd "$1" && grep -rn 'want: ' . | sed -E 's,^\./([^:]*:[0-9]+):.*want: ([a-z]+ ?[0-9]*).*,\1 \2,; s/ +$//' | sort)
}
# What the census says, in the same form
said() {
  jq -r '.runs.lines[] | .path + ":" + (.line | tostring) + " " + .state + (if .state == "reached" then " \(.call_paths)" else "" end)' <<<"$out" | sort
}

for program in "$shared" "$static"; do
  name=$(basename "$program")
  run "$TENURE" record -q -o "$WORK/$name" -- "$program"
  same "$name.record" "$rc" 0
  run "$TENURE" census "$tree" --api grab --api NEW --runs "$WORK/$name" --json
  same "$name.code" "$rc" 0
  if lines=$(diff <(wanted "$tree") <(said)); then ok "$name.lines"; else not_ok "$name.lines" "$lines"; fi
  # The call through a pointer lies in a counted file, at no counted call.
  pointer=$(grep -n 'the call of no name' "$tree/main.cc" | cut -d: -f1)
  same "$name.pointer" "$(jq -r '[.runs.call_paths[] | select(.state == "no_call") | (.where | split("/") | last), .allocs] | join(" ")' <<<"$out")" \
    "main.cc:$pointer 1"
  same "$name.counts" "$(jq -c '.runs.call_path_counts | [.no_call, .ambiguous, .outside, .without_line]' <<<"$out")" '[1,0,0,0]'
done

# Figures: one refused request beside a granted one; peaks.
same refused "$(jq -c '[.runs.lines[] | select(.refused > 0) | .allocs, .refused, .peak_requested_bytes]' <<<"$out")" '[1,1,32]'
same grab "$(jq -c '[.runs.lines[] | select(.path == "grab.c") | .allocs, .peak_requested_bytes]' <<<"$out")" '[4,106]'

# The same run twice is no more paths and no larger peak, but twice the allocations.
run "$TENURE" census "$tree" --api grab --api NEW --json --runs "$WORK/$(basename "$shared")" "$WORK/$(basename "$shared")"
same twice "$(jq -c '[.runs.call_path_counts.no_call, (.runs.lines[] | select(.path == "grab.c") | .allocs, .peak_requested_bytes)]' <<<"$out")" '[1,8,106]'

# Without --api the wrapper's callers are not asked for, and the macro's use is at no counted call.
run "$TENURE" census "$tree" --runs "$WORK/$(basename "$shared")" --json
same without_api "$(jq -c '[.runs.line_counts | .total, .reached, .never, .macro], .runs.call_path_counts.no_call' <<<"$out")" $'[9,7,1,1]\n2'

# Two copies of a file are told apart by their folders, and named where they cannot be.
run "$TENURE" census "$tree/one/same.c" "$tree/two/same.c" --runs "$WORK/$(basename "$shared")" --json
same folders "$(jq -c '[.runs.lines[] | [.path, .state]]' <<<"$out")" '[["one/same.c","reached"],["two/same.c","reached"]]'
mkdir -p "$WORK/copies/"{x,y}
cp -r "$tree/one" "$WORK/copies/x/"
cp -r "$tree/one" "$WORK/copies/y/"
run "$TENURE" census "$WORK/copies" --runs "$WORK/$(basename "$shared")"
same copies.code "$rc" 0
holds copies.never "$out" "*2 allocation lines: 0 reached, 0 possibly, 2 never*1 ambiguous*"
holds copies.named "$out" "*Ambiguous (1)*same.c:8  cudaMalloc  1 alloc, peak 1 B"$'\n'"      could be x/one/same.c or y/one/same.c*"

# A source that has moved on: named, not joined with a neighbour.
sed -i 's/^void from_one/\n\n\n&/' "$tree/one/same.c"
run "$TENURE" census "$tree" --api grab --api NEW --runs "$WORK/$(basename "$shared")"
holds moved "$out" "*Never reached (2)*one/same.c:11  cudaMalloc*In the source, but at no counted call (2)*one/same.c:8  cudaMalloc*"

# A program without debug information: what it reached is not known, and said to be so.
cp "$shared" "$WORK/bare"
objcopy --strip-debug "$WORK/bare"
run "$TENURE" record -q -o "$WORK/bare_run" -- "$WORK/bare"
run "$TENURE" census "$tree" --runs "$WORK/bare_run"
same bare.code "$rc" 0
holds bare "$out" "*0 reached*call paths: 0 at a counted line*without a line: what they reached shows as never reached*Not in the source (*(no debug information*"

# Text
run "$TENURE" census "$tree" --api grab --api NEW --runs "$WORK/$(basename "$shared")" --list
holds text.reached "$out" "*Reached (*grab.c:9  cudaMalloc  4 allocs, peak 106 B*"
finish
