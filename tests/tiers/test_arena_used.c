/* An arena whose blocks are freed while the device may still use them: bytes are handed out again only when that is done. */
#include "fixture.h"
#include "tick_device.h"

static tn_host *host;
static tn_work work;
static tn_arena *arena;

static void make(tn_arena_discipline discipline, bool keeps_empty)
{
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "used", .discipline = discipline, .first_bytes = 4096,
                                                  .max_regions = 3, .keeps_empty = keeps_empty, .work = &work},
                              &arena));
}

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.quarantine = MIB});
    work = device_begin();
}

static void end(void)
{
    if (arena != NULL)
        expect_ok(tn_arena_destroy(&arena));
    fixture_finish(host);
}

static char *take(size_t bytes)
{
    tn_stable_span span;
    expect_ok(tn_arena_take(arena, bytes, 0, &span));
    return tn_stable_data(span);
}

static void free_in_flight(const char *block, uint64_t queue)
{
    tn_work_set set = device_set(device_enqueue(queue));
    expect_ok(tn_arena_free_used(arena, block, &set));
}

static tn_arena_stats stats_now(void)
{
    tn_arena_stats stats;
    tn_arena_read_stats(arena, &stats);
    return stats;
}

START_TEST(a_top_block_is_not_taken_back_before_it_is_done)
{
    make(TN_ARENA_ENGINE, false);
    char *first = take(1024), *second = take(1024);
    free_in_flight(second, 1);
    ck_assert_uint_eq(stats_now().live_blocks, 1);
    char *third = take(1024); /* above it */
    ck_assert_ptr_eq(third, second + 1024);
    expect_ok(tn_arena_free(arena, third));
    ck_assert_ptr_eq(take(1024), third + 1024);
    device_finish(1);
    expect_ok(tn_arena_free(arena, third + 1024));
    ck_assert_ptr_eq(take(1024), second); /* all three went */
    (void)first;
}
END_TEST

START_TEST(a_take_that_needs_room_finds_what_is_done)
{
    make(TN_ARENA_ENGINE, false);
    char *first = take(2048), *second = take(2048);
    free_in_flight(second, 1);
    device_finish(1);
    ck_assert_ptr_eq(take(2048), second);
    free_in_flight(second, 2);
    char *other = take(2048); /* not done: another region */
    ck_assert(other < first || other >= first + 4096);
    ck_assert_uint_eq(stats_now().regions, 2);
}
END_TEST

START_TEST(the_oldest_region_waits_with_its_bytes)
{
    make(TN_ARENA_ENGINE, false);
    char *first = take(4096);
    free_in_flight(first, 1);
    ck_assert(stats_now().regions == 1 && stats_now().live_blocks == 0);
    char *second = take(4096);
    ck_assert(second < first || second >= first + 4096);
    expect_ok(tn_arena_free(arena, second)); /* which is not the oldest, so it goes */
    ck_assert_uint_eq(stats_now().regions, 1);
    device_finish(1);
    ck_assert_ptr_eq(take(4096), first);
}
END_TEST

START_TEST(a_region_that_the_backend_keeps_is_not_begun_anew_in_use)
{
    make(TN_ARENA_ENGINE, false);
    char *first = take(4096), *second = take(4096);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    free_in_flight(second, 1);
    ck_assert(stats_now().regions == 2 && stats_now().unreleased == 1);
    char *third = take(4096);
    ck_assert(third != first && third != second);
    expect_ok(tn_arena_free(arena, third)); /* now that goes too */
    ck_assert_uint_eq(stats_now().regions, 1);
    second = take(4096);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_ok(tn_arena_free(arena, second));
    ck_assert_ptr_eq(take(4096), second); /* nothing was under way there */
}
END_TEST

START_TEST(marks_go_with_a_region_to_its_releaser)
{
    make(TN_ARENA_MODEL, true);
    char *first = take(1024), *second = take(1024);
    tn_work_mark late = device_enqueue(4);
    tn_work_set set = device_set(late);
    free_in_flight(first, 3);
    expect_ok(tn_arena_free_used(arena, second, &set));
    tn_region region;
    tn_work_set uncovered;
    ck_assert(tn_arena_pop_empty(arena, &region, &uncovered));
    ck_assert_uint_eq(uncovered.count, 2);
    ck_assert(!tn_work_set_is_clean(&uncovered, &work));
    expect_ok(tn_work_set_wait(&uncovered, &work));
    ck_assert(device_done(late));
    expect_ok(tn_backend_release(tn_host_backend(host), &region));
}
END_TEST

START_TEST(marks_without_a_work_table_are_an_argument)
{
    tn_work_set set = device_set(device_enqueue(1)), none = {.count = 0};
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "plain", .first_bytes = 4096, .max_regions = 1}, &arena));
    char *block = take(1);
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free_used(arena, block, &set));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free_used(NULL, block, &none));
    expect_ok(tn_arena_find(arena, block, NULL, NULL));
    expect_ok(tn_arena_free_used(arena, block, &none));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("arena_used");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_top_block_is_not_taken_back_before_it_is_done);
    tcase_add_test(tests, a_take_that_needs_room_finds_what_is_done);
    tcase_add_test(tests, the_oldest_region_waits_with_its_bytes);
    tcase_add_test(tests, a_region_that_the_backend_keeps_is_not_begun_anew_in_use);
    tcase_add_test(tests, marks_go_with_a_region_to_its_releaser);
    tcase_add_test(tests, marks_without_a_work_table_are_an_argument);
    return fixture_run("arena_used", tests);
}
