#!/bin/sh
# CUDA calls from a signal handler that interrupts a hook, errno around every call, and longjmp out of a call.
# shellcheck source=tests/shim/lib.sh
. "$1"
DRIVER=$MINI:$LIB

native timer.native timeout 60 "$BIN/prog_signal" timer
same timer_natively "$rc:$(cat timer.native.out)" '0:wrong results 0, wrong errno 0'
recorded timer.record run.timer timeout 60 "$BIN/prog_signal" timer
counted=$(cat timer.record.err)
: >timer.native.err
: >timer.record.err
same_output a_handlers_calls_neither_hang_nor_change_errno timer.native timer.record
sum=$(totals run.timer)
echo "timer: $counted; $sum"
# The handler's own calls are known by their size: 77 bytes. Those that came inside a hook have no stack, the others have one.
"$BIN/journal_info" --sites run.timer | grep '^77 ' >handlers
at_least calls_inside_a_hook_have_no_stack "$(grep -c no_stack handlers)" 20
at_least calls_outside_have_one "$(grep -vc no_stack handlers)" 1
same nobody_elses_call_lacks_its_stack "$("$BIN/journal_info" --sites run.timer | grep '^[0-9]' | grep -v '^77 \|^1152921504606846976 ' | grep -cE 'no_stack|none')" 0
made=$(($(field "$counted" allocations) + $(field "$counted" frees)))
lost=$((made - $(field "$sum" allocs) - $(field "$sum" frees)))
at_least every_event_is_there_or_counted_as_dropped "$(field "$sum" dropped)" $lost
at_least no_event_was_made_up $lost 0
at_least few_are_dropped $((made / 500)) "$(field "$sum" dropped)"
# A call that comes while its thread gets its counters is counted as dropped.
calls=$(($(field "$counted" allocations) + $(field "$counted" ticks)))
at_least calls_are_all_counted $(($(field "$sum" alloc_calls) + 8)) $calls
at_least and_none_twice $calls "$(field "$sum" alloc_calls)"

# 20 times, since what may go wrong needs a tick within some microseconds.
native first.native timeout 60 "$BIN/prog_first"
same first_calls_natively "$rc:$(cat first.native.out)" '0:wrong results 0'
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    recorded first.record "run.first.$i" timeout 20 "$BIN/prog_first"
    cmp -s first.native.out first.record.out || break
done
same_output a_handler_and_its_thread_look_for_the_driver_at_once first.native first.record

native closing.native timeout 60 "$BIN/prog_closing" "$LIB/libplug.so"
if [ "$rc" = 77 ]; then
    skip a_handler_in_a_dlclose "not on this architecture"
else
    same a_handler_in_a_dlclose_natively "$rc:$(cat closing.native.out)" '0:traps 1, refused 0'
    recorded closing.record run.closing timeout 60 "$BIN/prog_closing" "$LIB/libplug.so"
    same_output a_handler_in_a_dlclose closing.native closing.record
fi

native jump.native "$BIN/prog_signal" jump
same jump_natively "$rc:$(cat jump.native.out)" '0:jumped 5 times, allocations 18'
recorded jump.record run.jump "$BIN/prog_signal" jump
same_output jumps_out_of_the_driver jump.native jump.record
"$BIN/journal_info" --sites run.jump >sites
for hundred in 1 2 3; do
    same one_site_before_and_after_jumps_$hundred "$(grep -c "^${hundred}0[1-6] " sites) $(sed -n "s/^${hundred}0[1-6] //p" sites | sort -u | grep -vc no)" '6 1'
done
same three_sites_in_all "$(sed -n 's/^[123]0[1-6] //p' sites | sort -u | grep -c .)" 3

DRIVER=$LIB
export FAKEGPU_ALLOC_US=50000
native jump2.native timeout 60 "$BIN/prog_jump"
same jump_out_of_the_runtime_natively "$rc:$(cat jump2.native.out)" '0:jumped 2 times'
recorded jump2.record run.jump2 timeout 60 "$BIN/prog_jump"
same_output jumps_out_of_the_runtime jump2.native jump2.record
"$BIN/journal_info" --sites run.jump2 >sites
same driver_calls_after_them_keep_their_site "$(grep -c '^10[123] ' sites) $(sed -n 's/^10[123] //p' sites | sort -u | grep -vc no)" '3 1'
same runtime_calls_too "$(grep -c '^21[123] ' sites) $(sed -n 's/^21[123] //p' sites | sort -u | grep -vc no)" '3 1'
finish
