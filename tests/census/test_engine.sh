#!/usr/bin/env bash
# The legacy engine: the census counts its 380 lines as its own list does, and
# joins recorded runs of the three configurations with them.
set -uo pipefail

[ $# -eq 6 ] || { echo "usage: test_engine.sh CHECK TENURE LIBTENURE ENGINE FAKE_LIBRARY LIST_SITES" >&2; exit 2; }
TENURE=$(realpath -s "$2")
ENGINE=$(realpath -s "$4")
library=$(realpath -s "$3")
FAKE=$(cd "$(dirname "$5")" && pwd)
source=$(cd "$(dirname "$6")" && pwd)
# shellcheck source=tests/cli/check.sh
. "$1"
cp -rL "$source" "$WORK/src"
tree=$WORK/src

run "$TENURE" census "$tree" --api vram_alloc --json
same code "$rc" 0
same totals "$(jq -c '.totals.alloc' <<<"$out")" '{"lines":380,"calls":395,"in_macros":0}'
list() { # each allocation call as file:line:api
  jq -r '.files[] | .path as $p | .uses[] | select(.kind == "call" and (.api | test("Free|Unregister") | not)) | "\($p):\(.line):\(.api)"' <<<"$out" | sort
}
if lines=$(diff <("$tree/list_sites.sh" --calls | sort) <(list)); then ok calls_as_listed; else not_ok calls_as_listed "$lines"; fi
same folders "$(jq -r '[.folders[] | select(.alloc.lines > 0) | "\(.folder)=\(.alloc.lines)"] | join(" ")' <<<"$out")" \
  "compute=115 core=4 exec=132 lora=1 memory=15 model=21 quant=17 runtime=69 vision=6"
same apis "$(jq -r '[.apis[] | select(.alloc.calls > 0) | "\(.api)=\(.alloc.calls)"] | sort | join(" ")' <<<"$out")" \
  "cudaHostAlloc=49 cudaHostRegister=4 cudaMalloc=248 cudaMallocAsync=57 cudaMallocHost=6 vram_alloc=31"
# Without its funnel the 31 are not there, and the funnel's own call, through a pointer, is none.
run "$TENURE" census "$tree" --json
same without_funnel "$(jq -c '[.totals.alloc.lines, (.files[] | select(.path == "memory/vram_allocator.c") | .alloc.calls)]' <<<"$out")" '[349,0]'

# record NAME ARGUMENT...
record() {
  local name=$1
  shift
  run env LD_LIBRARY_PATH="$FAKE" ENGINE_BLAS=libfakeblas.so FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680 \
    TENURE_LIB="$library" "$TENURE" record -q -o "$WORK/$name" -- "$ENGINE" "$@"
  same "$name.record" "$rc" 0
}
# join NAME RUN...: leaves the counts of lines and of call paths
join() {
  run "$TENURE" census "$tree" --api vram_alloc --json --runs "${@/#/$WORK/}"
  same "$1.code" "$rc" 0
  counts=$(jq -c '.runs | [.line_counts.total, .line_counts.reached, .line_counts.possibly, .line_counts.never, .call_path_counts.no_call, .call_path_counts.ambiguous]' <<<"$out")
  outside=$(jq -r '[.runs.call_paths[] | select(.state == "outside") | "\(.through) \(.peak_requested_bytes)"] | sort | join(", ")' <<<"$out")
}
for config in dense moe vision; do
  record "$config" --config "$config"
  join "$config"
  same "$config.lines" "$counts" '[380,380,0,0,0,0]'
  # Not in the source: what the matrix library takes for itself.
  holds "$config.library" "$outside" "*core/kernels.c:*67108864*"
  same "$config.library_paths" "$(jq .runs.call_path_counts.outside <<<"$out")" 3
done
record noswap --config dense --feature-off model_swap
join noswap
same noswap.lines "$counts" '[380,377,0,3,0,0]'
same noswap.never "$(jq -r '[.runs.lines[] | select(.state == "never") | .path] | unique | join(" ")' <<<"$out")" runtime/model_swap.c
join noswap dense
same with_another.lines "$counts" '[380,380,0,0,0,0]'

# Every granted allocation is on a line or outside: no figure is lost. A wrapper's caller and what it calls are two lines, so by path.
run "$TENURE" report --json "$WORK/dense"
granted=$(jq '[.sites[].allocs] | add' <<<"$out")
join dense
joined=$(jq '[.runs.lines[].allocs, .runs.call_paths[].allocs] | add' <<<"$out")
same nothing_lost "$joined" "$granted"
finish
