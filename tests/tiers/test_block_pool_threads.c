/* One pool and several threads, also under ThreadSanitizer: blocks are written without any other synchronisation than the pool's, so that a
 * block given to two at once is a wrong value here and a race there. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "pool_fixture.h"

enum { THREADS = 4, BLOCKS = 24, HELD = 8, MAIL = 6, STRIDE = 16 * 1024, ROUNDS = 1200, DRAINS = 10 };

static pthread_barrier_t barrier, drained;
static uint64_t written[BLOCKS]; /* by whoever acquired the block; read by all who share it */
static size_t failures, must_waits, exhausted, handed;
static bool stop;

#define ADD(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)

/* A thread must not end a Check test: it counts, and the test looks at the count. */
#define must(condition)        \
    do {                       \
        if (!(condition))      \
            ADD(failures);     \
    } while (0)

/* Owners on their way from one thread to another. */
static struct {
    pthread_mutex_t lock;
    tn_block owner;
    uint64_t value;
} mail[MAIL];

typedef struct held {
    tn_block owner;
    uint64_t value;
} held;

static void let_go(held *h, random_state *random)
{
    tn_work_mark marks[2];
    size_t count = random_below(random, 3);
    must(written[tn_block_id(&h->owner)] == h->value);
    for (size_t i = 0; i < count; i++)
        marks[i] = device_enqueue(1 + random_below(random, DEVICE_QUEUES));
    must(tn_block_pool_release(pool, &h->owner, marks, count) == TN_MEM_OK);
}

static void get(held *h, random_state *random, uint64_t value)
{
    tn_mem_error error = tn_block_pool_acquire(pool, random_below(random, DEVICE_QUEUES + 1), &h->owner);
    if (error == TN_MEM_OK) {
        h->value = value;
        written[tn_block_id(&h->owner)] = value;
        tn_stable_span span;
        if (pool->options.backend != NULL) {
            must(tn_block_pool_span(pool, &h->owner, &span) == TN_MEM_OK);
            memcpy(tn_stable_data(span), &value, sizeof value);
        }
        return;
    }
    must(error == TN_MEM_E_MUST_WAIT || error == TN_MEM_E_EXHAUSTED);
    ADD(*(error == TN_MEM_E_MUST_WAIT ? &must_waits : &exhausted));
    if (error == TN_MEM_E_MUST_WAIT) {
        error = tn_block_pool_wait(pool);
        must(error == TN_MEM_OK || error == TN_MEM_E_EXHAUSTED); /* another thread may have had it by then */
    }
}

static void post(held *h, random_state *random)
{
    size_t box = random_below(random, MAIL);
    pthread_mutex_lock(&mail[box].lock);
    if (tn_block_is_empty(&mail[box].owner)) {
        tn_mem_error error = tn_block_pool_share(pool, &h->owner, &mail[box].owner);
        must(error == TN_MEM_OK || error == TN_MEM_E_EXHAUSTED);
        mail[box].value = h->value;
    }
    pthread_mutex_unlock(&mail[box].lock);
}

static void fetch(held *h, random_state *random)
{
    size_t box = random_below(random, MAIL);
    pthread_mutex_lock(&mail[box].lock);
    if (tn_block_move(&mail[box].owner, &h->owner)) {
        h->value = mail[box].value;
        ADD(handed);
    }
    pthread_mutex_unlock(&mail[box].lock);
}

static void empty_mail(void)
{
    for (int i = 0; i < MAIL; i++)
        if (!tn_block_is_empty(&mail[i].owner))
            must(tn_block_pool_release(pool, &mail[i].owner, NULL, 0) == TN_MEM_OK);
}

static void run_rounds(held *mine, random_state *random, uint64_t self, uint64_t drain)
{
    for (uint64_t round = drain * ROUNDS + 1; round <= (drain + 1) * ROUNDS; round++) {
        held *h = &mine[random_below(random, HELD)];
        uint64_t what = random_below(random, 10);
        if (tn_block_is_empty(&h->owner)) {
            if (what < 8)
                get(h, random, self << 32 | round);
            else
                fetch(h, random);
        } else if (what < 6) {
            let_go(h, random);
        } else if (what < 9) {
            must(written[tn_block_id(&h->owner)] == h->value);
            post(h, random);
        } else {
            must(tn_block_pool_look(pool, &h->owner, NULL) == TN_MEM_OK);
        }
    }
    for (size_t i = 0; i < HELD; i++)
        if (!tn_block_is_empty(&mine[i].owner))
            let_go(&mine[i], random);
}

/* Now and then all is given back, and the slab with it. */
static void *run_requests(void *arg)
{
    uint64_t self = (uintptr_t)arg;
    random_state random = {fixture_seed(0x7EAD) + self};
    held mine[HELD];
    for (size_t i = 0; i < HELD; i++)
        mine[i].owner = tn_block_none();
    pthread_barrier_wait(&barrier);
    for (uint64_t drain = 0; drain < DRAINS; drain++) {
        run_rounds(mine, &random, self, drain);
        if (pthread_barrier_wait(&drained) == PTHREAD_BARRIER_SERIAL_THREAD) {
            empty_mail();
            device_finish_all();
            tn_mem_error error = tn_block_pool_trim(pool);
            must(error == TN_MEM_OK || error == TN_MEM_E_NOT_GROWABLE);
        }
        pthread_barrier_wait(&drained);
    }
    return NULL;
}

/* The device gets on, the figures are read, and the slab is given back, while all that goes on. */
static void *run_device(void *arg)
{
    bool grows = arg != NULL;
    random_state random = {77};
    pthread_barrier_wait(&barrier);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        device_finish(1 + random_below(&random, DEVICE_QUEUES), 1 + random_below(&random, 4));
        tn_block_pool_stats stats;
        tn_block_pool_read_stats(pool, &stats);
        must(stats.free + stats.waiting + stats.live == stats.committed);
        must(stats.references == stats.live + stats.shares && stats.bad_handles == 0);
        switch (random_below(&random, 8)) {
        case 0:
            tn_block_pool_collect(pool);
            break;
        case 1:
            must(tn_block_pool_trim(pool) == (grows ? TN_MEM_OK : TN_MEM_E_NOT_GROWABLE));
            break;
        case 2:
            must(tn_block_pool_step(pool) == TN_MEM_OK);
            break;
        case 3:
            must(tn_pool_is_sound(pool));
        }
    }
    return NULL;
}

static void run_all(bool grows)
{
    pthread_t threads[THREADS], device;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    pthread_barrier_init(&drained, NULL, THREADS);
    for (int i = 0; i < MAIL; i++) {
        pthread_mutex_init(&mail[i].lock, NULL);
        mail[i].owner = tn_block_none();
    }
    pthread_create(&device, NULL, run_device, grows ? pool : NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_requests, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(device, NULL);
    ck_assert_uint_eq(failures, 0);
    ck_assert_uint_eq(stats_now().live, 0);
    ck_assert_uint_eq(stats_now().bad_handles, 0);
    ck_assert_uint_gt(handed, 50);
    ck_assert_uint_gt(must_waits + exhausted, 0);
}

START_TEST(threads_share_a_pool_of_slots)
{
    make_slots(BLOCKS, BLOCKS, &device_work);
    run_all(false);
}
END_TEST

START_TEST(threads_share_a_pool_that_grows_and_shrinks)
{
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "kv", .blocks = BLOCKS,
                                                            .stride = STRIDE, .max_shares = BLOCKS, .chunk_blocks = 4,
                                                            .idle_steps = 3, .work = &device_work},
                                   &pool));
    run_all(true);
    ck_assert_uint_ge(stats_now().grown, DRAINS);
    ck_assert_uint_eq(stats_now().trimmed, stats_now().grown);
}
END_TEST

static tn_block one, copies[THREADS];
static size_t successes;

static void *release_a_copy(void *arg)
{
    size_t self = (uintptr_t)arg;
    for (int round = 0; round < 1000; round++) {
        pthread_barrier_wait(&barrier); /* the copies are there */
        tn_mem_error error = tn_block_pool_release(pool, &copies[self], NULL, 0);
        if (error == TN_MEM_OK)
            ADD(successes);
        else
            must(error == TN_MEM_E_STALE);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

START_TEST(of_copies_released_at_once_one_succeeds)
{
    make_slots(4, 4, NULL);
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, release_a_copy, (void *)i);
    for (size_t round = 1; round <= 1000; round++) {
        one = take();
        for (int i = 0; i < THREADS; i++)
            copies[i] = one;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        ck_assert_uint_eq(__atomic_load_n(&successes, __ATOMIC_RELAXED), round);
        one = tn_block_none();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(failures, 0);
    ck_assert_uint_eq(stats_now().free, 4);
    ck_assert_uint_eq(stats_now().bad_handles, 1000 * (THREADS - 1));
}
END_TEST

/* Each would be served by growing: one commits, and the others wait for it, so that nobody hears of exhaustion. */
static void *take_one(void *arg)
{
    tn_block *block = arg;
    pthread_barrier_wait(&barrier);
    must(tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, block) == TN_MEM_OK);
    return NULL;
}

START_TEST(threads_that_find_the_pool_growing_wait_for_it)
{
    for (int round = 0; round < 50; round++) {
        expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "kv", .blocks = THREADS,
                                                                .stride = 4 * STRIDE, .chunk_blocks = THREADS},
                                       &pool));
        pthread_t threads[THREADS];
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            copies[i] = tn_block_none();
            pthread_create(&threads[i], NULL, take_one, &copies[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        ck_assert_uint_eq(failures, 0);
        ck_assert_uint_eq(stats_now().grown, 1);
        for (int i = 0; i < THREADS; i++)
            give(&copies[i]);
        expect_ok(tn_block_pool_destroy(&pool));
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_threads");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, threads_share_a_pool_of_slots);
    tcase_add_test(tests, threads_share_a_pool_that_grows_and_shrinks);
    tcase_add_test(tests, of_copies_released_at_once_one_succeeds);
    tcase_add_test(tests, threads_that_find_the_pool_growing_wait_for_it);
    return fixture_run("block_pool_threads", tests);
}
