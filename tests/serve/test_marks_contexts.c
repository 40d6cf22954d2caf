/* What the marks say of contexts that come and go: how many there have been does not matter, how many there are at once does, and only makes answers late. */
#include "marks_clock.h"

static tn_marks *m;

static void setup(void) { m = marks_new(0, 0, NULL, NULL); }
static void teardown(void) { tn_marks_destroy(&m); }

static void work(uint32_t stream)
{
    if (!tn_marks_knows(m, stream)) tn_marks_stream(m, 1, stream, TN_MARKS_NONBLOCKING);
    tn_marks_work(m, 1, stream, tick());
}

START_TEST(the_work_of_an_ended_context_is_done)
{
    work(3);
    tn_marks_work(m, 1, 0, tick());
    tn_marks_stream(m, 2, 4, 0);
    tn_marks_work(m, 2, 4, tick());
    tn_work_set one = uncovered(m, 1), all = uncovered(m, 0);
    tn_marks_context_ended(m, 1);
    ck_assert(is_set_clean(m, one));
    ck_assert(!is_set_clean(m, all));
    ck_assert_uint_eq(uncovered(m, 1).count, 0);
    ck_assert_uint_eq(uncovered(m, 0).count, 1);
    ck_assert(!tn_marks_knows(m, 3));
    ck_assert(tn_marks_knows(m, 4));
    tn_marks_context_ended(m, 0);
    ck_assert_uint_eq(uncovered(m, 0).count, 1);
}
END_TEST

START_TEST(contexts_that_have_ended_make_room_for_others)
{
    work(3);
    tn_work_set one = uncovered(m, 1), ended[64];
    for (uint32_t c = 2; c < 5000; c++) {
        uint32_t stream = 10 + c;
        ck_assert_uint_eq(uncovered(m, c).count, 0);
        tn_marks_stream(m, c, stream, TN_MARKS_NONBLOCKING);
        tn_marks_work(m, c, stream, tick());
        tn_work_set set = uncovered(m, c);
        ck_assert_uint_eq(set.count, 1);
        ck_assert(!is_set_clean(m, set));
        if (c % 2) {
            tn_marks_waited_context(m, c, tick());
            ck_assert(is_set_clean(m, set));
            ck_assert_uint_eq(uncovered(m, c).count, 0);
            tn_marks_work(m, c, 0, tick());
            set = uncovered(m, c);
            ck_assert(!is_set_clean(m, set));
        }
        ck_assert_uint_eq(uncovered(m, 0).count, c % 2 ? 1 : 2);
        tn_marks_context_ended(m, c);
        ended[c % 64] = set;
        for (uint32_t i = c < 65 ? 2 : 0; i < (c < 65 ? c : 64); i++) ck_assert(is_set_clean(m, ended[i]));
        ck_assert(!is_set_clean(m, one));
        ck_assert_uint_eq(uncovered(m, 0).count, 1);
    }
    tn_marks_waited_context(m, 1, tick());
    ck_assert(is_set_clean(m, one));
    ck_assert_uint_eq(uncovered(m, 0).count, 0);
}
END_TEST

START_TEST(a_context_that_finds_no_place_is_an_unknown_one)
{
    for (uint32_t c = 1; c < 1024; c++) {
        tn_marks_work(m, c, 0, tick());
        tn_marks_waited_context(m, c, tick());
    }
    ck_assert_uint_eq(uncovered(m, 0).count, 0);
    tn_marks_work(m, 100000, 3, tick());
    tn_marks_work(m, 100001, 0, tick());
    ck_assert_uint_eq(uncovered(m, 1).count, 1);
    tn_marks_waited_context(m, 100000, tick());
    tn_marks_waited_context(m, 100001, tick());
    tn_work_set set = uncovered(m, 100000);
    ck_assert_uint_eq(set.count, 1);
    tn_marks_context_ended(m, 100000);
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_context(m, 0, tick());
    ck_assert(is_set_clean(m, set));
    ck_assert_uint_eq(uncovered(m, 0).count, 0);
}
END_TEST

/* More than a set has room for, so that one mark stands for all of them. */
START_TEST(many_streams_of_a_context_that_finds_no_place_are_not_done_before_a_wait)
{
    for (uint32_t c = 1; c <= 8; c++) tn_marks_work(m, c, c, tick());
    for (uint32_t i = 0; i <= TN_WORK_SET_MARKS; i++) tn_marks_work(m, 1024, 100 + i, tick());
    tn_work_set set = uncovered(m, 1024);
    ck_assert_uint_eq(set.count, 1);
    ck_assert(!is_set_clean(m, set));
    for (uint32_t c = 1; c <= 8; c++) tn_marks_waited_context(m, c, tick());
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_context(m, 0, tick());
    ck_assert(is_set_clean(m, set));
}
END_TEST

START_TEST(many_streams_of_unknown_contexts_may_be_those_of_one_without_work)
{
    for (uint32_t i = 0; i <= TN_WORK_SET_MARKS; i++) tn_marks_work(m, 0, 100 + i, tick());
    tn_work_set set = uncovered(m, 2);
    ck_assert(!is_set_clean(m, set));
    tn_marks_waited_context(m, 0, tick());
    ck_assert(is_set_clean(m, set));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks_contexts");
    TCase *t = tcase_create("contexts");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_work_of_an_ended_context_is_done);
    tcase_add_test(t, contexts_that_have_ended_make_room_for_others);
    tcase_add_test(t, a_context_that_finds_no_place_is_an_unknown_one);
    tcase_add_test(t, many_streams_of_a_context_that_finds_no_place_are_not_done_before_a_wait);
    tcase_add_test(t, many_streams_of_unknown_contexts_may_be_those_of_one_without_work);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
