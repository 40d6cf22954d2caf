/* The JSON reader by itself: what is JSON is taken as it stands, whatever is not is refused where it stands, and no byte behind the text is looked at. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/json_pull.h"

static size_t held;

static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    held += new_bytes - old_bytes;
    if (new_bytes)
        return realloc(block, new_bytes);
    free(block);
    return NULL;
}

static const tn_metadata memory = {.resize = resize};

/* A copy that ends where the text ends, so that a sanitizer sees one byte too far. */
static char *exact(const char *text, size_t bytes)
{
    char *copy = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(copy);
    return memcpy(copy, text, bytes);
}

/* 1 where the whole of it is one value. */
static int is_json(const char *text, size_t bytes, const char **problem, size_t *column)
{
    char *copy = exact(text, bytes);
    tn_pull j;
    size_t line;
    tn_pull_begin(&j, copy, bytes, &memory);
    int good = tn_pull_skip(&j) && tn_pull_finish(&j);
    *problem = j.problem;
    tn_pull_place(&j, &line, column);
    tn_pull_end_use(&j);
    ck_assert_uint_eq(held, 0);
    ck_assert_int_eq(good, *problem == NULL);
    free(copy);
    return good;
}

static const char *const good[] = {
    "0", "-0", "12", "-1.5e+30", "1E5", "true", " false ", "\tnull\r\n", "\"\"", "\"a\"", "[]", "{}", "[ ]", "{ }", "[1,2]", "[[],[[]]]",
    "{\"a\":1,\"a\":{\"b\":[1,{\"c\":null}]}}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\"",
    "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"", "\"0123456789 a text that is longer than eight bytes, with an \\u00e9 in it\"", "\"\x7f\"",
};

START_TEST(what_is_json_is_taken)
{
    const char *problem;
    size_t column;
    ck_assert_msg(is_json(good[_i], strlen(good[_i]), &problem, &column), "%s: %s at %zu", good[_i], problem, column);
}
END_TEST

static const struct { const char *text; size_t column; } bad[] = {
    {"", 1}, {" ", 2}, {"x", 1}, {"01", 1}, {"-", 2}, {"+1", 1}, {".5", 1}, {"1.", 3}, {"1.e5", 3}, {"1e", 3}, {"1e+", 4}, {"--1", 2}, {"tru", 4}, {"trux", 1},
    {"nul1", 1}, {"True", 1}, {"\"", 2}, {"\"\\\"", 4}, {"\"\\x\"", 2}, {"\"\\u12\"", 2}, {"\"\\u12g4\"", 2}, {"\"\\u0000\"", 2}, {"\"\\ud83d\"", 2},
    {"\"\\ude00\"", 2}, {"\"\\ud83d\\u0041\"", 2}, {"\"\n\"", 2}, {"\"0123456\t89\"", 9}, {"\"\x80\"", 2}, {"\"\xc0\xaf\"", 2}, {"\"\xc1\xbf\"", 2},
    {"\"\xe0\x9f\xbf\"", 2}, {"\"\xed\xa0\x80\"", 2}, {"\"\xf0\x8f\xbf\xbf\"", 2}, {"\"\xf4\x90\x80\x80\"", 2}, {"\"\xf5\x80\x80\x80\"", 2}, {"\"\xc3\"", 2},
    {"\"\xe2\x82\"", 2}, {"\"\xf0\x9f\x98\"", 2}, {"\"\xff\"", 2}, {"[", 2}, {"[1", 3}, {"[1,", 4}, {"[1,]", 4}, {"[,1]", 2}, {"[1 2]", 4}, {"[1}", 3}, {"]", 1},
    {"{", 2}, {"{\"a\"}", 5}, {"{\"a\":}", 6}, {"{\"a\":1,}", 8}, {"{a:1}", 2}, {"{\"a\" 1}", 6}, {"{\"a\":1 \"b\":2}", 8}, {"{,}", 2}, {"{1:2}", 2}, {"{\"a\":1]", 7},
    {"1 2", 3}, {"{} {}", 4}, {"[1]]", 4}, {"\xef\xbb\xbf{}", 1}, {"nullx", 5}, {"/* */ 1", 1}, {"'a'", 1}, {"NaN", 1},
};

START_TEST(what_is_no_json_is_refused_where_it_stands)
{
    const char *problem;
    size_t column;
    ck_assert_msg(!is_json(bad[_i].text, strlen(bad[_i].text), &problem, &column), "%s is taken", bad[_i].text);
    ck_assert_msg(column == bad[_i].column, "%s: %s at %zu, not at %zu", bad[_i].text, problem, column, bad[_i].column);
}
END_TEST

START_TEST(no_beginning_of_a_document_is_one)
{
    const char text[] = "{\"a\": [1.5e3, true, {\"b\\u00e9\": \"\xe2\x82\xac \\ud83d\\ude00\"}], \"c\": null, \"long enough for eight\": -7}";
    const char *problem;
    size_t column;
    for (size_t n = 0; n < sizeof text - 1; n++)
        ck_assert_msg(!is_json(text, n, &problem, &column), "%zu bytes", n);
    ck_assert(is_json(text, sizeof text - 1, &problem, &column));
}
END_TEST

START_TEST(depth_has_a_bound)
{
    char text[2 * TN_PULL_DEPTH + 2];
    const char *problem;
    size_t column;
    memset(text, '[', TN_PULL_DEPTH + 1);
    memset(text + TN_PULL_DEPTH + 1, ']', TN_PULL_DEPTH + 1);
    ck_assert(is_json(text + 1, 2 * TN_PULL_DEPTH, &problem, &column));
    ck_assert(!is_json(text, 2 * TN_PULL_DEPTH + 2, &problem, &column));
    ck_assert_uint_eq(column, TN_PULL_DEPTH + 1);
}
END_TEST

static void text_is(const char *json, const char *expected, size_t bytes)
{
    tn_pull j;
    const char *text;
    size_t n;
    tn_pull_begin(&j, json, strlen(json), &memory);
    ck_assert_int_eq(tn_pull_text(&j, &text, &n), 1);
    ck_assert_uint_eq(n, bytes);
    ck_assert_mem_eq(text, expected, bytes);
    tn_pull_end_use(&j);
}

START_TEST(escapes_mean_what_they_stand_for)
{
    text_is("\"plain\"", "plain", 5);
    text_is("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    text_is("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00!\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!", 11);
    char json[1205] = "\"", plain[601];
    for (size_t i = 0; i < 600; i++) { /* longer than the first buffer */
        memcpy(json + 1 + 2 * i, "\\t", 2);
        plain[i] = '\t';
    }
    memcpy(json + 1201, "\"", 2);
    text_is(json, plain, 600);
}
END_TEST

static int number_of(const char *json, uint64_t *n)
{
    tn_pull j;
    tn_pull_begin(&j, json, strlen(json), &memory);
    return tn_pull_number(&j, n);
}

START_TEST(whole_numbers_are_taken_to_the_last)
{
    uint64_t n;
    ck_assert_int_eq(number_of("18446744073709551615", &n), 1);
    ck_assert_uint_eq(n, UINT64_MAX);
    ck_assert_int_eq(number_of("0", &n), 1);
    ck_assert_uint_eq(n, 0);
    static const char *const none[] = {"18446744073709551616", "99999999999999999999999999", "-1", "-0", "1.0", "1e3", "1E0"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(number_of(none[i], &n) == 0, "%s is whole", none[i]);
    ck_assert_int_eq(number_of("1x", &n), 1); /* what follows is the next call's */
    ck_assert_int_eq(number_of("\"1\"", &n), -1);
}
END_TEST

START_TEST(members_and_elements_come_in_order_and_end)
{
    static const char json[] = "{\"list\": [1, [], {}, 2], \"\": \"x\", \"last\" : true }";
    const char *key, *text;
    size_t bytes;
    uint64_t n;
    tn_pull j;
    tn_pull_begin(&j, json, sizeof json - 1, &memory);
    ck_assert_int_eq(tn_pull_enter(&j, TN_PULL_OBJECT), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 1);
    ck_assert(bytes == 4 && memcmp(key, "list", 4) == 0);
    ck_assert_int_eq(tn_pull_enter(&j, TN_PULL_ARRAY), 1);
    ck_assert_int_eq(tn_pull_element(&j), 1);
    ck_assert_int_eq(tn_pull_number(&j, &n), 1);
    ck_assert_int_eq(tn_pull_element(&j), 1);
    ck_assert_int_eq(tn_pull_peek(&j), TN_PULL_ARRAY);
    ck_assert_int_eq(tn_pull_skip(&j), 1);
    ck_assert_int_eq(tn_pull_element(&j), 1);
    ck_assert_int_eq(tn_pull_enter(&j, TN_PULL_OBJECT), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 0);
    ck_assert_int_eq(tn_pull_element(&j), 1);
    ck_assert_int_eq(tn_pull_number(&j, &n), 1);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(tn_pull_element(&j), 0);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 1);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(tn_pull_text(&j, &text, &bytes), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 1);
    ck_assert_int_eq(tn_pull_peek(&j), TN_PULL_TRUE);
    ck_assert_int_eq(tn_pull_word(&j), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 0);
    ck_assert_int_eq(tn_pull_finish(&j), 1);
}
END_TEST

START_TEST(after_a_problem_nothing_goes_on_and_its_line_is_known)
{
    static const char json[] = "{\n \"a\": 1,\n \"b\": ?,\n \"c\": 2}";
    const char *key;
    size_t bytes, line, column;
    uint64_t n;
    tn_pull j;
    tn_pull_begin(&j, json, sizeof json - 1, &memory);
    ck_assert_int_eq(tn_pull_enter(&j, TN_PULL_OBJECT), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 1);
    ck_assert_int_eq(tn_pull_number(&j, &n), 1);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), 1);
    ck_assert_int_eq(tn_pull_peek(&j), TN_PULL_NOTHING);
    ck_assert_int_eq(tn_pull_number(&j, &n), -1);
    ck_assert_int_eq(tn_pull_skip(&j), 0);
    ck_assert_int_eq(tn_pull_word(&j), 0);
    ck_assert_int_eq(tn_pull_member(&j, &key, &bytes), -1);
    ck_assert_int_eq(tn_pull_element(&j), -1);
    ck_assert_int_eq(tn_pull_finish(&j), 0);
    tn_pull_place(&j, &line, &column);
    ck_assert_uint_eq(line, 3);
    ck_assert_uint_eq(column, 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_pull");
    TCase *c = tcase_create("json_pull");
    tcase_add_loop_test(c, what_is_json_is_taken, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(c, what_is_no_json_is_refused_where_it_stands, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(c, no_beginning_of_a_document_is_one);
    tcase_add_test(c, depth_has_a_bound);
    tcase_add_test(c, escapes_mean_what_they_stand_for);
    tcase_add_test(c, whole_numbers_are_taken_to_the_last);
    tcase_add_test(c, members_and_elements_come_in_order_and_end);
    tcase_add_test(c, after_a_problem_nothing_goes_on_and_its_line_is_known);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
