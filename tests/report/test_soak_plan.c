/* The criteria of a soak with a plan: a run that holds, and then the same run with one thing wrong at a time. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_soak.h"
#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)
#define QUIET (TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER)
#define BASE (100 * MIB)
#define CONTEXT (1000 * MIB)
#define ARENA (1024 * MIB) /* an address */
#define NATIVE (8192 * MIB)

enum { BLOCKS = 100 }; /* at the flip to serving */

/* What is wrong with the run. */
typedef enum fault {
    NOTHING, ONE_MORE_BLOCK, DRIVER_ALLOCATION, FIRST_USE, ARENA_WHILE_SERVING, SPILL_WHILE_LOADING, TWO_MORE_BLOCKS, TWO_LESS_BLOCKS, LOST_BYTES, NO_READING,
    NOT_PLACED, DROPPED, NAMELESS, NO_MARK, NO_MARK_AND_TWO_MORE
} fault;

static uint64_t at;

static void put(jm *j, tn_event e) { jm_event(j, 1, at += 10, e); }

static void put_reading(jm *j, uint64_t used)
{
    tn_event e = ev(TN_EV_CHARGE, TN_CHARGE_READING, TN_READ_MARK, used);
    e.aux = used;
    e.aux2 = QUIET;
    put(j, e);
}

static void put_window(jm *j, uint8_t kind, uint64_t before, uint64_t after)
{
    tn_event e = ev(TN_EV_CHARGE, kind, JM_START + at, before);
    e.aux = after;
    e.aux2 = QUIET | TN_CHARGE_ALONE;
    e.site = 2;
    put(j, e);
}

static void put_arena(jm *j, uint64_t addr, uint64_t bytes)
{
    tn_event e = ev(TN_EV_ARENA, TN_KIND_DEVICE, addr, bytes);
    e.aux = bytes;
    e.aux2 = (uint64_t)TN_ROUTE_PACKED << 32;
    put(j, e);
}

static void put_alloc(jm *j, uint32_t site, unsigned route, uint64_t addr, uint64_t bytes)
{
    tn_event e = ev_alloc(TN_KIND_DEVICE, addr, bytes);
    e.site = site;
    e.aux = tn_route_tier(route) ? 0 : e.aux;
    e.aux2 = (uint64_t)route << 32;
    put(j, e);
}

static uint64_t block(unsigned n) { return ARENA + n * 4096; }

/* An arena of 64 MiB of which 100 blocks are taken before serving; two come and go while it serves; drained, then ended. */
static void load_run(fault f)
{
    jm *j = plain_journal(10);
    unsigned placed = f == NOT_PLACED ? 0 : TN_ROUTE_PACKED;
    uint64_t own = BASE + CONTEXT + 64 * MIB;
    jm_string(j, 1, f == NO_MARK || f == NO_MARK_AND_TWO_MORE ? "all is done" : TN_SOAK_DRAINED);
    jm_site(j, 3, 0x3333, 1, (const uint64_t[][2]){{1, 0x200}});
    jm_site(j, 4, 0x4444, 1, (const uint64_t[][2]){{1, 0x300}});
    at = 100;
    put(j, ev(TN_EV_CHARGE, TN_CHARGE_BASELINE, 0, BASE));
    if (f != NO_READING)
        put_window(j, TN_CHARGE_CONTEXT, BASE, BASE + CONTEXT);
    put_arena(j, ARENA, 64 * MIB);
    for (unsigned i = 0; i < BLOCKS; i++)
        put_alloc(j, 2, placed, block(i), 4096);
    put_alloc(j, 3, placed, block(200), 4096);
    put(j, ev_free(TN_KIND_DEVICE, block(200)));
    if (f == SPILL_WHILE_LOADING) {
        put_alloc(j, 3, TN_ROUTE_TOO_MANY << TN_ROUTE_CAUSE_SHIFT, NATIVE, 2 * MIB);
        own += 2 * MIB;
    }
    put(j, ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0));
    for (unsigned i = 0; i < 2; i++)
        put_alloc(j, 3, placed, block(300 + i), 4096);
    for (unsigned i = f == TWO_MORE_BLOCKS || f == NO_MARK_AND_TWO_MORE ? 2 : f == ONE_MORE_BLOCK; i < 2; i++)
        put(j, ev_free(TN_KIND_DEVICE, block(300 + i)));
    for (unsigned i = 0; (f == TWO_LESS_BLOCKS || f == NO_MARK) && i < 2; i++)
        put(j, ev_free(TN_KIND_DEVICE, block(i)));
    if (f == DRIVER_ALLOCATION || f == FIRST_USE) {
        put_alloc(j, f == FIRST_USE ? 4 : 3, TN_ROUTE_PLANNED_NATIVE, NATIVE, 2 * MIB);
        put(j, ev_free(TN_KIND_DEVICE, NATIVE));
    }
    if (f == ARENA_WHILE_SERVING) {
        put_arena(j, 2 * ARENA, 2 * MIB);
        own += 2 * MIB;
    }
    if (f == LOST_BYTES)
        own += 6 * MIB; /* more than 0.5 % of 1064 MiB */
    if (f == NAMELESS) {
        put_window(j, TN_CHARGE_SYNC, own, own + 11 * MIB);
        own += 11 * MIB;
    }
    put(j, ev(TN_EV_MARK, TN_MARK_POINT, 1, 0));
    if (f != NO_READING)
        put_reading(j, own);
    if (f == DROPPED)
        jm_header(j)->dropped_events = 7;
    load_journal(j);
}

static tn_soak_verdict verdict_of(const tn_soak_options *options, char **text)
{
    size_t length;
    FILE *out = open_memstream(text, &length);
    tn_soak_verdict verdict = tn_report_soak(report, options, out);
    fclose(out);
    return verdict;
}

static const struct { fault f; tn_soak_verdict verdict; const char *says; } runs[] = {
    {NOTHING, TN_SOAK_HOLDS,
     "Criteria\n"
     "  holds        placed by the plan: 103 calls, 2 of them while serving\n"
     "  holds        driver allocations while serving: 0 (0)\n"
     "  holds        spilled calls: 0 (0)\n"
     "  holds        dropped events: 0 (0)\n"
     "  holds        live blocks: 100 at the flip to serving, 100 when drained (within 1 %)\n"
     "  holds        attribution: 0.00 % of device 0's memory in no line (0.5 % at most), 0.00 % growth without a name (1 % at most)\n\nHolds: "},
    {ONE_MORE_BLOCK, TN_SOAK_HOLDS, "  holds        live blocks: 100 at the flip to serving, 101 when drained"},
    {TWO_MORE_BLOCKS, TN_SOAK_FALLS_SHORT, "  falls short  live blocks: 100 at the flip to serving, 102 when drained"},
    {TWO_LESS_BLOCKS, TN_SOAK_FALLS_SHORT, "  falls short  live blocks: 100 at the flip to serving, 98 when drained"},
    {DRIVER_ALLOCATION, TN_SOAK_FALLS_SHORT, "  falls short  driver allocations while serving: 1 (0)"},
    {FIRST_USE, TN_SOAK_FALLS_SHORT, "  falls short  driver allocations while serving: 1 (0)"},
    {ARENA_WHILE_SERVING, TN_SOAK_FALLS_SHORT, "  falls short  driver allocations while serving: 1 (0)"},
    {SPILL_WHILE_LOADING, TN_SOAK_FALLS_SHORT, "  falls short  spilled calls: 1 (0)"},
    {LOST_BYTES, TN_SOAK_FALLS_SHORT, "  falls short  attribution: 0.56 % of device 0's memory in no line"},
    {NAMELESS, TN_SOAK_FALLS_SHORT, "  falls short  attribution: 0.00 % of device 0's memory in no line (0.5 % at most), 1.02 % growth without a name"},
    {NO_READING, TN_SOAK_INCONCLUSIVE, "  not known    attribution: no reading of a device was taken\n\nInconclusive: "},
    {NOT_PLACED, TN_SOAK_FALLS_SHORT, "  falls short  placed by the plan: 0 calls, 0 of them while serving"},
    {NO_MARK, TN_SOAK_HOLDS, "  holds        live blocks: 100 at the flip to serving, 98 at the end (1 % more at most)"},
    {NO_MARK_AND_TWO_MORE, TN_SOAK_FALLS_SHORT, "  falls short  live blocks: 100 at the flip to serving, 102 at the end (1 % more at most)"},
    {DROPPED, TN_SOAK_INCONCLUSIVE, "Inconclusive: the record is not complete"},
};

START_TEST(each_criterion_falls_short_by_itself)
{
    char *text = NULL;
    size_t short_ones = 0;
    load_run(runs[_i].f);
    tn_soak_verdict verdict = verdict_of(&(tn_soak_options){.top = 10, .planned = 1}, &text);
    ck_assert_msg(strstr(text, runs[_i].says) != NULL, "\"%s\" is not in:\n%s", runs[_i].says, text);
    ck_assert_msg(verdict == runs[_i].verdict, "verdict %d of:\n%s", verdict, text);
    for (const char *c = text; (c = strstr(c, "  falls short  ")); c++)
        short_ones++;
    if (runs[_i].f != NOT_PLACED) /* whose calls are all the driver's */
        ck_assert_msg(short_ones == (runs[_i].verdict == TN_SOAK_FALLS_SHORT), "%zu fall short in:\n%s", short_ones, text);
    free(text);
}
END_TEST

START_TEST(a_mark_of_the_programs_own_may_say_that_it_is_drained)
{
    char *text = NULL;
    regex_t regex;
    ck_assert_int_eq(regcomp(&regex, "^all .* done$", REG_EXTENDED | REG_NOSUB), 0);
    load_run(NO_MARK);
    ck_assert_int_eq(verdict_of(&(tn_soak_options){.planned = 1, .drained_on = &regex}, &text), TN_SOAK_FALLS_SHORT);
    ck_assert_msg(strstr(text, "  falls short  live blocks: 100 at the flip to serving, 98 when drained") != NULL, "%s", text);
    free(text);
    regfree(&regex);
}
END_TEST

START_TEST(own_peak_is_held_against_its_bound)
{
    char *text = NULL;
    load_run(NOTHING);
    ck_assert_int_eq(verdict_of(&(tn_soak_options){.planned = 1, .peak_most = CONTEXT + 64 * MIB}, &text), TN_SOAK_HOLDS);
    ck_assert_msg(strstr(text, "  holds        own peak: 1.0 GiB on device 0 at phases and marks (1.0 GiB at most)\n") != NULL, "%s", text);
    free(text);
    ck_assert_int_eq(verdict_of(&(tn_soak_options){.planned = 1, .peak_most = CONTEXT + 64 * MIB - 1}, &text), TN_SOAK_FALLS_SHORT);
    ck_assert_msg(strstr(text, "  falls short  own peak: ") != NULL, "%s", text);
    free(text);
}
END_TEST

/* What held without a plan does so still, by the rules for that. */
START_TEST(without_a_plan_there_are_no_criteria)
{
    char *text = NULL;
    load_run(FIRST_USE);
    ck_assert_int_eq(verdict_of(&(tn_soak_options){.top = 10}, &text), TN_SOAK_HOLDS);
    ck_assert_ptr_null(strstr(text, "Criteria"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soak_plan");
    TCase *c = tcase_create("soak_plan");
    tcase_add_checked_fixture(c, scratch_make, drop_report);
    tcase_add_loop_test(c, each_criterion_falls_short_by_itself, 0, sizeof runs / sizeof runs[0]);
    tcase_add_test(c, a_mark_of_the_programs_own_may_say_that_it_is_drained);
    tcase_add_test(c, own_peak_is_held_against_its_bound);
    tcase_add_test(c, without_a_plan_there_are_no_criteria);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
