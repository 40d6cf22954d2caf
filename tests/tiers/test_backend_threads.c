/* Threads on one backend of each kind that calls the driver and does not grow: what each has is its own, an old copy of a region is stale whoever
 * comes with it, and the figures add up at the end. test_backend_vmm has the same for the one that grows. */
#include <pthread.h>
#include <string.h>

#include "fault_cuda.h" /* whose calls exclude each other, as the stand-in needs */
#include "fixture.h"
#include "stand_in_cuda.h"

enum { THREADS = 3, KEEPS = 6 };

#ifdef __SANITIZE_THREAD__
#define ROUNDS 600
#else
#define ROUNDS 3000
#endif

typedef struct worker {
    pthread_t thread;
    tn_backend *backend;
    uint64_t seed, acquires;
    const char *failure;
} worker;

#define claim(condition)                                         \
    do {                                                         \
        if (!(condition) && w->failure == NULL)                  \
            w->failure = #condition;                             \
    } while (0)

static void give(worker *w, tn_region *region, unsigned char fill)
{
    const unsigned char *data = region->base;
    for (size_t i = 0; i < region->committed; i++)
        claim(data[i] == fill);
    tn_region copy = *region;
    claim(tn_backend_release(w->backend, region) == TN_MEM_OK);
    claim(tn_backend_release(w->backend, &copy) == TN_MEM_E_STALE);
    region->base = NULL;
}

static void *run(void *argument)
{
    worker *w = argument;
    random_state random = {w->seed};
    tn_region keeps[KEEPS] = {{0}};
    unsigned char fills[KEEPS] = {0};
    for (size_t i = 0; i < ROUNDS && w->failure == NULL; i++) {
        size_t k = random_below(&random, KEEPS), bytes = 1 + random_below(&random, 3000);
        if (keeps[k].base != NULL) {
            give(w, &keeps[k], fills[k]);
            continue;
        }
        size_t alignment = (size_t)1 << random_below(&random, 13);
        claim(tn_backend_acquire(w->backend, bytes, alignment, "t", &keeps[k]) == TN_MEM_OK);
        if (w->failure != NULL)
            break;
        claim((uintptr_t)keeps[k].base % alignment == 0 && keeps[k].committed == bytes);
        fills[k] = (unsigned char)random_next(&random);
        memset(keeps[k].base, fills[k], bytes);
        w->acquires++;
    }
    for (size_t k = 0; k < KEEPS; k++)
        if (keeps[k].base != NULL)
            give(w, &keeps[k], fills[k]);
    return NULL;
}

static void work_together(tn_backend *backend)
{
    uint64_t seed = fixture_seed(0xBAC4E4D), acquires = 0;
    random_state random = {seed};
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.backend = backend, .seed = random_next(&random)};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_msg(workers[i].failure == NULL, "%s does not hold: %s", workers[i].failure, fixture_seed_line(seed, 0));
        acquires += workers[i].acquires;
    }
    tn_backend_stats stats;
    tn_backend_read_stats(backend, &stats);
    ck_assert_uint_eq(stats.acquires, acquires);
    ck_assert_uint_eq(stats.releases, acquires);
    ck_assert_uint_eq(stats.refused, acquires); /* a stale copy each */
    ck_assert(stats.live == 0 && stats.reserved == 0);
    ck_assert_uint_gt(acquires, ROUNDS);
}

START_TEST(plain_memory)
{
    tn_driver *driver = NULL;
    stand_in_start(GIB);
    expect_ok(tn_driver_create(&(tn_driver_options){.cuda = fault_cuda(stand_in_cuda())}, &driver));
    work_together(tn_driver_backend(driver));
    ck_assert_uint_eq(tn_driver_padding(driver), 0);
    ck_assert_uint_eq(tn_driver_destroy(driver), 0);
    ck_assert_uint_eq(stand_in_physical(), 0);
}
END_TEST

START_TEST(stream_ordered_memory)
{
    static char stream;
    tn_async *async = NULL;
    stand_in_start(GIB);
    expect_ok(tn_async_create(&(tn_async_options){.cuda = fault_cuda(stand_in_cuda()), .stream = &stream}, &async));
    work_together(tn_async_backend(async));
    ck_assert_uint_eq(tn_async_destroy(async), 0);
    ck_assert_uint_eq(stand_in_physical(), 0);
}
END_TEST

START_TEST(pinned_memory)
{
    tn_pinned *pinned = NULL;
    stand_in_start(GIB);
    expect_ok(tn_pinned_create(&(tn_pinned_options){.cuda = fault_cuda(stand_in_cuda()), .flags = TN_PINNED_PORTABLE}, &pinned));
    work_together(tn_pinned_backend(pinned));
    ck_assert_uint_eq(tn_pinned_destroy(pinned), 0);
    ck_assert_uint_eq(stand_in_pinned(), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("backend_threads");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, plain_memory);
    tcase_add_test(tests, stream_ordered_memory);
    tcase_add_test(tests, pinned_memory);
    return fixture_run("backend_threads", tests);
}
