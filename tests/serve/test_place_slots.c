/* The tiers of slots: who may have which addresses, when, and what a request is told that cannot have any. */
#include <string.h>

#include "tests/serve/place_fixture.h"

enum { LEFT, RIGHT, LARGE, FIXED, FIXED_LARGE, OTHER }; /* rows */

/* LEFT has two slots at 0 and 4096; RIGHT's one shares addresses with the first of them; LARGE, of two sizes, has all of that. */
static void begin(tn_family family)
{
    static const uint64_t at_left[] = {0, 4096}, at_right[] = {512}, at_large[] = {0}, at_other[] = {8192};
    fixture_begin();
    plan_row(TN_D_PACKED, family, 1024, 0);
    plan_class(1024, 2, at_left);
    plan_row(TN_D_PACKED, family, 1024, 0);
    plan_class(1024, 1, at_right);
    plan_row(TN_D_PACKED, family, 8192, 0);
    plan_class(2048, 1, at_large);
    plan_class(8192, 1, at_large);
    plan_row(TN_D_T3, family, 1000, 3 * 1024);
    plan_row(TN_D_T3, family, 3 << 20, 8 << 20);
    plan_row(TN_D_PACKED, family, 512, 0);
    plan_class(512, 1, at_other);
    plan_tier(TN_D_PACKED, family, 0, 8704, 0);
    place_begin();
}

static size_t distance(const void *a, const void *b)
{
    return (size_t)((const char *)b - (const char *)a);
}

START_TEST(slots_lie_where_they_are_planned)
{
    begin(TN_FAMILY_DEVICE);
    char *a = take(LEFT, 1024, 0), *b = take(LEFT, 1, 0), *o = take(OTHER, 512, 0);
    ck_assert_uint_eq(distance(a, b), 4096);
    ck_assert_uint_eq(distance(a, o), 8192);
    give(LEFT, a, 0);
    char *r = take(RIGHT, 1024, 0);
    ck_assert_uint_eq(distance(a, r), 512);
    fixture_end();
}
END_TEST

START_TEST(a_live_block_of_another_site_is_in_the_way_and_named)
{
    begin(TN_FAMILY_DEVICE);
    void *a = take(LEFT, 1024, 0);
    ck_assert_uint_eq(spill(RIGHT, 1024, 0, TN_PLACE_IN_THE_WAY), KEYS + LEFT);
    give(LEFT, a, 0);
    void *r = take(RIGHT, 1024, 0);
    void *second = take(LEFT, 1024, 0); /* the other of its slots */
    ck_assert_uint_eq(distance(r, second), 4096 - 512);
    ck_assert_uint_eq(spill(LEFT, 1024, 0, TN_PLACE_IN_THE_WAY), KEYS + RIGHT);
    ck_assert_uint_eq(spill(LARGE, 2048, 0, TN_PLACE_IN_THE_WAY), KEYS + RIGHT);
    give(RIGHT, r, 0);
    (void)take(LARGE, 2048, 0);
    fixture_end();
}
END_TEST

START_TEST(more_than_the_largest_class_is_too_large)
{
    begin(TN_FAMILY_DEVICE);
    ck_assert_uint_eq(spill(LEFT, 1025, 0, TN_PLACE_TOO_LARGE), 0);
    ck_assert_uint_eq(spill(LARGE, 8193, 0, TN_PLACE_TOO_LARGE), 0);
    ck_assert_uint_eq(spill(FIXED, 1025, 0, TN_PLACE_TOO_LARGE), 0);
    ck_assert_uint_eq(spill(FIXED, SIZE_MAX, 0, TN_PLACE_TOO_LARGE), 0);
    fixture_end();
}
END_TEST

START_TEST(more_alive_than_there_are_slots_are_too_many)
{
    begin(TN_FAMILY_DEVICE);
    (void)take(LEFT, 1024, 0);
    (void)take(LEFT, 1024, 0);
    ck_assert_uint_eq(spill(LEFT, 1024, 0, TN_PLACE_TOO_MANY), 0);
    for (int i = 0; i < 3; i++)
        (void)take(FIXED, 1000, 0);
    ck_assert_uint_eq(spill(FIXED, 1000, 0, TN_PLACE_TOO_MANY), 0);
    fixture_end();
}
END_TEST

START_TEST(a_site_that_is_in_its_own_way_has_too_many_and_names_nobody)
{
    begin(TN_FAMILY_DEVICE);
    (void)take(LARGE, 2048, 0);
    ck_assert_uint_eq(spill(LARGE, 8192, 0, TN_PLACE_TOO_MANY), 0);
    fixture_end();
}
END_TEST

START_TEST(fixed_blocks_stand_behind_the_packed_ones_and_share_with_nobody)
{
    begin(TN_FAMILY_DEVICE);
    char *large = take(LARGE, 8192, 0), *first = take(FIXED, 1000, 0), *big = take(FIXED_LARGE, 3 << 20, 0);
    (void)take(OTHER, 512, 0);
    ck_assert_uint_eq(distance(large, first), 8704);
    for (size_t i = 1; i < 3; i++)
        ck_assert_uint_eq(distance(first, take(FIXED, 1000, 0)), i * 1024);
    /* Blocks above 1 MiB begin at a multiple of 2 MiB, as the driver's do. */
    ck_assert_uint_eq((uintptr_t)big % (2 << 20), 0);
    ck_assert_uint_eq(distance(big, take(FIXED_LARGE, (2 << 20) + 1, 0)), 4 << 20);
    ck_assert_uint_eq(distance(large, big), 2 << 20);
    ck_assert_uint_eq(fixture_journal_live(device_host, NULL), 10 << 20);
    spill(FIXED_LARGE, 1, 0, TN_PLACE_TOO_MANY);
    fixture_end();
}
END_TEST

START_TEST(stream_ordered_blocks_are_aligned_to_512_bytes_whatever_their_size)
{
    fixture_begin();
    plan_row(TN_D_T3, TN_FAMILY_ASYNC, (3 << 20) + 100, 2 * ((3 << 20) + 512));
    place_begin();
    char *a = take(0, 3 << 20, 1);
    ck_assert_uint_eq(distance(a, take(0, 3 << 20, 1)), (3 << 20) + 512);
    fixture_end();
}
END_TEST

START_TEST(what_is_freed_and_clean_is_anybodys)
{
    begin(TN_FAMILY_DEVICE);
    void *a = take(LEFT, 1024, 0);
    give_used(LEFT, a, 0, 1);
    device_finish(1);
    ck_assert_uint_eq(distance(a, take(RIGHT, 1024, 0)), 512);
    ck_assert_uint_eq(device_waits(), 0);
    fixture_end();
}
END_TEST

START_TEST(what_is_freed_and_not_clean_goes_to_nobody_without_a_wait)
{
    begin(TN_FAMILY_DEVICE);
    void *a = take(LEFT, 1024, 0), *b = take(LEFT, 1024, 0), *f[3];
    give_used(LEFT, a, 0, 1);
    ck_assert_uint_eq(spill(RIGHT, 1024, 0, TN_PLACE_NOT_CLEAN), KEYS + LEFT);
    ck_assert_uint_eq(spill(LARGE, 2048, 0, TN_PLACE_NOT_CLEAN), KEYS + LEFT);
    ck_assert_uint_eq(spill(LEFT, 1024, 0, TN_PLACE_NOT_CLEAN), KEYS + LEFT);
    /* One that is live is in the way, whatever else could be waited for. */
    ck_assert_uint_eq(spill(LARGE, 8192, 0, TN_PLACE_IN_THE_WAY), KEYS + LEFT);
    give(LEFT, b, 0);
    ck_assert_ptr_eq(take(LEFT, 1024, 0), b); /* a clean slot before one that must be waited for */
    for (int i = 0; i < 3; i++)
        f[i] = take(FIXED, 1000, 0);
    give_used(FIXED, f[1], 0, 2);
    spill(FIXED, 1000, 0, TN_PLACE_NOT_CLEAN);
    fixture_end();
}
END_TEST

START_TEST(a_request_that_may_wait_waits_once_and_that_is_counted)
{
    begin(TN_FAMILY_DEVICE);
    tn_place_stats stats;
    void *a = take(LEFT, 1024, 0), *b = take(LEFT, 1024, 0);
    give_used(LEFT, a, 0, 1);
    give_used(LEFT, b, 0, 2);
    tn_place_answer got = ask(LARGE, 8192, 0, 1);
    ck_assert_ptr_eq(got.address, a);
    ck_assert_int_eq(got.tier, TN_PLACE_PACKED);
    ck_assert_int_eq(got.spill, TN_PLACE_SERVED);
    ck_assert_uint_eq(got.waits, 1);
    ck_assert_uint_eq(device_waits(), 1);
    ck_assert(device_waited_for() == 1 || device_waited_for() == 2); /* what used the slot, not all that there is */
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.waits, 1);
    /* It cleaned the other queue's too. */
    give(LARGE, a, 0);
    ck_assert_uint_eq(ask(LEFT, 1024, 0, 1).waits, 0);
    ck_assert_uint_eq(ask(LEFT, 1024, 0, 1).waits, 0);
    ck_assert_uint_eq(device_waits(), 1);
    fixture_end();
}
END_TEST

START_TEST(nothing_is_waited_for_that_would_not_serve)
{
    begin(TN_FAMILY_DEVICE);
    void *a = take(LEFT, 1024, 0);
    (void)take(LEFT, 1024, 0);
    give_used(LEFT, a, 0, 1);
    ck_assert_int_eq(ask(LARGE, 8192, 0, 1).spill, TN_PLACE_IN_THE_WAY);
    ck_assert_int_eq(ask(LARGE, 9000, 0, 1).spill, TN_PLACE_TOO_LARGE);
    ck_assert_uint_eq(device_waits(), 0);
    fixture_end();
}
END_TEST

START_TEST(a_wait_that_fails_is_not_counted_and_serves_nothing)
{
    begin(TN_FAMILY_DEVICE);
    tn_place_stats stats;
    void *a = take(LEFT, 1024, 0);
    give_used(LEFT, a, 0, 1);
    device_let_waits_fail(true);
    tn_place_answer got = ask(RIGHT, 1024, 0, 1);
    ck_assert_ptr_null(got.address);
    ck_assert_int_eq(got.spill, TN_PLACE_NOT_CLEAN);
    ck_assert_uint_eq(got.waits, 0);
    ck_assert_uint_eq(device_waits(), 1);
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.waits, 0);
    fixture_end();
}
END_TEST

START_TEST(the_same_stream_has_its_freed_block_at_once)
{
    begin(TN_FAMILY_ASYNC);
    void *a = take(LEFT, 1024, 1);
    give_used(LEFT, a, 1, 1);
    ck_assert_ptr_eq(take(LEFT, 1024, 1), a);
    give_used(LEFT, a, 1, 1);
    ck_assert_uint_eq(distance(a, take(RIGHT, 1024, 1)), 512);
    fixture_end();
}
END_TEST

START_TEST(another_stream_has_it_only_after_a_join)
{
    begin(TN_FAMILY_ASYNC);
    void *a = take(LEFT, 1024, 1);
    device_join(2, 1); /* before its last work */
    give_used(LEFT, a, 1, 1);
    spill(RIGHT, 1024, 2, TN_PLACE_NOT_CLEAN);
    device_join(2, 1);
    spill(RIGHT, 1024, 3, TN_PLACE_NOT_CLEAN);
    (void)take(RIGHT, 1024, 2);
    fixture_end();
}
END_TEST

START_TEST(a_block_freed_by_another_stream_follows_that_one)
{
    begin(TN_FAMILY_ASYNC);
    void *a = take(LEFT, 1024, 1);
    give_used(LEFT, a, 1, 2);
    spill(RIGHT, 1024, 1, TN_PLACE_NOT_CLEAN);
    (void)take(RIGHT, 1024, 2);
    fixture_end();
}
END_TEST

START_TEST(pinned_blocks_wait_for_the_work_of_all_contexts)
{
    static const uint64_t at[] = {0, 4096};
    fixture_begin();
    plan_pinned_row(0, 4096);
    plan_class(4096, 1, at);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, 0, 4096, 0);
    plan_done();
    /* This context's work is always done; that of all contexts is the device's. */
    tn_place_options o = place_options();
    tn_work_table idle = *work.table;
    idle.wait = NULL;
    o.work.table = &idle;
    expect_ok(tn_place_create(&o, &place, NULL));
    void *a = take(0, 4096, 0);
    give_used(0, a, 0, 1);
    spill(0, 4096, 0, TN_PLACE_NOT_CLEAN);
    tn_place_answer got = ask(0, 4096, 0, 1);
    ck_assert_ptr_eq(got.address, a);
    ck_assert_int_eq(got.tier, TN_PLACE_T5B);
    ck_assert_uint_eq(got.waits, 1);
    fixture_end();
}
END_TEST

START_TEST(work_that_cannot_be_waited_for_is_not)
{
    static const uint64_t at[] = {0};
    fixture_begin();
    plan_row(TN_D_PACKED, TN_FAMILY_DEVICE, 512, 0);
    plan_class(512, 1, at);
    plan_tier(TN_D_PACKED, TN_FAMILY_DEVICE, 0, 512, 0);
    plan_done();
    tn_place_options o = place_options();
    tn_work_table table = *work.table;
    table.wait = NULL;
    o.work.table = &table;
    expect_ok(tn_place_create(&o, &place, NULL));
    void *a = take(0, 512, 0);
    give_used(0, a, 0, 1);
    ck_assert_int_eq(ask(0, 512, 0, 1).spill, TN_PLACE_NOT_CLEAN);
    device_finish(1);
    ck_assert_ptr_eq(take(0, 512, 0), a);
    fixture_end();
}
END_TEST

START_TEST(a_held_block_comes_back_to_its_site_and_to_no_other)
{
    begin(TN_FAMILY_DEVICE);
    void *a = take(LEFT, 1024, 0);
    expect_ok(tn_place_hold(place, LEFT, a));
    expect_ok(tn_place_hold(place, LEFT, a));
    give(LEFT, a, 0);
    ck_assert_uint_eq(spill(RIGHT, 1024, 0, TN_PLACE_IN_THE_WAY), KEYS + LEFT);
    ck_assert_ptr_eq(take(LEFT, 1024, 0), a);
    give(LEFT, a, 0);
    expect_ok(tn_place_release_hold(place, LEFT, a));
    spill(RIGHT, 1024, 0, TN_PLACE_IN_THE_WAY);
    expect_ok(tn_place_release_hold(place, LEFT, a));
    (void)take(RIGHT, 1024, 0);
    expect_error(TN_MEM_E_STALE, tn_place_release_hold(place, LEFT, a));
    fixture_end();
}
END_TEST

START_TEST(fixed_and_pinned_blocks_can_be_held)
{
    static const uint64_t at[] = {0};
    fixture_begin();
    plan_row(TN_D_T3, TN_FAMILY_DEVICE, 512, 512);
    plan_pinned_row(0, 4096);
    plan_class(4096, 1, at);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, 0, 4096, 0);
    place_begin();
    for (uint32_t row = 0; row < 2; row++) {
        void *a = take(row, 512, 0);
        expect_ok(tn_place_hold(place, row, a));
        expect_ok(tn_place_release_hold(place, row, a));
        expect_error(TN_MEM_E_STALE, tn_place_release_hold(place, row, a));
    }
    fixture_end();
}
END_TEST

START_TEST(a_free_of_what_is_no_live_block_changes_nothing)
{
    begin(TN_FAMILY_DEVICE);
    tn_work_set clean = {.count = 0};
    char *a = take(LEFT, 1024, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, LEFT, a + 1, 0, &clean));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, LEFT, &clean, 0, &clean));
    give(LEFT, a, 0);
    expect_error(TN_MEM_E_STALE, tn_place_give(place, LEFT, a, 0, &clean));
    fixture_end();
}
END_TEST

START_TEST(fixed_rows_without_a_block_have_too_many)
{
    fixture_begin();
    plan_row(TN_D_T3, TN_FAMILY_DEVICE, 1000, 1000); /* rounded, one block is more than that */
    place_begin();
    spill(0, 1000, 0, TN_PLACE_TOO_MANY);
    fixture_end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("slots");
    tcase_add_test(tests, slots_lie_where_they_are_planned);
    tcase_add_test(tests, a_live_block_of_another_site_is_in_the_way_and_named);
    tcase_add_test(tests, more_than_the_largest_class_is_too_large);
    tcase_add_test(tests, more_alive_than_there_are_slots_are_too_many);
    tcase_add_test(tests, a_site_that_is_in_its_own_way_has_too_many_and_names_nobody);
    tcase_add_test(tests, fixed_blocks_stand_behind_the_packed_ones_and_share_with_nobody);
    tcase_add_test(tests, stream_ordered_blocks_are_aligned_to_512_bytes_whatever_their_size);
    tcase_add_test(tests, what_is_freed_and_clean_is_anybodys);
    tcase_add_test(tests, what_is_freed_and_not_clean_goes_to_nobody_without_a_wait);
    tcase_add_test(tests, a_request_that_may_wait_waits_once_and_that_is_counted);
    tcase_add_test(tests, nothing_is_waited_for_that_would_not_serve);
    tcase_add_test(tests, a_wait_that_fails_is_not_counted_and_serves_nothing);
    tcase_add_test(tests, the_same_stream_has_its_freed_block_at_once);
    tcase_add_test(tests, another_stream_has_it_only_after_a_join);
    tcase_add_test(tests, a_block_freed_by_another_stream_follows_that_one);
    tcase_add_test(tests, pinned_blocks_wait_for_the_work_of_all_contexts);
    tcase_add_test(tests, work_that_cannot_be_waited_for_is_not);
    tcase_add_test(tests, a_held_block_comes_back_to_its_site_and_to_no_other);
    tcase_add_test(tests, fixed_and_pinned_blocks_can_be_held);
    tcase_add_test(tests, a_free_of_what_is_no_live_block_changes_nothing);
    tcase_add_test(tests, fixed_rows_without_a_block_have_too_many);
    return fixture_run("place_slots", tests);
}
