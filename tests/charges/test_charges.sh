#!/bin/bash
# Where device memory went, on the fake card: at every mark all of it is on lines, also with three threads that load at once; what a hook that is
# switched off would have recorded turns up as unattributed, to the byte; contexts on devices that nobody meant; no NVML; captures survive.
# usage: test_charges.sh CHECK_SH TENURE LIBTENURE LIBCUDA ENGINE PROGRAM EXPLAIN_CHECK_PY
here=$(pwd)
# shellcheck disable=SC2034 # TENURE is for check.sh
TENURE=$here/$2 ENGINE=$here/$5 PROGRAM=$here/$6 HOLD=$here/$7
# shellcheck source=tests/cli/check.sh
. "$here/$1"
export TENURE_LIB=$here/$3
LD_LIBRARY_PATH=$(dirname "$here/$4")
export LD_LIBRARY_PATH
cd "$WORK" || exit 1

# recorded NAME COMMAND...: leaves NAME.json
recorded() {
    local name=$1
    shift
    run "$TENURE" record -q -o "run.$name" -- "$@"
    [ "$rc" = 0 ] || not_ok "$name" "the recorded run ended with $rc: $err"
    "$TENURE" report --json "run.$name" >"$name.json" || not_ok "$name" "no report"
}
device() { jq -c ".devices[$2]$3" "$1.json"; }

# ---- everything is on a line
recorded engine "$ENGINE"
recorded quiet "$ENGINE" quiet
for name in engine quiet; do
    run python3 "$HOLD" bounds $name $name.json
    same ${name}_holds "$rc" 0
    same ${name}_leaves_nothing "$(device $name 0 '.marks | map(.unattributed_bytes) | unique')" '[0]'
    same ${name}_marks "$(device $name 0 '.marks | length')" 13
done
same context_is_the_engines "$(device quiet 0 '.lines[] | select(.kind == "context") | [.owner, .bytes / 1048576]')" '["explain_engine",527]'
same end_adds_up "$(device quiet 0 '| ([.by_library[].bytes] | add) == .accounted_bytes and ([.lines[].bytes] | add) == .accounted_bytes')" true
same no_charge_is_unknown "$(device quiet 0 '.by_library | map(.owner)')" '["explain_engine"]'
run "$TENURE" report run.quiet
holds text "$out" '*used by this run*context*527.0 MiB*unattributed*0 B*by library*explain_engine*at marks and phases*second model loaded*'

# ---- a hook that is switched off
for row in cuMemAlloc cuMemAllocAsync cuMemAllocManaged; do
    export TENURE_TEST_HIDE=$row
    recorded "hidden.$row" "$ENGINE" quiet
    unset TENURE_TEST_HIDE
    run python3 "$HOLD" hidden quiet.json "hidden.$row.json"
    same "hidden_$row" "$rc" 0
    [ "$rc" = 0 ] || echo "$out"
done
same hidden_is_said "$(jq -c '.coverage_notes | map(.what) | unique' hidden.cuMemAlloc.json)" '["turned_off"]'
# Beside other threads too nothing may take hidden bytes up; what charges those threads had may be hidden with them.
export TENURE_TEST_HIDE=cuMemAlloc
recorded threads "$ENGINE"
unset TENURE_TEST_HIDE
lost=$(jq '.devices[0].marks[] | select(.label == "model loaded") | .blocks_bytes + .charges.shared_pages' engine.json)
risen=$(jq '.devices[0].marks[] | select(.label == "model loaded") | .unattributed_bytes' threads.json)
# (Which small blocks share a page depends on who was first: two pages either way.)
if [ "$risen" -ge $((lost - 4194304)) ]; then ok hidden_beside_threads; else not_ok hidden_beside_threads "$risen of $lost bytes"; fi

# ---- a context on a device that the program did not mean to touch
export FAKEGPU_DEVICES=2
recorded stray "$PROGRAM" stray
same stray_ran "$out" '0 0 0 0 0 0'
same stray_context "$(device stray 1 '| [.own_used_bytes / 1048576, .charges.context / 1048576, .unattributed_bytes, .lines[0].owner]')" '[527,527,0,"prog_places"]'
same meant_device "$(device stray 0 '| [.own_used_bytes / 1048576, .unattributed_bytes]')" '[541,0]'
same both_devices_at_marks "$(device stray 1 '.marks | map(.label)')" '["both","end"]'
unset FAKEGPU_DEVICES

# ---- what contexts took goes with them, however many have ended
recorded ended "$PROGRAM" ended
same ended_ran "$out" 0
same ended_contexts "$(device ended 0 '.marks[0] | [.own_used_bytes / 1048576, .charges.context / 1048576, .unattributed_bytes]')" '[537,527,0]'

# ---- no NVML
export FAKEGPU_NVML=absent
recorded no_nvml "$ENGINE" quiet
unset FAKEGPU_NVML
same no_baseline "$(device no_nvml 0 '| [.baseline_bytes, .neighbour_bytes, .accounted_label, .unattributed_bytes]')" '[null,null,"if alone",0]'
run "$TENURE" report run.no_nvml
holds context_and_baseline "$out" '*context+baseline*527.0 MiB*'

# ---- a decode loop is asked the less often the longer nothing moves
export FAKEGPU_STATS=$WORK/calm.stats
began=$(date +%s%N)
recorded calm "$PROGRAM" calm
took=$((($(date +%s%N) - began) / 1000000))
unset FAKEGPU_STATS
same calm_ran "$out" '0 0 0 0 0 failures 0'
asked=$(jq '.calls.cuMemGetInfo_v2' calm.stats)
# A second of it: some 70 around first calls, at marks and while the intervals grow; a pair each 12 ms would be 160 more. On a busy machine the loop takes
# longer, and there are 12 more a second.
most=$((120 + (took > 1500 ? (took - 1500) / 50 : 0)))
if [ "$asked" -le "$most" ]; then ok calm_is_left_alone; else not_ok calm_is_left_alone "$asked readings in $took ms"; fi
same calm_adds_up "$(device calm 0 '.marks | map(.unattributed_bytes)')" '[0,0]'

# ---- readings while a capture is active
for mode in global thread_local relaxed; do
    run "$PROGRAM" $mode
    bare=$out
    recorded $mode "$PROGRAM" $mode
    same "capture_${mode}_as_bare" "$out" "$bare"
    holds "capture_${mode}_survives" "$out" '*status 1*end 0 graph*'
    same "capture_${mode}_was_read" "$(device $mode 0 '.marks | map(.label)')" '["before","capturing","from a thread without a context","after"]'
    same "capture_${mode}_adds_up" "$(device $mode 0 '.marks | map(.unattributed_bytes) | unique')" '[0]'
done
# One that begins where no hook sees it (a library that cannot be reached) survives as well.
for mode in global thread_local; do
    run "$PROGRAM" $mode
    bare=$out
    export TENURE_TEST_HIDE=cuStreamBeginCapture
    recorded unseen_$mode "$PROGRAM" $mode
    unset TENURE_TEST_HIDE
    same "unseen_capture_${mode}_as_bare" "$out" "$bare"
done

finish
