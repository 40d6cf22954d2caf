/* What the stack, the packed and the stable slots tell who listens at the seam: each hand-out once, each block's end once and before its bytes are
 * another's, and nothing of what failed. The listener here keeps its own list. */
#include <string.h>

#include "fixture.h"
#include "tick_device.h"
#include "tiers/seam.h"

enum { MOST = 64 };

typedef struct heard {
    const void *allocator, *address;
    size_t bytes;
} heard;

static heard live[MOST];
static size_t live_count, wrong, calls;
static const char *last_tag;

static tn_mem_error may_acquire(void *self, const void *backend, const char *tag, size_t bytes)
{
    (void)self, (void)backend, (void)tag, (void)bytes;
    return TN_MEM_OK;
}

static void of_region(void *self, const void *backend, const tn_region *region)
{
    (void)self, (void)backend, (void)region;
}

/* Whose memory is about to go has nothing in it any more. */
static void releasing(void *self, const void *backend, const tn_region *region)
{
    (void)self, (void)backend;
    for (size_t i = 0; i < live_count; i++)
        wrong += (const char *)live[i].address >= (const char *)region->base &&
                 (const char *)live[i].address < (const char *)region->base + region->reserved;
}

static void resized(void *self, const void *backend, const tn_region *region, size_t before)
{
    (void)self, (void)backend, (void)region, (void)before;
}

static void handed_out(void *self, const void *allocator, const char *tag, const void *address, size_t bytes)
{
    (void)self;
    for (size_t i = 0; i < live_count; i++)
        wrong += (const char *)address < (const char *)live[i].address + live[i].bytes &&
                 (const char *)live[i].address < (const char *)address + bytes;
    live[live_count++] = (heard){allocator, address, bytes};
    last_tag = tag;
    calls++;
}

/* What another thread may do while the listener hears of an end: the key is neither had nor to be had. */
static tn_stable_slots *contested;

static void contest(void)
{
    tn_stable_slots *s = contested;
    tn_stable_span none;
    contested = NULL;
    expect_error(TN_MEM_E_IN_USE, tn_stable_slots_take(s, 5, 100, 0, 0, &none));
    expect_error(TN_MEM_E_STALE, tn_stable_slots_release(s, 5, NULL));
    expect_error(TN_MEM_E_IN_USE, tn_stable_slots_drop(s, 5));
}

static void taken_back(void *self, const void *allocator, const void *address)
{
    (void)self;
    calls++;
    if (contested != NULL)
        contest();
    for (size_t i = 0; i < live_count; i++) {
        if (live[i].allocator != allocator || live[i].address != address)
            continue;
        live[i] = live[--live_count];
        return;
    }
    wrong++;
}

static void taken_back_all(void *self, const void *allocator)
{
    (void)self;
    calls++;
    for (size_t i = live_count; i-- > 0;)
        if (live[i].allocator == allocator)
            live[i] = live[--live_count];
}

static const tn_seam seam = {
    .version = TN_SEAM_VERSION,
    .bytes = sizeof seam,
    .may_acquire = may_acquire,
    .acquired = of_region,
    .resized = resized,
    .releasing = releasing,
    .kept = of_region,
    .handed_out = handed_out,
    .taken_back = taken_back,
    .taken_back_all = taken_back_all,
};

static tn_host *host;
static tn_work work;
static tn_stable_span span;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = MIB});
    work = device_begin();
    expect_ok(tn_seam_set(&seam));
}

static void end(void)
{
    ck_assert_uint_eq(live_count, 0);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(calls, 0);
    fixture_finish(host);
}

static void expect_live(size_t count, size_t bytes)
{
    size_t sum = 0;
    for (size_t i = 0; i < live_count; i++)
        sum += live[i].bytes;
    ck_assert_uint_eq(live_count, count);
    ck_assert_uint_eq(sum, bytes);
}

START_TEST(the_stack_tells_of_takes_frees_rewinds_and_resets)
{
    tn_scratch *s = NULL;
    tn_scratch_mark mark;
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(host), .tag = "pass", .capacity = 64 * KIB}, &s));
    expect_ok(tn_scratch_take(s, 100, 0, &span));
    char *first = tn_stable_data(span);
    ck_assert_str_eq(last_tag, "pass");
    expect_ok(tn_scratch_open_mark(s, &mark));
    expect_ok(tn_scratch_take(s, 200, 0, &span));
    char *under = tn_stable_data(span);
    expect_ok(tn_scratch_take(s, 300, 0, &span));
    expect_error(TN_MEM_E_EXHAUSTED, tn_scratch_take(s, MIB, 0, &span));
    expect_live(3, 600);
    expect_ok(tn_scratch_free(s, under));
    expect_error(TN_MEM_E_STALE, tn_scratch_free(s, under));
    expect_live(2, 400);
    expect_ok(tn_scratch_rewind(s, mark));
    expect_live(1, 100);
    expect_error(TN_MEM_E_STALE, tn_scratch_rewind(s, mark));
    expect_ok(tn_scratch_free(s, first));
    expect_live(0, 0);
    expect_ok(tn_scratch_take(s, 7, 0, &span));
    tn_scratch_reset(s);
    expect_live(0, 0);
    expect_ok(tn_scratch_take(s, 7, 0, &span));
    expect_ok(tn_scratch_destroy(&s));
}
END_TEST

START_TEST(the_packed_slots_tell_of_takes_and_frees)
{
    static const tn_packed_slot slots[] = {{.site = 0, .bytes = 1000}, {.site = 1, .bytes = 2000}};
    const tn_packed_plan plan = {.slots = slots, .slot_count = 2, .site_count = 2, .capacity = 2048};
    tn_packed *p = NULL;
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &plan, .work = work}, &p));
    expect_ok(tn_packed_take(p, 0, 900, 0, &span, NULL));
    ck_assert_str_eq(last_tag, "packed");
    tn_stable_span none;
    expect_error(TN_MEM_E_DIVERGED, tn_packed_take(p, 1, 1, 0, &none, NULL));
    expect_live(1, 900);
    expect_ok(tn_packed_free(p, tn_stable_data(span), NULL));
    expect_error(TN_MEM_E_STALE, tn_packed_free(p, tn_stable_data(span), NULL));
    expect_live(0, 0);
    expect_ok(tn_packed_take(p, 1, 1500, 0, &span, NULL));
    expect_live(1, 1500);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_packed_destroy(&p));
    expect_live(1, 1500); /* there still */
    ck_assert_ptr_eq(live[0].address, tn_stable_data(span));
    expect_ok(tn_packed_destroy(&p));
    expect_live(0, 0);
}
END_TEST

START_TEST(the_stable_slots_tell_of_takes_and_releases)
{
    tn_stable_slots *s = NULL;
    expect_ok(tn_stable_slots_create(
        &(tn_stable_slots_options){.backend = tn_host_backend(host), .tag = "graph", .capacity = KIB, .slots = 4}, &s));
    for (int i = 0; i < 3; i++) {
        expect_ok(tn_stable_slots_take(s, 5, 100, 0, 0, &span));
        ck_assert_str_eq(last_tag, "graph");
        expect_live(1, 100);
        expect_error(TN_MEM_E_IN_USE, tn_stable_slots_take(s, 5, 100, 0, 0, &span));
        contested = s;
        expect_ok(tn_stable_slots_release(s, 5, NULL));
        expect_error(TN_MEM_E_STALE, tn_stable_slots_release(s, 5, NULL));
        expect_live(0, 0);
    }
    expect_ok(tn_stable_slots_drop(s, 5));
    ck_assert_uint_eq(calls, 6);
    expect_ok(tn_stable_slots_destroy(&s));
}
END_TEST

START_TEST(an_arena_tells_of_its_blocks_before_their_region_goes)
{
    tn_arena *a = NULL;
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "model", .first_bytes = 4096, .max_regions = 2}, &a));
    expect_ok(tn_arena_take(a, 100, 0, &span));
    char *first = tn_stable_data(span);
    expect_ok(tn_arena_take(a, 200, 0, &span));
    expect_live(2, 300);
    expect_ok(tn_arena_free(a, first));
    expect_ok(tn_arena_free(a, tn_stable_data(span))); /* the region goes in this call */
    expect_live(0, 0);
    expect_ok(tn_arena_take(a, 300, 0, &span));
    expect_live(1, 300);
    expect_ok(tn_arena_destroy(&a));
}
END_TEST

START_TEST(fixed_blocks_tell_of_takes_and_frees)
{
    tn_fixed *f = NULL;
    expect_ok(tn_fixed_create(
        &(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "fixed", .blocks = 2, .stride = 512}, &f));
    expect_ok(tn_fixed_take(f, 100, 0, &span));
    char *first = tn_stable_data(span);
    expect_ok(tn_fixed_take(f, 512, 0, &span));
    expect_live(2, 1024); /* whole blocks */
    expect_ok(tn_fixed_free(f, first, NULL));
    expect_error(TN_MEM_E_STALE, tn_fixed_free(f, first, NULL));
    expect_live(1, 512);
    expect_ok(tn_fixed_destroy(&f));
}
END_TEST

static size_t metadata_bytes;

static void *counted_resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    metadata_bytes += new_bytes - old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_bytes);
}

/* As after a device was reset: the memory is gone, or its owner's, and what was known of it goes too. */
START_TEST(what_is_abandoned_is_told_of_and_asks_the_backend_nothing)
{
    tn_host *lost = fixture_host(&(tn_host_options){0});
    const tn_metadata counted = {.resize = counted_resize};
    static const tn_packed_slot slots[] = {{.site = 0, .bytes = 1000}};
    const tn_packed_plan plan = {.slots = slots, .slot_count = 1, .site_count = 1, .capacity = 1024};
    tn_arena *a = NULL;
    tn_scratch *s = NULL;
    tn_packed *p = NULL;
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(lost), .tag = "t", .first_bytes = 4096, .max_regions = 2, .metadata = &counted}, &a));
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(lost), .tag = "t", .capacity = KIB, .metadata = &counted}, &s));
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = tn_host_backend(lost), .tag = "t", .plan = &plan, .work = work, .metadata = &counted}, &p));
    expect_ok(tn_arena_take(a, 4096, 0, &span));
    expect_ok(tn_arena_take(a, 100, 0, &span)); /* another region */
    expect_ok(tn_scratch_take(s, 100, 0, &span));
    expect_ok(tn_packed_take(p, 0, 100, 0, &span, NULL));
    expect_live(4, 4396);
    tn_arena_abandon(&a);
    expect_live(2, 200);
    tn_scratch_abandon(&s);
    tn_packed_abandon(&p);
    expect_live(0, 0);
    ck_assert(a == NULL && s == NULL && p == NULL && metadata_bytes == 0);
    tn_arena_abandon(&a); /* nothing is nothing */
    tn_scratch_abandon(&s);
    tn_packed_abandon(&p);
    tn_arena_abandon(NULL);
    tn_scratch_abandon(NULL);
    tn_packed_abandon(NULL);
    ck_assert_uint_eq(fixture_count(lost, TN_HOST_RELEASE, -1), 0);
    ck_assert_uint_eq(tn_host_destroy(lost), 4);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("seam_hand_outs");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, the_stack_tells_of_takes_frees_rewinds_and_resets);
    tcase_add_test(tests, the_packed_slots_tell_of_takes_and_frees);
    tcase_add_test(tests, the_stable_slots_tell_of_takes_and_releases);
    tcase_add_test(tests, an_arena_tells_of_its_blocks_before_their_region_goes);
    tcase_add_test(tests, fixed_blocks_tell_of_takes_and_frees);
    tcase_add_test(tests, what_is_abandoned_is_told_of_and_asks_the_backend_nothing);
    return fixture_run("seam_hand_outs", tests);
}
