#!/usr/bin/env bash
# The tests of the marks find planted bugs: each mutant is them with one line changed, and the named test fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
sources="serve/marks*.c tiers/work_mark.c"
folder=tests/serve
# shellcheck source=tests/tiers/mutants.sh
. tests/tiers/mutants.sh

begin test_marks test_marks_contexts test_marks_events test_marks_threads --

marks=serve/marks.c
mutant wait_covers_its_own_stamp $marks 's/return \*last >= covered;/return *last > covered;/' test_marks
mutant tick_not_moved $marks 's/if \(atomic_compare_exchange_weak\(m->tick, &there, now\)\) return now;.*/return now;/' test_marks
mutant tick_moved_back $marks 's/^    while \(there < now\)$/    while (there != now)/' test_marks
mutant mark_done_at_its_stamp $marks 's/return covered > mark\.sequence && \(uint32_t\)/return covered >= mark.sequence \&\& (uint32_t)/' test_marks
mutant later_work_alone_kept $marks 's/if \(atomic_load_explicit\(&p->last\[i\], memory_order_relaxed\) < stamp\) //' test_marks
mutant other_threads_work_dropped $marks 's/^    tn_marks_raise\(&p->last_of_others, stamp\);//' test_marks_threads
mutant every_context_covered $marks 's/^    if \(c\) tn_marks_raise\(&c->covered, begun\);/    tn_marks_raise(\&m->contexts[0].covered, begun);/' test_marks
mutant joins_not_waited_for $marks 's/for \(uint32_t i = 0; i < count; i\+\+\) tn_marks_cover\(m, pairs\[i\]\.stream.*//' test_marks_events
mutant unknown_contexts_streams_left_out $marks 's/if \(!key \|\| \(ctx && key >> 32\)\) continue;/if (!key || ctx) continue;/' test_marks
mutant fifth_stream_forgotten $marks 's/if \(count == TN_WORK_SET_MARKS\) return count \+ 1;/if (count == TN_WORK_SET_MARKS) return count;/' test_marks
mutant loose_work_forgotten $marks 's/\(ctx \? uncovered_loose\(m, ctx\) != 0 : is_any_loose\(m\)\)/0/' test_marks
mutant unknown_work_forgotten $marks 's/bool unknown = uncovered_loose\(m, 0\) != 0;/bool unknown = false;/' test_marks
mutant legacy_stream_is_as_others $marks 's/\(what & TN_MARKS_LEGACY\) \|\| //' test_marks
mutant legacy_work_not_looked_at $marks 's/tn_marks_greater\(tn_marks_last\(&m->places\[legacy - 1\]\), /(/' test_marks
mutant legacy_touch_not_looked_at $marks 's/, tn_marks_read\(&c->touched\)\) >= covered/, 0) >= covered/' test_marks_events
mutant crowd_not_looked_at $marks 's/ && atomic_load_explicit\(&m->crowded, memory_order_acquire\)/ \&\& 0/' test_marks_events
mutant settled_too_early $marks 's/if \(!is_all_covered\(m, ctx, mark\.sequence\)\) return false;//' test_marks
mutant settled_not_kept $marks 's/^    tn_marks_raise\(&c->settled, mark\.sequence\);//' test_marks
mutant settled_for_later_marks $marks 's/tn_marks_raise\(&c->settled, mark\.sequence\);/tn_marks_raise(\&c->settled, UINT64_MAX);/' test_marks
mutant ended_stream_never_done $marks 's/if \(tn_marks_read\(&e->stream\) != stream\) return false;/return false;/' test_marks
mutant order_after_ended_streams $marks 's/if \(uncovered_loose\(m, 0\) \|\| \(ctx == TN_MARKS_EVERYWHERE.*return false;//' test_marks
mutant order_after_later_work $marks 's/pairs\[i\]\.stream == stream && pairs\[i\]\.upto > mark\.sequence/pairs[i].stream == stream/' test_marks_events
mutant order_after_any_join $marks 's/pairs\[i\]\.stream == stream && pairs\[i\]\.upto > /pairs[i].upto > /' test_marks_events
mutant wait_not_told $marks 's/if \(error == TN_MEM_OK\) tn_marks_waited_context\(m, ctx, begun\);//' test_marks
mutant failed_wait_told $marks 's/if \(error == TN_MEM_OK\) tn_marks_waited_context/tn_marks_waited_context/' test_marks

events=serve/marks_events.c
mutant join_that_was_made_later $events 's/if \(j->pairs\[i\]\.since < begun\) out/out/' test_marks_events
mutant full_joins_keep_the_old $events 's/else if \(j->pairs\[i\]\.upto < oldest->upto\)/else if (j->pairs[i].upto > oldest->upto)/' test_marks_events
mutant record_during_a_record $events 's/e->flying\+\+ \|\| atomic_load\(&m->astray\) \? UINT64_MAX : /e->flying++ ? e->version + 1u : /' test_marks_events
mutant astray_record_not_looked_at $events 's/e->flying\+\+ \|\| atomic_load\(&m->astray\)/e->flying++/' test_marks_events
mutant old_record_kept_while_one_begins $events 's/^    e->count = 0;$//' test_marks_events
mutant overtaken_record_counts $events 's/!e->flying && answer == e->version && begun/begun/' test_marks_events
mutant record_without_its_beginning $events 's/answer == e->version && begun && stream/answer == e->version \&\& stream/' test_marks_events
mutant destroyed_event_kept $events 's/^        e->count = 0;$//; s/^        if \(!e->flying\) atomic_store.*$//' test_marks_events
mutant destroyed_event_leaves_while_recorded $events 's/^        if \(!e->flying\) atomic_store/        atomic_store/' test_marks_events
mutant wait_before_the_record $events 's/e->since < begun && /1 \&\& /' test_marks_events
mutant ended_events_count $events 's/ && !atomic_load\(&m->events_end\)\) \{/) {/' test_marks_events
mutant join_is_no_work $events 's/tn_marks_raise\(&j->joined, stamp\);//' test_marks_events
mutant join_with_another_context_is_none $events 's/if \(!count \|\| !is_of_its_context\(m, p, pairs\[0\]\.stream\)\) .*//' test_marks_events
mutant join_with_an_unknown_event_is_none $events 's/!count \|\| !is_of/count \&\& !is_of/' test_marks_events
mutant join_of_one_context_is_work $events 's/if \(!count \|\| !is_of_its_context\(m, p, pairs\[0\]\.stream\)\)//' test_marks_events
mutant join_is_not_seen $events 's/atomic_fetch_or_explicit\(&p->what, TN_MARKS_JOINED, memory_order_release\);//' test_marks_events
mutant join_of_an_ended_stream_forgotten serve/marks_places.c 's/last = tn_marks_last_in_order\(m, p\);/last = tn_marks_last(p);/' test_marks_events

mutant record_takes_no_joins_along $events 's/e->count = 1 \+ count;/e->count = 1;/' test_marks_events

places=serve/marks_places.c
mutant left_work_forgotten $places 's/if \(last >= covered\) tn_marks_loosen\(m, ctx, last\);//' test_marks
mutant joins_kept_by_the_next $places 's/atomic_store_explicit\(&j->count, 0, memory_order_relaxed\);//' test_marks_events
mutant cover_kept_by_the_next $places 's/store\(&p->covered, 1\);//' test_marks
mutant stream_not_taken_out $places 's/if \(atomic_load_explicit\(at, memory_order_relaxed\) == n \+ 1\) .*//' test_marks
mutant context_ends_with_work $places 's/if \(c\) tn_marks_raise\(&c->covered, UINT64_MAX\);//' test_marks_contexts
mutant ended_context_keeps_its_place $places 's/ \|\| tn_marks_read\(&there->covered\) == UINT64_MAX//' test_marks_contexts
mutant next_context_is_covered_for_good $places 's/^    atomic_store_explicit\(&c->covered, 0, memory_order_release\);//' test_marks_contexts

finish
