/* Remembered charges: the median, set-ups, what a failed run may not do, and a file that survives writers, kills and full disks. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "planner/reserve.h"
#include "planner/text_file.h"

static char folder[] = "/tmp/tenure_reserve_XXXXXX", path[128], message[TN_RESERVE_MESSAGE];

static void make_folder(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/charges.json", folder);
}

static void remove_folder(void)
{
    char command[200];
    snprintf(command, sizeof(command), "chmod -R u+w %s && rm -rf %s", folder, folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *const libraries[] = {"libcudart.so.13 0a1b", "libcublas.so.13 2c3d"};
static const tn_reserve_key h200 = {"NVIDIA H200", "580.65.06", "lazy", libraries, 2};

static tn_measurement measurement(const char *run, uint64_t bytes)
{
    tn_measurement m = {.run = run, .date = "2026-11-30", .complete = true};
    m.charges.bytes[TN_CLAIM_CONTEXT] = bytes;
    m.charges.bytes[TN_CLAIM_LIBRARIES] = 2 * bytes;
    return m;
}

static tn_reserve_error remember(const tn_reserve_key *key, const char *run, uint64_t bytes)
{
    tn_measurement m = measurement(run, bytes);
    return tn_reserve_remember(path, key, &m, message);
}

static tn_reserve *load(void)
{
    tn_reserve *reserve;
    ck_assert_msg(tn_reserve_load(path, &reserve, message) == TN_RESERVE_OK, "%s", message);
    return reserve;
}

/* The context's charge; UINT64_MAX: not found. */
static uint64_t recall(const tn_reserve_key *key, size_t *measurements)
{
    tn_reserve *reserve = load();
    tn_reserve_answer answer = {.measurements = 0};
    tn_reserve_error error = tn_reserve_find(reserve, key, &answer);
    tn_reserve_free(reserve);
    if (measurements)
        *measurements = answer.measurements;
    if (error != TN_RESERVE_OK)
        return UINT64_MAX;
    ck_assert_uint_eq(answer.charges.bytes[TN_CLAIM_LIBRARIES], 2 * answer.charges.bytes[TN_CLAIM_CONTEXT]);
    return answer.charges.bytes[TN_CLAIM_CONTEXT];
}

START_TEST(what_is_measured_is_recalled_by_its_set_up)
{
    ck_assert_msg(remember(&h200, "run1", 100) == TN_RESERVE_OK, "%s", message);
    ck_assert_uint_eq(recall(&h200, NULL), 100);
    static const char *const turned[] = {"libcublas.so.13 2c3d", "libcudart.so.13 0a1b", "libcublas.so.13 2c3d"};
    tn_reserve_key other = h200;
    other.libraries = turned;
    other.library_count = 3;
    ck_assert_uint_eq(recall(&other, NULL), 100); /* order and repetition do not matter */
    static const char *const rebuilt[] = {"libcudart.so.13 0a1b", "libcublas.so.13 ffff"};
    other.libraries = rebuilt;
    other.library_count = 2;
    ck_assert_uint_eq(recall(&other, NULL), UINT64_MAX);
    other.library_count = 1;
    ck_assert_uint_eq(recall(&other, NULL), UINT64_MAX);
    const tn_reserve_key others[] = {{"NVIDIA H100", "580.65.06", "lazy", libraries, 2}, {"NVIDIA H200", "581.1", "lazy", libraries, 2},
                                     {"NVIDIA H200", "580.65.06", "eager", libraries, 2}};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(recall(&others[i], NULL), UINT64_MAX);
        ck_assert(remember(&others[i], "run1", 200 + i) == TN_RESERVE_OK);
        ck_assert_uint_eq(recall(&others[i], NULL), 200 + i);
    }
    ck_assert_uint_eq(recall(&h200, NULL), 100);
    struct stat st;
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}
END_TEST

START_TEST(the_median_counts_and_of_two_the_larger)
{
    static const uint64_t measured[] = {50, 40, 60, 45, 41, 70, 44, 43, 42}, expected[] = {50, 50, 50, 50, 45, 50, 45, 45, 44};
    for (size_t i = 0; i < 9; i++) {
        char run[32];
        snprintf(run, sizeof(run), "run%zu", i);
        ck_assert(remember(&h200, run, measured[i]) == TN_RESERVE_OK);
        size_t n;
        ck_assert_msg(recall(&h200, &n) == expected[i], "after %zu", i + 1);
        ck_assert_uint_eq(n, i + 1);
    }
}
END_TEST

START_TEST(bad_runs_do_not_move_what_is_reserved_and_do_not_stay)
{
    char run[32];
    for (int i = 0; i < 5; i++) {
        snprintf(run, sizeof(run), "good%d", i);
        ck_assert(remember(&h200, run, 1000 + (uint64_t)i) == TN_RESERVE_OK);
    }
    for (int i = 0; i < 3; i++) { /* three of eight are a hundred times too large, or nearly nothing */
        snprintf(run, sizeof(run), "bad%d", i);
        ck_assert(remember(&h200, run, i == 1 ? 1 : 100000) == TN_RESERVE_OK);
        uint64_t now = recall(&h200, NULL);
        ck_assert_msg(now >= 1000 && now <= 1004, "%" PRIu64, now);
    }
    for (int i = 0; i < TN_RESERVE_KEPT; i++) {
        snprintf(run, sizeof(run), "later%d", i);
        ck_assert(remember(&h200, run, 500) == TN_RESERVE_OK);
    }
    size_t n;
    ck_assert_uint_eq(recall(&h200, &n), 500); /* no ratchet: it falls again */
    ck_assert_uint_eq(n, TN_RESERVE_KEPT);
}
END_TEST

START_TEST(a_run_counts_once)
{
    ck_assert(remember(&h200, "a", 100) == TN_RESERVE_OK);
    ck_assert(remember(&h200, "b", 101) == TN_RESERVE_OK);
    ck_assert(remember(&h200, "c", 102) == TN_RESERVE_OK);
    for (int i = 0; i < 20; i++)
        ck_assert(remember(&h200, "bad", 90000) == TN_RESERVE_OK);
    size_t n;
    ck_assert_uint_eq(recall(&h200, &n), 102);
    ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(a_failed_run_changes_nothing)
{
    ck_assert(remember(&h200, "good", 100) == TN_RESERVE_OK);
    char *before, *after;
    size_t length, after_length;
    ck_assert_int_eq(tn_text_file_read(path, 1 << 20, &before, &length), 0);
    tn_measurement m = measurement("failed", 5);
    m.complete = false;
    ck_assert(tn_reserve_remember(path, &h200, &m, message) == TN_RESERVE_REFUSED);
    ck_assert_ptr_nonnull(strstr(message, "not remembered"));
    ck_assert(remember(&h200, "nothing", 0) == TN_RESERVE_REFUSED);
    ck_assert(remember(&h200, NULL, 5) == TN_RESERVE_REFUSED);
    ck_assert(remember(&h200, "no\nline", 5) == TN_RESERVE_REFUSED);
    ck_assert(remember(&h200, "no utf-8 \xff", 5) == TN_RESERVE_REFUSED);
    ck_assert(remember(&h200, "x", UINT64_MAX / 2 + 2) == TN_RESERVE_REFUSED);
    tn_reserve_key long_key = h200;
    char name[TN_RESERVE_TEXT + 1];
    memset(name, 'g', sizeof(name) - 1);
    name[TN_RESERVE_TEXT] = 0;
    long_key.gpu = name;
    ck_assert(remember(&long_key, "run", 5) == TN_RESERVE_REFUSED);
    ck_assert_int_eq(tn_text_file_read(path, 1 << 20, &after, &after_length), 0);
    ck_assert(length == after_length && memcmp(before, after, length) == 0);
    free(before);
    free(after);
}
END_TEST

START_TEST(one_set_up_is_chosen_by_the_names_that_are_given)
{
    const tn_reserve_key keys[] = {{"A", "1", "lazy", NULL, 0}, {"A", "2", "lazy", NULL, 0}, {"B", "1", "eager", libraries, 2}};
    for (uint64_t i = 0; i < 3; i++)
        ck_assert(remember(&keys[i], "r", 10 + i) == TN_RESERVE_OK);
    tn_reserve *reserve = load();
    tn_reserve_answer a;
    ck_assert(tn_reserve_select(reserve, "B", "", NULL, &a, message) == TN_RESERVE_OK);
    ck_assert_uint_eq(a.charges.bytes[TN_CLAIM_CONTEXT], 12);
    ck_assert_str_eq(a.driver, "1");
    ck_assert_str_eq(a.date, "2026-11-30");
    ck_assert(tn_reserve_select(reserve, "A", NULL, NULL, &a, message) == TN_RESERVE_SEVERAL);
    ck_assert_str_eq(message, "it has measurements of 2 set-ups that may be meant: A / 1 / lazy with 0 libraries, A / 2 / lazy with 0 libraries");
    ck_assert(tn_reserve_select(reserve, "A", "2", NULL, &a, message) == TN_RESERVE_OK);
    ck_assert(tn_reserve_select(reserve, NULL, NULL, "eager", &a, message) == TN_RESERVE_OK);
    ck_assert(tn_reserve_select(reserve, "C", NULL, NULL, &a, message) == TN_RESERVE_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(message, "gpu \"C\""));
    tn_reserve_free(reserve);
}
END_TEST

START_TEST(set_ups_not_measured_for_longest_go_first)
{
    /* As many as are kept, the first of them the newest, and three more. */
    FILE *file = fopen(path, "w");
    for (int i = 0; i < TN_RESERVE_ENTRIES; i++)
        fprintf(file,
                "%s{\"gpu\": \"G\", \"driver\": \"%d\", \"loading\": \"lazy\", \"libraries\": [], \"measurements\":"
                "[{\"run\": \"r\", \"date\": \"2026-%04d\", \"bytes\": {\"context\": 7, \"libraries\": 14}}]}",
                i ? "," : "{\"schema\": \"tenure-charges/1\", \"entries\": [", i, i == 0 ? 9999 : i);
    fputs("]}\n", file);
    fclose(file);
    for (int i = TN_RESERVE_ENTRIES; i < TN_RESERVE_ENTRIES + 3; i++) {
        char driver[32], date[32];
        snprintf(driver, sizeof(driver), "%d", i);
        snprintf(date, sizeof(date), "2026-%04d", i);
        tn_reserve_key key = {"G", driver, "lazy", NULL, 0};
        tn_measurement m = measurement("r", 7);
        m.date = date;
        ck_assert_msg(tn_reserve_remember(path, &key, &m, message) == TN_RESERVE_OK, "%s", message);
    }
    static const struct { const char *driver; int there; } rows[] = {{"0", 1}, {"1", 0}, {"2", 0}, {"3", 0}, {"4", 1}, {"258", 1}};
    for (size_t i = 0; i < 6; i++) {
        tn_reserve_key key = {"G", rows[i].driver, "lazy", NULL, 0};
        ck_assert_msg((recall(&key, NULL) == 7) == rows[i].there, "%s", rows[i].driver);
    }
}
END_TEST

#define HEAD "{\"schema\": \"tenure-charges/1\", \"entries\": ["
#define ENTRY "{\"gpu\": \"G\", \"driver\": \"1\", \"loading\": \"lazy\", \"libraries\": [\"a\"], \"measurements\": "
#define MEASURED "{\"run\": \"r\", \"date\": \"d\", \"bytes\": {\"context\": 5}}"

static const struct bad {
    const char *text;
    tn_reserve_error error;
    const char *says;
} bad[] = {
    {"", TN_RESERVE_CORRUPT, "line 1: "},
    {"{\n\"schema\": \"tenure", TN_RESERVE_CORRUPT, "line 2: "},
    {"[]", TN_RESERVE_CORRUPT, "schema is missing"},
    {"{}", TN_RESERVE_CORRUPT, "schema is missing"},
    {"{\"schema\": \"tenure-charges/2\"}", TN_RESERVE_VERSION, "its schema is \"tenure-charges/2\", and tenure-charges/1 is what is read here"},
    {"{\"schema\": \"tenure-charges/1\"}", TN_RESERVE_CORRUPT, "entries is no list"},
    {"{\"schema\": \"tenure-charges/1\", \"entries\": [], \"more\": 1}", TN_RESERVE_CORRUPT, "the file has a key \"more\""},
    {"{\"schema\": \"tenure-charges/1\", \"entries\": [], \"entries\": []}", TN_RESERVE_CORRUPT, "line 1: "},
    {"{\"schema\": \"tenure-charges/1\", \"entries\": [], \"a\\nb\": 1}", TN_RESERVE_CORRUPT, "the file has a key \"a?b\""},
    {HEAD "1]}", TN_RESERVE_CORRUPT, "entries[0] is no object"},
    {HEAD "{}]}", TN_RESERVE_CORRUPT, "entries[0].gpu is no text"},
    {HEAD ENTRY "[]}]}", TN_RESERVE_CORRUPT, "entries[0].measurements is no list of 1 to 9"},
    {HEAD ENTRY "[" MEASURED ",2]}]}", TN_RESERVE_CORRUPT, "entries[0].measurements[1] is no object"},
    {HEAD ENTRY "[" MEASURED "]}," ENTRY "[" MEASURED "]}]}", TN_RESERVE_CORRUPT, "entries has one set-up twice"},
    {HEAD ENTRY "[{\"run\": \"r\", \"date\": \"d\", \"bytes\": {\"context\": -5}}]}]}", TN_RESERVE_CORRUPT,
     "entries[0].measurements[0].bytes.context is no whole number of bytes"},
    {HEAD ENTRY "[{\"run\": \"r\", \"date\": \"d\", \"bytes\": {\"context\": 1.5}}]}]}", TN_RESERVE_CORRUPT, "entries[0].measurements[0].bytes.context"},
    {HEAD ENTRY "[{\"run\": \"r\", \"date\": \"d\", \"bytes\": {\"contxt\": 5}}]}]}", TN_RESERVE_CORRUPT,
     "entries[0].measurements[0].bytes has a key \"contxt\""},
    {HEAD ENTRY "[{\"run\": \"r\", \"date\": 5, \"bytes\": {}}]}]}", TN_RESERVE_CORRUPT, "entries[0].measurements[0].date is no text"},
    {HEAD "{\"gpu\": \"G\", \"driver\": \"1\", \"loading\": \"lazy\", \"libraries\": [\"a\", 7], \"measurements\": []}]}", TN_RESERVE_CORRUPT,
     "entries[0].libraries[1] is no text"},
};

START_TEST(a_damaged_file_is_told_with_its_place_and_left_as_it_is)
{
    const struct bad *b = &bad[_i];
    FILE *file = fopen(path, "w");
    fputs(b->text, file);
    fclose(file);
    tn_reserve *reserve = (tn_reserve *)message;
    tn_reserve_error error = tn_reserve_load(path, &reserve, message);
    ck_assert_msg(error == b->error, "%s: %d", b->text, error);
    ck_assert_ptr_null(reserve);
    ck_assert_msg(strncmp(message, path, strlen(path)) == 0 && strncmp(message + strlen(path) + 2, b->says, strlen(b->says)) == 0, "%s", message);
    ck_assert_ptr_null(strchr(message, '\n'));
    ck_assert(remember(&h200, "run", 5) == b->error);
    char *after;
    size_t length;
    ck_assert_int_eq(tn_text_file_read(path, 1 << 20, &after, &length), 0);
    ck_assert_str_eq(after, b->text);
    free(after);
}
END_TEST

START_TEST(a_place_that_cannot_be_written_is_told)
{
    tn_reserve *reserve;
    ck_assert(tn_reserve_load(path, &reserve, message) == TN_RESERVE_ABSENT);
    ck_assert_ptr_nonnull(strstr(message, "there is no such file"));
    ck_assert(remember(&h200, "run", 5) == TN_RESERVE_OK);
    tn_measurement m = measurement("run", 5);
    char below[160];
    snprintf(below, sizeof(below), "%s/folder/charges.json", path); /* a file where a folder should be */
    ck_assert(tn_reserve_remember(below, &h200, &m, message) == TN_RESERVE_WRITE);
    ck_assert_ptr_nonnull(strstr(message, "Not a directory"));
    snprintf(below, sizeof(below), "%s/new/folders/are made/charges.json", folder);
    ck_assert_msg(tn_reserve_remember(below, &h200, &m, message) == TN_RESERVE_OK, "%s", message);
    ck_assert(tn_reserve_remember("/proc/nowhere/charges.json", &h200, &m, message) == TN_RESERVE_WRITE);
    ck_assert(tn_reserve_load(folder, &reserve, message) == TN_RESERVE_READ);
    ck_assert_ptr_nonnull(strstr(message, "Is a directory"));
}
END_TEST

/* In a child that is nobody, for whom a folder can be read-only. Exit code: the error. */
START_TEST(a_read_only_folder_is_told_and_can_be_read)
{
    ck_assert(remember(&h200, "run", 5) == TN_RESERVE_OK);
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(99);
        tn_reserve *reserve;
        if (tn_reserve_load(path, &reserve, message) != TN_RESERVE_OK)
            _exit(98);
        tn_reserve_free(reserve);
        tn_measurement m = measurement("other", 9);
        tn_reserve_error error = tn_reserve_remember(path, &h200, &m, message);
        _exit(strstr(message, "Permission denied") ? (int)error : 97);
    }
    int status = -1;
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == TN_RESERVE_WRITE, "status %x", (unsigned)status);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_uint_eq(recall(&h200, NULL), 5);
}
END_TEST

START_TEST(a_disk_that_is_full_at_any_byte_leaves_the_old_file)
{
    ck_assert(remember(&h200, "run", 5) == TN_RESERVE_OK);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit was, limit;
    getrlimit(RLIMIT_FSIZE, &was);
    int failures = 0;
    for (off_t bytes = 0; bytes < st.st_size; bytes += 7) { /* the next file is longer than this one */
        limit = was;
        limit.rlim_cur = (rlim_t)bytes;
        setrlimit(RLIMIT_FSIZE, &limit);
        tn_reserve_error error = remember(&h200, "other", 9);
        setrlimit(RLIMIT_FSIZE, &was);
        ck_assert_msg(error == TN_RESERVE_WRITE, "%d at %ld: %s", error, (long)bytes, message);
        ck_assert_ptr_nonnull(strstr(message, "it cannot be written: File too large"));
        ck_assert_uint_eq(recall(&h200, NULL), 5);
        failures++;
    }
    ck_assert_int_gt(failures, 20);
    char fresh[160];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    ck_assert(access(fresh, F_OK) != 0);
    ck_assert(remember(&h200, "other", 9) == TN_RESERVE_OK);
}
END_TEST

START_TEST(writers_at_once_lose_nothing)
{
    enum { WRITERS = 8, EACH = 12 };
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        if (children[w] == 0) {
            int bad = 0;
            for (int i = 0; i < EACH; i++) {
                char driver[32], run[32];
                snprintf(driver, sizeof(driver), "%d", i % 4); /* set-ups that two writers share */
                snprintf(run, sizeof(run), "w%d-%d", w, i);
                char gpu[24];
                snprintf(gpu, sizeof(gpu), "G%d", w / 2);
                tn_reserve_key key = {gpu, driver, "lazy", libraries, 2};
                bad |= remember(&key, run, 100 + (uint64_t)w) != TN_RESERVE_OK;
            }
            _exit(bad);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        waitpid(children[w], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    size_t all = 0;
    for (int g = 0; g < WRITERS / 2; g++)
        for (int i = 0; i < 4; i++) {
            char gpu[24], driver[24];
            size_t n;
            snprintf(gpu, sizeof(gpu), "G%d", g);
            snprintf(driver, sizeof(driver), "%d", i);
            tn_reserve_key key = {gpu, driver, "lazy", libraries, 2};
            ck_assert_uint_ne(recall(&key, &n), UINT64_MAX);
            all += n;
        }
    ck_assert_uint_eq(all, WRITERS * EACH);
}
END_TEST

START_TEST(a_writer_that_is_killed_leaves_a_whole_file)
{
    ck_assert(remember(&h200, "first", 5) == TN_RESERVE_OK);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (unsigned n = 0;; n++) {
                char run[32];
                snprintf(run, sizeof(run), "r%u", n);
                if (remember(&h200, run, 5) != TN_RESERVE_OK)
                    _exit(1);
            }
        struct timespec pause = {0, 1000000 + i * 1331000};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        int status = -1;
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
        ck_assert_uint_eq(recall(&h200, NULL), 5);
    }
    ck_assert(remember(&h200, "last", 5) == TN_RESERVE_OK);
}
END_TEST

START_TEST(a_lock_that_is_never_given_back_is_told)
{
    char name[160];
    snprintf(name, sizeof(name), "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    ck_assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
    ck_assert(remember(&h200, "run", 5) == TN_RESERVE_LOCKED);
    ck_assert_ptr_nonnull(strstr(message, "another process has held its lock"));
    close(fd);
    ck_assert(remember(&h200, "run", 5) == TN_RESERVE_OK);
}
END_TEST

START_TEST(a_link_stays_a_link)
{
    char real[160];
    snprintf(real, sizeof(real), "%s/real.json", folder);
    ck_assert(remember(&h200, "a", 5) == TN_RESERVE_OK);
    ck_assert_int_eq(rename(path, real), 0);
    ck_assert_int_eq(symlink("real.json", path), 0);
    ck_assert(remember(&h200, "b", 9) == TN_RESERVE_OK);
    struct stat st;
    ck_assert(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert_uint_eq(recall(&h200, NULL), 9);
}
END_TEST

START_TEST(the_order_in_which_set_ups_came_leaves_no_trace)
{
    const tn_reserve_key keys[] = {{"A", "1", "lazy", NULL, 0}, {"B", "2", "lazy", libraries, 2}, {"B", "2", "lazy", libraries, 1}};
    char *first = NULL, *text;
    size_t length;
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    for (int o = 0; o < 3; o++) {
        unlink(path);
        for (int i = 0; i < 3; i++)
            ck_assert(remember(&keys[orders[o][i]], "r", 10 + (uint64_t)orders[o][i]) == TN_RESERVE_OK);
        ck_assert_int_eq(tn_text_file_read(path, 1 << 20, &text, &length), 0);
        if (!first)
            first = text;
        else
            ck_assert_str_eq(first, text);
        if (text != first)
            free(text);
    }
    free(first);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reserve");
    TCase *t = tcase_create("reserve");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, what_is_measured_is_recalled_by_its_set_up);
    tcase_add_test(t, the_median_counts_and_of_two_the_larger);
    tcase_add_test(t, bad_runs_do_not_move_what_is_reserved_and_do_not_stay);
    tcase_add_test(t, a_run_counts_once);
    tcase_add_test(t, a_failed_run_changes_nothing);
    tcase_add_test(t, one_set_up_is_chosen_by_the_names_that_are_given);
    tcase_add_test(t, set_ups_not_measured_for_longest_go_first);
    tcase_add_loop_test(t, a_damaged_file_is_told_with_its_place_and_left_as_it_is, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(t, a_place_that_cannot_be_written_is_told);
    tcase_add_test(t, a_read_only_folder_is_told_and_can_be_read);
    tcase_add_test(t, a_disk_that_is_full_at_any_byte_leaves_the_old_file);
    tcase_add_test(t, writers_at_once_lose_nothing);
    tcase_add_test(t, a_writer_that_is_killed_leaves_a_whole_file);
    tcase_add_test(t, a_lock_that_is_never_given_back_is_told);
    tcase_add_test(t, a_link_stays_a_link);
    tcase_add_test(t, the_order_in_which_set_ups_came_leaves_no_trace);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
