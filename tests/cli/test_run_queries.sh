#!/bin/bash
# What a program that sizes its pool from free memory is told under a plan: free memory falls by what it takes; from the query that sizes the pool on the
# answer is the budget less what is alive and what the plan knows is still to come, the same whatever the device says.
# usage: test_run_queries.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO SIZING_PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_MEM_MIB=32607
cd "$WORK" || exit 1

value() { sed -n "s/^$1=//p" <<<"$out"; }
# served NAME PLAN [OPTION...]: $out is what the program prints
served() {
    local name=$1 plan=$2
    shift 2
    run "$TENURE" run -q --plan "$plan" -o "$name" "$@" -- "$PROGRAM"
    [ "$rc" = 0 ] || not_ok "$name" "ended with $rc: $err"
}

# appears FILE: waits, ten seconds at most, until something stands in it
appears() {
    for ((i = 0; i < 200; i++)); do
        [ -s "$1" ] && break
        sleep 0.05
    done
}

run "$PROGRAM"
bare=$out
run "$TENURE" record -q -o recorded -- "$PROGRAM"
same recorded_is_bare "$out" "$bare"
run "$TENURE" plan recorded -o plan.json
holds the_query_is_found "$rc:$out" '0:*the largest pool is sized by memory query 1 of site *'
site=$(jq -r '.sections[0].sizing_query.key' plan.json)
pool=$(sed -n 's/^pool_MiB=//p' <<<"$bare")

# Context and module as on the fake card, 529 MiB; 768 of weights; 64 of scratch that is still to come, in its own slot.
served as_recorded plan.json
expected=$(jq '.sections[0] | (32607 * 1048576 - .total_bytes + ([.sites[] | select(.key | IN($s[])) | .capacity] | add)) / 1048576 | floor' \
    --argjson s "$(jq -c '.sections[0].sizing_query.sizes' plan.json)" plan.json)
same the_budget_less_the_rest_of_the_plan "$(value pool_query)" "$expected"
same free_falls_by_the_weights "$(value weights_fell)" 768
same free_falls_by_the_pool "$(value pool_fell)" 1
first=$(value pool_MiB)
[ "$first" -le "$pool" ] || not_ok no_larger_pool "$first MiB, recorded $pool"

# A context that takes more than recorded does not show.
FAKEGPU_CONTEXT_MIB=700 served other_context plan.json
same the_device_is_not_asked "$(value pool_MiB)" "$first"
# Nor does a budget below the card's size: it is the total.
served budget plan.json --budget 31GiB
holds the_budget_is_the_total "$out" 'start=* of 31744*'
same less_by_as_much "$(value pool_query)" $((expected - 32607 + 31744))

# ---- what another process has on the card before this one comes is not this one's
export FAKEGPU_SHARED=$WORK/card
served alone plan.json
alone=$out
mkfifo hold
"$PROGRAM" hold <hold >held &
holder=$!
exec 3>hold
appears held
same the_neighbour_is_there "$(cat held)" held
run "$PROGRAM"
same a_bare_program_sees_it $(($(sed -n 's/^start=\([0-9]*\) .*/\1/p' <<<"$bare") - $(sed -n 's/^start=\([0-9]*\) .*/\1/p' <<<"$out"))) 4623 # and its context
served beside plan.json
same a_served_one_is_told_the_same "$out" "$alone"
# A neighbour that goes while the program runs leaves it no more than there is: its own context is never free.
run "$TENURE" plan recorded --sizing none -o none.json
mkfifo stay
"$TENURE" run -q --plan none.json -o late -- "$PROGRAM" late <stay >came 3>&- &
late=$!
exec 4>stay
appears came
same the_late_one_is_there "$(cat came)" here
exec 3>&-
wait $holder
same the_neighbour_ended "$?" 0
exec 4>&-
wait $late
same the_late_one_ended "$?" 0
start=$(sed -n 's/^start=\([0-9]*\) .*/\1/p' came)
context=$(jq '[.sections[0].charges[] | select(.name == "context") | .bytes] | add / 1048576 | floor' none.json)
if [ "$start" -le $((32607 - context)) ]; then ok no_context_is_free; else not_ok no_context_is_free "$start of 32607 MiB, with a context of $context"; fi
unset FAKEGPU_SHARED

# What the plan does not know takes from what is free at once.
run "$TENURE" run -q --plan plan.json -o unplanned -- "$PROGRAM" unplanned
same free_falls_by_what_is_unplanned "$rc:$(value unplanned_fell)" 0:96

# ---- --sizing
run "$TENURE" plan recorded --sizing none -o none.json
holds no_query_is_a_legal_answer "$rc:$out" '0:*no memory query sizes the largest pool*'
served without none.json
same then_nothing_is_set_aside "$(value pool_query)" "$(sed -n 's/^pool_query=//p' <<<"$bare")"
run "$TENURE" plan recorded --sizing "$site:1" --quiet -o given.json
if cmp -s plan.json given.json; then ok the_same_query_given; else not_ok the_same_query_given "rc $rc $err, the plans differ"; fi
run "$TENURE" plan recorded --sizing "$site:2" --quiet -o none
refused a_query_that_was_not_made 2 "tenure plan: no run asks for free memory 2 times at site $site*"
for wrong in 0 : "$site" "$site:0" "$site:1x" "x$site:1" "00000$site:1"; do
    run "$TENURE" plan recorded --sizing "$wrong" --quiet -o none
    refused "wrong_sizing_$wrong" 2 'tenure plan: --sizing takes a site*'
done
[ ! -e none ] || not_ok nothing_is_written "a plan is there"
finish
