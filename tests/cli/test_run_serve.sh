#!/bin/bash
# What a plan does for the legacy engine on the fake card, seen from the command: it computes the same, tenure soak finds that its criteria hold or
# which falls short, the report has the routes, and the guard refuses what no tier serves.
# usage: test_run_serve.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO ENGINE
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
ENGINE=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680 ENGINE_BLAS=libfakeblas.so
cd "$WORK" || exit 1
engine=("$ENGINE" --config dense --seed 1 --requests 3)

# not_started NAME CODE PATTERN: the last run, of folder "none", gave CODE and one sentence, and left nothing
not_started() {
    refused "$1" "$2" "$3"
    [ ! -e none ] || { not_ok "$1_leaves_nothing" "a folder is there"; rm -rf none; }
}
result() { echo "$rc:$(echo "$out" | grep -E '^(request|checksum)')"; }
said() { grep '^tenure' .err; }

run "${engine[@]}" --instrumented
bare=$(result)
# The engine tells its phases and marks by itself, so that record and soak flip at the same call.
run "$TENURE" record -q -o told -- "${engine[@]}" --instrumented
run "$TENURE" plan told --quiet -o told.json
same told_is_planned "$rc:$err" 0:
# A plan that names the program and none of its sites serves nothing, which is said.
jq '.sections[] |= (.sites = [] | .tiers = [] | .regions = [] | .total_bytes = .native_bytes + ([.charges[].bytes] | add))' told.json >empty.json
run "$TENURE" run --plan empty.json -o empty -- "${engine[@]}"
same a_plan_without_sites_runs "$(result)" "$bare"
holds nothing_served_is_said "$(said)" 'tenure run: warning: nothing was served by empty.json, which names 1 of the processes that used CUDA: *'

run "$TENURE" soak -q --plan told.json -o soaked --drained-on '^swap$' -- "${engine[@]}" --instrumented
holds soak_holds "$rc:$out" '0:*Criteria*holds  *placed by the plan: *holds  *driver allocations while serving: 0 *holds  *spilled calls: 0 *holds  *dropped events: 0 *holds  *live blocks: *when drained*holds  *attribution: *Holds: 0 driver allocations while serving*run folder: */soaked'
holds soak_computes_the_same "$out" "*$(echo "$bare" | tail -n 1)*"
run "$TENURE" soak -q --plan told.json -o soaked2 --own-peak 1GiB -- "${engine[@]}" --instrumented
holds soak_falls_short_of_its_peak "$rc:$out" '1:*falls short  own peak: *Falls short: *'
run "$TENURE" soak -q --plan empty.json -o soaked3 -- "${engine[@]}" --instrumented
holds soak_falls_short_where_nothing_is_placed "$rc:$out" '1:*falls short  placed by the plan: 0 calls*falls short  driver allocations while serving: *'
run "$TENURE" report --json soaked
same the_report_has_the_routes "$(echo "$out" | jq -c '[.routing.unplanned_calls, .routing.spilled_calls, .serving.driver_allocations, (.routing.served_calls > 1000), (.devices[0].tiers | has("T1") and has("packed"))]')" '[0,0,0,true,true]'
# Three swaps: one that fails, after which the old model is loaded again, one that does not, and the draft's, loaded before the old one goes. The device
# has back of each what it has back natively, by its own figure: of T1's regions as much, and of what is packed beside them next to nothing.
swaps='[.devices[0].marks | map(select(.label as $l | ["served", "unloaded", "both_drafts", "one_draft"] | index($l)) | .used_bytes / 1048576) | [.[0] - .[1], .[0] - .[2], .[3] - .[4]] | map(floor)]'
native=$("$TENURE" report --json told | jq -c "$swaps | .[0]")
served=$(echo "$out" | jq -c "$swaps | .[0]")
same swaps_return_memory "$(jq -nc --argjson n "$native" --argjson s "$served" '[range(3) | $n[.] > 64 and $s[.] >= $n[.] * 0.98]')" '[true,true,true]'
echo "  MiB natively $native, served $served"
same what_is_served_is_no_driver_memory "$(echo "$out" | jq '.devices[0] | .unattributed_bytes')" 0

# The engine writes past the end of one pinned block, on purpose, and of no other: with a gap behind each, that one is found.
run "$TENURE" plan told --quiet --gap 512 -o gaps.json
run "$TENURE" run -q --plan gaps.json --canary -o guarded -- "${engine[@]}" --instrumented
same canaries_change_nothing "$(result)" "$bare"
run "$TENURE" report --json guarded
same each_block_has_one_and_one_is_overwritten "$(echo "$out" | jq -c '.checks | [.with_canary > 1000, .without_canary, .overwritten, .not_done, .at_exit_overwritten, .unseen, .with_canary - .intact - .at_exit]')" '[true,0,1,0,0,0,1]'
run "$TENURE" report guarded
holds it_is_the_engines_own "$out" '*1 block written past the end*, from byte 0 behind it, 26[67] bytes*allocated *logit_ops_init (logit_ops.c:*'

# ---- the guard ----
run "$TENURE" run -q --plan empty.json -o refused --guard refuse -- "${engine[@]}" --instrumented
run "$TENURE" report --json refused
same refused_while_serving "$(echo "$out" | jq -c '.serving | [.refused > 0, .driver_allocations > 0]')" '[true,true]'
run "$TENURE" run -q --plan empty.json -o aborted --guard abort -- "${engine[@]}" --instrumented
same aborted_while_serving "$rc" 134
holds with_its_stack "$err" '*tenure: pid *while serving, by *legacy_engine+0x*tenure:   #0 *legacy_engine+0x*'
run "$TENURE" run -q --plan told.json -o unrefused --guard abort -- "${engine[@]}" --instrumented
same what_is_served_is_not_refused "$(result)" "$bare"
run "$TENURE" record --guard refuse -o none -- true
not_started refusing_needs_a_plan 2 'tenure record: --guard refuse needs a plan*'
run "$TENURE" soak --guard abort -o none -- true
not_started so_it_does_in_soak 2 'tenure soak: --guard abort needs a plan*'
finish
