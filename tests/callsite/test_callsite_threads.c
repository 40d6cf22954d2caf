/* Call sites of several threads. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>

#include "shim/callsite.h"
#include "shim/unwind.h"
#include "tests/callsite/mock_journal.h"

/* In place of an exported wrapper. */
static __attribute__((noinline)) uint32_t hook(void *unused)
{
    (void)unused;
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 7);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static void start(void)
{
    ck_assert_int_eq(tn_callsite_start(mock_journal(), NULL), 0);
}

static void *hook_on_thread(void *arg)
{
    *(uint32_t *)arg = hook(NULL);
    tn_unwind = tn_unwind_own;
    ((uint32_t *)arg)[1] = hook(NULL);
    return NULL;
}

START_TEST(threads_have_stacks_of_their_own)
{
    uint32_t ids[2] = { 0, 0 };
    pthread_t t;
    pthread_attr_t attr;
    start();
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024); /* small: the way of a miss must fit */
    ck_assert_int_eq(pthread_create(&t, &attr, hook_on_thread, ids), 0);
    pthread_join(t, NULL);
    ck_assert_uint_ge(ids[0], TN_SITE_FIRST);
    ck_assert_uint_ge(ids[1], TN_SITE_FIRST);
}
END_TEST

/* ---- threads */

#define THREADS 8
#define CHAINS 64
static pthread_barrier_t barrier;

/* Six bits choose the way, so that 64 numbers are 64 chains, the same in every thread. */
static __attribute__((noinline)) uint32_t zero(int bits, int depth);
static __attribute__((noinline)) uint32_t one(int bits, int depth);

static __attribute__((noinline)) uint32_t next(int bits, int depth)
{
    uint32_t r = depth == 0 ? hook(NULL) : bits & 1 ? one(bits >> 1, depth - 1) : zero(bits >> 1, depth - 1);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

static uint32_t zero(int bits, int depth)
{
    uint32_t r = next(bits, depth);
    __asm__ __volatile__("nop" ::: "memory");
    return r;
}

static uint32_t one(int bits, int depth)
{
    uint32_t r = next(bits, depth);
    __asm__ __volatile__("nop; nop" ::: "memory");
    return r;
}

static void *race(void *arg)
{
    uint32_t *ids = arg;
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < CHAINS; i++) {
            uint32_t id = next(i, 6);
            if (round == 0)
                ids[i] = id;
            else if (ids[i] != id)
                ids[i] = TN_SITE_NONE;
        }
    return NULL;
}

START_TEST(racing_threads_write_each_site_once)
{
    static uint32_t ids[THREADS][CHAINS];
    pthread_t threads[THREADS];
    start();
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, race, ids[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    ck_assert_int_eq(mock_site_count, CHAINS);
    for (int i = 0; i < CHAINS; i++) {
        ck_assert_uint_ge(ids[0][i], TN_SITE_FIRST);
        ck_assert_int_eq(mock_sites_with_id(ids[0][i]), 1);
        for (int t = 1; t < THREADS; t++)
            ck_assert_uint_eq(ids[t][i], ids[0][i]);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(ids[0][i], ids[0][k]);
    }
    for (int i = 0; i < mock_module_count; i++)
        for (int k = 0; k < i; k++)
            ck_assert(mock_modules[i].head.id != mock_modules[k].head.id && mock_modules[i].head.base != mock_modules[k].head.base);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("callsite_threads");
    TCase *t = tcase_create("callsite_threads");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, threads_have_stacks_of_their_own);
    tcase_add_test(t, racing_threads_write_each_site_once);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
