#!/bin/bash
# tenure run --plan: what is refused before the program starts and what is let through, on the fake card; nothing refused leaves a folder behind, and
# what is let through is the program as it is.
# usage: test_run.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO ENGINE DRIVER_PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
ENGINE=$(readlink -f "$5")
DRIVER=$(readlink -f "$6")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680 ENGINE_BLAS=libfakeblas.so
cd "$WORK" || exit 1
engine=("$ENGINE" --config dense --seed 1 --requests 3)

# not_started NAME CODE PATTERN: the last run, of folder "none", gave CODE and one sentence, and left nothing
not_started() {
    refused "$1" "$2" "$3"
    [ ! -e none ] || { not_ok "$1_leaves_nothing" "a folder is there"; rm -rf none; }
}
# The same where a table follows the sentence.
falls_short() {
    same "$1" "$rc:$out" 1:
    holds "$1_says" "$(head -n 1 .err)" "$2"
    [ ! -e none ] || { not_ok "$1_leaves_nothing" "a folder is there"; rm -rf none; }
}

# What the engine computed, and what the command said: a plan may change how much is used and free, which the engine prints as well.
result() { echo "$rc:$(echo "$out" | grep -E '^(request|checksum)')"; }
said() { grep '^tenure' .err; }

run "${engine[@]}"
bare=$(result)
holds the_engine_computes "$bare" '0:*request*checksum=0x*'
run "$TENURE" record -q -o recorded -- "${engine[@]}"
same recorded "$(result)" "$bare"
run "$TENURE" plan recorded --quiet -o plan.json
same planned "$rc:$err" 0:

# ---- the program that is meant ----
run "$TENURE" run --plan plan.json -o planned -- "${engine[@]}"
same the_program_is_as_it_is "$(result)" "$bare"
same and_needs_no_word "$(said)" ''
same it_leaves_a_run_folder "$(ls planned/run.json planned/*.tnj | wc -l)" 2
echo "exec ${engine[*]}" >launch.sh
run "$TENURE" run --plan plan.json -o launched -- sh launch.sh
same a_launcher_is_let_through "$(result)" "$bare"
holds and_is_named "$(said)" 'tenure run: warning: plan.json names no *sh: only what that starts may be served by it'
printf '#!/usr/bin/env -S sh -e\nexec %s\n' "${engine[*]}" >script
chmod +x script
run "$TENURE" run -q --plan plan.json -o script.run -- ./script
same a_script_is_a_launcher "$(result)$(said)" "$bare"

run "$TENURE" run -q --plan plan.json -o environment -- sh -c 'echo "$TENURE_PLAN|$TENURE_STRICT|$TENURE_MISFIT|$TENURE_BUDGET"'
same the_library_is_told_the_plan "$out" "$PWD/plan.json|||"
run "$TENURE" run -q --plan plan.json -o environment2 --strict --misfit native --budget 40GiB --guard warn -- sh -c 'echo "$TENURE_PLAN|$TENURE_STRICT|$TENURE_MISFIT|$TENURE_BUDGET|$TENURE_GUARD"'
same the_library_is_told_the_options "$out" "$PWD/plan.json|1|native|42949672960|warn"
# Without the command: nothing is served where nothing can be recorded, and that is said, once; neither is a word about it where no plan is given.
not_followed() { # NAME VARIABLES...: $sentence of the library
    local name=$1
    shift
    run env LD_PRELOAD="$TENURE_LIB" "$@" "${engine[@]}"
    same "$name" "$(result)" "$bare"
    same "${name}_is_said" "$(grep -h '^tenure' .err)" "$sentence"
}
sentence='tenure: TENURE_PLAN is not followed: TENURE_RUN names no folder for the journal, which serving needs'
not_followed a_plan_without_a_folder TENURE_PLAN=plan.json
sentence='tenure: TENURE_PLAN is not followed: the folder that TENURE_RUN names has no room for a journal, or is not there'
not_followed a_plan_with_a_folder_that_is_not_there TENURE_PLAN=plan.json TENURE_RUN=nowhere
sentence=''
not_followed no_plan_and_no_folder TENURE_RUN=nowhere
run env LD_PRELOAD="$TENURE_LIB" TENURE_PLAN=plan.json sh -c 'exit 3'
same what_uses_no_cuda_hears_nothing "$rc:$out$err" 3:

for code in 0 7; do
    run "$TENURE" run -q --plan plan.json -o "exit$code" -- sh -c "exit $code"
    same "exit_$code" "$rc:$out$err" "$code:"
done

# ---- another program ----
run "$TENURE" run --plan plan.json -o none -- "$DRIVER"
not_started another_program_is_refused 2 'tenure run: plan.json is for another program: it names legacy_engine, and not driver_program, which uses CUDA itself'
run "$TENURE" run --plan plan.json -o unplaced --misfit native -- "$DRIVER"
same misfit_native_runs_it "$rc" 5
holds misfit_native_says_so "$err" '*warning: plan.json is for another program*; it runs unplaced*'
run "$TENURE" run --plan plan.json -o other -- sh -c "$DRIVER"
same started_by_a_launcher_it_runs "$rc" 5
holds and_afterwards_nothing_was_served "$err" '*warning: plan.json names none of the processes that used CUDA: nothing was served by it'
jq '.sections[].build_id = "00112233445566778899aabbccddeeff00112233"' plan.json >build.json
run "$TENURE" run --plan build.json -o none -- "${engine[@]}"
not_started another_build_is_refused 2 'tenure run: build.json is for another build of legacy_engine: the plan*s has the build-id 0011223344556677, this one *'
run "$TENURE" run -q --plan build.json -o rebuilt --misfit native -- "${engine[@]}"
same another_build_runs_with_misfit_native "$(result)$(said)" "$bare"

# An interpreter is known by its script as well; another script may start the planned one.
if python=$(command -v python3); then
    python=$(realpath "$python")
    id=$(readelf -n "$python" 2>/dev/null | sed -n 's/.*Build ID: //p' | head -n 1)
    jq --arg id "$id" --arg exe "$(basename "$python")" '.sections[] |= (.executable = $exe | .build_id = $id | .script = "serve.py")' plan.json >python.json
    echo 'print("served")' >serve.py
    cp serve.py other.py
    run "$TENURE" run --plan python.json -o python1 -- python3 serve.py
    same the_script_that_is_planned "$rc:$out" 0:served
    same the_script_needs_no_word "$(grep -v 'no CUDA call was seen' .err)" ''
    run "$TENURE" run --plan python.json -o python2 -- python3 other.py
    same another_script_may_start_it "$rc:$out" 0:served
    holds another_script_is_named "$err" '*python.json names no python* other.py: only what that starts may be served by it*'
    printf '#!/usr/bin/env python3\nprint("served")\n' >serve2.py
    chmod +x serve2.py
    jq '.sections[].script = "serve2.py"' python.json >python2.json
    run "$TENURE" run --plan python2.json -o python3 -- ./serve2.py
    same a_script_with_its_interpreter_in_it "$rc:$out" 0:served
    same it_is_known_by_its_name "$(grep -v 'no CUDA call was seen' .err)" ''
else
    echo "skip interpreters: no python3 here"
fi

# ---- a device that is too small ----
run env FAKEGPU_MEM_MIB=2000 "$TENURE" run --plan plan.json -o none -- "${engine[@]}"
falls_short a_smaller_device 'tenure run: plan.json needs * bytes for legacy_engine, * more than device 0 (*), which has 2097152000'
holds a_smaller_device_gets_the_table "$err" '*context*'
run env FAKEGPU_MEM_MIB=2000 "$TENURE" run -q --plan plan.json -o small --misfit native -- sh -c 'exit 9'
same a_smaller_device_with_misfit_native "$rc:$out$err" 9:
jq '.sections[].device = 3' plan.json >device3.json
run "$TENURE" run --plan device3.json -o none -- "${engine[@]}"
not_started a_device_that_is_not_there 1 'tenure run: device3.json is for device 3, and there is 1'
run "$TENURE" run --plan plan.json -o none --budget 2GiB -- "${engine[@]}"
falls_short a_smaller_budget 'tenure run: plan.json needs * bytes for legacy_engine, * more than the budget of 2147483648 bytes'
jq '.budget = 2000000000' plan.json >over.json
run "$TENURE" run --plan over.json -o none -- "${engine[@]}"
falls_short a_plan_over_its_own_budget '*more than the budget of 2000000000 bytes'
run env -u LD_LIBRARY_PATH "$TENURE" run --plan plan.json -o nodriver -- sh -c 'exit 4'
same without_a_driver_it_runs "$rc" 4
holds without_a_driver_the_fit_is_not_known "$err" '*whether the plan fits the device is not known: there is no libcuda.so.1*'

# ---- plans and words that are wrong ----
head -c 3000 plan.json >cut.json
run "$TENURE" run --plan cut.json -o none -- "${engine[@]}"
not_started a_cut_plan 2 'tenure run: cut.json:*:*: *'
sed 's/"T2"/"T9"/' plan.json >damaged.json
run "$TENURE" run --plan damaged.json -o none -- "${engine[@]}"
not_started a_damaged_plan 2 'tenure run: damaged.json: sections*'
jq '.sections[0].total_bytes += 1' plan.json >sum.json
run "$TENURE" run --plan sum.json -o none -- "${engine[@]}"
not_started a_plan_that_does_not_add_up 2 'tenure run: sum.json: sections*0*: its total is *'
run "$TENURE" run --plan nowhere.json -o none -- true
not_started no_such_plan 2 'tenure run: nowhere.json: No such file or directory'
run "$TENURE" run --plan plan.json --serving-when sometimes -o none -- true
not_started an_unknown_trigger 2 'tenure run: *sometimes*'
run "$TENURE" run --plan plan.json --serving-when call:cudaNothing:1 -o none -- true
not_started a_trigger_on_no_function 2 'tenure run: *cudaNothing*'
run "$TENURE" run -o none -- true
not_started without_a_plan 2 'tenure run: no plan given*'
run "$TENURE" run --plan plan.json -- true
not_started without_a_folder 2 'tenure run: no run folder given*'
run "$TENURE" run --plan plan.json -o none
not_started without_a_program 2 'tenure run: no program given*'
run "$TENURE" run --plan plan.json --misfit maybe -o none -- true
not_started another_misfit 2 'tenure run: --misfit takes native, not maybe'
run "$TENURE" run --plan plan.json --budget lots -o none -- true
not_started no_budget 2 'tenure run: *--budget*lots*'
run "$TENURE" run --plan plan.json --guard sometimes -o none -- true
not_started no_guard 2 'tenure run: --guard *sometimes*'
run "$TENURE" run --plan plan.json -o none -- ./nothing
not_started no_such_program 2 'tenure run: ./nothing: No such file or directory'
run "$TENURE" run --nonsense
not_started an_unknown_option 2 'tenure run: unknown option --nonsense*'

# ---- soak takes the same plans ----
run "$TENURE" soak --plan cut.json -o none -- "${engine[@]}"
not_started soak_with_a_cut_plan 2 'tenure soak: cut.json:*:*: *'
run "$TENURE" soak --plan build.json -o none -- "${engine[@]}"
not_started soak_with_another_build 2 'tenure soak: build.json is for another build of legacy_engine*'
run env FAKEGPU_MEM_MIB=2000 "$TENURE" soak --plan plan.json -o none -- "${engine[@]}"
falls_short soak_on_a_smaller_device 'tenure soak: plan.json needs * more than device 0*'
run "$TENURE" soak --budget 1GiB -o none -- "${engine[@]}"
not_started soak_with_a_budget_and_no_plan 2 'tenure soak: --misfit, --budget and --own-peak need --plan'
run "$TENURE" soak --plan plan.json --own-peak lots -o none -- "${engine[@]}"
not_started soak_with_no_peak 2 'tenure soak: --own-peak*lots*'
run "$TENURE" help run
holds help_is_there "$rc:$out" '0:tenure run --plan PLAN*'
finish
