/* T5a: what is taken for loading is gone at its end, or named. */
#include <pthread.h>

#include "fixture.h"
#include "tiers/load_staging.h"

static tn_host *host;
static tn_staging *staging;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 64 * MIB, .quarantine = 64 * MIB, .not_growable = true});
    expect_ok(tn_staging_create(tn_host_backend(host), NULL, &staging));
}

static void end(void)
{
    expect_ok(tn_staging_destroy(&staging));
    ck_assert_ptr_null(staging);
    fixture_finish(host);
}

static tn_staging_stats stats_now(void)
{
    tn_staging_stats stats;
    tn_staging_read_stats(staging, &stats);
    ck_assert_uint_eq(stats.live, stats.taken - stats.given);
    ck_assert_uint_eq(stats.live_bytes, fixture_journal_live(host, NULL));
    return stats;
}

START_TEST(an_empty_staging_ends)
{
    tn_staging_leftover left = {.count = 77};
    tn_region region;
    expect_ok(tn_staging_end_loading(staging, &left));
    ck_assert_uint_eq(left.count + left.bytes + left.total, 0);
    ck_assert_ptr_null(left.tag);
    expect_ok(tn_staging_end_loading(staging, NULL));
    expect_error(TN_MEM_E_BUDGET, tn_staging_take(staging, MIB, 0, "late", &region));
    ck_assert_ptr_null(region.base);
    ck_assert_uint_eq(stats_now().late, 1);
    tn_staging_begin_loading(staging); /* another model */
    expect_ok(tn_staging_take(staging, MIB, 0, "again", &region));
    expect_ok(tn_staging_give(staging, &region));
    end();
}
END_TEST

START_TEST(the_first_leftover_is_named)
{
    tn_region a, b, c, d;
    tn_staging_leftover left;
    expect_ok(tn_staging_take(staging, 4 * KIB, 0, "header", &a));
    expect_ok(tn_staging_take(staging, 2 * MIB, 0, "tensor", &b));
    expect_ok(tn_staging_take(staging, MIB, 0, "scales", &c));
    expect_ok(tn_staging_take(staging, 3 * MIB, 0, "tensor", &d));
    expect_ok(tn_staging_give(staging, &a));
    expect_error(TN_MEM_E_LEFTOVER, tn_staging_end_loading(staging, &left));
    ck_assert_str_eq(left.tag, "tensor");
    ck_assert_ptr_eq(left.address, b.base);
    ck_assert_uint_eq(left.bytes, 2 * MIB);
    ck_assert_uint_eq(left.count, 3);
    ck_assert_uint_eq(left.total, 6 * MIB);
    expect_ok(tn_staging_take(staging, 8 * KIB, 0, "more", &a)); /* Loading goes on */
    expect_ok(tn_staging_give(staging, &b));
    expect_ok(tn_staging_give(staging, &d));
    expect_error(TN_MEM_E_LEFTOVER, tn_staging_end_loading(staging, &left));
    ck_assert_str_eq(left.tag, "scales");
    ck_assert_uint_eq(left.bytes, MIB);
    ck_assert_uint_eq(left.count, 2);
    ck_assert_uint_eq(left.total, MIB + 8 * KIB);
    expect_ok(tn_staging_give(staging, &c));
    expect_ok(tn_staging_give(staging, &a));
    expect_ok(tn_staging_end_loading(staging, &left));
    ck_assert_uint_eq(stats_now().high_water, 6 * MIB + 8 * KIB);
    end();
}
END_TEST

START_TEST(a_block_is_given_back_once)
{
    tn_region region, copy, empty = {0};
    expect_error(TN_MEM_E_ARGUMENT, tn_staging_give(staging, &empty));
    expect_error(TN_MEM_E_ARGUMENT, tn_staging_take(staging, 0, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_staging_take(staging, 1, 0, NULL, &region));
    expect_ok(tn_staging_take(staging, MIB, 0, "t", &region));
    copy = region;
    expect_ok(tn_staging_give(staging, &region));
    ck_assert_ptr_null(region.base);
    expect_error(TN_MEM_E_STALE, tn_staging_give(staging, &copy));
    ck_assert_uint_eq(stats_now().given, 1);
    tn_region foreign;
    expect_ok(tn_backend_acquire(tn_host_backend(host), MIB, 0, "f", &foreign));
    expect_error(TN_MEM_E_STALE, tn_staging_give(staging, &foreign));
    expect_ok(tn_backend_release(tn_host_backend(host), &foreign));
    end();
}
END_TEST

START_TEST(what_the_backend_refuses_changes_nothing)
{
    tn_region region;
    tn_staging_leftover left;
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_staging_take(staging, MIB, 0, "t", &region));
    expect_ok(tn_staging_end_loading(staging, NULL));
    tn_staging_begin_loading(staging);
    expect_ok(tn_staging_take(staging, MIB, 0, "t", &region));
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_staging_give(staging, &region));
    expect_error(TN_MEM_E_LEFTOVER, tn_staging_end_loading(staging, &left));
    ck_assert_uint_eq(left.bytes, MIB);
    ck_assert_uint_eq(stats_now().live_bytes, MIB);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_staging_destroy(&staging));
    ck_assert_ptr_nonnull(staging);
    expect_ok(tn_staging_give(staging, &region));
    end();
}
END_TEST

START_TEST(an_end_gives_back_what_is_left)
{
    tn_region region;
    for (int i = 0; i < 20; i++)
        expect_ok(tn_staging_take(staging, 4 * KIB, 0, "t", &region));
    end();
}
END_TEST

static void *no_memory(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    size_t *left = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return (*left)-- == 0 ? NULL : realloc(block, new_bytes);
}

START_TEST(without_host_memory_nothing_is_acquired)
{
    tn_staging *poor = NULL;
    tn_region region;
    size_t left = 0;
    tn_metadata metadata = {no_memory, &left};
    expect_error(TN_MEM_E_HOST_MEMORY, tn_staging_create(tn_host_backend(host), &metadata, &poor));
    left = 1;
    expect_ok(tn_staging_create(tn_host_backend(host), &metadata, &poor));
    expect_error(TN_MEM_E_HOST_MEMORY, tn_staging_take(poor, MIB, 0, "t", &region));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
    expect_ok(tn_staging_end_loading(poor, NULL));
    expect_ok(tn_staging_destroy(&poor));
    end();
}
END_TEST

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        tn_region region;
        if (tn_staging_take(staging, 4 * KIB, 0, "t", &region) != TN_MEM_OK || tn_staging_give(staging, &region) != TN_MEM_OK)
            return "lost";
    }
    return NULL;
}

/* What is taken and given at random, and what an end of Loading says of it, beside a list. */
START_TEST(a_random_load_agrees_with_a_list)
{
    enum { MOST = 4, STEPS = 3000 };
    struct { tn_region region; uint64_t order; } kept[MOST] = {{{0}, 0}};
    uint64_t seed = fixture_seed(0x57A6E + (uint64_t)_i), order = 0, late = 0;
    random_state random = {seed};
    bool over = false;
    for (size_t step = 0; step < STEPS; step++) {
        const char *where = fixture_seed_line(seed, step);
        size_t at = random_below(&random, MOST), live = 0, total = 0, first = MOST;
        for (size_t i = 0; i < MOST; i++) {
            bool there = kept[i].region.base != NULL;
            live += there;
            total += kept[i].region.committed;
            if (there && (first == MOST || kept[i].order < kept[first].order))
                first = i;
        }
        uint64_t what = random_below(&random, 20);
        if (what < 2) {
            tn_staging_leftover left;
            tn_mem_error error = tn_staging_end_loading(staging, &left);
            ck_assert_msg(error == (live > 0 ? TN_MEM_E_LEFTOVER : TN_MEM_OK) && left.count == live && left.total == total, "%s", where);
            ck_assert_msg(live == 0 || left.address == kept[first].region.base, "%s", where);
            over = live == 0;
        } else if (what < 4) {
            tn_staging_begin_loading(staging);
            over = false;
        } else if (kept[at].region.base != NULL) {
            tn_region copy = kept[at].region;
            expect_ok(tn_staging_give(staging, &kept[at].region));
            expect_error(TN_MEM_E_STALE, tn_staging_give(staging, &copy));
        } else {
            bool fails = random_below(&random, 5) == 0 && !over;
            if (fails)
                tn_host_fail(host, TN_HOST_ACQUIRE, 1);
            tn_mem_error error = tn_staging_take(staging, 1 + random_below(&random, 9000), 0, "load", &kept[at].region);
            ck_assert_msg(error == (over ? TN_MEM_E_BUDGET : fails ? TN_MEM_E_OUT_OF_MEMORY : TN_MEM_OK), "%s", where);
            kept[at].order = ++order;
            late += over;
        }
        tn_staging_stats stats;
        tn_staging_read_stats(staging, &stats);
        size_t there = 0;
        for (size_t i = 0; i < MOST; i++)
            there += kept[i].region.base != NULL;
        ck_assert_msg(stats.live == there && stats.late == late && stats.taken == stats.given + there, "%s", where);
    }
    ck_assert_uint_gt(late, 10);
    ck_assert_uint_eq(stats_now().live_bytes, fixture_journal_live(host, NULL));
    end();
}
END_TEST

START_TEST(loaders_are_many)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_uint_eq(stats_now().taken, 8000);
    expect_ok(tn_staging_end_loading(staging, NULL));
    end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("load_staging");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, an_empty_staging_ends);
    tcase_add_test(tests, the_first_leftover_is_named);
    tcase_add_test(tests, a_block_is_given_back_once);
    tcase_add_test(tests, what_the_backend_refuses_changes_nothing);
    tcase_add_test(tests, an_end_gives_back_what_is_left);
    tcase_add_test(tests, without_host_memory_nothing_is_acquired);
    tcase_add_loop_test(tests, a_random_load_agrees_with_a_list, 0, 4);
    tcase_add_test(tests, loaders_are_many);
    return fixture_run("load_staging", tests);
}
