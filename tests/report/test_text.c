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
    ck_assert_ptr_null(strstr(one, "feedfacecafef00d"));
    ck_assert_ptr_null(strstr(none, "00000000deadbeef"));
    ck_assert_ptr_nonnull(strstr(full, "  cudaMemGetInfo")); /* never called: only the full table has it */
    ck_assert_ptr_null(strstr(one, "  cudaMemGetInfo"));
    free(one);
    free(none);
    free(full);
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
    ck_assert_ptr_nonnull(strstr(cut, "engine+0xa004\n       ... 7 more\n"));
    ck_assert_ptr_null(strstr(cut, "0xa005"));
    ck_assert_ptr_nonnull(strstr(full, "engine+0xa00b"));
    free(cut);
    free(full);
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
    tcase_add_test(tc, long_stacks_are_cut);
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
