/* Virtual memory in the replay: handles are memory, reservations and mappings are not. */
#include <check.h>
#include <stdlib.h>

#include "tests/report/report_test.h"

START_TEST(vmm_counts_handles_not_mappings)
{
    jm *j = plain_journal(1);
    const uint64_t mib2 = 2 << 20;
    jm_event(j, 1, 1, ev(TN_EV_VMM_RESERVE, 0, 0x10000000, 8 * mib2));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_VMM_HANDLE, 7, mib2));
    jm_event(j, 1, 3, ev_alloc(TN_KIND_VMM_HANDLE, 8, mib2));
    tn_event map = ev(TN_EV_VMM_MAP, 0, 0x10000000, mib2);
    map.aux = 7;
    jm_event(j, 1, 4, map);
    map.addr += 2 * mib2; /* a gap between the two */
    map.aux = 8;
    jm_event(j, 1, 5, map);
    /* A released handle keeps its memory as long as it is mapped; its number may come back meanwhile. */
    jm_event(j, 1, 6, ev_free(TN_KIND_VMM_HANDLE, 7));
    jm_event(j, 1, 7, ev_alloc(TN_KIND_VMM_HANDLE, 7, mib2));
    jm_event(j, 1, 8, ev(TN_EV_VMM_UNMAP, 0, 0x10000000, 8 * mib2));
    jm_event(j, 1, 9, ev(TN_EV_VMM_UNRESERVE, 0, 0x10000000, 8 * mib2));
    load_journal(j);
    const tn_stat *s = kind(TN_KIND_VMM_HANDLE);
    ck_assert_uint_eq(s->peak_requested, 3 * mib2);
    ck_assert_uint_eq(s->live_requested, 2 * mib2); /* 8, and the second 7 */
    CHECK_CALLS(s, 3, 1, 0);
    ck_assert_uint_eq(device(0)->total.peak_requested, 3 * mib2);
    CHECK_CALLS(&report->mapped, 2, 2, 0);
    ck_assert_uint_eq(report->mapped.peak_requested, 2 * mib2);
    ck_assert_uint_eq(report->mapped.live_requested, 0);
    CHECK_CALLS(&report->reserved, 1, 1, 0);
    ck_assert_uint_eq(report->reserved.peak_requested, 8 * mib2);
    ck_assert_uint_eq(report->processes[0].replaced, 0);
}
END_TEST

START_TEST(a_retained_handle_needs_two_releases)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_VMM_HANDLE, 7, 4096));
    tn_event retain = ev(TN_EV_EXPORT, TN_EXPORT_RETAIN, 0x10000000, 0);
    retain.aux = 7;
    jm_event(j, 1, 2, retain);
    jm_event(j, 1, 3, ev_free(TN_KIND_VMM_HANDLE, 7));
    jm_event(j, 1, 4, ev_alloc(TN_KIND_DEVICE, 7, 1)); /* an address, not the handle */
    jm_event(j, 1, 5, ev_free(TN_KIND_VMM_HANDLE, 7));
    load_journal(j);
    ck_assert_uint_eq(device(0)->total.peak_requested, 4097);
    ck_assert_uint_eq(device(0)->total.live_requested, 1);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

START_TEST(a_released_handle_can_be_had_back)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_VMM_HANDLE, 7, 4096));
    tn_event map = ev(TN_EV_VMM_MAP, 0, 0x10000000, 4096), retain = ev(TN_EV_EXPORT, TN_EXPORT_RETAIN, 0x10000000, 0);
    map.aux = retain.aux = 7;
    jm_event(j, 1, 2, map);
    jm_event(j, 1, 3, ev_free(TN_KIND_VMM_HANDLE, 7));
    jm_event(j, 1, 4, retain);
    jm_event(j, 1, 5, ev(TN_EV_VMM_UNMAP, 0, 0x10000000, 4096));
    jm_event(j, 1, 6, ev_alloc(TN_KIND_DEVICE, 0x1000, 10)); /* the handle is held by its second reference alone */
    jm_event(j, 1, 7, ev_free(TN_KIND_VMM_HANDLE, 7));
    load_journal(j);
    ck_assert_uint_eq(device(0)->total.peak_requested, 4106);
    ck_assert_uint_eq(device(0)->total.live_requested, 10);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

START_TEST(an_unmap_over_everything)
{
    /* As wide as a number can be: what lies in it goes, at once. */
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev(TN_EV_VMM_MAP, 0, 0x10000000, 4096));
    jm_event(j, 1, 2, ev(TN_EV_VMM_MAP, 0, 0x10000, 4096));
    jm_event(j, 1, 3, ev(TN_EV_VMM_MAP, 0, 0x500, 4096));
    jm_event(j, 1, 4, ev(TN_EV_VMM_UNMAP, 0, 0x1000, UINT64_MAX));
    load_journal(j);
    CHECK_CALLS(&report->mapped, 3, 2, 0);
    ck_assert_uint_eq(report->mapped.live_requested, 4096);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranges");
    TCase *tc = tcase_create("events");
    tcase_add_checked_fixture(tc, scratch_make, drop_report);
    tcase_add_test(tc, vmm_counts_handles_not_mappings);
    tcase_add_test(tc, a_retained_handle_needs_two_releases);
    tcase_add_test(tc, a_released_handle_can_be_had_back);
    tcase_add_test(tc, an_unmap_over_everything);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
