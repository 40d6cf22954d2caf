/* Lines that add up: by library, site, kind and phase, at the end, at the peak, after an unload and at a mark. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/report_test.h"

static tn_event from(uint32_t site, uint8_t phase, tn_event e)
{
    e.site = site;
    e.phase = phase;
    return e;
}

/* Sites of three owners: 2 the engine, 3 libblas called by the engine, 4 the engine through ctypes, 5 code in no file. */
static jm *owners_journal(void)
{
    static const uint64_t blas[][2] = {{2, 0x10}, {1, 0x20}}, ctypes[][2] = {{3, 1}, {4, 2}, {1, 0x30}}, jit[][2] = {{5, 9}, {1, 1}};
    jm *j = plain_journal(1);
    jm_module(j, 2, "0102", "/opt/libblas.so.13");
    jm_module(j, 3, "0103", "/usr/lib/libffi.so.8");
    jm_module(j, 4, "0104", "/usr/lib/_ctypes.cpython-312.so");
    jm_module(j, 5, "jit", "");
    jm_site(j, 3, 0x3333, 2, blas);
    jm_site(j, 4, 0x4444, 3, ctypes);
    jm_site(j, 5, 0x5555, 2, jit);
    return j;
}

static const tn_stat *library(const char *name)
{
    for (size_t i = 0; i < report->owner_count; i++)
        if (strcmp(report->owners[i], name) == 0)
            return &device(0)->owners[i];
    ck_abort_msg("no library %s", name);
    return NULL;
}

static void add(tn_stat *sum, const tn_stat *s)
{
    sum->live_backed += s->live_backed;
    sum->live_requested += s->live_requested;
    sum->at_peak += s->at_peak;
    sum->at_low += s->at_low;
    sum->allocs += s->allocs;
    sum->frees += s->frees;
    sum->refused += s->refused;
}

static void check_sum(const char *what, const tn_stat *sum, const tn_place *p)
{
    const tn_stat *t = &p->total;
    ck_assert_msg(sum->live_backed == t->live_backed && sum->live_requested == t->live_requested, "%s: live", what);
    ck_assert_msg(sum->at_peak == t->at_peak, "%s: at the peak %llu, not %llu", what, (unsigned long long)sum->at_peak, (unsigned long long)t->at_peak);
    ck_assert_msg(sum->at_low == t->at_low, "%s: after the unload", what);
    ck_assert_msg(sum->allocs == t->allocs && sum->frees == t->frees && sum->refused == t->refused, "%s: calls", what);
}

/* Every way to cut a place's total into lines gives the total. */
static void check_place(uint32_t index)
{
    const tn_place *p = &report->places[index];
    tn_stat owners = {0}, rows = {0}, kinds = {0}, phases = {0};
    for (size_t i = 0; p->owners && i < report->owner_count; i++)
        add(&owners, &p->owners[i]);
    for (size_t i = 0; i < report->row_count; i++)
        if (report->rows[i].place == index && tn_kind_is_summed(report->rows[i].kind))
            add(&rows, &report->rows[i].stat);
    for (unsigned i = 0; i < TN_KIND_COUNT; i++)
        if (tn_kind_is_summed((uint8_t)i))
            add(&kinds, &p->kinds[i]);
    for (unsigned i = 0; i <= TN_PHASE_SERVING; i++)
        add(&phases, &p->phases[i]);
    check_sum("libraries", &owners, p);
    check_sum("sites", &rows, p);
    check_sum("kinds", &kinds, p);
    check_sum("phases", &phases, p);
    ck_assert_uint_eq(p->total.at_peak, p->total.peak_backed);
}

START_TEST(owners)
{
    jm *j = owners_journal();
    for (uint32_t site = 2; site < 6; site++)
        jm_event(j, 1, site, from(site, 0, ev_alloc(TN_KIND_DEVICE, 0x1000 * site, 100)));
    jm_event(j, 1, 9, from(0, 0, ev_alloc(TN_KIND_DEVICE, 0x9000, 100)));
    load_journal(j);
    CHECK_CALLS(library("engine"), 2, 0, 0);
    CHECK_CALLS(library("libblas.so.13"), 1, 0, 0);
    CHECK_CALLS(library("jit"), 1, 0, 0);
    CHECK_CALLS(library("unknown"), 1, 0, 0);
    check_place(1);
}
END_TEST

START_TEST(at_the_peak_of_the_device)
{
    jm *j = owners_journal();
    jm_event(j, 1, 1, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x1000, 4096)));
    jm_event(j, 1, 2, from(3, 0, ev_alloc(TN_KIND_DEVICE, 0x2000, 8192))); /* the peak */
    jm_event(j, 1, 3, ev_free(TN_KIND_DEVICE, 0x1000));
    jm_event(j, 1, 4, ev_free(TN_KIND_DEVICE, 0x2000));
    jm_event(j, 1, 5, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x3000, 8192))); /* the engine's own */
    load_journal(j);
    ck_assert_uint_eq(library("engine")->at_peak, 4096);
    ck_assert_uint_eq(library("engine")->peak_backed, 8192);
    ck_assert_uint_eq(library("libblas.so.13")->at_peak, 8192);
    ck_assert_uint_eq(device(0)->moments.peak_ns, 2);
    check_place(1);
}
END_TEST

START_TEST(what_an_unload_leaves)
{
    jm *j = owners_journal();
    jm_event(j, 1, 1, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x1000, 4096)));
    jm_event(j, 1, 2, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x2000, 8192)));
    jm_event(j, 1, 3, from(3, 0, ev_alloc(TN_KIND_DEVICE, 0x3000, 4096)));
    jm_event(j, 1, 4, ev_free(TN_KIND_DEVICE, 0x2000));
    jm_event(j, 1, 5, ev_free(TN_KIND_DEVICE, 0x1000)); /* the model is gone, libblas stays */
    jm_event(j, 1, 6, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x2000, 8192)));
    jm_event(j, 1, 7, ev_free(TN_KIND_DEVICE, 0x3000));
    load_journal(j);
    ck_assert_uint_eq(device(0)->moments.drop, 12288);
    ck_assert_uint_eq(device(0)->moments.low_ns, 5);
    ck_assert_uint_eq(device(0)->total.at_low, 4096);
    ck_assert_uint_eq(library("libblas.so.13")->at_low, 4096);
    ck_assert_uint_eq(library("engine")->at_low, 0);
    check_place(1);
}
END_TEST

START_TEST(a_process_that_ends_unloads_nothing)
{
    jm *a = owners_journal(), *b = owners_journal();
    jm_event(a, 1, 1, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x1000, 65536)));
    jm_event(a, 1, 2, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x2000, 4096)));
    jm_event(a, 1, 3, ev_free(TN_KIND_DEVICE, 0x2000));
    jm_header(a)->mono_last_ns = jm_header(a)->mono_start_ns + 10;
    jm_event(b, 1, 20, from(2, 0, ev_alloc(TN_KIND_DEVICE, 0x1000, 4096)));
    put_journal(a, "a");
    put_journal(b, "b");
    report = load_scratch();
    ck_assert_uint_eq(device(0)->moments.drop, 4096);
    check_place(1);
}
END_TEST

/* Whatever a program does: three thousand random calls by all owners, kinds and phases, on a device and the host. */
START_TEST(all_cuts_add_up)
{
    static const uint8_t kinds[] = {TN_KIND_DEVICE, TN_KIND_MANAGED, TN_KIND_PINNED, TN_KIND_GRAPH, TN_KIND_ASYNC, TN_KIND_REGISTERED};
    struct { uint8_t kind; uint64_t addr; } live[64] = {0};
    jm *j = owners_journal();
    srand(7);
    for (unsigned i = 0; i < 3000; i++) {
        unsigned slot = (unsigned)rand() % 64;
        uint8_t kind = kinds[(unsigned)rand() % 6];
        if (live[slot].addr) {
            jm_event(j, 1 + slot % 3, i, ev_free(live[slot].kind, live[slot].addr));
            live[slot].addr = 0;
        } else {
            live[slot].kind = kind;
            live[slot].addr = 0x100000 + 0x10000 * (uint64_t)slot;
            tn_event e = from((unsigned)rand() % 6, (uint8_t)(i / 1000), ev_alloc(kind, live[slot].addr, 1 + (unsigned)rand() % 60000));
            e.result = rand() % 20 == 0 ? 2 : 0;
            if (e.result)
                live[slot].addr = 0;
            jm_event(j, 1 + slot % 3, i, e);
        }
    }
    put_journal(j, "a");
    report = load_scratch();
    ck_assert_uint_gt(device(0)->total.allocs, 500);
    ck_assert_uint_gt(device(0)->moments.drop, 0);
    check_place(0);
    check_place(1);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

static tn_error load_at(const char *at, char message[TN_REPORT_MESSAGE])
{
    tn_report_free(report);
    report = NULL;
    return tn_report_load_with(scratch_path(), &(tn_report_load_options){.at = at}, &report, message);
}

START_TEST(the_state_at_a_mark)
{
    char message[TN_REPORT_MESSAGE];
    jm *j = owners_journal();
    jm_string(j, 1, "loaded");
    jm_string(j, 2, "warm");
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 100));
    jm_event(j, 1, 2, ev(TN_EV_MARK, 0, 1, 0));
    jm_event(j, 1, 3, ev_alloc(TN_KIND_DEVICE, 0x2000, 200));
    jm_event(j, 2, 4, ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0));
    jm_event(j, 1, 5, ev_alloc(TN_KIND_DEVICE, 0x3000, 400));
    jm_event(j, 1, 6, ev(TN_EV_MARK, 1, 2, 0)); /* a range begins ... */
    jm_event(j, 1, 7, ev(TN_EV_MARK, 2, 0, 0)); /* ... and ends: no mark */
    jm_event(j, 1, 8, ev_alloc(TN_KIND_DEVICE, 0x4000, 800));
    jm_event(j, 1, 9, ev(TN_EV_MARK, 0, 1, 0));
    put_journal(j, "a");
    static const struct { const char *at; uint64_t live; uint32_t number; } cases[] = {
        {"loaded", 100, 1}, {"1", 100, 1}, {"serving", 300, 0}, {"warm", 700, 2}, {"2", 700, 2}, {"3", 1500, 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(load_at(cases[i].at, message), TN_OK);
        ck_assert_uint_eq(device(0)->total.live_requested, cases[i].live);
        ck_assert_uint_eq(device(0)->total.peak_requested, cases[i].live);
        ck_assert_uint_eq(report->stop.number, cases[i].number);
        check_place(1);
    }
    ck_assert_int_eq(load_at("4", message), TN_E_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(message, "there is no mark or phase 4 in this run, whose marks are 1 'loaded', 2 'warm', 3 'loaded'"));
    ck_assert_int_eq(load_at("planning", message), TN_E_NOTFOUND);
    ck_assert_ptr_null(report);
}
END_TEST

START_TEST(marks_with_odd_characters)
{
    char message[TN_REPORT_MESSAGE];
    jm *j = owners_journal();
    jm_string(j, 1, "\x1b[31mred\n");
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 100));
    jm_event(j, 1, 2, ev(TN_EV_MARK, 0, 1, 0));
    put_journal(j, "a");
    ck_assert_int_eq(load_at("\x1b[31mred\n", message), TN_OK);
    tn_report_free(report);
    report = NULL;
    ck_assert_int_eq(load_at("\x1b[0m", message), TN_E_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(message, "no mark or phase ?[0m in this run, whose marks are 1 '?[31mred?'"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("by");
    TCase *tc = tcase_create("by");
    tcase_add_checked_fixture(tc, scratch_make, drop_report);
    tcase_add_test(tc, owners);
    tcase_add_test(tc, at_the_peak_of_the_device);
    tcase_add_test(tc, what_an_unload_leaves);
    tcase_add_test(tc, a_process_that_ends_unloads_nothing);
    tcase_add_test(tc, all_cuts_add_up);
    tcase_add_test(tc, the_state_at_a_mark);
    tcase_add_test(tc, marks_with_odd_characters);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
