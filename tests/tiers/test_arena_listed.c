/* T1 with the regions that a plan lists: which one a first take opens, when it closes, what spills, and that an arena which follows the list
 * spills and holds what the planner's replay of the same rule says. Beside them regions that the caller releases, and look-ups. */
#include <string.h>

#include "fixture.h"

static tn_host *host;
static tn_arena *arena;

/* Site 3 begins with 1000 or 2000 bytes, site 5 with 4096. */
static const tn_arena_listed list[] = {
    {.site = 3, .first_bytes = 1000, .capacity = 4096, .takes = 2},
    {.site = 3, .first_bytes = 2000, .capacity = 16384, .takes = 3},
    {.site = 5, .first_bytes = 4096, .capacity = 8192},
};

static tn_arena_options options_now(void)
{
    return (tn_arena_options){.backend = tn_host_backend(host), .tag = "model", .discipline = TN_ARENA_MODEL, .max_regions = 16,
                              .list = list, .list_count = 3};
}

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.quarantine = MIB});
    tn_arena_options options = options_now();
    expect_ok(tn_arena_create(&options, &arena));
}

static void end(void)
{
    if (arena != NULL)
        expect_ok(tn_arena_destroy(&arena));
    fixture_finish(host);
}

static char *take(uint32_t site, size_t bytes)
{
    tn_stable_span span;
    expect_ok(tn_arena_take_of(arena, site, bytes, 512, &span));
    ck_assert_uint_eq(tn_stable_bytes(span), bytes);
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % 512, 0);
    return tn_stable_data(span);
}

static void spill(uint32_t site, size_t bytes)
{
    tn_stable_span span;
    uint64_t before, capacity;
    tn_arena_stats stats;
    tn_arena_read_stats(arena, &stats);
    before = stats.exhausted;
    capacity = stats.capacity;
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take_of(arena, site, bytes, 512, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    tn_arena_read_stats(arena, &stats);
    ck_assert_uint_eq(stats.exhausted, before + 1);
    ck_assert_uint_eq(stats.capacity, capacity);
}

static size_t capacity_now(void)
{
    tn_arena_stats stats;
    tn_arena_read_stats(arena, &stats);
    tn_backend_stats backend;
    tn_backend_read_stats(tn_host_backend(host), &backend);
    ck_assert_uint_eq(stats.capacity, backend.live);
    return stats.capacity;
}

START_TEST(bad_lists_are_refused)
{
    tn_arena_listed bad[3];
    tn_arena *other = NULL;
    tn_arena_options options = options_now();
    options.list = bad;
#define refused_with(change)                                                       \
    do {                                                                           \
        memcpy(bad, list, sizeof bad);                                             \
        change;                                                                    \
        expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));        \
    } while (0)
    refused_with(bad[0].first_bytes = 0);
    refused_with(bad[2].capacity = 4095);
    refused_with(bad[1].first_bytes = 1000);
    refused_with(bad[1].first_bytes = 999);
    refused_with(bad[1].site = 2);
    refused_with(bad[2].site = 2);
    memcpy(bad, list, sizeof bad);
    expect_ok(tn_arena_create(&options, &other));
    expect_ok(tn_arena_destroy(&other));
    options.list = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));
    options.list_count = 0; /* neither a list nor a capacity */
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));
    options = options_now();
    options.region_alignment = 3;
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));
    options.region_alignment = 2 * TN_ALIGNMENT_MAX;
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));
    options.region_alignment = 0;
    tn_work_table hole = {0};
    tn_work work = {.table = &hole};
    options.work = &work;
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_create(&options, &other));
}
END_TEST

START_TEST(a_region_has_what_is_listed_for_its_first_take)
{
    take(3, 1000);
    ck_assert_uint_eq(capacity_now(), 4096);
    tn_arena_close_region(arena);
    take(3, 2000);
    ck_assert_uint_eq(capacity_now(), 4096 + 16384);
    tn_arena_close_region(arena);
    take(3, 1500); /* not listed: the largest of its site */
    ck_assert_uint_eq(capacity_now(), 4096 + 2 * 16384);
    tn_arena_close_region(arena);
    take(5, 1);
    ck_assert_uint_eq(capacity_now(), 4096 + 2 * 16384 + 8192);
    take(3, 1000); /* the open one is for any site */
    ck_assert_uint_eq(capacity_now(), 4096 + 2 * 16384 + 8192);
}
END_TEST

START_TEST(sites_without_a_region_spill)
{
    spill(0, 100);
    spill(4, 100);
    spill(6, 100);
    ck_assert_uint_eq(capacity_now(), 0);
    tn_stable_span span;
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take(arena, 1, 0, &span)); /* without a site */
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_open_region(arena, 0));
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_open_listed(arena, 4, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_open_listed(NULL, 3, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take_of(NULL, 3, 1, 0, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take_of(arena, 3, 1, 0, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take_of(arena, 3, 0, 0, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take_of(arena, 3, 1, 48, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_take_of(arena, 3, 1, 2 * TN_ALIGNMENT_MAX, &span));
    ck_assert_uint_eq(capacity_now(), 0);
    /* The largest of its site is too small for it; the next may find it open. */
    expect_error(TN_MEM_E_EXHAUSTED, tn_arena_take_of(arena, 5, 8193, 0, &span));
    ck_assert_uint_eq(capacity_now(), 8192);
    take(3, 8192);
    ck_assert_uint_eq(capacity_now(), 8192);
}
END_TEST

START_TEST(a_region_closes_after_its_takes_and_a_spill_is_one)
{
    char *first = take(3, 1000), *second = take(5, 1000);
    ck_assert_ptr_eq(second, first + 1024);
    char *third = take(3, 1000); /* two takes were planned: another region */
    ck_assert_uint_eq(capacity_now(), 2 * 4096);
    spill(3, 5000);              /* its second take */
    char *fifth = take(3, 1000);
    ck_assert_uint_eq(capacity_now(), 3 * 4096);
    ck_assert((fifth < third || fifth >= third + 4096) && (third < first || third >= first + 4096));
    expect_ok(tn_arena_free(arena, fifth)); /* a free closes, and an empty region goes */
    ck_assert_uint_eq(capacity_now(), 2 * 4096);
    take(3, 1000);
    ck_assert_uint_eq(capacity_now(), 3 * 4096);
}
END_TEST

START_TEST(a_region_can_be_opened_ahead)
{
    expect_ok(tn_arena_open_listed(arena, 3, 1000));
    ck_assert_uint_eq(capacity_now(), 4096);
    tn_host_set_phase(host, 1);
    take(3, 1000);
    take(3, 500);
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, 1), 0);
    take(3, 500); /* its third */
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, 1), 1);
}
END_TEST

START_TEST(a_refused_region_opens_nothing)
{
    tn_stable_span span;
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_arena_take_of(arena, 3, 1000, 0, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    take(3, 1000);
    take(3, 1000);
    ck_assert_uint_eq(capacity_now(), 4096);
}
END_TEST

START_TEST(regions_are_aligned_as_the_options_say)
{
    tn_arena *other;
    tn_arena_options options = options_now();
    options.region_alignment = MIB;
    expect_ok(tn_arena_create(&options, &other));
    tn_stable_span span;
    expect_ok(tn_arena_take_of(other, 3, 1000, 0, &span));
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % MIB, 0);
    tn_arena_close_region(other);
    expect_ok(tn_arena_take_of(other, 3, 1000, 2 * MIB, &span)); /* more than that where a take asks for it */
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % (2 * MIB), 0);
    expect_ok(tn_arena_destroy(&other));
}
END_TEST

START_TEST(kept_regions_are_the_callers_to_release)
{
    tn_arena *kept;
    tn_arena_options options = options_now();
    options.keeps_empty = true;
    expect_ok(tn_arena_create(&options, &kept));
    tn_stable_span first, second;
    tn_region region;
    expect_ok(tn_arena_take_of(kept, 3, 1000, 0, &first));
    expect_ok(tn_arena_take_of(kept, 3, 1000, 0, &second));
    ck_assert(!tn_arena_pop_empty(kept, &region, NULL) && region.base == NULL);
    expect_ok(tn_arena_open_listed(kept, 3, 1000)); /* open and empty: takes are to come */
    region.base = &region;
    ck_assert(!tn_arena_pop_empty(kept, &region, NULL) && region.base == NULL);
    tn_arena_close_region(kept); /* none will */
    ck_assert(tn_arena_pop_empty(kept, &region, NULL));
    expect_ok(tn_backend_release(tn_host_backend(host), &region));
    expect_ok(tn_arena_free(kept, tn_stable_data(first)));
    ck_assert(!tn_arena_pop_empty(kept, &region, NULL));
    expect_ok(tn_arena_free(kept, tn_stable_data(second)));
    ck_assert_uint_eq(fixture_count(host, TN_HOST_RELEASE, -1), 1);
    expect_error(TN_MEM_E_STALE, tn_arena_free(kept, tn_stable_data(second)));
    tn_stable_span other;
    expect_ok(tn_arena_take_of(kept, 3, 2000, 0, &other));
    tn_work_set set = {.count = 7};
    ck_assert(tn_arena_pop_empty(kept, &region, &set));
    ck_assert(region.base == tn_stable_data(first) && set.count == 0);
    tn_arena_stats stats;
    tn_arena_read_stats(kept, &stats);
    ck_assert(stats.regions == 1 && stats.capacity == 16384 && stats.live_blocks == 1);
    expect_ok(tn_backend_release(tn_host_backend(host), &region));
    ck_assert(!tn_arena_pop_empty(kept, &region, &set));
    ck_assert(!tn_arena_pop_empty(NULL, &region, &set) && !tn_arena_pop_empty(kept, NULL, &set));
    expect_ok(tn_arena_free(kept, tn_stable_data(other)));
    expect_ok(tn_arena_trim(kept)); /* the other way */
    ck_assert_uint_eq(fixture_count(host, TN_HOST_RELEASE, -1), 3);
    expect_ok(tn_arena_destroy(&kept));
}
END_TEST

START_TEST(a_byte_is_its_live_blocks)
{
    char *first = take(3, 1000), *second = take(3, 700), *third = take(5, 4096);
    void *base = NULL;
    size_t bytes = 0;
    expect_ok(tn_arena_find(arena, first, &base, &bytes));
    ck_assert(base == first && bytes == 1000);
    expect_ok(tn_arena_find(arena, first + 999, &base, &bytes));
    ck_assert(base == first && bytes == 1000);
    expect_error(TN_MEM_E_STALE, tn_arena_find(arena, first + 1000, &base, &bytes));
    expect_ok(tn_arena_find(arena, second + 699, &base, &bytes));
    ck_assert(base == second && bytes == 700);
    expect_error(TN_MEM_E_STALE, tn_arena_find(arena, second + 700, NULL, NULL));
    expect_error(TN_MEM_E_STALE, tn_arena_find(arena, first + 4095, NULL, NULL));
    expect_ok(tn_arena_find(arena, third + 4095, &base, &bytes));
    ck_assert(base == third && bytes == 4096);
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_find(arena, &base, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_find(NULL, first, NULL, NULL));
    expect_ok(tn_arena_free(arena, first));
    expect_error(TN_MEM_E_STALE, tn_arena_find(arena, first, NULL, NULL));
    expect_ok(tn_arena_find(arena, second, NULL, NULL));
    expect_ok(tn_arena_free(arena, third));
    expect_error(TN_MEM_E_ARGUMENT, tn_arena_find(arena, third, NULL, NULL)); /* its region is gone */
}
END_TEST

/* The rule as docs/PLAN.md has it, written down again: offsets and counts alone. */
typedef struct model_region {
    const tn_arena_listed *listed;
    size_t used, takes, live;
} model_region;

enum { MODEL_REGIONS = 4000 };
static model_region regions[MODEL_REGIONS];
static size_t region_count;
static bool is_open;

static const tn_arena_listed *model_find(uint32_t site, size_t bytes)
{
    const tn_arena_listed *best = NULL;
    for (size_t i = 0; i < 3; i++)
        if (list[i].site == site && list[i].first_bytes == bytes)
            return &list[i];
    for (size_t i = 0; i < 3; i++)
        if (list[i].site == site && (best == NULL || list[i].capacity > best->capacity))
            best = &list[i];
    return best;
}

/* The region that the take goes to, NULL: it spills. *offset is where. */
static model_region *model_take(uint32_t site, size_t bytes, size_t *offset)
{
    model_region *last = region_count > 0 ? &regions[region_count - 1] : NULL;
    if (is_open && last->listed->takes > 0 && last->takes == last->listed->takes)
        is_open = false;
    if (!is_open) {
        const tn_arena_listed *listed = model_find(site, bytes);
        if (listed == NULL)
            return NULL;
        ck_assert_uint_lt(region_count, MODEL_REGIONS);
        last = &regions[region_count++];
        *last = (model_region){.listed = listed};
        is_open = true;
    }
    last->takes++;
    *offset = (last->used + 511) / 512 * 512;
    if (*offset + bytes > last->listed->capacity)
        return NULL;
    last->used = *offset + bytes;
    last->live++;
    return last;
}

START_TEST(an_arena_follows_the_rule_that_the_planner_replays)
{
    enum { STEPS = 4000, LIVE = 24 };
    struct { char *data; size_t bytes; model_region *region; } blocks[LIVE] = {{0}};
    static char *base_of[MODEL_REGIONS];
    uint64_t seed = fixture_seed(0x115ED + (uint64_t)_i);
    random_state random = {seed};
    expect_ok(tn_arena_destroy(&arena));
    tn_arena_options options = options_now();
    options.max_regions = SIZE_MAX;
    expect_ok(tn_arena_create(&options, &arena));
    region_count = 0;
    is_open = false;
    for (size_t step = 0; step < STEPS; step++) {
        const char *where = fixture_seed_line(seed, step);
        size_t k = random_below(&random, LIVE), offset = 0;
        if (random_below(&random, 50) == 0) {
            tn_arena_close_region(arena); /* the phase changed */
            is_open = false;
        } else if (blocks[k].data != NULL) {
            expect_ok(tn_arena_free(arena, blocks[k].data));
            blocks[k].data = NULL;
            blocks[k].region->live--;
            is_open = false;
        } else {
            uint32_t site = 2 + (uint32_t)random_below(&random, 4);
            size_t bytes = random_below(&random, 2) == 0 ? list[random_below(&random, 3)].first_bytes : 1 + random_below(&random, 5000);
            tn_stable_span span;
            model_region *r = model_take(site, bytes, &offset);
            tn_mem_error error = tn_arena_take_of(arena, site, bytes, 512, &span);
            ck_assert_msg(error == (r != NULL ? TN_MEM_OK : TN_MEM_E_EXHAUSTED), "%s: %s", tn_mem_error_text(error), where);
            if (r == NULL)
                continue;
            char *data = tn_stable_data(span);
            if (offset == 0)
                base_of[r - regions] = data;
            ck_assert_msg(data == base_of[r - regions] + offset, "not where the rule puts it: %s", where);
            blocks[k].data = data;
            blocks[k].bytes = bytes;
            blocks[k].region = r;
        }
        size_t capacity = 0;
        for (size_t i = 0; i < region_count; i++)
            if (regions[i].live > 0 || (i + 1 == region_count && is_open))
                capacity += regions[i].listed->capacity;
        /* A region that only spilled is there until the next free. */
        ck_assert_msg(capacity_now() >= capacity, "%s", where);
    }
    ck_assert_uint_gt(region_count, 100);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("arena_listed");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_lists_are_refused);
    tcase_add_test(tests, a_region_has_what_is_listed_for_its_first_take);
    tcase_add_test(tests, sites_without_a_region_spill);
    tcase_add_test(tests, a_region_closes_after_its_takes_and_a_spill_is_one);
    tcase_add_test(tests, a_region_can_be_opened_ahead);
    tcase_add_test(tests, a_refused_region_opens_nothing);
    tcase_add_test(tests, regions_are_aligned_as_the_options_say);
    tcase_add_test(tests, kept_regions_are_the_callers_to_release);
    tcase_add_test(tests, a_byte_is_its_live_blocks);
    tcase_add_loop_test(tests, an_arena_follows_the_rule_that_the_planner_replays, 0, 4);
    return fixture_run("arena_listed", tests);
}
