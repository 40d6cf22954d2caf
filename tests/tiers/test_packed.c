/* The packed slots' rules one by one: where a block goes, what stands in its way, when it is clean and for whom, what a graph holds, and
 * failures at every call. */
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

/* Site 0: two small ones beside each other. Site 1: one that lies over both and beyond. Site 2: two classes, over the end of site 1's.
 * Site 3 has none. Site 4: the last quarter alone. */
static const tn_packed_slot slots[] = {
    {.site = 0, .ordinal = 0, .offset = 0, .bytes = 1024},
    {.site = 0, .ordinal = 1, .offset = 1024, .bytes = 1024},
    {.site = 1, .offset = 0, .bytes = 4096},
    {.site = 2, .size_class = 0, .offset = 3072, .bytes = 512},
    {.site = 2, .size_class = 1, .offset = 3072, .bytes = 2048},
    {.site = 4, .offset = 6144, .bytes = 2048, .alignment = 2048},
};
enum { A0, A1, OVER, SMALL, LARGE, LAST, CAPACITY = 8192 };

static const tn_packed_plan plan = {.slots = slots, .slot_count = 6, .site_count = 5, .capacity = CAPACITY};

static tn_host *host;
static tn_packed *packed;
static tn_work work;
static tn_packed_refusal why;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
    work = device_begin();
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &plan, .work = work}, &packed));
}

static void end(void)
{
    if (packed != NULL)
        expect_ok(tn_packed_destroy(&packed));
    fixture_finish(host);
}

static tn_packed_stats stats_now(void)
{
    tn_packed_stats stats;
    tn_packed_read_stats(packed, &stats);
    return stats;
}

static size_t offset_of(tn_stable_span span)
{
    return (size_t)((char *)tn_stable_data(span) - (char *)tn_packed_region(packed).data);
}

/* Takes for `queue`; where it lies must be the slot's place. */
static void *take_on(uint32_t site, size_t bytes, uint64_t queue, unsigned slot)
{
    tn_stable_span span;
    expect_ok(tn_packed_take(packed, site, bytes, queue, &span, &why));
    ck_assert_uint_eq(tn_stable_bytes(span), bytes);
    ck_assert_uint_eq(offset_of(span), slots[slot].offset);
    memset(tn_stable_data(span), 0x33, bytes);
    return tn_stable_data(span);
}

static void *take(uint32_t site, size_t bytes, unsigned slot)
{
    return take_on(site, bytes, TN_WORK_NO_QUEUE, slot);
}

static void refuse_on(tn_mem_error error, uint32_t site, size_t bytes, uint64_t queue, tn_packed_cause cause, unsigned slot)
{
    tn_stable_span span;
    expect_error(error, tn_packed_take(packed, site, bytes, queue, &span, &why));
    ck_assert_ptr_null(tn_stable_data(span));
    ck_assert_int_eq(why.cause, cause);
    ck_assert_uint_eq(why.site, site);
    ck_assert_uint_eq(why.bytes, bytes);
    ck_assert_uint_eq(why.slot, slot);
    if (slot != TN_PACKED_NO_SLOT)
        ck_assert_uint_eq(why.slot_site, slots[slot].site);
    ck_assert_int_eq(why.wait_for.count > 0, error == TN_MEM_E_MUST_WAIT);
}

static void diverge(uint32_t site, size_t bytes, tn_packed_cause cause, unsigned slot)
{
    refuse_on(TN_MEM_E_DIVERGED, site, bytes, TN_WORK_NO_QUEUE, cause, slot);
}

static void must_wait(uint32_t site, size_t bytes, uint64_t queue, unsigned slot)
{
    refuse_on(TN_MEM_E_MUST_WAIT, site, bytes, queue, TN_PACKED_NOT_CLEAN, slot);
}

static void free_clean(const void *address)
{
    expect_ok(tn_packed_free(packed, address, NULL));
}

static tn_work_mark free_in_flight(const void *address, uint64_t queue)
{
    tn_work_mark mark = device_enqueue(queue);
    tn_work_set set = device_set(mark);
    expect_ok(tn_packed_free(packed, address, &set));
    return mark;
}

START_TEST(bad_options_are_refused_and_acquire_nothing)
{
    tn_packed_options good = {.backend = tn_host_backend(host), .tag = "other", .plan = &plan, .work = work};
    tn_packed_slot beyond = slots[LAST];
    beyond.site = 0;
    tn_packed_plan bad_plan = {.slots = &beyond, .slot_count = 1, .site_count = 1, .capacity = CAPACITY - 1};
    tn_packed_options bad[5] = {good, good, good, good, good};
    bad[0].backend = NULL;
    bad[1].tag = NULL;
    bad[2].plan = NULL;
    bad[3].plan = &bad_plan;
    bad[4].work = (tn_work){0};
    tn_packed *other = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(TN_MEM_E_ARGUMENT, tn_packed_create(&bad[i], &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_create(NULL, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_create(&good, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_destroy(&other));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_destroy(NULL));
    bad_plan.capacity = PTRDIFF_MAX;
    bad[3].plan = &bad_plan;
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_packed_create(&bad[3], &other));
    ck_assert_ptr_null(other);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
}
END_TEST

START_TEST(a_block_goes_to_the_lowest_ordinal_of_its_smallest_class)
{
    void *a = take(0, 1024, A0);
    void *b = take(0, 1, A1);
    free_clean(a);
    ck_assert_ptr_eq(take(0, 500, A0), a);
    free_clean(b);
    ck_assert_ptr_eq(take(0, 500, A1), b);
    free_clean(take(2, 512, SMALL));
    free_clean(take(2, 513, LARGE));
    void *last = take(4, 2048, LAST);
    ck_assert_uint_eq((uintptr_t)last % 2048, 0);
    ck_assert_uint_eq(stats_now().live_blocks, 3);
    ck_assert_uint_eq(stats_now().live_bytes, 500 + 500 + 2048);
    ck_assert_uint_eq(stats_now().takes, 7);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
}
END_TEST

START_TEST(addresses_are_aligned_as_planned)
{
    /* So wide that no mapping has it by chance. */
    static const tn_packed_slot wide[] = {{.offset = 0, .bytes = 1, .alignment = GIB / 4}, {.site = 1, .offset = 256, .bytes = 1}};
    const tn_packed_plan wide_plan = {.slots = wide, .slot_count = 2, .site_count = 2, .capacity = KIB};
    tn_packed_options options = {.backend = tn_host_backend(host), .tag = "wide", .plan = &wide_plan, .work = work};
    tn_packed *other;
    expect_ok(tn_packed_create(&options, &other));
    tn_stable_span span;
    expect_ok(tn_packed_take(other, 0, 1, TN_WORK_NO_QUEUE, &span, NULL));
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % (GIB / 4), 0);
    expect_ok(tn_packed_take(other, 1, 1, TN_WORK_NO_QUEUE, &span, NULL));
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % (GIB / 4), 256);
    expect_ok(tn_packed_destroy(&other));
}
END_TEST

START_TEST(what_the_plan_has_no_place_for_diverges_and_is_named)
{
    (void)take(0, 10, A0);
    (void)take(0, 10, A1);
    diverge(0, 10, TN_PACKED_ALL_ALIVE, A0);
    diverge(0, 1025, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
    diverge(0, SIZE_MAX, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
    diverge(3, 1, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
    diverge(5, 1, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
    diverge(UINT32_MAX, 1, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
    tn_stable_span span;
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(packed, 1, 0, 0, &span, &why));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(packed, 1, 1, 0, NULL, &why));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(NULL, 1, 1, 0, &span, &why));
    expect_error(TN_MEM_E_DIVERGED, tn_packed_take(packed, 3, 1, 0, &span, NULL));
    ck_assert_uint_eq(stats_now().diverged, 7);
    ck_assert_int_eq(stats_now().first_diverged.cause, TN_PACKED_ALL_ALIVE);
    ck_assert_uint_eq(stats_now().first_diverged.bytes, 10);
}
END_TEST

START_TEST(a_live_slot_that_shares_an_address_is_in_the_way)
{
    void *b = take(0, 10, A0);
    free_clean(take(0, 1, A1));
    (void)take(0, 1, A1);
    free_clean(b);
    diverge(1, 4096, TN_PACKED_IN_THE_WAY, A1);
    (void)take(0, 1, A0);
    diverge(1, 1, TN_PACKED_IN_THE_WAY, A0);
    /* Whoever lies beside is not. */
    void *small = take(2, 1, SMALL);
    diverge(2, 513, TN_PACKED_IN_THE_WAY, SMALL);
    free_clean(small);
    void *large = take(2, 513, LARGE);
    diverge(2, 1, TN_PACKED_IN_THE_WAY, LARGE);
    free_clean(large);
    (void)take(2, 1, SMALL);
}
END_TEST

START_TEST(clean_slots_pass_their_bytes_on_in_any_pattern)
{
    for (int i = 0; i < 5; i++) {
        void *a = take(0, 1, A0), *b = take(0, 1, A1), *s = take(2, 1, SMALL);
        free_clean(b);
        free_clean(a);
        free_clean(s);
        free_clean(take(1, 4096, OVER));
        free_clean(take(2, 2048, LARGE)); /* takes only the end of OVER's */
        free_clean(take(0, 1, A0));
        free_clean(take(1, 4096, OVER));
    }
    ck_assert_uint_eq(stats_now().live_blocks, 0);
    ck_assert_uint_eq(stats_now().must_waits, 0);
    ck_assert_uint_eq(stats_now().diverged, 0);
}
END_TEST

START_TEST(a_slot_freed_in_flight_is_not_handed_out_before_it_is_done)
{
    void *over = take(1, 4096, OVER);
    tn_work_mark mark = free_in_flight(over, 3);
    must_wait(1, 1, TN_WORK_NO_QUEUE, OVER);
    ck_assert_uint_eq(why.wait_for.count, 1);
    ck_assert_uint_eq(why.wait_for.marks[0].queue, 3);
    ck_assert_uint_eq(why.wait_for.marks[0].sequence, mark.sequence);
    must_wait(0, 1, TN_WORK_NO_QUEUE, OVER);
    must_wait(2, 513, TN_WORK_NO_QUEUE, OVER);
    ck_assert_uint_eq(stats_now().must_waits, 3);
    ck_assert_uint_eq(stats_now().diverged, 0);
    ck_assert_uint_eq(stats_now().freed_blocks, 1);
    expect_ok(tn_work_set_wait(&why.wait_for, &work));
    (void)take(2, 513, LARGE);
    (void)take(0, 1, A0);
}
END_TEST

START_TEST(the_next_ordinal_serves_where_the_lowest_is_not_clean)
{
    void *a = take(0, 1, A0);
    (void)free_in_flight(a, 1);
    void *b = take(0, 1, A1);
    must_wait(0, 1, TN_WORK_NO_QUEUE, A0);
    (void)free_in_flight(b, 2);
    must_wait(0, 1, TN_WORK_NO_QUEUE, A0);
    ck_assert_uint_eq(why.wait_for.count, 1);
    /* What lies over both must wait for both. */
    must_wait(1, 1, TN_WORK_NO_QUEUE, A0);
    ck_assert_uint_eq(why.wait_for.count, 2);
    device_finish(2);
    (void)take(0, 1, A1);
    device_finish(1);
    (void)take(0, 1, A0);
}
END_TEST

START_TEST(an_ordinal_whose_work_came_before_what_is_not_done_serves)
{
    void *a = take(0, 1, A0), *b = take(0, 1, A1);
    (void)free_in_flight(b, 1);
    device_finish(1);
    (void)free_in_flight(a, 1);
    b = take(0, 1, A1); /* of the same queue, and done */
    (void)free_in_flight(b, 1);
    must_wait(0, 1, TN_WORK_NO_QUEUE, A0);
    device_finish(1);
    (void)take(0, 1, A0);
    (void)take(0, 1, A1);
}
END_TEST

START_TEST(a_live_slot_is_in_the_way_also_where_another_is_not_clean)
{
    void *a = take(0, 1, A0);
    (void)take(0, 1, A1);
    (void)free_in_flight(a, 1);
    diverge(1, 1, TN_PACKED_IN_THE_WAY, A1);
    ck_assert_uint_eq(why.wait_for.count, 0);
}
END_TEST

START_TEST(the_queue_of_the_free_need_not_wait_and_others_need_a_join)
{
    void *over = take_on(1, 1, 1, OVER);
    (void)free_in_flight(over, 1);
    must_wait(0, 1, 2, OVER);
    void *a = take_on(0, 1, 1, A0);
    free_clean(a);
    (void)free_in_flight(take_on(0, 1, 1, A0), 1);
    must_wait(0, 1, 2, A0);
    device_join(2, 1);
    (void)take_on(0, 1, 2, A0);
}
END_TEST

/* The whole slot is passed on in order; what its taker does not cover is still in use for everyone else. */
START_TEST(what_is_left_of_a_slot_that_was_passed_on_in_order_is_still_not_clean)
{
    void *over = take_on(1, 1, 1, OVER);
    (void)free_in_flight(over, 1);
    void *a = take_on(0, 1, 1, A0);
    must_wait(0, 1, 2, OVER);
    must_wait(2, 1, TN_WORK_NO_QUEUE, OVER);
    void *s = take_on(2, 1, 1, SMALL);
    free_clean(s); /* it was never used itself, but OVER's work still may use its bytes */
    must_wait(2, 1, TN_WORK_NO_QUEUE, SMALL);
    must_wait(2, 513, 2, SMALL);
    free_clean(a);
    must_wait(1, 1, TN_WORK_NO_QUEUE, OVER);
    device_finish(1);
    (void)take(2, 513, LARGE);
    (void)take(0, 1, A0);
}
END_TEST

START_TEST(work_on_more_queues_than_a_set_holds_is_waited_for_all_the_same)
{
    for (uint64_t q = 1; q <= 6; q++) {
        void *s = take_on(4, 1, q, LAST);
        (void)free_in_flight(s, q);
        for (uint64_t next = 1; next <= q; next++)
            device_join(q + 1, next);
        if (q >= TN_WORK_SET_MARKS + 1)
            break;
    }
    must_wait(4, 1, TN_WORK_NO_QUEUE, LAST);
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++) {
        must_wait(4, 1, TN_WORK_NO_QUEUE, LAST);
        device_finish(q);
    }
    (void)take(4, 1, LAST);
}
END_TEST

START_TEST(a_held_slot_goes_back_to_its_own_site_alone)
{
    void *a = take(0, 1, A0);
    expect_ok(tn_packed_hold(packed, a));
    expect_ok(tn_packed_hold(packed, a));
    free_clean(a);
    ck_assert_uint_eq(stats_now().held_blocks, 1);
    diverge(1, 1, TN_PACKED_HELD, A0);
    ck_assert_ptr_eq(take(0, 1, A0), a);
    diverge(1, 1, TN_PACKED_IN_THE_WAY, A0);
    free_clean(a);
    expect_ok(tn_packed_release_hold(packed, a));
    diverge(1, 1, TN_PACKED_HELD, A0);
    expect_ok(tn_packed_release_hold(packed, a));
    expect_error(TN_MEM_E_STALE, tn_packed_release_hold(packed, a));
    expect_ok(tn_packed_hold(packed, a)); /* freed, and its bytes not passed on */
    expect_ok(tn_packed_release_hold(packed, a));
    void *over = take(1, 1, OVER);
    ck_assert_ptr_eq(over, a);
    expect_ok(tn_packed_hold(packed, over)); /* the block that is there now */
    free_clean(over);
    diverge(0, 1, TN_PACKED_HELD, OVER);
    expect_ok(tn_packed_release_hold(packed, over));
    (void)take(0, 1, A0);
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_hold(packed, (char *)a + 1));
    expect_error(TN_MEM_E_STALE, tn_packed_hold(packed, (char *)tn_packed_region(packed).data + slots[LAST].offset));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_hold(NULL, a));
    for (int i = 0; i < 65535; i++)
        if (tn_packed_hold(packed, a) != TN_MEM_OK)
            ck_abort_msg("hold %d", i);
    expect_error(TN_MEM_E_EXHAUSTED, tn_packed_hold(packed, a));
    ck_assert_uint_eq(stats_now().live_blocks, 1);
}
END_TEST

START_TEST(a_bad_free_changes_nothing_and_the_first_is_remembered)
{
    char *base = tn_packed_region(packed).data;
    char *a = take(0, 1, A0);
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(packed, a + 1, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(packed, base - 1, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(packed, base + CAPACITY, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(packed, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(NULL, a, NULL));
    expect_error(TN_MEM_E_STALE, tn_packed_free(packed, base + 1024, NULL));
    ck_assert_uint_eq(stats_now().live_blocks, 1);
    free_clean(a);
    expect_error(TN_MEM_E_STALE, tn_packed_free(packed, a, NULL));
    free_clean(take(1, 1, OVER));
    expect_error(TN_MEM_E_STALE, tn_packed_free(packed, a, NULL));
    (void)take(2, 513, LARGE);
    expect_error(TN_MEM_E_STALE, tn_packed_free(packed, a, NULL));
    ck_assert_uint_eq(stats_now().bad_frees, 8);
    ck_assert_ptr_eq(stats_now().first_bad_free, a + 1);
}
END_TEST

typedef struct budget {
    size_t calls_left, live;
} budget;

static void *resize_within(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    budget *b = self;
    b->live -= old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    ck_assert_ptr_null(block);
    if (b->calls_left == 0)
        return NULL;
    b->calls_left--;
    b->live += new_bytes;
    return malloc(new_bytes);
}

START_TEST(calls_that_name_nothing_are_arguments)
{
    tn_stable_span span;
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(packed, 0, 0, TN_WORK_NO_QUEUE, &span, NULL));
    ck_assert_ptr_null(tn_stable_data(span));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(NULL, 0, 1, TN_WORK_NO_QUEUE, &span, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_take(packed, 0, 1, TN_WORK_NO_QUEUE, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_free(NULL, &span, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_hold(NULL, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_release_hold(NULL, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_destroy(NULL));
    tn_packed_stats stats = stats_now();
    ck_assert(stats.takes == 0 && stats.diverged == 0 && stats.bad_frees == 0);
}
END_TEST

START_TEST(a_failure_at_every_call_leaks_nothing)
{
    budget b = {0};
    tn_metadata metadata = {.resize = resize_within, .self = &b};
    tn_packed_options options = {.backend = tn_host_backend(host), .tag = "other", .plan = &plan, .work = work, .metadata = &metadata};
    tn_packed *other = NULL;
    size_t n = 0;
    for (;; n++) {
        b.calls_left = n;
        tn_mem_error error = tn_packed_create(&options, &other);
        if (error == TN_MEM_OK)
            break;
        expect_error(TN_MEM_E_HOST_MEMORY, error);
        ck_assert_ptr_null(other);
        ck_assert_uint_eq(b.live, 0);
        ck_assert_uint_eq(fixture_journal_live(host, "other"), 0);
    }
    ck_assert_uint_ge(n, 8);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_packed_destroy(&other));
    tn_stable_span span;
    expect_ok(tn_packed_take(other, 0, 1, 0, &span, NULL));
    expect_ok(tn_packed_destroy(&other));
    ck_assert_uint_eq(b.live, 0);
    b.calls_left = SIZE_MAX;
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_packed_create(&options, &other));
    ck_assert_uint_eq(b.live, 0);
    ck_assert_uint_eq(fixture_journal_live(host, "other"), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("packed");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_options_are_refused_and_acquire_nothing);
    tcase_add_test(tests, a_block_goes_to_the_lowest_ordinal_of_its_smallest_class);
    tcase_add_test(tests, addresses_are_aligned_as_planned);
    tcase_add_test(tests, what_the_plan_has_no_place_for_diverges_and_is_named);
    tcase_add_test(tests, a_live_slot_that_shares_an_address_is_in_the_way);
    tcase_add_test(tests, clean_slots_pass_their_bytes_on_in_any_pattern);
    tcase_add_test(tests, a_slot_freed_in_flight_is_not_handed_out_before_it_is_done);
    tcase_add_test(tests, the_next_ordinal_serves_where_the_lowest_is_not_clean);
    tcase_add_test(tests, an_ordinal_whose_work_came_before_what_is_not_done_serves);
    tcase_add_test(tests, a_live_slot_is_in_the_way_also_where_another_is_not_clean);
    tcase_add_test(tests, the_queue_of_the_free_need_not_wait_and_others_need_a_join);
    tcase_add_test(tests, what_is_left_of_a_slot_that_was_passed_on_in_order_is_still_not_clean);
    tcase_add_test(tests, work_on_more_queues_than_a_set_holds_is_waited_for_all_the_same);
    tcase_add_test(tests, a_held_slot_goes_back_to_its_own_site_alone);
    tcase_add_test(tests, a_bad_free_changes_nothing_and_the_first_is_remembered);
    tcase_add_test(tests, calls_that_name_nothing_are_arguments);
    tcase_add_test(tests, a_failure_at_every_call_leaks_nothing);
    return fixture_run("packed", tests);
}
