/* The text: one short golden file, its width, and what only some runs have. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_names.h"
#include "report/report_text_parts.h"
#include "tests/report/report_test.h"

static char *text_of(size_t top, int full)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    tn_report_options options = {.top = top, .full = full};
    ck_assert_int_eq(tn_report_text(report, &options, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

static char *file_text(const char *path)
{
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    char *text = calloc(1, 65536);
    size_t got = fread(text, 1, 65535, in);
    ck_assert_uint_gt(got, 0);
    fclose(in);
    return text;
}

static void check_width(const char *text)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        ck_assert_msg(length <= TN_TEXT_COLUMNS, "%zu columns: %.*s", length, (int)length, line);
        line += length + (line[length] != 0);
    }
}

START_TEST(golden)
{
    put_journal(jm_example(4242), "a");
    report = load_scratch();
    char *text = text_of(20, 0), *wanted = file_text("tests/report/golden/example.txt");
    ck_assert_str_eq(text, wanted);
    check_width(text);
    char *again = text_of(20, 0);
    ck_assert_str_eq(text, again);
    free(text);
    free(again);
    free(wanted);
}
END_TEST

START_TEST(top_and_full)
{
    put_journal(jm_example(1), "a");
    report = load_scratch();
    char *one = text_of(1, 0), *none = text_of(0, 0), *full = text_of(20, 1);
    ck_assert_ptr_nonnull(strstr(one, "Sites (1 of 3,"));
    ck_assert_ptr_null(strstr(one, ". feedfacecafef00d"));
    ck_assert_ptr_null(strstr(none, "00000000deadbeef"));
    ck_assert_ptr_nonnull(strstr(full, "  cudaMemGetInfo")); /* never called: only the full table has it */
    ck_assert_ptr_null(strstr(one, "  cudaMemGetInfo"));
    free(one);
    free(none);
    free(full);
}
END_TEST

/* A mark of a process with two devices has a line for each, and they say which is which. */
START_TEST(steps_name_their_devices)
{
    jm *j = plain_journal(1);
    jm_device(j, 1, 0x22, 1 << 30, "NVIDIA Other");
    jm_string(j, 1, "loaded");
    tn_event second = ev_alloc(TN_KIND_DEVICE, 0x9000000, 8 << 20);
    second.device = 1;
    jm_event(j, 1, 10, ev_alloc(TN_KIND_DEVICE, 0x1000000, 4 << 20));
    jm_event(j, 1, 20, second);
    jm_event(j, 1, 30, ev(TN_EV_MARK, 0, 1, 0));
    put_journal(j, "a");
    report = load_scratch();
    char *text = text_of(20, 0);
    ck_assert_ptr_nonnull(strstr(text, "   4.0 MiB    +4.0 MiB           -  device 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "   8.0 MiB    +8.0 MiB           -  device 1: loaded\n"));
    check_width(text);
    free(text);
}
END_TEST

START_TEST(long_stacks_are_cut)
{
    jm *j = plain_journal(1);
    uint64_t frames[12][2];
    for (uint64_t i = 0; i < 12; i++) {
        frames[i][0] = 1;
        frames[i][1] = 0xa000 + i;
    }
    jm_site(j, 3, 0x3333, 12, (const uint64_t(*)[2])frames);
    tn_event e = ev_alloc(TN_KIND_DEVICE, 0x1000, 5);
    e.site = 3;
    jm_event(j, 1, 1, e);
    put_journal(j, "a");
    report = load_scratch();
    char *cut = text_of(20, 0), *full = text_of(20, 1);
    ck_assert_ptr_nonnull(strstr(cut, "engine+0xa004  (a)\n       ... 7 more\n"));
    ck_assert_ptr_null(strstr(cut, "0xa005"));
    ck_assert_ptr_nonnull(strstr(full, "engine+0xa00b"));
    free(cut);
    free(full);
}
END_TEST

static size_t times(const char *text, const char *word)
{
    size_t count = 0;
    while ((text = strstr(text, word))) {
        count++;
        text += strlen(word);
    }
    return count;
}

START_TEST(a_missing_name_is_explained_once)
{
    put_journal(jm_example(1), "a");
    report = load_scratch();
    for (int full = 0; full < 2; full++) {
        char *text = text_of(20, full);
        check_width(text);
        ck_assert_uint_eq(times(text, "       engine+0x1234  (c)\n"), 2);
        ck_assert_uint_eq(times(text, "cannot be read here"), 1);
        ck_assert_ptr_nonnull(strstr(text, "  (a) 1 frame without a name: the module has no build-id"));
        ck_assert_ptr_nonnull(strstr(text, "  (c) 5 frames without a name: the module's file cannot be read here.\n"));
        free(text);
    }
}
END_TEST

START_TEST(numbers_and_nouns_agree)
{
    jm *j = plain_journal(1);
    jm_count(j, 1, 0, 1);
    jm_event(j, 1, 1, ev_alloc(TN_KIND_DEVICE, 0x1000, 5));
    jm_event(j, 1, 2, ev_free(TN_KIND_DEVICE, 0x1000));
    jm_event(j, 1, 3, ev_free(TN_KIND_DEVICE, 0x5000));
    tn_event e = ev_free(TN_KIND_DEVICE, 0x1000);
    e.result = 1;
    jm_event(j, 1, 4, e);
    jm_event(j, 1, 5, ev_alloc(TN_KIND_PITCH, 0x1000, 5));
    jm_event(j, 1, 6, ev_alloc(TN_KIND_PITCH, 0x1000, 5));
    jm_event(j, 1, 7, ev(TN_EV_CONTEXT, TN_CTX_RESET, 0, 0));
    jm_header(j)->dropped_events = 1;
    jm_header(j)->dropped_records = 2;
    jm_coverage(j, TN_COV_NOTE, "so");
    put_journal(j, "a");
    report = load_scratch();
    char *text = text_of(20, 0);
    static const char *const said[] = {
        "dropped 1 event and 2 records:", "; 1 alloc, 1 free\n", "; 2 allocs, 0 frees\n", "  1 free was of a block that no journal knows.\n",
        "  1 free was refused by CUDA, which freed nothing.\n", "  1 address was handed out again ", "  1 block was ended by a device reset",
        "  1 more was resolved and never called.\n", "note, 1 of 1 process: so\n", "  (a) 2 frames without a name:",
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        ck_assert_msg(strstr(text, said[i]) != NULL, "'%s' is not in:\n%s", said[i], text);
    free(text);
}
END_TEST

START_TEST(the_runtime_is_named_where_it_was_seen)
{
    jm *j = plain_journal(1);
    jm_header(j)->driver_version = 13010;
    jm_header(j)->runtime_version = 12090;
    load_journal(j);
    char *text = text_of(0, 0);
    ck_assert_ptr_nonnull(strstr(text, "testhost; CUDA driver 13.1, CUDA runtime 12.9\n"));
    free(text);
    tn_report_free(report);
    ck_assert_int_eq(remove(scratch_file("one.tnj")), 0);
    j = plain_journal(1);
    jm_header(j)->driver_version = 13010;
    jm_header(j)->runtime_version = 0;
    load_journal(j);
    text = text_of(0, 0);
    ck_assert_ptr_nonnull(strstr(text, "testhost; CUDA driver 13.1\n"));
    free(text);
}
END_TEST

START_TEST(live_is_explained_and_processes_counted)
{
    jm *a = plain_journal(1), *b = plain_journal(2);
    jm_header(b)->flags = 0;
    put_journal(a, "a");
    put_journal(b, "b");
    report = load_scratch();
    char *text = text_of(0, 0);
    ck_assert_ptr_nonnull(strstr(text, "  processes  2 with CUDA: 1 ended, 1 killed or gone by _exit, 0 running\n"));
    ck_assert_ptr_nonnull(strstr(text, "live is what each process had not freed at its end"));
    check_width(text);
    free(text);
}
END_TEST

START_TEST(warnings_come_first)
{
    jm *j = plain_journal(7);
    jm_header(j)->dropped_events = 3;
    put_journal(j, "a");
    report = load_scratch();
    char *text = text_of(20, 0);
    ck_assert_int_eq(strncmp(text, "WARNING: process 7 dropped 3 events", 35), 0);
    free(text);
}
END_TEST

START_TEST(control_characters_stay_out)
{
    jm *j = plain_journal(1);
    memcpy(jm_header(j)->cmdline, "a\033[31mb\0\001", 9);
    jm_coverage(j, TN_COV_NOTE, "bell \007 here");
    put_journal(j, "a");
    report = load_scratch();
    char *text = text_of(20, 1);
    for (const char *p = text; *p; p++)
        ck_assert_msg(*p == '\n' || (unsigned char)*p >= 0x20, "byte %d", *p);
    free(text);
}
END_TEST

START_TEST(full_device_is_reported)
{
    put_journal(jm_example(1), "a");
    report = load_scratch();
    FILE *out = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(out);
    tn_report_options options = {.top = 20};
    ck_assert_int_eq(tn_report_text(report, &options, out), -1);
    fclose(out);
    out = fopen("/dev/full", "w");
    ck_assert_int_eq(tn_report_json(report, out), -1);
    fclose(out);
}
END_TEST

START_TEST(figures)
{
    static const struct { uint64_t bytes; const char *text; } cases[] = {
        {0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"}, {(1 << 20) - 1, "1.0 MiB"}, {1 << 20, "1.0 MiB"},
        {(uint64_t)527 << 20, "527.0 MiB"}, {150156083200u, "139.8 GiB"}, {(uint64_t)4 << 40, "4.0 TiB"}, {UINT64_MAX, "16777216.0 TiB"},
    };
    char out[TN_FIGURE];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_str_eq(tn_format_bytes(cases[i].bytes, out), cases[i].text);
    ck_assert_str_eq(tn_format_duration(400000, out), "0.4 ms");
    ck_assert_str_eq(tn_format_duration(12345678901, out), "12.3 s");
    ck_assert_str_eq(tn_format_duration(192000000000, out), "3 min 12 s");
    ck_assert_str_eq(tn_format_version(12080, out), "12.8");
    ck_assert_str_eq(tn_format_version(0, out), "unknown");
    ck_assert_str_eq(tn_kind_name(TN_KIND_COUNT), "unknown");
    for (unsigned k = 0; k < TN_KIND_COUNT; k++)
        ck_assert_str_ne(tn_kind_name(k), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, scratch_make, drop_report);
    tcase_add_test(tc, golden);
    tcase_add_test(tc, top_and_full);
    tcase_add_test(tc, steps_name_their_devices);
    tcase_add_test(tc, long_stacks_are_cut);
    tcase_add_test(tc, a_missing_name_is_explained_once);
    tcase_add_test(tc, numbers_and_nouns_agree);
    tcase_add_test(tc, the_runtime_is_named_where_it_was_seen);
    tcase_add_test(tc, live_is_explained_and_processes_counted);
    tcase_add_test(tc, warnings_come_first);
    tcase_add_test(tc, control_characters_stay_out);
    tcase_add_test(tc, full_device_is_reported);
    tcase_add_test(tc, figures);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
