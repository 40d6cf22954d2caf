/* The JSON document's shape, read back with jansson. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/report_test.h"

static char *text;
static json_t *document;

static void load(void)
{
    report = load_scratch();
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(tn_report_json(report, out), 0);
    fclose(out);
    tn_report_free(report);
    report = NULL;
    json_error_t error;
    document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(document != NULL, "%s", error.text);
}

static json_t *at(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "no key %s", key);
    return value;
}

static json_int_t number(json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(at(object, key)), "%s is no integer", key);
    return json_integer_value(at(object, key));
}

static const char *string(json_t *object, const char *key)
{
    ck_assert_msg(json_is_string(at(object, key)), "%s is no string", key);
    return json_string_value(at(object, key));
}

static void check_keys(json_t *object, const char *const *keys, int null)
{
    for (; *keys; keys++)
        ck_assert_msg(json_is_null(at(object, *keys)) == null || !null, "%s is not null", *keys);
}

START_TEST(top_level)
{
    static const char *const wanted[] = {"schema", "run", "devices", "host", "phases", "marks", "ranges", "serving", "routing", "checks", "sites", "growth", "refusals",
                                         "coverage", "coverage_notes", "dropped_events", "processes"};
    put_journal(jm_example(4242), "a");
    load();
    size_t i = 0;
    const char *key;
    json_t *value;
    json_object_foreach(document, key, value) {
        ck_assert_uint_lt(i, sizeof(wanted) / sizeof(wanted[0]));
        ck_assert_str_eq(key, wanted[i++]);
        ck_assert_ptr_nonnull(value);
    }
    ck_assert_uint_eq(i, sizeof(wanted) / sizeof(wanted[0]));
    ck_assert_str_eq(string(document, "schema"), "tenure-report/1");
    ck_assert_int_eq(number(document, "dropped_events"), 0);
}
END_TEST

START_TEST(what_is_not_measured_is_null)
{
    static const char *const device[] = {"own_used_bytes", "baseline_bytes", "neighbour_bytes", "accounted_bytes", "accounted_ratio",
                                         "unattributed_bytes", "charges", "tiers", NULL};
    static const char *const serving[] = {"driver_allocations", "served_allocations", "pool_growths", "graph_growths",
                                          "charge_growths", "by_site", NULL};
    static const char *const routing[] = {"planned_sites", "served_calls", "native_calls", "spilled_calls", "unplanned_calls", NULL};
    put_journal(jm_example(4242), "a");
    load();
    check_keys(json_array_get(at(document, "devices"), 0), device, 1);
    check_keys(at(document, "serving"), serving, 1);
    check_keys(at(document, "routing"), routing, 1);
}
END_TEST

START_TEST(devices_and_host)
{
    put_journal(jm_example(4242), "a");
    load();
    ck_assert_uint_eq(json_array_size(at(document, "devices")), 1);
    json_t *d = json_array_get(at(document, "devices"), 0);
    ck_assert_str_eq(string(d, "uuid"), "GPU-abababab-abab-abab-abab-abababababab");
    ck_assert_str_eq(string(d, "name"), "NVIDIA Example");
    ck_assert_int_eq(number(d, "ordinal"), 0);
    ck_assert_int_eq(number(d, "total_bytes"), (json_int_t)80 << 30);
    ck_assert_int_eq(number(d, "live_requested_bytes"), 1000 + (64 << 20));
    ck_assert_int_eq(number(d, "peak_requested_bytes"), 1000 + (67 << 20));
    ck_assert_int_eq(number(d, "peak_backed_bytes"), 70 << 20);
    json_t *kind = at(at(d, "kinds"), "device");
    ck_assert_int_eq(number(kind, "allocs"), 3);
    ck_assert_int_eq(number(kind, "frees"), 1);
    ck_assert_int_eq(number(kind, "refused"), 1);
    ck_assert_int_eq(number(at(at(document, "host"), "pinned"), "live_requested_bytes"), 8192);
    ck_assert_int_eq(number(at(at(document, "host"), "registered"), "allocs"), 0);
}
END_TEST

START_TEST(sites_and_frames)
{
    put_journal(jm_example(4242), "a");
    load();
    json_t *sites = at(document, "sites");
    ck_assert_uint_eq(json_array_size(sites), 3);
    json_t *first = json_array_get(sites, 0), *second = json_array_get(sites, 1);
    ck_assert_str_eq(string(first, "key"), "00000000deadbeef");
    ck_assert_str_eq(string(first, "owner"), "libblas.so");
    ck_assert_str_eq(string(second, "owner"), "engine");
    ck_assert_str_eq(json_string_value(json_array_get(at(second, "apis"), 0)), "cudaMalloc");
    ck_assert_str_eq(string(second, "kind"), "device");
    ck_assert_int_eq(number(second, "device"), 0);
    ck_assert_int_eq(number(second, "refused"), 1);
    ck_assert(json_is_null(at(json_array_get(sites, 2), "device"))); /* pinned */
    json_t *frames = at(first, "frames");
    ck_assert_uint_eq(json_array_size(frames), 3);
    json_t *blas = json_array_get(frames, 0), *jit = json_array_get(frames, 1), *engine = json_array_get(frames, 2);
    ck_assert(json_is_null(at(blas, "build_id")));
    ck_assert_str_eq(string(blas, "offset"), "0x777");
    ck_assert_str_eq(string(jit, "module"), "jit");
    ck_assert_str_eq(string(engine, "build_id"), "0123456789abcdef");
    ck_assert_str_eq(string(engine, "path"), "/opt/engine");
    ck_assert(json_is_null(at(engine, "symbol")));
    ck_assert(json_is_null(at(engine, "symbol_source")));
    ck_assert_uint_gt(strlen(string(engine, "symbol_missing")), 0);
}
END_TEST

START_TEST(coverage_and_processes)
{
    put_journal(jm_example(4242), "a");
    load();
    json_t *driver_malloc = json_array_get(at(document, "coverage"), 2);
    ck_assert_str_eq(string(driver_malloc, "api"), "cuMemAlloc_v2");
    ck_assert_str_eq(string(driver_malloc, "level"), "driver");
    ck_assert_str_eq(string(driver_malloc, "class"), "alloc");
    ck_assert(json_is_true(at(driver_malloc, "hooked")));
    ck_assert_int_eq(number(driver_malloc, "resolved"), 2);
    ck_assert_int_eq(number(driver_malloc, "calls"), 4);
    json_t *note = json_array_get(at(document, "coverage_notes"), 0);
    ck_assert_str_eq(string(note, "what"), "bypass");
    ck_assert_ptr_nonnull(strstr(string(note, "text"), "libdeep"));
    json_t *p = json_array_get(at(document, "processes"), 0);
    ck_assert_int_eq(number(p, "pid"), 4242);
    ck_assert_str_eq(string(p, "exe"), "/opt/engine");
    ck_assert_uint_eq(json_array_size(at(p, "cmdline")), 3);
    ck_assert_str_eq(string(p, "journal"), "a.tnj");
    ck_assert_str_eq(string(p, "mode"), "mapped");
    ck_assert_str_eq(string(p, "unwinder"), "libunwind");
    ck_assert(json_is_true(at(p, "ended")));
    ck_assert(json_is_false(at(p, "running")));
    ck_assert(json_is_null(at(p, "damage")));
    ck_assert(json_is_null(at(p, "stopped")));
}
END_TEST

START_TEST(run_file_wins)
{
    put_journal(jm_example(1), "a");
    FILE *out = fopen(scratch_file("run.json"), "w");
    fputs("{\"command\": [\"x\", \"y\"], \"cwd\": \"/c\", \"host\": \"h\", \"start_ns\": 1000, \"end_ns\": 4000, \"exit_status\": 5}", out);
    fclose(out);
    load();
    json_t *run = at(document, "run");
    ck_assert_uint_eq(json_array_size(at(run, "command")), 2);
    ck_assert_str_eq(string(run, "cwd"), "/c");
    ck_assert_int_eq(number(run, "duration_ns"), 3000);
    ck_assert_int_eq(number(run, "exit_status"), 5);
    ck_assert(json_is_null(at(run, "signal")));
}
END_TEST

START_TEST(a_damaged_run_file_is_a_warning)
{
    put_journal(jm_example(1), "a");
    FILE *out = fopen(scratch_file("run.json"), "w");
    fputs("{\"command\": [", out);
    fclose(out);
    load();
    json_t *run = at(document, "run");
    ck_assert_uint_eq(json_array_size(at(run, "warnings")), 1);
    ck_assert_uint_eq(json_array_size(at(run, "command")), 3);
}
END_TEST

START_TEST(bytes_that_are_no_utf8)
{
    jm *j = plain_journal(1);
    memcpy(jm_header(j)->exe, "/opt/\xff\xc3\xa4\xe2\x82", 11);
    jm_header(j)->exe[10] = 0;
    put_journal(j, "a");
    load();
    ck_assert_str_eq(string(json_array_get(at(document, "processes"), 0), "exe"), "/opt/\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd");
}
END_TEST

START_TEST(same_input_same_bytes)
{
    put_journal(jm_example(1), "a");
    put_journal(jm_example(2), "b");
    load();
    char *first = text;
    json_decref(document);
    load();
    ck_assert_str_eq(first, text);
    free(first);
}
END_TEST

START_TEST(phases_are_listed)
{
    jm *j = plain_journal(3);
    tn_event e = ev(TN_EV_PHASE, TN_PHASE_SERVING, 0, 0);
    e.aux2 = 2;
    jm_event(j, 1, 500, e);
    put_journal(j, "a");
    load();
    json_t *phase = json_array_get(at(document, "phases"), 0);
    ck_assert_str_eq(string(phase, "phase"), "loading");
    ck_assert(json_is_null(at(phase, "cause")));
    phase = json_array_get(at(document, "phases"), 1);
    ck_assert_str_eq(string(phase, "phase"), "serving");
    ck_assert_int_eq(number(phase, "pid"), 3);
    ck_assert_str_eq(string(phase, "cause"), "api");
    ck_assert_int_eq(number(phase, "at_ns"), 500);
}
END_TEST

static void drop(void)
{
    json_decref(document);
    free(text);
    scratch_remove();
}

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tc = tcase_create("shape");
    tcase_add_checked_fixture(tc, scratch_make, drop);
    tcase_add_test(tc, top_level);
    tcase_add_test(tc, what_is_not_measured_is_null);
    tcase_add_test(tc, devices_and_host);
    tcase_add_test(tc, sites_and_frames);
    tcase_add_test(tc, coverage_and_processes);
    tcase_add_test(tc, run_file_wins);
    tcase_add_test(tc, a_damaged_run_file_is_a_warning);
    tcase_add_test(tc, bytes_that_are_no_utf8);
    tcase_add_test(tc, same_input_same_bytes);
    tcase_add_test(tc, phases_are_listed);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
