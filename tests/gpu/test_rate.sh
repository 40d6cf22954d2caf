#!/bin/bash
# The serving engine on the fake card, bare, recorded and served by its plan; and that bench_rate.py finds what it is to find: a ratio, a limit that
# is missed, outputs that differ, a program that fails, one that was not served.
# usage: test_rate.sh FOLDER_OF_THE_SUITE ENGINE TENURE LIBTENURE_SO LIBCUDA_SO
set -u
suite=$(readlink -f "$1") engine=$(readlink -f "$2") tenure=$(readlink -f "$3")
TENURE_LIB=$(readlink -f "$4")
LD_LIBRARY_PATH=$(dirname "$(readlink -f "$5")")
export TENURE_LIB LD_LIBRARY_PATH
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
failed=0

report() { # NAME WANTED FOUND
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		echo "not ok $1: wanted $2, found $3"
		failed=1
	fi
}
routed() { "$tenure" report --json "$1" | jq -c '[.routing.served_calls > 0, .routing.spilled_calls, .routing.unplanned_calls, .serving.driver_allocations]'; }

# A pool that is bounded by its cap.
capped=(--requests 12 --kv-cap 256)
"$engine" "${capped[@]}" >bare.out 2>bare.err
report the_engine_ends_well "0:15" "$?:$(wc -l <bare.out)"
"$tenure" record -q -o recorded -- "$engine" "${capped[@]}" >recorded.out 2>recorded.err
report recorded_prints_the_same "0:$(cat bare.out)" "$?:$(cat recorded.out)"
report it_allocates_while_serving true "$("$tenure" report --json recorded | jq '.serving.driver_allocations > 300')"
"$tenure" plan recorded --quiet -o plan.json
"$tenure" run -q --plan plan.json -o served -- "$engine" "${capped[@]}" >served.out 2>served.err
report served_prints_the_same "0:$(cat bare.out)" "$?:$(cat served.out)"
report all_is_served '[true,0,0,0]' "$(routed served)"

# One that is bounded by free memory: the plan knows the query, and what others have on the card changes nothing.
blocks() { sed -n 's/^kv_blocks=//p' "$1"; }
share=(env FAKEGPU_MEM_MIB=3072 FAKEGPU_SHARED="$tmp/card")
"${share[@]}" "$tenure" record -q -o sized -- "$engine" --requests 12 >sized.out 2>sized.err
"$tenure" plan sized --quiet -o sized.json
report the_plan_has_the_query true "$(jq '.sections[0].sizing_query.sizes | length == 2' sized.json)"
"${share[@]}" "$tenure" run -q --plan sized.json -o sized1 -- "$engine" --requests 12 >sized1.out 2>sized1.err
mkfifo lines
"${share[@]}" "$engine" --worker --slice 1 --kv-cap 64 <lines >neighbour.out 2>neighbour.err &
exec 3>lines
echo go >&3
for _ in $(seq 100); do
	grep -q ready neighbour.out && break
	sleep 0.1
done
"${share[@]}" "$engine" --requests 1 --kv-cap 99999 >beside.out 2>beside.err
"${share[@]}" "$tenure" run -q --plan sized.json -o sized2 -- "$engine" --requests 12 >sized2.out 2>sized2.err
exec 3>&-
wait
report a_neighbour_takes_from_the_bare_pool true "$([ "$(blocks beside.out)" -lt "$(blocks sized.out)" ] && echo true)"
report and_nothing_from_the_served_one "$(cat sized1.out)" "$(cat sized2.out)"
report requests_are_answered_the_same "$(grep -v kv_blocks sized.out)" "$(grep -v kv_blocks sized2.out)"
report all_of_it_is_served '[true,0,0,0]' "$(routed sized2)"

# A worker in Python with a fault on one side: of what it says, of its end, or of its allocations.
cat >worker.py <<'PY'
import ctypes
import json
import os
import sys

import bench_worker

kind, served = sys.argv[1], "TENURE_PLAN" in os.environ
bench_worker.gate()
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
if kind != "unserved" or not served:
    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(3 << 20)) == 0
bench_worker.serving()
print(json.dumps({"ready": "none", "variants": ["a", "b"]}), flush=True)
for line in sys.stdin:
    if kind == "dies" and served:
        sys.exit("died on purpose")
    print(json.dumps({"times": [1.0], "digest": served if kind == "differs" else 0}), flush=True)
PY
described() { # NAME LIMIT COMMAND...
	python3 -c 'import json, sys
print(json.dumps({"name": sys.argv[1], "limit": float(sys.argv[2]), "pairs": 2, "blocks": 2, "share": 1, "command": sys.argv[3:]}))' "$@"
}
rate() { # NAME PROGRAM...: with the fake driver loaded, by which the fake NVML knows of the others
	local name=$1
	shift
	printf '%s\n' "$@" | jq -s . >"$name.json"
	env FAKEGPU_SHARED="$tmp/card.$name" FAKEGPU_ALLOC_US=300 PYTHONPATH="$suite" PYTHONDONTWRITEBYTECODE=1 LD_PRELOAD=libcuda.so.1 python3 "$suite/bench_rate.py" \
		--library "$TENURE_LIB" --tenure "$tenure" --programs "$name.json" --work "$name" --json "$name.rate.json" --seconds 60 >"$name.txt" 2>&1
	echo $? >"$name.rc"
}
good=$(described engine 0.9 "$engine" --worker --slice 4 --kv-cap 64)
rate holds "$good"
report the_rate_is_found "0:true" "$(cat holds.rc):$(jq '.[0] | .variants[0].ratio < 0.9 and .variants[0].same_tokens and .pairs == 2 and .failed == []' holds.rate.json)"
report its_calls_are_counted 'true' "$(jq '.[0].calls | .served > 700 and .spilled + .unplanned + .driver == 0' holds.rate.json)"
# The context, the weights and the pool: the device has them in use on either side.
report its_peak_is_found '[true,true]' "$(jq -c '.[0].peaks | [.bare, .served] | map(.device >= 600 * 1048576 and .device < 800 * 1048576)' holds.rate.json)"
rate faults "$(described slow 0.0001 "$engine" --worker --slice 4 --kv-cap 64)" "$(described differs 9 python3 worker.py differs)" \
	"$(described dies 9 python3 worker.py dies)" "$(described unserved 9 python3 worker.py unserved)" "$(described fine 9 python3 worker.py fine)"
report faults_are_a_failure 1 "$(cat faults.rc)"
report a_missed_limit_is_named 1 "$(grep -c '^slow, requests .* same  MISSED$' faults.txt)"
report outputs_that_differ_are_named 2 "$(grep -c '^differs, [ab] .* DIFFER  MISSED$' faults.txt)"
report a_failure_is_told_with_its_end 1 "$(grep -c '^    died on purpose$' faults.txt)"
report what_was_not_served_is_named 'FAILED: unserved, report: alone served nothing' "$(grep '^FAILED: unserved' faults.txt | sort -u)"
report the_others_go_on '[2,["a","b"],[]]' "$(jq -c '.[4] | [.pairs, [.variants[].case], .failed]' faults.rate.json)"
[ $failed = 0 ] || { tail -n 60 holds.txt faults.txt; }
exit $failed
