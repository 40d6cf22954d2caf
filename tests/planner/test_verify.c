/* Runs against plans of other runs: what finds no room, what has to wait, and which sites are the same. */
#include <check.h>
#include <stdlib.h>

#include "planner/verify.h"
#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE

START_TEST(a_run_without_the_waits_of_the_planned_one_is_said_to_wait)
{
    tn_trace *planned = two_in_turn("waits", 1), *other_run = two_in_turn("none", 0);
    tn_plan *plan = plan_with(planned, (tn_plan_options){0});
    tn_verdict v;
    ck_assert_int_eq(tn_verify(plan, other_run, NULL, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.hand_outs, 6);
    ck_assert_uint_eq(v.excesses, 0);
    ck_assert_uint_eq(v.waits, 3); /* the second of each pair */
    ck_assert_uint_eq(v.row_count, 1);
    ck_assert_uint_eq(v.rows[0].row, 1);
    ck_assert_uint_eq(v.rows[0].waits, 3);
    ck_assert_uint_eq(v.seen_count, 2);
    ck_assert(v.seen[0].row == 0 && v.seen[0].blocks == 1 && v.seen[0].largest == 2 * MIB);
    tn_verdict_free(&v);
    tn_plan_free(plan);
    tn_trace_free(planned);
    tn_trace_free(other_run);
}
END_TEST

START_TEST(an_excess_is_named_with_tier_site_event_and_bytes)
{
    tn_trace *seen = scratch_run("seen", 1, 1 * MIB, 2), *larger = scratch_run("larger", 2, 3 * MIB, 2), *more = scratch_run("more", 3, 1 * MIB, 3);
    tn_plan *plan = plan_with(seen, (tn_plan_options){0});
    tn_verdict v;
    ck_assert_uint_eq(excesses(plan, seen, NULL), 0);
    ck_assert_int_eq(tn_verify(plan, larger, NULL, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.hand_outs, 20);
    ck_assert_uint_eq(v.excesses, 20);
    ck_assert(v.row_count == 1 && v.rows[0].excesses == 20 && v.rows[0].worst == 3 * MIB + 512 && v.rows[0].first.short_by == 3 * MIB);
    ck_assert_int_eq(v.first.answer.spill, TN_SPILL_TOO_LARGE);
    ck_assert_uint_eq(v.first.at, 1);
    ck_assert_uint_eq(v.first.answer.short_by, 3 * MIB);
    ck_assert_uint_eq(v.worst.answer.short_by, 3 * MIB + 512);
    ck_assert_int_ne(tn_verdict_judge(&v), TN_PLAN_HOLDS);
    tn_verdict_free(&v);
    ck_assert_int_eq(tn_verify(plan, more, NULL, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.excesses, 10);
    ck_assert_int_eq(v.first.answer.spill, TN_SPILL_TOO_MANY);
    ck_assert_uint_eq(v.first.at, 3);
    tn_verdict_free(&v);
    tn_plan_free(plan);
    /* Two runs: the envelope holds both. */
    tn_trace *both = open_runs((const char *const[]){"seen", "more"}, 2);
    plan = plan_with(both, (tn_plan_options){0});
    ck_assert_uint_eq(excesses(plan, seen, NULL) + excesses(plan, more, NULL), 0);
    tn_plan_free(plan);
    /* Headroom: 300 % more holds the larger one. */
    plan = plan_with(seen, (tn_plan_options){.headroom = 300});
    ck_assert_uint_eq(excesses(plan, larger, NULL), 0);
    tn_plan_free(plan);
    tn_trace_free(seen);
    tn_trace_free(larger);
    tn_trace_free(more);
    tn_trace_free(both);
}
END_TEST

static void name_all(void *user, tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row)
{
    const tn_trace_site *x = &trace->sites[site];
    (void)user;
    if (!x->record)
        return;
    tn_plan_frame *f = tn_plan_add_frame(plan, row);
    f->module = tn_plan_text(plan, "program");
    f->delta = f->offset = x->record->frames[0].offset;
    f->function = tn_plan_text(plan, f->offset < 0x600 ? "load" : "warm_up");
}

START_TEST(after_a_rebuild_sites_are_matched_by_function_and_place)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, address(1), 1 * MIB);
    take(&p, DEVICE, 2, address(2), 2 * MIB);
    take(&p, DEVICE, 3, address(3), 4096);
    program_end_in(&p, "old", "p");
    program q = program_begin(2); /* the same program, built again: other keys in another order, calls moved by a few bytes, one new site */
    jm_header(q.journal)->exe_build_id[0] ^= 1;
    jm_site(q.journal, TN_SITE_FIRST + 41, 0x9002, 1, (const uint64_t[][2]){{1, 0x100}});
    jm_site(q.journal, TN_SITE_FIRST + 42, 0x9001, 1, (const uint64_t[][2]){{1, 0x208}});
    jm_site(q.journal, TN_SITE_FIRST + 43, 0x9003, 1, (const uint64_t[][2]){{1, 0x600}});
    take(&q, DEVICE, 41, address(1), 1 * MIB);
    take(&q, DEVICE, 42, address(2), 2 * MIB);
    take(&q, DEVICE, 3, address(3), 4096); /* as before */
    take(&q, DEVICE, 43, address(4), 8192);
    program_end_in(&q, "new", "q");
    const char *old_run = "old", *new_run = "new";
    tn_trace *old = open_runs(&old_run, 1), *new = open_runs(&new_run, 1);
    tn_plan *plan = plan_with(old, (tn_plan_options){.namer = name_all});
    tn_verdict v;
    ck_assert_int_eq(tn_verify(plan, new, name_all, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.by_key, 1);
    ck_assert_uint_eq(v.by_name, 2);
    ck_assert_uint_eq(v.plan_only, 0);
    ck_assert_uint_eq(v.unplanned, 1);
    ck_assert_uint_eq(v.unplanned_sites[0].key, 0x9003);
    ck_assert_uint_eq(v.unplanned_bytes, 8192);
    ck_assert_uint_eq(v.seen_count, 3);
    for (size_t i = 0; i < 3; i++) /* each by its place, not by its key */
        ck_assert_uint_eq(v.seen[i].largest, i == 0 ? 1 * MIB : i == 1 ? 2 * MIB : 4096);
    ck_assert_uint_eq(v.excesses, 0);
    tn_verdict_free(&v);
    ck_assert_int_eq(tn_verify(plan, new, NULL, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.plan_only, 2);
    ck_assert_uint_eq(v.unplanned, 3);
    ck_assert_uint_eq(v.by_key, 1);
    tn_verdict_free(&v);
    tn_plan_free(plan);
    tn_trace_free(old);
    tn_trace_free(new);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *c = tcase_create("verify");
    tcase_add_checked_fixture(c, scratch_make, scratch_remove);
    tcase_add_test(c, a_run_without_the_waits_of_the_planned_one_is_said_to_wait);
    tcase_add_test(c, an_excess_is_named_with_tier_site_event_and_bytes);
    tcase_add_test(c, after_a_rebuild_sites_are_matched_by_function_and_place);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
