/* The replay that says whether a plan holds, tier by tier, a request at a time: what fits, what does not and by how much, what has to wait. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/serve.h"

enum { T1, UNLISTED, T2, T3, STACK, STAGING, LEFT, RIGHT, ORDERED, ROWS };

static uint64_t left[] = {2048, 0}, right[] = {2048}, right_large[] = {1024};
static tn_plan_class left_class = {.bytes = 1024, .alignment = 512, .offsets = left, .count = 2};
static tn_plan_class right_classes[] = {{.bytes = 1024, .alignment = 512, .offsets = right, .count = 1},
                                        {.bytes = 2048, .alignment = 512, .offsets = right_large, .count = 1}};
static tn_plan_row rows[ROWS] = {
    [T1] = {.key = 1, .discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .largest = 512},
    [UNLISTED] = {.key = 2, .discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .largest = 512},
    [T2] = {.key = 3, .discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .largest = 2048},
    [T3] = {.key = 4, .discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .largest = 1000, .blocks = 2, .capacity = 2048},
    [STACK] = {.key = 5, .discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .largest = 1024},
    [STAGING] = {.key = 6, .discipline = TN_D_T5A, .family = TN_FAMILY_PINNED, .largest = 4096},
    [LEFT] = {.key = 7, .discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .classes = &left_class, .class_count = 1},
    [RIGHT] = {.key = 8, .discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .classes = right_classes, .class_count = 2},
    [ORDERED] = {.key = 9, .discipline = TN_D_T3, .family = TN_FAMILY_ASYNC, .largest = 1000, .blocks = 2, .capacity = 2048},
};
static tn_plan_tier tiers[] = {
    {.discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .capacity = 2048},
    {.discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = 4096},
    {.discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .capacity = 2048},
    {.discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .capacity = 2048, .streams = 2},
    {.discipline = TN_D_T5A, .family = TN_FAMILY_PINNED, .capacity = 8192},
    {.discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .capacity = 3072},
    {.discipline = TN_D_T3, .family = TN_FAMILY_ASYNC, .capacity = 2048},
};
static tn_plan_region regions[] = {{.key = 1, .first_bytes = 512, .capacity = 1024, .count = 2, .times = 2}};
static const tn_plan_section section = {.rows = rows, .row_count = ROWS, .tiers = tiers, .tier_count = sizeof tiers / sizeof tiers[0],
                                        .regions = regions, .region_count = 1};

static tn_serve *serve;
static tn_life lives[64];
static uint32_t taken;

static void begin(void)
{
    serve = tn_serve_new(&section, 64);
    ck_assert_ptr_nonnull(serve);
    taken = 0;
}

static void end(void)
{
    tn_serve_free(serve);
}

static tn_serve_answer ask(uint32_t row, uint64_t bytes, uint32_t stream)
{
    tn_serve_answer answer;
    ck_assert_uint_lt(taken, 64);
    lives[taken] = (tn_life){.bytes = bytes, .stream = stream};
    ck_assert_int_eq(tn_serve_take(serve, row, &lives[taken], taken, &answer), TN_OK);
    taken++;
    return answer;
}

/* Served, with a wait or none: the block's number. */
static uint32_t take(uint32_t row, uint64_t bytes, uint32_t stream, int waits)
{
    tn_serve_answer a = ask(row, bytes, stream);
    ck_assert_msg(a.spill == TN_SPILL_NONE, "%s", tn_spill_text(a.spill));
    ck_assert_int_eq(a.waited, waits);
    return taken - 1;
}

static void spill(uint32_t row, uint64_t bytes, uint32_t stream, tn_spill why, uint64_t short_by)
{
    tn_serve_answer a = ask(row, bytes, stream);
    ck_assert_msg(a.spill == why, "%s", tn_spill_text(a.spill));
    ck_assert_uint_eq(a.short_by, short_by);
    ck_assert_uint_eq(a.other, why == TN_SPILL_IN_THE_WAY ? LEFT : TN_TRACE_NONE);
    ck_assert_int_eq(a.waited, 0);
    tn_serve_give(serve, &lives[taken - 1], taken - 1); /* the driver's: its end moves nothing here */
    tn_serve_clean(serve, taken - 1);
}

static void give(uint32_t block, uint32_t at)
{
    lives[block].freed = at;
    lives[block].free_stream = lives[block].stream;
    tn_serve_give(serve, &lives[block], block);
}

START_TEST(regions_take_as_many_requests_as_planned_and_no_more_bytes)
{
    spill(UNLISTED, 512, 0, TN_SPILL_NO_ROOM, 512);
    take(T1, 512, 0, 0);
    take(T1, 512, 0, 0);
    uint32_t third = take(T1, 512, 0, 0); /* the first region is closed: another */
    spill(T1, 600, 0, TN_SPILL_NO_ROOM, 512);
    uint32_t last = take(T1, 512, 0, 0);
    give(third, 1); /* closes the region in hand */
    take(T1, 1000, 0, 0);
    give(last, 2);
}
END_TEST

START_TEST(an_arena_takes_back_from_its_end_once_it_is_clean)
{
    take(T2, 2048, 0, 0);
    uint32_t last = take(T2, 2000, 0, 0);
    spill(T2, 1, 0, TN_SPILL_NO_ROOM, 512);
    give(last, 1);
    spill(T2, 2048, 0, TN_SPILL_NO_ROOM, 2048);
    tn_serve_clean(serve, last);
    spill(T2, 2049, 0, TN_SPILL_NO_ROOM, 512);
    take(T2, 2048, 0, 0);
}
END_TEST

START_TEST(a_pool_has_its_blocks_and_waits_for_a_freed_one)
{
    uint32_t first = take(T3, 1000, 0, 0), second = take(T3, 1024, 0, 0);
    spill(T3, 1025, 0, TN_SPILL_TOO_LARGE, 1025);
    spill(T3, 7, 0, TN_SPILL_TOO_MANY, 7);
    give(first, 1);
    uint32_t third = take(T3, 8, 0, 1);
    tn_serve_clean(serve, first); /* the wait has made it clean already: it is not counted out again */
    spill(T3, 7, 0, TN_SPILL_TOO_MANY, 7);
    give(second, 2);
    tn_serve_clean(serve, second);
    take(T3, 9, 0, 0);
    spill(T3, 7, 0, TN_SPILL_TOO_MANY, 7);
    give(third, 3);
    take(T3, 10, 0, 1);
}
END_TEST

START_TEST(a_stream_has_its_freed_blocks_of_a_pool_at_once_and_others_wait_once_for_all)
{
    uint32_t first = take(ORDERED, 1000, 1, 0), second = take(ORDERED, 1000, 1, 0);
    give(first, 1);
    first = take(ORDERED, 1000, 1, 0);
    give(first, 2);
    give(second, 3);
    first = take(ORDERED, 1, 2, 1);
    second = take(ORDERED, 2, 3, 0); /* that wait was for it too */
    spill(ORDERED, 3, 3, TN_SPILL_TOO_MANY, 3);
    give(second, 5);
    ck_assert_int_eq(tn_serve_join(serve, &(tn_trace_join){.at = 7, .to = 1, .from = 3, .upto = 6}), TN_OK);
    second = take(ORDERED, 4, 1, 0);
    give(first, 8);
    tn_serve_clean(serve, first);
    take(ORDERED, 5, 3, 0);
    spill(ORDERED, 1025, 1, TN_SPILL_TOO_LARGE, 1025);
}
END_TEST

START_TEST(each_stream_has_a_stack_and_a_free_is_seen_at_once)
{
    take(STACK, 1024, 1, 0);
    uint32_t top = take(STACK, 1000, 1, 0);
    spill(STACK, 1, 1, TN_SPILL_NO_ROOM, 512);
    take(STACK, 2048, 2, 0);
    spill(STACK, 100, 3, TN_SPILL_NO_ROOM, 100);
    give(top, 1);
    spill(STACK, 1025, 1, TN_SPILL_NO_ROOM, 512);
    take(STACK, 1024, 1, 0);
}
END_TEST

START_TEST(staging_is_what_is_alive_in_whole_pages)
{
    take(STAGING, 4096, 0, 0);
    uint32_t second = take(STAGING, 1, 0, 0);
    spill(STAGING, 1, 0, TN_SPILL_NO_ROOM, 4096);
    give(second, 1);
    spill(STAGING, 4097, 0, TN_SPILL_NO_ROOM, 4096);
    take(STAGING, 4096, 0, 0);
}
END_TEST

START_TEST(slots_are_told_apart_by_size_number_and_neighbour)
{
    uint32_t first = take(LEFT, 1024, 1, 0), second = take(LEFT, 1, 1, 0);
    spill(LEFT, 1025, 1, TN_SPILL_TOO_LARGE, 1025);
    spill(LEFT, 5, 1, TN_SPILL_TOO_MANY, 5);
    spill(RIGHT, 6, 1, TN_SPILL_IN_THE_WAY, 6);
    spill(RIGHT, 1500, 1, TN_SPILL_IN_THE_WAY, 1500);
    give(second, 1); /* the one that is in nobody's way */
    spill(RIGHT, 6, 1, TN_SPILL_IN_THE_WAY, 6);
    give(first, 2);
    take(RIGHT, 1500, 1, 0);
    spill(RIGHT, 2048, 1, TN_SPILL_TOO_MANY, 2048);
    spill(RIGHT, 2049, 1, TN_SPILL_TOO_LARGE, 2049);
    take(LEFT, 1024, 1, 0);
}
END_TEST

START_TEST(a_freed_slot_is_its_streams_at_once_anothers_behind_a_join_and_anyones_once_clean)
{
    uint32_t block;
    take(LEFT, 1024, 1, 0); /* stays */
    for (int round = 0; round < 5; round++) {
        block = take(LEFT, 1024, 1, 0);
        give(block, 10 * (uint32_t)round + 5);
        switch (round) {
        case 0:
            block = take(LEFT, 1024, 1, 0);
            break;
        case 1:
            block = take(LEFT, 1024, 2, 1);
            break;
        case 2: /* a join with what came before the free */
            ck_assert_int_eq(tn_serve_join(serve, &(tn_trace_join){.at = 26, .to = 2, .from = 1, .upto = 24}), TN_OK);
            block = take(LEFT, 1024, 2, 1);
            break;
        case 3:
            ck_assert_int_eq(tn_serve_join(serve, &(tn_trace_join){.at = 36, .to = 2, .from = 1, .upto = 36}), TN_OK);
            block = take(LEFT, 1024, 2, 0);
            break;
        default:
            tn_serve_clean(serve, block);
            block = take(LEFT, 1024, 3, 0);
            tn_serve_clean(serve, block - 1); /* of one that is gone: the slot stays taken */
            spill(LEFT, 1024, 1, TN_SPILL_TOO_MANY, 1024);
        }
        give(block, 10 * (uint32_t)round + 7);
        tn_serve_clean(serve, block);
    }
}
END_TEST

START_TEST(a_wait_makes_clean_whatever_is_freed)
{
    uint32_t blocks[] = {take(LEFT, 1024, 1, 0), take(LEFT, 1024, 1, 0), take(T3, 1000, 0, 0), take(T3, 1000, 0, 0)};
    for (uint32_t i = 0; i < 4; i++)
        give(blocks[i], i + 1);
    take(LEFT, 1024, 2, 1);
    take(LEFT, 1024, 3, 0);
    take(T3, 1000, 0, 0);
    take(T3, 1000, 0, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("serve");
    TCase *c = tcase_create("serve");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, regions_take_as_many_requests_as_planned_and_no_more_bytes);
    tcase_add_test(c, an_arena_takes_back_from_its_end_once_it_is_clean);
    tcase_add_test(c, a_pool_has_its_blocks_and_waits_for_a_freed_one);
    tcase_add_test(c, a_stream_has_its_freed_blocks_of_a_pool_at_once_and_others_wait_once_for_all);
    tcase_add_test(c, each_stream_has_a_stack_and_a_free_is_seen_at_once);
    tcase_add_test(c, staging_is_what_is_alive_in_whole_pages);
    tcase_add_test(c, slots_are_told_apart_by_size_number_and_neighbour);
    tcase_add_test(c, a_freed_slot_is_its_streams_at_once_anothers_behind_a_join_and_anyones_once_clean);
    tcase_add_test(c, a_wait_makes_clean_whatever_is_freed);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
