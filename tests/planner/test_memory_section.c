/* A plan's section as lines of the arithmetic, and a demand's KV pool beside them. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "planner/memory_section.h"
#include "tests/planner/demand_maker.h"
#include "tests/planner/memory_check.h"

static tn_plan_charge charges[] = {{"context", "measured in run", "2026-11-30", 500}, {"module", NULL, NULL, 90}, {"graph", NULL, NULL, 0}};
static tn_plan_tier tiers[] = {
    {.discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .sites = 3, .capacity = 4000},
    {.discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .sites = 2, .capacity = 7000},
    {.discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .sites = 1, .capacity = 640},
    {.discipline = TN_D_T4, .family = TN_FAMILY_DEVICE, .sites = 1, .capacity = 100, .streams = 3},
    {.discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .sites = 9, .capacity = 250},
    {.discipline = TN_D_T5B, .family = TN_FAMILY_PINNED, .sites = 4, .capacity = 99999},
};
static tn_plan_row rows[] = {
    {.key = 1, .discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = 6000}, /* K */
    {.key = 2, .discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = 1000},
    {.key = 3, .discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .capacity = 250},
    {.key = 4, .discipline = TN_D_NATIVE, .family = TN_FAMILY_COUNT, .capacity = 30},
};
static uint64_t sized[] = {1, 3, 4};

static tn_plan_section section(void)
{
    tn_plan_section s = {.native_bytes = 77, .total = 500 + 90 + 77 + 4000 + 7000 + 640 + 300 + 250};
    s.charges = charges;
    s.charge_count = 3;
    s.tiers = tiers;
    s.tier_count = 6;
    s.rows = rows;
    s.row_count = 4;
    s.sizing.known = 1;
    s.sizing.sized = sized;
    s.sizing.sized_count = 3;
    return s;
}

START_TEST(the_lines_add_up_to_the_sections_total_in_the_order_of_taking)
{
    tn_plan_section s = section();
    tn_memory_input in;
    tn_memory_plan p;
    char where[TN_MEMORY_NAME];
    ck_assert(tn_memory_of_section(&s, false, &in, where));
    tn_memory_fit(&in, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_FITS);
    ck_assert_uint_eq(p.total, s.total);
    static const struct { const char *name; tn_memory_part part; uint64_t bytes; } lines[] = {
        {"context (measured in run)", TN_PART_CHARGE, 500}, {"module", TN_PART_CHARGE, 90}, {"left to the driver", TN_PART_NATIVE, 77},
        {"device T2, 2 sites", TN_PART_T2, 7000}, {"device T1, 3 sites", TN_PART_T1, 4000}, {"device T3, 1 site", TN_PART_T3, 640},
        {"device T4, 1 site", TN_PART_T4, 300}, {"async packed, 9 sites", TN_PART_T4, 250}};
    ck_assert_uint_eq(p.line_count, 8);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_str_eq(p.lines[i].name, lines[i].name);
        ck_assert_int_eq(p.lines[i].part, lines[i].part);
        ck_assert_uint_eq(p.lines[i].bytes, lines[i].bytes);
    }
}
END_TEST

START_TEST(the_pool_that_the_engine_sized_goes_and_what_shares_addresses_stays)
{
    tn_plan_section s = section();
    tn_memory_input in;
    tn_memory_plan p;
    char where[TN_MEMORY_NAME];
    ck_assert(tn_memory_of_section(&s, true, &in, where));
    tn_memory_fit(&in, &p);
    ck_assert_uint_eq(p.total, s.total - 6000 - 30);
    s.sizing.known = 0;
    ck_assert(!tn_memory_of_section(&s, true, &in, where));
    ck_assert_str_eq(where, "no memory query of the run sizes a pool");
    ck_assert(tn_memory_of_section(&s, false, &in, where));
    s.native_bytes = 20; /* less than the row says: never below nothing */
    s.sizing.known = 1;
    ck_assert(tn_memory_of_section(&s, true, &in, where));
    tn_memory_fit(&in, &p);
    ck_assert_uint_eq(p.total, s.total - 77 - 6000);
}
END_TEST

START_TEST(a_stack_for_each_stream_is_counted_and_may_not_overflow)
{
    tn_plan_section s = section();
    tn_plan_tier stacks = {.discipline = TN_D_T4, .family = TN_FAMILY_DEVICE, .sites = 1, .capacity = UINT64_MAX / 2, .streams = 3};
    s.tiers = &stacks;
    s.tier_count = 1;
    tn_memory_input in;
    char where[TN_MEMORY_NAME];
    ck_assert(!tn_memory_of_section(&s, false, &in, where));
    ck_assert_str_eq(where, "device T4, 1 site");
}
END_TEST

/* What planning around a base must be: the base's sum as what is fixed. */
START_TEST(a_random_pool_around_a_base_fills_the_rest_and_no_more)
{
    uint64_t fits = 0, not = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        tn_plan_section s = section();
        tn_demand d;
        tn_memory_input in;
        tn_memory_plan p;
        char where[TN_MEMORY_NAME];
        maker_demand(&state, &d);
        memory_need n = memory_need_of(&d);
        wide fixed = s.total - 6030, least = fixed + n.floor * n.block, most = fixed + n.wanted * n.block;
        uint64_t budget = (uint64_t)(fixed + (most - fixed) / 16 * maker_below(&state, 18));
        ck_assert(tn_memory_of_section(&s, true, &in, where));
        tn_memory_plan_around(&d, &in, budget, &p);
        ck_assert_msg(p.result != TN_MEMORY_TOO_LARGE, "seed %" PRIu64, seed);
        ck_assert_msg((p.result == TN_MEMORY_FITS) == (least <= budget), "seed %" PRIu64, seed);
        if (p.result == TN_MEMORY_FITS) {
            ck_assert_msg(p.total <= budget && p.total == fixed + p.kv.blocks * n.block, "seed %" PRIu64, seed);
            ck_assert_msg(p.kv.blocks == n.wanted || p.total + n.block > budget, "seed %" PRIu64, seed);
            fits++;
            continue;
        }
        ck_assert_msg(p.total == least && p.over == least - budget, "seed %" PRIu64, seed);
        for (size_t i = 0; i < p.lever_count; i++)
            ck_assert_msg(strncmp(p.levers[i].what, "without ", 8) != 0 && strncmp(p.levers[i].what, "features.vision", 15) != 0,
                          "seed %" PRIu64 ": %s is no part of the pool", seed, p.levers[i].what);
        not++;
    }
    ck_assert_uint_gt(fits, 100);
    ck_assert_uint_gt(not, 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory_section");
    TCase *t = tcase_create("memory_section");
    tcase_add_test(t, the_lines_add_up_to_the_sections_total_in_the_order_of_taking);
    tcase_add_test(t, the_pool_that_the_engine_sized_goes_and_what_shares_addresses_stays);
    tcase_add_test(t, a_stack_for_each_stream_is_counted_and_may_not_overflow);
    tcase_add_test(t, a_random_pool_around_a_base_fills_the_rest_and_no_more);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
