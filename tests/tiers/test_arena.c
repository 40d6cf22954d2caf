/* The arena's rules one by one, V3 (a reset frees wholesale), V2 in small (no acquisition after loading), and failures at every call. */
#include <string.h>

#include "fixture.h"

static tn_host *host;
static tn_arena *arena;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
}

static void end(void)
{
    if (arena != NULL)
        expect_ok(tn_arena_destroy(&arena));
    ck_assert_ptr_null(arena);
    fixture_finish(host);
}

static void make(tn_arena_discipline discipline, size_t first, size_t growth, size_t regions)
{
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .discipline = discipline,
                                                  .first_bytes = first, .growth_bytes = growth, .max_regions = regions},
                              &arena));
}

static tn_arena_stats stats_now(void)
{
    tn_arena_stats stats;
    tn_arena_read_stats(arena, &stats);
    return stats;
}

static char *take(size_t bytes, size_t alignment)
{
    tn_stable_span span;
    expect_ok(tn_arena_take(arena, bytes, alignment, &span));
    ck_assert_uint_eq(tn_stable_bytes(span), bytes);
    memset(tn_stable_data(span), 0x11, bytes);
    return tn_stable_data(span);
}

START_TEST(bad_options_are_refused)
{
    tn_backend *b = tn_host_backend(host);
    const tn_arena_options bad[] = {
        {.tag = "t", .first_bytes = 1, .max_regions = 1},
        {.backend = b, .first_bytes = 1, .max_regions = 1},
        {.backend = b, .tag = "t", .max_regions = 1},
        {.backend = b, .tag = "t", .first_bytes = 1},
        {.backend = b, .tag = "t", .first_bytes = 1, .max_regions = 1, .discipline = (tn_arena_discipline)2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&bad[i], &arena));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(NULL, &arena));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_destroy(&arena));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(takes_are_aligned_by_address_and_follow_each_other)
{
    make(TN_ARENA_MODEL, MIB, 0, 1);
    char *a = take(1, 0), *b = take(1, 0), *c = take(1, 1), *d = take(8, 64 * KIB);
    ck_assert_uint_eq((uintptr_t)a % TN_ALIGNMENT_DEFAULT, 0);
    ck_assert_ptr_eq(b, a + TN_ALIGNMENT_DEFAULT);
    ck_assert_ptr_eq(c, b + 1);
    ck_assert_uint_eq((uintptr_t)d % (64 * KIB), 0);
    ck_assert_uint_eq(stats_now().live_bytes, 11);
    ck_assert_uint_eq(stats_now().live_blocks, 4);
    ck_assert_uint_eq(stats_now().used, (size_t)(d + 8 - a));
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
}
END_TEST

START_TEST(an_alignment_above_the_regions_is_met_by_a_new_one)
{
    make(TN_ARENA_ENGINE, 4 * KIB, 0, 3);
    (void)take(1, 0);
    ck_assert_uint_eq((uintptr_t)take(4 * KIB, TN_ALIGNMENT_MAX) % TN_ALIGNMENT_MAX, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
}
END_TEST

START_TEST(sizes_at_the_edges_are_errors)
{
    tn_stable_span span;
    make(TN_ARENA_MODEL, 8 * KIB, 0, 1);
    (void)take(4 * KIB, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take(arena, 0, 0, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take(arena, 1, 3, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take(arena, 1, TN_ALIGNMENT_MAX * 2, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take(arena, 1, 0, NULL));
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, SIZE_MAX, 0, &span));
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, SIZE_MAX - 4 * KIB, TN_ALIGNMENT_MAX, &span));
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 4 * KIB + 1, 0, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    ck_assert_uint_eq(stats_now().exhausted, 3);
    (void)take(4 * KIB, 0); /* to the last byte */
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 1, 1, &span));
}
END_TEST

START_TEST(a_chain_grows_as_planned_and_no_further)
{
    tn_stable_span span;
    make(TN_ARENA_MODEL, 64 * KIB, 16 * KIB, 3);
    (void)take(64 * KIB, 0);
    (void)take(16 * KIB, 0);
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 16 * KIB + 1, 0, &span));
    (void)take(16 * KIB, 0);
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 1, 0, &span));
    ck_assert_uint_eq(stats_now().regions, 3);
    ck_assert_uint_eq(stats_now().capacity, 96 * KIB);
    ck_assert_uint_eq(fixture_journal_live(host, "arena"), 96 * KIB);
}
END_TEST

START_TEST(v3_a_reset_frees_wholesale)
{
    for (int discipline = TN_ARENA_MODEL; discipline <= TN_ARENA_ENGINE; discipline++) {
        make((tn_arena_discipline)discipline, 64 * KIB, 16 * KIB, 8);
        tn_region other;
        expect_ok(tn_backend_acquire(tn_host_backend(host), MIB, 0, "other", &other));
        char *old = NULL;
        for (int i = 0; i < 40; i++)
            old = take(4 * KIB, 0);
        size_t high = stats_now().high_water;
        ck_assert_uint_ge(high, 160 * KIB);
        ck_assert_uint_gt(fixture_journal_live(host, "arena"), 0);
        expect_ok(tn_arena_reset(arena));
        ck_assert_uint_eq(fixture_journal_live(host, "arena"), 0);
        ck_assert_uint_eq(fixture_journal_live(host, NULL), MIB);
        tn_arena_stats stats = stats_now();
        ck_assert_uint_eq(stats.generation, 1);
        ck_assert_uint_eq(stats.live_blocks + stats.live_bytes + stats.used + stats.regions + stats.capacity, 0);
        ck_assert_uint_eq(stats.high_water, high);
        ck_assert_uint_eq((unsigned char)old[0], TN_HOST_POISON);
        expect_error(TN_MEM_E_ARGUMENT, tn_arena_free(arena, old));
        (void)take(64 * KIB, 0); /* another load */
        expect_ok(tn_arena_destroy(&arena));
        expect_ok(tn_backend_release(tn_host_backend(host), &other));
    }
}
END_TEST

START_TEST(t1_a_free_closes_the_region_and_an_empty_one_goes_back)
{
    make(TN_ARENA_MODEL, 64 * KIB, 0, 4);
    char *target = take(KIB, 0), *target2 = take(KIB, 0);
    tn_arena_close_region(arena); /* the draft model is loaded apart */
    char *draft = take(KIB, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
    expect_ok(tn_arena_free(arena, target));
    ck_assert_uint_eq(stats_now().regions, 2);
    char *next = take(KIB, 0); /* the draft's region was closed by the free */
    ck_assert_uint_eq(stats_now().regions, 3);
    expect_ok(tn_arena_free(arena, target2));
    ck_assert_uint_eq(stats_now().regions, 2);
    ck_assert_uint_eq((unsigned char)target[0], TN_HOST_POISON);
    ck_assert_uint_eq((unsigned char)draft[0], 0x11);
    expect_ok(tn_arena_free(arena, next));
    expect_ok(tn_arena_free(arena, draft));
    ck_assert_uint_eq(stats_now().regions, 0);
    ck_assert_uint_eq(fixture_journal_live(host, "arena"), 0);
}
END_TEST

START_TEST(t1_an_older_region_never_opens_again)
{
    make(TN_ARENA_MODEL, 8 * KIB, 0, 3);
    char *first = take(KIB, 0);
    char *large = take(8 * KIB, 0); /* does not fit; the first closes */
    expect_ok(tn_arena_free(arena, large));
    ck_assert_uint_eq(stats_now().regions, 1);
    char *again = take(KIB, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
    ck_assert(again < first || again >= first + 8 * KIB);
}
END_TEST

START_TEST(t2_a_top_block_is_taken_back_with_the_freed_below)
{
    make(TN_ARENA_ENGINE, 64 * KIB, 0, 2);
    char *a = take(KIB, 0), *b = take(KIB, 0), *c = take(KIB, 0);
    expect_ok(tn_arena_free(arena, b));
    ck_assert_uint_eq(stats_now().used, 3 * KIB);
    expect_ok(tn_arena_free(arena, c));
    ck_assert_uint_eq(stats_now().used, KIB);
    ck_assert_ptr_eq(take(2 * KIB, 0), b);
    expect_ok(tn_arena_free(arena, b));
    expect_ok(tn_arena_free(arena, a));
    ck_assert_uint_eq(stats_now().regions, 1); /* the oldest stays */
    ck_assert_ptr_eq(take(KIB, 0), a);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
    char *chained = take(64 * KIB, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
    expect_ok(tn_arena_free(arena, chained));
    ck_assert_uint_eq(stats_now().regions, 1);
    ck_assert_ptr_eq(take(KIB, 0), a + KIB);
    ck_assert_uint_eq(stats_now().high_water, 65 * KIB);
}
END_TEST

START_TEST(bad_frees_are_errors_and_the_first_is_kept)
{
    int elsewhere;
    make(TN_ARENA_MODEL, 64 * KIB, 0, 1);
    char *a = take(KIB, 0), *b = take(KIB, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free(arena, a + 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free(arena, &elsewhere));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free(arena, NULL));
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, b + KIB));
    expect_ok(tn_arena_free(arena, a));
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, a));
    ck_assert_uint_eq(stats_now().bad_frees, 5);
    ck_assert_ptr_eq(stats_now().first_bad_free, a + 1);
    ck_assert_uint_eq(stats_now().live_blocks, 1);
}
END_TEST

START_TEST(v2_what_was_opened_while_loading_serves)
{
    make(TN_ARENA_ENGINE, 64 * KIB, 32 * KIB, 3);
    (void)take(64 * KIB, 0);
    expect_ok(tn_arena_open_region(arena, 128 * KIB));
    ck_assert_uint_eq(stats_now().capacity, 192 * KIB);
    (void)take(KIB, 0); /* lives as long as the engine, and keeps the second region */
    tn_host_set_phase(host, 2);
    for (int step = 0; step < 1000; step++) {
        char *logits = take(96 * KIB, 0), *tokens = take(KIB, 0);
        expect_ok(tn_arena_free(arena, logits));
        expect_ok(tn_arena_free(arena, tokens));
    }
    ck_assert_uint_eq(stats_now().regions, 2);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, 2), 0);
}
END_TEST

START_TEST(a_refused_release_is_counted_and_tried_again)
{
    make(TN_ARENA_MODEL, 64 * KIB, 0, 3);
    char *a = take(KIB, 0);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_ok(tn_arena_free(arena, a));
    ck_assert_uint_eq(stats_now().unreleased, 1);
    ck_assert_uint_eq(stats_now().regions, 1);
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, a));
    char *b = take(KIB, 0), *c = take(KIB, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
    expect_ok(tn_arena_free(arena, b));
    ck_assert_uint_eq(stats_now().regions, 1); /* the one that was refused went with this free */
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_arena_destroy(&arena));
    ck_assert_ptr_nonnull(arena);
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, c));
    ck_assert_uint_eq(stats_now().regions, 1);
    char *d = take(KIB, 0), *e = take(KIB, 0);
    ck_assert_uint_eq(stats_now().regions, 2);
    expect_ok(tn_arena_free(arena, d)); /* what a reset could not release goes with the next free as well */
    ck_assert_uint_eq(stats_now().regions, 1);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_arena_reset(arena));
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, e));
    expect_ok(tn_arena_trim(arena));
    ck_assert_uint_eq(fixture_journal_live(host, "arena"), 0);
}
END_TEST

typedef struct counted_metadata {
    size_t calls, fail_at, bytes;
} counted_metadata;

static void *counted_resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    counted_metadata *m = self;
    if (new_bytes != 0 && ++m->calls == m->fail_at)
        return NULL;
    if (new_bytes > GIB) /* asked of malloc, that is an error of its own under AddressSanitizer */
        return NULL;
    m->bytes = m->bytes - old_bytes + new_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_bytes);
}

/* A load and an unload with growth of every structure; false where something was refused. */
static bool load_and_unload(const tn_metadata *metadata, size_t planned_blocks)
{
    tn_arena *a = NULL;
    const tn_arena_options options = {.backend = tn_host_backend(host), .tag = "load", .first_bytes = 8 * KIB, .max_regions = 40,
                                      .planned_blocks = planned_blocks, .metadata = metadata};
    if (tn_arena_create(&options, &a) != TN_MEM_OK)
        return false;
    bool all = true;
    void *blocks[60];
    size_t taken = 0;
    for (int i = 0; i < 60; i++) {
        tn_stable_span span;
        tn_arena_stats before, after;
        tn_arena_read_stats(a, &before);
        if (tn_arena_take(a, i % 4 == 3 ? 8 * KIB : 256, 0, &span) == TN_MEM_OK) {
            blocks[taken++] = tn_stable_data(span);
            continue;
        }
        all = false;
        tn_arena_read_stats(a, &after);
        ck_assert_uint_eq(after.used, before.used);
        ck_assert_uint_eq(after.regions, before.regions);
        ck_assert_uint_eq(after.live_blocks, before.live_blocks);
        break;
    }
    for (size_t i = 0; i < taken / 2; i++)
        expect_ok(tn_arena_free(a, blocks[i]));
    tn_arena_stats stats;
    tn_arena_read_stats(a, &stats);
    all = all && stats.unreleased == 0;
    if (tn_arena_destroy(&a) != TN_MEM_OK) {
        all = false;
        expect_ok(tn_arena_destroy(&a));
    }
    return all;
}

START_TEST(every_call_of_the_backend_can_fail)
{
    uint64_t nth = 1;
    for (;; nth++) {
        tn_host_fail(host, TN_HOST_ANY, nth);
        bool all = load_and_unload(NULL, 0);
        tn_host_fail(host, TN_HOST_ANY, 0);
        ck_assert_uint_eq(fixture_journal_live(host, "load"), 0);
        fixture_check_conservation(host);
        if (all)
            break;
    }
    ck_assert_uint_gt(nth, 30);
}
END_TEST

START_TEST(every_call_for_metadata_can_fail)
{
    for (size_t planned = 0; planned <= 20; planned += 20) {
        counted_metadata counted = {.fail_at = 1};
        const tn_metadata metadata = {counted_resize, &counted};
        for (;; counted.fail_at++, counted.calls = 0) {
            bool all = load_and_unload(&metadata, planned);
            ck_assert_uint_eq(counted.bytes, 0);
            ck_assert_uint_eq(fixture_journal_live(host, "load"), 0);
            if (all)
                break;
        }
        ck_assert_uint_gt(counted.fail_at, 10);
    }
}
END_TEST

static void fill(tn_arena *a, size_t blocks)
{
    for (size_t i = 0; i < blocks; i++) {
        tn_stable_span span;
        expect_ok(tn_arena_take(a, 256, 0, &span));
    }
}

START_TEST(what_was_planned_for_is_there_before_the_first_take)
{
    counted_metadata counted = {0};
    const tn_metadata metadata = {counted_resize, &counted};
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .first_bytes = MIB, .max_regions = 2,
                                                  .planned_blocks = 100, .metadata = &metadata},
                              &arena));
    expect_ok(tn_arena_open_region(arena, 0));
    size_t calls = counted.calls;
    fill(arena, 100);
    ck_assert_uint_eq(counted.calls, calls);
    fill(arena, 1); /* the plan is no limit */
    ck_assert_uint_gt(counted.calls, calls);
    expect_ok(tn_arena_destroy(&arena));
    ck_assert_uint_eq(counted.bytes, 0);
}
END_TEST

START_TEST(a_refill_asks_for_no_metadata)
{
    counted_metadata counted = {0};
    const tn_metadata metadata = {counted_resize, &counted};
    for (int discipline = TN_ARENA_MODEL; discipline <= TN_ARENA_ENGINE; discipline++) {
        expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .first_bytes = 64 * KIB,
                                                      .max_regions = 10, .discipline = (tn_arena_discipline)discipline, .metadata = &metadata},
                                  &arena));
        fill(arena, 2000);
        size_t calls = counted.calls, bytes = counted.bytes;
        for (int i = 0; i < 3; i++) {
            expect_ok(tn_arena_reset(arena));
            ck_assert_uint_eq(fixture_journal_live(host, "arena"), 0);
            fill(arena, 2000);
        }
        ck_assert_uint_eq(counted.calls, calls);
        ck_assert_uint_eq(counted.bytes, bytes);
        expect_ok(tn_arena_destroy(&arena));
        ck_assert_uint_eq(counted.bytes, 0);
    }
}
END_TEST

START_TEST(more_planned_blocks_than_memory_open_nothing)
{
    counted_metadata counted = {0};
    const tn_metadata metadata = {counted_resize, &counted};
    tn_stable_span span;
    for (size_t planned = SIZE_MAX; planned > SIZE_MAX / 64; planned /= 2) {
        expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .first_bytes = MIB,
                                                      .max_regions = 1, .planned_blocks = planned, .metadata = &metadata},
                                  &arena));
        expect_error(TN_MEM_E_HOST_MEMORY, tn_arena_open_region(arena, 0));
        expect_error(TN_MEM_E_HOST_MEMORY, tn_arena_take(arena, 1, 0, &span));
        ck_assert_ptr_null(tn_stable_data(span));
        ck_assert_uint_eq(stats_now().regions, 0);
        expect_ok(tn_arena_destroy(&arena));
        ck_assert_uint_eq(counted.bytes, 0);
    }
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(an_arena_that_is_not_there_is_an_argument)
{
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_free(NULL, &host));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_reset(NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_trim(NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_open_region(NULL, 0));
}
END_TEST

START_TEST(a_close_without_a_region_does_nothing)
{
    make(TN_ARENA_MODEL, 64 * KIB, 0, 1);
    tn_arena_close_region(arena);
    (void)take(1, 0);
    ck_assert_uint_eq(stats_now().regions, 1);
}
END_TEST

START_TEST(a_take_without_a_record_for_it_changes_nothing)
{
    counted_metadata counted = {0};
    const tn_metadata metadata = {counted_resize, &counted};
    tn_stable_span span;
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .first_bytes = MIB, .max_regions = 1,
                                                  .planned_blocks = 20, .metadata = &metadata},
                              &arena));
    fill(arena, 20);
    tn_arena_stats before = stats_now();
    counted.fail_at = counted.calls + 1;
    expect_error(TN_MEM_E_HOST_MEMORY, tn_arena_take(arena, 256, 0, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    ck_assert_uint_eq(stats_now().used, before.used);
    ck_assert_uint_eq(stats_now().live_blocks, before.live_blocks);
    fill(arena, 1); /* and the next is served */
    expect_ok(tn_arena_destroy(&arena));
    ck_assert_uint_eq(counted.bytes, 0);
}
END_TEST

/* The last 64 KiB of the address space but for one page: addresses, never touched. */
static tn_mem_error acquire_at_the_top(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    (void)self, (void)alignment;
    *region = (tn_region){.base = (void *)(UINTPTR_MAX - 64 * KIB - 4 * KIB + 1), .committed = bytes, .reserved = bytes, .tag = tag, .id = 1};
    return TN_MEM_OK;
}

static tn_mem_error release_nothing(void *self, tn_region *region)
{
    (void)self, (void)region;
    return TN_MEM_OK;
}

static size_t no_limit(void *self)
{
    (void)self;
    return SIZE_MAX;
}

START_TEST(an_address_that_wraps_round_is_no_room)
{
    static const tn_backend_table table = {.acquire = acquire_at_the_top, .release = release_nothing, .capacity = no_limit};
    tn_backend top;
    tn_stable_span span;
    expect_ok(tn_backend_init(&top, &table, NULL, NULL));
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = &top, .tag = "top", .first_bytes = 64 * KIB, .max_regions = 1}, &arena));
    expect_ok(tn_arena_take(arena, 256, 0, &span));
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 256, TN_ALIGNMENT_MAX, &span));
    ck_assert_uint_eq(stats_now().used, 256);
    expect_ok(tn_arena_destroy(&arena));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("arena");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 20);
    tcase_add_test(tests, bad_options_are_refused);
    tcase_add_test(tests, takes_are_aligned_by_address_and_follow_each_other);
    tcase_add_test(tests, an_alignment_above_the_regions_is_met_by_a_new_one);
    tcase_add_test(tests, sizes_at_the_edges_are_errors);
    tcase_add_test(tests, a_chain_grows_as_planned_and_no_further);
    tcase_add_test(tests, v3_a_reset_frees_wholesale);
    tcase_add_test(tests, t1_a_free_closes_the_region_and_an_empty_one_goes_back);
    tcase_add_test(tests, t1_an_older_region_never_opens_again);
    tcase_add_test(tests, t2_a_top_block_is_taken_back_with_the_freed_below);
    tcase_add_test(tests, bad_frees_are_errors_and_the_first_is_kept);
    tcase_add_test(tests, v2_what_was_opened_while_loading_serves);
    tcase_add_test(tests, a_refused_release_is_counted_and_tried_again);
    tcase_add_test(tests, every_call_of_the_backend_can_fail);
    tcase_add_test(tests, every_call_for_metadata_can_fail);
    tcase_add_test(tests, what_was_planned_for_is_there_before_the_first_take);
    tcase_add_test(tests, a_refill_asks_for_no_metadata);
    tcase_add_test(tests, more_planned_blocks_than_memory_open_nothing);
    tcase_add_test(tests, an_arena_that_is_not_there_is_an_argument);
    tcase_add_test(tests, a_close_without_a_region_does_nothing);
    tcase_add_test(tests, a_take_without_a_record_for_it_changes_nothing);
    tcase_add_test(tests, an_address_that_wraps_round_is_no_room);
    return fixture_run("arena", tests);
}
