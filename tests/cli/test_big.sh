#!/bin/bash
# The report of a large run: 10 million events, 10 000 sites, 300 modules with symbols and debug information, in under 10 s
# of processor time and 1 GiB of anonymous memory, as text and as JSON.
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
MAKE_BIG=$(readlink -f "$3")
MEASURE=$(readlink -f "$4")
TEMPLATE=$(readlink -f "$5")
cd "$WORK" || exit 1

MAX_CPU_MS=10000
MAX_ANON_KIB=1048576

# within NAME: the figures that the last measure left
within() {
    local wall cpu anon
    read -r wall cpu anon <figures
    echo "$1: $wall ms by the clock, $cpu ms of processor time, $((anon >> 10)) MiB of anonymous memory"
    if [ "$cpu" -lt $MAX_CPU_MS ]; then ok "$1_time"; else not_ok "$1_time" "$cpu ms of processor time"; fi
    # Of a process that is over at once no memory may have been met.
    if [ "$anon" -gt 0 ] && [ "$anon" -lt $MAX_ANON_KIB ]; then ok "$1_memory"; else not_ok "$1_memory" "$anon KiB"; fi
}

run "$MAKE_BIG" run 10000000 10000 300 "$TEMPLATE"
same made "$rc:$err" 0:

run "$MEASURE" figures "$TENURE" report run
same text_code "$rc:$err" 0:
within text
holds text_events "$out" '*events     10000000, 0 dropped*'
holds text_sites "$out" '*Sites (20 of 10000, *'
holds text_names "$out" '*lib???.so  mix  big_module.c:*lib???.so  big_function_???  big_module.c:*'

"$MEASURE" figures "$TENURE" report --json run >json 2>err
same json_code "$?:$(cat err)" 0:
within json
same json_sites "$(grep -c '^   "cut":' json)" 10000
# Every address is in the text of its module: nearly all have their line, and none was left for want of time.
named=$(grep -c '^     "line_missing": null' json)
if [ "$named" -gt 110000 ]; then ok json_lines; else not_ok json_lines "$named of 120000 frames have a line"; fi
same json_in_time "$(grep -c 'time for symbols' json)" 0
finish
