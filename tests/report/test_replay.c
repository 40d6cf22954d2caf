/* The replay, event by event: what counts, where, and how high it gets. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/report_test.h"

START_TEST(alloc_free_peak)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 1000));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_DEVICE, 0x2000, 5000));
    jm_event(j, 1, 3, ev_free(TN_KIND_DEVICE, 0x1000));
    jm_event(j, 1, 4, ev_alloc(TN_KIND_DEVICE, 0x1000, 200));
    load_journal(j);
    const tn_stat *all = &device(0)->total;
    ck_assert_uint_eq(all->live_requested, 5200);
    ck_assert_uint_eq(all->peak_requested, 6000);
    ck_assert_uint_eq(all->live_backed, 8192 + 4096);
    ck_assert_uint_eq(all->peak_backed, 4096 + 8192);
    CHECK_CALLS(all, 3, 1, 0);
    ck_assert_mem_eq(all, kind(TN_KIND_DEVICE), sizeof(*all));
    ck_assert_uint_eq(report->row_count, 1);
    ck_assert_mem_eq(all, &report->rows[0].stat, sizeof(*all));
    /* The allocating call carries the bytes, the freeing one its count. */
    const tn_stat *malloc_line = &device(0)->apis[0 * TN_KIND_COUNT + TN_KIND_DEVICE];
    const tn_stat *free_line = &device(0)->apis[1 * TN_KIND_COUNT + TN_KIND_DEVICE];
    CHECK_CALLS(malloc_line, 3, 0, 0);
    ck_assert_uint_eq(malloc_line->live_requested, 5200);
    CHECK_CALLS(free_line, 0, 1, 0);
    ck_assert_uint_eq(free_line->peak_requested, 0);
}
END_TEST

START_TEST(peak_of_the_sum_is_not_the_sum_of_peaks)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 100));
    jm_event(j, 1, 2, ev_free(TN_KIND_DEVICE, 0x1000));
    jm_event(j, 1, 3, ev_alloc(TN_KIND_MANAGED, 0x2000, 70));
    load_journal(j);
    ck_assert_uint_eq(kind(TN_KIND_DEVICE)->peak_requested, 100);
    ck_assert_uint_eq(kind(TN_KIND_MANAGED)->peak_requested, 70);
    ck_assert_uint_eq(device(0)->total.peak_requested, 100);
}
END_TEST

START_TEST(threads_interleave_by_stamp)
{
    /* Thread 2's chunk lies behind thread 1's in the file; by their stamps an address goes from one to the other. */
    jm *j = plain_journal(1);
    jm_event(j, 1, 10, ev_alloc(TN_KIND_DEVICE, 0x1000, 100));
    jm_event(j, 1, 30, ev_free(TN_KIND_DEVICE, 0x1000));
    jm_event(j, 1, 50, ev_alloc(TN_KIND_DEVICE, 0x1000, 300));
    jm_event(j, 2, 20, ev_alloc(TN_KIND_DEVICE, 0x8000, 50));
    jm_event(j, 2, 40, ev_alloc(TN_KIND_DEVICE, 0x1000, 200));
    jm_event(j, 2, 45, ev_free(TN_KIND_DEVICE, 0x1000));
    load_journal(j);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
    ck_assert_uint_eq(report->processes[0].replaced, 0);
    ck_assert_uint_eq(device(0)->total.peak_requested, 350);
    ck_assert_uint_eq(device(0)->total.live_requested, 350);
    CHECK_CALLS(&device(0)->total, 4, 2, 0);
}
END_TEST

START_TEST(refused_is_counted_apart)
{
    jm *j = plain_journal(1);
    tn_event e = ev_alloc(TN_KIND_DEVICE, 0, (uint64_t)4 << 40);
    e.result = 2;
    jm_event(j, 1, 1, e);
    jm_event(j, 1, 2, ev_alloc(TN_KIND_DEVICE, 0x1000, 64));
    load_journal(j);
    CHECK_CALLS(&device(0)->total, 1, 0, 1);
    ck_assert_uint_eq(device(0)->total.peak_requested, 64);
    ck_assert_uint_eq(report->rows[0].stat.refused, 1);
}
END_TEST

START_TEST(odd_frees)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 64));
    tn_event e = ev_free(TN_KIND_DEVICE, 0x1000);
    e.result = 700;
    jm_event(j, 1, 2, e);                                  /* refused: the block stays */
    jm_event(j, 1, 3, ev_free(TN_KIND_NONE, 0));           /* NULL: legal, nothing */
    jm_event(j, 1, 4, ev_free(TN_KIND_NONE, 0x9999000));   /* nobody knows it */
    jm_event(j, 1, 5, ev_alloc(TN_KIND_DEVICE, 0x1000, 32)); /* its free was never seen */
    load_journal(j);
    ck_assert_uint_eq(report->processes[0].frees_failed, 1);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 1);
    ck_assert_uint_eq(report->processes[0].replaced, 1);
    ck_assert_uint_eq(device(0)->total.live_requested, 32);
    ck_assert_uint_eq(device(0)->total.peak_requested, 64);
    CHECK_CALLS(&device(0)->total, 2, 0, 0);
}
END_TEST

START_TEST(size_zero_has_no_block)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0, 0));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_DEVICE, 0, 0));
    load_journal(j);
    CHECK_CALLS(&device(0)->total, 2, 0, 0);
    ck_assert_uint_eq(report->processes[0].replaced, 0);
}
END_TEST

START_TEST(reset_ends_what_native_ends)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 10));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_ASYNC, 0x2000, 20));
    jm_event(j, 1, 3, ev_alloc(TN_KIND_PINNED, 0x3000, 30));
    jm_event(j, 1, 4, ev_alloc(TN_KIND_VMM_HANDLE, 0x4, 40));
    tn_event other = ev_alloc(TN_KIND_DEVICE, 0x5000, 50);
    other.ctx = 2;
    jm_event(j, 1, 5, other);
    jm_event(j, 1, 6, ev(TN_EV_CONTEXT, TN_CTX_RESET, 0, 0));
    jm_event(j, 1, 7, ev_free(TN_KIND_ASYNC, 0x2000)); /* survives, and can be freed once */
    jm_event(j, 1, 8, ev_alloc(TN_KIND_DEVICE, 0x1000, 60));
    load_journal(j);
    ck_assert_uint_eq(kind(TN_KIND_DEVICE)->live_requested, 110);
    ck_assert_uint_eq(kind(TN_KIND_ASYNC)->frees, 1);
    ck_assert_uint_eq(kind(TN_KIND_VMM_HANDLE)->live_requested, 40);
    ck_assert_uint_eq(report->places[TN_PLACE_HOST].kinds[TN_KIND_PINNED].live_requested, 0);
    ck_assert_uint_eq(device(0)->ended_with_context, 1);
    ck_assert_uint_eq(report->places[TN_PLACE_HOST].ended_with_context, 1);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
    ck_assert_uint_eq(report->processes[0].replaced, 0);
    ck_assert_uint_eq(kind(TN_KIND_DEVICE)->frees, 0);
}
END_TEST

START_TEST(context_events_that_end_nothing)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 10));
    jm_event(j, 1, 2, ev(TN_EV_CONTEXT, TN_CTX_SET, 0, 0));
    tn_event e = ev(TN_EV_CONTEXT, TN_CTX_DESTROY, 0, 0);
    e.result = 201; /* it failed */
    jm_event(j, 1, 3, e);
    load_journal(j);
    ck_assert_uint_eq(device(0)->total.live_requested, 10);
    ck_assert_uint_eq(device(0)->ended_with_context, 0);
}
END_TEST

START_TEST(async_falls_at_its_free_call)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_ASYNC, 0x1000, 100));
    jm_event(j, 1, 2, ev(TN_EV_WORK, TN_WORK_KERNEL, 0, 1));
    jm_event(j, 1, 3, ev_free(TN_KIND_ASYNC, 0x1000));
    jm_event(j, 1, 4, ev_alloc(TN_KIND_ASYNC, 0x2000, 90));
    jm_event(j, 1, 5, ev(TN_EV_WAIT, TN_WAIT_CONTEXT, 0, 0));
    load_journal(j);
    ck_assert_uint_eq(kind(TN_KIND_ASYNC)->live_requested, 90);
    ck_assert_uint_eq(kind(TN_KIND_ASYNC)->peak_requested, 100);
}
END_TEST

START_TEST(a_graphs_free_node_ends_its_block)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_GRAPH, 0x1000, 10));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_DEVICE, 0x2000, 20));
    jm_event(j, 1, 3, ev(TN_EV_GRAPH_NODE, TN_NODE_FREE, 0xe0, 0x1000));
    jm_event(j, 1, 4, ev(TN_EV_GRAPH_NODE, TN_NODE_FREE, 0xe1, 0x1000)); /* read again at instantiate */
    jm_event(j, 1, 5, ev(TN_EV_GRAPH_NODE, TN_NODE_FREE, 0xe1, 0x2000)); /* no graph's block: stays */
    load_journal(j);
    CHECK_CALLS(kind(TN_KIND_GRAPH), 1, 1, 0);
    ck_assert_uint_eq(kind(TN_KIND_GRAPH)->live_requested, 0);
    ck_assert_uint_eq(device(0)->total.live_requested, 20);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

START_TEST(apart_from_the_sum)
{
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_GRAPH, 0x1000, 10));
    jm_event(j, 1, 2, ev_alloc(TN_KIND_IMPORTED, 0x2000, 20));
    jm_event(j, 1, 3, ev_alloc(TN_KIND_PINNED, 0x3000, 30));
    jm_event(j, 1, 4, ev_alloc(TN_KIND_REGISTERED, 0x4000, 40));
    jm_event(j, 1, 5, ev_alloc(TN_KIND_ARRAY, 0x3000, 50)); /* a handle that equals the pinned address */
    load_journal(j);
    ck_assert_uint_eq(device(0)->total.live_requested, 50);
    ck_assert_uint_eq(kind(TN_KIND_GRAPH)->live_requested, 10);
    ck_assert_uint_eq(kind(TN_KIND_IMPORTED)->live_requested, 20);
    ck_assert_uint_eq(report->places[TN_PLACE_HOST].kinds[TN_KIND_PINNED].live_requested, 30);
    ck_assert_uint_eq(report->places[TN_PLACE_HOST].kinds[TN_KIND_REGISTERED].live_requested, 40);
    ck_assert_uint_eq(report->processes[0].replaced, 0);
}
END_TEST

START_TEST(many_blocks_leave_nothing_behind)
{
    enum { ROUNDS = 4, BLOCKS = 3000 };
    jm *j = plain_journal(1);
    uint64_t at = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < BLOCKS; i++)
            jm_event(j, 1, ++at, ev_alloc(TN_KIND_DEVICE, (i + 1) << 9, 512));
        /* Freed in another order than they came, so that the index has to move entries. */
        for (uint64_t i = 0; i < BLOCKS; i++)
            jm_event(j, 1, ++at, ev_free(TN_KIND_DEVICE, (i * 7 % BLOCKS + 1) << 9));
    }
    load_journal(j);
    CHECK_CALLS(&device(0)->total, ROUNDS * BLOCKS, ROUNDS * BLOCKS, 0);
    ck_assert_uint_eq(device(0)->total.live_requested, 0);
    ck_assert_uint_eq(device(0)->total.live_backed, 0);
    ck_assert_uint_eq(device(0)->total.peak_requested, BLOCKS * 512);
    ck_assert_uint_eq(report->processes[0].frees_unknown, 0);
}
END_TEST

START_TEST(processes_share_a_device_by_uuid)
{
    jm *a = plain_journal(1), *b = plain_journal(2);
    jm_device(b, 1, 0x22, 1 << 30, "NVIDIA Other");
    jm_event(a, 1, 10, ev_alloc(TN_KIND_DEVICE, 0x1000, 100));
    jm_event(a, 1, 30, ev_free(TN_KIND_DEVICE, 0x1000));
    /* The same address in another process is another block; it lives while the first one does. */
    jm_event(b, 1, 20, ev_alloc(TN_KIND_DEVICE, 0x1000, 11));
    jm_event(b, 1, 40, ev_free(TN_KIND_DEVICE, 0x1000));
    tn_event other = ev_alloc(TN_KIND_DEVICE, 0x1000, 5);
    other.device = 1;
    jm_event(b, 1, 50, other);
    put_journal(a, "a");
    load_journal(b);
    ck_assert_uint_eq(report->place_count, 3);
    ck_assert_uint_eq(device(0)->total.peak_requested, 111);
    ck_assert_uint_eq(device(0)->total.live_requested, 0);
    ck_assert_uint_eq(device(1)->total.live_requested, 5);
    ck_assert_uint_eq(report->tier_sites, 3); /* none, no stack, and the one key of both */
    ck_assert_uint_eq(report->row_count, 2);  /* that key on each device */
}
END_TEST

START_TEST(a_device_without_record_gets_a_line)
{
    jm *j = plain_journal(1);
    tn_event e = ev_alloc(TN_KIND_DEVICE, 0x1000, 5);
    e.device = TN_DEVICE_NONE;
    e.site = 77; /* its SITE record was dropped */
    jm_event(j, 1, 1, e);
    load_journal(j);
    ck_assert_uint_eq(device(1)->ordinal, TN_DEVICE_NONE);
    ck_assert_uint_eq(device(1)->total.live_requested, 5);
    ck_assert_uint_eq(report->sites[report->rows[0].site].key, TN_SITE_NONE);
}
END_TEST

START_TEST(drops_and_damage_are_warnings)
{
    jm *j = plain_journal(1);
    jm_header(j)->dropped_events = 12;
    jm_header(j)->flags |= TN_HF_STOPPED;
    jm_header(j)->stop_error = TN_E_NOSPACE;
    load_journal(j);
    ck_assert_uint_eq(report->dropped_events, 12);
    ck_assert_ptr_nonnull(strstr(tn_report_warning(report, 0), "12 events"));
    ck_assert_ptr_nonnull(strstr(tn_report_warning(report, 1), tn_error_text(TN_E_NOSPACE)));
    ck_assert_ptr_null(tn_report_warning(report, 2));
    ck_assert_int_eq(tn_report_complete(report), 0);
    ck_assert_int_eq(tn_report_unread(report), 0);
}
END_TEST

START_TEST(what_makes_a_report_incomplete)
{
    static const struct { uint64_t events, records; uint32_t flags; int complete; } cases[] = {
        {0, 0, TN_HF_ENDED, 1}, {1, 0, TN_HF_ENDED, 0}, {0, 1, TN_HF_ENDED, 0}, {0, 0, TN_HF_ENDED | TN_HF_STOPPED, 0}, {0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        jm *j = plain_journal(1);
        jm_header(j)->dropped_events = cases[i].events;
        jm_header(j)->dropped_records = cases[i].records;
        jm_header(j)->flags = cases[i].flags;
        load_journal(j);
        ck_assert_int_eq(tn_report_complete(report), cases[i].complete);
        ck_assert_int_eq(tn_report_unread(report), 0);
        ck_assert_int_eq(remove(scratch_file("one.tnj")), 0);
        tn_report_free(report);
        report = NULL;
    }
}
END_TEST

START_TEST(one_bad_journal_of_two)
{
    jm *bad = plain_journal(2);
    jm_write(bad, scratch_file("bad.tnj"), 100);
    jm_free(bad);
    jm *j = plain_journal(1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 5));
    load_journal(j);
    ck_assert_uint_eq(report->process_count, 1);
    ck_assert_uint_eq(device(0)->total.live_requested, 5);
    ck_assert_int_eq(tn_report_complete(report), 0);
    ck_assert_int_eq(tn_report_unread(report), 1);
    ck_assert_ptr_nonnull(strstr(tn_report_warning(report, 0), "bad.tnj"));
}
END_TEST

START_TEST(what_cannot_be_loaded)
{
    char message[TN_REPORT_MESSAGE];
    ck_assert_int_eq(tn_report_load(scratch_path(), &report, message), TN_E_EMPTY);
    ck_assert_ptr_null(report);
    ck_assert_ptr_nonnull(strstr(message, "no journal"));
    ck_assert_int_eq(tn_report_load(scratch_file("none"), &report, message), TN_E_OPEN);
    jm *j = plain_journal(1);
    jm_header(j)->version = 99;
    jm_write(j, scratch_file("x.tnj"), 0);
    jm_free(j);
    ck_assert_int_eq(tn_report_load(scratch_file("x.tnj"), &report, message), TN_E_VERSION);
    ck_assert_int_eq(tn_report_load(scratch_path(), &report, message), TN_E_VERSION);
    ck_assert_ptr_nonnull(strstr(message, "x.tnj"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *tc = tcase_create("events");
    tcase_add_checked_fixture(tc, scratch_make, drop_report);
    tcase_add_test(tc, alloc_free_peak);
    tcase_add_test(tc, peak_of_the_sum_is_not_the_sum_of_peaks);
    tcase_add_test(tc, threads_interleave_by_stamp);
    tcase_add_test(tc, refused_is_counted_apart);
    tcase_add_test(tc, odd_frees);
    tcase_add_test(tc, size_zero_has_no_block);
    tcase_add_test(tc, reset_ends_what_native_ends);
    tcase_add_test(tc, context_events_that_end_nothing);
    tcase_add_test(tc, async_falls_at_its_free_call);
    tcase_add_test(tc, a_graphs_free_node_ends_its_block);
    tcase_add_test(tc, apart_from_the_sum);
    tcase_add_test(tc, many_blocks_leave_nothing_behind);
    tcase_add_test(tc, processes_share_a_device_by_uuid);
    tcase_add_test(tc, a_device_without_record_gets_a_line);
    tcase_add_test(tc, drops_and_damage_are_warnings);
    tcase_add_test(tc, what_makes_a_report_incomplete);
    tcase_add_test(tc, one_bad_journal_of_two);
    tcase_add_test(tc, what_cannot_be_loaded);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
