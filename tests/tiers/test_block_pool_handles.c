/* What a handle may do: owners, copies of them, shares, other pools' handles. */
#include <string.h>

#include "pool_fixture.h"

START_TEST(an_owner_is_emptied_by_its_release_and_a_second_is_an_error)
{
    make_slots(4, 4, NULL);
    tn_block block = take();
    give(&block);
    ck_assert_uint_eq(tn_block_id(&block), TN_BLOCK_NO_ID);
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_release(pool, &block, NULL, 0));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_release(pool, NULL, NULL, 0));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_release(NULL, &block, NULL, 0));
    ck_assert_uint_eq(stats_now().free, 4);
}
END_TEST

START_TEST(a_copy_that_outlives_the_release_is_stale_and_never_a_hand_out)
{
    make_slots(4, 4, NULL);
    tn_block block = take(), copy = block, to = tn_block_none();
    uint32_t id = tn_block_id(&block);
    give(&block);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy, NULL, 0));
    expect_error(TN_MEM_E_STALE, tn_block_pool_share(pool, &copy, &to));
    expect_error(TN_MEM_E_STALE, tn_block_pool_look(pool, &copy, NULL));
    ck_assert(tn_block_is_empty(&to));
    block = take();
    ck_assert_uint_eq(tn_block_id(&block), id); /* the same block again, in its next life */
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy, NULL, 0));
    expect_ok(tn_block_pool_look(pool, &block, NULL));
    tn_block_pool_stats stats = stats_now();
    ck_assert_uint_eq(stats.live, 1);
    ck_assert_uint_eq(stats.bad_handles, 4);
    ck_assert_int_eq(stats.first_bad, TN_MEM_E_STALE);
    ck_assert_uint_eq(stats.first_bad_id, id);
}
END_TEST

START_TEST(a_double_release_does_not_take_another_owners_reference)
{
    make_slots(4, 4, NULL);
    tn_block a = take(), b = tn_block_none(), c = tn_block_none();
    expect_ok(tn_block_pool_share(pool, &a, &b));
    expect_ok(tn_block_pool_share(pool, &b, &c));
    tn_block copy_of_a = a, copy_of_b = b;
    give(&a);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy_of_a, NULL, 0));
    give(&b);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy_of_b, NULL, 0));
    size_t references = 0;
    expect_ok(tn_block_pool_look(pool, &c, &references));
    ck_assert_uint_eq(references, 1);
    ck_assert_uint_eq(stats_now().live, 1);
}
END_TEST

START_TEST(two_pools_never_accept_each_others_handles)
{
    make_slots(4, 4, NULL);
    tn_block_pool *other = NULL;
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.blocks = 4, .max_shares = 4}, &other));
    tn_block mine = take(), theirs = tn_block_none(), to = tn_block_none();
    expect_ok(tn_block_pool_acquire(other, TN_WORK_NO_QUEUE, &theirs));
    ck_assert_uint_eq(tn_block_id(&mine), tn_block_id(&theirs));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_release(pool, &theirs, NULL, 0));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_release(other, &mine, NULL, 0));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_share(pool, &theirs, &to));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_look(other, &mine, NULL));
    tn_block second = take(), copy = second;
    give(&second);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy, NULL, 0)); /* the first stays on record */
    ck_assert_int_eq(stats_now().first_bad, TN_MEM_E_FOREIGN);
    ck_assert_uint_eq(stats_now().first_bad_id, tn_block_id(&theirs));
    ck_assert_uint_ne(stats_now().first_bad_id, tn_block_id(&copy));
    expect_ok(tn_block_pool_release(other, &theirs, NULL, 0));
    expect_ok(tn_block_pool_destroy(&other));
    /* A pool made in its place, at the same address perhaps, is another pool. */
    tn_block old = mine;
    give(&mine);
    expect_ok(tn_block_pool_destroy(&pool));
    make_slots(4, 4, NULL);
    mine = take();
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_release(pool, &old, NULL, 0));
}
END_TEST

/* Every bit of it turned once. */
static void expect_no_forgery(const tn_block *block)
{
    for (size_t byte = 0; byte < sizeof *block; byte++)
        for (int bit = 0; bit < 8; bit++) {
            tn_block forged = *block, to = tn_block_none();
            ((unsigned char *)&forged)[byte] ^= (unsigned char)(1 << bit);
            tn_mem_error error = tn_block_pool_share(pool, &forged, &to);
            ck_assert_msg(error != TN_MEM_OK, "shared with byte %zu, bit %d", byte, bit);
            error = tn_block_pool_release(pool, &forged, NULL, 0);
            ck_assert_msg(error != TN_MEM_OK, "released with byte %zu, bit %d", byte, bit);
        }
}

START_TEST(bytes_that_no_pool_wrote_are_refused)
{
    make_slots(4, 4, NULL);
    tn_block block = take(), share = tn_block_none();
    expect_no_forgery(&block);
    expect_ok(tn_block_pool_share(pool, &block, &share));
    expect_no_forgery(&block);
    expect_no_forgery(&share);
    give(&block);
    expect_no_forgery(&share);
    give(&share);
    ck_assert_uint_eq(stats_now().free, 4);
}
END_TEST

/* What a free block has in its place for the reference. */
START_TEST(an_owner_without_a_generation_is_refused)
{
    make_slots(4, 4, NULL);
    tn_block block = take(), shared = take(), share = tn_block_none();
    expect_ok(tn_block_pool_share(pool, &shared, &share));
    const tn_block copies[] = {block, shared, share};
    give(&block);
    give(&shared);
    give(&share);
    for (size_t i = 0; i < 3; i++) {
        tn_block forged = copies[i], to = tn_block_none();
        memset((char *)&forged + sizeof(uint64_t), 0, sizeof(uint64_t)); /* behind the pool's identity */
        expect_error(TN_MEM_E_STALE, tn_block_pool_look(pool, &forged, NULL));
        expect_error(TN_MEM_E_STALE, tn_block_pool_share(pool, &forged, &to));
        expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &forged, NULL, 0));
    }
    ck_assert_uint_eq(stats_now().free, 4);
}
END_TEST

/* Each block is held by a share alone, and one by two: as many as blocks and shares there are. */
START_TEST(shares_that_outlive_the_acquire_take_no_share_from_others)
{
    enum { BLOCKS = 4 };
    make_slots(BLOCKS, 1, NULL);
    tn_block shares[BLOCKS], last = tn_block_none();
    for (int i = 0; i < BLOCKS; i++) {
        tn_block block = take();
        shares[i] = tn_block_none();
        expect_ok(tn_block_pool_share(pool, &block, &shares[i]));
        give(&block);
    }
    expect_ok(tn_block_pool_share(pool, &shares[0], &last));
    ck_assert_uint_eq(stats_now().references, BLOCKS + 1);
    give(&last);
    for (int i = 0; i < BLOCKS; i++)
        give(&shares[i]);
    ck_assert_uint_eq(stats_now().free, BLOCKS);
}
END_TEST

START_TEST(an_owner_that_holds_is_not_overwritten)
{
    make_slots(4, 4, NULL);
    tn_block a = take(), b = take(), none = tn_block_none();
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_share(pool, &a, &b));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_share(pool, &none, &b));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_share(pool, &a, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, NULL));
    ck_assert(!tn_block_move(&a, &b));
    ck_assert(!tn_block_move(&none, &none));
    ck_assert(!tn_block_move(&a, NULL));
    ck_assert(!tn_block_move(NULL, &none));
    uint32_t id = tn_block_id(&a);
    ck_assert(tn_block_move(&a, &none));
    ck_assert(tn_block_is_empty(&a));
    ck_assert_uint_eq(tn_block_id(&none), id);
    give(&none);
    give(&b);
    ck_assert_uint_eq(stats_now().live, 0);
}
END_TEST

START_TEST(a_block_goes_back_with_its_last_owner)
{
    make_slots(2, 4, NULL);
    tn_block a = take(), b = tn_block_none();
    expect_ok(tn_block_pool_share(pool, &a, &b));
    ck_assert_uint_eq(tn_block_id(&a), tn_block_id(&b));
    tn_block_pool_stats stats = stats_now();
    ck_assert_uint_eq(stats.live, 1);
    ck_assert_uint_eq(stats.shared, 1);
    ck_assert_uint_eq(stats.references, 2);
    give(&a);
    stats = stats_now();
    ck_assert_uint_eq(stats.live, 1);
    ck_assert_uint_eq(stats.shared, 0);
    tn_block other = take(), none = tn_block_none();
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &none));
    give(&b);
    ck_assert_uint_eq(stats_now().live, 1);
    none = take();
    give(&none);
    give(&other);
}
END_TEST

START_TEST(shares_are_bounded_by_what_is_shared_at_once)
{
    make_slots(4, 2, NULL);
    tn_block a = take(), s[3] = {tn_block_none(), tn_block_none(), tn_block_none()};
    /* Handed from owner to owner, a reference is no share for long. */
    for (int i = 0; i < 10; i++) {
        expect_ok(tn_block_pool_share(pool, &a, &s[0]));
        give(&a);
        ck_assert(tn_block_move(&s[0], &a));
        ck_assert_uint_eq(stats_now().shares, 0);
    }
    expect_ok(tn_block_pool_share(pool, &a, &s[0]));
    expect_ok(tn_block_pool_share(pool, &a, &s[1]));
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_share(pool, &a, &s[2]));
    ck_assert(tn_block_is_empty(&s[2]));
    for (int i = 0; i < 3; i++)
        take(); /* every block can be had all the same */
    give(&a);
    expect_ok(tn_block_pool_share(pool, &s[1], &s[2]));
    ck_assert_uint_eq(stats_now().high_shares, 2);
}
END_TEST

START_TEST(blocks_of_a_pool_without_shares_are_never_shared)
{
    make_slots(4, 0, NULL);
    tn_block a = take(), b = tn_block_none();
    expect_error(TN_MEM_E_NOT_SHARED, tn_block_pool_share(pool, &a, &b));
    ck_assert(tn_block_is_empty(&b));
    ck_assert_uint_eq(stats_now().references, 1);
    tn_block copy = a;
    give(&a);
    expect_error(TN_MEM_E_STALE, tn_block_pool_share(pool, &copy, &b)); /* what is wrong with the handle comes first */
}
END_TEST

START_TEST(a_reset_takes_every_block_from_its_owners)
{
    make_slots(4, 4, &device_work);
    tn_block a = take(), b = take(), s = tn_block_none();
    expect_ok(tn_block_pool_share(pool, &a, &s));
    tn_block copy_of_a = a;
    give(&a); /* held by the share alone */
    tn_work_mark mark = device_enqueue(1);
    expect_ok(tn_block_pool_reset(pool, &mark, 1));
    tn_block_pool_stats stats = stats_now();
    ck_assert_uint_eq(stats.live, 0);
    ck_assert_uint_eq(stats.references, 0);
    ck_assert_uint_eq(stats.waiting, 2);
    ck_assert_uint_eq(stats.free, 2);
    ck_assert_uint_eq(stats.resets, 1);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy_of_a, NULL, 0));
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &b, NULL, 0));
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &s, NULL, 0));
    take();
    take();
    tn_block c = tn_block_none();
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &c));
    device_finish(1, 1);
    c = take();
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_reset(NULL, NULL, 0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_handles");
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, an_owner_is_emptied_by_its_release_and_a_second_is_an_error);
    tcase_add_test(tests, a_copy_that_outlives_the_release_is_stale_and_never_a_hand_out);
    tcase_add_test(tests, a_double_release_does_not_take_another_owners_reference);
    tcase_add_test(tests, two_pools_never_accept_each_others_handles);
    tcase_add_test(tests, bytes_that_no_pool_wrote_are_refused);
    tcase_add_test(tests, an_owner_without_a_generation_is_refused);
    tcase_add_test(tests, shares_that_outlive_the_acquire_take_no_share_from_others);
    tcase_add_test(tests, an_owner_that_holds_is_not_overwritten);
    tcase_add_test(tests, a_block_goes_back_with_its_last_owner);
    tcase_add_test(tests, shares_are_bounded_by_what_is_shared_at_once);
    tcase_add_test(tests, blocks_of_a_pool_without_shares_are_never_shared);
    tcase_add_test(tests, a_reset_takes_every_block_from_its_owners);
    return fixture_run("block_pool_handles", tests);
}
