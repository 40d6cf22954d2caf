/* Sets of work marks against a device that proceeds by hand. */
#include "work_device.h"

static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    return device_is_done(mark);
}

static tn_work_mark all(void *self)
{
    return device_work.table->all(self);
}

static const tn_work_table plain = {.done = done, .all = all};

START_TEST(a_table_needs_done_and_all)
{
    tn_work_table hole = {.done = done};
    ck_assert(tn_work_is_valid(&device_work));
    ck_assert(!tn_work_is_valid(NULL));
    ck_assert(!tn_work_is_valid(&(tn_work){0}));
    ck_assert(!tn_work_is_valid(&(tn_work){.table = &hole}));
    hole = (tn_work_table){.all = all};
    ck_assert(!tn_work_is_valid(&(tn_work){.table = &hole}));
}
END_TEST

START_TEST(an_empty_set_is_clean_and_no_work_keeps_it_so)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &device_work, (tn_work_mark){TN_WORK_NO_QUEUE, 7});
    ck_assert_uint_eq(set.count, 0);
    ck_assert(tn_work_set_is_clean(&set, &device_work));
    ck_assert(tn_work_set_is_ready(&set, &device_work, TN_WORK_NO_QUEUE));
    expect_ok(tn_work_set_wait(&set, &device_work));
    ck_assert_uint_eq(device_waits(), 0);
}
END_TEST

START_TEST(a_set_is_clean_when_its_last_mark_is_done)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &device_work, device_enqueue(1));
    tn_work_set_add(&set, &device_work, device_enqueue(2));
    ck_assert(!tn_work_set_is_clean(&set, &device_work));
    device_finish(2, 1);
    ck_assert(!tn_work_set_is_clean(&set, &device_work));
    ck_assert_uint_eq(set.count, 1);
    device_finish(1, 1);
    ck_assert(tn_work_set_is_clean(&set, &device_work));
}
END_TEST

START_TEST(of_one_queue_the_later_mark_stays)
{
    tn_work_set set = {0};
    tn_work_mark early = device_enqueue(3), late = device_enqueue(3);
    tn_work_set_add(&set, &device_work, late);
    tn_work_set_add(&set, &device_work, early);
    ck_assert_uint_eq(set.count, 1);
    device_finish(3, 1);
    ck_assert(!tn_work_set_is_clean(&set, &device_work));
    tn_work_mark latest = device_enqueue(3);
    tn_work_set_add(&set, &device_work, latest);
    device_finish(3, 1);
    ck_assert(!tn_work_set_is_clean(&set, &device_work));
    device_finish(3, 1);
    ck_assert(tn_work_set_is_clean(&set, &device_work));
}
END_TEST

START_TEST(a_full_set_lets_the_done_marks_go_first)
{
    tn_work_set set = {0};
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS; q++)
        tn_work_set_add(&set, &device_work, device_enqueue(q));
    device_finish(2, UINT32_MAX);
    tn_work_set_add(&set, &device_work, device_enqueue(7));
    ck_assert_uint_eq(device_alls(), 0);
    ck_assert_uint_eq(set.count, TN_WORK_SET_MARKS);
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++) {
        ck_assert_msg(!tn_work_set_is_clean(&set, &device_work) || q == DEVICE_QUEUES, "clean before queue %d is done", (int)q);
        device_finish(q, UINT32_MAX);
    }
    ck_assert(tn_work_set_is_clean(&set, &device_work));
}
END_TEST

START_TEST(a_set_that_overflows_waits_for_all_work_there_was)
{
    tn_work_set set = {0};
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS + 1; q++)
        tn_work_set_add(&set, &device_work, device_enqueue(q));
    ck_assert_uint_eq(set.count, 1);
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS + 1; q++) {
        ck_assert_msg(!tn_work_set_is_clean(&set, &device_work), "clean before queue %d is done", (int)q);
        device_finish(q, UINT32_MAX);
    }
    device_enqueue(8); /* what came later does not count */
    ck_assert(tn_work_set_is_clean(&set, &device_work));
}
END_TEST

START_TEST(merging_keeps_what_either_set_waits_for)
{
    tn_work_set a = {0}, b = {0};
    tn_work_set_add(&a, &device_work, device_enqueue(1));
    tn_work_set_add(&b, &device_work, device_enqueue(1));
    tn_work_set_add(&b, &device_work, device_enqueue(2));
    tn_work_set_merge(&a, &device_work, &b);
    device_finish(1, 1);
    device_finish(2, 1);
    ck_assert(!tn_work_set_is_clean(&a, &device_work));
    device_finish(1, 1);
    ck_assert(tn_work_set_is_clean(&a, &device_work));
    /* All of its marks, not the first alone. */
    tn_work_set_add(&b, &device_work, device_enqueue(3));
    tn_work_set_add(&b, &device_work, device_enqueue(2));
    tn_work_set_merge(&a, &device_work, &b);
    device_finish(3, 1);
    ck_assert(!tn_work_set_is_clean(&a, &device_work));
    device_finish(2, 1);
    ck_assert(tn_work_set_is_clean(&a, &device_work));
}
END_TEST

START_TEST(the_same_queue_needs_no_wait_and_another_does)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &device_work, device_enqueue(1));
    ck_assert(tn_work_set_is_ready(&set, &device_work, 1));
    ck_assert(!tn_work_set_is_ready(&set, &device_work, 2));
    ck_assert(!tn_work_set_is_ready(&set, &device_work, TN_WORK_NO_QUEUE));
    tn_work_set_add(&set, &device_work, device_enqueue(2));
    ck_assert(!tn_work_set_is_ready(&set, &device_work, 1));
    device_join(1);
    ck_assert(tn_work_set_is_ready(&set, &device_work, 1));
    ck_assert(!tn_work_set_is_clean(&set, &device_work));
    ck_assert(!tn_work_set_is_ready(&set, &(tn_work){.table = &plain}, 1));
    device_finish_all();
    ck_assert(tn_work_set_is_ready(&set, &(tn_work){.table = &plain}, TN_WORK_NO_QUEUE));
}
END_TEST

START_TEST(a_wait_cleans_the_set_or_says_why_not)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &device_work, device_enqueue(1));
    tn_work_set_add(&set, &device_work, device_enqueue(2));
    expect_error(TN_MEM_E_ARGUMENT, tn_work_set_wait(&set, &(tn_work){.table = &plain}));
    device_set_wait_answer(TN_MEM_E_DRIVER);
    expect_error(TN_MEM_E_DRIVER, tn_work_set_wait(&set, &device_work));
    ck_assert_uint_eq(set.count, 2);
    device_set_wait_answer(TN_MEM_OK);
    expect_ok(tn_work_set_wait(&set, &device_work));
    ck_assert_uint_eq(set.count, 0);
    ck_assert_uint_eq(device_waits(), 3);
    ck_assert_uint_eq(device_finished(1), 1);
    ck_assert_uint_eq(device_finished(2), 1);
}
END_TEST

/* Held against the plain list of all marks ever added: the set is never clean before the list is. */
START_TEST(a_set_is_never_clean_too_early)
{
    uint64_t seed = fixture_seed(0x3A6B + (uint64_t)_i);
    random_state random = {seed};
    tn_work_set set = {0};
    tn_work_mark list[400];
    size_t count = 0;
    for (size_t step = 0; step < 400; step++) {
        uint64_t q = 1 + random_below(&random, DEVICE_QUEUES);
        if (random_below(&random, 3) > 0) {
            list[count] = device_enqueue(q);
            tn_work_set_add(&set, &device_work, list[count++]);
        } else {
            device_finish(q, 1 + random_below(&random, 3));
        }
        bool all_done = true;
        for (size_t i = 0; i < count; i++)
            all_done = all_done && device_is_done(list[i]);
        if (tn_work_set_is_clean(&set, &device_work) && !all_done)
            ck_abort_msg("clean with work left: %s", fixture_seed_line(seed, step));
    }
    device_finish_all();
    ck_assert(tn_work_set_is_clean(&set, &device_work));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("work_mark");
    tcase_add_test(tests, a_table_needs_done_and_all);
    tcase_add_test(tests, an_empty_set_is_clean_and_no_work_keeps_it_so);
    tcase_add_test(tests, a_set_is_clean_when_its_last_mark_is_done);
    tcase_add_test(tests, of_one_queue_the_later_mark_stays);
    tcase_add_test(tests, a_full_set_lets_the_done_marks_go_first);
    tcase_add_test(tests, a_set_that_overflows_waits_for_all_work_there_was);
    tcase_add_test(tests, merging_keeps_what_either_set_waits_for);
    tcase_add_test(tests, the_same_queue_needs_no_wait_and_another_does);
    tcase_add_test(tests, a_wait_cleans_the_set_or_says_why_not);
    tcase_add_loop_test(tests, a_set_is_never_clean_too_early, 0, 20);
    return fixture_run("work_mark", tests);
}
