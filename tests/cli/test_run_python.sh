#!/bin/bash
# A Python program whose callers of one native site differ in what they need: the plan has a row each, the program is served by them, and a script of
# another name is not this plan's.
# usage: test_run_python.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO CALLERS_PY
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH
script=$(readlink -f "$5")
cd "$WORK" || exit 1
cp "$script" callers.py
python=/usr/bin/python3 # the distribution's, which tests/python has among those it knows

run $python callers.py
same bare "$rc" 0
bare=$out
run "$TENURE" record -q -o recorded -- $python callers.py
same recorded "$rc:$out" "0:$bare"
run "$TENURE" plan recorded --quiet -o plan.json
same planned "$rc:$err" 0:
same one_native_site "$(jq -c '[.sections[0].sites[] | select(.python_key) | .key] | unique | length' plan.json)" 1
same a_row_for_each_caller "$(jq -c '[.sections[0].sites[] | select(.python_key)] | length' plan.json)" 3
same that_differ "$(jq -c '[.sections[0].sites[] | select(.python_key) | [(.python // [] | map(tostring) | join(" ") | capture("(?<f>weights|caches|request)").f), .discipline]] | sort | unique | map(.[0])' plan.json)" '["caches","request","weights"]'
at_least_two=$(jq '[.sections[0].sites[] | select(.python_key) | .discipline] | unique | length' plan.json)
if [ "$at_least_two" -ge 2 ]; then ok in_discipline; else not_ok in_discipline "all are of one"; fi
same of_that_script "$(jq -r '.sections[0].script' plan.json)" callers.py

run "$TENURE" run -q --strict --plan plan.json -o run -- $python callers.py
same served "$rc:$out" "0:$bare"
run "$TENURE" report --json run
same by_the_rows "$(echo "$out" | jq -c '.routing | [.served_calls, .unplanned_calls, .spilled_calls]')" '[30,0,0]'
# Without Python callers the site is none of the plan's, which is said, and nothing else changes.
TENURE_PYTHON=0 run "$TENURE" run --plan plan.json -o blind -- $python callers.py
same without_callers "$rc:$out" "0:$bare"
holds without_callers_is_said "$err" '*nothing was served*'
# A plan with one row for the site serves all of them.
TENURE_PYTHON=0 run "$TENURE" record -q -o coarse -- $python callers.py
run "$TENURE" plan coarse --quiet -o coarse.json
same one_row "$rc:$(jq '[.sections[0].sites[]] | length' coarse.json)" 0:1
run "$TENURE" run -q --strict --plan coarse.json -o run2 -- $python callers.py
same all_by_one_row "$rc:$out" "0:$bare"
run "$TENURE" report --json run2
same all_are_served "$(echo "$out" | jq -c '.routing | [.served_calls, .unplanned_calls, .spilled_calls]')" '[30,0,0]'
mv callers.py other.py
run "$TENURE" run --plan plan.json -o other -- $python other.py
same another_script_runs "$rc:$out" "0:$bare"
holds another_script_is_not_the_plans "$err" '*other*'
finish
