/* What verify asks for, and that a plan with it holds: a run with one thing more than the planned one, the rules that are printed for it, and a plan
 * of the first run with these rules, which holds the second. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/needs.h"
#include "planner/plan_json.h"
#include "planner/rules.h"
#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE

/* ---- runs ---- */

/* Site 1: scratch that grows with requests, several alive. */
static void scratch(program *p, uint8_t kind, uint64_t bytes, unsigned at_once)
{
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned k = 0; k < at_once; k++)
            take(p, kind, 1, address(k), i == 5 ? bytes : 512);
        for (unsigned k = 0; k < at_once; k++)
            give(p, kind, address(k));
    }
}

/* Sites 1 and 2 in turn, or the second while the first is there. */
static void in_turn(program *p, uint8_t kind, int together)
{
    for (unsigned i = 0; i < 4; i++) {
        take(p, kind, 1, address(1), 3 * MIB);
        if (!together)
            give(p, kind, address(1));
        for (uint32_t site = 2; site < 5; site++) /* small ones that lie in the large one's place, one beside the other */
            take(p, kind, site, address(site), 8192);
        for (uint32_t site = 2; site < 5; site++)
            give(p, kind, address(site));
        if (together)
            give(p, kind, address(1));
    }
}

/* Site 1 keeps `count` blocks to the end, site 2 scratch that makes room of them worth while. */
static void keep(program *p, unsigned count)
{
    for (unsigned k = 0; k < count; k++)
        take(p, DEVICE, 1, address(k), 1000 + k % 2 * 1000);
    for (unsigned i = 0; i < 3; i++) {
        take(p, DEVICE, 2, address(30), 4096);
        give(p, DEVICE, address(30));
    }
}

/* Site 1: a pool of blocks of one size, all there at the end. */
static void pool(program *p, uint64_t bytes, unsigned count)
{
    take(p, DEVICE, 2, address(40), 4096);
    give(p, DEVICE, address(40));
    for (unsigned k = 0; k < count; k++)
        take(p, DEVICE, 1, address(k), bytes);
    give(p, DEVICE, address(0));
    take(p, DEVICE, 1, address(0), bytes);
    take(p, DEVICE, 2, address(40), 4096);
}

/* Sites 1 and 2 on a stream: the last to come is the first to go, or not. */
static void stack(program *p, int lifo)
{
    for (unsigned i = 0; i < 5; i++) {
        take_on(p, 1, address(1), 4096, 1);
        take_on(p, 2, address(2), 8192, 1);
        give_on(p, TN_KIND_ASYNC, address(lifo ? 2 : 1), 1);
        if (!lifo)
            take_on(p, 1, address(3), 4096, 1);
        give_on(p, TN_KIND_ASYNC, address(lifo ? 1 : 2), 1);
        if (!lifo)
            give_on(p, TN_KIND_ASYNC, address(3), 1);
    }
}

/* Site 1: staging, site 2 pinned memory that stays. */
static void staging(program *p, unsigned count)
{
    for (unsigned k = 0; k < count; k++)
        take(p, TN_KIND_PINNED, 1, address(k), 5000);
    for (unsigned k = 0; k < count; k++)
        give(p, TN_KIND_PINNED, address(k));
    take(p, TN_KIND_PINNED, 2, address(9), 4096);
    phase(p, TN_PHASE_SERVING);
}

/* Site 1: weights. */
static void model(program *p, uint64_t bytes)
{
    for (unsigned k = 0; k < 2; k++) {
        take(p, DEVICE, 1, address(k), bytes);
        written(p, address(k), TN_WRITE_H2D);
    }
    phase(p, TN_PHASE_SERVING);
}

static void write_run(int which, int more, const char *name)
{
    program p = program_begin(1 + (uint32_t)more);
    switch (which) {
    case 0: scratch(&p, DEVICE, more ? 9000 : 4096, 2); break;
    case 1: scratch(&p, DEVICE, 4096, more ? 5 : 2); break;
    case 2: scratch(&p, TN_KIND_PINNED, more ? 9000 : 4096, more ? 4 : 2); break;
    case 3: in_turn(&p, DEVICE, more); break;
    case 4: in_turn(&p, TN_KIND_PINNED, more); break;
    case 5: keep(&p, more ? 6 : 4); break;
    case 6: pool(&p, 4096, more ? 5 : 3); break;
    case 7: pool(&p, more ? 8192 : 4096, 3); break;
    case 8: stack(&p, !more); break;
    case 9: staging(&p, more ? 3 : 2); break;
    default: model(&p, more ? 9 * MIB : 3 * MIB); break;
    }
    program_end_in(&p, name, "p");
}

static const struct { tn_discipline discipline; const char *rules; } cases[] = {
    {TN_D_PACKED, "room size=9000 key=0000000000001001 # program+0x100\n"},
    {TN_D_PACKED, "room blocks=5 key=0000000000001001 # program+0x100\n"},
    {TN_D_T5B, "room size=9000 blocks=4 key=0000000000001001 # program+0x100\n"},
    /* The large one has more than the three together: they make way. */
    {TN_D_PACKED, "room apart key=0000000000001002 # program+0x200\nroom apart key=0000000000001003 # program+0x300\nroom apart key=0000000000001004 # program+0x400\n"},
    {TN_D_T5B, "room apart key=0000000000001002 # program+0x200\nroom apart key=0000000000001003 # program+0x300\nroom apart key=0000000000001004 # program+0x400\n"},
    {TN_D_T2, "room bytes=3072 key=0000000000001001 # program+0x100\n"},
    {TN_D_T3, "room blocks=5 key=0000000000001001 # program+0x100\n"},
    {TN_D_T3, "room size=8192 key=0000000000001001 # program+0x100\n"},
    {TN_D_T4, "packed key=0000000000001001 # program+0x100\n"},
    {TN_D_T5A, "room bytes=8192 key=0000000000001001 # program+0x100\n"},
    {TN_D_T1, "packed key=0000000000001001 # program+0x100\n"},
};

/* ---- from one run to another ---- */

static tn_discipline rule_of(void *user, const tn_trace *trace, uint32_t site, const char **rule)
{
    tn_plan_row row = {.key = trace->sites[site].key};
    return tn_rules_find(user, &row, rule);
}

static void room_of(void *user, const tn_trace *trace, uint32_t site, tn_room *room)
{
    tn_plan_row row = {.key = trace->sites[site].key};
    tn_rules_room(user, &row, room);
}

/* The rules for what the runs need beyond the plan, for the caller to free. */
static char *rules_for(const tn_plan *plan, const tn_trace *run)
{
    char *text = NULL;
    size_t length = 0;
    tn_needs needs = {0};
    tn_verdict v;
    ck_assert_int_eq(tn_verify(plan, run, NULL, NULL, &v), TN_OK);
    ck_assert_int_eq(tn_needs_join(&needs, plan, &v), TN_OK);
    FILE *out = open_memstream(&text, &length);
    tn_needs_print(&needs, plan, out);
    fclose(out);
    tn_needs_free(&needs);
    tn_verdict_free(&v);
    return text;
}

static tn_plan *plan_by(const tn_trace *t, const char *text)
{
    char message[TN_PLAN_MESSAGE];
    tn_rules *rules;
    ck_assert_msg(tn_rules_parse(text, strlen(text), "rules", &rules, message) == TN_OK, "%s", message);
    tn_plan *plan = plan_with(t, (tn_plan_options){.rule_of = rule_of, .room_of = room_of, .user = rules});
    ck_assert_uint_eq(tn_rules_unused(rules), 0);
    tn_rules_free(rules);
    return plan;
}

static void must_read_back(const tn_plan *plan)
{
    char *text[2] = {NULL, NULL}, message[TN_PLAN_MESSAGE];
    size_t length[2];
    tn_plan *read = NULL;
    for (int i = 0; i < 2; i++) {
        FILE *out = open_memstream(&text[i], &length[i]);
        ck_assert_int_eq(tn_plan_write(i ? read : plan, out), TN_OK);
        fclose(out);
        if (i == 0)
            ck_assert_msg(tn_plan_parse(text[0], length[0], "plan", &read, message) == TN_OK, "%s", message);
    }
    ck_assert_str_eq(text[0], text[1]);
    tn_plan_free(read);
    free(text[0]);
    free(text[1]);
}

START_TEST(a_plan_with_the_rules_that_verify_prints_holds_the_other_run)
{
    write_run(_i, 0, "seen");
    write_run(_i, 1, "other");
    const char *seen_run = "seen", *other_run = "other";
    tn_trace *seen = open_runs(&seen_run, 1), *other_trace = open_runs(&other_run, 1);
    tn_plan *plan = plan_with(seen, (tn_plan_options){0});
    const tn_plan_row *row = tn_plan_row_of(&plan->sections[0], 0x1001, 0);
    ck_assert_msg(row->discipline == cases[_i].discipline, "%s: %s", tn_discipline_name(row->discipline), row->reason);
    char *rules = rules_for(plan, seen);
    ck_assert_str_eq(rules, "");
    free(rules);
    rules = rules_for(plan, other_trace);
    ck_assert_str_eq(rules, cases[_i].rules);
    ck_assert_uint_gt(excesses(plan, other_trace, NULL), 0);
    tn_plan_free(plan);
    char *both = strdup(rules);
    for (int round = 0; round < 2; round++) { /* out of a stack or a region, a site may need slots for more than was seen */
        plan = plan_by(seen, both);
        free(rules);
        rules = rules_for(plan, other_trace);
        if (!rules[0])
            break;
        ck_assert_int_eq(round, 0);
        ck_assert(strncmp(cases[_i].rules, "packed", 6) == 0);
        char *longer = NULL;
        ck_assert_int_ge(asprintf(&longer, "%s%s", both, rules), 0);
        free(both);
        both = longer;
        tn_plan_free(plan);
    }
    ck_assert_uint_eq(excesses(plan, other_trace, NULL), 0);
    ck_assert_uint_eq(excesses(plan, seen, NULL), 0);
    must_read_back(plan);
    free(both);
    free(rules);
    tn_plan_free(plan);
    tn_trace_free(seen);
    tn_trace_free(other_trace);
}
END_TEST

START_TEST(room_stands_in_the_plan_and_is_added_to)
{
    write_run(1, 0, "seen");
    write_run(1, 1, "other");
    const char *seen_run = "seen", *other_run = "other";
    tn_trace *seen = open_runs(&seen_run, 1), *other_trace = open_runs(&other_run, 1);
    tn_plan *plan = plan_by(seen, "room size=20KiB key=1001\nroom apart blocks=3 key=1001\nroom blocks=2 key=1001\n");
    const tn_plan_row *row = &plan->sections[0].rows[0];
    ck_assert(row->room.given && row->room.apart && row->room.size == 20480 && row->room.blocks == 3 && row->room.bytes == 0);
    ck_assert_uint_eq(row->class_count, 1);
    ck_assert_uint_eq(row->classes[0].bytes, 20480);
    ck_assert_uint_eq(row->classes[0].count, 3);
    ck_assert_uint_eq(row->largest, 4096);
    ck_assert_uint_eq(row->headroom, 20480 - 4096);
    must_read_back(plan);
    char *rules = rules_for(plan, other_trace);
    ck_assert_str_eq(rules, "room size=20480 blocks=5 apart key=0000000000001001 # program+0x100\n");
    free(rules);
    tn_plan_free(plan);
    tn_trace_free(seen);
    tn_trace_free(other_trace);
}
END_TEST

START_TEST(rules_of_room_are_read_or_named)
{
    static const struct { const char *text, *says; } bad[] = {
        {"room key=1", "gives no room"}, {"room apart", "names no site"}, {"room size=0 key=1", "no size from 1"}, {"room size=1 size=2 key=1", "size stands twice"},
        {"room size=2TiB key=1", "no size from 1"}, {"room blocks=2049 key=1", "no number from 1 to 2048"}, {"room blocks=x key=1", "no number"},
        {"room much key=1", "none of symbol=, module=, file= and key=, size=, blocks=, bytes= and apart"}, {"T3 apart key=1", "none of symbol="}, {"rooms apart key=1", "T5b and room"}};
    char message[TN_PLAN_MESSAGE], text[64];
    tn_rules *rules;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(tn_rules_parse(bad[i].text, strlen(bad[i].text), "rules", &rules, message), TN_E_FORMAT);
        ck_assert_msg(strncmp(message, "rules:1: ", 9) == 0 && strstr(message, bad[i].says), "%s: %s", bad[i].text, message);
    }
    tn_room room = {.given = 1, .size = 512, .blocks = 2, .bytes = 3, .apart = 1}, none = {0};
    ck_assert_str_eq(tn_room_text(&room, text, sizeof text), "size=512 blocks=2 bytes=3 apart");
    ck_assert_str_eq(tn_room_text(&room, text, 6), "size=");
    ck_assert_str_eq(tn_room_text(&none, text, sizeof text), "");
    tn_room_join(&none, &room);
    ck_assert(none.given && none.size == 512 && none.blocks == 2 && none.bytes == 3 && none.apart);
    /* A line of room decides no discipline. */
    const char *rule = NULL;
    const char two[] = "room apart key=1\nT3 key=1\n";
    tn_plan_row row = {.key = 1};
    ck_assert_int_eq(tn_rules_parse(two, sizeof two - 1, "rules", &rules, message), TN_OK);
    ck_assert_int_eq(tn_rules_find(rules, &row, &rule), TN_D_T3);
    ck_assert_str_eq(rule, "T3 key=1");
    ck_assert_uint_eq(tn_rules_unused(rules), 1);
    ck_assert_str_eq(tn_rules_unused_text(rules, 0), "room apart key=1");
    tn_rules_free(rules);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("needs");
    TCase *c = tcase_create("needs");
    tcase_add_checked_fixture(c, scratch_make, scratch_remove);
    tcase_add_loop_test(c, a_plan_with_the_rules_that_verify_prints_holds_the_other_run, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(c, room_stands_in_the_plan_and_is_added_to);
    tcase_add_test(c, rules_of_room_are_read_or_named);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
