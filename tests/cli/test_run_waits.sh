#!/bin/bash
# How often a run will wait for a slot: what tenure verify says of its record is what the same program does when it is served. Stream-ordered
# blocks of T3 and packed ones, of which a stream has its own again at once and another's behind a join.
# usage: test_run_waits.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_DELAY_US=300
cd "$WORK" || exit 1
unset TENURE_PLAN

for way in calm hasty; do
    run "$TENURE" record -q -o $way -- "$PROGRAM" $way
    same $way.runs "$rc" 5
done
printf 'T3 symbol=take_fixed\npacked symbol=take_slot\npacked symbol=take_plain\n' >rules
# By the calm run there is one block of each site at a time.
run "$TENURE" plan calm --rules rules --quiet -o plan.json
same planned "$rc $(jq -c '[.sections[0].sites[] | select(.discipline == "T3" or .discipline == "packed") | .blocks] | sort' plan.json)" '0 [1,1,1]'

# agree WAY AT_LEAST AT_MOST: as many waits as verify says, and so many
agree() {
    local said was
    run "$TENURE" verify plan.json "$1"
    same "$1.fits" "$rc" 0
    said=$(sed -n 's/.* without room, \([0-9]*\) after a wait;.*/\1/p' <<<"$out")
    run "$TENURE" run -q --plan plan.json -o "$1.served" -- "$PROGRAM" "$1"
    same "$1.serves" "$rc" 5
    was=$("$TENURE" report --json "$1.served" | jq -c '[.routing.waited_calls, .routing.spilled_calls, .routing.unplanned_calls]')
    same "$1.waits_as_said" "$was" "[$said,0,0]"
    if [ "$said" -ge "$2" ] && [ "$said" -le "$3" ]; then ok "$1.waits"; else not_ok "$1.waits" "$said waits"; fi
}
agree calm 0 0
# In each round three blocks of T3 come after one of the other stream: the first of a, of b, and of a again. What is behind the join does not wait, nor
# what follows its own stream's, nor what those waits have made clean, which are for all.
agree hasty 29 29
finish
