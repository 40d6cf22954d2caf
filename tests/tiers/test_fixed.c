/* Fixed blocks known by their address: what a free and a look-up make of any address, work that is still to be done, failures at every call, and
 * threads that free and look at the same blocks. */
#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

enum { BLOCKS = 8, STRIDE = 1536, THREADS = 3, ROUNDS = 20000 };

static tn_host *host;
static tn_fixed *fixed;
static tn_work work;
static char *base;

static tn_block_pool_options options_now(void)
{
    return (tn_block_pool_options){.backend = tn_host_backend(host), .tag = "fixed", .blocks = BLOCKS, .stride = STRIDE, .alignment = 512, .work = &work};
}

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
    work = device_begin();
    tn_block_pool_options options = options_now();
    expect_ok(tn_fixed_create(&options, &fixed));
    base = tn_stable_data(tn_block_pool_slab(tn_fixed_pool(fixed)));
}

static void end(void)
{
    if (fixed != NULL)
        expect_ok(tn_fixed_destroy(&fixed));
    fixture_finish(host);
}

static char *take(size_t bytes)
{
    tn_stable_span span;
    expect_ok(tn_fixed_take(fixed, bytes, TN_WORK_NO_QUEUE, &span));
    ck_assert_uint_eq(tn_stable_bytes(span), bytes);
    return tn_stable_data(span);
}

static tn_fixed_stats stats_now(void)
{
    tn_fixed_stats stats;
    tn_fixed_read_stats(fixed, &stats);
    return stats;
}

START_TEST(bad_options_are_refused_and_acquire_nothing)
{
    tn_block_pool_options good = options_now(), bad = good;
    tn_fixed *other = NULL;
    bad.backend = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(&bad, &other));
    bad = good;
    bad.blocks = 0;
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(&bad, &other));
    bad.blocks = TN_BLOCK_POOL_MAX + 1;
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(&bad, &other));
    bad = good;
    bad.stride = 100; /* no multiple of the alignment */
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(&bad, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(NULL, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_create(&good, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_destroy(NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_destroy(&other));
    ck_assert_ptr_null(other);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
}
END_TEST

START_TEST(a_take_is_a_block_of_the_slab_with_the_bytes_asked_for)
{
    tn_stable_span span;
    for (size_t i = 0; i < BLOCKS; i++) {
        char *block = take(STRIDE - i);
        ck_assert_uint_eq((size_t)(block - base) % STRIDE, 0);
        ck_assert_uint_lt((size_t)(block - base), (size_t)BLOCKS * STRIDE);
    }
    ck_assert_uint_eq(stats_now().live_bytes, (size_t)BLOCKS * STRIDE - BLOCKS * (BLOCKS - 1) / 2);
    expect_error(TN_MEM_E_EXHAUSTED, tn_fixed_take(fixed, 1, TN_WORK_NO_QUEUE, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    expect_error(TN_MEM_E_EXHAUSTED, tn_fixed_take(fixed, STRIDE + 1, TN_WORK_NO_QUEUE, &span));
    ck_assert_uint_eq(stats_now().too_large, 1);
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_take(fixed, 0, TN_WORK_NO_QUEUE, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_take(NULL, 1, TN_WORK_NO_QUEUE, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_take(fixed, 1, TN_WORK_NO_QUEUE, NULL));
    ck_assert_uint_eq(stats_now().pool.live, BLOCKS);
}
END_TEST

START_TEST(a_bad_free_changes_nothing_and_the_first_is_remembered)
{
    char *block = take(100);
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(fixed, block + 1, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(fixed, base - STRIDE, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(fixed, base + BLOCKS * STRIDE, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(fixed, NULL, NULL));
    expect_error(TN_MEM_E_STALE, tn_fixed_free(fixed, base + (BLOCKS - 1) * STRIDE, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(NULL, block, NULL));
    ck_assert_uint_eq(stats_now().pool.live, 1);
    expect_ok(tn_fixed_free(fixed, block, NULL));
    expect_error(TN_MEM_E_STALE, tn_fixed_free(fixed, block, NULL));
    tn_fixed_stats stats = stats_now();
    ck_assert_uint_eq(stats.bad_frees, 6);
    ck_assert_ptr_eq(stats.first_bad_free, block + 1);
    ck_assert(stats.pool.live == 0 && stats.live_bytes == 0 && stats.pool.bad_handles == 0);
}
END_TEST

START_TEST(a_byte_is_its_live_blocks)
{
    char *first = take(1000), *second = take(STRIDE);
    void *found = NULL;
    size_t bytes = 0;
    expect_ok(tn_fixed_find(fixed, first + 999, &found, &bytes));
    ck_assert(found == first && bytes == 1000);
    expect_error(TN_MEM_E_STALE, tn_fixed_find(fixed, first + 1000, &found, &bytes));
    expect_ok(tn_fixed_find(fixed, second, &found, &bytes));
    ck_assert(found == second && bytes == STRIDE);
    expect_ok(tn_fixed_find(fixed, second + STRIDE - 1, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_find(fixed, base - 1, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_find(fixed, base + BLOCKS * STRIDE, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_find(NULL, first, NULL, NULL));
    expect_ok(tn_fixed_free(fixed, second, NULL));
    expect_error(TN_MEM_E_STALE, tn_fixed_find(fixed, second, NULL, NULL));
    expect_ok(tn_fixed_find(fixed, first, NULL, NULL));
}
END_TEST

START_TEST(a_block_freed_in_flight_is_not_handed_out_before_it_is_done)
{
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(STRIDE);
    tn_work_set set = device_set(device_enqueue(2));
    expect_ok(tn_fixed_free(fixed, blocks[3], &set));
    tn_stable_span span;
    expect_error(TN_MEM_E_MUST_WAIT, tn_fixed_take(fixed, 1, TN_WORK_NO_QUEUE, &span));
    expect_error(TN_MEM_E_MUST_WAIT, tn_fixed_take(fixed, 1, 3, &span));
    expect_ok(tn_fixed_take(fixed, 7, 2, &span)); /* the queue of its work */
    ck_assert_ptr_eq(tn_stable_data(span), blocks[3]);
    set = device_set(device_enqueue(2));
    expect_ok(tn_fixed_free(fixed, blocks[3], &set));
    expect_error(TN_MEM_E_MUST_WAIT, tn_fixed_take(fixed, 1, TN_WORK_NO_QUEUE, &span));
    tn_fixed *kept = fixed;
    expect_error(TN_MEM_E_MUST_WAIT, tn_fixed_destroy(&fixed));
    ck_assert_ptr_eq(fixed, kept);
    ck_assert(stats_now().live_bytes == 0 && stats_now().pool.live == 0);
    device_finish(2);
    ck_assert_ptr_nonnull(take(1));
}
END_TEST

START_TEST(marks_without_a_work_table_are_an_argument)
{
    tn_block_pool_options options = options_now();
    options.work = NULL;
    tn_fixed *other;
    expect_ok(tn_fixed_create(&options, &other));
    tn_stable_span span;
    expect_ok(tn_fixed_take(other, 1, TN_WORK_NO_QUEUE, &span));
    tn_work_set set = device_set(device_enqueue(1)), none = {.count = 0};
    expect_error(TN_MEM_E_ARGUMENT, tn_fixed_free(other, tn_stable_data(span), &set));
    expect_ok(tn_fixed_find(other, tn_stable_data(span), NULL, NULL));
    expect_ok(tn_fixed_free(other, tn_stable_data(span), &none));
    expect_ok(tn_fixed_destroy(&other));
}
END_TEST

typedef struct budget {
    size_t calls_left, live;
} budget;

static void *resize_within(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    budget *b = self;
    if (new_bytes == 0) {
        b->live -= old_bytes;
        free(block);
        return NULL;
    }
    if (b->calls_left == 0)
        return NULL;
    b->calls_left--;
    b->live += new_bytes - old_bytes;
    return realloc(block, new_bytes);
}

START_TEST(a_failure_at_every_call_leaks_nothing)
{
    budget b = {0};
    tn_metadata metadata = {.resize = resize_within, .self = &b};
    tn_block_pool_options options = options_now();
    options.metadata = &metadata;
    tn_fixed *other = NULL;
    size_t acquired = fixture_count(host, TN_HOST_ACQUIRE, -1);
    for (size_t n = 0; n < 3; n++) {
        b.calls_left = n;
        expect_error(TN_MEM_E_HOST_MEMORY, tn_fixed_create(&options, &other));
        ck_assert(other == NULL && b.live == 0);
    }
    b.calls_left = SIZE_MAX;
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_fixed_create(&options, &other));
    ck_assert(other == NULL && b.live == 0);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), acquired);
    b.calls_left = 3;
    expect_ok(tn_fixed_create(&options, &other));
    tn_stable_span span;
    expect_ok(tn_fixed_take(other, 10, TN_WORK_NO_QUEUE, &span));
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_fixed_destroy(&other));
    expect_error(TN_MEM_E_STALE, tn_fixed_find(other, tn_stable_data(span), NULL, NULL));
    expect_ok(tn_fixed_take(other, 10, TN_WORK_NO_QUEUE, &span));
    expect_ok(tn_fixed_destroy(&other));
    ck_assert_uint_eq(b.live, 0);
}
END_TEST

/* A random life beside a table of what each block is: handed out only when free and clean, refused only when none is, found as it is. */
typedef struct model_block {
    size_t asked; /* 0: not live */
    tn_work_mark last[4]; /* of each queue; work that is ordered before a block's next use outlasts that */
} model_block;

static bool is_ready(const model_block *b, uint64_t queue)
{
    bool ready = b->asked == 0;
    for (int q = 1; q < 4; q++)
        ready = ready && (b->last[q].queue == 0 || device_done(b->last[q]) || device_ordered(b->last[q], queue));
    return ready;
}

START_TEST(a_random_life_agrees_with_a_table)
{
    uint64_t seed = fixture_seed(0xF17ED1 + (uint64_t)_i), waits = 0, refusals = 0;
    random_state random = {seed};
    model_block blocks[BLOCKS] = {{0}};
    for (size_t step = 0; step < 6000; step++) {
        const char *where = fixture_seed_line(seed, step);
        uint64_t what = random_below(&random, 100), queue = random_below(&random, 4);
        size_t at = random_below(&random, BLOCKS), live = 0, ready = 0;
        for (size_t i = 0; i < BLOCKS; i++) {
            live += blocks[i].asked > 0;
            ready += is_ready(&blocks[i], queue);
        }
        if (what < 45) {
            size_t bytes = 1 + random_below(&random, STRIDE);
            tn_stable_span span;
            tn_mem_error error = tn_fixed_take(fixed, bytes, queue, &span);
            ck_assert_msg(error == (ready > 0 ? TN_MEM_OK : live == BLOCKS ? TN_MEM_E_EXHAUSTED : TN_MEM_E_MUST_WAIT), "%s: %s", tn_mem_error_text(error), where);
            waits += error == TN_MEM_E_MUST_WAIT;
            refusals += error == TN_MEM_E_EXHAUSTED;
            if (error != TN_MEM_OK)
                continue;
            at = (size_t)((char *)tn_stable_data(span) - base) / STRIDE;
            ck_assert_msg(is_ready(&blocks[at], queue), "%s", where);
            blocks[at].asked = bytes;
        } else if (what < 85) {
            uint64_t of = random_below(&random, 4); /* 0: nothing is under way */
            tn_work_mark mark = of > 0 ? device_enqueue(of) : (tn_work_mark){0};
            tn_work_set set = device_set(mark);
            tn_mem_error error = tn_fixed_free(fixed, base + at * STRIDE, &set);
            ck_assert_msg(error == (blocks[at].asked > 0 ? TN_MEM_OK : TN_MEM_E_STALE), "%s", where);
            if (error == TN_MEM_OK)
                blocks[at].last[of] = mark;
            blocks[at].asked = 0;
        } else if (what < 92) {
            device_finish(1 + random_below(&random, 3));
        } else {
            size_t offset = random_below(&random, STRIDE), bytes = 0;
            void *found = NULL;
            tn_mem_error error = tn_fixed_find(fixed, base + at * STRIDE + offset, &found, &bytes);
            ck_assert_msg(error == (offset < blocks[at].asked ? TN_MEM_OK : TN_MEM_E_STALE), "%s", where);
            ck_assert_msg(error != TN_MEM_OK || (found == base + at * STRIDE && bytes == blocks[at].asked), "%s", where);
        }
        size_t bytes = 0;
        for (size_t i = 0; i < BLOCKS; i++)
            bytes += blocks[i].asked;
        ck_assert_msg(stats_now().live_bytes == bytes, "%s", where);
    }
    ck_assert_uint_gt(waits, 20);
    ck_assert_uint_gt(refusals, 20);
    device_finish_all();
}
END_TEST

/* Each block's first word is its holder's; who frees a block that another has, or is told of one as it is not, is found out. */
static uint64_t double_frees;
static size_t wrong;

static void *churn(void *argument)
{
    random_state random = {(uint64_t)(uintptr_t)argument};
    for (size_t i = 0; i < ROUNDS; i++) {
        tn_stable_span span;
        size_t bytes = 8 + random_below(&random, STRIDE - 8), found_bytes = 0;
        if (tn_fixed_take(fixed, bytes, TN_WORK_NO_QUEUE, &span) != TN_MEM_OK)
            continue;
        char *block = tn_stable_data(span);
        void *found = NULL;
        memset(block, (int)(uintptr_t)argument, bytes);
        bool right = tn_fixed_find(fixed, block + random_below(&random, bytes), &found, &found_bytes) == TN_MEM_OK && found == block &&
                     found_bytes == bytes;
        for (size_t k = 0; k < bytes; k++)
            right = right && block[k] == (char)(uintptr_t)argument;
        if (tn_fixed_free(fixed, block, NULL) != TN_MEM_OK)
            __atomic_fetch_add(&double_frees, 1, __ATOMIC_RELAXED);
        if (!right)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        /* What others hold is looked at too. */
        char *any = base + random_below(&random, BLOCKS * STRIDE);
        tn_mem_error error = tn_fixed_find(fixed, any, &found, &found_bytes);
        if (error == TN_MEM_OK ? (char *)found > any || any >= (char *)found + found_bytes || found_bytes < 8 || found_bytes > STRIDE
                               : error != TN_MEM_E_STALE)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(threads_never_hold_one_block_together)
{
    pthread_t threads[THREADS];
    uint64_t seed = fixture_seed(0xF17ED);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(seed + i)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_msg(wrong == 0 && double_frees == 0, "%zu answers were wrong: %s", wrong, fixture_seed_line(seed, 0));
    ck_assert_uint_eq(stats_now().pool.live, 0);
}
END_TEST

/* Of two frees of one address one is an error, whoever comes first. */
static void *free_it(void *block)
{
    return (void *)(uintptr_t)(tn_fixed_free(fixed, block, NULL) == TN_MEM_OK);
}

START_TEST(a_block_is_freed_once_whoever_comes_first)
{
    for (int i = 0; i < 300; i++) {
        char *block = take(1);
        pthread_t threads[2];
        void *freed[2];
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(pthread_create(&threads[k], NULL, free_it, block), 0);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], &freed[k]);
        ck_assert_uint_eq((uintptr_t)freed[0] + (uintptr_t)freed[1], 1);
    }
    ck_assert_uint_eq(stats_now().bad_frees, 300);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fixed");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_options_are_refused_and_acquire_nothing);
    tcase_add_test(tests, a_take_is_a_block_of_the_slab_with_the_bytes_asked_for);
    tcase_add_test(tests, a_bad_free_changes_nothing_and_the_first_is_remembered);
    tcase_add_test(tests, a_byte_is_its_live_blocks);
    tcase_add_test(tests, a_block_freed_in_flight_is_not_handed_out_before_it_is_done);
    tcase_add_test(tests, marks_without_a_work_table_are_an_argument);
    tcase_add_test(tests, a_failure_at_every_call_leaks_nothing);
    tcase_add_loop_test(tests, a_random_life_agrees_with_a_table, 0, 6);
    tcase_add_test(tests, threads_never_hold_one_block_together);
    tcase_add_test(tests, a_block_is_freed_once_whoever_comes_first);
    return fixture_run("fixed", tests);
}
