#!/bin/sh
# tenure ctl: phases and marks in running processes, by id and by run folder, and what it refuses.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"

# ---- one process, by its id, while it works
begin one -- prog_serve alloc:2 work:100000
wait_for 10 has_block one
pid=$(program_of one)
tenure ctl -w 5 "$pid" mark "first mark"
same mark_is_taken "$?" 0
tenure ctl -w 5 "$pid" phase planning
tenure ctl -w 5 one phase serving
same phase_is_taken "$?" 0
holds status "$(tenure ctl "$pid" status)" "pid=$pid phase=serving swaps=0 waiting=0 refused=0 lost=0 serving_allocations=*"
tenure ctl "$pid" phase loading 2>refusal
same backwards_is_refused "$?:$(cat refusal)" "1:tenure ctl: process $pid is in serving, and phases do not go back to loading"
tenure ctl -w 5 "$pid" phase planning && tenure ctl -w 5 "$pid" phase serving
same a_swap_is_counted "$(field "$(tenure ctl "$pid" status)" swaps)" 1
kill "$pid"
wait $PID
same phases_in_order "$(phases one)" 'loading planning serving planning:1 serving:1'
same their_cause "$(causes one)" 'none ctl ctl ctl ctl'
same mark_is_named "$(marks one)" 'first mark'
at_least serving_was_counted "$(serving one driver_allocations)" 1
same first_uses_were_before "$(serving one first_uses)" 0
same device_was_read "$(json one '[.phases[:4][].devices[0].used_bytes | . > 500000000] | all')" true
same nothing_dropped "$(json one .dropped_events)" 0

# ---- a process that only launches: nearly all of that goes the short way (shim/launch.h)
begin launching -- prog_serve alloc:1 print:launching launch:100000
wait_for 10 grep -q launching launching.out
sleep 0.3
tenure ctl -w 5 launching phase serving
same launching_takes_it "$?" 0
kill "$(program_of launching)"
wait $PID

# ---- a process that makes no CUDA call for a while: the command's own time counts
begin idle -- prog_serve alloc:1 print:idle sleep:1500 loop:3
wait_for 10 grep -q idle idle.out
tenure ctl idle phase serving
same idle_is_told "$?" 0
tenure ctl -w 0.1 idle mark late 2>waiting
same idle_has_not_taken_it "$?" 1
holds and_that_is_said "$(cat waiting)" '*made no CUDA call within 0.1 s*'
wait $PID
# The process slept for 1.5 s, and the phase began right after it fell asleep: before its next call by far.
at=$(json idle '.phases[1].at_ns') end=$(json idle '.phases[1].at_ns + .phases[1].duration_ns')
at_least idle_has_the_commands_time "$(((end - at) / 1000000))" 900
same idle_counts_what_came_after "$(serving idle driver_allocations)" 3

# ---- a process that makes none any more, ended in an orderly way, and killed
begin orderly -- prog_serve alloc:1 print:idle sleep:700
wait_for 10 grep -q idle orderly.out
tenure ctl orderly phase serving
wait $PID
same taken_at_the_end "$(phases orderly):$(serving orderly driver_allocations)" 'loading serving:0'
begin killed -- prog_serve alloc:1 print:idle sleep:100000
wait_for 10 grep -q idle killed.out
tenure ctl killed phase serving && tenure ctl killed mark "never taken"
kill -9 "$(program_of killed)"
wait $PID
same never_taken_is_known "$(phases killed) $(marks killed):$(serving killed driver_allocations)" 'loading serving never taken:0'
holds never_taken_is_said "$(tenure report killed)" '*phase serving (ctl) (not taken)*'
tenure ctl killed phase planning 2>gone
same nobody_is_there "$?" 3
holds and_that_is_said_too "$(cat gone)" '*no living process records into killed (1 ended, 0 unreadable)'

# ---- two processes: the folder means both
begin both -- prog_serve fork alloc:1 work:100000
two_blocks() { [ "$(find both -name '*.tnc' | wc -l)" = 2 ]; }
wait_for 10 two_blocks
tenure ctl -w 5 both phase serving
same both_are_told "$?" 0
same both_serve "$(tenure ctl both status | grep -c phase=serving)" 2
for block in both/*.tnc; do kill "$(echo "$block" | sed 's/.*-\([0-9]*\)-[0-9a-f]*\.tnc/\1/')"; done
wait $PID
same both_are_reported "$(json both '[.phases[] | select(.phase == "serving") | .pid] | unique | length')" 2

# ---- 63 commands may wait
begin full -- prog_serve alloc:1 print:idle sleep:3000 loop:1
wait_for 10 grep -q idle full.out
n=0
while [ $n -lt 63 ]; do
    tenure ctl full mark "mark $n" || break
    n=$((n + 1))
done
tenure ctl full mark "one too many" 2>many
same one_too_many "$n:$?" 63:1
holds and_it_is_named "$(cat many)" '*has made no CUDA call since 63 commands'
wait $PID
same all_63_are_there "$(json full '[.marks[].mark] == [range(63) | "mark \(.)"]')" true

# ---- files
same block_is_private "$(stat -c %a:%s one/*.tnc)" 600:16384
begin slow -- prog_serve sleep:500 alloc:1
sleep 0.1
tenure ctl slow phase serving 2>early
same no_cuda_yet "$?" 3
wait $PID

# ---- wrong arguments
for arguments in '' 'one' 'one phase' 'one phase ready' 'one mark' 'one jump' '-w x one status' '999999999 phase serving' 'nowhere mark x'; do
    # shellcheck disable=SC2086
    tenure ctl $arguments >out 2>err
    same "refused: $arguments" "$?:$(wc -l <err | tr -d ' '):$(cat out)" 2:1:
done
tenure ctl $$ mark x 2>err
same a_process_that_does_not_record "$?" 2
finish
