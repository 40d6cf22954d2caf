/* What the debugging options of a served run found: counted by what became of each block, overwritten ones by the sites that took and freed them. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_checks.h"
#include "tests/report/report_test.h"

#define PLACE 0x10000u

static uint64_t at;

static void put_alloc(jm *j, uint8_t kind, unsigned route)
{
    tn_event e = ev(TN_EV_ALLOC, kind, PLACE + at * 4096, 100);
    e.aux2 = (uint64_t)route << 32;
    jm_event(j, 1, at += 10, e);
}

static void put_check(jm *j, unsigned what, uint32_t site, uint32_t free_site, uint64_t flags, uint64_t first, uint64_t count)
{
    tn_event e = ev(TN_EV_CHECK, (uint8_t)what, PLACE + at * 4096, 100);
    e.site = free_site;
    e.aux = count << 32 | first;
    e.aux2 = flags << 32 | site;
    jm_event(j, 1, at += 10, e);
}

static jm *begin(void)
{
    jm *j = plain_journal(10);
    for (uint32_t site = 3; site < 6; site++)
        jm_site(j, site, 0x3333 + site, 1, (const uint64_t[][2]){{1, 0x100 * site}});
    at = 100;
    return j;
}

static char *text_of(void)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    tn_report_options options = {.top = 1};
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(tn_report_text(report, &options, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(each_block_is_counted_by_what_became_of_it)
{
    jm *j = begin();
    for (int i = 0; i < 6; i++)
        put_alloc(j, TN_KIND_DEVICE, TN_ROUTE_PACKED | TN_ROUTE_CANARY);
    put_alloc(j, TN_KIND_ASYNC, TN_ROUTE_T4 | TN_ROUTE_NO_CANARY);
    put_alloc(j, TN_KIND_MANAGED, TN_ROUTE_CANARY); /* whose aux2 means something else */
    put_check(j, TN_CHECK_INTACT, 2, 3, TN_CHECK_WAITED, 0, 0);
    put_check(j, TN_CHECK_OVERWRITTEN, 2, 3, TN_CHECK_WAITED | TN_CHECK_POISONED, 7, 2);
    put_check(j, TN_CHECK_NOT_DONE, 2, 3, 0, 0, 0); /* it was to be poisoned alone */
    put_check(j, TN_CHECK_NO_CANARY, 2, 3, TN_CHECK_POISONED, 0, 0);
    put_check(j, TN_CHECK_NOT_DONE, 2, 3, TN_CHECK_GUARDED, 0, 0);
    put_check(j, TN_CHECK_INTACT, 2, 0, TN_CHECK_AT_EXIT, 0, 0);
    put_check(j, TN_CHECK_OVERWRITTEN, 4, 0, TN_CHECK_AT_EXIT, 0, 512);
    load_journal(j);
    const tn_checks *c = report->checks;
    ck_assert_uint_eq(c->guarded, 6);
    ck_assert_uint_eq(c->unseen, 1);
    ck_assert_uint_eq(c->bare, 1);
    ck_assert_uint_eq(c->intact, 1);
    ck_assert_uint_eq(c->overwritten, 1);
    ck_assert_uint_eq(c->not_done, 2);
    ck_assert_uint_eq(c->at_exit, 2);
    ck_assert_uint_eq(c->at_exit_overwritten, 1);
    ck_assert_uint_eq(c->waits, 2);
    ck_assert_uint_eq(c->poisoned, 2);
    ck_assert(tn_checks_any(c));
}
END_TEST

START_TEST(overwritten_blocks_are_joined_by_both_sites_and_the_most_come_first)
{
    jm *j = begin();
    put_check(j, TN_CHECK_OVERWRITTEN, 2, 3, 0, 7, 2);
    uint64_t first = at;
    put_check(j, TN_CHECK_OVERWRITTEN, 4, 3, 0, 1, 3);
    put_check(j, TN_CHECK_OVERWRITTEN, 4, 5, 0, 2, 4);
    put_check(j, TN_CHECK_OVERWRITTEN, 4, 3, 0, 9, 9);
    put_check(j, TN_CHECK_OVERWRITTEN, 99, 0, TN_CHECK_AT_EXIT, 0, 1); /* a site that the journal does not name */
    load_journal(j);
    const tn_checks *c = report->checks;
    ck_assert_uint_eq(c->count, 4);
    ck_assert_uint_eq(c->each[0].count, 2);
    ck_assert_uint_eq(report->sites[c->each[0].site].key, 0x3337);
    ck_assert_uint_eq(report->sites[c->each[0].free_site].key, 0x3336);
    ck_assert_uint_eq(c->each[0].address, PLACE + first * 4096); /* of the first of them */
    ck_assert_uint_eq(c->each[0].first, 1);
    ck_assert_uint_eq(c->each[0].overwritten, 3);
    ck_assert_uint_eq(c->each[3].site, TN_NO_INDEX);
    ck_assert_uint_eq(c->each[3].free_site, TN_NO_INDEX);
    char *text = text_of();
    ck_assert_ptr_nonnull(strstr(text, "  2 blocks written past the end; the first: 100 B at 0x"));
    ck_assert_ptr_nonnull(strstr(text, "from byte 1 behind it, 3 bytes\n        allocated  0000000000003337  "));
    ck_assert_ptr_nonnull(strstr(text, "        freed      0000000000003336  "));
    ck_assert_ptr_nonnull(strstr(text, "  3 more (--top N)\n"));
    free(text);
}
END_TEST

START_TEST(a_run_without_options_has_no_section)
{
    jm *j = begin();
    put_alloc(j, TN_KIND_DEVICE, TN_ROUTE_PACKED);
    load_journal(j);
    ck_assert(!tn_checks_any(report->checks));
    char *text = text_of();
    ck_assert_ptr_null(strstr(text, "Canaries"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checks");
    TCase *c = tcase_create("checks");
    tcase_add_checked_fixture(c, scratch_make, drop_report);
    tcase_add_test(c, each_block_is_counted_by_what_became_of_it);
    tcase_add_test(c, overwritten_blocks_are_joined_by_both_sites_and_the_most_come_first);
    tcase_add_test(c, a_run_without_options_has_no_section);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
