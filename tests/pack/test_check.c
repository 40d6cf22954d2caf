/* The validator finds what is planted, and nothing where nothing is wrong. */
#include <string.h>

#include "fixture.h"

static const tn_pack_buffer three[] = {
    {.id = 0, .lower = 0, .upper = 10, .size = 4, .alignment = 4},
    {.id = 1, .lower = 5, .upper = 15, .size = 4, .alignment = 1},
    {.id = 2, .lower = 10, .upper = 20, .size = 8, .alignment = 0},
};

static tn_pack_verdict check_three(uint64_t a, uint64_t b, uint64_t c, uint64_t capacity, tn_pack_fault *fault)
{
    const uint64_t offsets[] = {a, b, c};
    return tn_pack_check(three, 3, offsets, capacity, fault);
}

START_TEST(a_placement_that_holds_is_found_to_hold)
{
    tn_pack_fault fault;
    ck_assert_int_eq(check_three(0, 4, 8, 16, &fault), TN_PACK_HOLDS);
    ck_assert_int_eq(check_three(8, 12, 0, 16, &fault), TN_PACK_HOLDS); /* the first dies as the third is born */
    ck_assert_int_eq(tn_pack_check(NULL, 0, NULL, 0, &fault), TN_PACK_HOLDS);
}
END_TEST

START_TEST(a_planted_overlap_is_found_and_both_are_named)
{
    tn_pack_fault fault;
    ck_assert_int_eq(check_three(0, 3, 8, UINT64_MAX, &fault), TN_PACK_OVERLAP);
    ck_assert_uint_eq(fault.a + fault.b, 1);
    ck_assert_uint_ne(fault.a, fault.b);
    ck_assert_int_eq(check_three(0, 4, 7, UINT64_MAX, &fault), TN_PACK_OVERLAP);
    ck_assert_uint_eq(fault.a + fault.b, 3);
    ck_assert_int_eq(check_three(0, 10, 8, UINT64_MAX, &fault), TN_PACK_OVERLAP); /* one inside the other */
}
END_TEST

START_TEST(a_misaligned_offset_is_found)
{
    tn_pack_fault fault;
    ck_assert_int_eq(check_three(6, 1, 10, UINT64_MAX, &fault), TN_PACK_MISALIGNED);
    ck_assert_uint_eq(fault.a, 0);
}
END_TEST

START_TEST(what_ends_above_the_capacity_is_found)
{
    tn_pack_fault fault;
    ck_assert_int_eq(check_three(0, 4, 8, 15, &fault), TN_PACK_TOO_HIGH);
    ck_assert_uint_eq(fault.a, 2);
    ck_assert_int_eq(check_three(0, 4, UINT64_MAX - 3, UINT64_MAX, &fault), TN_PACK_TOO_HIGH); /* the end wraps */
    ck_assert_int_eq(check_three(0, 4, UINT64_MAX - 8, UINT64_MAX, &fault), TN_PACK_HOLDS);
}
END_TEST

START_TEST(gaps_permit_what_lies_in_them_and_nothing_else)
{
    const tn_pack_gap gaps[] = {{2, 4}, {6, 8}};
    tn_pack_buffer two[] = {
        {.id = 0, .lower = 0, .upper = 10, .size = 4, .gaps = gaps, .gap_count = 2},
        {.id = 1, .lower = 2, .upper = 4, .size = 4},
    };
    const uint64_t offsets[] = {0, 0};
    tn_pack_fault fault;
    ck_assert_int_eq(tn_pack_check(two, 2, offsets, 4, &fault), TN_PACK_HOLDS);
    two[1].upper = 5;
    ck_assert_int_eq(tn_pack_check(two, 2, offsets, 4, &fault), TN_PACK_OVERLAP);
    two[1].lower = 6;
    two[1].upper = 8;
    ck_assert_int_eq(tn_pack_check(two, 2, offsets, 4, &fault), TN_PACK_HOLDS);
    two[1].upper = 9;
    ck_assert_int_eq(tn_pack_check(two, 2, offsets, 4, &fault), TN_PACK_OVERLAP);
    two[1].upper = 6; /* never alive */
    ck_assert_int_eq(tn_pack_check(two, 2, offsets, 4, &fault), TN_PACK_HOLDS);
}
END_TEST

START_TEST(conflicts_of_a_graph_are_checked_pair_by_pair)
{
    const tn_pack_conflict conflicts[] = {{0, 1}, {2, 1}};
    tn_pack_fault fault;
    const uint64_t good[] = {0, 4, 8}, bad[] = {0, 4, 7}, shared[] = {0, 8, 0};
    ck_assert_int_eq(tn_pack_check_graph(three, 3, conflicts, 2, good, 16, &fault), TN_PACK_HOLDS);
    ck_assert_int_eq(tn_pack_check_graph(three, 3, conflicts, 2, bad, 16, &fault), TN_PACK_OVERLAP);
    ck_assert_uint_eq(fault.a + fault.b, 3);
    ck_assert_int_eq(tn_pack_check_graph(three, 3, conflicts, 2, shared, 16, &fault), TN_PACK_HOLDS);
    ck_assert_int_eq(tn_pack_check_graph(three, 3, conflicts, 2, good, 15, &fault), TN_PACK_TOO_HIGH);
}
END_TEST

/* Against the definition: every pair, every time. */
START_TEST(it_agrees_with_looking_at_every_pair)
{
    random_state random = {fixture_seed(11)};
    int overlaps = 0;
    for (int round = 0; round < 2000; round++) {
        instance it = {0};
        instance_random(&it, &random, 2 + random_below(&random, 8), 20, 4, 12);
        for (size_t k = 0; k < it.count; k++)
            it.offsets[k] = random_below(&random, 60);
        bool wanted = true;
        for (size_t a = 0; a < it.count; a++)
            for (size_t b = 0; b < a; b++)
                for (uint64_t t = 0; t < 20; t++) {
                    const tn_pack_buffer *x = &it.buffers[a], *y = &it.buffers[b];
                    bool alive = x->lower <= t && t < x->upper && y->lower <= t && t < y->upper;
                    bool shared = it.offsets[a] < it.offsets[b] + y->size && it.offsets[b] < it.offsets[a] + x->size;
                    wanted &= !(alive && shared);
                }
        tn_pack_fault fault;
        tn_pack_verdict verdict = tn_pack_check(it.buffers, it.count, it.offsets, 1000, &fault);
        ck_assert_int_eq(verdict, wanted ? TN_PACK_HOLDS : TN_PACK_OVERLAP);
        overlaps += !wanted;
        instance_free(&it);
    }
    ck_assert_int_gt(overlaps, 100);
    ck_assert_int_lt(overlaps, 1900);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("check");
    tcase_add_test(tests, a_placement_that_holds_is_found_to_hold);
    tcase_add_test(tests, a_planted_overlap_is_found_and_both_are_named);
    tcase_add_test(tests, a_misaligned_offset_is_found);
    tcase_add_test(tests, what_ends_above_the_capacity_is_found);
    tcase_add_test(tests, gaps_permit_what_lies_in_them_and_nothing_else);
    tcase_add_test(tests, conflicts_of_a_graph_are_checked_pair_by_pair);
    tcase_add_test(tests, it_agrees_with_looking_at_every_pair);
    return fixture_run("check", tests);
}
