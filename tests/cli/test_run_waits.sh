#!/bin/bash
# How often a run will wait for a slot: what tenure verify says of its record is what the same program does when it is served. Stream-ordered
# blocks of T3 and packed ones, of which a stream has its own again at once and another's behind a join.
# And that threads which begin together wait for the one that gets the arenas.
# usage: test_run_waits.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO PROGRAM TOGETHER
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
together=$(readlink -f "$6")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_DELAY_US=300
cd "$WORK" || exit 1
unset TENURE_PLAN

printf 'T3 symbol=take_fixed\npacked symbol=take_slot\npacked symbol=take_plain\n' >rules

# agree NAME WAITS SCRIPT [blocking]: by the plan of a run that waits after each block, in which there is one of each site at a time, one that
# never does so waits as often as verify says, and so often
agree() {
    local name=$1 of_hasty=$2 waits way
    shift 2
    for way in calm hasty; do
        run "$TENURE" record -q -o "$name.$way" -- "$PROGRAM" $way "$@"
        same "$name.$way.runs" "$rc" 5
    done
    run "$TENURE" plan "$name.calm" --rules rules --quiet -o plan.json
    same "$name.planned" "$rc $(jq -c '[.sections[0].sites[] | select(.discipline == "T3" or .discipline == "packed") | .blocks]' plan.json)" '0 [1,1,1]'
    for way in calm hasty; do
        waits=$([ $way = calm ] && echo 0 || echo "$of_hasty")
        run "$TENURE" verify plan.json "$name.$way"
        same "$name.$way.is_said_to_wait" "$rc $(sed -n 's/.* without room, \([0-9]*\) after a wait;.*/\1/p' <<<"$out")" "0 $waits"
        run "$TENURE" run -q --plan plan.json -o "$name.served" -- "$PROGRAM" $way "$@"
        same "$name.$way.is_served" "$rc" 5
        same "$name.$way.waits" "$("$TENURE" report --json "$name.served" | jq -c '[.routing.waited_calls, .routing.spilled_calls, .routing.unplanned_calls]')" "[$waits,0,0]"
        rm -r "$name.served"
    done
}
# In each round three blocks of T3 come after one of the other stream: the first of a, of b, and of a again. What is behind the join does not
# wait, nor what follows its own stream's, nor what those waits have made clean, which are for all.
agree own_streams 29 aAaAaAaAbBbBbBbBaaajbp
agree in_turn 120 abABabjabABpABabjBAbapjbBaA
agree blocking 29 aAaAaAaAbBbBbBbBaaajbp blocking

# Arenas may take seconds (pinned memory: 0.4 s a GiB). Nobody who asks meanwhile is refused, or sent to the driver.
run "$TENURE" record -q -o begin -- "$together"
run "$TENURE" plan begin --quiet -o begin.json
FAKEGPU_ALLOC_US=2000000 run "$TENURE" run -q --strict --plan begin.json -o begin.served -- "$together"
same those_who_begin_together_are_served "$rc" 5
same each_of_them "$("$TENURE" report --json begin.served | jq -c '[.routing.served_calls, .routing.spilled_calls, .routing.unplanned_calls]')" '[8,0,0]'
finish
