/* The guard in a process: counts by site and tier, first uses, warnings once a site, threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phaseguard/guard.h"

static tn_guard g;
static tn_serving_thread thread;

static tn_guard_noted note(uint32_t site, int32_t result)
{
    tn_event e = {.type = TN_EV_ALLOC, .kind = TN_KIND_DEVICE, .site = site, .bytes = 64, .result = result};
    return tn_guard_note(&g, &thread, &e, 0);
}

START_TEST(only_serving_counts)
{
    note(2, 0);
    tn_phase_set(&g.phase, TN_PHASE_PLANNING);
    note(2, 0);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 2).driver_allocations, 0);
    tn_phase_set(&g.phase, TN_PHASE_SERVING);
    ck_assert(note(2, 0).repeated);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 2).driver_allocations, 1);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 2).first_uses, 0); /* its first was while loading */
    tn_phase_set(&g.phase, TN_PHASE_PLANNING);
    note(2, 0);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 2).driver_allocations, 1);
}
END_TEST

START_TEST(first_use_and_repetition)
{
    tn_phase_set(&g.phase, TN_PHASE_SERVING);
    ck_assert(!note(5, 0).repeated);
    ck_assert(note(5, 0).repeated);
    ck_assert(!note(6, 2).repeated);
    ck_assert(!note(6, 0).repeated); /* the retry */
    ck_assert_uint_eq(tn_guard_site_counts(&g, 5).driver_allocations, 2);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 5).first_uses, 1);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 6).driver_allocations, 1);
    ck_assert_uint_eq(tn_guard_site_counts(&g, 6).retries, 1);
    ck_assert_uint_eq(tn_guard_tier_counts(&g, 0).driver_allocations, 3);
    ck_assert_uint_eq(tn_guard_tier_counts(&g, 1).driver_allocations, 0);
    ck_assert_uint_eq(tn_guard_tier_counts(&g, TN_GUARD_TIERS).first_uses, 2);
}
END_TEST

START_TEST(warns_once_a_site)
{
    tn_phase_set(&g.phase, TN_PHASE_SERVING);
    ck_assert(!note(7, 0).warn); /* it only counts */
    g.mode = TN_GUARD_WARN;
    ck_assert(note(7, 0).warn);
    ck_assert(!note(7, 0).warn);
    ck_assert(note(8, 0).warn);
}
END_TEST

START_TEST(ids_at_the_ends)
{
    tn_phase_set(&g.phase, TN_PHASE_SERVING);
    note(TN_SITE_NONE, 0);
    note(TN_GUARD_PAGES * TN_GUARD_PAGE_SITES - 1, 0);
    note(TN_GUARD_PAGES * TN_GUARD_PAGE_SITES, 0); /* no journal has it */
    note(UINT32_MAX, 0);
    ck_assert_uint_eq(tn_guard_site_counts(&g, TN_SITE_NONE).driver_allocations, 1);
    ck_assert_uint_eq(tn_guard_site_counts(&g, TN_GUARD_PAGES * TN_GUARD_PAGE_SITES - 1).driver_allocations, 1);
    ck_assert_uint_eq(tn_guard_site_counts(&g, UINT32_MAX).driver_allocations, 0);
    ck_assert_uint_eq(g.sites_lost, 2);
    ck_assert_uint_eq(tn_guard_tier_counts(&g, 0).driver_allocations, 4);
}
END_TEST

static void *notes_often(void *arg)
{
    tn_serving_thread own = {0};
    for (uint32_t i = 0; i < 50000; i++) {
        tn_event e = {.type = TN_EV_ALLOC, .kind = TN_KIND_ASYNC, .site = i % 10000, .bytes = 1};
        tn_guard_note(&g, &own, &e, 0);
    }
    return arg;
}

START_TEST(threads_lose_nothing)
{
    pthread_t threads[4];
    tn_phase_set(&g.phase, TN_PHASE_SERVING);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, notes_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tn_serving_counts all = tn_guard_tier_counts(&g, 0);
    ck_assert_uint_eq(all.driver_allocations, 200000);
    ck_assert_uint_eq(all.first_uses, 10000);
    ck_assert_uint_eq(all.requested_bytes, 200000);
    for (uint32_t site = 0; site < 10000; site++)
        ck_assert_uint_eq(tn_guard_site_counts(&g, site).driver_allocations, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guard");
    TCase *cases = tcase_create("guard");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, only_serving_counts);
    tcase_add_test(cases, first_use_and_repetition);
    tcase_add_test(cases, warns_once_a_site);
    tcase_add_test(cases, ids_at_the_ends);
    tcase_add_test(cases, threads_lose_nothing);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
