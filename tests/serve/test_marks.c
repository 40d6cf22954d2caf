/* What the marks say of work and waits: each rule of serve/marks.h. */
#include "marks_clock.h"

static tn_marks *m;

static void setup(void) { m = marks_new(0, 0, NULL, NULL); }
static void teardown(void) { tn_marks_destroy(&m); }

static void work(uint32_t stream)
{
    if (!tn_marks_knows(m, stream)) tn_marks_stream(m, 1, stream, TN_MARKS_NONBLOCKING);
    tn_marks_work(m, 1, stream, tick());
}

/* Work by ticks: only what waits moves them, so all work between two waits has one stamp. */
START_TEST(work_that_returns_after_a_wait_has_begun_is_not_covered_by_it)
{
    tn_marks *m = marks_new(0, 0, NULL, NULL);
    tn_marks_stream(m, 1, 1, 0);
    tn_marks_work(m, 1, 1, tn_marks_tick(&work_tick));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    uint64_t begun = tn_marks_begin(m, tick());
    tn_work_set before = uncovered(m, 1);
    tn_marks_work(m, 1, 1, tn_marks_tick(&work_tick));
    tn_marks_waited_stream(m, 1, begun);
    ck_assert(is_set_clean(m, before));
    ck_assert_uint_eq(uncovered(m, 1).count, 1); /* what came after the wait had begun */
    begun = tn_marks_begin(m, tick());
    tn_marks_waited_context(m, 1, begun);
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    /* A clock that is behind another core's: the stamp is not smaller than what others have read. */
    uint64_t other = tn_marks_begin(m, tick() + 1000);
    tn_marks_work(m, 1, 1, tn_marks_tick(&work_tick));
    ck_assert_uint_ge(tn_marks_begin(m, tick()), other);
    tn_marks_waited_stream(m, 1, tn_marks_begin(m, tick()));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_destroy(&m);
}
END_TEST

START_TEST(options_without_a_clock_or_with_too_many_streams_are_refused)
{
    tn_marks *other = NULL;
    tn_marks_options o = {0};
    ck_assert_int_eq(tn_marks_create(&o, &other), TN_MEM_E_ARGUMENT);
    o = (tn_marks_options){.now = tick, .streams = (1u << 20) + 1};
    ck_assert_int_eq(tn_marks_create(&o, &other), TN_MEM_E_ARGUMENT);
    o = (tn_marks_options){.now = tick, .events = (1u << 20) + 1};
    ck_assert_int_eq(tn_marks_create(&o, &other), TN_MEM_E_ARGUMENT);
    ck_assert_ptr_null(other);
    tn_marks_destroy(&other);
}
END_TEST

static size_t given, refused;
static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    ck_assert_ptr_eq(self, &given);
    if (new_bytes == 0) {
        given -= old_bytes;
        free(block);
        return NULL;
    }
    ck_assert_ptr_null(block);
    if (refused) return NULL;
    given += new_bytes;
    return memset(malloc(new_bytes), 0xee, new_bytes);
}

START_TEST(memory_comes_from_the_given_function_and_goes_back)
{
    tn_marks *other = NULL;
    tn_metadata metadata = {.resize = resize, .self = &given};
    tn_marks_options o = {.now = tick, .metadata = &metadata, .streams = 16, .events = 16};
    refused = 1;
    ck_assert_int_eq(tn_marks_create(&o, &other), TN_MEM_E_HOST_MEMORY);
    refused = 0;
    ck_assert_int_eq(tn_marks_create(&o, &other), TN_MEM_OK);
    ck_assert_uint_gt(given, 0);
    tn_marks_work(other, 1, 5, tick());
    tn_work_set set;
    tn_marks_uncovered(other, 1, &set);
    ck_assert_uint_eq(set.count, 1);
    tn_marks_destroy(&other);
    ck_assert_ptr_null(other);
    ck_assert_uint_eq(given, 0);
}
END_TEST

START_TEST(nothing_was_given_and_all_is_clean)
{
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    ck_assert_uint_eq(uncovered(m, 0).count, 0);
    tn_work_mark all = tn_marks_work_table(m, 1).table->all(m);
    ck_assert(is_done(m, all));
}
END_TEST

START_TEST(work_is_uncovered_until_a_wait_that_began_after_it)
{
    uint64_t before = tick();
    work(3);
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_stream(m, 3, before);
    ck_assert(!is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(a_wait_of_the_very_stamp_covers_nothing)
{
    tn_marks_stream(m, 1, 3, 0);
    uint64_t stamp = tick();
    tn_marks_work(m, 1, 3, stamp);
    tn_work_set set = uncovered(m, 1);
    tn_marks_waited_stream(m, 3, stamp);
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_context(m, 1, stamp);
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    ck_assert(!is_set_clean(m, set));
}
END_TEST

START_TEST(a_wait_for_one_stream_covers_no_other)
{
    work(3);
    work(4);
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 2);
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(!is_set_clean(m, set));
    set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    ck_assert(is_ordered(m, set.marks[0], 3));
}
END_TEST

START_TEST(a_context_wait_covers_its_streams_and_no_other_contexts)
{
    work(3);
    tn_marks_stream(m, 2, 4, 0);
    tn_marks_work(m, 2, 4, tick());
    tn_work_set one = uncovered(m, 1), two = uncovered(m, 2), both = uncovered(m, 0);
    ck_assert_uint_eq(one.count, 1);
    ck_assert_uint_eq(two.count, 1);
    ck_assert_uint_eq(both.count, 2);
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_set_clean(m, one));
    ck_assert(!is_set_clean(m, two));
    ck_assert(!is_set_clean(m, both));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    ck_assert_uint_eq(uncovered(m, 0).count, 1);
    tn_marks_waited_context(m, 0, tick());
    ck_assert(is_set_clean(m, both));
    ck_assert_uint_eq(uncovered(m, 0).count, 0);
}
END_TEST

START_TEST(an_older_wait_told_later_takes_nothing_back)
{
    uint64_t old = tick();
    work(3);
    tn_work_set set = uncovered(m, 1);
    tn_marks_waited_stream(m, 3, tick());
    tn_marks_waited_stream(m, 3, old);
    ck_assert(is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    work(3);
    set = uncovered(m, 1);
    tn_marks_waited_context(m, 1, tick());
    tn_marks_waited_context(m, 1, old);
    ck_assert(is_set_clean(m, set));
}
END_TEST

START_TEST(older_work_told_later_takes_nothing_back)
{
    tn_marks_stream(m, 1, 3, 0);
    uint64_t early = tick(), late = tick();
    tn_marks_work(m, 1, 3, late);
    tn_marks_work(m, 1, 3, early);
    tn_work_set set = uncovered(m, 1);
    tn_marks_waited_stream(m, 3, late);
    ck_assert(!is_set_clean(m, set));
}
END_TEST

START_TEST(a_busy_stream_keeps_no_block_unclean_for_good)
{
    for (uint32_t s = 3; s < 3 + 6; s++) work(s); /* one mark for all as well */
    tn_work_set many = uncovered(m, 1);
    ck_assert_uint_eq(many.count, 1);
    uint64_t begun = tick();
    for (int i = 0; i < 10; i++) work(3);
    ck_assert(!is_set_clean(m, many));
    tn_marks_waited_context(m, 1, begun);
    ck_assert(is_set_clean(m, many));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);

    tn_work_set one = uncovered(m, 1);
    begun = tick();
    work(3);
    tn_marks_waited_stream(m, 3, begun);
    ck_assert(is_set_clean(m, one));
}
END_TEST

START_TEST(more_streams_than_a_set_holds_are_one_mark_of_the_context)
{
    for (uint32_t s = 1; s <= 4; s++) work(s);
    ck_assert_uint_eq(uncovered(m, 1).count, 4);
    work(6);
    tn_marks_waited_stream(m, 6, tick());
    work(5);
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    for (uint32_t s = 1; s <= 4; s++) tn_marks_waited_stream(m, s, tick());
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_stream(m, 5, tick());
    ck_assert(is_set_clean(m, set));
    work(5); /* done stays done */
    work(6);
    ck_assert(is_set_clean(m, set));
    /* and a mark that is made later is not done by that */
    for (uint32_t s = 1; s <= 4; s++) work(s);
    ck_assert(!is_set_clean(m, uncovered(m, 1)));
}
END_TEST

START_TEST(the_mark_of_all_waits_for_every_context)
{
    work(3);
    tn_marks_stream(m, 2, 4, 0);
    tn_marks_work(m, 2, 4, tick());
    tn_work_mark mark = tn_marks_work_table(m, 1).table->all(m);
    tn_marks_waited_context(m, 1, tick());
    ck_assert(!is_done(m, mark));
    work(3); /* what comes later does not matter */
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(is_done(m, mark));
    ck_assert(!is_done(m, tn_marks_work_table(m, 1).table->all(m)));
}
END_TEST

START_TEST(work_of_an_unknown_stream_is_covered_by_context_waits_alone)
{
    tn_marks_work(m, 1, 0, tick());
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    work(3);
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(!is_set_clean(m, set));
    tn_work_mark mark = tn_marks_of_stream(m, 3); /* it may have been into this one */
    ck_assert(!is_done(m, mark));
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert(is_done(m, mark));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(work_of_an_unknown_context_is_covered_by_waits_for_every_one)
{
    tn_marks_work(m, 0, 0, tick());
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    work(3);
    tn_work_mark mark = tn_marks_of_stream(m, 3);
    tn_marks_waited_stream(m, 3, tick());
    tn_marks_waited_context(m, 1, tick());
    ck_assert(!is_set_clean(m, set));
    ck_assert(!is_done(m, mark));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    ck_assert_uint_eq(uncovered(m, 2).count, 1);
    tn_marks_waited_context(m, 0, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert(is_done(m, mark));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(a_stream_of_an_unknown_context_may_be_of_any)
{
    tn_marks_work(m, 0, 3, tick());
    tn_work_set set = uncovered(m, 1);
    ck_assert_uint_eq(set.count, 1);
    ck_assert_uint_eq(uncovered(m, 2).count, 1);
    tn_marks_waited_context(m, 1, tick());
    ck_assert(!is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(streams_beyond_the_places_are_covered_by_context_waits_alone)
{
    tn_marks *small = marks_new(4, 4, NULL, NULL);
    for (uint32_t s = 1; s <= 6; s++) tn_marks_work(small, 1, s, tick());
    ck_assert(tn_marks_knows(small, 4));
    ck_assert(!tn_marks_knows(small, 5));
    tn_work_mark five = tn_marks_of_stream(small, 5);
    ck_assert(!is_done(small, five));
    ck_assert(!is_ordered(small, five, 5)); /* the work may be an ended stream's, as far as is known */
    for (uint32_t s = 1; s <= 6; s++) tn_marks_waited_stream(small, s, tick());
    ck_assert(!is_done(small, five));
    tn_work_set set = uncovered(small, 1);
    ck_assert_uint_eq(set.count, 1);
    tn_marks_waited_context(small, 1, tick());
    ck_assert(is_set_clean(small, set));
    ck_assert(is_done(small, five));
    ck_assert_uint_eq(uncovered(small, 1).count, 0);
    tn_marks_destroy(&small);
}
END_TEST

START_TEST(what_an_ended_stream_has_left_is_covered_by_context_waits_alone)
{
    work(3);
    tn_work_set set = uncovered(m, 1);
    tn_marks_stream_ended(m, 3);
    ck_assert(!tn_marks_knows(m, 3));
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(!is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
}
END_TEST

START_TEST(marks_that_were_done_when_their_stream_ended_stay_so)
{
    work(3);
    tn_work_set set = uncovered(m, 1);
    tn_marks_waited_stream(m, 3, tick());
    work(3);
    tn_work_set late = uncovered(m, 1);
    tn_marks_stream_ended(m, 3);
    ck_assert(is_set_clean(m, set));
    ck_assert(!is_set_clean(m, late));
}
END_TEST

START_TEST(a_place_serves_one_stream_after_another_and_mixes_none_up)
{
    tn_marks *small = marks_new(4, 4, NULL, NULL);
    for (uint32_t s = 1; s <= 1000; s++) {
        tn_marks_work(small, 1, s, tick());
        ck_assert(tn_marks_knows(small, s));
        tn_work_mark mark = tn_marks_of_stream(small, s);
        ck_assert(!is_done(small, mark));
        if (s > 1) tn_marks_waited_stream(small, s - 1, tick());
        ck_assert(!is_done(small, mark));
        tn_marks_waited_stream(small, s, tick());
        ck_assert(is_done(small, mark));
        if (s % 2) tn_marks_stream_ended(small, s);
        else if (s > 2) tn_marks_stream_ended(small, s - 2);
    }
    ck_assert_uint_eq(uncovered(small, 1).count, 0);
    tn_marks_destroy(&small);
}
END_TEST

/* ---- blocks that are given back in the order of a stream */

START_TEST(a_stream_without_work_has_a_mark_of_no_work)
{
    tn_marks_stream(m, 1, 3, TN_MARKS_NONBLOCKING);
    work(4);
    ck_assert_uint_eq(tn_marks_of_stream(m, 3).queue, TN_WORK_NO_QUEUE);
}
END_TEST

START_TEST(of_a_stream_that_has_no_place_all_must_be_done)
{
    tn_work_mark nothing = tn_marks_of_stream(m, 9);
    ck_assert(is_done(m, nothing));
    work(4);
    tn_work_mark mark = tn_marks_of_stream(m, 9);
    ck_assert(!is_done(m, mark));
    ck_assert(is_ordered(m, mark, 9));
    ck_assert(!is_ordered(m, mark, 4));
    tn_marks_waited_stream(m, 4, tick());
    ck_assert(is_done(m, mark));
    ck_assert(!is_ordered(m, tn_marks_of_stream(m, 0), 0));
}
END_TEST

START_TEST(a_mark_is_ordered_before_its_own_stream_alone)
{
    work(3);
    work(4);
    tn_work_mark mark = tn_marks_of_stream(m, 3);
    ck_assert(!is_done(m, mark));
    ck_assert(is_ordered(m, mark, 3));
    ck_assert(!is_ordered(m, mark, 4));
    ck_assert(!is_ordered(m, mark, 5));
    ck_assert(!is_ordered(m, mark, TN_WORK_NO_QUEUE));
}
END_TEST

START_TEST(the_legacy_stream_comes_after_all_others_of_its_context)
{
    tn_marks_stream(m, 1, 1, TN_MARKS_LEGACY);
    tn_marks_stream(m, 1, 2, 0);
    tn_marks_work(m, 1, 2, tick());
    tn_marks_work(m, 1, 1, tick());
    tn_work_mark mark = tn_marks_of_stream(m, 1);
    ck_assert(is_ordered(m, mark, 1));
    ck_assert(!is_ordered(m, mark, 2));
    tn_marks_waited_stream(m, 1, tick());
    ck_assert(!is_done(m, mark)); /* stream 2 is not waited for, as far as is known */
    tn_marks_waited_stream(m, 2, tick());
    ck_assert(is_done(m, mark));
}
END_TEST

START_TEST(what_the_legacy_stream_comes_after_must_not_have_ended)
{
    tn_marks_stream(m, 1, 1, TN_MARKS_LEGACY);
    tn_marks_stream(m, 1, 2, 0);
    tn_marks_work(m, 1, 2, tick());
    tn_work_mark mark = tn_marks_of_stream(m, 1);
    ck_assert(is_ordered(m, mark, 1));
    tn_marks_stream_ended(m, 2);
    ck_assert(!is_ordered(m, mark, 1));
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_done(m, mark));
    ck_assert(is_ordered(m, tn_marks_of_stream(m, 1), 1));
}
END_TEST

START_TEST(a_blocking_stream_comes_after_the_legacy_one)
{
    tn_marks_stream(m, 1, 1, TN_MARKS_LEGACY);
    tn_marks_stream(m, 1, 2, 0);
    tn_marks_stream(m, 1, 3, TN_MARKS_NONBLOCKING);
    tn_marks_work(m, 1, 2, tick());
    tn_marks_work(m, 1, 3, tick());
    tn_work_mark alone = tn_marks_of_stream(m, 2);
    tn_marks_work(m, 1, 1, tick());
    tn_work_mark two = tn_marks_of_stream(m, 2), three = tn_marks_of_stream(m, 3);
    tn_marks_waited_stream(m, 2, tick());
    tn_marks_waited_stream(m, 3, tick());
    ck_assert(is_done(m, alone));
    ck_assert(!is_done(m, two));
    ck_assert(is_done(m, three));
    ck_assert(is_ordered(m, two, 2));
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_done(m, two));
}
END_TEST

/* ---- waiting */

static tn_mem_error answer;
static uint32_t waited[16];
static size_t waits;
static tn_mem_error wait_for(void *self, uint32_t ctx)
{
    ck_assert_ptr_eq(self, &answer);
    waited[waits++ % 16] = ctx;
    return answer;
}

START_TEST(a_wait_is_for_the_context_and_covers_what_was_there_before)
{
    tn_marks *w = marks_new(0, 0, wait_for, &answer);
    tn_work table = tn_marks_work_table(w, 1);
    tn_marks_stream(w, 2, 3, 0);
    tn_marks_work(w, 2, 3, tick());
    tn_work_set set = uncovered(w, 2);
    answer = TN_MEM_E_CAPTURING;
    ck_assert_int_eq(tn_work_set_wait(&set, &table), TN_MEM_E_CAPTURING);
    ck_assert(!is_set_clean(w, set));
    answer = TN_MEM_OK;
    ck_assert_int_eq(tn_work_set_wait(&set, &table), TN_MEM_OK);
    ck_assert_uint_eq(waits, 2);
    ck_assert_uint_eq(waited[1], 2);
    ck_assert_uint_eq(uncovered(w, 2).count, 0);

    tn_marks_work(w, 1, 4, tick());
    tn_work_mark all = table.table->all(table.self);
    ck_assert_int_eq(table.table->wait(table.self, all), TN_MEM_OK);
    ck_assert_uint_eq(waited[2], 0);
    ck_assert(is_done(w, all));
    ck_assert_uint_eq(uncovered(w, 0).count, 0);
    tn_marks_destroy(&w);
}
END_TEST

START_TEST(marks_without_a_wait_say_so)
{
    work(3);
    tn_work table = tn_marks_work_table(m, 1);
    ck_assert(tn_work_is_valid(&table));
    ck_assert_int_eq(table.table->wait(table.self, tn_marks_of_stream(m, 3)), TN_MEM_E_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks");
    TCase *t = tcase_create("marks");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, work_that_returns_after_a_wait_has_begun_is_not_covered_by_it);
    tcase_add_test(t, options_without_a_clock_or_with_too_many_streams_are_refused);
    tcase_add_test(t, memory_comes_from_the_given_function_and_goes_back);
    tcase_add_test(t, nothing_was_given_and_all_is_clean);
    tcase_add_test(t, work_is_uncovered_until_a_wait_that_began_after_it);
    tcase_add_test(t, a_wait_of_the_very_stamp_covers_nothing);
    tcase_add_test(t, a_wait_for_one_stream_covers_no_other);
    tcase_add_test(t, a_context_wait_covers_its_streams_and_no_other_contexts);
    tcase_add_test(t, an_older_wait_told_later_takes_nothing_back);
    tcase_add_test(t, older_work_told_later_takes_nothing_back);
    tcase_add_test(t, a_busy_stream_keeps_no_block_unclean_for_good);
    tcase_add_test(t, more_streams_than_a_set_holds_are_one_mark_of_the_context);
    tcase_add_test(t, the_mark_of_all_waits_for_every_context);
    tcase_add_test(t, work_of_an_unknown_stream_is_covered_by_context_waits_alone);
    tcase_add_test(t, work_of_an_unknown_context_is_covered_by_waits_for_every_one);
    tcase_add_test(t, a_stream_of_an_unknown_context_may_be_of_any);
    tcase_add_test(t, streams_beyond_the_places_are_covered_by_context_waits_alone);
    tcase_add_test(t, what_an_ended_stream_has_left_is_covered_by_context_waits_alone);
    tcase_add_test(t, marks_that_were_done_when_their_stream_ended_stay_so);
    tcase_add_test(t, a_place_serves_one_stream_after_another_and_mixes_none_up);
    tcase_add_test(t, a_stream_without_work_has_a_mark_of_no_work);
    tcase_add_test(t, of_a_stream_that_has_no_place_all_must_be_done);
    tcase_add_test(t, a_mark_is_ordered_before_its_own_stream_alone);
    tcase_add_test(t, the_legacy_stream_comes_after_all_others_of_its_context);
    tcase_add_test(t, what_the_legacy_stream_comes_after_must_not_have_ended);
    tcase_add_test(t, a_blocking_stream_comes_after_the_legacy_one);
    tcase_add_test(t, a_wait_is_for_the_context_and_covers_what_was_there_before);
    tcase_add_test(t, marks_without_a_wait_say_so);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
