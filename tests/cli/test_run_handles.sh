#!/bin/bash
# A context gets the handle of one whose end another thread has not yet seen: its memory is its own all the same, recorded and served.
# usage: test_run_handles.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_REUSE=1
cd "$WORK" || exit 1
unset TENURE_PLAN

run "$PROGRAM"
same the_program_runs "$rc$out" 5
run "$TENURE" record -q -o recorded -- "$PROGRAM"
same it_is_recorded "$rc$out" 5
same frees_are_of_what_is_live "$("$TENURE" report --json recorded | jq -c '[.sites | map(.allocs), map(.frees), map(.live_requested_bytes) | add]')" '[15,10,0]'
run "$TENURE" plan recorded --quiet -o plan.json
run "$TENURE" run -q --plan plan.json -o served -- "$PROGRAM"
same it_is_served "$rc$out" 5
same all_of_it "$("$TENURE" report --json served | jq -c '[.routing.served_calls, .routing.spilled_calls, .routing.unplanned_calls]')" '[15,0,0]'
finish
