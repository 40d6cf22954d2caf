/* A place begins with all of its arenas or with none, and ends with nothing left; what has gone with its context is not asked of the driver. */
#include <string.h>

#include "tests/serve/place_fixture.h"

enum { ACQUIRES = 1 + 1 + 1 + 1 + 3 + 2 }; /* of the plan below: device slots, device T2, async slots, async T2, stacks, pinned sets */

/* Every kind of arena that there is. */
static void plan_all(void)
{
    uint64_t zero = 0;
    fixture_begin();
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 4096, 0);                  /* 0 */
    plan_row(TN_D_T2, TN_FAMILY_DEVICE, 4096, 0);                  /* 1 */
    plan_row(TN_D_T3, TN_FAMILY_DEVICE, 1000, 4096);               /* 2 */
    plan_row(TN_D_PACKED, TN_FAMILY_DEVICE, 4096, 0);              /* 3 */
    plan_class(4096, 1, &zero);
    plan_row(TN_D_T2, TN_FAMILY_ASYNC, 4096, 0);                   /* 4 */
    plan_row(TN_D_T4, TN_FAMILY_ASYNC, 4096, 0);                   /* 5 */
    plan_row(TN_D_PACKED, TN_FAMILY_ASYNC, 4096, 0);               /* 6 */
    plan_class(4096, 1, &zero);
    plan_pinned_row(0, 4096);                                      /* 7 */
    plan_class(4096, 1, &zero);
    plan_pinned_row(4, 4096);                                      /* 8 */
    plan_class(4096, 1, &zero);
    plan_row(TN_D_NATIVE, TN_FAMILY_DEVICE, 4096, 0);              /* 9 */
    plan_row(TN_D_T5A, TN_FAMILY_PINNED, 4096, 0);                 /* 10 */
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 2 << 20, 0);
    plan_tier(TN_D_T2, TN_FAMILY_DEVICE, 0, 10000, 0);
    plan_tier(TN_D_PACKED, TN_FAMILY_DEVICE, 0, 4096, 0);
    plan_tier(TN_D_T2, TN_FAMILY_ASYNC, 0, 20000, 0);
    plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 30000, 3);
    plan_tier(TN_D_PACKED, TN_FAMILY_ASYNC, 0, 5000, 0);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, 0, 6000, 0);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, 4, 7000, 0);
    plan_tier(TN_D_T5A, TN_FAMILY_PINNED, 0, 100000, 0);
    plan_region(0, 4096, 1 << 20, 8, 2);
    plan_done();
}

static size_t acquires(tn_host *host)
{
    return fixture_count(host, TN_HOST_ACQUIRE, -1);
}

static size_t all_acquires(void)
{
    size_t sum = acquires(device_host) + acquires(async_host);
    for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
        sum += acquires(pinned_hosts[i]);
    return sum;
}

START_TEST(every_arena_is_acquired_at_create_and_no_region)
{
    plan_all();
    tn_place_options o = place_options();
    uint64_t short_by = 1;
    expect_ok(tn_place_create(&o, &place, &short_by));
    ck_assert_uint_eq(short_by, 0);
    ck_assert_uint_eq(all_acquires(), ACQUIRES);
    ck_assert_uint_eq(acquires(device_host), 2);
    ck_assert_uint_eq(acquires(pinned_hosts[0]), 1);
    ck_assert_uint_eq(acquires(pinned_hosts[4]), 1);
    ck_assert_uint_eq(fixture_journal_live(device_host, "tenure T2"), 10000);
    ck_assert_uint_eq(fixture_journal_live(device_host, "tenure slots"), 4096 + 4096);
    ck_assert_uint_eq(fixture_journal_live(async_host, "tenure T4"), 3 * 30000);
    ck_assert_uint_eq(fixture_journal_live(device_host, "tenure T1"), 0);
    for (uint32_t row = 0; row < 9; row++)
        (void)take(row, 1000, row >= 4 && row <= 6 ? 1 : 0);
    ck_assert_uint_eq(all_acquires(), ACQUIRES + 1); /* T1's region */
    fixture_end();
}
END_TEST

START_TEST(the_capacity_counts_stacks_and_t1_and_no_loading_memory)
{
    plan_all();
    tn_place_options o = place_options();
    tn_place_stats stats;
    expect_ok(tn_place_create(&o, &place, NULL));
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.capacity, (2 << 20) + 10000 + 4096 + 4096 + 20000 + 3 * 30000 + 5000 + 6000 + 7000);
    ck_assert_uint_eq(stats.waits, 0);
    ck_assert_uint_eq(stats.not_taken_back, 0);
    fixture_end();
}
END_TEST

/* Fails the n-th acquire of one kind of memory, then the next, until none failed. */
static size_t fail_each(tn_host *host)
{
    for (size_t n = 1;; n++) {
        tn_place_options o = place_options();
        uint64_t short_by = 0;
        tn_host_fail(host, TN_HOST_ACQUIRE, n);
        tn_mem_error error = tn_place_create(&o, &place, &short_by);
        tn_host_fail(host, TN_HOST_ACQUIRE, 0);
        if (error == TN_MEM_OK) {
            tn_place_destroy(&place, 0);
            return n - 1;
        }
        ck_assert_int_eq(error, TN_MEM_E_OUT_OF_MEMORY);
        ck_assert_ptr_null(place);
        ck_assert_uint_ge(short_by, 4096);
        ck_assert_uint_eq(metadata_held(), 0);
        ck_assert_uint_eq(fixture_journal_live(device_host, NULL) + fixture_journal_live(async_host, NULL), 0);
        for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
            ck_assert_uint_eq(fixture_journal_live(pinned_hosts[i], NULL), 0);
    }
}

START_TEST(where_an_arena_is_not_to_be_had_there_is_no_place)
{
    plan_all();
    ck_assert_uint_eq(fail_each(device_host), 2);
    ck_assert_uint_eq(fail_each(async_host), 5);
    ck_assert_uint_eq(fail_each(pinned_hosts[0]), 1);
    ck_assert_uint_eq(fail_each(pinned_hosts[4]), 1);
    fixture_end();
}
END_TEST

START_TEST(the_bytes_asked_for_in_vain_are_told)
{
    static const uint64_t asked[] = {5000, 20000, 30000, 30000, 30000};
    plan_all();
    for (size_t n = 0; n < sizeof asked / sizeof *asked; n++) {
        tn_place_options o = place_options();
        uint64_t short_by = 0;
        tn_host_fail(async_host, TN_HOST_ACQUIRE, n + 1);
        expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_place_create(&o, &place, &short_by));
        ck_assert_uint_eq(short_by, asked[n]);
        expect_error(TN_MEM_E_OUT_OF_MEMORY, (tn_host_fail(async_host, TN_HOST_ACQUIRE, n + 1), tn_place_create(&o, &place, NULL)));
    }
    fixture_end();
}
END_TEST

START_TEST(where_metadata_is_not_to_be_had_there_is_no_place)
{
    size_t n = 1;
    plan_all();
    for (;; n++) {
        tn_place_options o = place_options();
        metadata_fail(n);
        tn_mem_error error = tn_place_create(&o, &place, NULL);
        metadata_fail(0);
        if (error == TN_MEM_OK)
            break;
        ck_assert_int_eq(error, TN_MEM_E_HOST_MEMORY);
        ck_assert_ptr_null(place);
        ck_assert_uint_eq(metadata_held(), 0);
        ck_assert_uint_eq(fixture_journal_live(device_host, NULL) + fixture_journal_live(async_host, NULL), 0);
        for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
            ck_assert_uint_eq(fixture_journal_live(pinned_hosts[i], NULL), 0);
    }
    ck_assert_uint_ge(n, 30);
    fixture_end();
}
END_TEST

START_TEST(a_kind_of_memory_that_is_planned_and_not_there_is_refused)
{
    plan_all();
    for (int missing = 0; missing < 4; missing++) {
        tn_place_options o = place_options();
        if (missing == 0) o.device = NULL;
        if (missing == 1) o.async = NULL;
        if (missing == 2) o.pinned[0] = NULL;
        if (missing == 3) o.pinned[4] = NULL;
        expect_error(TN_MEM_E_UNSUPPORTED, tn_place_create(&o, &place, NULL));
        ck_assert_ptr_null(place);
        ck_assert_uint_eq(metadata_held(), 0);
    }
    fixture_end();
}
END_TEST

START_TEST(kinds_that_are_not_planned_need_not_be_there)
{
    uint64_t zero = 0;
    fixture_begin();
    plan_row(TN_D_PACKED, TN_FAMILY_ASYNC, 512, 0);
    plan_class(512, 1, &zero);
    plan_tier(TN_D_PACKED, TN_FAMILY_ASYNC, 0, 512, 0);
    plan_done();
    tn_place_options o = {.section = &section, .async = tn_host_backend(async_host), .work = work, .work_everywhere = work, .metadata = &metadata};
    expect_ok(tn_place_create(&o, &place, NULL));
    (void)take(0, 512, 1);
    fixture_end();
}
END_TEST

START_TEST(a_section_and_both_work_tables_must_be_given)
{
    plan_all();
    for (int missing = 0; missing < 3; missing++) {
        tn_place_options o = place_options();
        if (missing == 0) o.section = NULL;
        if (missing == 1) o.work.table = NULL;
        if (missing == 2) o.work_everywhere.table = NULL;
        place = (tn_place *)&o;
        expect_error(TN_MEM_E_ARGUMENT, tn_place_create(&o, &place, NULL));
        ck_assert_ptr_null(place);
    }
    fixture_end();
}
END_TEST

START_TEST(pinned_arenas_go_by_flags)
{
    plan_all();
    tn_place_options o = place_options();
    expect_ok(tn_place_create(&o, &place, NULL));
    void *plain = take(7, 4096, 0), *combined = take(8, 4096, 0);
    tn_host_entry entry;
    expect_ok(tn_host_journal_entry(pinned_hosts[4], 0, &entry));
    ck_assert_uint_eq(entry.requested, 7000);
    ck_assert_ptr_ne(plain, combined);
    spill(7, 4096, 0, TN_PLACE_TOO_MANY);
    give(7, plain, 0);
    spill(8, 4096, 0, TN_PLACE_TOO_MANY);
    ck_assert_ptr_eq(take(7, 4096, 0), plain);
    fixture_end();
}
END_TEST

START_TEST(flags_that_no_driver_has_stay_native)
{
    uint64_t zero = 0;
    fixture_begin();
    plan_pinned_row(TN_PLACE_PINNED_SETS, 4096);
    plan_class(4096, 1, &zero);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, TN_PLACE_PINNED_SETS, 4096, 0);
    place_begin();
    spill(0, 4096, 0, TN_PLACE_SERVED);
    ck_assert_uint_eq(all_acquires(), 0);
    fixture_end();
}
END_TEST

/* What a native row's request is: neither served nor spilled. */
START_TEST(native_rows_are_neither_served_nor_spilled)
{
    plan_all();
    tn_place_options o = place_options();
    expect_ok(tn_place_create(&o, &place, NULL));
    spill(9, 1000, 0, TN_PLACE_SERVED);
    spill(10, 1000, 0, TN_PLACE_SERVED);
    tn_work_set clean = {.count = 0};
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, 9, &clean, 0, &clean));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, 10, &clean, 0, &clean));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_hold(place, 9, &clean));
    fixture_end();
}
END_TEST

/* Live blocks in every arena; then the context ends. */
START_TEST(what_went_with_its_context_is_not_asked_of_the_driver)
{
    plan_all();
    tn_place_options o = place_options();
    expect_ok(tn_place_create(&o, &place, NULL));
    for (uint32_t row = 0; row < 9; row++)
        (void)take(row, 1000, row >= 4 && row <= 6 ? 1 : 0);
    tn_place_destroy(&place, 1);
    ck_assert_ptr_null(place);
    ck_assert_uint_eq(metadata_held(), 0);
    ck_assert_uint_eq(fixture_count(device_host, TN_HOST_RELEASE, -1), 0);
    ck_assert_uint_eq(fixture_count(pinned_hosts[0], TN_HOST_RELEASE, -1), 0);
    ck_assert_uint_eq(fixture_count(pinned_hosts[4], TN_HOST_RELEASE, -1), 0);
    /* Stream-ordered memory outlives contexts. */
    ck_assert_uint_eq(fixture_journal_live(async_host, NULL), 0);
    ck_assert_uint_eq(tn_host_destroy(device_host), 3);
    ck_assert_uint_eq(tn_host_destroy(pinned_hosts[0]), 1);
    ck_assert_uint_eq(tn_host_destroy(pinned_hosts[4]), 1);
    device_host = fixture_host(&(tn_host_options){0});
    pinned_hosts[0] = fixture_host(&(tn_host_options){0});
    pinned_hosts[4] = fixture_host(&(tn_host_options){0});
    fixture_end();
}
END_TEST

START_TEST(a_place_ends_where_the_driver_takes_nothing_back)
{
    for (int kind = 0; kind < 3; kind++) {
        plan_all();
        tn_place_options o = place_options();
        expect_ok(tn_place_create(&o, &place, NULL));
        for (uint32_t row = 0; row < 9; row++)
            (void)take(row, 1000, row >= 4 && row <= 6 ? 1 : 0);
        tn_host *host = kind == 0 ? device_host : kind == 1 ? async_host : pinned_hosts[0];
        tn_host_fail(host, TN_HOST_RELEASE, 1);
        tn_place_destroy(&place, 0);
        ck_assert_ptr_null(place);
        ck_assert_uint_eq(metadata_held(), 0);
        ck_assert_uint_eq(tn_host_destroy(host), 1); /* the one, and no other */
        if (kind == 0) device_host = fixture_host(&(tn_host_options){0});
        if (kind == 1) async_host = fixture_host(&(tn_host_options){0});
        if (kind == 2) pinned_hosts[0] = fixture_host(&(tn_host_options){0});
        fixture_end();
    }
}
END_TEST

START_TEST(a_tag_tells_the_tier)
{
    ck_assert_int_eq(tn_place_tier_of_tag("tenure T1"), TN_PLACE_T1);
    ck_assert_int_eq(tn_place_tier_of_tag("tenure T2"), TN_PLACE_T2);
    ck_assert_int_eq(tn_place_tier_of_tag("tenure T4"), TN_PLACE_T4);
    ck_assert_int_eq(tn_place_tier_of_tag("tenure slots"), TN_PLACE_PACKED);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("create");
    tcase_add_test(tests, every_arena_is_acquired_at_create_and_no_region);
    tcase_add_test(tests, the_capacity_counts_stacks_and_t1_and_no_loading_memory);
    tcase_add_test(tests, where_an_arena_is_not_to_be_had_there_is_no_place);
    tcase_add_test(tests, the_bytes_asked_for_in_vain_are_told);
    tcase_add_test(tests, where_metadata_is_not_to_be_had_there_is_no_place);
    tcase_add_test(tests, a_kind_of_memory_that_is_planned_and_not_there_is_refused);
    tcase_add_test(tests, kinds_that_are_not_planned_need_not_be_there);
    tcase_add_test(tests, a_section_and_both_work_tables_must_be_given);
    tcase_add_test(tests, pinned_arenas_go_by_flags);
    tcase_add_test(tests, flags_that_no_driver_has_stay_native);
    tcase_add_test(tests, native_rows_are_neither_served_nor_spilled);
    tcase_add_test(tests, what_went_with_its_context_is_not_asked_of_the_driver);
    tcase_add_test(tests, a_place_ends_where_the_driver_takes_nothing_back);
    tcase_add_test(tests, a_tag_tells_the_tier);
    return fixture_run("place_create", tests);
}
