#!/bin/sh
# Every program on the fake GPU by plans: by one without rows, and by one of its own record. What a tier served is counted, so that a plan
# that places nothing is not taken for a program that cannot tell.
# shellcheck source=tests/diff/stage.sh
. "$1"
suite serve -p -j 6 >"$STAGE/out"
failed=$?
cat "$STAGE/out"
some=$(sed -n 's/^\([0-9]*\) programs had requests served.*/\1/p' "$STAGE/out")
if [ "${some:-0}" -ge 60 ]; then echo "ok serve.serves"; else echo "not ok serve.serves: $some programs had requests served"; failed=1; fi

# A context more is served as the first one is, however many have ended.
if grep -q '^ok serve.many_contexts (served 400, spilled 0)' "$STAGE/out"; then echo "ok serve.each_context_is_served"
else echo "not ok serve.each_context_is_served: $(grep many_contexts "$STAGE/out")"; failed=1; fi

# ---- allocators over virtual memory, while they serve ----

# same NAME GOT WANTED
same() {
    if [ "$2" = "$3" ]; then echo "ok serve.$1"; else echo "not ok serve.$1: $2, not $3"; failed=1; fi
}
# figures RUN: what the report says of its serving and its routes
figures() {
    "$STAGE/cli/tenure" report --json "$1" | python3 -S -c '
import json, sys
r = json.load(sys.stdin)
s, t, d = r["serving"], r["routing"], r["devices"][0]
print(s["driver_allocations"], s["served_allocations"], t["spilled_calls"], t["unplanned_calls"], d["unattributed_bytes"])'
}
pools() { "$STAGE/bin/vmm_pools" 9; }
LD_LIBRARY_PATH=$STAGE/fake
export LD_LIBRARY_PATH
TENURE_LIB=$STAGE/shim/libtenure.so
export TENURE_LIB
cd "$STAGE" || exit 1
pools >pools.bare
# A call says when it serves, so that record and serve flip at the same one.
when=call:cuMemAddressFree:1
tenure() { "$STAGE/cli/tenure" "$@"; }
tenure record -q --serving-when "$when" -o pools.record -- bin/vmm_pools 9 >pools.record.out
tenure plan pools.record --quiet -o pools.json
tenure run -q --plan pools.json --serving-when "$when" -o pools.serve -- bin/vmm_pools 9 >pools.serve.out
same handles_computes_the_same "$(cmp pools.bare pools.serve.out 2>&1)" ""
same handles_recorded "$(figures pools.record)" "36 0 None None 0"
same handles_served "$(figures pools.serve)" "0 36 0 0 0"
# A pool with half the handles runs out: the driver serves the rest, or, asked to be strict, nobody does.
python3 -S bin/plans.py small pools.json small.json
tenure run -q --plan small.json --serving-when "$when" -o pools.small -- bin/vmm_pools 9 >pools.small.out
same handles_run_out "$(cmp pools.bare pools.small.out 2>&1)" ""
same handles_spill "$(figures pools.small | awk '{ print ($1 > 0), ($2 > 0), ($3 > 0), $4, $5 }')" "1 1 1 0 0"
tenure run -q --strict --plan small.json -o pools.strict -- bin/vmm_pools 9 >pools.strict.out
same strict_refuses_handles "$(grep -c '^request\.[0-9]*=[1-9]' pools.strict.out | awk '{ print ($1 > 0) }')" 1
# Recorded calm, a pool has one handle of the size that the program later gives back while a kernel runs: it is waited for, twice.
tenure record -q -o handles.record -- bin/vmm_handles calm >handles.calm
tenure plan handles.record --quiet -o handles.json
bin/vmm_handles >handles.bare
tenure run -q --plan handles.json -o handles.serve -- bin/vmm_handles >handles.out
same handles_that_leave "$(cmp handles.bare handles.out 2>&1)" ""
waited=$(tenure report --json handles.serve | python3 -S -c 'import json, sys; print(json.load(sys.stdin)["routing"]["waited_calls"])')
same a_handle_in_use_is_waited_for "$waited" 2

# One that left its pool and is gone is made anew, but while the process serves, when nothing is allocated: then the rest is the driver's, and it is said.
tenure record -q -o leaving.record -- bin/vmm_handles leaving calm >leaving.calm
tenure plan leaving.record --quiet -o leaving.json
bin/vmm_handles leaving >leaving.bare
tenure run -q --plan leaving.json -o leaving.serve -- bin/vmm_handles leaving >leaving.out
same handles_are_replaced "$(cmp leaving.bare leaving.out 2>&1)" ""
same handles_that_left_are_replaced "$(figures leaving.serve)" "None None 0 0 0"
tenure run -q --plan leaving.json --serving-when "$when" -o leaving.serving -- bin/vmm_handles leaving >leaving.out
same handles_are_not_replaced_while_serving "$(cmp leaving.bare leaving.out 2>&1) $(figures leaving.serving)" " 5 1 5 0 0"
short=$(tenure report --json leaving.serving | python3 -S -c 'import json, sys; print(sum("short of 1 that left" in n["text"] for n in json.load(sys.stdin)["coverage_notes"]))')
same short_pools_are_said "$short" 1

# ---- a capture that begins while a request waits is kept for 3 s, as long as nobody's work takes longer, and then no more ----

tenure record -q -o late.record -- bin/late_capture 50 calm >late.bare
tenure plan late.record --quiet -o late.json
tenure run -q --plan late.json -o late.serve -- bin/late_capture 3300 >late.out
same late_capture_is_whole "$(cmp late.bare late.out 2>&1)" ""
told() { tenure report --json "$1" | python3 -S -c '
import json, sys
r = json.load(sys.stdin)
print(r["routing"]["waited_calls"], sum("was under way for 3 s" in n["text"] for n in r["coverage_notes"]))'; }
same late_capture_is_said "$(told late.serve)" "1 1"
tenure run -q --plan late.json -o late.short -- bin/late_capture 300 >late.out
same late_capture_waits "$(cmp late.bare late.out 2>&1) $(told late.short)" " 1 0"

# ---- what waits for its stream goes when that has come so far, also where nobody waits for it: 6000 blocks, and far fewer events ----

tenure record -q -o rounds.record -- bin/freed_copies rounds 3000 >rounds.bare
tenure plan rounds.record --quiet -o rounds.json
FAKEGPU_STATS=$STAGE/rounds.stats tenure run -q --plan rounds.json -o rounds.serve -- bin/freed_copies rounds 3000 >rounds.out
same rounds "$(cat rounds.out)" "$(cat rounds.bare)"
events=$(python3 -S -c 'import json, sys; c = json.load(sys.stdin)["calls"]; print(c["cuEventRecord"] > 3000, c["cuEventCreate"] < 2500)' <rounds.stats)
same what_waited_is_let_go "$events" "True True"
same rounds_are_served "$(tenure report --json rounds.serve | python3 -S -c 'import json, sys; print(json.load(sys.stdin)["routing"]["served_calls"])')" 6000
exit "$failed"
