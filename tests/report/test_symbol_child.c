/* The reading child, with a reader that does what hostile files might make the real one do. The two rounds below stand in
 * for those of the report, which are then not linked. */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report_symbol_child.h"

static void act(const tn_symbol_job *job)
{
    if (strcmp(job->path, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(job->path, "abort") == 0)
        abort();
    if (strcmp(job->path, "exit") == 0)
        _exit(0);
    if (strcmp(job->path, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(job->path, "greedy") == 0) {
        /* Far more than is allowed: the limit answers, not the machine. */
        for (size_t got = 0; got < (size_t)4 << 30; got += 1 << 20) {
            char *block = malloc(1 << 20);
            if (!block)
                _exit(9);
            memset(block, 1, 1 << 20);
        }
    }
    if (strcmp(job->path, "liar") == 0)
        tn_tell_name(job, 1000000, "f", "dynsym", 1);
    if (strcmp(job->path, "mad") == 0)
        tn_tell_name_state(job, (tn_symbol_state)77);
}

void tn_symbol_names(const tn_symbol_job *job)
{
    act(job);
    tn_tell_name(job, 0, "_ZN1a1bEv", "dynsym", 4);
    tn_tell_name_state(job, TN_SYMBOL_STRIPPED);
}

void tn_symbol_lines(const tn_symbol_job *job)
{
    static char long_name[3 * TN_SYMBOL_NAME_MAX];
    static tn_symbol_frame frames[TN_SYMBOL_INLINED_MAX];
    memset(long_name, 'x', sizeof(long_name) - 1);
    for (size_t i = 0; i < TN_SYMBOL_INLINED_MAX; i++)
        frames[i] = (tn_symbol_frame){long_name, i % 2 ? NULL : long_name, (uint32_t)i};
    act(job);
    tn_tell_frames(job, 0, frames, TN_SYMBOL_INLINED_MAX);
    tn_tell_line_state(job, TN_SYMBOL_NOT_COVERED);
}

enum { JOBS_MAX = 8 };
static const uint64_t offsets[2] = {10, 20};
static tn_symbol_options options = {.debug_bytes = 64 << 20};
static tn_symbol_job jobs[JOBS_MAX];
static size_t job_count;
static struct answer { int names, frames; tn_symbol_state missing; int ended; } answers[JOBS_MAX];

static void take_name(void *arg, size_t job, size_t i, const char *name, const char *function, const char *source, uint64_t delta)
{
    (void)arg;
    ck_assert_uint_eq(i, 0);
    ck_assert_str_eq(name, "_ZN1a1bEv");
    ck_assert_str_eq(function, "a::b()");
    ck_assert_str_eq(source, "dynsym");
    ck_assert_uint_eq(delta, 4);
    answers[job].names++;
}

static void take_frames(void *arg, size_t job, size_t i, const tn_symbol_frame *frames, uint32_t count)
{
    (void)arg;
    ck_assert_uint_eq(i, 0);
    ck_assert_uint_eq(count, TN_SYMBOL_INLINED_MAX);
    ck_assert_uint_eq(strlen(frames[1].function), TN_SYMBOL_NAME_MAX);
    ck_assert_ptr_null(frames[1].file);
    ck_assert_ptr_nonnull(frames[2].file);
    ck_assert_uint_eq(frames[5].line, 5);
    answers[job].frames++;
}

static void take_missing(void *arg, size_t job, int lines, tn_symbol_state state)
{
    (void)arg;
    (void)lines;
    answers[job].missing = state;
    answers[job].ended++;
}

/* Runs a round over the named jobs. */
static double run(int lines, double seconds, ...)
{
    static const tn_symbol_answers to = {.name = take_name, .frames = take_frames, .missing = take_missing};
    va_list names;
    const char *name;
    job_count = 0;
    memset(answers, 0, sizeof(answers));
    va_start(names, seconds);
    while ((name = va_arg(names, const char *)))
        jobs[job_count++] = (tn_symbol_job){.path = name, .offsets = offsets, .count = 2, .options = &options};
    va_end(names);
    tn_symbol_round(jobs, job_count, lines, &seconds, &to);
    return seconds;
}

static void check_good(size_t i, int lines)
{
    ck_assert_int_eq(lines ? answers[i].frames : answers[i].names, 1);
    ck_assert_int_eq(answers[i].missing, lines ? TN_SYMBOL_NOT_COVERED : TN_SYMBOL_STRIPPED);
    ck_assert_int_eq(answers[i].ended, 1);
}

START_TEST(a_reader_that_dies_costs_its_own_module)
{
    for (int lines = 0; lines < 2; lines++) {
        run(lines, 30.0, "good", "crash", "good", "abort", "exit", "good", (char *)NULL);
        for (size_t i = 0; i < job_count; i++) {
            if (strcmp(jobs[i].path, "good") == 0) {
                check_good(i, lines);
                continue;
            }
            ck_assert_int_eq(answers[i].missing, TN_SYMBOL_FAILED);
            ck_assert_int_eq(answers[i].names + answers[i].frames, 0);
        }
    }
}
END_TEST

START_TEST(a_reader_that_hangs_leaves_time_for_the_next)
{
    double left = run(0, 2.0, "hang", "good", "hang", (char *)NULL);
    ck_assert_int_eq(answers[0].missing, TN_SYMBOL_FAILED);
    check_good(1, 0);
    ck_assert_int_eq(answers[2].missing, TN_SYMBOL_TIME);
    ck_assert(left == 0);
}
END_TEST

START_TEST(memory_has_a_limit)
{
    run(0, 30.0, "greedy", "good", (char *)NULL);
    ck_assert_int_eq(answers[0].missing, TN_SYMBOL_FAILED);
    check_good(1, 0);
}
END_TEST

START_TEST(what_cannot_be_an_answer_is_none)
{
    run(0, 30.0, "liar", "good", "mad", "good", (char *)NULL);
    ck_assert_int_eq(answers[0].missing, TN_SYMBOL_FAILED);
    check_good(1, 0);
    ck_assert_int_eq(answers[2].missing, TN_SYMBOL_FAILED);
    check_good(3, 0);
}
END_TEST

START_TEST(without_time_nothing_is_started)
{
    run(0, 0.0, "crash", "good", (char *)NULL);
    ck_assert_int_eq(answers[0].missing, TN_SYMBOL_TIME);
    ck_assert_int_eq(answers[1].missing, TN_SYMBOL_TIME);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("symbol child");
    TCase *tc = tcase_create("symbol child");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_reader_that_dies_costs_its_own_module);
    tcase_add_test(tc, a_reader_that_hangs_leaves_time_for_the_next);
    tcase_add_test(tc, memory_has_a_limit);
    tcase_add_test(tc, what_cannot_be_an_answer_is_none);
    tcase_add_test(tc, without_time_nothing_is_started);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
