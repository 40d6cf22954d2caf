/* A run that was served by a plan: what each tier served, what spilled and why, and that arenas and what they serve are never counted twice. */
#define _GNU_SOURCE
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_device.h"
#include "report/report_names.h"
#include "report/report_owner.h"
#include "report/report_routing.h"
#include "report/report_serving.h"
#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)
#define QUIET (TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER)
#define BASE (100 * MIB)
#define CONTEXT (500 * MIB)
#define ARENA_T1 (1024 * MIB) /* addresses */
#define ARENA_ASYNC (2048 * MIB)
#define ARENA_PINNED (4096 * MIB)
#define NATIVE (8192 * MIB)

static uint64_t at;

static void put(jm *j, tn_event e) { jm_event(j, 1, at += 10, e); }

static void put_reading(jm *j, uint64_t used)
{
    tn_event e = ev(TN_EV_CHARGE, TN_CHARGE_READING, TN_READ_MARK, used);
    e.aux = used;
    e.aux2 = QUIET;
    put(j, e);
}

static void put_arena(jm *j, uint8_t kind, unsigned tier, uint64_t addr, uint64_t bytes, int went)
{
    tn_event e = ev(TN_EV_ARENA, kind, addr, bytes);
    e.site = TN_SITE_NONE;
    e.aux = bytes;
    e.aux2 = (uint64_t)tier << 32;
    e.result = went;
    put(j, e);
}

static void put_served(jm *j, uint8_t kind, uint32_t site, unsigned route, uint64_t addr, uint64_t bytes)
{
    tn_event e = ev(TN_EV_ALLOC, kind, addr, bytes);
    e.site = site;
    e.aux2 = (uint64_t)route << 32 | (kind == TN_KIND_PINNED ? 3 : 0);
    put(j, e);
}

/* To the driver, `route` saying why. */
static void put_native(jm *j, uint8_t kind, uint32_t site, unsigned route, uint64_t addr, uint64_t bytes, int result)
{
    tn_event e = ev_alloc(kind, result ? 0 : addr, bytes);
    e.site = site;
    e.aux2 = (uint64_t)route << 32;
    e.result = result;
    put(j, e);
}

static unsigned spill(unsigned cause) { return cause << TN_ROUTE_CAUSE_SHIFT; }

static jm *begin(uint32_t pid)
{
    jm *j = plain_journal(pid);
    for (uint32_t site = 3; site < 8; site++)
        jm_site(j, site, 0x3333 + site, 1, (const uint64_t[][2]){{1, 0x100 * site}});
    return j;
}

static jm *with_context(uint32_t pid)
{
    jm *j = begin(pid);
    at = 100;
    put(j, ev(TN_EV_CHARGE, TN_CHARGE_BASELINE, 0, BASE));
    tn_event context = ev(TN_EV_CHARGE, TN_CHARGE_CONTEXT, JM_START + at, BASE);
    context.aux = BASE + CONTEXT;
    context.aux2 = QUIET | TN_CHARGE_ALONE;
    put(j, context);
    return j;
}

/* One of everything. Own use at its end: the context, arenas of 64 and 32 MiB, native blocks of 2, 4, 6 and 8 MiB. */
static jm *mixed(void)
{
    jm *j = with_context(10);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, ARENA_T1, 64 * MIB, 0);
    put_arena(j, TN_KIND_ASYNC, TN_ROUTE_PACKED, ARENA_ASYNC, 32 * MIB, 0);
    put_arena(j, TN_KIND_PINNED, TN_ROUTE_T5B, ARENA_PINNED, 4 * MIB, 0);
    put_served(j, TN_KIND_DEVICE, 2, TN_ROUTE_T1, ARENA_T1, 10 * MIB); /* where the arena begins, too */
    put_served(j, TN_KIND_DEVICE, 2, TN_ROUTE_T1, ARENA_T1 + 10 * MIB, 20 * MIB);
    put(j, ev_free(TN_KIND_DEVICE, ARENA_T1));
    put_served(j, TN_KIND_ASYNC, 3, TN_ROUTE_PACKED | TN_ROUTE_WAITED, ARENA_ASYNC + MIB, 5 * MIB);
    put_served(j, TN_KIND_PINNED, 4, TN_ROUTE_T5B, ARENA_PINNED, MIB);
    put_native(j, TN_KIND_DEVICE, 2, spill(TN_ROUTE_TOO_MANY), NATIVE, 2 * MIB, 0);
    put_native(j, TN_KIND_DEVICE, 5, spill(TN_ROUTE_NO_ROOM), 0, 900 * MIB, 2);
    put_native(j, TN_KIND_DEVICE, 6, TN_ROUTE_UNPLANNED, NATIVE + 64 * MIB, 4 * MIB, 0);
    put_native(j, TN_KIND_DEVICE, 6, TN_ROUTE_UNPLANNED, 0, 900 * MIB, 2); /* refused: no call that took anything */
    put_native(j, TN_KIND_DEVICE, 7, TN_ROUTE_PLANNED_NATIVE, NATIVE + 128 * MIB, 6 * MIB, 0);
    put_native(j, TN_KIND_VMM_HANDLE, 7, 0, 77, 8 * MIB, 0);
    /* The pool has reserved what its arena takes. */
    tn_event pool = ev(TN_EV_CHARGE, TN_CHARGE_POOL, 0xb001, 32 * MIB);
    pool.aux = 32 * MIB;
    put(j, pool);
    put_reading(j, BASE + CONTEXT + 96 * MIB + 20 * MIB);
    return j;
}

static const tn_row *row_of(uint64_t key, uint8_t kind)
{
    for (size_t i = 0; i < report->row_count; i++)
        if (report->sites[report->rows[i].site].key == key && report->rows[i].kind == kind)
            return &report->rows[i];
    ck_abort_msg("there is no row of %llx", (unsigned long long)key);
}

static const char *words_of(uint64_t key, uint8_t kind)
{
    static char words[64];
    return tn_routing_words(report, (uint32_t)(row_of(key, kind) - report->rows), words);
}

START_TEST(each_call_went_one_way)
{
    load_journal(mixed());
    const tn_routing *all = report->routing;
    ck_assert_int_eq(all->planned, 1);
    ck_assert_uint_eq(all->total.served, 4);
    ck_assert_uint_eq(all->total.waited, 1);
    ck_assert_uint_eq(all->total.spilled, 2);
    ck_assert_uint_eq(all->total.causes[TN_ROUTE_TOO_MANY], 1);
    ck_assert_uint_eq(all->total.causes[TN_ROUTE_NO_ROOM], 1);
    ck_assert_uint_eq(all->total.unplanned, 1);
    ck_assert_uint_eq(all->total.native, 2); /* the handle, of a kind that no plan places, too */
    ck_assert_uint_eq(all->planned_sites, 4); /* 2, 3, 4, and 5, which only spilled */
    ck_assert_str_eq(words_of(0x2222, TN_KIND_DEVICE), "T1");
    ck_assert_str_eq(words_of(0x3336, TN_KIND_ASYNC), "packed");
    ck_assert_str_eq(words_of(0x3337, TN_KIND_PINNED), "T5b");
    ck_assert_str_eq(words_of(0x3338, TN_KIND_DEVICE), "spilled");
    ck_assert_str_eq(words_of(0x3339, TN_KIND_DEVICE), "unplanned");
    ck_assert_str_eq(words_of(0x333a, TN_KIND_DEVICE), "native");
    ck_assert_uint_eq(tn_routing_of(report, (uint32_t)(row_of(0x2222, TN_KIND_DEVICE) - report->rows))->spilled, 1);
}
END_TEST

START_TEST(a_tier_knows_what_it_served_and_from_how_much)
{
    load_journal(mixed());
    const tn_routing_tier *t1 = &report->routing->places[1][TN_ROUTE_T1], *packed = &report->routing->places[1][TN_ROUTE_PACKED];
    const tn_routing_tier *pinned = &report->routing->places[TN_PLACE_HOST][TN_ROUTE_T5B];
    ck_assert_uint_eq(t1->arena_peak, 64 * MIB);
    ck_assert_uint_eq(t1->capacity, 64 * MIB);
    ck_assert_uint_eq(t1->peak, 30 * MIB);
    ck_assert_uint_eq(t1->live, 20 * MIB);
    ck_assert_uint_eq(t1->served, 2);
    ck_assert_uint_eq(packed->arena_peak, 32 * MIB);
    ck_assert_uint_eq(packed->peak, 5 * MIB);
    ck_assert_uint_eq(pinned->arena_peak, 4 * MIB);
    ck_assert_uint_eq(pinned->live, MIB);
    ck_assert(!tn_routing_tier_used(&report->routing->places[1][TN_ROUTE_T2]));
}
END_TEST

/* Requests count as before; of backed bytes a served block has none, and all lines still add up. */
START_TEST(arenas_and_what_they_serve_are_counted_once)
{
    load_journal(mixed());
    const tn_place *p = device(0);
    ck_assert_uint_eq(row_of(0x2222, TN_KIND_DEVICE)->stat.peak_requested, 30 * MIB);
    ck_assert_uint_eq(row_of(0x2222, TN_KIND_DEVICE)->stat.live_requested, 22 * MIB);
    ck_assert_uint_eq(row_of(0x2222, TN_KIND_DEVICE)->stat.live_backed, 2 * MIB);
    CHECK_CALLS(&row_of(0x2222, TN_KIND_DEVICE)->stat, 3, 1, 0);
    const tn_row *arena = row_of(0xa0 + TN_ROUTE_T1, TN_KIND_DEVICE);
    ck_assert_uint_eq(arena->stat.live_backed, 64 * MIB);
    ck_assert_uint_eq(arena->stat.live_requested, 0);
    ck_assert_str_eq(tn_owner_of_site(report, arena->site).name, TN_OWNER_ARENAS);
    ck_assert_uint_eq(p->total.live_requested, (22 + 5 + 4 + 6 + 8) * MIB);
    ck_assert_uint_eq(p->total.live_backed, (64 + 32 + 2 + 4 + 6 + 8) * MIB);
    uint64_t rows = 0, owners = 0, kinds = 0;
    for (size_t i = 0; i < report->row_count; i++)
        rows += report->rows[i].place == 1 ? report->rows[i].stat.live_backed : 0;
    for (size_t i = 0; i < report->owner_count; i++)
        owners += p->owners[i].live_backed;
    for (unsigned k = 0; k < TN_KIND_COUNT; k++)
        kinds += p->kinds[k].live_backed;
    ck_assert_uint_eq(rows, p->total.live_backed);
    ck_assert_uint_eq(owners, p->total.live_backed);
    ck_assert_uint_eq(kinds, p->total.live_backed);
    ck_assert_uint_eq(report->processes[0].frees_unknown + report->processes[0].replaced, 0);
}
END_TEST

START_TEST(the_device_accounts_for_arenas_and_not_for_what_is_in_them)
{
    load_journal(mixed());
    const tn_device_account *a = tn_device_account_of(report, 1);
    int64_t lines = 0, arenas = 0;
    ck_assert_int_eq(a->last.own_used, (int64_t)(CONTEXT + 116 * MIB));
    ck_assert_int_eq(a->last.unattributed, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_ARENAS], (int64_t)(96 * MIB));
    ck_assert_int_eq(a->last.kinds[TN_LINE_BLOCKS], (int64_t)(20 * MIB));
    ck_assert_int_eq(a->last.kinds[TN_LINE_POOL_SLACK], 0);
    for (size_t i = 0; i < a->line_count; i++) {
        lines += tn_line_bytes(&a->lines[i]);
        if (a->lines[i].kind != TN_LINE_ARENAS)
            continue;
        ck_assert_uint_ne(report->sites[a->lines[i].site].tier, 0);
        arenas++;
    }
    ck_assert_int_eq(arenas, 2); /* a line a tier */
    ck_assert_int_eq(lines, a->last.accounted);
}
END_TEST

START_TEST(an_arena_that_goes_back_is_gone_and_its_most_is_kept)
{
    jm *j = with_context(10);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, ARENA_T1, 64 * MIB, 0);
    put_served(j, TN_KIND_DEVICE, 2, TN_ROUTE_T1, ARENA_T1, 10 * MIB);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, ARENA_ASYNC, 16 * MIB, 0);
    put(j, ev_free(TN_KIND_DEVICE, ARENA_T1));
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, ARENA_T1, 64 * MIB, 1);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, 7 * MIB, 64 * MIB, 1); /* of which nothing is known */
    put_reading(j, BASE + CONTEXT + 16 * MIB);
    load_journal(j);
    const tn_routing_tier *t1 = &report->routing->places[1][TN_ROUTE_T1];
    ck_assert_uint_eq(t1->arena_peak, 80 * MIB);
    ck_assert_uint_eq(t1->capacity, 16 * MIB);
    ck_assert_uint_eq(t1->live, 0);
    CHECK_CALLS(&row_of(0xa0 + TN_ROUTE_T1, TN_KIND_DEVICE)->stat, 2, 1, 0);
    ck_assert_int_eq(tn_device_account_of(report, 1)->last.unattributed, 0);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

START_TEST(a_reset_ends_what_no_pool_holds)
{
    jm *j = with_context(10);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T2, ARENA_T1, 64 * MIB, 0);
    put_arena(j, TN_KIND_ASYNC, TN_ROUTE_PACKED, ARENA_ASYNC, 32 * MIB, 0);
    put_served(j, TN_KIND_DEVICE, 2, TN_ROUTE_T2, ARENA_T1, 10 * MIB);
    put_served(j, TN_KIND_ASYNC, 3, TN_ROUTE_PACKED, ARENA_ASYNC, 5 * MIB);
    put(j, ev(TN_EV_CONTEXT, TN_CTX_RESET, 0, 0));
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T2, ARENA_T1, 64 * MIB, 1); /* told of after it */
    load_journal(j);
    ck_assert_uint_eq(report->routing->places[1][TN_ROUTE_T2].capacity, 0);
    ck_assert_uint_eq(report->routing->places[1][TN_ROUTE_T2].live, 0);
    ck_assert_uint_eq(report->routing->places[1][TN_ROUTE_PACKED].capacity, 32 * MIB);
    ck_assert_uint_eq(report->routing->places[1][TN_ROUTE_PACKED].live, 5 * MIB);
    ck_assert_uint_eq(device(0)->ended_with_context, 1); /* the program's block; the arena was none of its own */
}
END_TEST

START_TEST(what_an_ended_process_held_is_still_live)
{
    jm *j = mixed();
    jm_header(j)->flags |= TN_HF_ENDED;
    load_journal(j);
    const tn_routing_tier *t1 = &report->routing->places[1][TN_ROUTE_T1];
    ck_assert_uint_eq(t1->live, 20 * MIB);
    ck_assert_uint_eq(t1->capacity, 64 * MIB);
    ck_assert_uint_eq(t1->left, 0);
    ck_assert_uint_eq(device(0)->total.live_backed, 116 * MIB);
}
END_TEST

START_TEST(a_process_without_a_plan_has_no_routes)
{
    put_journal(mixed(), "one");
    jm *j = with_context(11);
    put_native(j, TN_KIND_DEVICE, 7, 0, NATIVE, MIB, 0);
    put_native(j, TN_KIND_DEVICE, 7, 0, NATIVE + 64 * MIB, MIB, 0);
    put_journal(j, "two");
    report = load_scratch();
    ck_assert_uint_eq(report->routing->total.native, 2);
    ck_assert_uint_eq(report->routing->total.served, 4);
}
END_TEST

START_TEST(a_record_has_no_routing)
{
    jm *j = with_context(10);
    put_native(j, TN_KIND_DEVICE, 2, 0, NATIVE, MIB, 0);
    load_journal(j);
    char words[64];
    ck_assert_int_eq(report->routing->planned, 0);
    ck_assert_uint_eq(report->routing->total.native, 0);
    ck_assert_ptr_null(tn_routing_of(report, 0));
    ck_assert_str_eq(tn_routing_words(report, 0, words), "");
}
END_TEST

START_TEST(while_serving_a_served_call_is_no_driver_allocation)
{
    jm *j = with_context(10);
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_PACKED, ARENA_T1, 64 * MIB, 0);
    put_served(j, TN_KIND_DEVICE, 3, TN_ROUTE_PACKED, ARENA_T1, MIB);
    put(j, ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0));
    put_served(j, TN_KIND_DEVICE, 2, TN_ROUTE_PACKED, ARENA_T1 + MIB, MIB);
    put_served(j, TN_KIND_DEVICE, 3, TN_ROUTE_PACKED, ARENA_T1 + 2 * MIB, MIB);
    put_native(j, TN_KIND_DEVICE, 3, spill(TN_ROUTE_TOO_MANY), NATIVE, MIB, 0); /* a spill is one, and no first use */
    put_arena(j, TN_KIND_DEVICE, TN_ROUTE_T1, ARENA_ASYNC, 64 * MIB, 0); /* so is memory for a tier */
    load_journal(j);
    const tn_serving *s = report->serving;
    ck_assert_uint_eq(s->total.served_allocations, 2);
    ck_assert_uint_eq(s->total.driver_allocations, 2);
    ck_assert_uint_eq(s->total.first_uses, 0);
    const tn_serving_counts *site = &s->sites[row_of(0x3336, TN_KIND_DEVICE)->site];
    ck_assert_uint_eq(site->served_allocations, 1);
    ck_assert_uint_eq(site->driver_allocations, 1);
    ck_assert_uint_eq(s->sites[tn_tier_site(report, TN_ROUTE_T1)].driver_allocations, 1);
}
END_TEST

static char *print(int as_json)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_int_eq(as_json ? tn_report_json(report, out) : tn_report_text(report, &(tn_report_options){.top = 20}, out), 0);
    fclose(out);
    return text;
}

START_TEST(the_text_says_where_requests_went)
{
    static const char *const wanted[] = {
        "Routing by the plan\n  4 calls served, of 4 planned sites; 2 spilled, 1 unplanned, 2 left to the driver\n",
        "  spilled: more alive than planned, 1\n", "  spilled: no room in the tier, 1\n", "  1 after a wait, 250.00 per 1000 served\n",
        "  device 0   T1           64.0 MiB     30.0 MiB     20.0 MiB            2\n", "  host       T5b           4.0 MiB      1.0 MiB      1.0 MiB            1\n",
        "  sites that spilled\n", "  sites that the plan does not name\n", "3 allocs, 1 free; T1, 1 spilled\n", "; unplanned\n", "memory that the tier serves from", "00000000000000a1  device 0, device, tier T1\n",
        "  tenure arenas ",
    };
    load_journal(mixed());
    char *text = print(0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        ck_assert_msg(strstr(text, wanted[i]) != NULL, "\"%s\" is not in:\n%s", wanted[i], text);
    free(text);
}
END_TEST

START_TEST(the_document_says_the_same)
{
    load_journal(mixed());
    char *text = print(1);
    json_t *root = json_loads(text, 0, NULL), *first = json_array_get(json_object_get(root, "devices"), 0);
    const char *tier;
    int a, b, c, d, e;
    ck_assert_int_eq(json_unpack(root, "{s:{s:i,s:i,s:i,s:i,s:{s:i}}}", "routing", "planned_sites", &a, "served_calls", &b, "native_calls", &c, "unplanned_calls", &d,
                                 "spilled_by_cause", "no_room", &e), 0);
    ck_assert(a == 4 && b == 4 && c == 2 && d == 1 && e == 1);
    ck_assert_int_eq(json_unpack(first, "{s:{s:{s:i,s:i,s:i,s:i,s:i}}}", "tiers", "T1", "capacity_bytes", &a, "held_bytes", &b, "live_bytes", &c, "peak_bytes", &d,
                                 "served_calls", &e), 0);
    ck_assert(a == (int)(64 * MIB) && b == a && c == (int)(20 * MIB) && d == (int)(30 * MIB) && e == 2);
    ck_assert_uint_eq(json_object_size(json_object_get(first, "tiers")), 2);
    ck_assert_int_eq(json_unpack(root, "{s:{s:{s:{s:i}}}}", "host", "tiers", "T5b", "peak_bytes", &a), 0);
    ck_assert_int_eq(a, (int)MIB);
    size_t i, routed = 0;
    json_t *site;
    json_array_foreach(json_object_get(root, "sites"), i, site) {
        if (json_unpack(site, "{s:{s:s}}", "routing", "tier", &tier) == 0)
            routed++;
        else
            ck_assert_str_eq(json_string_value(json_object_get(site, "owner")), TN_OWNER_ARENAS);
    }
    ck_assert_uint_eq(routed, 7);
    json_decref(root);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("routing");
    TCase *c = tcase_create("routing");
    tcase_add_checked_fixture(c, scratch_make, drop_report);
    tcase_add_test(c, each_call_went_one_way);
    tcase_add_test(c, a_tier_knows_what_it_served_and_from_how_much);
    tcase_add_test(c, arenas_and_what_they_serve_are_counted_once);
    tcase_add_test(c, the_device_accounts_for_arenas_and_not_for_what_is_in_them);
    tcase_add_test(c, an_arena_that_goes_back_is_gone_and_its_most_is_kept);
    tcase_add_test(c, a_reset_ends_what_no_pool_holds);
    tcase_add_test(c, what_an_ended_process_held_is_still_live);
    tcase_add_test(c, a_process_without_a_plan_has_no_routes);
    tcase_add_test(c, a_record_has_no_routing);
    tcase_add_test(c, while_serving_a_served_call_is_no_driver_allocation);
    tcase_add_test(c, the_text_says_where_requests_went);
    tcase_add_test(c, the_document_says_the_same);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
