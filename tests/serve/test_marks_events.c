/* What the marks say of events and joins: each rule of serve/marks.h. */
#include "marks_clock.h"

static tn_marks *m;

static void setup(void) { m = marks_new(0, 0, NULL, NULL); }
static void teardown(void) { tn_marks_destroy(&m); }

static tn_work_mark work(uint32_t stream)
{
    if (!tn_marks_knows(m, stream)) tn_marks_stream(m, 1, stream, TN_MARKS_NONBLOCKING);
    tn_marks_work(m, 1, stream, tick());
    return tn_marks_of_stream(m, stream);
}

static void wait_event(uint64_t event) { tn_marks_waited_event(m, event, tick()); }

enum { E = 0x7000, F = 0x7040 };

START_TEST(a_wait_for_an_event_covers_what_its_stream_had_at_the_record)
{
    tn_work_mark before = work(3), other = work(4);
    record(m, E, 3);
    tn_work_mark after = work(3);
    wait_event(E);
    ck_assert(is_done(m, before));
    ck_assert(!is_done(m, after));
    ck_assert(!is_done(m, other));
}
END_TEST

START_TEST(an_event_that_was_not_recorded_covers_nothing)
{
    tn_work_mark mark = work(3);
    wait_event(E);
    wait_event(0);
    record(m, E, 3);
    wait_event(F);
    ck_assert(!is_done(m, mark));
}
END_TEST

START_TEST(a_later_record_takes_the_place_of_the_earlier)
{
    tn_work_mark first = work(3);
    record(m, E, 3);
    tn_work_mark second = work(4);
    record(m, E, 4);
    wait_event(E);
    ck_assert(!is_done(m, first));
    ck_assert(is_done(m, second));
}
END_TEST

START_TEST(a_record_in_no_stream_counts_for_nothing)
{
    tn_work_mark mark = work(3);
    record(m, E, 3);
    record(m, E, 0);
    wait_event(E);
    ck_assert(!is_done(m, mark));
}
END_TEST

START_TEST(a_wait_that_began_before_the_record_ended_covers_nothing)
{
    tn_work_mark mark = work(3);
    uint64_t answer = tn_marks_event_begins(m, E), begun = tick(), waiting = tick();
    tn_marks_event_recorded(m, E, answer, 3, begun, tick());
    tn_marks_waited_event(m, E, waiting);
    ck_assert(!is_done(m, mark));
    uint64_t recorded = tick();
    answer = tn_marks_event_begins(m, E);
    begun = tick();
    tn_marks_event_recorded(m, E, answer, 3, begun, recorded = tick());
    tn_marks_waited_event(m, E, recorded); /* of the very stamp */
    ck_assert(!is_done(m, mark));
    wait_event(E);
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(while_a_record_is_under_way_its_event_covers_nothing)
{
    tn_work_mark mark = work(3);
    record(m, E, 3);
    uint64_t answer = tn_marks_event_begins(m, E);
    wait_event(E);
    ck_assert(!is_done(m, mark));
    tn_marks_event_lost(m, E, answer);
    wait_event(E); /* which record it has now is not known */
    ck_assert(!is_done(m, mark));
    record(m, E, 3);
    wait_event(E);
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(of_two_records_at_once_neither_counts)
{
    tn_work_mark three = work(3), four = work(4);
    for (int order = 0; order < 2; order++) {
        uint64_t one = tn_marks_event_begins(m, E), two = tn_marks_event_begins(m, E), begun = tick();
        tn_marks_event_recorded(m, E, order ? two : one, order ? 4 : 3, begun, tick());
        wait_event(E);
        tn_marks_event_recorded(m, E, order ? one : two, order ? 3 : 4, begun, tick());
        wait_event(E);
        ck_assert(!is_done(m, three));
        ck_assert(!is_done(m, four));
    }
    record(m, E, 4);
    wait_event(E);
    ck_assert(is_done(m, four));
}
END_TEST

START_TEST(a_record_without_its_beginning_counts_for_nothing)
{
    tn_work_mark mark = work(3);
    uint64_t answer = tn_marks_event_begins(m, E);
    tn_marks_event_recorded(m, E, answer, 3, 0, tick());
    wait_event(E);
    ck_assert(!is_done(m, mark));
    tn_marks_stream(m, 1, 4, TN_MARKS_NONBLOCKING);
    join(m, 1, 4, E);
    ck_assert(!is_done(m, tn_marks_of_stream(m, 4)));
}
END_TEST

START_TEST(a_destroyed_event_covers_nothing_under_its_old_handle)
{
    tn_work_mark mark = work(3);
    record(m, E, 3);
    tn_marks_event_destroyed(m, E);
    tn_marks_event_destroyed(m, F);
    wait_event(E);
    ck_assert(!is_done(m, mark));
    record(m, E, 3);
    wait_event(E);
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(an_event_destroyed_while_it_is_recorded_counts_for_nothing)
{
    tn_work_mark mark = work(3), four = work(4);
    uint64_t one = tn_marks_event_begins(m, E);
    tn_marks_event_destroyed(m, E);
    uint64_t two = tn_marks_event_begins(m, E), begun = tick();
    tn_marks_event_recorded(m, E, two, 4, begun, tick());
    wait_event(E);
    tn_marks_event_recorded(m, E, one, 3, begun, tick());
    wait_event(E);
    ck_assert(!is_done(m, mark));
    ck_assert(!is_done(m, four));
    record(m, E, 3);
    wait_event(E);
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(events_beyond_the_places_cover_nothing_and_destroyed_ones_make_room)
{
    tn_marks_destroy(&m);
    m = marks_new(8, 8, NULL, NULL);
    tn_work_mark mark = work(3);
    for (uint64_t i = 1; i <= 1000; i++) record(m, i << 6, 3);
    size_t covered = 0;
    for (uint64_t i = 1; i <= 1000; i++) {
        wait_event(i << 6);
        covered += is_done(m, mark);
        tn_marks_event_destroyed(m, i << 6);
        if (is_done(m, mark)) mark = work(3);
    }
    ck_assert_uint_le(covered, 16);
    for (uint64_t i = 2000; i < 3000; i++) {
        mark = work(3);
        record(m, i << 6, 3);
        wait_event(i << 6);
        ck_assert(is_done(m, mark));
        tn_marks_event_destroyed(m, i << 6);
    }
}
END_TEST

START_TEST(an_event_without_a_place_keeps_others_from_counting_only_while_it_is_recorded)
{
    tn_marks_destroy(&m);
    m = marks_new(8, 1, NULL, NULL); /* two places */
    record(m, 0x40, 3);
    record(m, 0x80, 3);
    tn_work_mark mark = work(3);
    uint64_t astray = tn_marks_event_begins(m, E);
    ck_assert_uint_eq(astray, 0);
    record(m, 0x40, 3);
    wait_event(0x40);
    ck_assert(!is_done(m, mark));
    tn_marks_event_recorded(m, E, astray, 3, tick(), tick());
    wait_event(E);
    ck_assert(!is_done(m, mark));
    record(m, 0x40, 3);
    wait_event(0x40);
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(when_events_have_ended_none_covers_anything)
{
    tn_work_mark mark = work(3);
    record(m, E, 3);
    tn_marks_events_end(m);
    wait_event(E);
    record(m, F, 3);
    wait_event(F);
    join(m, 1, 4, F);
    ck_assert(!is_done(m, mark));
    ck_assert(!is_ordered(m, mark, 4));
}
END_TEST

/* ---- joins */

START_TEST(a_stream_that_has_joined_comes_after_what_the_event_covers)
{
    tn_work_mark before = work(3);
    record(m, E, 3);
    tn_work_mark after = work(3);
    ck_assert(!is_ordered(m, before, 4));
    join(m, 1, 4, E);
    ck_assert(is_ordered(m, before, 4));
    ck_assert(!is_ordered(m, after, 4));
    ck_assert(!is_ordered(m, before, 5));
    ck_assert(!is_done(m, before));
}
END_TEST

START_TEST(a_join_before_the_record_had_ended_orders_nothing)
{
    tn_work_mark mark = work(3);
    uint64_t answer = tn_marks_event_begins(m, E), begun = tick(), joining = tick();
    tn_marks_event_recorded(m, E, answer, 3, begun, tick());
    tn_marks_joined(m, 1, 4, E, joining, tick());
    ck_assert(!is_ordered(m, mark, 4));
    join(m, 1, 4, E);
    ck_assert(is_ordered(m, mark, 4));
}
END_TEST

START_TEST(a_join_is_work_in_the_order_of_its_stream)
{
    tn_work_mark four = work(4);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(is_done(m, four));
    work(3);
    record(m, E, 3);
    join(m, 1, 4, E);
    four = tn_marks_of_stream(m, 4); /* a block that stream 3 uses may be given back here */
    ck_assert(!is_done(m, four));
    ck_assert_uint_eq(uncovered(m, 1).count, 1); /* that of stream 3 */
    tn_marks_stream(m, 1, 5, TN_MARKS_NONBLOCKING);
    join(m, 1, 5, F); /* also when nothing is known of the event */
    ck_assert(!is_done(m, tn_marks_of_stream(m, 5)));
}
END_TEST

/* Copies on 3 that 4 waits for; 3 waits for 4 in turn, before it may write again; then 4 is waited for. */
START_TEST(a_join_keeps_no_plain_block_unclean)
{
    work(3);
    record(m, E, 3);
    join(m, 1, 4, E);
    work(4);
    record(m, F, 4);
    work(4);
    join(m, 1, 3, F);
    ck_assert_uint_eq(uncovered(m, 1).count, 2);
    tn_work_mark three = tn_marks_of_stream(m, 3);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    ck_assert(!is_done(m, three)); /* nobody has waited for 3 to come so far */
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(is_done(m, three));
}
END_TEST

/* The free of a plain block waits for its own context, which waits for the other one's work: that may use the block, by peer access. */
START_TEST(a_join_with_another_context_is_work_for_plain_blocks_too)
{
    tn_marks_stream(m, 2, 6, TN_MARKS_NONBLOCKING);
    tn_marks_work(m, 2, 6, tick());
    record(m, E, 6);
    join(m, 1, 4, E);
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    ck_assert_uint_eq(uncovered(m, 2).count, 0);
    join(m, 1, 4, F); /* nothing is known of it */
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
}
END_TEST

START_TEST(a_stream_that_ends_behind_a_join_leaves_that)
{
    work(3);
    record(m, E, 3);
    tn_marks_stream(m, 1, 4, TN_MARKS_NONBLOCKING);
    join(m, 1, 4, E);
    tn_work_mark four = tn_marks_of_stream(m, 4);
    tn_marks_stream_ended(m, 4);
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(!is_done(m, four));
    ck_assert_uint_eq(uncovered(m, 1).count, 1); /* of the context */
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_done(m, four));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(a_join_with_what_is_done_is_no_work)
{
    work(3);
    record(m, E, 3);
    tn_marks_waited_stream(m, 3, tick());
    tn_marks_stream(m, 1, 4, TN_MARKS_NONBLOCKING);
    join(m, 1, 4, E);
    ck_assert_uint_eq(tn_marks_of_stream(m, 4).queue, TN_WORK_NO_QUEUE);
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(a_wait_for_a_stream_covers_what_it_had_joined_before)
{
    tn_work_mark three = work(3);
    record(m, E, 3);
    uint64_t before = tick();
    join(m, 1, 4, E);
    tn_marks_waited_stream(m, 4, before);
    ck_assert(!is_done(m, three));
    tn_work_mark later = work(3);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(is_done(m, three));
    ck_assert(!is_done(m, later));
}
END_TEST

START_TEST(an_event_takes_along_what_its_stream_had_joined_before)
{
    tn_work_mark three = work(3);
    record(m, E, 3);
    uint64_t answer = tn_marks_event_begins(m, F), begun = tick();
    join(m, 1, 4, E); /* while it is recorded: it may have come later */
    tn_marks_event_recorded(m, F, answer, 4, begun, tick());
    join(m, 1, 5, F);
    ck_assert(!is_ordered(m, three, 5));
    record(m, F, 4);
    join(m, 1, 5, F);
    ck_assert(is_ordered(m, three, 5));
    wait_event(F);
    ck_assert(is_done(m, three));
}
END_TEST

START_TEST(a_join_that_finds_no_room_is_forgotten_and_the_oldest_goes)
{
    tn_work_mark marks[32];
    for (uint32_t s = 0; s < 32; s++) {
        marks[s] = work(100 + s);
        record(m, 0x9000 + 64 * s, 100 + s);
        join(m, 1, 4, 0x9000 + 64 * s);
        ck_assert(is_ordered(m, marks[s], 4));
    }
    unsigned count = 0;
    for (uint32_t s = 0; s < 32; s++) count += is_ordered(m, marks[s], 4);
    ck_assert_uint_eq(count, 8);
    /* what is done makes room first */
    tn_marks_waited_stream(m, 131, tick());
    work(99);
    record(m, E, 99);
    join(m, 1, 4, E);
    for (uint32_t s = 24; s < 31; s++) ck_assert(is_ordered(m, marks[s], 4));
}
END_TEST

START_TEST(a_record_or_a_join_in_the_legacy_stream_is_what_others_come_after)
{
    tn_marks_stream(m, 1, 1, TN_MARKS_LEGACY);
    tn_marks_stream(m, 1, 2, 0);
    tn_marks_stream(m, 1, 5, 0);
    record(m, F, 2);
    for (int with = 0; with < 2; with++) {
        tn_marks_waited_context(m, 1, tick());
        record(m, F, 2);
        tn_marks_waited_stream(m, 2, tick());
        tn_marks_work(m, 1, 5, tick()); /* the legacy stream waits for it, and stream 2 for that: so this block may be given back in stream 2 */
        if (with) join(m, 1, 1, F);
        else record(m, E, 1);
        tn_work_mark mark = tn_marks_of_stream(m, 2);
        ck_assert(!is_done(m, mark));
        tn_marks_waited_stream(m, 2, tick());
        ck_assert(!is_done(m, mark));
        tn_marks_waited_stream(m, 5, tick());
        ck_assert(is_done(m, mark));
    }
    tn_marks_waited_stream(m, 1, tick());
    ck_assert_uint_eq(tn_marks_of_stream(m, 2).queue, TN_WORK_NO_QUEUE);
}
END_TEST

START_TEST(so_is_one_in_a_legacy_stream_that_found_no_place)
{
    tn_marks_destroy(&m);
    m = marks_new(2, 8, NULL, NULL);
    tn_marks_stream(m, 1, 2, 0);
    tn_marks_stream(m, 1, 5, 0);
    tn_marks_stream(m, 1, 1, TN_MARKS_LEGACY);
    ck_assert(!tn_marks_knows(m, 1));
    tn_marks_work(m, 1, 5, tick());
    record(m, E, 1);
    tn_work_mark mark = tn_marks_of_stream(m, 2);
    tn_marks_waited_stream(m, 2, tick());
    ck_assert(!is_done(m, mark));
    tn_marks_waited_stream(m, 5, tick());
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(a_join_of_a_whole_context_is_work_of_each_of_its_streams)
{
    tn_work_mark four = work(4);
    tn_marks_waited_stream(m, 4, tick());
    work(3);
    record(m, E, 3);
    join(m, 1, 0, E);
    ck_assert(is_done(m, four));
    four = tn_marks_of_stream(m, 4);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(!is_done(m, four));
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_done(m, four));
}
END_TEST

START_TEST(the_legacy_stream_is_a_barrier_where_others_wait_for_it)
{
    tn_marks_stream(m, 1, 10, TN_MARKS_LEGACY);
    tn_marks_stream(m, 1, 11, TN_MARKS_NONBLOCKING);
    tn_marks_stream(m, 2, 12, 0);
    ck_assert(!tn_marks_is_barrier(m, 10));
    ck_assert(!tn_marks_is_barrier(m, 99));
    tn_marks_stream(m, 1, 13, 0);
    ck_assert(tn_marks_is_barrier(m, 10));
    ck_assert(!tn_marks_is_barrier(m, 11));
    ck_assert(!tn_marks_is_barrier(m, 13));
    tn_marks_stream_ended(m, 13);
    ck_assert(!tn_marks_is_barrier(m, 10));
    tn_marks_stream(m, 0, 14, 0); /* it may be of any context */
    ck_assert(tn_marks_is_barrier(m, 10));
}
END_TEST

START_TEST(a_mark_of_a_stream_alone_is_done_by_a_wait_for_it)
{
    tn_marks_stream(m, 1, 10, TN_MARKS_LEGACY);
    tn_marks_work(m, 1, 10, tick());
    tn_marks_stream(m, 1, 13, 0);
    tn_marks_work(m, 1, 13, tick());
    tn_work_mark wide = tn_marks_of_stream(m, 13), alone = tn_marks_alone(m, wide);
    ck_assert(!is_done(m, alone));
    tn_marks_waited_stream(m, 13, tick());
    ck_assert(is_done(m, alone));
    ck_assert(!is_done(m, wide));
    ck_assert(is_done(m, tn_marks_alone(m, (tn_work_mark){0})));
}
END_TEST

START_TEST(a_place_that_changes_hands_keeps_no_join)
{
    tn_marks_destroy(&m);
    m = marks_new(2, 8, NULL, NULL);
    tn_work_mark three = work(3);
    record(m, E, 3);
    join(m, 1, 4, E);
    ck_assert(is_ordered(m, three, 4));
    tn_marks_stream_ended(m, 4);
    ck_assert(!is_ordered(m, three, 4));
    work(5);
    ck_assert(!is_ordered(m, three, 5));
    tn_marks_waited_stream(m, 5, tick());
    ck_assert(!is_done(m, three));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks_events");
    TCase *t = tcase_create("marks_events");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_wait_for_an_event_covers_what_its_stream_had_at_the_record);
    tcase_add_test(t, an_event_that_was_not_recorded_covers_nothing);
    tcase_add_test(t, a_later_record_takes_the_place_of_the_earlier);
    tcase_add_test(t, a_record_in_no_stream_counts_for_nothing);
    tcase_add_test(t, a_wait_that_began_before_the_record_ended_covers_nothing);
    tcase_add_test(t, while_a_record_is_under_way_its_event_covers_nothing);
    tcase_add_test(t, of_two_records_at_once_neither_counts);
    tcase_add_test(t, a_record_without_its_beginning_counts_for_nothing);
    tcase_add_test(t, a_destroyed_event_covers_nothing_under_its_old_handle);
    tcase_add_test(t, an_event_destroyed_while_it_is_recorded_counts_for_nothing);
    tcase_add_test(t, events_beyond_the_places_cover_nothing_and_destroyed_ones_make_room);
    tcase_add_test(t, an_event_without_a_place_keeps_others_from_counting_only_while_it_is_recorded);
    tcase_add_test(t, when_events_have_ended_none_covers_anything);
    tcase_add_test(t, a_stream_that_has_joined_comes_after_what_the_event_covers);
    tcase_add_test(t, a_join_before_the_record_had_ended_orders_nothing);
    tcase_add_test(t, a_join_is_work_in_the_order_of_its_stream);
    tcase_add_test(t, a_join_keeps_no_plain_block_unclean);
    tcase_add_test(t, a_join_with_another_context_is_work_for_plain_blocks_too);
    tcase_add_test(t, a_stream_that_ends_behind_a_join_leaves_that);
    tcase_add_test(t, a_join_with_what_is_done_is_no_work);
    tcase_add_test(t, a_wait_for_a_stream_covers_what_it_had_joined_before);
    tcase_add_test(t, an_event_takes_along_what_its_stream_had_joined_before);
    tcase_add_test(t, a_join_that_finds_no_room_is_forgotten_and_the_oldest_goes);
    tcase_add_test(t, a_record_or_a_join_in_the_legacy_stream_is_what_others_come_after);
    tcase_add_test(t, so_is_one_in_a_legacy_stream_that_found_no_place);
    tcase_add_test(t, a_join_of_a_whole_context_is_work_of_each_of_its_streams);
    tcase_add_test(t, the_legacy_stream_is_a_barrier_where_others_wait_for_it);
    tcase_add_test(t, a_mark_of_a_stream_alone_is_done_by_a_wait_for_it);
    tcase_add_test(t, a_place_that_changes_hands_keeps_no_join);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
