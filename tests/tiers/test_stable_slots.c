/* Stable slots: the same key, the same address; no other key's while it may come back; clean before it does. Rules one by one, a random life
 * beside a model, and failures at every call. */
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

static tn_host *host;
static tn_stable_slots *slots;
static tn_work work;

static void make(size_t capacity, size_t count)
{
    expect_ok(tn_stable_slots_create(&(tn_stable_slots_options){.backend = tn_host_backend(host), .tag = "stable", .capacity = capacity,
                                                                .slots = count, .work = &work},
                                     &slots));
}

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
    work = device_begin();
}

static void end(void)
{
    if (slots != NULL)
        expect_ok(tn_stable_slots_destroy(&slots));
    fixture_finish(host);
}

static tn_stable_slots_stats stats_now(void)
{
    tn_stable_slots_stats stats;
    tn_stable_slots_read_stats(slots, &stats);
    return stats;
}

static tn_mem_error try_take(uint64_t key, size_t bytes, size_t alignment, char **data)
{
    tn_stable_span span;
    tn_mem_error error = tn_stable_slots_take(slots, key, bytes, alignment, TN_WORK_NO_QUEUE, &span);
    ck_assert_uint_eq(tn_stable_bytes(span), error == TN_MEM_OK ? bytes : 0);
    *data = tn_stable_data(span);
    return error;
}

static char *take(uint64_t key, size_t bytes)
{
    char *data;
    expect_ok(try_take(key, bytes, 0, &data));
    memset(data, (int)(key % 200), bytes);
    return data;
}

static void release(uint64_t key)
{
    expect_ok(tn_stable_slots_release(slots, key, NULL));
}

START_TEST(bad_options_are_refused_and_acquire_nothing)
{
    tn_backend *b = tn_host_backend(host);
    tn_work no_table = {0};
    const tn_stable_slots_options bad[] = {
        {.tag = "t", .capacity = 1, .slots = 1},
        {.backend = b, .capacity = 1, .slots = 1},
        {.backend = b, .tag = "t", .slots = 1},
        {.backend = b, .tag = "t", .capacity = 1},
        {.backend = b, .tag = "t", .capacity = 1, .slots = 1, .alignment = 3},
        {.backend = b, .tag = "t", .capacity = 1, .slots = 1, .work = &no_table},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_create(&bad[i], &slots));
    tn_stable_slots_options o = {.backend = b, .tag = "t", .capacity = 1, .slots = SIZE_MAX};
    expect_error(TN_MEM_E_HOST_MEMORY, tn_stable_slots_create(&o, &slots));
    o = (tn_stable_slots_options){.backend = b, .tag = "t", .capacity = SIZE_MAX, .slots = 1};
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_stable_slots_create(&o, &slots));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_create(NULL, &slots));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_create(&o, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_destroy(&slots));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(a_released_slot_comes_back_to_its_key_at_the_same_address)
{
    make(64 * KIB, 8);
    char *a = take(7, 1000), *b = take(0, 2000), *c = take(UINT64_MAX, 10);
    ck_assert_ptr_ne(a, b);
    release(7);
    release(0);
    /* A stranger never gets a released one, however well it would fit. */
    char *d = take(8, 1000);
    ck_assert(d != a && d != b && d != c);
    ck_assert_ptr_eq(take(0, 1), b);
    ck_assert_ptr_eq(take(7, 1000), a);
    ck_assert_uint_eq(stats_now().comebacks, 2);
    ck_assert_uint_eq(stats_now().taken, 4);
    ck_assert_uint_eq(stats_now().taken_bytes, 1000 + 1 + 10 + 1000);
    for (uint64_t key = 0; key < 100; key++)
        if (tn_stable_slots_release(slots, key, NULL) == TN_MEM_OK)
            ck_assert(key == 0 || key == 7 || key == 8);
    release(UINT64_MAX);
}
END_TEST

START_TEST(a_slot_never_moves_not_even_to_grow)
{
    make(64 * KIB, 8);
    char *a = take(1, 1000), *again;
    expect_error(TN_MEM_E_IN_USE, try_take(1, 1000, 0, &again));
    release(1);
    expect_error(TN_MEM_E_NOT_GROWABLE, try_take(1, 1001, 0, &again));
    expect_error(TN_MEM_E_NOT_GROWABLE, try_take(1, 1, 32 * MIB, &again));
    ck_assert_ptr_eq(take(1, 999), a);
    release(1);
    expect_error(TN_MEM_E_STALE, tn_stable_slots_release(slots, 1, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_release(slots, 2, NULL));
    ck_assert_uint_eq(stats_now().bad_keys, 3);
}
END_TEST

START_TEST(a_dropped_slot_is_for_other_keys)
{
    make(64 * KIB, 2);
    char *a = take(1, 1000), *no;
    (void)take(2, 100);
    expect_error(TN_MEM_E_IN_USE, tn_stable_slots_drop(slots, 1));
    release(1);
    release(2);
    expect_error(TN_MEM_E_EXHAUSTED, try_take(3, 1000, 0, &no));
    expect_ok(tn_stable_slots_drop(slots, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_drop(slots, 1));
    ck_assert_uint_eq(stats_now().bad_keys, 2);
    expect_error(TN_MEM_E_EXHAUSTED, try_take(3, 100, 0, &no)); /* it is more than twice as large: it stays for a better fit */
    expect_error(TN_MEM_E_EXHAUSTED, try_take(3, 1001, 0, &no));
    ck_assert_ptr_eq(take(3, 800), a);
    release(3);
    ck_assert_ptr_eq(take(3, 1000), a); /* the slot is as large as it was made */
    release(3);
    ck_assert_uint_eq(stats_now().exhausted, 3);
    expect_error(TN_MEM_E_EXHAUSTED, try_take(1, 1000, 0, &no));
}
END_TEST

START_TEST(a_slot_that_is_not_clean_waits_for_its_own_key_too)
{
    make(64 * KIB, 1);
    char *a = take(1, 1000), *no;
    tn_work_set set = device_set(device_enqueue(2));
    expect_ok(tn_stable_slots_release(slots, 1, &set));
    expect_error(TN_MEM_E_MUST_WAIT, try_take(1, 1000, 0, &no));
    tn_stable_span span;
    expect_ok(tn_stable_slots_take(slots, 1, 1000, 0, 2, &span)); /* in the queue of that work it comes after it */
    ck_assert_ptr_eq(tn_stable_data(span), a);
    release(1); /* what was before it may still run */
    expect_error(TN_MEM_E_MUST_WAIT, try_take(1, 1000, 0, &no));
    expect_ok(tn_stable_slots_drop(slots, 1));
    expect_error(TN_MEM_E_MUST_WAIT, try_take(5, 1000, 0, &no));
    ck_assert_uint_eq(stats_now().must_waits, 3);
    device_finish_all();
    ck_assert_ptr_eq(take(5, 1000), a);
    release(5);
}
END_TEST

START_TEST(marks_need_a_work_table)
{
    expect_ok(tn_stable_slots_create(
        &(tn_stable_slots_options){.backend = tn_host_backend(host), .tag = "stable", .capacity = KIB, .slots = 1}, &slots));
    (void)take(1, 1);
    tn_work_set set = device_set(device_enqueue(1)), none = {.count = 0};
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_release(slots, 1, &set));
    expect_ok(tn_stable_slots_release(slots, 1, &none));
}
END_TEST

START_TEST(sizes_that_no_slot_can_have_are_errors)
{
    make(64 * KIB, 4);
    char *no;
    expect_error(TN_MEM_E_ARGUMENT, try_take(1, 0, 0, &no));
    expect_error(TN_MEM_E_ARGUMENT, try_take(1, 1, 3, &no));
    expect_error(TN_MEM_E_ARGUMENT, try_take(1, 1, TN_ALIGNMENT_MAX * 2, &no));
    expect_error(TN_MEM_E_EXHAUSTED, try_take(1, 64 * KIB + 1, 0, &no));
    expect_error(TN_MEM_E_EXHAUSTED, try_take(1, SIZE_MAX, 0, &no));
    expect_error(TN_MEM_E_EXHAUSTED, try_take(1, SIZE_MAX, 1, &no));
    (void)take(1, 64 * KIB);
    expect_error(TN_MEM_E_EXHAUSTED, try_take(2, 1, 1, &no));
    expect_error(TN_MEM_E_LEFTOVER, tn_stable_slots_destroy(&slots));
    tn_stable_span span;
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_take(NULL, 1, 1, 0, 0, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_take(slots, 1, 1, 0, 0, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_release(NULL, 1, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_stable_slots_drop(NULL, 1));
    release(1);
}
END_TEST

/* Keys come, go and are dropped at random. What a key had is remembered until it is dropped, and no byte is two keys' at once. */
static void random_life(uint64_t seed)
{
    enum { KEYS = 60, STEPS = 4000, SLOTS = 24 };
    typedef struct model_key {
        char *data;
        size_t bytes;
        enum { GONE, THERE, HELD } state;
    } model_key;
    static model_key keys[KEYS];
    random_state random = {seed};
    memset(keys, 0, sizeof keys);
    make(32 * KIB, SLOTS);
    for (size_t step = 0; step < STEPS; step++) {
        const char *where = fixture_seed_line(seed, step);
        uint64_t number = random_below(&random, KEYS), what = random_below(&random, 10), name = number << (number % 2 == 0 ? 40 : 0);
        model_key *k = &keys[number];
        if (what < 5) {
            size_t bytes = k->state == GONE ? 1 + random_below(&random, 3 * KIB) : 1 + random_below(&random, k->bytes);
            char *data;
            tn_mem_error error = try_take(name, bytes, 1, &data);
            if (k->state == HELD)
                ck_assert_msg(error == TN_MEM_E_IN_USE, "%s", where);
            else if (k->state == THERE)
                ck_assert_msg(error == TN_MEM_OK && data == k->data, "%s", where);
            else if (error == TN_MEM_OK)
                *k = (model_key){.data = data, .bytes = bytes};
            else
                ck_assert_msg(error == TN_MEM_E_EXHAUSTED, "%s", where);
            k->state = error == TN_MEM_OK ? HELD : k->state;
        } else if (what < 8) {
            tn_mem_error error = tn_stable_slots_release(slots, name, NULL);
            ck_assert_msg(error == (k->state == HELD ? TN_MEM_OK : k->state == THERE ? TN_MEM_E_STALE : TN_MEM_E_ARGUMENT), "%s", where);
            k->state = k->state == HELD ? THERE : k->state;
        } else {
            tn_mem_error error = tn_stable_slots_drop(slots, name);
            ck_assert_msg(error == (k->state == THERE ? TN_MEM_OK : k->state == HELD ? TN_MEM_E_IN_USE : TN_MEM_E_ARGUMENT), "%s", where);
            k->state = k->state == THERE ? GONE : k->state;
        }
        for (size_t i = 0; i < KEYS; i++)
            if (i != number && keys[i].state != GONE && k->state != GONE)
                ck_assert_msg(keys[i].data + keys[i].bytes <= k->data || k->data + k->bytes <= keys[i].data, "%s", where);
        tn_stable_slots_stats stats = stats_now();
        ck_assert_msg(stats.taken + stats.released + stats.dropped == stats.slots && stats.slots <= SLOTS, "%s", where);
    }
    for (uint64_t i = 0; i < KEYS; i++)
        if (keys[i].state == HELD)
            release(i << (i % 2 == 0 ? 40 : 0));
    ck_assert_uint_gt(stats_now().comebacks, STEPS / 40);
    ck_assert_uint_gt(stats_now().exhausted, 0);
}

START_TEST(a_key_has_one_address_until_it_is_dropped)
{
    random_life(fixture_seed(0x57AB1E01 + (uint64_t)_i));
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

START_TEST(a_failure_at_every_call_leaks_nothing)
{
    size_t calls_left, n;
    tn_metadata metadata = {.resize = resize_within, .self = &calls_left};
    tn_stable_slots_options o = {.backend = tn_host_backend(host), .tag = "stable", .capacity = KIB, .slots = 9, .metadata = &metadata};
    for (n = 0;; n++) {
        calls_left = n;
        tn_mem_error error = tn_stable_slots_create(&o, &slots);
        if (error == TN_MEM_OK)
            break;
        expect_error(TN_MEM_E_HOST_MEMORY, error);
    }
    ck_assert_uint_eq(n, 3);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_stable_slots_destroy(&slots));
    (void)take(1, 1);
    (void)take(2, 1);
    release(1);
    expect_error(TN_MEM_E_LEFTOVER, tn_stable_slots_destroy(&slots)); /* the second */
    release(2);
    expect_ok(tn_stable_slots_destroy(&slots));
    calls_left = SIZE_MAX;
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_stable_slots_create(&o, &slots));
    ck_assert_ptr_null(slots);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("stable_slots");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_options_are_refused_and_acquire_nothing);
    tcase_add_test(tests, a_released_slot_comes_back_to_its_key_at_the_same_address);
    tcase_add_test(tests, a_slot_never_moves_not_even_to_grow);
    tcase_add_test(tests, a_dropped_slot_is_for_other_keys);
    tcase_add_test(tests, a_slot_that_is_not_clean_waits_for_its_own_key_too);
    tcase_add_test(tests, marks_need_a_work_table);
    tcase_add_test(tests, sizes_that_no_slot_can_have_are_errors);
    tcase_add_loop_test(tests, a_key_has_one_address_until_it_is_dropped, 0, 12);
    tcase_add_test(tests, a_failure_at_every_call_leaks_nothing);
    return fixture_run("stable_slots", tests);
}
