/* Plans as they are loaded where they are served from: by the caller's memory alone, whole or not at all. Every beginning of a small plan, every
 * change of one byte, and memory that ends at any moment give one sentence, no plan and nothing left behind. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_load.h"
#include "planner/program_script.h"

#define LAST "\n  }\n ]\n}\n"
static const char small[] =
    "{\n \"schema\": \"tenure-plan/1\",\n \"budget\": 1000000,\n \"processes\": 1,\n \"events\": 12,\n \"sections\": [\n  {\n"
    "   \"executable\": \"engine\",\n   \"build_id\": \"0a0b\",\n   \"device\": 0,\n   \"contexts\": 1,\n   \"total_bytes\": 11864,\n"
    "   \"native_bytes\": 100,\n   \"device_live_peak\": 8192,\n   \"graph_execs\": 0,\n"
    "   \"sizing_query\": {\"key\": \"00000000000000aa\", \"ordinal\": 2, \"free_bytes\": 9007199254740993, \"sizes\": [\"0000000000000001\"]},\n"
    "   \"charges\": [\n    {\"name\": \"conte\\u0078t \\u00e9\", \"bytes\": 500, \"source\": \"run\"}\n   ],\n"
    "   \"phases\": [\n    {\"phase\": \"serving\", \"device_bytes\": 8192, \"native_bytes\": 100, \"pinned_bytes\": 0}\n   ],\n"
    "   \"tiers\": [\n    {\"discipline\": \"T1\", \"family\": \"device\", \"capacity\": 3072, \"high_water\": 3072, \"sites\": 1},\n"
    "    {\"discipline\": \"packed\", \"family\": \"async\", \"capacity\": 8192, \"high_water\": 8192, \"sites\": 1, \"slots\": 3, \"classes_an_octave\": \"each size\",\n"
    "     \"lower_bound\": 8192, \"hand_outs\": 5}\n   ],\n"
    "   \"regions\": [\n    {\"first_key\": \"0000000000000001\", \"first_bytes\": 1024, \"capacity\": 3072, \"requests\": 3, \"times\": 1}\n   ],\n"
    "   \"sites\": [\n    {\"key\": \"0000000000000001\", \"coarse_key\": \"00000000000000cc\", \"discipline\": \"T1\", \"family\": \"device\", \"capacity\": 3072,\n"
    "     \"blocks\": 3, \"largest\": 1024, \"reason\": \"weights\", \"runner_up\": \"T2\", \"runner_up_capacity\": 4096,\n"
    "     \"python\": [\"load (run.py:3)\"], \"frames\": [\n      {\"function\": \"load\\n\", \"delta\": 4, \"file\": \"a.c\", \"line\": 7, \"module\": \"engine\", "
    "\"offset\": 77, \"build_id\": \"0a0b\", \"inlined\": true},\n      {\"module\": \"engine\", \"offset\": 78}\n     ]},\n"
    "    {\"key\": \"0000000000000002\", \"discipline\": \"packed\", \"family\": \"async\", \"capacity\": 8192, \"blocks\": 3, \"largest\": 4096, \"varies\": true,\n"
    "     \"reason\": \"shares\", \"runner_up\": \"native\", \"runner_up_capacity\": 0, \"slots\": [\n      {\"bytes\": 1024, \"alignment\": 512, \"offsets\": [0, 2048]},\n"
    "      {\"bytes\": 4096, \"alignment\": 512, \"offsets\": [4096]}\n     ]}\n   ]" LAST;
#define BYTES (sizeof small - 1)

/* ---- memory that counts and ends ---- */

static struct { size_t held; long left; } hook; /* left < 0: without end */

static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    ck_assert_ptr_eq(self, &hook);
    ck_assert(block || old_bytes == 0);
    if (new_bytes && hook.left == 0)
        return NULL;
    hook.left -= new_bytes && hook.left > 0;
    hook.held += new_bytes - old_bytes;
    if (!new_bytes) {
        free(block);
        return NULL;
    }
    char *moved = realloc(block, new_bytes);
    if (moved && new_bytes > old_bytes)
        memset(moved + old_bytes, 0xa5, new_bytes - old_bytes); /* the hook promises no zeroes */
    return moved;
}

static const tn_metadata memory = {.resize = resize, .self = &hook};

static void unlimited(void)
{
    hook.held = 0;
    hook.left = -1;
}

static tn_error load(const char *text, size_t bytes, unsigned flags, tn_plan **plan, char *message)
{
    char *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees one byte too far */
    memcpy(exact, text, bytes);
    tn_error error = tn_plan_load_text(exact, bytes, "plan", flags, &memory, plan, message);
    free(exact);
    ck_assert_int_eq(error == TN_OK, *plan != NULL);
    if (error == TN_OK) {
        ck_assert_str_eq(message, "");
        return error;
    }
    ck_assert_msg(strncmp(message, "plan:", 5) == 0 && strlen(message) > 12, "%s", message);
    for (const char *c = message; *c; c++)
        ck_assert_msg((unsigned char)*c >= 0x20 && *c != 0x7f, "a control character in: %s", message);
    ck_assert_uint_eq(hook.held, 0);
    return error;
}

static tn_plan *small_plan(unsigned flags)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan *plan;
    ck_assert_msg(load(small, BYTES, flags, &plan, message) == TN_OK, "%s", message);
    return plan;
}

static void drop(tn_plan *plan)
{
    tn_plan_free(plan);
    ck_assert_uint_eq(hook.held, 0);
}

/* ---- what is in it ---- */

START_TEST(every_field_arrives)
{
    tn_plan *plan = small_plan(0);
    const tn_plan_section *s = &plan->sections[0];
    ck_assert(plan->budget == 1000000 && plan->processes == 1 && plan->events == 12 && plan->section_count == 1);
    ck_assert(strcmp(s->exe, "engine") == 0 && strcmp(s->exe_build_id, "0a0b") == 0 && !s->script && s->total == 11864);
    ck_assert(s->sizing.known && s->sizing.key == 0xaa && s->sizing.ordinal == 2 && s->sizing.free_bytes == 9007199254740993 && s->sizing.sized_count == 1);
    ck_assert_str_eq(s->charges[0].name, "context \xc3\xa9");
    ck_assert(s->tier_count == 2 && s->tiers[1].classes_an_octave == TN_CLASSES_EACH && s->tiers[1].hand_outs == 5 && s->phases[0].phase == 2);
    ck_assert(s->region_count == 1 && s->regions[0].count == 3 && s->row_count == 2);
    ck_assert(s->rows[0].frame_count == 2 && s->rows[0].frames[0].inlined && s->rows[0].frames[1].offset == 78 && !s->rows[0].frames[1].function);
    ck_assert_str_eq(s->rows[0].frames[0].function, "load?");
    ck_assert_str_eq(s->rows[0].python_frames[0], "load (run.py:3)");
    ck_assert(s->rows[1].varies && s->rows[1].class_count == 2 && s->rows[1].classes[0].offsets[1] == 2048 && s->rows[1].classes[1].count == 1);
    drop(plan);
}
END_TEST

START_TEST(without_names_all_else_is_the_same)
{
    tn_plan *all = small_plan(0), *plan = small_plan(TN_PLAN_WITHOUT_NAMES);
    const tn_plan_row *a = all->sections[0].rows, *b = plan->sections[0].rows;
    ck_assert(b[0].frame_count == 0 && b[0].python_frame_count == 0 && a[0].frame_count == 2);
    for (int i = 0; i < 2; i++) {
        ck_assert(a[i].key == b[i].key && a[i].discipline == b[i].discipline && a[i].capacity == b[i].capacity && a[i].class_count == b[i].class_count);
        ck_assert_str_eq(a[i].reason, b[i].reason);
    }
    tn_plan_free(all);
    drop(plan);
    /* Not kept is not unread. */
    char *text = strdup(small), message[TN_PLAN_MESSAGE];
    memcpy(strstr(text, "\"line\": 7"), "\"line\": x", 9);
    ck_assert_int_eq(load(text, BYTES, TN_PLAN_WITHOUT_NAMES, &plan, message), TN_E_FORMAT);
    memcpy(strstr(text, "\"line\": x"), "\"lime\": 7", 9);
    ck_assert_int_eq(load(text, BYTES, TN_PLAN_WITHOUT_NAMES, &plan, message), TN_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(message, "sections[0].sites[0].frames[0].lime is no key of a plan"));
    free(text);
}
END_TEST

START_TEST(what_is_written_is_read_as_the_same)
{
    tn_plan *plan = small_plan(0), *again;
    char *first = NULL, *second = NULL, message[TN_PLAN_MESSAGE];
    size_t first_bytes, second_bytes;
    for (int turn = 0; turn < 2; turn++) {
        FILE *out = open_memstream(turn ? &second : &first, turn ? &second_bytes : &first_bytes);
        ck_assert_int_eq(tn_plan_write(plan, out), TN_OK);
        fclose(out);
        tn_plan_free(plan);
        ck_assert_msg(load(turn ? second : first, turn ? second_bytes : first_bytes, 0, &again, message) == TN_OK, "%s", message);
        plan = again;
    }
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    drop(plan);
}
END_TEST

/* ---- what is wrong ---- */

START_TEST(every_beginning_is_refused)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan *plan;
    for (size_t n = 0; n < BYTES - 1; n++) /* without the last newline it is whole */
        ck_assert_msg(load(small, n, 0, &plan, message) == TN_E_FORMAT, "%zu of %zu bytes: %s", n, BYTES, message);
    ck_assert_int_eq(load(small, BYTES - 1, 0, &plan, message), TN_OK);
    drop(plan);
}
END_TEST

START_TEST(a_changed_byte_is_refused_or_gives_a_plan_that_holds)
{
    static const unsigned char others[] = {0, '\n', '"', ',', '9', '\\', ']', '}', 0xff};
    char message[TN_PLAN_MESSAGE], *text = strdup(small);
    size_t refused = 0, taken = 0;
    for (size_t i = 0; i < BYTES; i++)
        for (size_t k = 0; k < sizeof others + 1; k++) {
            tn_plan *plan;
            text[i] = k < sizeof others ? (char)others[k] : (char)(small[i] ^ 1);
            if (text[i] == small[i] || (i + k) % 3) { /* every byte in some ways, neighbours in others */
                text[i] = small[i];
                continue;
            }
            tn_error error = load(text, BYTES, k % 2 ? TN_PLAN_WITHOUT_NAMES : 0, &plan, message);
            if (error == TN_OK) {
                ck_assert_int_eq(tn_plan_check(plan, message), TN_OK);
                drop(plan);
                taken++;
            } else {
                ck_assert_msg(error == TN_E_FORMAT || error == TN_E_VERSION, "byte %zu: error %d", i, error);
                refused++;
            }
            text[i] = small[i];
        }
    ck_assert_uint_gt(taken, 200);
    ck_assert_uint_gt(refused, 4000);
    free(text);
}
END_TEST

static const struct { const char *from, *to, *says; tn_error error; } faults[] = {
    {"\"schema\": \"tenure-plan/1\"", "\"schema\": \"tenure-plan/7\"", "plan: the document has the schema tenure-plan/7", TN_E_VERSION},
    {"\"schema\": \"tenure-plan/1\"", "\"schema\": 1", "plan: the document is no plan: its schema is not tenure-plan/1", TN_E_FORMAT},
    {"\"schema\": \"tenure-plan/1\",", "", "plan: the document is no plan", TN_E_FORMAT},
    {"\"budget\": 1000000", "\"budget\": 1000000, \"budget\": 1000000", "plan: budget is there twice", TN_E_FORMAT},
    {"\"budget\": 1000000", "\"schema\": \"tenure-plan/1\"", "plan: schema is there twice", TN_E_FORMAT},
    {"\"budget\": 1000000", "\"budget\": 9223372036854775808", "plan: budget is no whole number from 0 to 9223372036854775807", TN_E_FORMAT},
    {"\"device\": 0", "\"device\": 4294967296", "plan: sections[0].device is no whole number from 0 to 4294967295", TN_E_FORMAT},
    {"\"device\": 0,", "", "plan: sections[0] lacks the key device", TN_E_FORMAT},
    {"\"device\": 0", "\"device\": null", "plan: sections[0].device is no whole number", TN_E_FORMAT},
    {"\"varies\": true", "\"varies\": 1", "plan: sections[0].sites[1].varies is neither true nor false", TN_E_FORMAT},
    {"\"varies\": true", "\"varies\": true, \"varies\": true", "plan: sections[0].sites[1].varies is there twice", TN_E_FORMAT},
    {"\"reason\": \"shares\"", "\"reason\": 5", "plan: sections[0].sites[1].reason is no text", TN_E_FORMAT},
    {"\"reason\": \"shares\"", "\"reason\": \"\\u0000\"", "plan:39:17: a text may not hold a character 0", TN_E_FORMAT},
    {"\"offsets\": [4096]", "\"offsets\": [4096.0]", "plan: sections[0].sites[1].slots[1].offsets[0] is no whole number", TN_E_FORMAT},
    {"\"offsets\": [4096]", "\"offsets\": {}", "plan: sections[0].sites[1].slots[1].offsets is no array", TN_E_FORMAT},
    {"\"each size\"", "\"\"", "plan: sections[0].tiers[1].classes_an_octave is no number, \"one\" or \"each size\"", TN_E_FORMAT},
    {"\"each size\"", "65", "plan: sections[0].tiers[1].classes_an_octave is no whole number from 0 to 64", TN_E_FORMAT},
    {"\"phase\": \"serving\"", "\"phase\": \"a phase with a name longer than any\"", "plan: sections[0].phases[0].phase is not loading", TN_E_FORMAT},
    {"\"sizes\": [\"0000000000000001\"]", "\"sizes\": [\"000000000000000g\"]", "plan: sections[0].sizing_query.sizes[0] is not a key", TN_E_FORMAT},
    {"{\"module\": \"engine\", \"offset\": 78}", "[]", "plan: sections[0].sites[0].frames[1] is no object", TN_E_FORMAT},
    {"\"total_bytes\": 11864", "\"total_bytes\": 11865", "plan: sections[0]: its total is 11865, and its parts add up to 11864", TN_E_FORMAT},
    {LAST, LAST "x", "plan:47:1: there is more behind the end of the document", TN_E_FORMAT},
    {LAST, "\n  }\n ]\n", "plan:46:1: the text ends too early", TN_E_FORMAT},
    {"\"budget\": 1000000", "\"budget\": 01", "plan:3:12: a number does not begin with a 0", TN_E_FORMAT},
};

START_TEST(a_fault_is_named_with_its_place)
{
    char message[TN_PLAN_MESSAGE], *text = NULL;
    const char *at = strstr(small, faults[_i].from);
    tn_plan *plan;
    ck_assert_ptr_nonnull(at);
    int n = asprintf(&text, "%.*s%s%s", (int)(at - small), small, faults[_i].to, at + strlen(faults[_i].from));
    ck_assert_int_gt(n, 0);
    ck_assert_msg(load(text, (size_t)n, 0, &plan, message) == faults[_i].error, "fault %d: %s", _i, message);
    ck_assert_msg(strncmp(message, faults[_i].says, strlen(faults[_i].says)) == 0, "fault %d: %s", _i, message);
    free(text);
}
END_TEST

START_TEST(memory_that_ends_anywhere_leaves_nothing_behind)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan *plan = NULL;
    long calls = 0;
    for (;; calls++) {
        ck_assert_int_lt(calls, 100);
        hook.left = calls;
        tn_error error = load(small, BYTES, 0, &plan, message);
        if (error == TN_OK)
            break;
        ck_assert_msg(error == TN_E_NOMEM, "call %ld: %s", calls, message);
    }
    ck_assert_int_ge(calls, 5);
    drop(plan);
}
END_TEST

/* ---- files ---- */

START_TEST(a_file_and_a_pipe_are_read_and_what_is_neither_is_named)
{
    char message[TN_PLAN_MESSAGE], path[] = "plan_load_XXXXXX", where[64];
    tn_plan *plan;
    int fd = mkstemp(path), ends[2];
    ck_assert_int_eq(write(fd, small, BYTES), (ssize_t)BYTES);
    ck_assert_msg(tn_plan_load(path, 0, &memory, &plan, message) == TN_OK, "%s", message);
    drop(plan);
    ck_assert_int_eq(ftruncate(fd, 700), 0);
    ck_assert_int_eq(tn_plan_load(path, 0, &memory, &plan, message), TN_E_FORMAT);
    ck_assert_ptr_eq(strstr(message, path), message);
    close(fd);
    unlink(path);
    ck_assert_int_eq(tn_plan_load(path, 0, &memory, &plan, message), TN_E_OPEN);
    ck_assert_ptr_nonnull(strstr(message, ": there is no such file"));
    ck_assert_int_eq(tn_plan_load(".", 0, &memory, &plan, message), TN_E_OPEN);
    ck_assert_str_eq(message, ".: it is a folder");
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], small, BYTES), (ssize_t)BYTES);
    close(ends[1]);
    snprintf(where, sizeof where, "/proc/self/fd/%d", ends[0]);
    ck_assert_msg(tn_plan_load(where, 0, &memory, &plan, message) == TN_OK, "%s", message);
    close(ends[0]);
    drop(plan);
    ck_assert_ptr_null((tn_plan_load(path, 0, &memory, &plan, message) == TN_OK ? plan : NULL));
}
END_TEST

/* ---- whom it binds ---- */

START_TEST(a_section_binds_by_build_id_script_and_device)
{
    tn_plan_section sections[] = {
        {.exe_build_id = "aa", .exe = "python3.11", .script = "run.py", .device = 0},
        {.exe_build_id = "aa", .exe = "python3.11", .script = "run.py", .device = 1},
        {.exe_build_id = "aa", .exe = "python3.11", .device = 0},
        {.exe_build_id = "", .exe = "engine", .device = 0},
        {.exe_build_id = "bb", .exe = "engine", .device = 1},
    };
    const tn_plan plan = {.sections = sections, .section_count = 5};
    ck_assert_ptr_eq(tn_plan_section_for(&plan, "aa", "run.py", 0), &sections[0]);
    ck_assert_ptr_eq(tn_plan_section_for(&plan, "aa", "run.py", 1), &sections[1]);
    ck_assert_ptr_eq(tn_plan_section_for(&plan, "aa", NULL, 0), &sections[2]);
    ck_assert_ptr_null(tn_plan_section_for(&plan, "aa", NULL, 1));
    ck_assert_ptr_null(tn_plan_section_for(&plan, "aa", "other.py", 0));
    ck_assert_ptr_null(tn_plan_section_for(&plan, "ab", "run.py", 0));
    ck_assert_ptr_null(tn_plan_section_for(&plan, "", NULL, 0));
    ck_assert_ptr_null(tn_plan_section_for(&plan, NULL, NULL, 0));
    ck_assert_ptr_eq(tn_plan_section_named(&plan, "/opt/engine", NULL, 0), &sections[3]);
    ck_assert_ptr_eq(tn_plan_section_named(&plan, "engine", NULL, 0), &sections[3]);
    ck_assert_ptr_null(tn_plan_section_named(&plan, "engine", NULL, 1)); /* it has a build-id, which the name does not stand for */
}
END_TEST

static const struct { const char *exe, *cmdline; size_t bytes; const char *script; } programs[] = {
#define RUN(exe, line, script) {exe, line, sizeof(line), script}
    RUN("/usr/bin/python3.11", "python3\0/srv/run.py\0--x", "run.py"),
    RUN("python3", "python3\0-u\0-OO\0run.py", "run.py"),
    RUN("python3", "python3\0-m\0vllm.entry\0--port", "-m vllm.entry"),
    RUN("python3", "python3\0-mvllm", "-m vllm"),
    RUN("python3", "python3\0-um\0vllm", "-m vllm"),
    RUN("python3", "python3\0-c\0print(1)", "-c"),
    RUN("python3", "python3\0-W\0ignore\0-X\0dev\0run.py", "run.py"),
    RUN("python3", "python3\0-", "-"),
    RUN("python3", "python3", NULL),
    RUN("python3", "python3\0-m", NULL),
    RUN("pypy3.10", "pypy3\0run.py", "run.py"),
    RUN("/opt/pythonic", "pythonic\0run.py", NULL),
    RUN("/opt/engine", "engine\0run.py", NULL),
};

START_TEST(a_script_is_known_by_its_command_line)
{
    char script[TN_PROGRAM_SCRIPT] = "";
    int there = tn_program_script(programs[_i].exe, programs[_i].cmdline, programs[_i].bytes, script, sizeof script);
    ck_assert_int_eq(there, programs[_i].script != NULL);
    if (there)
        ck_assert_str_eq(script, programs[_i].script);
    /* One byte of room too few, or no end of the last argument, is no answer rather than half of one. */
    if (there)
        ck_assert_int_eq(tn_program_script(programs[_i].exe, programs[_i].cmdline, programs[_i].bytes, script, strlen(programs[_i].script)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_load");
    TCase *c = tcase_create("plan_load");
    tcase_add_checked_fixture(c, unlimited, NULL);
    tcase_add_test(c, every_field_arrives);
    tcase_add_test(c, without_names_all_else_is_the_same);
    tcase_add_test(c, what_is_written_is_read_as_the_same);
    tcase_add_test(c, every_beginning_is_refused);
    tcase_add_test(c, a_changed_byte_is_refused_or_gives_a_plan_that_holds);
    tcase_add_loop_test(c, a_fault_is_named_with_its_place, 0, sizeof faults / sizeof faults[0]);
    tcase_add_test(c, memory_that_ends_anywhere_leaves_nothing_behind);
    tcase_add_test(c, a_file_and_a_pipe_are_read_and_what_is_neither_is_named);
    tcase_add_test(c, a_section_binds_by_build_id_script_and_device);
    tcase_add_loop_test(c, a_script_is_known_by_its_command_line, 0, sizeof programs / sizeof programs[0]);
    tcase_set_timeout(c, 60);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
