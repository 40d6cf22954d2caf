/* Where a device's memory went: the model of blocks, charges, and what no line has. Journals are made event by event. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report_device.h"
#include "report/report_device_owners.h"
#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)
#define QUIET (TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER)
#define ALONE (QUIET | TN_CHARGE_ALONE)
#define BASE (100 * MIB) /* in use before the run */
#define CONTEXT (500 * MIB)

static uint64_t at; /* the events' time */

static void put(jm *j, tn_event e) { jm_event(j, 1, at += 10, e); }

static tn_event ev_window(uint8_t kind, uint64_t began, uint64_t before, uint64_t after, uint64_t flags)
{
    tn_event e = ev(TN_EV_CHARGE, kind, JM_START + began, before);
    e.aux = after;
    e.aux2 = flags;
    e.site = 2;
    return e;
}

/* A call whose readings were taken at once before and after it. */
static void put_window(jm *j, uint8_t kind, uint64_t before, uint64_t after, uint64_t flags)
{
    put(j, ev_window(kind, at, before, after, flags));
}

static void put_reading(jm *j, uint64_t used, uint64_t cause)
{
    tn_event e = ev(TN_EV_CHARGE, TN_CHARGE_READING, cause, used);
    e.aux = used;
    e.aux2 = QUIET;
    put(j, e);
}

/* A process with a context, and the device read before it. */
static jm *begin(void)
{
    jm *j = plain_journal(10);
    at = 100;
    put(j, ev(TN_EV_CHARGE, TN_CHARGE_BASELINE, 0, BASE));
    put_window(j, TN_CHARGE_CONTEXT, BASE, BASE + CONTEXT, ALONE);
    return j;
}

static const tn_device_account *account(void)
{
    const tn_device_account *a = tn_device_account_of(report, 1);
    ck_assert_ptr_nonnull(a);
    /* Whatever happens, the lines add up, by site and by library. */
    int64_t lines = 0, owners = 0, kinds = 0;
    size_t count;
    for (size_t i = 0; i < a->line_count; i++)
        lines += tn_line_bytes(&a->lines[i]);
    tn_owner_sum *sums = tn_device_owners(report, a, &count);
    for (size_t i = 0; i < count; i++)
        owners += sums[i].bytes;
    free(sums);
    for (int k = 0; k < TN_LINE_KINDS; k++)
        kinds += a->last.kinds[k];
    ck_assert_int_eq(lines, a->last.accounted);
    ck_assert_int_eq(owners, a->last.accounted);
    ck_assert_int_eq(kinds, a->last.accounted);
    ck_assert_int_eq(a->last.own_used - a->last.accounted, a->last.unattributed);
    return a;
}

#define CHECK_ACCOUNT(a, own, rest)                        \
    do {                                                   \
        ck_assert_int_eq((a)->last.own_used, (int64_t)(own)); \
        ck_assert_int_eq((a)->last.unattributed, (int64_t)(rest)); \
    } while (0)

START_TEST(a_context_is_its_makers_and_the_baseline_nobodys)
{
    load_journal(begin());
    const tn_device_account *a = account();
    CHECK_ACCOUNT(a, CONTEXT, 0);
    ck_assert_int_eq(a->baseline, (int64_t)BASE);
    ck_assert_int_eq(a->last.kinds[TN_LINE_CONTEXT], (int64_t)CONTEXT);
    ck_assert_int_eq(a->line_count, 1);
    ck_assert_uint_ne(a->lines[0].site, TN_NO_INDEX);
}
END_TEST

START_TEST(without_nvml_context_and_baseline_are_one_line)
{
    jm *j = plain_journal(10);
    at = 100;
    put_window(j, TN_CHARGE_CONTEXT, 0, BASE + CONTEXT, QUIET | TN_CHARGE_NO_BEFORE);
    put(j, ev_alloc(TN_KIND_DEVICE, 64 * MIB, 8 * MIB));
    put_reading(j, BASE + CONTEXT + 8 * MIB, TN_READ_TIME);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert(!a->has_baseline && a->context_and_baseline);
    CHECK_ACCOUNT(a, BASE + CONTEXT + 8 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_CONTEXT], (int64_t)(BASE + CONTEXT));
}
END_TEST

/* Three blocks of one page, one of 1.03 MiB that fits into what another page has left, one of two pages. */
START_TEST(small_blocks_share_pages_where_they_stand)
{
    jm *j = begin();
    put(j, ev_alloc(TN_KIND_DEVICE, 1024 * MIB, 1));
    put(j, ev_alloc(TN_KIND_DEVICE, 1024 * MIB + 512, 513));
    put(j, ev_alloc(TN_KIND_DEVICE, 1026 * MIB, MIB / 2));
    put(j, ev_alloc(TN_KIND_DEVICE, 1026 * MIB + MIB / 2, 1077200));
    put(j, ev_alloc(TN_KIND_DEVICE, 1030 * MIB, 2 * MIB + 1));
    put_reading(j, BASE + CONTEXT + 8 * MIB, TN_READ_MARK);
    put(j, ev_free(TN_KIND_DEVICE, 1024 * MIB));
    put(j, ev_free(TN_KIND_DEVICE, 1026 * MIB));
    put(j, ev_free(TN_KIND_DEVICE, 1030 * MIB));
    put_reading(j, BASE + CONTEXT + 4 * MIB, TN_READ_MARK);
    put(j, ev_free(TN_KIND_DEVICE, 1024 * MIB + 512));
    put(j, ev_free(TN_KIND_DEVICE, 1026 * MIB + MIB / 2));
    put_reading(j, BASE + CONTEXT, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_uint_eq(a->mark_count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(a->marks[i].unattributed, 0);
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_BLOCKS], (int64_t)(512 + 1024 + MIB / 2 + 1077248 + 4 * MIB));
    ck_assert_int_eq(a->last.kinds[TN_LINE_SHARED], 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_BLOCKS], 0);
}
END_TEST

/* An allocation of which there is no event: nothing takes it up, whatever charges come before and after. */
START_TEST(what_was_not_recorded_stays_unattributed)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    put_window(j, TN_CHARGE_STREAM, used, used + 2 * MIB, ALONE);
    used += 2 * MIB + 64 * MIB;
    put_window(j, TN_CHARGE_LAUNCH, used, used + 4 * MIB, ALONE);
    used += 4 * MIB;
    put_reading(j, used, TN_READ_MARK);
    put_window(j, TN_CHARGE_SYNC, used, used - 64 * MIB, ALONE); /* and goes again in a wait: no line may fall below nothing */
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->marks[0].unattributed, (int64_t)(64 * MIB));
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_STREAM], (int64_t)(2 * MIB));
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_LAUNCH], (int64_t)(4 * MIB));
    CHECK_ACCOUNT(a, CONTEXT + 6 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_GROWTH], 0);
    ck_assert_int_eq(a->worst_unattributed, (int64_t)(64 * MIB));
}
END_TEST

/* Beside another thread's allocation of 32 MiB a launch measures 34 MiB: the model takes its part away, and the quiet reading agrees. */
START_TEST(a_charge_beside_other_calls_waits_for_a_quiet_reading)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT, began = at;
    put(j, ev_alloc(TN_KIND_DEVICE, 64 * MIB, 32 * MIB));
    put(j, ev_window(TN_CHARGE_LAUNCH, began, used, used + 34 * MIB, TN_CHARGE_QUIET_BEFORE));
    put_reading(j, used + 34 * MIB, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    CHECK_ACCOUNT(a, CONTEXT + 34 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_LAUNCH], (int64_t)(2 * MIB));
}
END_TEST

/* It measured a block that was gone at the quiet reading: it gets no more than that shows. And what that shows beyond is nobody's. */
START_TEST(a_charge_that_waited_gets_no_more_than_is_there)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    put_window(j, TN_CHARGE_MODULE, used, used + 40 * MIB, 0);
    put_window(j, TN_CHARGE_STREAM, used, used + 2 * MIB, 0);
    put_reading(j, used + 3 * MIB, TN_READ_MARK);
    put_window(j, TN_CHARGE_MODULE, used + 3 * MIB, used + 5 * MIB, 0);
    put_reading(j, used + 15 * MIB, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_MODULE] + a->marks[0].kinds[TN_LINE_STREAM], (int64_t)(3 * MIB));
    ck_assert_int_eq(a->marks[0].unattributed, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_MODULE] + a->last.kinds[TN_LINE_STREAM], (int64_t)(5 * MIB));
    CHECK_ACCOUNT(a, CONTEXT + 15 * MIB, 10 * MIB);
}
END_TEST

START_TEST(beside_a_call_without_a_record_nothing_is_charged)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    put_window(j, TN_CHARGE_MODULE, used, used + 40 * MIB, QUIET | TN_CHARGE_BLIND);
    put_window(j, TN_CHARGE_FIRST_USE, used + 40 * MIB, used + 80 * MIB, ALONE); /* more than any call takes at its first use */
    load_journal(j);
    CHECK_ACCOUNT(account(), CONTEXT + 80 * MIB, 80 * MIB);
}
END_TEST

/* A pool of 64 MiB with 40 MiB of ours in it; then 10 MiB in it that nobody recorded; then what a plain free left in its figure. */
START_TEST(pools_count_what_they_have_reserved_and_we_know_of)
{
    jm *j = begin();
    tn_event pool = ev(TN_EV_CHARGE, TN_CHARGE_POOL, 0xabc, 64 * MIB), gone = ev_free(TN_KIND_ASYNC, 64 * MIB);
    tn_event a1 = ev_alloc(TN_KIND_ASYNC, 64 * MIB, 40 * MIB);
    a1.stream = 1;
    put(j, a1);
    pool.aux = 40 * MIB;
    put(j, pool);
    put_reading(j, BASE + CONTEXT + 64 * MIB, TN_READ_MARK);
    pool.aux = 50 * MIB;
    put(j, pool);
    put_reading(j, BASE + CONTEXT + 64 * MIB, TN_READ_MARK);
    put(j, gone); /* by a plain free: no stream */
    put_reading(j, BASE + CONTEXT + 64 * MIB, TN_READ_MARK);
    pool.aux = 40 * MIB;
    put(j, pool);
    put_reading(j, BASE + CONTEXT + 64 * MIB, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->marks[0].unattributed, 0);
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_POOL_SLACK], (int64_t)(24 * MIB));
    ck_assert_int_eq(a->marks[1].unattributed, (int64_t)(10 * MIB));
    ck_assert_int_eq(a->marks[3].unattributed, 0);
    ck_assert_int_eq(a->marks[3].kinds[TN_LINE_POOL_SLACK], (int64_t)(64 * MIB));
    ck_assert_int_eq(a->last.pool_reserved, (int64_t)(64 * MIB));
    ck_assert_int_eq(a->last.pool_used, (int64_t)(40 * MIB));
}
END_TEST

START_TEST(managed_memory_is_charged_by_touch)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    put(j, ev_alloc(TN_KIND_MANAGED, 64 * MIB, 64 * MIB));
    put_reading(j, used, TN_READ_MARK);
    put_window(j, TN_CHARGE_MANAGED, used, used + 128 * MIB, ALONE);
    uint64_t began = at;
    put(j, ev_free(TN_KIND_MANAGED, 64 * MIB));
    put(j, ev_window(TN_CHARGE_MANAGED, began, used + 128 * MIB, used + 64 * MIB, ALONE));
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->marks[0].unattributed, 0);
    CHECK_ACCOUNT(a, CONTEXT + 64 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_MANAGED], (int64_t)(64 * MIB));
}
END_TEST

/* A kernel touches it while nobody waits. What grows beyond what there is of it is somebody else's. */
START_TEST(managed_memory_may_be_touched_at_any_time)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    put(j, ev_alloc(TN_KIND_MANAGED, 1024 * MIB, 300 * MIB));
    put_reading(j, used + 200 * MIB, TN_READ_MARK);
    put_reading(j, used + 310 * MIB, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->marks[0].kinds[TN_LINE_MANAGED], (int64_t)(200 * MIB));
    ck_assert_int_eq(a->marks[0].unattributed, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_MANAGED], (int64_t)(300 * MIB));
    CHECK_ACCOUNT(a, CONTEXT + 310 * MIB, 10 * MIB);
}
END_TEST

/* A reset ends blocks and charges and leaves a part of the context. */
START_TEST(an_ended_context_gives_back_what_it_was_charged)
{
    jm *j = begin();
    uint64_t used = BASE + CONTEXT;
    tn_event block = ev_alloc(TN_KIND_DEVICE, 64 * MIB, 10 * MIB), reset = ev(TN_EV_CONTEXT, TN_CTX_RESET, 0xc, 0);
    block.ctx = reset.ctx = 1;
    put_window(j, TN_CHARGE_LAUNCH, used, used + 30 * MIB, ALONE);
    put(j, block);
    uint64_t began = at;
    put(j, reset);
    tn_event end = ev_window(TN_CHARGE_CONTEXT, began, used + 40 * MIB, BASE + 127 * MIB, ALONE);
    end.result = 1;
    put(j, end);
    load_journal(j);
    const tn_device_account *a = account();
    CHECK_ACCOUNT(a, 127 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_CONTEXT], (int64_t)(127 * MIB));
    ck_assert_int_eq(a->last.kinds[TN_LINE_LAUNCH], 0);
}
END_TEST

/* The end is the last reading: what is freed after it is still there in it, and a reading beside other calls is none. */
START_TEST(the_end_is_the_last_quiet_reading)
{
    jm *j = begin();
    put(j, ev_alloc(TN_KIND_DEVICE, 64 * MIB, 10 * MIB));
    put_reading(j, BASE + CONTEXT + 10 * MIB, TN_READ_TIME);
    put(j, ev_free(TN_KIND_DEVICE, 64 * MIB));
    tn_event noisy = ev(TN_EV_CHARGE, TN_CHARGE_READING, TN_READ_TIME, 5);
    noisy.aux = 5;
    put(j, noisy);
    load_journal(j);
    const tn_device_account *a = account();
    CHECK_ACCOUNT(a, CONTEXT + 10 * MIB, 0);
    ck_assert_int_eq(a->last.kinds[TN_LINE_BLOCKS], (int64_t)(10 * MIB));
    ck_assert_uint_eq(a->unquiet, 1);
}
END_TEST

START_TEST(neighbours_that_grow_are_not_this_runs)
{
    jm *j = begin();
    tn_event own = ev(TN_EV_CHARGE, TN_CHARGE_NEIGHBOUR, 10, CONTEXT), other = ev(TN_EV_CHARGE, TN_CHARGE_NEIGHBOUR, 99, 300 * MIB);
    own.aux2 = other.aux2 = 2;
    other.aux = 1;
    put(j, own);
    put(j, other);
    put_reading(j, BASE + CONTEXT, TN_READ_MARK);
    other.bytes = 350 * MIB;
    put(j, own);
    put(j, other);
    put_reading(j, BASE + CONTEXT + 50 * MIB, TN_READ_MARK);
    load_journal(j);
    const tn_device_account *a = account();
    ck_assert_int_eq(a->neighbours, (int64_t)(350 * MIB));
    CHECK_ACCOUNT(a, CONTEXT, 0);
}
END_TEST

START_TEST(a_device_that_nobody_read_has_no_account)
{
    jm *j = plain_journal(10);
    jm_event(j, 1, 100, ev_alloc(TN_KIND_DEVICE, 64 * MIB, MIB));
    load_journal(j);
    ck_assert_ptr_null(tn_device_account_of(report, 1));
}
END_TEST

/* The pool of a process that has ended is not charged to the next one's context. */
START_TEST(what_a_process_held_ends_with_it)
{
    jm *a = begin();
    tn_event pool = ev(TN_EV_CHARGE, TN_CHARGE_POOL, 0xabc, 64 * MIB);
    put(a, ev_alloc(TN_KIND_ASYNC, 64 * MIB, 40 * MIB));
    pool.aux = 40 * MIB;
    put(a, pool);
    put_reading(a, BASE + CONTEXT + 64 * MIB, TN_READ_MARK);
    jm_header(a)->mono_last_ns = jm_header(a)->mono_start_ns + at;
    jm *b = plain_journal(11);
    at += 1000;
    put_window(b, TN_CHARGE_CONTEXT, BASE, BASE + CONTEXT, ALONE);
    put_reading(b, BASE + CONTEXT, TN_READ_MARK);
    put_journal(a, "a");
    put_journal(b, "b");
    report = load_scratch();
    const tn_device_account *account_now = account();
    CHECK_ACCOUNT(account_now, CONTEXT, 0);
    ck_assert_int_eq(account_now->last.kinds[TN_LINE_CONTEXT], (int64_t)CONTEXT);
    ck_assert_int_eq(account_now->last.pool_reserved, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device");
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, scratch_make, drop_report);
    tcase_add_test(c, a_context_is_its_makers_and_the_baseline_nobodys);
    tcase_add_test(c, without_nvml_context_and_baseline_are_one_line);
    tcase_add_test(c, small_blocks_share_pages_where_they_stand);
    tcase_add_test(c, what_was_not_recorded_stays_unattributed);
    tcase_add_test(c, a_charge_beside_other_calls_waits_for_a_quiet_reading);
    tcase_add_test(c, a_charge_that_waited_gets_no_more_than_is_there);
    tcase_add_test(c, beside_a_call_without_a_record_nothing_is_charged);
    tcase_add_test(c, pools_count_what_they_have_reserved_and_we_know_of);
    tcase_add_test(c, what_a_process_held_ends_with_it);
    tcase_add_test(c, managed_memory_is_charged_by_touch);
    tcase_add_test(c, managed_memory_may_be_touched_at_any_time);
    tcase_add_test(c, an_ended_context_gives_back_what_it_was_charged);
    tcase_add_test(c, the_end_is_the_last_quiet_reading);
    tcase_add_test(c, neighbours_that_grow_are_not_this_runs);
    tcase_add_test(c, a_device_that_nobody_read_has_no_account);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
