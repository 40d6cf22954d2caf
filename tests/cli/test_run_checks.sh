#!/bin/bash
# The options by which a served run finds a program's errors: canaries behind blocks of every family, what new and freed blocks hold; nothing of it without
# them, nothing while a capture is active, no wait at a free in a stream's order. And under compute-sanitizer, for which a library of its name stands,
# nothing is served.
# usage: test_run_checks.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_DELAY_US=300
cd "$WORK" || exit 1
unset TENURE_PLAN TENURE_CANARY TENURE_FILL TENURE_POISON CUDA_INJECTION64_PATH

run "$TENURE" record -q -o recorded -- "$PROGRAM"
same the_program_runs "$rc" 5
run "$TENURE" plan recorded -o plan.json --quiet
run "$TENURE" plan recorded -o gaps.json --gap 512 --quiet
same gaps_are_planned "$rc $(jq .gap_bytes gaps.json)" "0 512"
same and_none_else "$(jq .gap_bytes plan.json)" null
run "$TENURE" verify gaps.json recorded
same the_run_fits_with_gaps "$rc" 0
run "$TENURE" plan recorded --gap 0 -o none.json
holds no_gap_of_nothing "$rc $err" '2 *--gap*'

# served NAME PLAN ARGUMENT... -- PROGRAM_ARGUMENT: by that plan, its report in NAME.report.json
served() {
    local name=$1 plan=$2 options=()
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    run timeout 60 "$TENURE" run -q --plan "$plan" "${options[@]}" -o "$name" -- "$PROGRAM" "$@"
    "$TENURE" report --json "$name" >"$name.report.json"
}
checks() { jq -c ".checks | [$2]" "$1.report.json"; }
held() { echo "$out" | tr '\n' ' '; }

served off gaps.json --
same without_options_nothing_is_done "$(jq -c '[.checks[] | numbers] | add' off.report.json)" 0
run "$TENURE" report off
holds nor_said "$out" 'Tenure report*'
case $out in *Canaries*) not_ok no_section "it is there" ;; *) ok no_section ;; esac

# 20 blocks are served, of which one is live at the end, one freed while a capture is active, and one just before its stream's context ends, which is not
# the current one.
served right gaps.json --canary --
same intact_canaries "$rc $(checks right '.with_canary, .without_canary, .intact, .overwritten, .not_done, .at_exit, .at_exit_overwritten, .poisoned, .unseen')" '5 [20,0,17,0,1,1,0,0,1]'
same plain_and_pinned_frees_wait "$(checks right '.waits')" '[12]'
same nothing_is_said "$err" ''
served wrong gaps.json --canary -- overrun
same overwritten_canaries "$rc $(checks wrong '.with_canary, .intact, .overwritten, .not_done, .at_exit, .at_exit_overwritten')" '5 [20,12,5,1,1,1]'
same first_bytes "$(jq -c '[.checks.overwrites[] | [.bytes, .first_byte, .overwritten_bytes, (.freed == null)]] | sort' wrong.report.json)" \
    '[[100,0,1,false],[700,1,2,true],[1000,0,7,false],[1024,0,1,false],[2000,10,3,false],[3000,0,5,false]]'
holds it_is_said_once "$err" 'tenure: a served block was written past its end: *'
run "$TENURE" report wrong
holds sites_are_named "$out" '*1 block written past the end; the first: 1.0 KiB at 0x*, from byte 0 behind it, 1 byte
*allocated *take_plain (checked_program.c:*
*freed *give_plain (checked_program.c:*'
holds also_of_what_is_live "$out" '*: 700 B at *allocated *freed      nowhere: it was live when the process ended*'
# Without gaps the blocks that fill their slots have none, and are counted.
served tight plan.json --canary --
same without_room_there_is_no_canary "$rc $(checks tight '.with_canary, .without_canary')" '5 [17,3]'
served held gaps.json --canary --poison -- held
same an_ordered_free_waits_for_nothing "$rc $(checks held '.intact, .not_done')" '5 [17,1]'
# However many contexts have come and gone, the next one's frees are looked at, though the context may end first.
run "$TENURE" record -q -o more -- "$PROGRAM" contexts
run "$TENURE" plan more --gap 512 -o more.json --quiet
served contexts more.json --canary -- contexts
same contexts_that_have_ended_keep_nothing "$rc $(checks contexts '.with_canary, .without_canary, .not_done, .intact + .unseen')" '5 [90,0,1,88]'

served filled plan.json --fill 0x21 --
same filled "$rc $(held)" '5 pinned 0x00 pinned 0x00 pinned 0x00 new 0x21 again 0x21 ordered 0x21 '
served zero plan.json --fill zero --
same zeroed "$rc $(held)" '5 pinned 0x00 pinned 0x00 pinned 0x00 new 0x00 again 0x00 ordered 0x00 '
served poisoned plan.json --poison --
same poisoned "$rc $(held)" '5 pinned 0x00 pinned 0x00 pinned 0x00 new 0xde again 0xde ordered 0xde '
same all_but_the_captured_one "$(checks poisoned '.poisoned, .not_done, .waits')" '[18,1,12]'
run "$TENURE" run --plan plan.json --fill 256 -o none -- true
refused a_byte_is_wanted 2 'tenure run: --fill takes zero or a byte*'

# ---- compute-sanitizer ----
natively="$(env -u TENURE_PLAN "$PROGRAM" | tr '\n' ' ')"
# native NAME: nothing of that run was served, and the report says why
native() {
    same "$1" "$rc $(held)" "5 $natively"
    same "$1_serves_nothing" "$(jq -c '[.routing.served_calls // 0, (.coverage_notes | tostring | contains("under compute-sanitizer"))]' "$1.report.json")" '[0,true]'
}
printf 'int tenure_test_stands_for_a_tool;\n' >tool.c
gcc -shared -fPIC -o libsanitizer-collection.so tool.c
run env LD_PRELOAD="$PWD/libsanitizer-collection.so" true
same the_stand_in_loads "$rc$err" 0
export LD_PRELOAD=$PWD/libsanitizer-collection.so
served preloaded plan.json --canary --
unset LD_PRELOAD
native preloaded
# The driver loads it as it starts, when the plan is long read.
export CHECKED_LOADS=$PWD/libsanitizer-collection.so
served late plan.json --strict --
native late
unset CHECKED_LOADS
export CUDA_INJECTION64_PATH=$PWD/libsanitizer-collection.so
served named plan.json --
native named
unset CUDA_INJECTION64_PATH
served after plan.json --
same without_it_all_is_served "$(jq -c '.routing.served_calls' after.report.json)" 20
finish
