/* The scratch stack's rules one by one, V6 (marks end in reverse order, and one that does not changes nothing), and failures at every call. */
#include <string.h>

#include "fixture.h"

static tn_host *host;
static tn_scratch *scratch;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
}

static void end(void)
{
    if (scratch != NULL)
        expect_ok(tn_scratch_destroy(&scratch));
    fixture_finish(host);
}

static void make(size_t capacity)
{
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(host), .tag = "scratch", .capacity = capacity},
                                &scratch));
}

static tn_scratch_stats stats_now(void)
{
    tn_scratch_stats stats;
    tn_scratch_read_stats(scratch, &stats);
    return stats;
}

static char *take(size_t bytes)
{
    tn_stable_span span;
    expect_ok(tn_scratch_take(scratch, bytes, 0, &span));
    ck_assert_uint_eq(tn_stable_bytes(span), bytes);
    memset(tn_stable_data(span), 0x11, bytes);
    return tn_stable_data(span);
}

static tn_scratch_mark mark(void)
{
    tn_scratch_mark made;
    expect_ok(tn_scratch_open_mark(scratch, &made));
    return made;
}

START_TEST(bad_options_are_refused_and_acquire_nothing)
{
    tn_backend *b = tn_host_backend(host);
    const tn_scratch_options bad[] = {
        {.tag = "t", .capacity = 1},
        {.backend = b, .capacity = 1},
        {.backend = b, .tag = "t"},
        {.backend = b, .tag = "t", .capacity = 1, .alignment = 3},
        {.backend = b, .tag = "t", .capacity = 1, .alignment = TN_ALIGNMENT_MAX * 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(TN_MEM_E_ARGUMENT, tn_scratch_create(&bad[i], &scratch));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_create(NULL, &scratch));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_create(&(tn_scratch_options){.backend = b, .tag = "t", .capacity = 1}, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_destroy(&scratch));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_destroy(NULL));
    expect_error(TN_MEM_E_OUT_OF_MEMORY,
                 tn_scratch_create(&(tn_scratch_options){.backend = b, .tag = "t", .capacity = SIZE_MAX}, &scratch));
    expect_error(TN_MEM_E_HOST_MEMORY,
                 tn_scratch_create(&(tn_scratch_options){.backend = b, .tag = "t", .capacity = 1, .blocks = SIZE_MAX}, &scratch));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(takes_bump_by_address_and_a_free_of_the_top_takes_back)
{
    make(MIB);
    char *a = take(1), *b = take(300), *c = take(1);
    ck_assert_uint_eq((uintptr_t)a % TN_ALIGNMENT_DEFAULT, 0);
    ck_assert_ptr_eq(b, a + 256);
    ck_assert_ptr_eq(c, a + 768);
    tn_stable_span span;
    expect_ok(tn_scratch_take(scratch, 5, 1, &span));
    ck_assert_ptr_eq((char *)tn_stable_data(span), c + 1);
    expect_ok(tn_scratch_free(scratch, c + 1));
    expect_ok(tn_scratch_take(scratch, 5, 64 * KIB, &span));
    ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % (64 * KIB), 0);
    expect_ok(tn_scratch_free(scratch, tn_stable_data(span)));
    ck_assert_uint_eq(stats_now().used, 769);
    expect_ok(tn_scratch_free(scratch, c));
    expect_ok(tn_scratch_free(scratch, b));
    ck_assert_uint_eq(stats_now().used, 1);
    expect_ok(tn_scratch_free(scratch, a));
    ck_assert_uint_eq(stats_now().used, 0);
    ck_assert_uint_eq(stats_now().live_bytes, 0);
    ck_assert_uint_eq(stats_now().out_of_order, 0);
    ck_assert_ptr_eq(take(9), a);
}
END_TEST

START_TEST(a_block_freed_under_the_top_goes_when_the_top_does)
{
    make(MIB);
    char *a = take(256), *b = take(256), *c = take(256), *d = take(256);
    expect_ok(tn_scratch_free(scratch, b));
    expect_ok(tn_scratch_free(scratch, c));
    ck_assert_uint_eq(stats_now().used, 1024);
    ck_assert_uint_eq(stats_now().tombstones, 2);
    ck_assert_uint_eq(stats_now().live_blocks, 2);
    ck_assert_uint_eq(stats_now().live_bytes, 512);
    char *e = take(256);
    ck_assert_ptr_eq(e, d + 256);
    expect_ok(tn_scratch_free(scratch, d));
    expect_ok(tn_scratch_free(scratch, e));
    ck_assert_uint_eq(stats_now().used, 256);
    ck_assert_uint_eq(stats_now().tombstones, 0);
    ck_assert_uint_eq(stats_now().out_of_order, 3);
    ck_assert_uint_eq(stats_now().high_water, 1280);
    ck_assert_ptr_eq(take(1), b);
    expect_ok(tn_scratch_free(scratch, a));
}
END_TEST

START_TEST(a_rewind_drops_what_came_since_the_mark)
{
    make(MIB);
    char *a = take(256);
    tn_scratch_mark outer = mark();
    char *b = take(256);
    tn_scratch_mark inner = mark();
    (void)take(256);
    char *c = take(256);
    (void)take(256);
    expect_ok(tn_scratch_free(scratch, c));
    expect_ok(tn_scratch_rewind(scratch, inner));
    ck_assert_uint_eq(stats_now().used, 512);
    ck_assert_uint_eq(stats_now().live_blocks, 2);
    ck_assert_uint_eq(stats_now().tombstones, 0);
    ck_assert_uint_eq(stats_now().open_marks, 1);
    ck_assert_ptr_eq(take(1), b + 256);
    expect_ok(tn_scratch_rewind(scratch, outer));
    ck_assert_uint_eq(stats_now().used, 256);
    ck_assert_uint_eq(stats_now().live_bytes, 256);
    ck_assert_ptr_eq(take(1), a + 256);
}
END_TEST

/* Else a take could land under the mark and outlive its rewind. */
START_TEST(what_lies_under_an_open_mark_is_not_taken_back_before_it_is_rewound)
{
    make(MIB);
    char *a = take(256), *b = take(256);
    tn_scratch_mark m = mark();
    expect_ok(tn_scratch_free(scratch, b));
    ck_assert_uint_eq(stats_now().used, 512);
    expect_error(TN_MEM_E_STALE, tn_scratch_free(scratch, b));
    char *c = take(256);
    ck_assert_ptr_eq(c, b + 256);
    expect_ok(tn_scratch_free(scratch, c));
    ck_assert_uint_eq(stats_now().used, 512);
    expect_ok(tn_scratch_free(scratch, a));
    ck_assert_uint_eq(stats_now().used, 512);
    expect_ok(tn_scratch_rewind(scratch, m));
    ck_assert_uint_eq(stats_now().used, 0);
    ck_assert_uint_eq(stats_now().tombstones, 0);
}
END_TEST

START_TEST(v6_an_out_of_order_mark_is_an_error_and_changes_nothing)
{
    make(MIB);
    (void)take(256);
    tn_scratch_mark outer = mark();
    (void)take(256);
    tn_scratch_mark middle = mark();
    char *b = take(256);
    tn_scratch_mark inner = mark();
    char *c = take(256);
    expect_ok(tn_scratch_free(scratch, b));
    tn_scratch_stats before = stats_now();
    expect_error(TN_MEM_E_ORDER, tn_scratch_rewind(scratch, outer));
    expect_error(TN_MEM_E_ORDER, tn_scratch_rewind(scratch, middle));
    tn_scratch_stats after = stats_now();
    ck_assert_uint_eq(after.bad_marks, 2);
    before.bad_marks = 2;
    ck_assert_mem_eq(&before, &after, sizeof after);
    /* Takes and frees go on as if nothing had been asked. */
    ck_assert_ptr_eq(take(256), c + 256);
    expect_ok(tn_scratch_free(scratch, c + 256));
    /* And the right order is still open, to the end. */
    expect_ok(tn_scratch_rewind(scratch, inner));
    ck_assert_uint_eq(stats_now().used, 512); /* b lay dead right under it */
    expect_error(TN_MEM_E_STALE, tn_scratch_rewind(scratch, inner));
    expect_ok(tn_scratch_rewind(scratch, middle));
    expect_ok(tn_scratch_rewind(scratch, outer));
    ck_assert_uint_eq(stats_now().used, 256);
    ck_assert_uint_eq(stats_now().live_blocks, 1);
    expect_error(TN_MEM_E_STALE, tn_scratch_rewind(scratch, outer));
    ck_assert_uint_eq(stats_now().bad_marks, 4);
}
END_TEST

START_TEST(v6_marks_of_another_stack_or_of_before_a_reset_are_known_as_such)
{
    make(MIB);
    tn_scratch *other = NULL;
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(host), .tag = "other", .capacity = 4096}, &other));
    tn_scratch_mark mine = mark(), theirs;
    expect_ok(tn_scratch_open_mark(other, &theirs));
    ck_assert_uint_eq(mine.serial, theirs.serial);
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_rewind(scratch, theirs));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_rewind(scratch, (tn_scratch_mark){0}));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_rewind(NULL, mine));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_open_mark(NULL, &theirs));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_open_mark(scratch, NULL));
    tn_scratch_reset(scratch);
    expect_error(TN_MEM_E_STALE, tn_scratch_rewind(scratch, mine));
    tn_scratch_mark again = mark();
    expect_error(TN_MEM_E_STALE, tn_scratch_rewind(scratch, mine));
    expect_ok(tn_scratch_rewind(scratch, again));
    expect_ok(tn_scratch_destroy(&other));
}
END_TEST

START_TEST(a_take_beyond_the_capacity_is_counted_and_leaves_the_stack)
{
    make(64 * KIB);
    tn_stable_span span;
    char *a = take(KIB);
    const size_t too_much[] = {63 * KIB + 1, 64 * KIB, (size_t)PTRDIFF_MAX, SIZE_MAX - 255, SIZE_MAX};
    for (size_t i = 0; i < sizeof too_much / sizeof *too_much; i++) {
        expect_error(TN_MEM_E_EXHAUSTED, tn_scratch_take(scratch, too_much[i], 0, &span));
        ck_assert_ptr_null(tn_stable_data(span));
    }
    expect_error(TN_MEM_E_EXHAUSTED, tn_scratch_take(scratch, 1, TN_ALIGNMENT_MAX, &span));
    ck_assert_uint_eq(stats_now().exhausted, 6);
    ck_assert_uint_eq(stats_now().used, KIB);
    ck_assert_ptr_eq(take(63 * KIB), a + KIB);
    expect_error(TN_MEM_E_EXHAUSTED, tn_scratch_take(scratch, 1, 1, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(scratch, 0, 0, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(scratch, 1, 3, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(scratch, 1, TN_ALIGNMENT_MAX * 2, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(scratch, 1, SIZE_MAX, &span));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(scratch, 1, 0, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_take(NULL, 1, 0, &span));
    ck_assert_uint_eq(stats_now().exhausted, 7);
}
END_TEST

START_TEST(a_bad_free_changes_nothing_and_the_first_is_remembered)
{
    make(64 * KIB);
    char *a = take(512), *b = take(512), *c = take(512);
    expect_ok(tn_scratch_free(scratch, b));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_free(scratch, a + 1));
    expect_error(TN_MEM_E_STALE, tn_scratch_free(scratch, b));
    expect_error(TN_MEM_E_STALE, tn_scratch_free(scratch, c + 512));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_free(scratch, a - 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_free(scratch, a + 64 * KIB));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_free(scratch, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_free(NULL, a));
    ck_assert_uint_eq(stats_now().bad_frees, 6);
    ck_assert_ptr_eq(stats_now().first_bad_free, a + 1);
    ck_assert_uint_eq(stats_now().live_blocks, 2);
    ck_assert_uint_eq(stats_now().used, 1536);
    tn_scratch_reset(scratch);
    expect_error(TN_MEM_E_STALE, tn_scratch_free(scratch, a));
    ck_assert_uint_eq(stats_now().generation, 1);
}
END_TEST

typedef struct budget {
    size_t calls_left;
} budget;

static void *resize_within(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    budget *b = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    if (b->calls_left == 0)
        return NULL;
    b->calls_left--;
    return realloc(block, new_bytes);
}

/* A pass with more blocks and deeper marks than were prepared for. False where a call failed; all is well either way. */
static bool run_pass(const tn_metadata *metadata)
{
    tn_scratch_options o = {.backend = tn_host_backend(host), .tag = "scratch", .capacity = MIB, .blocks = 4, .metadata = metadata};
    tn_mem_error error = tn_scratch_create(&o, &scratch);
    if (error != TN_MEM_OK) {
        ck_assert_ptr_null(scratch);
        return false;
    }
    bool good = true;
    for (size_t i = 0; good && i < 40; i++) {
        tn_scratch_stats before = stats_now();
        tn_scratch_mark m;
        tn_stable_span span;
        tn_mem_error failed = tn_scratch_open_mark(scratch, &m);
        good = failed == TN_MEM_OK;
        if (good) {
            before.open_marks++;
            failed = tn_scratch_take(scratch, 100, 0, &span);
            good = failed == TN_MEM_OK;
        }
        tn_scratch_stats after = stats_now();
        if (!good) {
            expect_error(TN_MEM_E_HOST_MEMORY, failed);
            ck_assert_mem_eq(&before, &after, sizeof after);
        }
    }
    error = tn_scratch_destroy(&scratch);
    if (error != TN_MEM_OK) {
        expect_error(TN_MEM_E_DRIVER, error);
        ck_assert_uint_eq(stats_now().used, 0);
        expect_ok(tn_scratch_destroy(&scratch));
        return false;
    }
    return good;
}

START_TEST(a_failure_at_every_operation_of_the_backend_leaks_nothing)
{
    uint64_t n = 1;
    for (;; n++) {
        tn_host_fail(host, TN_HOST_ANY, n);
        if (run_pass(NULL))
            break;
        fixture_check_conservation(host);
        ck_assert_uint_eq(fixture_journal_live(host, NULL), 0);
    }
    tn_host_fail(host, TN_HOST_ANY, 0);
    ck_assert_uint_eq(n, 3); /* the acquisition and the release can fail */
}
END_TEST

START_TEST(a_failure_at_every_call_for_metadata_leaks_nothing)
{
    budget b;
    size_t n = 0;
    for (;; n++) {
        b.calls_left = n;
        if (run_pass(&(tn_metadata){.resize = resize_within, .self = &b}))
            break;
        ck_assert_uint_eq(fixture_journal_live(host, NULL), 0);
    }
    ck_assert_uint_ge(n, 6);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("scratch");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, bad_options_are_refused_and_acquire_nothing);
    tcase_add_test(tests, takes_bump_by_address_and_a_free_of_the_top_takes_back);
    tcase_add_test(tests, a_block_freed_under_the_top_goes_when_the_top_does);
    tcase_add_test(tests, a_rewind_drops_what_came_since_the_mark);
    tcase_add_test(tests, what_lies_under_an_open_mark_is_not_taken_back_before_it_is_rewound);
    tcase_add_test(tests, v6_an_out_of_order_mark_is_an_error_and_changes_nothing);
    tcase_add_test(tests, v6_marks_of_another_stack_or_of_before_a_reset_are_known_as_such);
    tcase_add_test(tests, a_take_beyond_the_capacity_is_counted_and_leaves_the_stack);
    tcase_add_test(tests, a_bad_free_changes_nothing_and_the_first_is_remembered);
    tcase_add_test(tests, a_failure_at_every_operation_of_the_backend_leaks_nothing);
    tcase_add_test(tests, a_failure_at_every_call_for_metadata_leaks_nothing);
    return fixture_run("scratch", tests);
}
