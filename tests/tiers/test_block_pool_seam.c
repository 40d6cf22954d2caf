/* What a listener at the seam hears of a pool: each block once when it is handed out and once when its last owner lets go, in this order
 * whatever threads do. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "pool_fixture.h"
#include "tiers/seam.h"

enum { BLOCKS = 4, STRIDE = 1024, THREADS = 3, ROUNDS = 20000 };

static int live[BLOCKS]; /* by the listener's account */
static size_t handed_out_count, taken_back_count, resets, wrong;
static const tn_block_pool *expected;
static tn_mem_error while_told; /* what an acquire says while the listener hears of a release */
static bool asks;

#define ADD(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)

static size_t block_at(const void *address)
{
    return (size_t)((const char *)address - (const char *)tn_stable_data(tn_block_pool_slab(pool))) / STRIDE;
}

static tn_mem_error may_acquire(void *self, const void *backend, const char *tag, size_t bytes)
{
    (void)self, (void)backend, (void)tag, (void)bytes;
    return TN_MEM_OK;
}

static void on_region(void *self, const void *backend, const tn_region *region)
{
    (void)self, (void)backend, (void)region;
}

static void on_resize(void *self, const void *backend, const tn_region *region, size_t before)
{
    (void)self, (void)backend, (void)region, (void)before;
}

static void handed_out(void *self, const void *allocator, const char *tag, const void *address, size_t bytes)
{
    (void)self;
    ADD(handed_out_count);
    if (allocator != expected || strcmp(tag, "kv") != 0 || bytes != STRIDE ||
        __atomic_exchange_n(&live[block_at(address)], 1, __ATOMIC_ACQ_REL) != 0)
        ADD(wrong);
}

static void taken_back(void *self, const void *allocator, const void *address)
{
    (void)self;
    ADD(taken_back_count);
    if (asks) {
        tn_block block = tn_block_none();
        while_told = tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &block);
    }
    if (allocator != expected || __atomic_exchange_n(&live[block_at(address)], 0, __ATOMIC_ACQ_REL) != 1)
        ADD(wrong);
}

static void taken_back_all(void *self, const void *allocator)
{
    (void)self, (void)allocator;
    memset(live, 0, sizeof live);
    resets++;
}

static const tn_seam listener = {
    .version = TN_SEAM_VERSION,
    .bytes = sizeof(tn_seam),
    .may_acquire = may_acquire,
    .acquired = on_region,
    .resized = on_resize,
    .releasing = on_region,
    .kept = on_region,
    .handed_out = handed_out,
    .taken_back = taken_back,
    .taken_back_all = taken_back_all,
};

static void listen(void)
{
    make_region(BLOCKS, STRIDE);
    expected = pool;
    expect_ok(tn_seam_set(&listener));
}

START_TEST(a_block_is_told_of_once_however_many_own_it)
{
    listen();
    tn_block a = take(), b = tn_block_none();
    uint32_t id = tn_block_id(&a);
    expect_ok(tn_block_pool_share(pool, &a, &b));
    ck_assert_uint_eq(handed_out_count, 1);
    ck_assert_int_eq(live[id], 1);
    tn_block copy = a;
    give(&a);
    expect_error(TN_MEM_E_STALE, tn_block_pool_release(pool, &copy, NULL, 0));
    ck_assert_uint_eq(taken_back_count, 0);
    give(&b);
    ck_assert_uint_eq(taken_back_count, 1);
    ck_assert_uint_eq(wrong, 0);
    tn_block blocks[BLOCKS], none = tn_block_none();
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take();
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &none));
    ck_assert_uint_eq(handed_out_count, 1 + BLOCKS);
    expect_ok(tn_block_pool_reset(pool, NULL, 0));
    ck_assert_uint_eq(resets, 1);
    blocks[0] = take();
    ck_assert_uint_eq(wrong, 0);
    expect_ok(tn_seam_set(NULL));
    give(&blocks[0]);
    ck_assert_uint_eq(taken_back_count, 1);
}
END_TEST

START_TEST(a_block_is_nobodys_before_all_have_heard_that_it_was_taken_back)
{
    listen();
    tn_block blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take();
    asks = true;
    give(&blocks[0]);
    asks = false;
    ck_assert_int_eq(while_told, TN_MEM_E_EXHAUSTED);
    blocks[0] = take();
    ck_assert_uint_eq(wrong, 0);
    expect_ok(tn_seam_set(NULL));
}
END_TEST

START_TEST(slots_are_not_told_of)
{
    make_slots(BLOCKS, 0, NULL);
    expect_ok(tn_seam_set(&listener));
    tn_block a = take();
    give(&a);
    expect_ok(tn_block_pool_reset(pool, NULL, 0));
    ck_assert_uint_eq(handed_out_count + taken_back_count + resets, 0);
    expect_ok(tn_seam_set(NULL));
}
END_TEST

static void *churn(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        tn_block a = tn_block_none(), b = tn_block_none();
        if (tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a) != TN_MEM_OK)
            continue;
        if (i % 3 == 0 && tn_block_pool_share(pool, &a, &b) == TN_MEM_OK && tn_block_pool_release(pool, &b, NULL, 0) != TN_MEM_OK)
            ADD(wrong);
        if (tn_block_pool_release(pool, &a, NULL, 0) != TN_MEM_OK)
            ADD(wrong);
    }
    return NULL;
}

START_TEST(threads_never_make_a_block_seem_handed_out_twice)
{
    listen();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_ok(tn_seam_set(NULL));
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(handed_out_count, taken_back_count);
    ck_assert_uint_gt(handed_out_count, ROUNDS);
    ck_assert_uint_eq(stats_now().free, BLOCKS);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_seam");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, a_block_is_told_of_once_however_many_own_it);
    tcase_add_test(tests, a_block_is_nobodys_before_all_have_heard_that_it_was_taken_back);
    tcase_add_test(tests, slots_are_not_told_of);
    tcase_add_test(tests, threads_never_make_a_block_seem_handed_out_twice);
    return fixture_run("block_pool_seam", tests);
}
