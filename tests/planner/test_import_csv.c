/* The CSV reader: the recorded loop as its README describes it, and every way in which a file can be wrong. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/import_csv.h"
#include "tests/planner/plan_test.h"

static const char *torch;

#define HEAD "seq,op,block,bytes,site\n"

static tn_error import(const char *text, tn_trace **out, char message[TN_TRACE_MESSAGE])
{
    FILE *f = fopen(scratch_file("a.csv"), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    return tn_import_csv(scratch_file("a.csv"), out, message);
}

START_TEST(the_recorded_loop_is_what_it_is_said_to_be)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *t;
    ck_assert_msg(tn_import_csv(torch, &t, message) == TN_OK, "%s", message);
    ck_assert_uint_eq(t->processes[0].life_count, 10750);
    ck_assert_uint_eq(t->site_count, 25);
    size_t open = 0;
    uint64_t live = 0, peak = 0;
    for (size_t i = 0; i < 10750; i++)
        open += t->processes[0].lives[i].freed == TN_LIFE_OPEN;
    ck_assert_uint_eq(open, 7);
    uint32_t *ends = calloc(t->processes[0].events + 2, sizeof *ends);
    for (size_t i = 0; i < 10750; i++)
        if (t->processes[0].lives[i].freed != TN_LIFE_OPEN)
            ends[t->processes[0].lives[i].freed] = (uint32_t)i + 1;
    for (uint32_t at = 0, next = 0; at <= t->processes[0].events; at++) {
        if (ends[at])
            live -= (t->processes[0].lives[ends[at] - 1].bytes + 511) / 512 * 512;
        if (next < 10750 && t->processes[0].lives[next].begin == at)
            live += (t->processes[0].lives[next++].bytes + 511) / 512 * 512;
        if (live > peak)
            peak = live;
    }
    free(ends);
    ck_assert_uint_eq(peak * 10 / (1 << 20), 1663); /* 166.3 MiB */
    tn_trace_free(t);
}
END_TEST

START_TEST(a_small_file_becomes_its_lifetimes)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *t;
    ck_assert_msg(import(HEAD "1,alloc,5,1000,9\r\n2,alloc,6,2000,3\n3,free,5,,\n4,free,6", &t, message) == TN_OK, "%s", message);
    ck_assert_uint_eq(life(t, 0)->begin, 2);
    ck_assert_uint_eq(life(t, 0)->freed, 4);
    ck_assert_uint_eq(life(t, 0)->clean, 4);
    ck_assert_uint_eq(t->sites[life(t, 0)->site].key, 9);
    ck_assert_uint_eq(t->sites[0].key, 3);
    ck_assert_uint_eq(life(t, 1)->freed, 5);
    tn_trace_free(t);
}
END_TEST

static const struct { const char *text, *says; } bad[] = {
    {"", "a.csv:0: the file is empty"},
    {"op,seq\n", "a.csv:1: the first line"},
    {HEAD "x,alloc,1,1,1\n", "a.csv:2: the line does not begin with a number"},
    {HEAD "1,take,1,1,1\n", "a.csv:2: the second field"},
    {HEAD "1,alloc,,1,1\n", "a.csv:2: the block is no number"},
    {HEAD "1,alloc,1,0,1\n", "a.csv:2: the bytes"},
    {HEAD "1,alloc,1,999999999999999999999,1\n", "a.csv:2: the bytes"},
    {HEAD "1,alloc,1,1,\n", "a.csv:2: the site"},
    {HEAD "1,alloc,1,1,1,1\n", "a.csv:2: the site"},
    {HEAD "1,alloc,1,1,1\n2,alloc,1,1,1\n", "a.csv:3: block 1 is alive already"},
    {HEAD "1,free,1,,\n", "a.csv:2: block 1 is freed and is not alive"},
    {HEAD "1,free,1,x,\n", "a.csv:2: the block"},
    {HEAD "1,alloc,1,1,1                                                                                                              "
          "                                                                                                                            "
          "                 \n", "a.csv:2: the line is longer"},
};

START_TEST(what_is_wrong_is_named_with_its_line)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *t;
    ck_assert_int_eq(import(bad[_i].text, &t, message), TN_E_FORMAT);
    ck_assert_msg(strstr(message, bad[_i].says) != NULL, "%s", message);
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(a_damaged_or_missing_file_is_an_error)
{
    char message[TN_TRACE_MESSAGE], bytes[4096];
    tn_trace *t;
    ck_assert_int_eq(tn_import_csv(scratch_file("none.csv"), &t, message), TN_E_OPEN);
    FILE *in = fopen(torch, "r"), *out = fopen(scratch_file("cut.csv.gz"), "w");
    ck_assert(in && out);
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, in), sizeof bytes);
    fwrite(bytes, 1, sizeof bytes, out);
    fclose(in);
    fclose(out);
    ck_assert_int_ne(tn_import_csv(scratch_file("cut.csv.gz"), &t, message), TN_OK);
    ck_assert_ptr_nonnull(strstr(message, "cut.csv.gz:"));
}
END_TEST

int main(int argc, char **argv)
{
    torch = argc > 1 ? argv[1] : "tests/data/torch_nocache_h200.csv.gz";
    Suite *suite = suite_create("import_csv");
    TCase *c = tcase_create("import_csv");
    tcase_add_checked_fixture(c, scratch_make, scratch_remove);
    tcase_add_test(c, the_recorded_loop_is_what_it_is_said_to_be);
    tcase_add_test(c, a_small_file_becomes_its_lifetimes);
    tcase_add_loop_test(c, what_is_wrong_is_named_with_its_line, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(c, a_damaged_or_missing_file_is_an_error);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
