/* Several processes of one run: what they had at the same time, and what they left. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report/report_run.h"
#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)
#define SECOND ((uint64_t)1000000000)

/* A process that began at `start`, ran its exit handlers at `end` (both in seconds) and freed nothing. */
static jm *holder(uint32_t pid, uint64_t start, uint64_t end)
{
    jm *j = plain_journal(pid);
    tn_journal_header *h = jm_header(j);
    h->mono_start_ns = start * SECOND;
    h->mono_last_ns = end * SECOND;
    h->tsc_last = h->tsc_start + (end - start) * SECOND;
    jm_event(j, 1, SECOND / 10, ev_alloc(TN_KIND_DEVICE, 0x1000, 100 * MIB));
    return j;
}

static void put_numbered(jm *j, uint32_t number)
{
    char name[32];
    snprintf(name, sizeof(name), "p%u", number);
    put_journal(j, name);
}

static void check_all_lines(uint64_t live, uint64_t peak)
{
    const tn_stat *all = &device(0)->total;
    ck_assert_uint_eq(all->live_requested, live);
    ck_assert_uint_eq(all->live_backed, live);
    ck_assert_uint_eq(all->peak_requested, peak);
    ck_assert_uint_eq(all->peak_backed, peak);
    ck_assert_mem_eq(all, kind(TN_KIND_DEVICE), sizeof(*all));
    ck_assert_mem_eq(all, &report->rows[0].stat, sizeof(*all));
    ck_assert_mem_eq(all, &device(0)->apis[TN_KIND_DEVICE], sizeof(*all));
}

START_TEST(one_after_the_other)
{
    for (uint32_t i = 0; i < 4; i++)
        put_numbered(holder(10 + i, 10 * (i + 1), 10 * (i + 1) + 5), i);
    report = load_scratch();
    check_all_lines(400 * MIB, 100 * MIB);
    CHECK_CALLS(&device(0)->total, 4, 0, 0);
}
END_TEST

START_TEST(a_killed_process_ran_until_its_last_event)
{
    jm *j = holder(10, 10, 10); /* the clock pair of its first chunk, never renewed */
    tn_run run;
    jm_header(j)->flags &= ~(uint32_t)TN_HF_ENDED;
    jm_header(j)->tsc_hz = SECOND;
    jm_event(j, 1, 7 * SECOND, ev_alloc(TN_KIND_DEVICE, 0x9000, MIB));
    put_numbered(j, 0);
    report = load_scratch();
    tn_run_collect(report, &run);
    ck_assert_uint_eq(run.duration_ns, 7 * SECOND);
}
END_TEST

START_TEST(some_at_the_same_time)
{
    put_numbered(holder(10, 10, 15), 0);
    put_numbered(holder(11, 14, 30), 1); /* with the first and with the third */
    put_numbered(holder(12, 20, 25), 2);
    put_numbered(holder(13, 40, 45), 3);
    report = load_scratch();
    check_all_lines(400 * MIB, 200 * MIB);
}
END_TEST

START_TEST(stamps_do_not_outlast_the_process)
{
    /* The first one's last stamp is a second late on the common clock: the second one had begun by then. */
    jm *a = holder(10, 10, 15);
    jm_event(a, 1, 7 * SECOND, ev_alloc(TN_KIND_DEVICE, 0x9000000, 1 * MIB));
    put_numbered(a, 0);
    put_numbered(holder(11, 16, 20), 1);
    report = load_scratch();
    check_all_lines(201 * MIB, 101 * MIB);
}
END_TEST

START_TEST(ranges_and_handles_end_too)
{
    for (uint32_t i = 0; i < 2; i++) {
        jm *j = plain_journal(10 + i);
        jm_header(j)->mono_start_ns = 10 * (i + 1) * SECOND;
        jm_header(j)->mono_last_ns = (10 * (i + 1) + 5) * SECOND;
        jm_event(j, 1, 1, ev_alloc(TN_KIND_VMM_HANDLE, 7, 2 * MIB));
        jm_event(j, 1, 2, ev(TN_EV_VMM_RESERVE, 0, 0x100000000, 4 * MIB));
        tn_event map = ev(TN_EV_VMM_MAP, 0, 0x100000000, 2 * MIB);
        map.aux = 7;
        jm_event(j, 1, 3, map);
        /* Released and still mapped: it lives as long as the mapping. */
        jm_event(j, 1, 4, ev_free(TN_KIND_VMM_HANDLE, 7));
        put_numbered(j, i);
    }
    report = load_scratch();
    ck_assert_uint_eq(kind(TN_KIND_VMM_HANDLE)->peak_requested, 2 * MIB);
    ck_assert_uint_eq(kind(TN_KIND_VMM_HANDLE)->live_requested, 4 * MIB);
    ck_assert_uint_eq(report->reserved.peak_requested, 4 * MIB);
    ck_assert_uint_eq(report->reserved.live_requested, 8 * MIB);
    ck_assert_uint_eq(report->mapped.peak_requested, 2 * MIB);
    ck_assert_uint_eq(report->mapped.live_requested, 4 * MIB);
    CHECK_CALLS(&report->mapped, 2, 0, 0);
}
END_TEST

/* Without exit handlers: killed, or still there. */
static jm *unended(uint32_t pid, uint64_t start)
{
    jm *j = holder(pid, start, start + 5);
    tn_journal_header *h = jm_header(j);
    h->flags &= ~(uint32_t)TN_HF_ENDED;
    h->mono_last_ns = h->mono_start_ns; /* no chunk was made after the first */
    h->tsc_last = h->tsc_start;
    return j;
}

/* The journal as if written in this boot of this machine. */
static jm *here(jm *j)
{
    char *boot = jm_header(j)->boot_id;
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
    ck_assert_ptr_nonnull(in);
    memset(boot, 0, sizeof(jm_header(j)->boot_id));
    ck_assert_ptr_nonnull(fgets(boot, sizeof(jm_header(j)->boot_id), in));
    boot[strcspn(boot, "\n")] = 0;
    fclose(in);
    return j;
}

static uint64_t now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

START_TEST(killed_in_another_boot)
{
    put_numbered(unended((uint32_t)getpid(), 10), 0);
    put_numbered(holder(11, 20, 25), 1);
    report = load_scratch();
    ck_assert_int_eq(report->processes[0].ended, 1);
    check_all_lines(200 * MIB, 100 * MIB);
}
END_TEST

START_TEST(killed_here)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    put_numbered(here(unended((uint32_t)child, now_seconds())), 0);
    put_numbered(here(holder(11, now_seconds() + 20, now_seconds() + 25)), 1);
    report = load_scratch();
    check_all_lines(200 * MIB, 100 * MIB);
}
END_TEST

START_TEST(its_number_was_given_again)
{
    /* This process is younger than a journal from the first second of the boot. */
    put_numbered(here(unended((uint32_t)getpid(), 0)), 0);
    put_numbered(here(holder(11, 20, 25)), 1);
    report = load_scratch();
    check_all_lines(200 * MIB, 100 * MIB);
}
END_TEST

START_TEST(still_running)
{
    put_numbered(here(unended((uint32_t)getpid(), now_seconds() + 1)), 0);
    put_numbered(here(holder(11, now_seconds() + 20, now_seconds() + 25)), 1);
    report = load_scratch();
    ck_assert_int_eq(report->processes[0].ended, 0);
    ck_assert_int_eq(report->processes[1].ended, 1);
    check_all_lines(200 * MIB, 200 * MIB);
}
END_TEST

START_TEST(became_another_program)
{
    put_numbered(here(unended((uint32_t)getpid(), now_seconds() + 1)), 0);
    put_numbered(here(unended((uint32_t)getpid(), now_seconds() + 20)), 1);
    report = load_scratch();
    ck_assert_int_eq(report->processes[0].ended, 1);
    ck_assert_int_eq(report->processes[1].ended, 0);
    check_all_lines(200 * MIB, 100 * MIB);
}
END_TEST

START_TEST(a_zombie_has_ended)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    put_numbered(here(unended((uint32_t)child, now_seconds() + 1)), 0);
    report = load_scratch();
    ck_assert_int_eq(report->processes[0].ended, 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("processes");
    TCase *tc = tcase_create("processes");
    tcase_add_checked_fixture(tc, scratch_make, drop_report);
    tcase_add_test(tc, one_after_the_other);
    tcase_add_test(tc, a_killed_process_ran_until_its_last_event);
    tcase_add_test(tc, some_at_the_same_time);
    tcase_add_test(tc, stamps_do_not_outlast_the_process);
    tcase_add_test(tc, ranges_and_handles_end_too);
    tcase_add_test(tc, killed_in_another_boot);
    tcase_add_test(tc, killed_here);
    tcase_add_test(tc, its_number_was_given_again);
    tcase_add_test(tc, still_running);
    tcase_add_test(tc, became_another_program);
    tcase_add_test(tc, a_zombie_has_ended);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
