/* Which file of a tree a compiler's path means. */
#include <check.h>
#include <string.h>

#include "census/census_paths.h"

/* A census with these files and nothing else; `paths` sorted. */
static tn_census tree(const char *root, tn_census_file *files, const char *const *paths)
{
    tn_census census = {.root = (char *)root, .files = files};
    for (; *paths; paths++)
        files[census.file_count++] = (tn_census_file){.path = (char *)*paths};
    return census;
}

static const char *const files[] = {"a/same.c", "b/deep/same.c", "b/same.c", "main.c", "only.c", "src/exec/run.cu", "x/t.h", "y/x/t.h", NULL};

/* The file meant, "none", or "A|B". */
static const char *meant(const char *path)
{
    static char text[256];
    tn_census_file room[16];
    tn_census census = tree("/home/u/tree", room, files);
    tn_paths *paths = tn_paths_new(&census);
    size_t first = 99, second = 99, again = 99;
    tn_path_match match = tn_paths_find(paths, path, &first, &second);
    ck_assert_int_eq(tn_paths_find(paths, path, &again, &second), match); /* remembered */
    if (match == TN_PATH_NONE)
        strcpy(text, "none");
    else
        strcpy(text, files[first]);
    if (match != TN_PATH_NONE)
        ck_assert_uint_eq(again, first);
    if (match == TN_PATH_SEVERAL)
        strcat(strcat(text, "|"), files[second]);
    tn_paths_free(paths);
    return text;
}

START_TEST(suffixes)
{
    ck_assert_str_eq(meant("/home/u/tree/src/exec/run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("/build/17/src/exec/run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("src/exec/run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("exec/run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("./src//exec/./run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("/elsewhere/exec/run.cu"), "src/exec/run.cu");
    ck_assert_str_eq(meant("/elsewhere/run.cu"), "none");
    ck_assert_str_eq(meant("/usr/include/rerun.cu"), "none");
    ck_assert_str_eq(meant("/src/exec/run.cuh"), "none");
    ck_assert_str_eq(meant(""), "none");
    ck_assert_str_eq(meant("/"), "none");
}
END_TEST

START_TEST(several)
{
    ck_assert_str_eq(meant("/b/same.c"), "b/same.c");
    ck_assert_str_eq(meant("/q/a/same.c"), "a/same.c");
    ck_assert_str_eq(meant("deep/same.c"), "b/deep/same.c");
    ck_assert_str_eq(meant("same.c"), "a/same.c|b/deep/same.c");
    ck_assert_str_eq(meant("/q/same.c"), "none");
    ck_assert_str_eq(meant("/q/x/t.h"), "x/t.h|y/x/t.h");
    ck_assert_str_eq(meant("/q/y/x/t.h"), "y/x/t.h");
    ck_assert_str_eq(meant("/home/u/tree/x/t.h"), "x/t.h");
}
END_TEST

/* In the root the name alone is all there is. */
START_TEST(in_the_root)
{
    ck_assert_str_eq(meant("/build/main.c"), "main.c");
    ck_assert_str_eq(meant("main.c"), "main.c");
    ck_assert_str_eq(meant("/home/u/tree/main.c"), "main.c");
    ck_assert_str_eq(meant("/home/u/tree/only.c"), "only.c");
}
END_TEST

/* More answers than there was room for. */
START_TEST(many)
{
    tn_census_file room[16];
    tn_census census = tree("/t", room, files);
    tn_paths *paths = tn_paths_new(&census);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            char path[64];
            size_t first = 99, second;
            snprintf(path, sizeof(path), "/build/%d/%s", i, i % 2 ? "src/exec/run.cu" : "absent.c");
            ck_assert_int_eq(tn_paths_find(paths, path, &first, &second), i % 2 ? TN_PATH_ONE : TN_PATH_NONE);
            ck_assert_uint_eq(first, i % 2 ? 5 : 99);
        }
    tn_paths_free(paths);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("paths");
    TCase *t = tcase_create("paths");
    tcase_add_test(t, suffixes);
    tcase_add_test(t, several);
    tcase_add_test(t, in_the_root);
    tcase_add_test(t, many);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
