#!/bin/bash
# Model swaps return memory to other processes: a bare process on the same (fake) card sees after each step of a served program what it sees of a bare one.
# With --pin-regions what was loaded once stays.
# usage: test_run_swap.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO PROGRAM
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
export TENURE_LIB
PROGRAM=$(readlink -f "$5")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export LD_LIBRARY_PATH FAKEGPU_MEM_MIB=2000 FAKEGPU_SHARED=$WORK/card
cd "$WORK" || exit 1
unset TENURE_PIN_REGIONS TENURE_CANARY TENURE_FILL TENURE_POISON
mkfifo in out

# beside NAME COMMAND...: what the command prints, with a bare process beside it that looks at the card
beside() {
    local name=$1 watcher
    shift
    timeout 60 "$PROGRAM" watch in out &
    watcher=$!
    timeout 60 "$@" in out >"$name.steps" 2>"$name.err" </dev/null
    same "$name.exit" "$?" 0
    wait $watcher
    same "$name.watcher" "$?" 0
}

# free NAME STEP: MiB that the other process saw after it
free() { sed -n "s/^$2 [0-9]* //p" "$1.steps"; }
codes() { sed 's/ [0-9]*$//' "$1.steps" | tr '\n' ' '; }

# as_bare NAME STEP...: within the 2 MiB that small blocks of others may make
as_bare() {
    local name=$1 step bare there
    shift
    for step in "$@"; do
        bare=$(free bare "$step") there=$(free "$name" "$step")
        if [ -n "$there" ] && [ $((there - bare)) -ge -2 ] && [ $((there - bare)) -le 2 ]; then
            ok "$name.$step"
        else
            not_ok "$name.$step" "another process sees $there MiB free, and $bare beside a bare one"
        fi
    done
}

beside bare "$PROGRAM"
same bare.codes "$(codes bare)" 'start 0 target 0 draft 0 draft_unloaded 0 draft_swapped 0 next 0 both 0 target_unloaded 0 failed 2 failed_unloaded 0 intact 0 all_unloaded 0 '
same bare.shares "$(($(free bare start) - $(free bare target)))" 64
beside record "$TENURE" record -q -o recorded -- "$PROGRAM"
run "$TENURE" plan recorded -o plan.json --quiet
same all_are_model_memory "$rc $(jq -c '[.sections[].sites[].discipline] | unique' plan.json)" '0 ["T1"]'

beside served "$TENURE" run -q --plan plan.json -o run -- "$PROGRAM"
same served.codes "$(codes served)" "$(codes bare)"
run "$TENURE" report --json run
same all_is_served "$(echo "$out" | jq -c '.routing | [.served_calls, .unplanned_calls]')" '[37,0]'
# (The region of the swapped draft holds the next target, too, which no unload parts from it, and is there as a whole from its first layer on.)
as_bare served target draft draft_unloaded next both target_unloaded failed_unloaded intact all_unloaded

beside pinned "$TENURE" run -q --plan plan.json --pin-regions -o pinned -- "$PROGRAM"
same pinned.codes "$(codes pinned)" "$(codes bare)"
as_bare pinned target draft
same what_was_unloaded_stays "$(free pinned draft_unloaded)" "$(free pinned draft)"
run "$TENURE" report --json pinned
same nothing_goes_back_while_it_runs "$(echo "$out" | jq -c '.devices[0].tiers.T1 | [.held_bytes > 0, .live_bytes]')" '[true,0]'
finish
