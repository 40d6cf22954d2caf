#!/bin/bash
# tenure plan --remember: a recorded run's charges reach the next plan of a demand file; what failed does not.
# usage: test_remember.sh CHECK_SH TENURE LIBTENURE LIBCUDA ENGINE PROGRAM DEMAND
here=$(pwd)
# shellcheck disable=SC2034 # TENURE is for check.sh
TENURE=$here/$2 ENGINE=$here/$5 PROGRAM=$here/$6 DEMAND=$here/$7
# shellcheck source=tests/cli/check.sh
. "$here/$1"
export TENURE_LIB=$here/$3
LD_LIBRARY_PATH=$(dirname "$here/$4")
export LD_LIBRARY_PATH
export XDG_STATE_HOME=$WORK/state
unset CUDA_MODULE_LOADING
cd "$WORK" || exit 1
charges=state/tenure/charges.json

run "$TENURE" record -q -o first -- "$ENGINE" quiet
run "$TENURE" plan --remember first
same a_run_is_remembered "$rc $err" "0 "
holds it_says_what "$out" "NVIDIA H200, driver 13000, loading default: * of charges remembered in $WORK/$charges"
"$TENURE" report --json first >first.json
most() { jq "[.devices[0].marks[].charges | $1] | max" first.json; }
kept() { jq ".entries[0].measurements[0].bytes.$1" $charges; }
same the_context_is_the_reports "$(kept context)" "$(most .context)"
same kernel_code_is_the_reports "$(kept modules)" "$(most '.modules + .first_launches')"
same limits_are_the_reports "$(kept limits)" "$(most .limits)"
same others_are_the_reports "$(kept other)" "$(most '.managed + .first_use + .peers + .pinned + .arrays + .growth')"

cp $charges before.json
run "$TENURE" plan --remember first
same a_run_twice_counts_once "$(cat $charges)" "$(cat before.json)"
CUDA_MODULE_LOADING=EAGER run "$TENURE" record -q -o eager -- "$ENGINE" quiet
run "$TENURE" plan --remember eager
same loading_is_part_of_the_set_up "$(jq -c '.entries | map(.loading)' $charges)" '["EAGER","default"]'

# ---- a plan uses it
sed 's/^model:/device: {loading: default}\nmodel:/' "$DEMAND" >demand.yaml
run "$TENURE" plan --demand demand.yaml --remembered --json
same the_next_plan_has_it "$(echo "$out" | jq '.lines[] | select(.name == "CUDA context + driver (measured)").bytes')" "$(kept context)"

# ---- what failed changes nothing
cp $charges before.json
# shellcheck disable=SC2016 # the inner shell's
run "$TENURE" record -q -o failed -- sh -c '"$0" stray; exit 1' "$PROGRAM"
run "$TENURE" plan --remember failed
refused a_failed_run_is_not_remembered 3 '*failed is not remembered: it dropped events, failed before it served, or measured nothing'
run "$TENURE" plan --remember absent
refused no_such_run 2 '*absent*'
mkdir empty
run "$TENURE" plan --remember empty
refused no_journal 3 '*no journal*'
same nothing_changed "$(cat $charges)" "$(cat before.json)"
run "$TENURE" plan --remember first --charges /proc/nowhere/charges.json
refused an_unusable_place 2 '*/proc/nowhere/charges.json: *'
run "$TENURE" plan --remember first second
refused one_run 2 '*second is too much*'

finish
