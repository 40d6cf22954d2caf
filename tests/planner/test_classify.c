/* Why a site stays with the driver, what a rule may and may not decide, and when callers in Python stand apart. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"
#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE

static program p;
static tn_trace *t;
static tn_plan *plan;

static void begin(void)
{
    scratch_make();
    p = program_begin(1);
}

static void end(void)
{
    tn_plan_free(plan);
    tn_trace_free(t);
    scratch_remove();
}

static void read_plan(tn_plan_options options)
{
    program_end(&p, "one");
    t = open_scratch();
    plan = plan_with(t, options);
    ck_assert_uint_eq(plan->section_count, 1);
}

static const tn_plan_row *row_of(uint32_t site)
{
    const tn_plan_row *row = tn_plan_row_of(&plan->sections[0], 0x1000 + site, 0);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_ne(row->runner_up, row->discipline == TN_D_NATIVE ? TN_D_COUNT : row->discipline);
    return row;
}

static void expect_native(uint32_t site, const char *reason)
{
    const tn_plan_row *row = row_of(site);
    ck_assert_int_eq(row->discipline, TN_D_NATIVE);
    ck_assert_msg(strstr(row->reason, reason) != NULL, "site %u: %s", site, row->reason);
    ck_assert_ptr_null(row->rule);
}

START_TEST(a_site_that_stays_with_the_driver_says_why)
{
    static const struct { uint8_t kind; const char *reason; } kinds[] = {
        {TN_KIND_MANAGED, "managed memory"}, {TN_KIND_REGISTERED, "the program's own"}, {TN_KIND_ARRAY, "an array's layout"},
        {TN_KIND_MIPMAP, "an array's layout"}, {TN_KIND_GRAPH, "belongs to a graph"},
        {TN_KIND_POOL, "made the pool"}, {TN_KIND_PITCH, "the pitch"}};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    for (uint32_t i = 0; i < KINDS; i++)
        take(&p, kinds[i].kind, 1 + i, address(i), 4096);
    take(&p, DEVICE, 20, address(20), 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = address(20)});
    take(&p, DEVICE, 21, address(21), 4096);
    other(&p, (tn_event){.type = TN_EV_ATTRIBUTE, .addr = address(21), .bytes = 6, .aux = 1});
    take(&p, DEVICE, 22, address(22), 4096);
    take(&p, TN_KIND_PINNED, 22, address(23), 4096);
    for (unsigned flags = 1; flags < 3; flags++)
        other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_PINNED, .site = TN_SITE_FIRST + 24, .addr = address(23 + flags), .bytes = 4096, .aux2 = flags});
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_BEGIN, .stream = 1});
    take(&p, DEVICE, 25, address(27), 4096);
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_END, .stream = 1});
    jm_site(p.journal, TN_SITE_FIRST + 70, 0x1000 + 70, 1, (const uint64_t[][2]){{1, 0x100 * 20}}); /* the caller that exported, by another way */
    take(&p, DEVICE, 70, address(28), 4096);
    take(&p, DEVICE, 26, address(29), 4096);
    read_plan((tn_plan_options){0});
    for (uint32_t i = 0; i < KINDS; i++)
        expect_native(1 + i, kinds[i].reason);
    expect_native(20, "handed to another process");
    expect_native(21, "synchronous copies");
    expect_native(22, "several families");
    expect_native(24, "several flags");
    expect_native(25, "capture was active");
    expect_native(70, "the same caller handed another block");
    ck_assert_int_ne(row_of(26)->discipline, TN_D_NATIVE);
}
END_TEST

/* Rules by the site's number. */
static tn_discipline ruled(void *user, const tn_trace *trace, uint32_t site, const char **rule)
{
    const tn_discipline *of_site = user;
    uint64_t number = trace->sites[site].key - 0x1000;
    *rule = "the rule";
    return number < 8 ? of_site[number] : TN_D_COUNT;
}

START_TEST(a_rule_decides_where_it_can_and_nowhere_else)
{
    tn_discipline of_site[8] = {TN_D_COUNT, TN_D_T3, TN_D_NATIVE, TN_D_T4, TN_D_PACKED, TN_D_T3, TN_D_T3, TN_D_COUNT};
    for (uint32_t site = 1; site <= 5; site++)
        take(&p, DEVICE, site, address(site), 4096);
    take(&p, TN_KIND_MANAGED, 6, address(6), 4096);
    take(&p, DEVICE, 7, address(7), 4096);
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_KERNEL, .addr = 1, .bytes = address(4), .aux = 4096});
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = address(5)});
    read_plan((tn_plan_options){.rule_of = ruled, .user = of_site});
    static const struct { uint32_t site; tn_discipline discipline; bool by_rule; } wanted[] = {
        {1, TN_D_T3, true}, {2, TN_D_NATIVE, true}, {3, TN_D_T2, false} /* no stacks of plain memory */, {4, TN_D_T2, false} /* graphs hold it */,
        {5, TN_D_T3, true} /* exported: the rule's author knows better */, {6, TN_D_NATIVE, false} /* not this kind */, {7, TN_D_T2, false}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const tn_plan_row *row = row_of(wanted[i].site);
        ck_assert_msg(row->discipline == wanted[i].discipline, "site %u is %s: %s", wanted[i].site, tn_discipline_name(row->discipline), row->reason);
        ck_assert_int_eq(row->rule != NULL, wanted[i].by_rule);
        if (row->rule)
            ck_assert_str_eq(row->rule, "the rule");
    }
    ck_assert_str_eq(row_of(1)->reason, "a rule says so");
}
END_TEST

static const tn_plan_row *caller(uint64_t python)
{
    const tn_plan_row *row = tn_plan_row_of(&plan->sections[0], 0x1001, python);
    ck_assert_ptr_nonnull(row);
    return row;
}

/* Two callers of one native site: one keeps its block, or both take theirs as scratch. */
START_TEST(callers_in_python_stand_apart_where_they_differ_and_only_there)
{
    const uint32_t keeper = TN_SITE_FIRST + 101, user = TN_SITE_FIRST + 102;
    jm_python(p.journal, 1, "/srv/app/model.py", "keep", 8);
    jm_python(p.journal, 2, "/srv/app/model.py", "use", 18);
    jm_python_site(p.journal, keeper, TN_SITE_FIRST + 1, 0xa1, 1, (const uint32_t[][2]){{1, 9}}, 0);
    jm_python_site(p.journal, user, TN_SITE_FIRST + 1, 0xa2, 1, (const uint32_t[][2]){{2, 19}}, 0);
    for (unsigned i = 0; i < 4; i++) {
        if (i == 0 || !_i)
            take(&p, DEVICE, 101, address(1), 4096);
        if (!_i)
            give(&p, DEVICE, address(1));
        if (i == 0)
            phase(&p, TN_PHASE_SERVING);
        take(&p, DEVICE, 102, address(2), 4096);
        give(&p, DEVICE, address(2));
    }
    read_plan((tn_plan_options){0});
    ck_assert_uint_eq(plan->sections[0].row_count, _i ? 2 : 1);
    ck_assert_uint_eq(caller(0xa1)->python, _i ? 0xa1 : 0);
    ck_assert_uint_eq(caller(0xa2)->python, _i ? 0xa2 : 0);
    ck_assert_int_eq(caller(0xa1)->discipline, _i ? TN_D_T2 : TN_D_PACKED);
    ck_assert_int_eq(caller(0xa2)->discipline, TN_D_PACKED);
    if (_i) {
        ck_assert_uint_eq(caller(0xa2)->python_frame_count, 1);
        ck_assert_str_eq(caller(0xa2)->python_frames[0], "use (model.py:19)");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("classify");
    TCase *c = tcase_create("classify");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, a_site_that_stays_with_the_driver_says_why);
    tcase_add_test(c, a_rule_decides_where_it_can_and_nowhere_else);
    tcase_add_loop_test(c, callers_in_python_stand_apart_where_they_differ_and_only_there, 0, 2);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
