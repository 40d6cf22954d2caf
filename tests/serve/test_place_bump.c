/* The tiers that bump: what they take back, when, and for whom. */
#include <string.h>

#include "tests/serve/place_fixture.h"

enum { ENGINE, STACK }; /* rows */

static void begin(tn_family family, uint64_t capacity, uint64_t streams)
{
    fixture_begin();
    plan_row(TN_D_T2, family, capacity, 0);
    plan_row(TN_D_T4, TN_FAMILY_ASYNC, 4096, 0);
    plan_tier(TN_D_T2, family, 0, capacity, 0);
    plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 4096, streams);
    place_begin();
}

static size_t distance(const void *a, const void *b)
{
    return (size_t)((const char *)b - (const char *)a);
}

START_TEST(blocks_of_the_engine_follow_each_other_in_steps_of_512_bytes)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    char *a = take(ENGINE, 1, 0), *b = take(ENGINE, 513, 0), *c = take(ENGINE, 2560, 0);
    ck_assert_uint_eq(distance(a, b), 512);
    ck_assert_uint_eq(distance(b, c), 1024);
    spill(ENGINE, 1, 0, TN_PLACE_NO_ROOM);
    spill(ENGINE, SIZE_MAX, 0, TN_PLACE_NO_ROOM);
    fixture_end();
}
END_TEST

/* A backend whose memory is aligned as asked and no further: a 2 MiB step, and then that much. */
static tn_region whole;

static tn_mem_error barely_acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    tn_mem_error error = tn_backend_acquire(self, bytes + (4 << 20), 4 << 20, tag, &whole);
    *region = whole;
    region->base = (char *)whole.base + alignment;
    region->committed = region->reserved = bytes;
    return error;
}

static tn_mem_error barely_release(void *self, tn_region *region)
{
    (void)region;
    return tn_backend_release(self, &whole);
}

static size_t barely_capacity(void *self)
{
    (void)self;
    return SIZE_MAX;
}

/* The plan counts from 0; an arena that begins elsewhere than at a multiple of 2 MiB would lose up to that. */
START_TEST(large_blocks_need_no_more_room_than_was_planned)
{
    static const tn_backend_table table = {.acquire = barely_acquire, .release = barely_release, .capacity = barely_capacity};
    tn_backend barely;
    fixture_begin();
    plan_row(TN_D_T2, TN_FAMILY_DEVICE, 8 << 20, 0);
    plan_tier(TN_D_T2, TN_FAMILY_DEVICE, 0, 8 << 20, 0);
    plan_done();
    expect_ok(tn_backend_init(&barely, &table, tn_host_backend(device_host), NULL));
    tn_place_options o = place_options();
    o.device = &barely;
    expect_ok(tn_place_create(&o, &place, NULL));
    char *a = take(ENGINE, 512, 0), *b = take(ENGINE, (1 << 20) + 1, 0), *c = take(ENGINE, 4 << 20, 0);
    ck_assert_uint_eq(distance(a, b), 2 << 20);
    ck_assert_uint_eq(distance(a, c), 4 << 20);
    fixture_end();
}
END_TEST

START_TEST(what_is_clean_is_taken_back_from_the_top)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    void *a = take(ENGINE, 2048, 0), *b = take(ENGINE, 1024, 0), *c = take(ENGINE, 1024, 0);
    give(ENGINE, b, 0);
    spill(ENGINE, 1, 0, TN_PLACE_NO_ROOM);
    give(ENGINE, c, 0);
    ck_assert_ptr_eq(take(ENGINE, 2048, 0), b);
    give(ENGINE, a, 0);
    spill(ENGINE, 1, 0, TN_PLACE_NO_ROOM);
    fixture_end();
}
END_TEST

START_TEST(what_is_not_clean_is_not_taken_back)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    (void)take(ENGINE, 2048, 0);
    void *b = take(ENGINE, 2048, 0);
    give_used(ENGINE, b, 0, 1);
    spill(ENGINE, 2048, 0, TN_PLACE_NO_ROOM);
    /* Nor is anything waited for: it has no block that a wait would surely bring. */
    ck_assert_int_eq(ask(ENGINE, 2048, 0, 1).spill, TN_PLACE_NO_ROOM);
    ck_assert_uint_eq(device_waits(), 0);
    device_finish(1);
    ck_assert_ptr_eq(take(ENGINE, 2048, 0), b);
    fixture_end();
}
END_TEST

START_TEST(a_block_that_is_used_for_long_keeps_no_other)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    void *a = take(ENGINE, 2048, 0), *b = take(ENGINE, 2048, 0);
    give_used(ENGINE, a, 0, 1);
    give_used(ENGINE, b, 0, 2);
    device_finish(2);
    ck_assert_ptr_eq(take(ENGINE, 1024, 0), b);
    fixture_end();
}
END_TEST

START_TEST(what_has_become_clean_is_taken_back_before_the_arena_is_full)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    void *a = take(ENGINE, 1024, 0);
    give_used(ENGINE, a, 0, 1);
    device_finish(1);
    ck_assert_ptr_eq(take(ENGINE, 1024, 0), a);
    fixture_end();
}
END_TEST

START_TEST(an_engine_of_stream_ordered_memory_does_not_go_by_streams)
{
    begin(TN_FAMILY_ASYNC, 4096, 1);
    void *a = take(ENGINE, 4096, 1);
    give_used(ENGINE, a, 1, 1);
    spill(ENGINE, 4096, 1, TN_PLACE_NO_ROOM);
    device_finish(1);
    ck_assert_ptr_eq(take(ENGINE, 4096, 2), a);
    fixture_end();
}
END_TEST

/* Frees far more blocks than can wait one by one, with work that is done in another order. */
static void free_many(uint32_t row, uint32_t stream, uint64_t queue, size_t count)
{
    static void *blocks[4096];
    for (size_t i = 0; i < count; i++)
        blocks[i] = take(row, 512, stream);
    for (size_t i = 0; i < count; i++)
        give_used(row, blocks[i], stream, queue + (i & 1));
}

START_TEST(more_frees_than_can_wait_one_by_one_are_all_taken_back)
{
    enum { COUNT = 4096 };
    begin(TN_FAMILY_DEVICE, COUNT * 512, 1);
    tn_place_stats stats;
    free_many(ENGINE, 0, 1, COUNT);
    device_finish(1);
    spill(ENGINE, COUNT * 512, 0, TN_PLACE_NO_ROOM);
    device_finish(2);
    (void)take(ENGINE, COUNT * 512, 0);
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.not_taken_back, 0);
    fixture_end();
}
END_TEST

START_TEST(a_free_that_finds_no_room_to_wait_in_is_counted)
{
    enum { COUNT = 1024 + 10 };
    fixture_begin();
    plan_row(TN_D_T4, TN_FAMILY_ASYNC, 512, 0);
    plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 2 * COUNT * 512, 1);
    place_begin();
    tn_place_stats stats;
    char *lost = NULL;
    for (size_t i = 0; i < COUNT; i++)
        lost = take(0, 512, 1);
    for (size_t i = 0; i < COUNT; i++)
        give_used(0, lost - (COUNT - 1 - i) * 512, 1, 2);
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.not_taken_back, 10);
    device_finish(2);
    ck_assert_ptr_eq(take(0, 512, 1), lost + 512); /* above those that were lost */
    fixture_end();
}
END_TEST

START_TEST(a_full_wait_is_looked_through_before_a_free_is_lost)
{
    enum { COUNT = 1024 };
    fixture_begin();
    plan_row(TN_D_T4, TN_FAMILY_ASYNC, 512, 0);
    plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 4 * COUNT * 512, 1);
    place_begin();
    tn_place_stats stats;
    char *first = take(0, 512, 1), *last = first;
    for (size_t i = 1; i <= COUNT; i++)
        last = take(0, 512, 1);
    for (size_t i = 0; i < COUNT; i++)
        give_used(0, first + i * 512, 1, 2);
    device_finish(2);
    give_used(0, last, 1, 2);
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.not_taken_back, 0);
    device_finish(2);
    ck_assert_ptr_eq(take(0, 512, 1), first);
    fixture_end();
}
END_TEST

/* What is looked at before each take is bounded, and comes round. */
START_TEST(blocks_that_wait_behind_others_come_to_their_turn)
{
    enum { COUNT = 100 };
    begin(TN_FAMILY_DEVICE, 1 << 20, 1);
    char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = take(ENGINE, 512, 0);
    for (size_t i = 0; i < COUNT; i++)
        give_used(ENGINE, blocks[i], 0, i < COUNT / 2 ? 1 : 2);
    device_finish(2); /* the upper half */
    for (size_t i = 0; i < COUNT; i++) {
        void *a = take(ENGINE, 512, 0);
        give(ENGINE, a, 0);
    }
    ck_assert_ptr_eq(take(ENGINE, 512, 0), blocks[COUNT / 2]);
    fixture_end();
}
END_TEST

START_TEST(a_free_of_what_is_no_block_changes_nothing)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    char *a = take(ENGINE, 1024, 0), *s = take(STACK, 1024, 1);
    tn_work_set sets[] = {{.count = 0}, device_set(device_enqueue(3))};
    for (int used = 0; used < 2; used++) {
        expect_error(TN_MEM_E_STALE, tn_place_give(place, ENGINE, a + 2048, 0, &sets[used]));
        expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, ENGINE, a + 512, 0, &sets[used]));
        expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, ENGINE, sets, 0, &sets[used]));
        expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, STACK, s + 512, 1, &sets[used]));
        expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, STACK, s, 2, &sets[used])); /* a stream without a stack */
    }
    device_finish(3);
    give(ENGINE, a, 0);
    ck_assert_ptr_eq(take(ENGINE, 4096, 0), a);
    fixture_end();
}
END_TEST

START_TEST(a_free_for_an_unknown_stream_uses_up_no_stack)
{
    begin(TN_FAMILY_DEVICE, 4096, 2);
    tn_work_set clean = {.count = 0};
    void *s = take(STACK, 512, 1);
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, STACK, s, 7, &clean));
    (void)take(STACK, 512, 2);
    fixture_end();
}
END_TEST

START_TEST(each_stream_has_a_stack_of_its_own_and_more_have_none)
{
    begin(TN_FAMILY_DEVICE, 4096, 2);
    char *a = take(STACK, 4096, 5), *b = take(STACK, 4096, 9);
    ck_assert(b >= a + 4096 || a >= b + 4096);
    spill(STACK, 512, 7, TN_PLACE_NO_ROOM);
    spill(STACK, 512, 5, TN_PLACE_NO_ROOM);
    give_used(STACK, a, 5, 5);
    spill(STACK, 512, 7, TN_PLACE_NO_ROOM);
    ck_assert_ptr_eq(take(STACK, 4096, 5), a);
    fixture_end();
}
END_TEST

START_TEST(a_stack_gives_back_in_its_streams_order_at_once)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    char *a = take(STACK, 1000, 1), *b = take(STACK, 1000, 1);
    ck_assert_uint_eq(distance(a, b), 1024);
    give_used(STACK, b, 1, 1);
    ck_assert_ptr_eq(take(STACK, 512, 1), b);
    give_used(STACK, a, 1, 1); /* under another: a tombstone */
    ck_assert_ptr_eq(take(STACK, 512, 1), b + 512);
    fixture_end();
}
END_TEST

START_TEST(a_block_that_another_stream_freed_waits_for_the_stacks_stream)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    void *a = take(STACK, 4096, 1);
    give_used(STACK, a, 1, 2);
    spill(STACK, 512, 1, TN_PLACE_NO_ROOM);
    device_join(1, 2);
    ck_assert_ptr_eq(take(STACK, 4096, 1), a);
    give_used(STACK, a, 1, 2);
    spill(STACK, 512, 1, TN_PLACE_NO_ROOM);
    device_finish(2);
    ck_assert_ptr_eq(take(STACK, 4096, 1), a);
    fixture_end();
}
END_TEST

START_TEST(bump_rows_need_no_holds)
{
    begin(TN_FAMILY_DEVICE, 4096, 1);
    void *a = take(ENGINE, 512, 0), *s = take(STACK, 512, 1);
    expect_error(TN_MEM_E_ARGUMENT, tn_place_hold(place, ENGINE, a));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_hold(place, STACK, s));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_release_hold(place, ENGINE, a));
    fixture_end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("bump");
    tcase_add_test(tests, blocks_of_the_engine_follow_each_other_in_steps_of_512_bytes);
    tcase_add_test(tests, large_blocks_need_no_more_room_than_was_planned);
    tcase_add_test(tests, what_is_clean_is_taken_back_from_the_top);
    tcase_add_test(tests, what_is_not_clean_is_not_taken_back);
    tcase_add_test(tests, a_block_that_is_used_for_long_keeps_no_other);
    tcase_add_test(tests, what_has_become_clean_is_taken_back_before_the_arena_is_full);
    tcase_add_test(tests, an_engine_of_stream_ordered_memory_does_not_go_by_streams);
    tcase_add_test(tests, more_frees_than_can_wait_one_by_one_are_all_taken_back);
    tcase_add_test(tests, a_free_that_finds_no_room_to_wait_in_is_counted);
    tcase_add_test(tests, a_full_wait_is_looked_through_before_a_free_is_lost);
    tcase_add_test(tests, blocks_that_wait_behind_others_come_to_their_turn);
    tcase_add_test(tests, a_free_of_what_is_no_block_changes_nothing);
    tcase_add_test(tests, a_free_for_an_unknown_stream_uses_up_no_stack);
    tcase_add_test(tests, each_stream_has_a_stack_of_its_own_and_more_have_none);
    tcase_add_test(tests, a_stack_gives_back_in_its_streams_order_at_once);
    tcase_add_test(tests, a_block_that_another_stream_freed_waits_for_the_stacks_stream);
    tcase_add_test(tests, bump_rows_need_no_holds);
    return fixture_run("place_bump", tests);
}
