#!/bin/sh
# The whole way: record an unmodified program on the fake card with the real libtenure.so, and report it.
# usage: test_end_to_end.sh CHECK_SH TENURE LIBTENURE LIBCUDA PROGRAM
here=$(pwd)
TENURE=$here/$2 PROGRAM=$here/$5
# shellcheck source=tests/cli/check.sh
. "$here/$1"
TENURE_LIB=$here/$3
export TENURE_LIB
LD_LIBRARY_PATH=$(dirname "$here/$4")
export LD_LIBRARY_PATH
cd "$WORK" || exit 1

run "$PROGRAM"
same bare_run "$rc:$out" '5:child 5, parent 5'
run "$TENURE" record -o run -- "$PROGRAM"
same recorded_run "$rc:$out:$err" '5:child 5, parent 5:'
same one_journal_a_process "$(ls run/*.tnj | wc -l)" 2
run "$TENURE" report --json run
same report_code "$rc:$err" 0:
json=$(printf %s "$out" | tr -d ' \n')
# Both processes keep the block of 1000 bytes. They ran one after the other: the highest point is one's 3 MiB and 1000.
holds live "$json" '*"tiers":null,"live_requested_bytes":2000,"peak_requested_bytes":3146728,*'
holds device_kind "$json" '*"device":{"live_requested_bytes":2000,*"allocs":4,"frees":2,"refused":2,*'
holds handles "$json" '*"vmm_handle":{"live_requested_bytes":0,"peak_requested_bytes":2097152,*"allocs":2,"frees":2,"refused":0,*'
holds pinned "$json" '*"pinned":{"live_requested_bytes":16384,"peak_requested_bytes":8192,*"allocs":2,"frees":0,"refused":0,*'
holds nothing_dropped "$json" '*"dropped_events":0,*'
holds the_program_owns_its_sites "$json" '*"owner":"driver_program"*'
holds its_own_function_is_named "$json" '*"symbol":"main","symbol_offset":[1-9]*,"symbol_source":"symtab","symbol_missing":null*'
holds calls_are_counted "$json" '*{"api":"cuMemAlloc_v2","level":"driver","class":"alloc","hooked":true,"resolved":[0-9]*,"calls":6}*'
# Sites are the same in both processes: five places in the source, the refused request one of them.
same sites "$(printf %s "$out" | jq ".sites | length")" 5
"$TENURE" report --json run >again
same same_bytes "$(cksum <again)" "$(printf '%s\n' "$out" | cksum)"
run "$TENURE" record -q -o second -- "$PROGRAM"
keys() { "$TENURE" report --json "$1" | grep '"key":' | sort; }
same keys_are_those_of_another_run "$(keys run)" "$(keys second)"
run "$TENURE" report run
holds text "$rc:$out" '0:Tenure report*2 with CUDA: 2 ended*cuMemAlloc_v2*Coverage*'
finish
