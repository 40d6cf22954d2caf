/* Sets of work marks against a device that is two numbers a queue: what was enqueued, and what is done. */
#include <string.h>

#include "fixture.h"

enum { QUEUES = 8 };

static uint64_t enqueued[QUEUES + 1], finished[QUEUES + 1]; /* by queue id, from 1 */
static uint64_t joined_into;                                /* the queue that waits for all others, 0 for none */
static int waits;
static tn_mem_error wait_answer;

/* A mark of all queues at once: its sequence is an index into what they had enqueued at the time. */
enum { ALL = 1000, SNAPSHOTS = 64 };
static uint64_t snapshots[SNAPSHOTS][QUEUES + 1];
static size_t snapshot_count;

static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    if (mark.queue != ALL)
        return finished[mark.queue] >= mark.sequence;
    for (int q = 1; q <= QUEUES; q++)
        if (finished[q] < snapshots[mark.sequence][q])
            return false;
    return true;
}

static bool ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    (void)self;
    return mark.queue == queue || queue == joined_into;
}

static tn_work_mark all(void *self)
{
    (void)self;
    ck_assert_uint_lt(snapshot_count, SNAPSHOTS);
    memcpy(snapshots[snapshot_count], enqueued, sizeof enqueued);
    return (tn_work_mark){ALL, snapshot_count++};
}

static tn_mem_error wait_for(void *self, tn_work_mark mark)
{
    (void)self;
    waits++;
    if (wait_answer == TN_MEM_OK && mark.queue != ALL && finished[mark.queue] < mark.sequence)
        finished[mark.queue] = mark.sequence;
    return wait_answer;
}

static const tn_work_table table = {.done = done, .ordered = ordered, .all = all, .wait = wait_for};
static const tn_work work = {.table = &table};

static tn_work_mark enqueue(uint64_t queue)
{
    return (tn_work_mark){queue, ++enqueued[queue]};
}

START_TEST(a_table_needs_done_and_all)
{
    tn_work_table hole = {.done = done};
    ck_assert(tn_work_is_valid(&work));
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
    tn_work_set_add(&set, &work, (tn_work_mark){TN_WORK_NO_QUEUE, 7});
    ck_assert_uint_eq(set.count, 0);
    ck_assert(tn_work_set_is_clean(&set, &work));
    ck_assert(tn_work_set_is_ready(&set, &work, TN_WORK_NO_QUEUE));
    expect_ok(tn_work_set_wait(&set, &work));
    ck_assert_int_eq(waits, 0);
}
END_TEST

START_TEST(a_set_is_clean_when_its_last_mark_is_done)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &work, enqueue(1));
    tn_work_set_add(&set, &work, enqueue(2));
    ck_assert(!tn_work_set_is_clean(&set, &work));
    finished[2] = 1;
    ck_assert(!tn_work_set_is_clean(&set, &work));
    ck_assert_uint_eq(set.count, 1);
    finished[1] = 1;
    ck_assert(tn_work_set_is_clean(&set, &work));
}
END_TEST

START_TEST(of_one_queue_the_later_mark_stays)
{
    tn_work_set set = {0};
    tn_work_mark early = enqueue(3), late = enqueue(3);
    tn_work_set_add(&set, &work, late);
    tn_work_set_add(&set, &work, early);
    ck_assert_uint_eq(set.count, 1);
    finished[3] = early.sequence;
    ck_assert(!tn_work_set_is_clean(&set, &work));
    tn_work_mark latest = enqueue(3);
    tn_work_set_add(&set, &work, latest);
    finished[3] = late.sequence;
    ck_assert(!tn_work_set_is_clean(&set, &work));
    finished[3] = latest.sequence;
    ck_assert(tn_work_set_is_clean(&set, &work));
}
END_TEST

START_TEST(a_full_set_lets_the_done_marks_go_first)
{
    tn_work_set set = {0};
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS; q++)
        tn_work_set_add(&set, &work, enqueue(q));
    finished[2] = enqueued[2];
    tn_work_set_add(&set, &work, enqueue(7));
    ck_assert_uint_eq(snapshot_count, 0);
    ck_assert_uint_eq(set.count, TN_WORK_SET_MARKS);
    for (uint64_t q = 1; q <= QUEUES; q++) {
        ck_assert_msg(!tn_work_set_is_clean(&set, &work) || q == QUEUES, "clean before queue %d is done", (int)q);
        finished[q] = enqueued[q];
    }
    ck_assert(tn_work_set_is_clean(&set, &work));
}
END_TEST

START_TEST(a_set_that_overflows_waits_for_all_work_there_was)
{
    tn_work_set set = {0};
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS + 1; q++)
        tn_work_set_add(&set, &work, enqueue(q));
    ck_assert_uint_eq(set.count, 1);
    for (uint64_t q = 1; q <= TN_WORK_SET_MARKS + 1; q++) {
        ck_assert_msg(!tn_work_set_is_clean(&set, &work), "clean before queue %d is done", (int)q);
        finished[q] = enqueued[q];
    }
    enqueue(8); /* what came later does not count */
    ck_assert(tn_work_set_is_clean(&set, &work));
}
END_TEST

START_TEST(merging_keeps_what_either_set_waits_for)
{
    tn_work_set a = {0}, b = {0};
    tn_work_set_add(&a, &work, enqueue(1));
    tn_work_set_add(&b, &work, enqueue(1));
    tn_work_set_add(&b, &work, enqueue(2));
    tn_work_set_merge(&a, &work, &b);
    finished[1] = 1;
    finished[2] = 1;
    ck_assert(!tn_work_set_is_clean(&a, &work));
    finished[1] = 2;
    ck_assert(tn_work_set_is_clean(&a, &work));
}
END_TEST

START_TEST(the_same_queue_needs_no_wait_and_another_does)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &work, enqueue(1));
    ck_assert(tn_work_set_is_ready(&set, &work, 1));
    ck_assert(!tn_work_set_is_ready(&set, &work, 2));
    ck_assert(!tn_work_set_is_ready(&set, &work, TN_WORK_NO_QUEUE));
    tn_work_set_add(&set, &work, enqueue(2));
    ck_assert(!tn_work_set_is_ready(&set, &work, 1));
    joined_into = 1;
    ck_assert(tn_work_set_is_ready(&set, &work, 1));
    ck_assert(!tn_work_set_is_clean(&set, &work));
    tn_work_table plain = {.done = done, .all = all};
    ck_assert(!tn_work_set_is_ready(&set, &(tn_work){.table = &plain}, 1));
    finished[1] = finished[2] = 1;
    ck_assert(tn_work_set_is_ready(&set, &(tn_work){.table = &plain}, TN_WORK_NO_QUEUE));
}
END_TEST

START_TEST(a_wait_cleans_the_set_or_says_why_not)
{
    tn_work_set set = {0};
    tn_work_set_add(&set, &work, enqueue(1));
    tn_work_set_add(&set, &work, enqueue(2));
    tn_work_table plain = {.done = done, .all = all};
    expect_error(TN_MEM_E_ARGUMENT, tn_work_set_wait(&set, &(tn_work){.table = &plain}));
    wait_answer = TN_MEM_E_DRIVER;
    expect_error(TN_MEM_E_DRIVER, tn_work_set_wait(&set, &work));
    ck_assert_uint_eq(set.count, 2);
    wait_answer = TN_MEM_OK;
    expect_ok(tn_work_set_wait(&set, &work));
    ck_assert_uint_eq(set.count, 0);
    ck_assert_int_eq(waits, 3);
    ck_assert_uint_eq(finished[1], 1);
    ck_assert_uint_eq(finished[2], 1);
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
    for (size_t step = 0; step < 400 && snapshot_count < SNAPSHOTS; step++) {
        uint64_t q = 1 + random_below(&random, QUEUES);
        if (random_below(&random, 3) > 0) {
            list[count] = enqueue(q);
            tn_work_set_add(&set, &work, list[count++]);
        } else if (finished[q] < enqueued[q]) {
            finished[q] += 1 + random_below(&random, enqueued[q] - finished[q]);
        }
        bool all_done = true;
        for (size_t i = 0; i < count; i++)
            all_done = all_done && done(NULL, list[i]);
        if (tn_work_set_is_clean(&set, &work) && !all_done)
            ck_abort_msg("clean with work left: %s", fixture_seed_line(seed, step));
    }
    memcpy(finished, enqueued, sizeof finished);
    ck_assert(tn_work_set_is_clean(&set, &work));
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
