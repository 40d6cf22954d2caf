#!/bin/sh
# Eight threads at once: what the journal and the report count is what the fake card counted itself.
# shellcheck source=tests/shim/lib.sh
. "$1"
PAIRS=20000

native threads.native "$BIN/prog_threads" $PAIRS
same natively "$rc:$(cat threads.native.out)" '0:8 threads, 0 errors'
FAKEGPU_STATS=$WORK/stats.json
export FAKEGPU_STATS
recorded threads.record run "$BIN/prog_threads" $PAIRS
unset FAKEGPU_STATS
same_output output threads.native threads.record
empty nothing_to_say "$(cat threads.tenure 2>/dev/null; cat threads.record.tenure)"

card() { "$BIN/report_value" stats.json devices 0 "$1"; }
sum=$(totals run)
echo "threads: $sum"
same allocations "$(field "$sum" allocs)" "$(card allocs)"
same allocations_are_the_programs "$(card allocs)" $((8 * PAIRS))
same frees "$(field "$sum" frees)" "$(card frees)"
same nothing_lives "$(field "$sum" live_bytes) $(card live_requested_bytes)" '0 0'
same calls "$(field "$sum" alloc_calls) $(field "$sum" free_calls)" "$(field "$sum" allocs) $(field "$sum" frees)"
same nothing_lost "$(field "$sum" dropped) $(field "$sum" dropped_records) $(field "$sum" damaged) $(field "$sum" no_site) $(field "$sum" no_stack)" '0 0 0 0 0'
# A thread's number is given to a later one when it ends: the main thread frees last.
at_least threads_at_once_have_numbers_of_their_own "$(field "$sum" threads)" 4
at_least numbers_are_given_again 9 "$(field "$sum" threads)"

"$BIN/tenure" report --json run >report.json
same report $? 0
device() { "$BIN/report_value" report.json devices 0 "$1"; }
for key in allocs frees live_requested_bytes live_backed_bytes; do
    same "report_$key" "$(device $key)" "$(card $key)"
done
# The journal's order is the stamps': between an allocation's return and its stamp another thread's free can come, so the peak is the card's
# to within what eight threads have in their hands.
peak=$(card peak_requested_bytes) seen=$(device peak_requested_bytes)
at_least report_peak_is_near_from_below $((seen + 8 * 3100)) "$peak"
at_least report_peak_is_near_from_above $((peak + 8 * 3100)) "$seen"
finish
