/* What grows and of which kind, and what stood in the way of a refused request. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_growth.h"
#include "report/report_refusals.h"
#include "report/report_text_parts.h"
#include "tests/report/report_test.h"

static jm *journal;
static uint64_t now_at, next_addr;

static void start(void)
{
    scratch_make();
    journal = plain_journal(1);
    jm_site(journal, 3, 0x3333, 1, (const uint64_t[][2]){{1, 0x300}});
    jm_site(journal, 4, 0x4444, 1, (const uint64_t[][2]){{1, 0x400}});
    now_at = 0;
    next_addr = 0x100000;
}

static uint64_t allocate(uint32_t site, uint64_t bytes)
{
    tn_event e = ev_alloc(TN_KIND_DEVICE, next_addr += 0x10000000, bytes);
    e.site = site;
    jm_event(journal, 1, ++now_at, e);
    return next_addr;
}

static void release(uint64_t addr)
{
    jm_event(journal, 1, ++now_at, ev_free(TN_KIND_DEVICE, addr));
}

static void serve(void)
{
    jm_event(journal, 1, ++now_at, ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0));
}

/* A request as all programs have them: something comes and goes. */
static void request(void)
{
    release(allocate(4, 70000));
}

static const tn_growth_site *grown(uint64_t key)
{
    for (size_t i = 0; i < report->growth->count; i++)
        if (report->sites[report->rows[report->growth->sites[i].row].site].key == key)
            return &report->growth->sites[i];
    return NULL;
}

START_TEST(a_pool_that_keeps_ever_larger_buffers)
{
    uint64_t buffer = allocate(2, 4096);
    serve();
    for (unsigned i = 1; i <= 20; i++) {
        uint64_t larger = allocate(2, 4096 * (uint64_t)(i + 1));
        release(buffer);
        buffer = larger;
        request();
    }
    release(buffer);
    load_journal(journal);
    const tn_growth_site *g = grown(0x2222);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(g->kind, TN_GROWTH_POOL);
    ck_assert_int_eq(g->serving, 1);
    ck_assert_uint_eq(g->first_bytes, 8192);
    ck_assert_uint_eq(g->last_bytes, 4096 * 21);
    ck_assert_uint_eq(report->growth->count, 1);
}
END_TEST

START_TEST(a_pointer_overwritten_on_each_initialisation)
{
    serve();
    for (unsigned i = 0; i < 20; i++) {
        allocate(3, 5000);
        request();
    }
    load_journal(journal);
    const tn_growth_site *g = grown(0x3333);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(g->kind, TN_GROWTH_LOST);
    ck_assert_uint_eq(g->allocs, 20);
    ck_assert_uint_eq(g->frees, 0);
    ck_assert_uint_ge(g->blocks, 17);
    ck_assert_uint_eq(g->bytes, g->blocks * 8192);
    ck_assert_uint_eq(report->growth->count, 1);
}
END_TEST

START_TEST(both_at_once_and_told_apart)
{
    uint64_t buffer = allocate(2, 4096);
    serve();
    for (unsigned i = 1; i <= 200; i++) {
        allocate(3, 100);
        uint64_t larger = allocate(2, 4096 * (uint64_t)(i + 1));
        release(buffer);
        buffer = larger;
        request();
    }
    load_journal(journal);
    ck_assert_uint_eq(report->growth->count, 2);
    ck_assert_int_eq(grown(0x2222)->kind, TN_GROWTH_POOL);
    ck_assert_int_eq(grown(0x3333)->kind, TN_GROWTH_LOST);
}
END_TEST

START_TEST(what_is_freed_at_the_end_was_not_lost)
{
    uint64_t kept[20];
    serve();
    for (unsigned i = 0; i < 20; i++) {
        kept[i] = allocate(3, 5000);
        request();
    }
    for (unsigned i = 0; i < 20; i++)
        release(kept[i]);
    load_journal(journal);
    ck_assert_int_eq(grown(0x3333)->kind, TN_GROWTH_KEPT);
}
END_TEST

START_TEST(loading_and_filling_up_are_no_growth)
{
    for (unsigned i = 0; i < 50; i++)
        allocate(2, 100000); /* weights */
    serve();
    for (unsigned i = 0; i < 10; i++) {
        allocate(3, 100000); /* a cache that fills up */
        request();
    }
    for (unsigned i = 0; i < 60; i++)
        request();
    load_journal(journal);
    ck_assert_uint_eq(report->growth->count, 0);
}
END_TEST

/* Four buffers in turn, each given back before the next one comes: full after four requests, however many follow. That the run ends just
 * after one came, when the site holds one more than at its lowest, is no rise. */
START_TEST(a_ring_of_buffers_is_no_growth)
{
    uint64_t ring[4] = {0};
    serve();
    for (unsigned i = 0; i < (unsigned)_i; i++) {
        if (ring[i % 4])
            release(ring[i % 4]);
        ring[i % 4] = allocate(3, 65536);
        for (unsigned k = 0; _i > 12 && k < 5; k++)
            request();
    }
    load_journal(journal);
    ck_assert_uint_eq(report->growth->count, 0);
}
END_TEST

START_TEST(without_a_phase_the_whole_run_counts)
{
    for (unsigned i = 0; i < 30; i++) {
        allocate(3, 5000);
        request();
    }
    load_journal(journal);
    ck_assert_ptr_nonnull(grown(0x3333));
    ck_assert_int_eq(grown(0x3333)->serving, 0);
    ck_assert_uint_eq(report->growth->count, 1);
}
END_TEST

START_TEST(swaps_and_idle_time_do_not_hide_it)
{
    serve();
    for (unsigned i = 0; i < 20; i++) {
        allocate(3, 5000);
        jm_event(journal, 1, ++now_at, ev(TN_EV_PHASE, TN_PHASE_PLANNING, 0, 0));
        jm_event(journal, 1, ++now_at, ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0));
    }
    now_at += 1000000000;
    release(allocate(4, 10));
    load_journal(journal);
    ck_assert_ptr_nonnull(grown(0x3333));
}
END_TEST

/* Of a leak among requests of many sizes nothing is missed, and nothing that comes and goes is taken for one. */
START_TEST(a_leak_among_random_requests)
{
    uint64_t live[40] = {0};
    srand(3);
    for (unsigned i = 0; i < 40; i++)
        live[i] = allocate(4, 4096);
    serve();
    for (unsigned i = 0; i < 4000; i++) {
        unsigned k = (unsigned)rand() % 40;
        if (live[k]) {
            release(live[k]);
            live[k] = 0;
        } else {
            live[k] = allocate(rand() % 2 ? 2 : 4, 1 + (unsigned)rand() % 100000);
        }
        if (i % 100 == 0)
            allocate(3, 64);
    }
    load_journal(journal);
    ck_assert_uint_eq(report->growth->count, 1);
    ck_assert_int_eq(grown(0x3333)->kind, TN_GROWTH_LOST);
    ck_assert_uint_eq(grown(0x3333)->allocs, 40);
}
END_TEST

/* ---- refusals ---- */

static void refuse(uint32_t site, uint64_t bytes)
{
    tn_event e = ev_alloc(TN_KIND_DEVICE, 0, bytes);
    e.site = site;
    e.result = 2;
    jm_event(journal, 1, ++now_at, e);
}

static void pool_block(uint64_t addr, uint64_t bytes, int free_it)
{
    jm_event(journal, 1, ++now_at, free_it ? ev_free(TN_KIND_ASYNC, addr) : ev_alloc(TN_KIND_ASYNC, addr, bytes));
}

static void wait_for(uint8_t kind)
{
    jm_event(journal, 1, ++now_at, ev(TN_EV_WAIT, kind, 0, 0));
}

START_TEST(idle_pool_bytes_are_named)
{
    const uint64_t gib = (uint64_t)1 << 30;
    pool_block(0x7000, 72 * gib, 0);
    pool_block(0x7000, 0, 1);
    refuse(2, 40 * gib);
    wait_for(TN_WAIT_STREAM_QUERY); /* lets go of nothing */
    refuse(3, 40 * gib);
    wait_for(TN_WAIT_STREAM);
    refuse(4, 39 * gib);
    load_journal(journal);
    const tn_refusals *f = report->refusals;
    ck_assert_uint_eq(f->count, 3);
    ck_assert_uint_eq(f->each[0].idle, 72 * gib);
    ck_assert_uint_eq(f->each[0].live, 0);
    ck_assert_int_eq(f->each[0].result, 2);
    ck_assert_uint_eq(f->each[1].idle, 72 * gib);
    ck_assert_uint_eq(f->each[2].idle, 0);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    ck_assert_int_eq(tn_report_text(report, &(tn_report_options){.top = 5}, out), 0);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "0 B of this run's were live then, of 80.0 GiB; up to 72.0 GiB lay idle in its"));
    free(text);
}
END_TEST

START_TEST(a_threshold_keeps_and_a_trim_gives_back)
{
    tn_event e = ev(TN_EV_POOL, TN_POOL_SET, 0x9000, 3 << 20);
    e.aux = 4;
    jm_event(journal, 1, ++now_at, e);
    pool_block(0x7000, 8 << 20, 0);
    pool_block(0x7000, 0, 1);
    wait_for(TN_WAIT_CONTEXT);
    refuse(2, 1 << 20);
    jm_event(journal, 1, ++now_at, ev(TN_EV_POOL, TN_POOL_TRIM, 0x9000, 1 << 20));
    refuse(3, 1 << 19);
    load_journal(journal);
    ck_assert_uint_eq(report->refusals->each[0].idle, 3 << 20);
    ck_assert_uint_eq(report->refusals->each[1].idle, 1 << 20);
}
END_TEST

START_TEST(the_largest_of_a_site_and_what_came_of_it)
{
    refuse(2, 100);
    refuse(2, 4000);
    refuse(2, 50);
    refuse(3, 10);
    allocate(2, 40);
    load_journal(journal);
    ck_assert_uint_eq(report->refusals->count, 2);
    ck_assert_uint_eq(report->refusals->each[0].requested, 4000);
    ck_assert_uint_eq(report->refusals->each[0].count, 3);
    ck_assert_int_eq(report->refusals->each[0].granted_later, 1);
    ck_assert_int_eq(report->refusals->each[1].granted_later, 0);
}
END_TEST

/* The sections as a person reads them; the file is written anew where TENURE_GOLDEN names a folder. */
START_TEST(golden)
{
    static const char path[] = "tests/report/golden/growth.txt";
    const tn_report_options options = {.top = 5};
    uint64_t weights = allocate(4, 64 << 20), buffer = allocate(2, 4096);
    release(weights);
    allocate(4, 1 << 20);
    serve();
    for (unsigned i = 1; i <= 20; i++) {
        allocate(3, 5000);
        uint64_t larger = allocate(2, 4096 * (uint64_t)(i + 1));
        release(buffer);
        buffer = larger;
    }
    pool_block(0x7000, (uint64_t)72 << 30, 0);
    pool_block(0x7000, 0, 1);
    refuse(2, (uint64_t)40 << 30);
    load_journal(journal);
    char *text = NULL, wanted[8192] = "", name[512];
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    tn_text_growth(report, &options, out);
    tn_text_left(report, &options, out);
    tn_text_refusals(report, &options, out);
    fclose(out);
    ck_assert_str_eq(text + length - 2, "\n\n"); /* the empty line behind the last section is not in the file */
    text[length - 1] = 0;
    if (getenv("TENURE_GOLDEN")) {
        snprintf(name, sizeof(name), "%s/growth.txt", getenv("TENURE_GOLDEN"));
        out = fopen(name, "w");
        ck_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
    }
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    ck_assert_uint_gt(fread(wanted, 1, sizeof(wanted) - 1, in), 0);
    fclose(in);
    ck_assert_str_eq(text, wanted);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("growth");
    TCase *tc = tcase_create("growth");
    tcase_add_checked_fixture(tc, start, drop_report);
    tcase_add_test(tc, a_pool_that_keeps_ever_larger_buffers);
    tcase_add_test(tc, a_pointer_overwritten_on_each_initialisation);
    tcase_add_test(tc, both_at_once_and_told_apart);
    tcase_add_test(tc, what_is_freed_at_the_end_was_not_lost);
    tcase_add_test(tc, loading_and_filling_up_are_no_growth);
    tcase_add_loop_test(tc, a_ring_of_buffers_is_no_growth, 8, 40);
    tcase_add_test(tc, without_a_phase_the_whole_run_counts);
    tcase_add_test(tc, swaps_and_idle_time_do_not_hide_it);
    tcase_add_test(tc, a_leak_among_random_requests);
    tcase_add_test(tc, idle_pool_bytes_are_named);
    tcase_add_test(tc, a_threshold_keeps_and_a_trim_gives_back);
    tcase_add_test(tc, golden);
    tcase_add_test(tc, the_largest_of_a_site_and_what_came_of_it);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
