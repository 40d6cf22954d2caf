/* The ledger of registered host memory: each range once, gone once, and what the driver says of the rest. */
#include <pthread.h>

#include "fault_cuda.h"
#include "fixture.h"
#include "stand_in_cuda.h"
#include "tiers/host_registration.h"

static tn_cuda table;
static tn_registrations *ledger;
static char memory[64 * 1024];

static void begin(void)
{
    stand_in_start(0);
    table = *fault_cuda(stand_in_cuda());
    expect_ok(tn_registrations_create(&table, NULL, &ledger));
}

static void end(void)
{
    ck_assert_uint_eq(tn_registrations_destroy(ledger), 0);
    ck_assert_uint_eq(stand_in_registered(), 0);
}

static tn_registrations_stats stats_now(void)
{
    tn_registrations_stats stats;
    tn_registrations_read_stats(ledger, &stats);
    ck_assert_uint_eq(stats.bytes, stand_in_registered());
    ck_assert_uint_eq(stats.live, stats.registered - stats.unregistered);
    return stats;
}

START_TEST(bad_arguments_never_reach_the_driver)
{
    tn_registration r = {.base = memory};
    tn_registrations *none = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_create(NULL, NULL, &none));
    expect_error(TN_MEM_E_UNSUPPORTED, tn_registrations_create(&(tn_cuda){0}, NULL, &none));
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_add(ledger, NULL, 1, 0, &r));
    ck_assert_ptr_null(r.base);
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_add(ledger, memory, 0, 0, &r));
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_add(ledger, memory, SIZE_MAX, 0, &r));
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_add(ledger, memory, 1, 16, &r));
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_add(ledger, memory, 1, 0, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_remove(ledger, &r));
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_find(ledger, memory, &r));
    ck_assert_uint_eq(fault_count(TN_CUDA_HOST_REGISTER) + fault_count(TN_CUDA_HOST_UNREGISTER), 0);
    end();
}
END_TEST

START_TEST(a_range_is_registered_once)
{
    tn_registration r, second;
    expect_ok(tn_registrations_add(ledger, memory + 4096, 8192, TN_REGISTER_PORTABLE, &r));
    ck_assert_uint_eq(stand_in_last_flags(), TN_REGISTER_PORTABLE);
    const struct {
        size_t at, bytes;
    } overlaps[] = {{4096, 8192}, {4096, 1}, {12287, 1}, {8192, 100}, {4095, 2}, {12287, 5000}, {0, 65536}};
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        expect_error(TN_MEM_E_REGISTERED, tn_registrations_add(ledger, memory + overlaps[i].at, overlaps[i].bytes, 0, &second));
        ck_assert_ptr_null(second.base);
    }
    ck_assert_uint_eq(fault_count(TN_CUDA_HOST_REGISTER), 1);
    ck_assert_uint_eq(stats_now().refused, 7);
    tn_registration below, above; /* side by side is no overlap */
    expect_ok(tn_registrations_add(ledger, memory, 4096, 0, &below));
    expect_ok(tn_registrations_add(ledger, memory + 12288, 4096, 0, &above));
    ck_assert_uint_eq(stats_now().live, 3);
    expect_ok(tn_registrations_find(ledger, memory + 12287, &second));
    ck_assert_uint_eq(second.id, r.id);
    expect_ok(tn_registrations_find(ledger, memory + 12288, &second));
    ck_assert_uint_eq(second.id, above.id);
    expect_ok(tn_registrations_remove(ledger, &r));
    expect_ok(tn_registrations_remove(ledger, &above));
    expect_ok(tn_registrations_remove(ledger, &below));
    end();
}
END_TEST

START_TEST(what_is_unknown_is_not_unregistered)
{
    tn_registration r, copy, inside, foreign = {.base = memory, .bytes = 1, .id = 1};
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_remove(ledger, &foreign));
    expect_ok(tn_registrations_add(ledger, memory, 8192, 0, &r));
    inside = r;
    inside.base = memory + 4096;
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_remove(ledger, &inside));
    copy = r;
    expect_ok(tn_registrations_remove(ledger, &r));
    ck_assert_ptr_null(r.base);
    expect_error(TN_MEM_E_ARGUMENT, tn_registrations_remove(ledger, &r));
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_remove(ledger, &copy));
    expect_ok(tn_registrations_add(ledger, memory, 8192, 0, &r)); /* the same range again: the old copy does not fit it */
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_remove(ledger, &copy));
    ck_assert_uint_eq(fault_count(TN_CUDA_HOST_UNREGISTER), 1);
    ck_assert_uint_eq(stats_now().unknown, 4);
    expect_ok(tn_registrations_remove(ledger, &r));
    end();
}
END_TEST

START_TEST(what_the_driver_refuses_changes_nothing)
{
    tn_registration r;
    expect_ok(tn_registrations_add(ledger, memory, 4096, 0, &r));
    fault_set(1, 719, false);
    expect_error(TN_MEM_E_DRIVER, tn_registrations_remove(ledger, &r));
    ck_assert_ptr_eq(r.base, memory);
    ck_assert_int_eq(tn_registrations_failure(ledger).code, 719);
    ck_assert_int_eq((int)tn_registrations_failure(ledger).call, TN_CUDA_HOST_UNREGISTER);
    expect_ok(tn_registrations_remove(ledger, &r));
    const struct {
        int code;
        tn_mem_error error;
    } refusals[] = {{2, TN_MEM_E_OUT_OF_MEMORY}, {712, TN_MEM_E_REGISTERED}, {801, TN_MEM_E_UNSUPPORTED}, {900, TN_MEM_E_CAPTURING}};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        fault_set(1, refusals[i].code, false);
        expect_error(refusals[i].error, tn_registrations_add(ledger, memory, 4096, 0, &r));
        ck_assert_ptr_null(r.base);
        ck_assert_uint_eq(stats_now().live, 0);
        expect_ok(tn_registrations_add(ledger, memory, 4096, 0, &r));
        expect_ok(tn_registrations_remove(ledger, &r));
    }
    end();
}
END_TEST

/* While the driver is at work on one range, others come and go: what was looked up before the call lies elsewhere after it. */
static tn_registration before;
static bool add_one;

static int unregister_beside_another(void *base)
{
    if (add_one) {
        add_one = false;
        expect_ok(tn_registrations_add(ledger, memory, 4096, 0, &before));
    }
    return stand_in_cuda()->host_unregister(base);
}

static int register_beside_another(void *base, size_t bytes, unsigned flags)
{
    if (add_one) {
        add_one = false;
        expect_ok(tn_registrations_add(ledger, memory, 4096, 0, &before));
    }
    return stand_in_cuda()->host_register(base, bytes, flags);
}

START_TEST(a_ledger_that_changes_during_the_drivers_call_loses_nothing)
{
    tn_registration r, other;
    expect_ok(tn_registrations_add(ledger, memory + 8192, 4096, 0, &r));
    expect_ok(tn_registrations_add(ledger, memory + 16384, 8192, 0, &other));
    table.host_unregister = unregister_beside_another;
    add_one = true;
    expect_ok(tn_registrations_remove(ledger, &r));
    ck_assert_uint_eq(stats_now().live, 2);
    expect_error(TN_MEM_E_UNREGISTERED, tn_registrations_find(ledger, memory + 8192, &r));
    expect_ok(tn_registrations_find(ledger, memory, &r));
    expect_ok(tn_registrations_find(ledger, memory + 16384, &r));
    expect_ok(tn_registrations_remove(ledger, &before));
    table.host_register = register_beside_another;
    add_one = true;
    expect_ok(tn_registrations_add(ledger, memory + 8192, 4096, 0, &r));
    ck_assert_uint_eq(stats_now().live, 3);
    tn_registration found;
    expect_ok(tn_registrations_find(ledger, memory + 8192, &found));
    ck_assert_uint_eq(found.id, r.id);
    expect_ok(tn_registrations_remove(ledger, &r));
    expect_ok(tn_registrations_remove(ledger, &before));
    expect_ok(tn_registrations_remove(ledger, &other));
    end();
}
END_TEST

START_TEST(an_end_unregisters_what_is_left)
{
    tn_registration r;
    for (int i = 0; i < 5; i++)
        expect_ok(tn_registrations_add(ledger, memory + 8192 * i, 4096, 0, &r));
    ck_assert_uint_eq(tn_registrations_destroy(ledger), 5);
    ck_assert_uint_eq(stand_in_registered(), 0);
    ck_assert_uint_eq(tn_registrations_destroy(NULL), 0);
}
END_TEST

/* Random ranges of a page each against a table of owners. */
START_TEST(random_ranges_agree_with_a_model)
{
    enum { PAGES = 16 };
    tn_registration live[PAGES] = {0};
    int owner[PAGES]; /* whose page it is; -1: nobody's */
    uint64_t seed = fixture_seed(7);
    random_state random = {seed};
    for (int i = 0; i < PAGES; i++)
        owner[i] = -1;
    for (size_t step = 0; step < 20000; step++) {
        size_t slot = random_below(&random, PAGES), from = random_below(&random, PAGES), pages = 1 + random_below(&random, 4);
        pages = from + pages > PAGES ? PAGES - from : pages;
        tn_mem_error got;
        if (live[slot].base != NULL) {
            got = tn_registrations_remove(ledger, &live[slot]);
            ck_assert_msg(got == TN_MEM_OK, "%s", fixture_seed_line(seed, step));
            for (int i = 0; i < PAGES; i++)
                owner[i] = owner[i] == (int)slot ? -1 : owner[i];
            continue;
        }
        tn_mem_error wanted = TN_MEM_OK;
        for (size_t i = from; i < from + pages; i++)
            wanted = owner[i] != -1 ? TN_MEM_E_REGISTERED : wanted;
        got = tn_registrations_add(ledger, memory + 4096 * from, 4096 * pages, 0, &live[slot]);
        ck_assert_msg(got == wanted, "%s: %s", fixture_seed_line(seed, step), tn_mem_error_text(got));
        for (size_t i = from; i < from + pages && got == TN_MEM_OK; i++)
            owner[i] = (int)slot;
        (void)stats_now();
    }
    for (int i = 0; i < PAGES; i++)
        if (live[i].base != NULL)
            expect_ok(tn_registrations_remove(ledger, &live[i]));
    end();
}
END_TEST

static void *work(void *part)
{
    char *own = memory + 16384 * (uintptr_t)part;
    for (int i = 0; i < 2000; i++) {
        tn_registration r, other;
        if (tn_registrations_add(ledger, own, 8192, 0, &r) != TN_MEM_OK ||
            tn_registrations_add(ledger, own + 4096, 1, 0, &other) != TN_MEM_E_REGISTERED ||
            tn_registrations_remove(ledger, &r) != TN_MEM_OK)
            return own;
    }
    return NULL;
}

START_TEST(threads_register_ranges_of_their_own)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_uint_eq(stats_now().registered, 8000);
    end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("host_registration");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, bad_arguments_never_reach_the_driver);
    tcase_add_test(tests, a_range_is_registered_once);
    tcase_add_test(tests, what_is_unknown_is_not_unregistered);
    tcase_add_test(tests, what_the_driver_refuses_changes_nothing);
    tcase_add_test(tests, a_ledger_that_changes_during_the_drivers_call_loses_nothing);
    tcase_add_test(tests, an_end_unregisters_what_is_left);
    tcase_add_test(tests, random_ranges_agree_with_a_model);
    tcase_add_test(tests, threads_register_ranges_of_their_own);
    return fixture_run("host_registration", tests);
}
