#!/bin/sh
# A program with two faults, recorded on the fake card: the report tells them apart, by the lines of their source, while it
# runs and when it has ended; at its marks; and it names what stood in the way of a refused request.
# usage: test_leaks.sh CHECK_SH TENURE LIBTENURE LIBCUDA PROGRAM
here=$(pwd)
TENURE=$here/$2 PROGRAM=$here/$5
# shellcheck source=tests/cli/check.sh
. "$here/$1"
TENURE_LIB=$here/$3
export TENURE_LIB
LD_LIBRARY_PATH=$(dirname "$here/$4")
export LD_LIBRARY_PATH
cd "$WORK" || exit 1

line() { grep -n "$1" "$here/tests/cli/leaky_program.c" | head -n 1 | cut -d: -f1; }
scratch=$(line 'cuMemAlloc(&larger')
workspace=$(line 'cuMemAlloc(&workspace')
refused=$(line 'cuMemAlloc(&block, bytes)')
ask() { jq -r "$1" report.json; }

mkfifo go
"$TENURE" record -q -o run -- "$PROGRAM" <go >said 2>err &
recorder=$!
exec 3>go
tries=0
until grep -q . said || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
same program_is_right "$(cat said)" ready

# ---- while it runs ----
"$TENURE" report --json run >report.json
same running_code $? 0
same still_running "$(ask '.processes[0].running')" true
same growth_while_running "$(ask '[.growth[].growth] | sort | join(",")')" 'lost pointers,pool growth'
run "$TENURE" report run
holds running_text "$out" '*0 ended, 0 killed or gone by _exit, 1 running*'

# ---- when it has ended ----
echo >&3
exec 3>&-
wait $recorder
same program_ended_well $? 0
"$TENURE" report --json run >report.json
same code $? 0
where() { ask "[.growth[] | select(.growth == \"$1\") | .key] as \$k | .sites[] | select(.key == \$k[0]) | .frames[0] | [(.inlined + [.])[0].function, (.file | split(\"/\") | last), (.inlined + [.])[0].line] | @csv"; }
same two_sites_grow "$(ask '.growth | length')" 2
same lost_pointer_is_found "$(where 'lost pointers')" "\"initialise\",\"leaky_program.c\",$workspace"
same pool_is_found "$(where 'pool growth')" "\"grow_scratch\",\"leaky_program.c\",$scratch"
same blocks_were_lost "$(ask '.growth[] | select(.growth == "lost pointers") | [.allocs, .frees, .serving] | @csv')" 24,0,true
same buffers_grew "$(ask '.growth[] | select(.growth == "pool growth") | [.first_backed_bytes < .last_backed_bytes, .rise_blocks] | @csv')" true,0
same workspaces_are_left "$(ask '.devices[0].live_requested_bytes')" $((24 * 3 << 20))
same idle_pool_is_named "$(ask '.refusals[] | [.refused, .result, .idle_pool_bytes >= (.requested_bytes | . * 7 / 6 - 4096), .granted_later] | @csv')" 1,2,true,false
run "$TENURE" report run
holds text_of_the_lost "$out" "*Growth while serving*lost pointers*initialise (leaky_program.c:$workspace)*24 allocations and 0 frees*"
holds text_of_the_pool "$out" "*pool growth*grow_scratch (leaky_program.c:$scratch)*"
holds text_of_the_left "$out" "*Never freed, device 0: *initialise (leaky_program.c:$workspace)*"
holds text_of_the_refused "$out" "*too_much (leaky_program.c:$refused)*lay idle in*"
wide=$(printf '%s\n' "$out" | awk 'length($0) > 100' | grep -cv '/') # a path may be longer
same text_fits_100_columns "$wide" 0

# ---- at its marks ----
"$TENURE" report --json --at loaded run >report.json
same nothing_at_the_first_mark "$(ask '[.run.at.mark, .devices[0].live_requested_bytes // 0] | @csv')" 1,0
"$TENURE" report --json --at 2 run >report.json
same at_the_second_mark "$(ask '[.run.at.text, .devices[0].live_requested_bytes] | @csv')" "\"served\",$(((24 * 3 + 12) << 20))"
same libraries_add_up "$(ask '.devices[0] | ([.libraries[].live_backed_bytes] | add) == .live_backed_bytes')" true
same sites_add_up "$(ask '([.sites[] | select(.device == 0) | .live_backed_bytes] | add) == .devices[0].live_backed_bytes')" true
run "$TENURE" report --at serving --by phase run
holds at_a_phase "$out" '*state at * the beginning of serving,*'
finish
