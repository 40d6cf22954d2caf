/* SIGKILL of a recorded program at random points: its journal can be read, holds every allocation and free that the program knew of, and
 * tenure report works on it. The files are the arguments: libtenure.so, tenure, prog_kill, and the folder of the fake CUDA libraries is that
 * of the first one named libcuda.so.1. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger/journal_reader.h"
#include "tests/shim/kill.h"

enum { ROUNDS = 100 };

static char preload[PATH_MAX], tenure[PATH_MAX], program[PATH_MAX], libraries[2 * PATH_MAX];
static char work[PATH_MAX];
static kill_page *page;

/* The child never returns. */
static void start(const char *run)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof file, "%s/page", work);
    setenv("LD_LIBRARY_PATH", libraries, 1);
    setenv("LD_PRELOAD", preload, 1);
    setenv("TENURE_RUN", run, 1);
    execl(program, program, file, (char *)NULL);
    _exit(98);
}

/* The one journal of a run folder; 0 if there is none. */
static int find_journal(const char *run, char *path, size_t size)
{
    int found = 0;
    DIR *dir = opendir(run);
    ck_assert_ptr_nonnull(dir);
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        if (strstr(e->d_name, TN_JOURNAL_SUFFIX) == NULL)
            continue;
        found++;
        snprintf(path, size, "%s/%s", run, e->d_name);
    }
    closedir(dir);
    ck_assert_int_le(found, 1);
    return found;
}

/* Which of the numbered allocations the journal has, and which frees. */
static uint8_t has_alloc[KILL_THREADS][KILL_MAX], has_free[KILL_THREADS][KILL_MAX];

static void check_journal(const char *path)
{
    tn_reader *r;
    ck_assert_int_eq(tn_reader_open(path, &r), TN_OK);
    const tn_journal_header *h = tn_reader_header(r);
    ck_assert_uint_eq(h->dropped_events, 0);
    ck_assert_uint_eq(h->flags & (TN_HF_ENDED | TN_HF_STOPPED | TN_HF_BUFFERED), 0);
    memset(has_alloc, 0, sizeof has_alloc);
    memset(has_free, 0, sizeof has_free);
    const tn_event *e;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        if (e->type != TN_EV_ALLOC && e->type != TN_EV_FREE)
            continue;
        uint64_t t = e->bytes % KILL_THREADS, n = e->bytes / KILL_THREADS - 1;
        ck_assert_msg(e->bytes >= KILL_THREADS && n < KILL_MAX, "an event of %llu bytes that nobody made", (unsigned long long)e->bytes);
        ck_assert_int_eq(e->result, 0);
        /* Its stack is there too: a site that the journal describes. */
        ck_assert_msg(tn_reader_site(r, e->site) != NULL, "site %u of an event is not in the journal", e->site);
        uint8_t *seen = e->type == TN_EV_ALLOC ? &has_alloc[t][n] : &has_free[t][n];
        ck_assert_msg(!*seen, "allocation or free %llu twice", (unsigned long long)n);
        *seen = 1;
    }
    tn_reader_close(r);
    for (int t = 0; t < KILL_THREADS; t++) {
        for (uint32_t n = 0; n < page->allocated[t]; n++)
            ck_assert_msg(has_alloc[t][n], "thread %d was given allocation %u of %u, and the journal lacks it", t, n, page->allocated[t]);
        for (uint32_t n = 0; n < page->freed[t]; n++)
            ck_assert_msg(has_free[t][n], "thread %d saw free %u of %u done, and the journal lacks it", t, n, page->freed[t]);
    }
}

static int report(const char *run)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "'%s' report --json '%s' >/dev/null 2>&1", tenure, run);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int remove_tree(const char *path)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    return system(command);
}

START_TEST(killed_anywhere)
{
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid(), before_any = 0, with_frees = 0;
    uint64_t acknowledged = 0;
    printf("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < ROUNDS; i++) {
        char run[PATH_MAX + 16], journal[2 * PATH_MAX];
        int status;
        snprintf(run, sizeof run, "%s/run%d", work, i);
        ck_assert_int_eq(mkdir(run, 0700), 0);
        memset((void *)page, 0, sizeof *page);
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            start(run);
        /* One in five while it starts; the rest between some and some thousands of allocations. */
        long us = rand() % (i % 5 == 0 ? 6000 : 40000);
        if (i % 5 != 0)
            for (int tries = 0; tries < 20000 && page->allocated[0] == 0; tries++)
                usleep(100);
        nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the program ended by itself: %d", status);
        ck_assert_uint_eq(page->errors, 0);
        uint32_t known = page->allocated[0] + page->allocated[1];
        acknowledged += known;
        before_any += known == 0;
        with_frees += page->freed[0] > 0;
        int found = find_journal(run, journal, sizeof journal);
        ck_assert_msg(found || known == 0, "%u allocations acknowledged and no journal", known);
        if (known > 0) {
            check_journal(journal);
            ck_assert_int_eq(report(run), 0);
        } else {
            /* Killed before or in the middle of the journal's own start: said, not crashed on. */
            int code = report(run);
            ck_assert_msg(code == 0 || code == 2 || code == 3, "report gave %d", code);
        }
        ck_assert_int_eq(remove_tree(run), 0);
    }
    printf("%d kills, %llu allocations acknowledged, %u kills before the first, %u after frees\n", ROUNDS, (unsigned long long)acknowledged,
           before_any, with_frees);
    ck_assert_uint_gt(with_frees, ROUNDS / 3);
}
END_TEST

static void find_files(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char full[PATH_MAX];
        if (realpath(argv[i], full) == NULL)
            continue;
        const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        if (strcmp(name, "libtenure.so") == 0)
            strcpy(preload, full);
        else if (strcmp(name, "tenure") == 0)
            strcpy(tenure, full);
        else if (strcmp(name, "prog_kill") == 0)
            strcpy(program, full);
        else if (strcmp(name, "libcuda.so.1") == 0 || strcmp(name, "libcudart.so.13") == 0) {
            *strrchr(full, '/') = 0;
            if (strlen(libraries) + strlen(full) + 2 < sizeof libraries)
                strcat(strcat(libraries, full), ":");
        }
    }
}

int main(int argc, char **argv)
{
    char file[PATH_MAX + 16];
    find_files(argc, argv);
    if (!*preload || !*tenure || !*program || !*libraries) {
        fprintf(stderr, "usage: test_kill libtenure.so tenure prog_kill libcuda.so.1 libcudart.so.13\n");
        return 1;
    }
    snprintf(work, sizeof work, "%s/kill-XXXXXX", getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp");
    if (mkdtemp(work) == NULL)
        return 1;
    snprintf(file, sizeof file, "%s/page", work);
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *page) != 0)
        return 1;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 1;
    Suite *s = suite_create("kill");
    TCase *c = tcase_create("kill");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, killed_anywhere);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return remove_tree(work) != 0 || failed != 0;
}
