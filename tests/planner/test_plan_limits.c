/* Plans of more blocks than are laid out together: which sites are packed all the same, and what is said of the others; and rules that
 * cannot be. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_text.h"
#include "tests/planner/plan_test.h"

#define A 0x7f0000000000u
#define MIB ((uint64_t)1 << 20)

/* `count` blocks of two sizes, alive together. */
static void take_many(program *p, uint8_t kind, uint32_t site, unsigned count, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        take(p, kind, site, A + ((uint64_t)site << 36) + i * 4 * MIB, i % 2 ? bytes : bytes / 2);
}

static void give_many(program *p, uint8_t kind, uint32_t site, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        give(p, kind, A + ((uint64_t)site << 36) + i * 4 * MIB);
}

static tn_plan *plan_of(program *p, tn_trace **trace)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = {.steps = 1000};
    tn_plan *plan = NULL;
    program_end(p, "one");
    *trace = open_scratch();
    tn_error error = tn_plan_make(*trace, &options, &plan, message);
    ck_assert_msg(error == TN_OK, "%s", message);
    ck_assert_msg(tn_plan_check(plan, message) == TN_OK, "%s", message);
    return plan;
}

static const tn_plan_row *row_of(const tn_plan *plan, uint32_t site)
{
    const tn_plan_row *row = tn_plan_row_of(&plan->sections[0], 0x1000 + site, 0);
    ck_assert_ptr_nonnull(row);
    return row;
}

static void must_hold(const tn_plan *plan, const tn_trace *trace)
{
    tn_verdict v;
    ck_assert_int_eq(tn_verify(plan, trace, NULL, NULL, &v), TN_OK);
    ck_assert_uint_eq(v.excesses, 0);
    ck_assert_uint_eq(v.missing_count, 0);
    tn_verdict_free(&v);
}

START_TEST(a_site_with_too_many_blocks_keeps_no_other_from_being_packed)
{
    static const struct { uint32_t site; unsigned count; uint64_t bytes; } sites[] = {{1, 300, 2 * MIB}, {2, 200, 131072}, {3, 100, 8192}};
    program p = program_begin(1);
    phase(&p, TN_PHASE_SERVING);
    for (unsigned request = 0; request < 2; request++) {
        for (unsigned i = 0; i < 3; i++)
            take_many(&p, TN_KIND_DEVICE, sites[i].site, sites[i].count, sites[i].bytes);
        for (unsigned i = 0; i < 3; i++)
            give_many(&p, TN_KIND_DEVICE, sites[i].site, sites[i].count);
    }
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t);
    ck_assert_int_eq(row_of(plan, 1)->discipline, TN_D_T3);
    ck_assert_int_eq(row_of(plan, 2)->discipline, TN_D_PACKED);
    ck_assert_int_eq(row_of(plan, 3)->discipline, TN_D_T3);
    must_hold(plan, t);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    tn_plan_print(plan, out);
    fclose(out);
    ck_assert_msg(strstr(text, "2 sites, 600.781 MiB, share no addresses: too many") != NULL, "%s", text);
    free(text);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

START_TEST(pinned_blocks_beyond_what_is_laid_out_stay_the_drivers)
{
    program p = program_begin(1);
    phase(&p, TN_PHASE_SERVING);
    take_many(&p, TN_KIND_PINNED, 1, 3000, 131072);
    take_many(&p, TN_KIND_PINNED, 2, 10, 8192);
    give_many(&p, TN_KIND_PINNED, 1, 3000);
    give_many(&p, TN_KIND_PINNED, 2, 10);
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t);
    ck_assert_int_eq(row_of(plan, 1)->discipline, TN_D_NATIVE);
    ck_assert_int_eq(row_of(plan, 2)->discipline, TN_D_T5B);
    must_hold(plan, t);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

static void load(program *p, uint32_t site, unsigned place, uint64_t bytes)
{
    take(p, TN_KIND_DEVICE, site, A + place * 64 * MIB, bytes);
    written(p, A + place * 64 * MIB, TN_WRITE_H2D);
}

/* What came while a capture was active is the driver's, and no slot has to hold it. */
START_TEST(blocks_of_captures_ask_for_no_slots)
{
    program p = program_begin(1);
    for (unsigned i = 0; i < 4; i++) {
        if ((int)i == _i)
            other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_BEGIN, .stream = 1});
        take(&p, TN_KIND_DEVICE, 1, address(1), (int)i == _i ? 3 * MIB : 4096);
        if ((int)i == _i)
            other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_END, .stream = 1});
        give(&p, TN_KIND_DEVICE, address(1));
    }
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t);
    ck_assert_int_eq(row_of(plan, 1)->discipline, TN_D_PACKED);
    ck_assert_uint_eq(row_of(plan, 1)->largest, 4096);
    ck_assert_uint_eq(row_of(plan, 1)->classes[0].bytes, 4096);
    must_hold(plan, t);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

/* File names are bytes; a plan is text, and is shown on terminals. */
START_TEST(names_that_are_no_text_stand_masked_and_are_found_again)
{
    program p = program_begin(1);
    tn_journal_header *h = jm_header(p.journal);
    strcpy(h->exe, "/opt/mod\xc3\xa8le \xae\xff\033[2J");
    strcpy(h->exe_build_id, _i ? "00ff" : "");
    jm_site(p.journal, TN_SITE_FIRST + 1, 0x1001, 1, (const uint64_t[][2]){{1, UINT64_MAX}}); /* nor is this a number of JSON */
    jm_module(p.journal, 1, "00112233445566778899aabbccddeeff00112233", "/opt/\xed\xa0\x80\xc0\x80lib");
    take(&p, TN_KIND_DEVICE, 1, address(1), 4096);
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t), *read;
    char *text = NULL, message[TN_PLAN_MESSAGE];
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_int_eq(tn_plan_write(plan, out), TN_OK);
    fclose(out);
    ck_assert_msg(tn_plan_parse(text, length, "plan", &read, message) == TN_OK, "%s", message);
    ck_assert_str_eq(read->sections[0].exe, "mod\xc3\xa8le ???[2J");
    ck_assert_str_eq(read->sections[0].rows[0].frames[0].module, "?????lib");
    ck_assert_uint_eq(read->sections[0].rows[0].frames[0].offset, INT64_MAX);
    must_hold(read, t); /* without a build-id the name alone is matched */
    free(text);
    tn_plan_free(plan);
    tn_plan_free(read);
    tn_trace_free(t);
}
END_TEST

/* Two models that are loaded one behind the other and unloaded apart, the first beginning as a larger one did: its region goes on into the second,
 * and the next begins with a site that none was seen to begin with. */
START_TEST(a_region_may_begin_with_any_site)
{
    program p = program_begin(1);
    load(&p, 1, 0, 8 * MIB);
    for (unsigned i = 1; i < 4; i++)
        load(&p, 2, i, 4 * MIB);
    for (unsigned i = 0; i < 4; i++)
        give(&p, TN_KIND_DEVICE, A + i * 64 * MIB);
    load(&p, 1, 0, 8 * MIB);
    load(&p, 2, 1, 4 * MIB);
    load(&p, 3, 2, 16 * MIB);
    for (unsigned i = 3; i < 6; i++)
        load(&p, 2, i, 4 * MIB);
    give(&p, TN_KIND_DEVICE, A);
    give(&p, TN_KIND_DEVICE, A + 64 * MIB);
    load(&p, 1, 0, 8 * MIB);
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t);
    ck_assert_int_eq(row_of(plan, 2)->discipline, TN_D_T1);
    must_hold(plan, t);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_block_larger_than_memory_is_damage)
{
    program p = program_begin(1);
    load(&p, 1, 0, 8 * MIB);
    load(&p, 1, 1, UINT64_MAX - 4096);
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t);
    ck_assert_uint_eq(row_of(plan, 1)->largest, 8 * MIB);
    ck_assert(tn_trace_incomplete(t));
    ck_assert_ptr_nonnull(strstr(t->processes[0].damage, "larger than"));
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

static tn_discipline pack_all(void *user, const tn_trace *trace, uint32_t site, const char **rule)
{
    (void)user;
    (void)trace;
    (void)site;
    *rule = "packed";
    return TN_D_PACKED;
}

static tn_discipline stack_all(void *user, const tn_trace *trace, uint32_t site, const char **rule)
{
    pack_all(user, trace, site, rule);
    return TN_D_T4;
}

START_TEST(an_exported_site_stays_the_drivers_where_a_rule_cannot_be)
{
    program p = program_begin(1);
    take(&p, TN_KIND_DEVICE, 1, A, 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A});
    take(&p, TN_KIND_DEVICE, 2, A + MIB, 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A + MIB});
    other(&p, (tn_event){.type = TN_EV_ATTRIBUTE, .addr = A + MIB, .bytes = 6, .aux = 1});
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t), *ruled;
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = {.steps = 1000, .rule_of = _i ? stack_all : pack_all};
    ck_assert_int_eq(tn_plan_make(t, &options, &ruled, message), TN_OK);
    ck_assert_int_eq(row_of(ruled, 1)->discipline, _i ? TN_D_NATIVE : TN_D_PACKED);
    ck_assert_int_eq(row_of(ruled, 2)->discipline, TN_D_NATIVE); /* for its synchronous copies, too */
    tn_plan_free(ruled);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

START_TEST(no_rule_shares_held_addresses_or_stacks_what_another_stream_frees)
{
    program p = program_begin(1);
    take(&p, TN_KIND_DEVICE, 1, A, 4096);
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_KERNEL, .addr = 1, .bytes = A, .aux = 4096});
    for (unsigned i = 0; i < 4; i++) {
        take_on(&p, 2, A + MIB, 4096, 1);
        give_on(&p, TN_KIND_ASYNC, A + MIB, 2);
    }
    tn_trace *t;
    tn_plan *plan = plan_of(&p, &t), *ruled;
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = {.steps = 1000, .rule_of = _i ? stack_all : pack_all};
    ck_assert_int_eq(tn_plan_make(t, &options, &ruled, message), TN_OK);
    ck_assert_msg(tn_plan_check(ruled, message) == TN_OK, "%s", message);
    ck_assert_ptr_null(row_of(ruled, 1)->rule);
    ck_assert_int_eq(row_of(ruled, 1)->discipline, row_of(plan, 1)->discipline);
    if (_i)
        ck_assert_int_ne(row_of(ruled, 2)->discipline, TN_D_T4);
    else
        ck_assert_str_eq(row_of(ruled, 2)->rule, "packed");
    tn_plan_free(ruled);
    tn_plan_free(plan);
    tn_trace_free(t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan limits");
    TCase *c = tcase_create("plan limits");
    tcase_set_timeout(c, 20);
    tcase_add_checked_fixture(c, scratch_make, scratch_remove);
    tcase_add_test(c, a_site_with_too_many_blocks_keeps_no_other_from_being_packed);
    tcase_add_test(c, pinned_blocks_beyond_what_is_laid_out_stay_the_drivers);
    tcase_add_loop_test(c, no_rule_shares_held_addresses_or_stacks_what_another_stream_frees, 0, 2);
    tcase_add_loop_test(c, an_exported_site_stays_the_drivers_where_a_rule_cannot_be, 0, 2);
    tcase_add_loop_test(c, blocks_of_captures_ask_for_no_slots, 0, 4);
    tcase_add_loop_test(c, names_that_are_no_text_stand_masked_and_are_found_again, 0, 2);
    tcase_add_test(c, a_region_may_begin_with_any_site);
    tcase_add_test(c, a_block_larger_than_memory_is_damage);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
