#!/usr/bin/env bash
# Holds the engine's source against the census it was written to: 380 lines
# with 395 calls, by subsystem and by API.
set -uo pipefail

here=$(dirname "$0")
lines=$("$here/list_sites.sh") || exit 1
calls=$("$here/list_sites.sh" --calls) || exit 1
bad=0

# expect NAME WANT HAVE
expect() {
  if [ "$2" = "$3" ]; then
    echo "ok $1 $3"
  else
    echo "not ok $1: $3 instead of $2"
    bad=1
  fi
}

expect lines 380 "$(wc -l <<<"$lines")"
expect calls 395 "$(wc -l <<<"$calls")"
expect lines_unique 380 "$(sort -u <<<"$lines" | wc -l)"

for want in exec=132 compute=115 runtime=69 model=21 quant=17 memory=15 vision=6 core=4 lora=1; do
  expect "lines_${want%=*}" "${want#*=}" "$(grep -c "^${want%=*}/" <<<"$lines")"
done
for want in cudaMalloc=248 cudaMallocAsync=57 cudaHostAlloc=49 vram_alloc=31 cudaMallocHost=6 cudaHostRegister=4; do
  expect "calls_${want%=*}" "${want#*=}" "$(grep -c ":${want%=*}\$" <<<"$calls")"
done
# The files that the census names by their count.
for want in exec/executor_workspace_buffers=47 runtime/engine_scheduler=17 runtime/cuda_graph=17 \
  compute/gemm_grouped_nvfp4_smallM=14 runtime/engine_graph_decode=13 exec/pre_dequant_phase3_nvfp4_decode=13; do
  expect "lines_${want%=*}" "${want#*=}" "$(grep -c "^${want%=*}\.c:" <<<"$lines")"
done
exit $bad
