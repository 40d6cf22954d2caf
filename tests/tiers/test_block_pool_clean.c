/* When a block is clean: the marks that its owners leave, the queues that need not wait, and waits. */
#include "pool_fixture.h"

START_TEST(a_block_is_not_handed_out_before_the_device_is_done_with_it)
{
    make_slots(1, 0, &device_work);
    tn_block block = take();
    give_marked(&block, device_enqueue(1));
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &block));
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, 2, &block));
    ck_assert(tn_block_is_empty(&block));
    ck_assert_uint_eq(stats_now().waiting, 1);
    ck_assert_uint_eq(stats_now().must_wait, 2);
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_destroy(&pool));
    ck_assert_ptr_nonnull(pool);
    device_finish(1, 1);
    block = take();
    ck_assert_uint_eq(stats_now().waiting, 0);
    give(&block);
}
END_TEST

START_TEST(the_same_queue_may_have_the_block_at_once)
{
    make_slots(1, 0, &device_work);
    tn_block block = take();
    give_marked(&block, device_enqueue(1));
    expect_ok(tn_block_pool_acquire(pool, 1, &block));
    /* It was not used after all: the old work is still not done, and another queue must not have it. */
    give(&block);
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, 2, &block));
    device_join(2);
    expect_ok(tn_block_pool_acquire(pool, 2, &block));
    give_marked(&block, device_enqueue(2));
    device_finish(2, 1);
    device_join(0);
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, 3, &block));
    device_finish(1, 1);
    expect_ok(tn_block_pool_acquire(pool, 3, &block));
}
END_TEST

START_TEST(the_marks_of_every_owner_count_whoever_is_last)
{
    make_slots(1, 4, &device_work);
    tn_block a = take(), b = tn_block_none(), c = tn_block_none();
    expect_ok(tn_block_pool_share(pool, &a, &b));
    expect_ok(tn_block_pool_share(pool, &a, &c));
    give_marked(&b, device_enqueue(2));
    tn_work_mark two[] = {device_enqueue(1), device_enqueue(3)};
    expect_ok(tn_block_pool_release(pool, &c, two, 2));
    give(&a);
    for (uint64_t q = 3; q >= 1; q--) {
        expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a));
        device_finish(q, 1);
    }
    a = take();
}
END_TEST

START_TEST(marks_that_are_done_and_marks_of_no_work_keep_nothing_waiting)
{
    make_slots(1, 0, &device_work);
    tn_block block = take();
    tn_work_mark mark = device_enqueue(1);
    device_finish(1, 1);
    give_marked(&block, mark);
    ck_assert_uint_eq(stats_now().free, 1);
    block = take();
    give_marked(&block, (tn_work_mark){TN_WORK_NO_QUEUE, 99});
    ck_assert_uint_eq(stats_now().free, 1);
}
END_TEST

START_TEST(marks_need_a_work_table)
{
    make_slots(1, 0, NULL);
    tn_block block = take();
    tn_work_mark mark = device_enqueue(1);
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_release(pool, &block, &mark, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_reset(pool, &mark, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_release(pool, &block, NULL, 1));
    expect_ok(tn_block_pool_look(pool, &block, NULL));
    expect_ok(tn_block_pool_release(pool, &block, &mark, 0));
}
END_TEST

START_TEST(of_the_waiting_blocks_the_one_that_is_ready_is_found)
{
    make_slots(3, 0, &device_work);
    tn_block blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = take();
    uint32_t id = tn_block_id(&blocks[1]), last = tn_block_id(&blocks[2]);
    for (int i = 0; i < 3; i++)
        give_marked(&blocks[i], device_enqueue((uint64_t)i + 1));
    device_finish(2, 1);
    blocks[1] = take();
    ck_assert_uint_eq(tn_block_id(&blocks[1]), id);
    expect_ok(tn_block_pool_acquire(pool, 3, &blocks[2]));
    ck_assert_uint_eq(tn_block_id(&blocks[2]), last);
    ck_assert_uint_eq(stats_now().waiting, 1);
    give_marked(&blocks[1], device_enqueue(2)); /* behind the one that waits: the queue is whole */
    device_finish_all();
    ck_assert_uint_eq(tn_block_pool_collect(pool), 2);
    ck_assert_uint_eq(tn_block_pool_collect(pool), 0);
    ck_assert_uint_eq(stats_now().free, 2);
}
END_TEST

START_TEST(a_wait_makes_a_block_clean_or_says_why_not)
{
    make_slots(2, 0, &device_work);
    expect_ok(tn_block_pool_wait(pool)); /* there is one */
    tn_block a = take(), b = take();
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_wait(pool));
    ck_assert_uint_eq(device_waits(), 0);
    give_marked(&a, device_enqueue(1));
    device_set_wait_answer(TN_MEM_E_DRIVER);
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_wait(pool));
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a));
    device_set_wait_answer(TN_MEM_OK);
    expect_ok(tn_block_pool_wait(pool));
    ck_assert_uint_eq(device_waits(), 2);
    a = take();
    give(&a);
    give(&b);
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_wait(NULL));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_clean");
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, a_block_is_not_handed_out_before_the_device_is_done_with_it);
    tcase_add_test(tests, the_same_queue_may_have_the_block_at_once);
    tcase_add_test(tests, the_marks_of_every_owner_count_whoever_is_last);
    tcase_add_test(tests, marks_that_are_done_and_marks_of_no_work_keep_nothing_waiting);
    tcase_add_test(tests, marks_need_a_work_table);
    tcase_add_test(tests, of_the_waiting_blocks_the_one_that_is_ready_is_found);
    tcase_add_test(tests, a_wait_makes_a_block_clean_or_says_why_not);
    return fixture_run("block_pool_clean", tests);
}
