/* Phases, marks, their deltas and what counts while serving, from hand-made journals. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/control_client.h"
#include "report/report_serving.h"
#include "report/report_steps.h"
#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)

static tn_event phase(uint8_t to)
{
    return ev(TN_EV_PHASE, to, 0, 0);
}

static tn_event reading(uint64_t cause, uint64_t used)
{
    tn_event e = ev(TN_EV_CHARGE, TN_CHARGE_READING, cause, used);
    e.device = 0;
    e.aux = used;
    return e;
}

static tn_event at_site(tn_event e, uint32_t site)
{
    e.site = site;
    return e;
}

static tn_event refused(tn_event e)
{
    e.result = 2;
    return e;
}

/* The n-th step of `type` of a process. */
static const tn_step *step(uint32_t process, tn_step_type type, unsigned n)
{
    for (size_t i = 0; i < report->steps->count; i++) {
        const tn_step *s = &report->steps->steps[i];
        if (s->process == process && s->type == type && n-- == 0)
            return s;
    }
    ck_abort_msg("no such step");
    return NULL;
}

static uint64_t live(const tn_step *s, uint32_t place)
{
    const tn_step_place *p = tn_step_place_of(s, place);
    return p ? p->live : 0;
}

/* Two sites; 10 MiB while loading, 3 while planning, what serving takes goes again. */
static jm *small_run(void)
{
    static const uint64_t frames[][2] = {{1, 0x100}};
    jm *j = plain_journal(7);
    jm_site(j, 3, 0x3333, 1, frames);
    jm_event(j, 1, 100, ev_alloc(TN_KIND_DEVICE, 0x100000, 10 * MIB));
    jm_event(j, 1, 200, phase(TN_PHASE_PLANNING));
    jm_event(j, 1, 210, reading(TN_READ_PHASE, 500 * MIB));
    jm_event(j, 1, 300, at_site(ev_alloc(TN_KIND_DEVICE, 0x900000, 3 * MIB), 3));
    jm_event(j, 1, 310, ev_alloc(TN_KIND_PINNED, 0x5000, MIB));
    jm_event(j, 1, 400, phase(TN_PHASE_SERVING));
    jm_event(j, 1, 410, reading(TN_READ_PHASE, 503 * MIB));
    return j;
}

START_TEST(deltas_of_phases)
{
    jm *j = small_run();
    jm_event(j, 1, 500, ev_free(TN_KIND_DEVICE, 0x900000));
    load_journal(j);
    const tn_step *planning = step(0, TN_STEP_PHASE, 0), *serving = step(0, TN_STEP_PHASE, 1), *end = step(0, TN_STEP_END, 0);
    ck_assert_uint_eq(planning->phase, TN_PHASE_PLANNING);
    ck_assert_uint_eq(planning->at_ns, 200);
    ck_assert_uint_eq(live(planning, 1), 10 * MIB);
    ck_assert(planning->places[1].has_used);
    ck_assert_uint_eq(planning->places[1].used, 500 * MIB);
    ck_assert_uint_eq(live(serving, 1), 13 * MIB);
    ck_assert_uint_eq(live(serving, TN_PLACE_HOST), MIB);
    ck_assert_uint_eq(serving->places[1].used, 503 * MIB);
    ck_assert_uint_eq(live(end, 1), 10 * MIB);
    ck_assert(!end->places[1].has_used);
    ck_assert_uint_eq(end->change_count, 1);
    ck_assert_int_eq(end->changes[0].backed, -3 * (int64_t)MIB);
    ck_assert_int_eq(end->changes[0].blocks, -1);
}
END_TEST

START_TEST(one_reading_for_steps_of_one_moment)
{
    jm *j = plain_journal(7);
    jm_event(j, 1, 50, reading(TN_READ_EVENTS, MIB)); /* nobody's step asked for it */
    jm_event(j, 1, 100, ev(TN_EV_MARK, TN_MARK_POINT, 9, 0));
    jm_event(j, 1, 150, ev_alloc(TN_KIND_DEVICE, 0x100000, 10 * MIB));
    jm_event(j, 1, 200, ev(TN_EV_MARK, TN_MARK_POINT, 9, 0));
    jm_event(j, 1, 201, phase(TN_PHASE_SERVING));
    jm_event(j, 1, 300, reading(TN_READ_PHASE, 600 * MIB));
    load_journal(j);
    ck_assert_uint_eq(step(0, TN_STEP_PHASE, 0)->places[1].used, 600 * MIB);
    ck_assert_uint_eq(step(0, TN_STEP_MARK, 1)->places[1].used, 600 * MIB);
    const tn_step *first = step(0, TN_STEP_MARK, 0);
    ck_assert(first->place_count < 2 || !first->places[1].has_used); /* 10 MiB less were there */
}
END_TEST

START_TEST(swaps_have_numbers)
{
    jm *j = plain_journal(7);
    static const uint8_t order[] = {TN_PHASE_SERVING, TN_PHASE_PLANNING, TN_PHASE_SERVING, TN_PHASE_PLANNING, TN_PHASE_SERVING};
    static const uint64_t swaps[] = {0, 1, 1, 2, 2};
    for (unsigned i = 0; i < 5; i++)
        jm_event(j, 1, 100 * (i + 1), phase(order[i]));
    load_journal(j);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(step(0, TN_STEP_PHASE, i)->swap, swaps[i]);
}
END_TEST

START_TEST(first_use_repetition_and_retry)
{
    jm *j = small_run();
    jm_event(j, 1, 500, ev_alloc(TN_KIND_DEVICE, 0x1000000, MIB));                     /* site 2: used while loading */
    jm_event(j, 1, 510, refused(at_site(ev_alloc(TN_KIND_DEVICE, 0, 800 * MIB), 3)));  /* site 3 again: refused, */
    jm_event(j, 1, 520, at_site(ev_alloc(TN_KIND_DEVICE, 0x2000000, 400 * MIB), 2));   /* and tried with less elsewhere */
    jm_event(j, 1, 530, ev_free(TN_KIND_DEVICE, 0x1000000));
    jm_event(j, 2, 540, at_site(ev_alloc(TN_KIND_ASYNC, 0x3000000, MIB), TN_SITE_NO_STACK)); /* first use */
    jm_event(j, 2, 550, at_site(ev_alloc(TN_KIND_GRAPH, 0x4000000, MIB), 2));
    jm_event(j, 1, 600, phase(TN_PHASE_PLANNING));
    jm_event(j, 1, 610, ev_alloc(TN_KIND_DEVICE, 0x5000000, MIB)); /* in a swap: no serving */
    load_journal(j);
    const tn_serving_counts *c = &report->serving->total;
    ck_assert_uint_eq(c->driver_allocations, 3);
    ck_assert_uint_eq(c->first_uses, 1);
    ck_assert_uint_eq(c->retries, 1);
    ck_assert_uint_eq(c->refused, 1);
    ck_assert_uint_eq(c->requested_bytes, 402 * MIB);
    ck_assert_uint_eq(report->serving->processes_served, 1);
    ck_assert(!report->serving->charges_read);
    uint32_t *order;
    size_t count;
    ck_assert_int_eq(tn_serving_order(report, &order, &count), TN_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(tn_serving_repeated(&report->serving->sites[order[2]]), 0);
    free(order);
}
END_TEST

START_TEST(growth_is_counted_where_it_was_read)
{
    jm *j = small_run();
    tn_event e = reading(0, 100);
    e.kind = TN_CHARGE_LAUNCH;
    e.aux = 200;
    e.aux2 = TN_CHARGE_ALONE;
    jm_event(j, 1, 350, e); /* while planning */
    jm_event(j, 1, 500, at_site(e, 3));
    e.kind = TN_CHARGE_GRAPH;
    jm_event(j, 1, 510, e);
    e.kind = TN_CHARGE_POOL;
    for (uint64_t n = 1; n < 4; n++) { /* one of them before the flip */
        e.addr = 0x77;
        e.bytes = n * 32 * MIB;
        jm_event(j, 1, 385 + 10 * n + (n > 1) * 100, e);
    }
    load_journal(j);
    ck_assert(report->serving->charges_read);
    ck_assert_uint_eq(report->serving->total.charge_growths, 1);
    ck_assert_uint_eq(report->serving->total.graph_growths, 1);
    ck_assert_uint_eq(report->serving->total.pool_growths, 2);
}
END_TEST

START_TEST(sums_by_site_and_owner)
{
    load_journal(small_run());
    tn_step_sum sum;
    tn_step_line *lines;
    size_t count;
    ck_assert_int_eq(tn_step_sum_begin(&sum, report), TN_OK);
    for (size_t i = 0; i < report->steps->count; i++)
        tn_step_sum_add(&sum, &report->steps->steps[i]);
    ck_assert_int_eq(tn_step_lines(report, &sum, 0, 0, &lines, &count), TN_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(lines[0].backed, 10 * (int64_t)MIB);
    ck_assert_uint_eq(report->sites[lines[0].site].key, 0x2222);
    ck_assert_int_eq(lines[1].backed, 3 * (int64_t)MIB);
    free(lines);
    ck_assert_int_eq(tn_step_lines(report, &sum, 0, 1, &lines, &count), TN_OK); /* pinned memory too, of the first site */
    ck_assert_int_eq(lines[0].backed, 11 * (int64_t)MIB);
    free(lines);
    int64_t all = 0;
    ck_assert_int_eq(tn_step_lines(report, &sum, 1, 0, &lines, &count), TN_OK);
    for (size_t i = 0; i < count; i++)
        all += lines[i].backed;
    ck_assert_int_eq(all, 13 * (int64_t)MIB); /* a table by owner and one by site add up to the same */
    free(lines);
    tn_step_sum_clear(&sum);
    ck_assert_int_eq(tn_step_lines(report, &sum, 0, 1, &lines, &count), TN_OK);
    ck_assert_uint_eq(count, 0);
    free(lines);
    tn_step_sum_free(&sum);
}
END_TEST

/* A control block as a process leaves it that was killed before it took two commands. */
static void put_block(const char *name, uint64_t random_id)
{
    static tn_control c;
    memcpy(c.magic, TN_CONTROL_MAGIC, 8);
    c.version = TN_CONTROL_VERSION;
    c.slots = TN_CONTROL_SLOTS;
    c.random_id = random_id;
    c.posted = 3;
    c.taken = 1;
    c.slot[1] = (tn_control_slot){.tsc = JM_START + 900, .kind = TN_COMMAND_PHASE, .value = TN_PHASE_SERVING, .cause = TN_CAUSE_CTL};
    c.slot[2] = (tn_control_slot){.tsc = JM_START + 950, .kind = TN_COMMAND_MARK, .cause = TN_CAUSE_CTL, .text = "too late"};
    int fd = open(scratch_file(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, &c, sizeof(c)), sizeof(c));
    close(fd);
}

START_TEST(commands_that_were_never_taken)
{
    jm *j = plain_journal(7);
    jm_header(j)->random_id = 0xabcd;
    jm_event(j, 1, 100, ev_alloc(TN_KIND_DEVICE, 0x100000, 10 * MIB));
    put_block("a.tnc", 0xabcd);
    put_journal(j, "a");
    report = load_scratch();
    const tn_step *serving = step(0, TN_STEP_PHASE, 0), *mark = step(0, TN_STEP_MARK, 0);
    ck_assert_uint_eq(serving->at_ns, 900);
    ck_assert(serving->untaken);
    ck_assert_uint_eq(live(serving, 1), 10 * MIB);
    ck_assert_str_eq(mark->name, "too late");
    ck_assert_uint_eq(mark->at_ns, 950);
    ck_assert_uint_eq(report->serving->processes_served, 1); /* and made no call in it: that is known */
}
END_TEST

START_TEST(another_journals_block_is_none)
{
    put_block("a.tnc", 0x1234);
    load_journal(small_run());
    for (size_t i = 0; i < report->steps->count; i++)
        ck_assert(!report->steps->steps[i].untaken);
}
END_TEST

START_TEST(processes_have_their_own)
{
    jm *j = plain_journal(8);
    jm_event(j, 1, 100, ev_alloc(TN_KIND_DEVICE, 0x100000, 20 * MIB));
    jm_event(j, 1, 350, phase(TN_PHASE_SERVING));
    put_journal(small_run(), "a");
    put_journal(j, "b");
    report = load_scratch();
    ck_assert_uint_eq(live(step(0, TN_STEP_PHASE, 1), 1), 13 * MIB);
    ck_assert_uint_eq(live(step(1, TN_STEP_PHASE, 0), 1), 20 * MIB);
    ck_assert_uint_eq(report->serving->processes_served, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phases");
    TCase *cases = tcase_create("phases");
    tcase_add_checked_fixture(cases, scratch_make, drop_report);
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, deltas_of_phases);
    tcase_add_test(cases, one_reading_for_steps_of_one_moment);
    tcase_add_test(cases, swaps_have_numbers);
    tcase_add_test(cases, first_use_repetition_and_retry);
    tcase_add_test(cases, growth_is_counted_where_it_was_read);
    tcase_add_test(cases, sums_by_site_and_owner);
    tcase_add_test(cases, commands_that_were_never_taken);
    tcase_add_test(cases, another_journals_block_is_none);
    tcase_add_test(cases, processes_have_their_own);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
