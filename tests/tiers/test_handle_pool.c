/* The handle pool over a stand-in table that knows which handles exist: no handle is given out twice, none is lost, one that left is the
 * program's; clean before it is given out; failures of the table at every call. */
#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

enum { MOST = 64, SIZE = 2 << 20 };

/* Handles are odd numbers far apart, as a driver's are; one that was destroyed is given again. */
typedef struct stand_in {
    bool exists[MOST];
    size_t calls, fail_at; /* the call that fails; 0: none */
    bool repeat;           /* gives a handle that exists */
} stand_in;

static stand_in driver;
static tn_handle_pool *pool;
static tn_work work;

static uint64_t handle_of(size_t i)
{
    return (uint64_t)i << 36 | 0x7F0001;
}

static tn_mem_error create(void *self, size_t bytes, uint64_t *handle)
{
    stand_in *s = self;
    ck_assert_uint_eq(bytes, SIZE);
    if (++s->calls == s->fail_at)
        return TN_MEM_E_OUT_OF_MEMORY;
    size_t i = 0;
    while (s->exists[i] && !s->repeat)
        i++;
    ck_assert_uint_lt(i, MOST);
    s->exists[i] = true;
    *handle = handle_of(i);
    return TN_MEM_OK;
}

static tn_mem_error destroy(void *self, uint64_t handle)
{
    stand_in *s = self;
    if (++s->calls == s->fail_at)
        return TN_MEM_E_DRIVER;
    ck_assert(s->exists[handle >> 36]);
    s->exists[handle >> 36] = false;
    return TN_MEM_OK;
}

static const tn_handle_table table = {.create = create, .destroy = destroy};

static size_t existing(void)
{
    size_t count = 0;
    for (size_t i = 0; i < MOST; i++)
        count += driver.exists[i];
    return count;
}

static void begin(void)
{
    driver = (stand_in){.fail_at = 0};
    work = device_begin();
}

static void end(void)
{
    if (pool != NULL)
        expect_ok(tn_handle_pool_destroy(&pool));
    ck_assert_uint_eq(existing(), 0);
}

static tn_handle_pool_options options(size_t handles)
{
    return (tn_handle_pool_options){.table = &table, .self = &driver, .bytes = SIZE, .handles = handles, .work = &work};
}

static void make(size_t handles)
{
    tn_handle_pool_options o = options(handles);
    expect_ok(tn_handle_pool_create(&o, &pool));
}

static tn_handle_pool_stats stats_now(void)
{
    tn_handle_pool_stats stats;
    tn_handle_pool_read_stats(pool, &stats);
    ck_assert_uint_eq(stats.free + stats.taken, stats.handles);
    return stats;
}

static uint64_t take(void)
{
    uint64_t handle = 0;
    expect_ok(tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &handle));
    ck_assert(driver.exists[handle >> 36]);
    return handle;
}

static void give_back(uint64_t handle)
{
    expect_ok(tn_handle_pool_return(pool, handle, NULL));
}

START_TEST(bad_options_are_refused_and_create_nothing)
{
    const tn_handle_table holes[] = {{.create = create}, {.destroy = destroy}};
    tn_work no_table = {0};
    tn_handle_pool_options good = options(1), bad[] = {good, good, good, good, good, good};
    bad[0].table = NULL;
    bad[1].table = &holes[0];
    bad[2].table = &holes[1];
    bad[3].bytes = 0;
    bad[4].handles = 0;
    bad[5].work = &no_table;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_create(&bad[i], &pool));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_create(NULL, &pool));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_create(&good, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_destroy(&pool));
    good.handles = SIZE_MAX;
    expect_error(TN_MEM_E_HOST_MEMORY, tn_handle_pool_create(&good, &pool));
    ck_assert_uint_eq(driver.calls, 0);
    ck_assert_ptr_null(pool);
}
END_TEST

START_TEST(handles_are_created_ahead_and_taken_without_the_table)
{
    make(3);
    ck_assert_uint_eq(existing(), 3);
    size_t calls = driver.calls;
    uint64_t a = take(), b = take(), c = take(), none = 99;
    ck_assert(a != b && b != c && a != c);
    expect_error(TN_MEM_E_EXHAUSTED, tn_handle_pool_take(pool, SIZE, 0, &none));
    give_back(b);
    ck_assert_uint_eq(take(), b);
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_take(pool, SIZE - 1, 0, &none));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_take(pool, 0, 0, &none));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_take(pool, SIZE, 0, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_take(NULL, SIZE, 0, &none));
    ck_assert_uint_eq(none, 99);
    ck_assert_uint_eq(driver.calls, calls);
    ck_assert_uint_eq(stats_now().high_water, 3);
    ck_assert_uint_eq(stats_now().exhausted, 1);
    expect_error(TN_MEM_E_LEFTOVER, tn_handle_pool_destroy(&pool));
    give_back(a), give_back(b), give_back(c);
}
END_TEST

START_TEST(a_return_of_what_is_not_taken_is_an_error)
{
    make(2);
    uint64_t a = take();
    give_back(a);
    expect_error(TN_MEM_E_STALE, tn_handle_pool_return(pool, a, NULL));
    expect_error(TN_MEM_E_FOREIGN, tn_handle_pool_return(pool, 12345, NULL));
    expect_error(TN_MEM_E_STALE, tn_handle_pool_leave(pool, a));
    expect_error(TN_MEM_E_FOREIGN, tn_handle_pool_leave(pool, 0));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_return(NULL, a, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_leave(NULL, a));
    ck_assert_uint_eq(stats_now().bad_handles, 4);
    ck_assert_uint_eq(stats_now().free, 2);
}
END_TEST

START_TEST(a_handle_that_leaves_is_the_programs_alone)
{
    make(3);
    uint64_t a = take(), b = take();
    expect_ok(tn_handle_pool_leave(pool, a));
    expect_error(TN_MEM_E_FOREIGN, tn_handle_pool_return(pool, a, NULL));
    expect_error(TN_MEM_E_FOREIGN, tn_handle_pool_leave(pool, a));
    ck_assert_uint_eq(stats_now().handles, 2);
    ck_assert_uint_eq(stats_now().left, 1);
    expect_ok(tn_handle_pool_refill(pool));
    ck_assert_uint_eq(stats_now().handles, 3);
    ck_assert_uint_eq(stats_now().created, 4);
    ck_assert_uint_eq(existing(), 4);
    give_back(b);
    expect_ok(tn_handle_pool_destroy(&pool));
    ck_assert_uint_eq(existing(), 1); /* the pool left it alone */
    expect_ok(destroy(&driver, a));
}
END_TEST

START_TEST(a_handle_is_clean_before_it_is_taken)
{
    make(2);
    uint64_t a = take(), b = take(), none = 0;
    tn_work_set first = device_set(device_enqueue(1)), second = device_set(device_enqueue(2));
    expect_ok(tn_handle_pool_return(pool, a, &first));
    expect_ok(tn_handle_pool_return(pool, b, &second));
    expect_error(TN_MEM_E_MUST_WAIT, tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &none));
    expect_error(TN_MEM_E_MUST_WAIT, tn_handle_pool_take(pool, SIZE, 3, &none));
    expect_ok(tn_handle_pool_take(pool, SIZE, 2, &none));
    ck_assert_uint_eq(none, b);
    give_back(b); /* what was before it may still run */
    expect_error(TN_MEM_E_MUST_WAIT, tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &none));
    device_finish(2);
    ck_assert_uint_eq(take(), b);
    device_finish(1);
    ck_assert_uint_eq(take(), a);
    ck_assert_uint_eq(stats_now().must_waits, 3);
    give_back(a), give_back(b);
    expect_ok(tn_handle_pool_destroy(&pool));
    tn_handle_pool_options o = options(1);
    o.work = NULL;
    expect_ok(tn_handle_pool_create(&o, &pool));
    a = take();
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_return(pool, a, &first));
    give_back(a);
}
END_TEST

START_TEST(a_drain_destroys_the_free_ones_alone)
{
    make(4);
    uint64_t a = take(), b = take();
    tn_work_set set = device_set(device_enqueue(1));
    expect_ok(tn_handle_pool_return(pool, b, &set));
    driver.fail_at = driver.calls + 2;
    expect_error(TN_MEM_E_DRIVER, tn_handle_pool_drain(pool));
    ck_assert_uint_eq(stats_now().handles, 3);
    ck_assert_uint_eq(existing(), 3);
    expect_ok(tn_handle_pool_drain(pool));
    ck_assert_uint_eq(stats_now().handles, 1);
    ck_assert_uint_eq(stats_now().destroyed, 3);
    ck_assert_uint_eq(existing(), 1);
    expect_ok(tn_handle_pool_refill_some(pool, 0));
    ck_assert_uint_eq(stats_now().free, 0);
    expect_ok(tn_handle_pool_refill_some(pool, 2));
    ck_assert_uint_eq(stats_now().free, 2);
    expect_ok(tn_handle_pool_refill_some(pool, 2)); /* one more is as many as it is to have */
    ck_assert_uint_eq(stats_now().free, 3);
    /* Nothing of what was destroyed sticks to the new ones. */
    uint64_t more[] = {take(), take(), take()};
    for (size_t i = 0; i < 3; i++)
        give_back(more[i]);
    give_back(a);
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_drain(NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_handle_pool_refill(NULL));
}
END_TEST

START_TEST(a_failed_destroy_keeps_the_marks_of_its_handle)
{
    make(1);
    uint64_t a = take(), none;
    tn_work_set set = device_set(device_enqueue(1));
    expect_ok(tn_handle_pool_return(pool, a, &set));
    driver.fail_at = driver.calls + 1;
    expect_error(TN_MEM_E_DRIVER, tn_handle_pool_drain(pool));
    expect_error(TN_MEM_E_MUST_WAIT, tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &none));
    device_finish(1);
    ck_assert_uint_eq(take(), a);
    give_back(a);
}
END_TEST

START_TEST(a_table_that_gives_a_handle_twice_is_found_out)
{
    driver.repeat = true;
    tn_handle_pool_options o = options(2);
    expect_error(TN_MEM_E_DRIVER, tn_handle_pool_create(&o, &pool));
    ck_assert_ptr_null(pool);
}
END_TEST

START_TEST(a_failure_of_the_table_at_every_call_loses_no_handle)
{
    enum { HANDLES = 3 };
    size_t n = 1;
    for (;; n++) {
        driver = (stand_in){.fail_at = n};
        tn_handle_pool_options o = options(HANDLES);
        tn_mem_error error = tn_handle_pool_create(&o, &pool);
        if (error != TN_MEM_OK) {
            expect_error(TN_MEM_E_OUT_OF_MEMORY, error);
            ck_assert_ptr_null(pool);
            ck_assert_uint_eq(existing(), 0);
            continue;
        }
        uint64_t a = take();
        expect_ok(tn_handle_pool_leave(pool, a));
        error = tn_handle_pool_refill(pool);
        if (error == TN_MEM_OK)
            error = tn_handle_pool_drain(pool);
        bool failed = error != TN_MEM_OK;
        ck_assert_uint_eq(existing(), stats_now().handles + 1);
        driver.fail_at = 0;
        expect_ok(tn_handle_pool_refill(pool)); /* a place whose handle could not be created or was destroyed is filled after all */
        ck_assert_uint_eq(stats_now().handles, HANDLES);
        expect_ok(tn_handle_pool_destroy(&pool));
        expect_ok(destroy(&driver, a));
        if (!failed)
            break;
    }
    ck_assert_uint_eq(n, HANDLES + 1 + HANDLES + 1); /* created, refilled, drained; then nothing fails */
}
END_TEST

static void *resize_within(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    size_t *calls_left = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return *calls_left > 0 && (*calls_left)-- > 0 ? realloc(block, new_bytes) : NULL;
}

START_TEST(a_failure_at_every_call_for_metadata_creates_nothing)
{
    size_t calls_left;
    tn_metadata metadata = {.resize = resize_within, .self = &calls_left};
    for (size_t n = 0; n < 3; n++) {
        calls_left = n;
        tn_handle_pool_options o = options(2);
        o.metadata = &metadata;
        expect_error(TN_MEM_E_HOST_MEMORY, tn_handle_pool_create(&o, &pool));
        ck_assert_uint_eq(driver.calls, 0);
    }
}
END_TEST

/* Against a plain list of who has what. */
START_TEST(a_random_life_loses_and_doubles_no_handle)
{
    enum { HANDLES = 12, STEPS = 5000 };
    uint64_t seed = fixture_seed(0x4A4D1E01 + (uint64_t)_i), mine[HANDLES], gone[MOST];
    size_t taken = 0, left = 0;
    random_state random = {seed};
    make(HANDLES);
    for (size_t step = 0; step < STEPS; step++) {
        const char *where = fixture_seed_line(seed, step);
        uint64_t what = random_below(&random, 100), handle;
        size_t pick = taken > 0 ? random_below(&random, taken) : 0;
        if (what < 50) {
            tn_mem_error error = tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &handle);
            ck_assert_msg((error == TN_MEM_OK) == (taken < stats_now().handles) || error == TN_MEM_E_EXHAUSTED, "%s", where);
            for (size_t i = 0; error == TN_MEM_OK && i < taken; i++)
                ck_assert_msg(mine[i] != handle, "%s", where);
            if (error == TN_MEM_OK)
                mine[taken++] = handle;
        } else if (what < 90 && taken > 0) {
            give_back(mine[pick]);
            mine[pick] = mine[--taken];
        } else if (what < 94 && taken > 0 && left < MOST - HANDLES) {
            expect_ok(tn_handle_pool_leave(pool, mine[pick]));
            gone[left++] = mine[pick];
            mine[pick] = mine[--taken];
        } else if (what < 96) {
            expect_ok(tn_handle_pool_drain(pool));
            ck_assert_msg(stats_now().handles == taken, "%s", where);
        } else if (what < 98) {
            expect_ok(tn_handle_pool_refill(pool));
            ck_assert_msg(stats_now().handles == HANDLES, "%s", where);
        } else if (left > 0) {
            expect_ok(destroy(&driver, gone[--left]));
        }
        ck_assert_msg(stats_now().taken == taken && existing() == stats_now().handles + left, "%s", where);
    }
    while (taken > 0)
        give_back(mine[--taken]);
    while (left > 0)
        expect_ok(destroy(&driver, gone[--left]));
}
END_TEST

/* Threads count on a place per handle who has it. */
static uint32_t holders[MOST];

static void *take_and_return(void *failed)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t handle;
        if (tn_handle_pool_take(pool, SIZE, TN_WORK_NO_QUEUE, &handle) != TN_MEM_OK)
            continue;
        if (__atomic_fetch_add(&holders[handle >> 36], 1, __ATOMIC_SEQ_CST) != 0)
            *(int *)failed = 1;
        __atomic_fetch_sub(&holders[handle >> 36], 1, __ATOMIC_SEQ_CST);
        if (tn_handle_pool_return(pool, handle, NULL) != TN_MEM_OK)
            *(int *)failed = 1;
    }
    return NULL;
}

START_TEST(threads_never_have_the_same_handle)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int failed[THREADS] = {0};
    make(THREADS - 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_return, &failed[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(failed[i], 0);
    }
    ck_assert_uint_eq(stats_now().free, THREADS - 1);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("handle_pool");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_options_are_refused_and_create_nothing);
    tcase_add_test(tests, handles_are_created_ahead_and_taken_without_the_table);
    tcase_add_test(tests, a_return_of_what_is_not_taken_is_an_error);
    tcase_add_test(tests, a_handle_that_leaves_is_the_programs_alone);
    tcase_add_test(tests, a_handle_is_clean_before_it_is_taken);
    tcase_add_test(tests, a_drain_destroys_the_free_ones_alone);
    tcase_add_test(tests, a_failed_destroy_keeps_the_marks_of_its_handle);
    tcase_add_test(tests, a_table_that_gives_a_handle_twice_is_found_out);
    tcase_add_test(tests, a_failure_of_the_table_at_every_call_loses_no_handle);
    tcase_add_test(tests, a_failure_at_every_call_for_metadata_creates_nothing);
    tcase_add_loop_test(tests, a_random_life_loses_and_doubles_no_handle, 0, 8);
    tcase_add_test(tests, threads_never_have_the_same_handle);
    return fixture_run("handle_pool", tests);
}
