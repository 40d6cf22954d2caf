#!/bin/bash
# Holds stand_check.py itself: it must accept equal counts and refuse a missing call, a dropped event, a cut file, an
# empty count and a report without the module asked for.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=${TEST_TMPDIR:-$(mktemp -d)}
failed=0

expect() {
	local name=$1 wanted=$2
	shift 2
	python3 "$here/stand_check.py" "$@" >"$work/out" 2>&1
	local got=$?
	if [ "$got" = "$wanted" ]; then
		echo "ok $name"
	else
		echo "not ok $name: exit $got, wanted $wanted"
		sed 's/^/#   /' "$work/out"
		failed=1
	fi
}

cat >"$work/counts" <<'COUNTS'
driver cuMemAlloc_v2 5 1 0 0 0
driver cuMemFree_v2 4 0 0 0 0
driver cuInit 1 0 0 0 0
runtime cudaMalloc_v3020 5 1 3 2 0
runtime cudaFree_v3020 4 0 3 1 0
overflow 0
end complete
COUNTS

report() {
	cat >"$work/$1" <<REPORT
{"dropped_events": $2, "sites": [{"allocs": $5, "frames": [{"module": "libcublas.so.13", "offset": "0x10"}]}],
 "coverage": [{"api": "cuMemAlloc_v2", "level": "driver", "calls": $3},
              {"api": "cuMemFree_v2", "level": "driver", "calls": 4},
              {"api": "cuInit", "level": "driver", "calls": 2},
              {"api": "cudaMalloc", "level": "runtime", "calls": $4},
              {"api": "cudaFree", "level": "runtime", "calls": 3}]}
REPORT
}

report same 0 5 3 1
report missing 0 4 3 1
report runtime_missing 0 5 5 1
report dropped 7 5 3 1
report idle_site 0 5 3 0
grep -v '^end' "$work/counts" >"$work/cut"
printf 'overflow 0\nend complete\n' >"$work/none"
printf '{"sites": [], "coverage": []}' >"$work/empty_report"
sed 's/overflow 0/overflow 2/' "$work/counts" >"$work/overflow"

expect equal_counts 0 counts "$work/same" "$work/counts" driver,runtime
expect driver_call_missing 1 counts "$work/missing" "$work/counts" driver
expect private_cudart_calls_are_not_ours 1 counts "$work/runtime_missing" "$work/counts" driver,runtime
expect runtime_ignored_when_not_asked 0 counts "$work/runtime_missing" "$work/counts" driver
expect dropped_events 1 counts "$work/dropped" "$work/counts" driver
expect cut_file 2 counts "$work/same" "$work/cut" driver
expect nothing_counted 1 counts "$work/empty_report" "$work/none" driver
expect overflow 2 counts "$work/same" "$work/overflow" driver
expect no_file 2 counts "$work/same" "$work/absent" driver
expect module_found 0 module "$work/same" libcublas
expect module_without_allocation 1 module "$work/idle_site" libcublas
expect module_missing 1 module "$work/same" libcudnn
exit $failed
