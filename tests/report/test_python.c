/* Sites with a Python part: told apart and merged by both keys, in JSON and text, and records that are not what they should be. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/report_test.h"

#define MIB ((uint64_t)1 << 20)

static char *text;
static json_t *document;

static char *written(int as_json)
{
    size_t length = 0;
    tn_report_options options = {.top = 20};
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(as_json ? tn_report_json(report, out) : tn_report_text(report, &options, out), 0);
    fclose(out);
    return text;
}

static json_t *sites(void)
{
    document = json_loads(written(1), 0, NULL);
    ck_assert_ptr_nonnull(document);
    return json_object_get(document, "sites");
}

static void drop(void)
{
    json_decref(document);
    free(text);
    document = NULL;
    text = NULL;
    drop_report();
}

static tn_event from(uint32_t site, uint64_t addr, uint64_t bytes)
{
    tn_event e = ev_alloc(TN_KIND_DEVICE, addr, bytes);
    e.site = site;
    return e;
}

/* Native site 2 (key 0x2222), called from `f`, from `g` and from no Python code. */
static jm *called_from_two(uint32_t pid, uint32_t first_id)
{
    jm *j = plain_journal(pid);
    const uint32_t f[][2] = {{1, 10}, {3, 30}}, g[][2] = {{2, 20}, {3, 0}};
    jm_python(j, 1, "/srv/app/model.py", "Model.f", 8);
    jm_python(j, 2, "/srv/app/model.py", "g", 18);
    jm_python(j, 3, "<string>", "<module>", 1);
    jm_python_site(j, first_id, 2, 0xaaaa, 2, f, 0);
    jm_python_site(j, first_id + 1, 2, 0xbbbb, 2, g, TN_PF_CUT);
    jm_event(j, 1, 10, from(first_id, 0x1000000, 3 * MIB));
    jm_event(j, 1, 20, from(first_id + 1, 0x2000000, 2 * MIB));
    jm_event(j, 1, 30, from(2, 0x3000000, MIB));
    return j;
}

START_TEST(told_apart)
{
    load_journal(called_from_two(7, 5));
    json_t *list = sites();
    static const char *const keys[] = {"000000000000aaaa", "000000000000bbbb", NULL};
    ck_assert_uint_eq(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *site = json_array_get(list, i), *key = json_object_get(site, "python_key");
        ck_assert_str_eq(json_string_value(json_object_get(site, "key")), "0000000000002222");
        if (keys[i])
            ck_assert_str_eq(json_string_value(key), keys[i]);
        else
            ck_assert(json_is_null(key));
        ck_assert_int_eq(json_integer_value(json_object_get(site, "allocs")), 1);
        ck_assert_uint_eq(json_array_size(json_object_get(site, "frames")), json_array_size(json_object_get(json_array_get(list, 0), "frames")));
        ck_assert_uint_eq(json_array_size(json_object_get(site, "python_frames")), keys[i] ? 2 : 0);
        ck_assert_int_eq(json_is_true(json_object_get(site, "python_cut")), i == 1);
    }
    json_t *frame = json_array_get(json_object_get(json_array_get(list, 0), "python_frames"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(frame, "function")), "Model.f");
    ck_assert_str_eq(json_string_value(json_object_get(frame, "file")), "/srv/app/model.py");
    ck_assert_int_eq(json_integer_value(json_object_get(frame, "line")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(frame, "first_line")), 8);
    frame = json_array_get(json_object_get(json_array_get(list, 1), "python_frames"), 1);
    ck_assert(json_is_null(json_object_get(frame, "line")));
}
END_TEST

/* The ids differ between processes; the keys do not. */
START_TEST(merged_over_processes)
{
    put_journal(called_from_two(7, 5), "a");
    put_journal(called_from_two(8, 50), "b");
    report = load_scratch();
    json_t *list = sites();
    ck_assert_uint_eq(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(list, i), "allocs")), 2);
}
END_TEST

START_TEST(shown_above_the_native_frames)
{
    load_journal(called_from_two(7, 5));
    char *all = written(0), *row = strstr(all, "0000000000002222/000000000000aaaa"), *second = strstr(all, "0000000000002222/000000000000bbbb");
    ck_assert_ptr_nonnull(row);
    ck_assert_ptr_nonnull(second);
    char *f = strstr(row, "       Model.f  app/model.py:10\n       <module>  <string>:30\n");
    ck_assert_ptr_nonnull(f);
    ck_assert(f < second);
    ck_assert_ptr_nonnull(strstr(second, "       g  app/model.py:20\n       <module>  <string>\n       ... deeper Python callers were not recorded\n"));
    ck_assert_ptr_nonnull(strstr(second, "0000000000002222  device"));
}
END_TEST

/* A function without a record, records cut short, a native site that comes later than the pair: counted as damage, never followed. */
START_TEST(damaged_records)
{
    jm *j = called_from_two(7, 5);
    const uint32_t unknown[][2] = {{9, 1}};
    jm_python_site(j, 9, 2, 0xcccc, 1, unknown, 0);
    jm_python_site(j, 10, 11, 0xdddd, 1, unknown, 0);
    jm_python_site(j, 12, 2, 0xeeee, TN_PYTHON_FRAMES_MAX + 1, (const uint32_t[TN_PYTHON_FRAMES_MAX + 1][2]){{1, 1}}, 0);
    jm_event(j, 1, 40, from(9, 0x4000000, 8 * MIB));
    jm_event(j, 1, 50, from(10, 0x5000000, 4 * MIB));
    load_journal(j);
    json_t *list = sites(), *first = json_array_get(list, 0), *frame = json_array_get(json_object_get(first, "python_frames"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "python_key")), "000000000000cccc");
    ck_assert(json_is_null(json_object_get(frame, "function")) && json_is_null(json_object_get(frame, "first_line")));
    ck_assert(json_is_null(json_object_get(json_array_get(list, 1), "python_key")));
    ck_assert_ptr_nonnull(tn_reader_damage(report->processes[0].reader));
    free(text);
    ck_assert_ptr_nonnull(strstr(written(0), "[unknown Python function]"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("python");
    TCase *tests = tcase_create("python");
    tcase_add_checked_fixture(tests, scratch_make, drop);
    tcase_add_test(tests, told_apart);
    tcase_add_test(tests, merged_over_processes);
    tcase_add_test(tests, shown_above_the_native_frames);
    tcase_add_test(tests, damaged_records);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
