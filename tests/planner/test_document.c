/* Files that people write, as trees with places. */
#define _GNU_SOURCE
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/document.h"

static char message[TN_DOCUMENT_MESSAGE];

static tn_document *parse(const char *text)
{
    tn_document *document = NULL;
    tn_document_error error = tn_document_parse("f.yaml", text, strlen(text), &document, message);
    ck_assert_msg(error == TN_DOCUMENT_OK, "%s", message);
    ck_assert_ptr_nonnull(document);
    return document;
}

START_TEST(a_tree_keeps_texts_order_and_places)
{
    tn_document *d = parse("# a comment\n"
                           "model:\n"
                           "  layers: 4 # four\n"
                           "  name: \"a b\"\n"
                           "list:\n"
                           "- one\n"
                           "- x: 1\n"
                           "empty:\n");
    const tn_node *root = tn_document_root(d), *model = tn_node_find(root, "model"), *list = tn_node_find(root, "list");
    ck_assert_uint_eq(root->count, 3);
    ck_assert(model == root->first && model->next == list);
    ck_assert_uint_eq(model->line, 2);
    const tn_node *layers = tn_node_find(model, "layers");
    ck_assert_str_eq(layers->text, "4");
    ck_assert(!layers->quoted);
    ck_assert_uint_eq(layers->line, 3);
    ck_assert_uint_eq(layers->column, 3);
    ck_assert_str_eq(tn_node_find(model, "name")->text, "a b");
    ck_assert(tn_node_find(model, "name")->quoted);
    ck_assert_uint_eq(list->count, 2);
    ck_assert_str_eq(list->first->text, "one");
    ck_assert_ptr_null(list->first->key);
    ck_assert_uint_eq(list->first->next->line, 7);
    ck_assert_str_eq(tn_node_find(root, "empty")->text, "");
    ck_assert_ptr_null(tn_node_find(root, "absent"));
    tn_document_free(d);
}
END_TEST

START_TEST(a_json_file_is_one_too)
{
    tn_document *d = parse("{\n\t\"model\": {\"layers\": 4, \"off\": false},\n\t\"list\": [1, \"2\"]\n}\n");
    const tn_node *root = tn_document_root(d);
    ck_assert_str_eq(tn_node_find(tn_node_find(root, "model"), "off")->text, "false");
    ck_assert_uint_eq(tn_node_find(root, "list")->count, 2);
    tn_document_free(d);
}
END_TEST

START_TEST(words_stay_the_words_that_were_written)
{
    tn_document *d = parse("a: no\nb: 0x10\nc: 1_000\nd: ~\ne: |\n  text\n");
    const tn_node *root = tn_document_root(d);
    ck_assert_str_eq(tn_node_find(root, "a")->text, "no");
    ck_assert_str_eq(tn_node_find(root, "b")->text, "0x10");
    ck_assert_str_eq(tn_node_find(root, "c")->text, "1_000");
    ck_assert_str_eq(tn_node_find(root, "d")->text, "~");
    ck_assert_str_eq(tn_node_find(root, "e")->text, "text");
    tn_document_free(d);
}
END_TEST

static const struct bad {
    const char *text;
    tn_document_error error;
    const char *says;
} bad[] = {
    {"", TN_DOCUMENT_SYNTAX, "f.yaml: there is nothing in it"},
    {"# only a comment\n", TN_DOCUMENT_SYNTAX, "f.yaml: there is nothing in it"},
    {"word\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: keys with values must stand there"},
    {"- a\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: keys with values must stand there"},
    {"a: 1\nb: 2\na: 3\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 3: \"a\" stands on line 1 already"},
    {"a: &x 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: anchors (&x) are not taken here"},
    {"a: 1\nb: *x\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 2: aliases (*x) are not taken here"},
    {"a: !!str 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: tags (tag:yaml.org,2002:str) are not taken here"},
    {"a: !%0ax 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: tags (!?x) are not taken here"},
    {"a: 1\n---\nb: 2\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 2: a second document begins there"},
    {"a: [1, 2\nb: 3\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 2: "},
    {"a:\n\t- 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 2: "},
    {"a: {b: 1}}\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: "},
    {"? [a]\n: 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a key is a word"},
    {"? {a: 1}\n: 1\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a key is a word"},
    {"a: \"x\\ey\"\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a text holds a control character"},
    {"a: \"x\\0y\"\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a text holds a control character"},
    {"a: \"\\x9b\"\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a text holds a control character"},
    {"a: |\n  x\n  y\n", TN_DOCUMENT_SYNTAX, "f.yaml: line 1: a text holds a control character"},
    {"a: \xff\n", TN_DOCUMENT_SYNTAX, "f.yaml: byte 3: "},
    {"a: \x01\n", TN_DOCUMENT_SYNTAX, "f.yaml: byte 3: "},
    {"a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", TN_DOCUMENT_LARGE, "f.yaml: line 1: more than 16 levels"},
};

START_TEST(what_is_not_taken_is_told_in_a_sentence_with_its_line)
{
    const struct bad *b = &bad[_i];
    tn_document *document = (tn_document *)message;
    memset(message, 'x', sizeof(message));
    tn_document_error error = tn_document_parse("f.yaml", b->text, strlen(b->text), &document, message);
    ck_assert_msg(error == b->error, "%s: %d", b->text, error);
    ck_assert_ptr_null(document);
    ck_assert_msg(strncmp(message, b->says, strlen(b->says)) == 0, "%s: %s", b->text, message);
    ck_assert_ptr_null(strchr(message, '\n'));
}
END_TEST

static void expect_large(const char *name, char *text)
{
    tn_document *document;
    ck_assert_msg(tn_document_parse("f.yaml", text, strlen(text), &document, message) == TN_DOCUMENT_LARGE, "%s: %s", name, message);
    ck_assert_ptr_null(document);
    free(text);
}

START_TEST(files_of_another_order_of_size_are_refused_early)
{
    char *bytes = malloc(TN_DOCUMENT_BYTES + 2);
    memset(bytes, ' ', TN_DOCUMENT_BYTES + 1);
    bytes[TN_DOCUMENT_BYTES + 1] = 0;
    expect_large("bytes", bytes);

    char *nodes = malloc(TN_DOCUMENT_NODES * 2 + 16), *p = nodes + sprintf(nodes, "a: [");
    for (int i = 0; i < TN_DOCUMENT_NODES; i++)
        p += sprintf(p, "1,");
    sprintf(p, "]\n");
    expect_large("nodes", nodes);

    char *keys = malloc(TN_DOCUMENT_KEYS * 16 + 32);
    p = keys;
    for (int i = 0; i <= TN_DOCUMENT_KEYS; i++)
        p += sprintf(p, "k%d: 1\n", i);
    expect_large("keys", keys);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_why)
{
    tn_document *document;
    ck_assert(tn_document_load("/nowhere/at/all.yaml", &document, message) == TN_DOCUMENT_OPEN);
    ck_assert_str_eq(message, "/nowhere/at/all.yaml: it cannot be read: No such file or directory");
    ck_assert(tn_document_load("/", &document, message) == TN_DOCUMENT_OPEN);
    ck_assert_str_eq(message, "/: it cannot be read: Is a directory");
}
END_TEST

START_TEST(a_pipe_is_read_to_its_end)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "a: 1\n", 5), 5);
    close(ends[1]);
    char path[40];
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    tn_document *d;
    ck_assert_msg(tn_document_load(path, &d, message) == TN_DOCUMENT_OK, "%s", message);
    ck_assert_str_eq(tn_node_find(tn_document_root(d), "a")->text, "1");
    tn_document_free(d);
    close(ends[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("document");
    TCase *t = tcase_create("document");
    tcase_add_test(t, a_tree_keeps_texts_order_and_places);
    tcase_add_test(t, a_json_file_is_one_too);
    tcase_add_test(t, words_stay_the_words_that_were_written);
    tcase_add_loop_test(t, what_is_not_taken_is_told_in_a_sentence_with_its_line, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(t, files_of_another_order_of_size_are_refused_early);
    tcase_add_test(t, a_file_that_cannot_be_read_says_why);
    tcase_add_test(t, a_pipe_is_read_to_its_end);
    tcase_set_timeout(t, 20);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
