/* T1: which region a request opens, what closes it, and when it goes back. */
#define _XOPEN_SOURCE 700
#include <pthread.h>
#include <string.h>

#include "tests/serve/place_fixture.h"

enum { TARGET, DRAFT, UNLISTED }; /* rows */
#define T1 "tenure T1"

static void begin(void)
{
    fixture_begin();
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 1 << 20, 0);
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 1 << 20, 0);
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 1 << 20, 0);
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 2 << 20, 0);
    plan_region(TARGET, 512, 8192, 4, 1);
    plan_region(TARGET, 1024, 16384, 3, 1);
    plan_region(DRAFT, 512, 4096, 8, 2);
    place_begin();
}

/* Capacity of the region that was opened last. */
static size_t opened(void)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tn_host_journal_length(device_host); i++) {
        tn_host_entry e;
        expect_ok(tn_host_journal_entry(device_host, i, &e));
        if (e.op == TN_HOST_ACQUIRE && e.error == TN_MEM_OK) bytes = e.after;
    }
    return bytes;
}

static size_t regions(void)
{
    return fixture_count(device_host, TN_HOST_ACQUIRE, -1) - fixture_count(device_host, TN_HOST_RELEASE, -1);
}

START_TEST(the_first_request_says_how_much_a_region_holds)
{
    begin();
    void *a = take(TARGET, 512, 0);
    ck_assert_uint_eq(opened(), 8192);
    give(TARGET, a, 0);
    (void)take(TARGET, 1024, 0);
    ck_assert_uint_eq(opened(), 16384);
    fixture_end();
}
END_TEST

START_TEST(one_that_is_not_listed_has_the_largest_of_its_site)
{
    begin();
    (void)take(TARGET, 700, 0);
    ck_assert_uint_eq(opened(), 16384);
    fixture_end();
}
END_TEST

START_TEST(a_site_without_regions_opens_none_and_goes_into_an_open_one)
{
    begin();
    spill(UNLISTED, 512, 0, TN_PLACE_NO_ROOM);
    ck_assert_uint_eq(regions(), 0);
    char *a = take(DRAFT, 512, 0);
    ck_assert_ptr_eq(take(UNLISTED, 512, 0), a + 512);
    ck_assert_ptr_eq(take(TARGET, 1024, 0), a + 1024);
    ck_assert_uint_eq(regions(), 1);
    fixture_end();
}
END_TEST

START_TEST(what_no_region_would_hold_opens_none)
{
    begin();
    spill(TARGET, 16385, 0, TN_PLACE_NO_ROOM);
    spill(TARGET, SIZE_MAX, 0, TN_PLACE_NO_ROOM);
    ck_assert_uint_eq(fixture_count(device_host, TN_HOST_ACQUIRE, -1), 0);
    fixture_end();
}
END_TEST

START_TEST(blocks_follow_each_other_as_the_plan_counts_them)
{
    fixture_begin();
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 8 << 20, 0);
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 2 << 20, 0);
    plan_region(0, 100, 8 << 20, 9, 1);
    place_begin();
    char *a = take(0, 100, 0);
    ck_assert_ptr_eq(take(0, 513, 0), a + 512);
    (void)take(0, (1 << 20) + 1, 0); /* at a multiple of 2 MiB, wherever the region begins */
    fixture_end();
}
END_TEST

START_TEST(what_no_longer_fits_spills_and_counts_as_a_request)
{
    begin();
    void *a = take(TARGET, 512, 0);
    (void)take(TARGET, 7168, 0);
    spill(TARGET, 1024, 0, TN_PLACE_NO_ROOM); /* the third of four; 512 bytes are left */
    (void)take(TARGET, 512, 0);
    ck_assert_uint_eq(regions(), 1);
    (void)take(TARGET, 512, 0); /* the fifth begins another */
    ck_assert_uint_eq(regions(), 2);
    give(TARGET, a, 0);
    fixture_end();
}
END_TEST

START_TEST(a_region_closes_after_the_planned_number_of_requests)
{
    begin();
    for (int i = 0; i < 3; i++)
        (void)take(TARGET, 1024, 0);
    ck_assert_uint_eq(regions(), 1);
    (void)take(TARGET, 1024, 0);
    ck_assert_uint_eq(regions(), 2);
    fixture_end();
}
END_TEST

START_TEST(a_free_closes_the_region)
{
    begin();
    void *a = take(DRAFT, 512, 0), *b = take(DRAFT, 512, 0);
    give(DRAFT, a, 0);
    ck_assert_uint_eq(regions(), 1);
    void *c = take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 2);
    /* Of an older one's block too. */
    give(DRAFT, b, 0);
    ck_assert_uint_eq(regions(), 1);
    (void)take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 2);
    give(DRAFT, c, 0);
    ck_assert_uint_eq(regions(), 1);
    fixture_end();
}
END_TEST

START_TEST(another_phase_closes_the_region_for_good)
{
    begin();
    *phase() = 1;
    void *a = take(DRAFT, 512, 0);
    *phase() = 2;
    (void)take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 2);
    *phase() = 1;
    char *c = take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 3);
    /* Also where nothing was served in between. */
    *phase() = 2;
    spill(UNLISTED, 512, 0, TN_PLACE_NO_ROOM);
    *phase() = 1;
    char *d = take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 4);
    ck_assert_ptr_ne(d, c + 512);
    give(DRAFT, a, 0);
    fixture_end();
}
END_TEST

START_TEST(a_region_goes_back_when_its_blocks_are_gone)
{
    begin();
    void *a = take(DRAFT, 512, 0), *b = take(DRAFT, 512, 0);
    give_used(DRAFT, a, 0, 1); /* the driver's free waits: nothing has to be clean */
    ck_assert_uint_eq(fixture_journal_live(device_host, T1), 4096);
    give_used(DRAFT, b, 0, 1);
    ck_assert_uint_eq(fixture_journal_live(device_host, T1), 0);
    ck_assert_uint_eq(device_waits(), 0);
    fixture_end();
}
END_TEST

START_TEST(the_middle_one_of_three_regions_can_go_first)
{
    begin();
    void *block[3];
    for (uint8_t i = 0; i < 3; i++) {
        *phase() = i;
        block[i] = take(DRAFT, 512, 0);
    }
    char *more = take(DRAFT, 512, 0);
    give(DRAFT, block[1], 0);
    ck_assert_uint_eq(regions(), 2);
    give(DRAFT, more, 0);
    give(DRAFT, block[0], 0);
    ck_assert_uint_eq(regions(), 1);
    give(DRAFT, block[2], 0);
    ck_assert_uint_eq(regions(), 0);
    fixture_end();
}
END_TEST

START_TEST(two_models_a_load_before_an_unload_and_no_more)
{
    begin();
    void *block[16];
    size_t n = 0;
    /* Four are listed, and twice as many have room. */
    for (; n < 8; n++) {
        *phase() = n & 1;
        block[n] = take(DRAFT, 512, 0);
    }
    *phase() = n & 1;
    spill(DRAFT, 512, 0, TN_PLACE_NO_ROOM);
    ck_assert_uint_eq(regions(), 8);
    give(DRAFT, block[3], 0);
    (void)take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 8);
    fixture_end();
}
END_TEST

START_TEST(a_region_that_is_not_to_be_had_spills_and_the_next_request_tries_again)
{
    begin();
    tn_host_fail(device_host, TN_HOST_ACQUIRE, 1);
    spill(DRAFT, 512, 0, TN_PLACE_NO_ROOM);
    (void)take(DRAFT, 512, 0);
    fixture_end();
}
END_TEST

START_TEST(a_release_that_the_driver_refuses_frees_the_block_and_is_tried_again)
{
    begin();
    tn_work_set clean = {.count = 0};
    void *a = take(DRAFT, 512, 0);
    tn_host_fail(device_host, TN_HOST_RELEASE, 1);
    give(DRAFT, a, 0);
    ck_assert_uint_eq(regions(), 1);
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, DRAFT, a, 0, &clean));
    /* With the next region that opens. */
    void *b = take(DRAFT, 512, 0);
    ck_assert_uint_eq(regions(), 1);
    /* With the next that goes. */
    *phase() = 1;
    void *c = take(DRAFT, 512, 0);
    tn_host_fail(device_host, TN_HOST_RELEASE, 1);
    give(DRAFT, b, 0);
    ck_assert_uint_eq(regions(), 2);
    give(DRAFT, c, 0);
    ck_assert_uint_eq(regions(), 0);
    /* With the end of the place. */
    void *d = take(DRAFT, 512, 0);
    tn_host_fail(device_host, TN_HOST_RELEASE, 1);
    give(DRAFT, d, 0);
    ck_assert_uint_eq(regions(), 1);
    fixture_end();
}
END_TEST

START_TEST(what_is_in_no_region_is_not_freed)
{
    begin();
    tn_work_set clean = {.count = 0};
    char *a = take(DRAFT, 512, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, DRAFT, &clean, 0, &clean));
    expect_error(TN_MEM_E_ARGUMENT, tn_place_give(place, DRAFT, a + 512, 0, &clean));
    ck_assert_ptr_eq(take(DRAFT, 512, 0), a + 512); /* nor is the region closed by that */
    fixture_end();
}
END_TEST

/* ---- regions that stay */

static void begin_pinned(void)
{
    begin();
    tn_place_destroy(&place, 0);
    tn_place_options o = place_options();
    o.pin_regions = 1;
    expect_ok(tn_place_create(&o, &place, NULL));
}

START_TEST(an_empty_region_stays_and_the_next_model_is_loaded_into_it)
{
    begin_pinned();
    char *a = take(DRAFT, 512, 0), *b = take(DRAFT, 512, 0);
    give(DRAFT, a, 0);
    give(DRAFT, b, 0);
    ck_assert_uint_eq(regions(), 1);
    ck_assert_ptr_eq(take(DRAFT, 512, 0), a);
    ck_assert_ptr_eq(take(DRAFT, 512, 0), b);
    ck_assert_uint_eq(fixture_count(device_host, TN_HOST_ACQUIRE, -1), 1);
    /* While it is in use another one is opened beside it. */
    give(DRAFT, a, 0);
    ck_assert_ptr_ne(take(DRAFT, 512, 0), a);
    ck_assert_uint_eq(regions(), 2);
    fixture_end();
}
END_TEST

START_TEST(what_the_device_may_still_use_is_waited_for_before_it_is_used_again)
{
    begin_pinned();
    char *a = take(DRAFT, 512, 0), *b = take(DRAFT, 512, 0);
    give_used(DRAFT, a, 0, 1);
    give(DRAFT, b, 0); /* clean by itself, and in one region with what is not */
    ck_assert_uint_eq(device_waits(), 0);
    tn_place_answer answer = ask(DRAFT, 512, 0, 0);
    ck_assert_ptr_nonnull(answer.address); /* no wait may be made: elsewhere */
    ck_assert_ptr_ne(answer.address, a);
    ck_assert_uint_eq(regions(), 2);
    *phase() = 1;
    answer = ask(DRAFT, 512, 0, 1);
    ck_assert_ptr_eq(answer.address, a);
    ck_assert_uint_eq(answer.waits, 1);
    ck_assert_uint_eq(device_waits(), 1);
    ck_assert_uint_eq(regions(), 2);
    /* What was waited for is forgotten. */
    give(DRAFT, a, 0);
    ck_assert_ptr_eq(take(DRAFT, 512, 0), a);
    fixture_end();
}
END_TEST

START_TEST(where_a_wait_fails_the_region_is_not_used_again)
{
    begin_pinned();
    char *a = take(DRAFT, 512, 0);
    give_used(DRAFT, a, 0, 1);
    device_let_waits_fail(true);
    tn_place_answer answer = ask(DRAFT, 512, 0, 1);
    ck_assert_ptr_nonnull(answer.address);
    ck_assert_ptr_ne(answer.address, a);
    ck_assert_uint_eq(answer.waits, 0);
    ck_assert_uint_eq(regions(), 2);
    device_let_waits_fail(false);
    fixture_end();
}
END_TEST

START_TEST(the_smallest_region_that_will_do_is_used_again_and_holds_what_is_planned_now)
{
    begin_pinned();
    char *large = take(TARGET, 1024, 0); /* 16384 */
    *phase() = 1;
    char *small = take(TARGET, 512, 0); /* 8192 */
    give(TARGET, large, 0);
    give(TARGET, small, 0);
    ck_assert_ptr_eq(take(DRAFT, 512, 0), small); /* 4096 of 8192 */
    ck_assert_ptr_eq(take(DRAFT, 3584, 0), small + 512);
    spill(DRAFT, 512, 0, TN_PLACE_NO_ROOM);
    *phase() = 2;
    ck_assert_ptr_eq(take(TARGET, 1024, 0), large);
    ck_assert_uint_eq(regions(), 2);
    fixture_end();
}
END_TEST

START_TEST(empty_regions_give_way_where_there_would_be_more_than_the_plan_has)
{
    fixture_begin();
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 1 << 20, 0);
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 12288, 0);
    plan_region(0, 512, 4096, 8, 1);
    plan_region(0, 1024, 8192, 8, 1);
    plan_region(0, 2048, 12288, 8, 1);
    plan_done();
    tn_place_options o = place_options();
    o.pin_regions = 1;
    expect_ok(tn_place_create(&o, &place, NULL));
    char *a = take(0, 512, 0);
    *phase() = 1;
    char *b = take(0, 1024, 0);
    give(0, a, 0);
    give(0, b, 0);
    ck_assert_uint_eq(fixture_journal_live(device_host, T1), 12288);
    (void)take(0, 2048, 0); /* fits into neither */
    ck_assert_uint_eq(fixture_journal_live(device_host, T1), 12288);
    fixture_end();
}
END_TEST

START_TEST(empty_regions_give_way_where_the_driver_has_no_memory_left)
{
    begin_pinned();
    char *a = take(DRAFT, 512, 0);
    give(DRAFT, a, 0);
    ck_assert_uint_eq(regions(), 1);
    tn_host_fail(device_host, TN_HOST_ACQUIRE, 1);
    (void)take(TARGET, 1024, 0);
    ck_assert_uint_eq(fixture_journal_live(device_host, T1), 16384);
    fixture_end();
}
END_TEST

/* ---- two threads that open at once */

/* A backend in front of the host's. Where `meet`, two acquires wait for each other, each when it has its memory; and all may get more than
 * they ask for. */
static tn_backend *real;
static pthread_barrier_t both;
static int meet;
static size_t extra;

static tn_mem_error meeting_acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    (void)self;
    tn_mem_error error = tn_backend_acquire(real, bytes + extra, alignment, tag, region);
    if (meet)
        (void)pthread_barrier_wait(&both);
    return error;
}

static tn_mem_error meeting_release(void *self, tn_region *region)
{
    (void)self;
    return tn_backend_release(real, region);
}

static size_t no_capacity(void *self)
{
    (void)self;
    return SIZE_MAX;
}

static const tn_backend_table meeting = {.acquire = meeting_acquire, .release = meeting_release, .capacity = no_capacity};
static size_t bytes_of[2];
static tn_place_answer answers[2];

static void *open_one(void *number)
{
    int i = *(int *)number;
    tn_place_take(place, 0, bytes_of[i], 0, 0, 0, &answers[i]);
    return NULL;
}

/* Over that backend, regions of 4096 bytes. */
static void begin_behind(uint64_t count)
{
    static tn_backend backend;
    fixture_begin();
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 1 << 20, 0);
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 2 << 20, 0);
    plan_region(0, 512, 4096, count, 2);
    plan_done();
    real = tn_host_backend(device_host);
    expect_ok(tn_backend_init(&backend, &meeting, NULL, NULL));
    tn_place_options o = place_options();
    o.device = &backend;
    expect_ok(tn_place_create(&o, &place, NULL));
}

START_TEST(a_region_holds_what_was_planned_though_the_driver_gave_more)
{
    extra = 1 << 20;
    begin_behind(9);
    char *a = take(0, 512, 0);
    ck_assert_ptr_eq(take(0, 3584, 0), a + 512);
    spill(0, 1, 0, TN_PLACE_NO_ROOM);
    fixture_end();
}
END_TEST

/* Both find no region open, both acquire one before either is seen. */
static void open_at_once(uint64_t count)
{
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    begin_behind(count);
    ck_assert_int_eq(pthread_barrier_init(&both, NULL, 2), 0);
    meet = 1;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_one, &numbers[i]), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    meet = 0;
    pthread_barrier_destroy(&both);
    ck_assert_uint_eq(fixture_count(device_host, TN_HOST_ACQUIRE, -1), 2);
}

static void end_at_once(void)
{
    for (int i = 0; i < 2; i++)
        if (answers[i].address)
            give(0, answers[i].address, 0);
    ck_assert_uint_eq(fixture_journal_live(device_host, NULL), 0);
    tn_place_destroy(&place, 0);
    fixture_end();
}

START_TEST(of_two_threads_that_open_at_once_one_has_the_others_region)
{
    bytes_of[0] = bytes_of[1] = 512;
    open_at_once(8);
    ck_assert_uint_eq(regions(), 1);
    ck_assert_ptr_nonnull(answers[0].address);
    ck_assert_ptr_nonnull(answers[1].address);
    ck_assert_ptr_ne(answers[0].address, answers[1].address);
    end_at_once();
}
END_TEST

START_TEST(of_two_threads_that_open_at_once_what_does_not_fit_spills)
{
    bytes_of[0] = bytes_of[1] = 4096;
    open_at_once(8);
    ck_assert_uint_eq(regions(), 1);
    ck_assert(!answers[0].address != !answers[1].address);
    ck_assert_int_eq(answers[answers[0].address ? 1 : 0].spill, TN_PLACE_NO_ROOM);
    end_at_once();
}
END_TEST

START_TEST(of_two_threads_that_open_at_once_each_has_a_region_for_one_request)
{
    bytes_of[0] = bytes_of[1] = 4096;
    open_at_once(1);
    ck_assert_uint_eq(regions(), 2);
    end_at_once();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("model");
    tcase_add_test(tests, the_first_request_says_how_much_a_region_holds);
    tcase_add_test(tests, one_that_is_not_listed_has_the_largest_of_its_site);
    tcase_add_test(tests, a_site_without_regions_opens_none_and_goes_into_an_open_one);
    tcase_add_test(tests, what_no_region_would_hold_opens_none);
    tcase_add_test(tests, blocks_follow_each_other_as_the_plan_counts_them);
    tcase_add_test(tests, what_no_longer_fits_spills_and_counts_as_a_request);
    tcase_add_test(tests, a_region_holds_what_was_planned_though_the_driver_gave_more);
    tcase_add_test(tests, a_region_closes_after_the_planned_number_of_requests);
    tcase_add_test(tests, a_free_closes_the_region);
    tcase_add_test(tests, another_phase_closes_the_region_for_good);
    tcase_add_test(tests, a_region_goes_back_when_its_blocks_are_gone);
    tcase_add_test(tests, the_middle_one_of_three_regions_can_go_first);
    tcase_add_test(tests, two_models_a_load_before_an_unload_and_no_more);
    tcase_add_test(tests, a_region_that_is_not_to_be_had_spills_and_the_next_request_tries_again);
    tcase_add_test(tests, a_release_that_the_driver_refuses_frees_the_block_and_is_tried_again);
    tcase_add_test(tests, what_is_in_no_region_is_not_freed);
    tcase_add_test(tests, an_empty_region_stays_and_the_next_model_is_loaded_into_it);
    tcase_add_test(tests, what_the_device_may_still_use_is_waited_for_before_it_is_used_again);
    tcase_add_test(tests, where_a_wait_fails_the_region_is_not_used_again);
    tcase_add_test(tests, the_smallest_region_that_will_do_is_used_again_and_holds_what_is_planned_now);
    tcase_add_test(tests, empty_regions_give_way_where_there_would_be_more_than_the_plan_has);
    tcase_add_test(tests, empty_regions_give_way_where_the_driver_has_no_memory_left);
    tcase_add_test(tests, of_two_threads_that_open_at_once_one_has_the_others_region);
    tcase_add_test(tests, of_two_threads_that_open_at_once_what_does_not_fit_spills);
    tcase_add_test(tests, of_two_threads_that_open_at_once_each_has_a_region_for_one_request);
    return fixture_run("place_model", tests);
}
