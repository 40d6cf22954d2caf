/* SIGKILL at a hundred random points: what had been committed before is in the file, in order, and nothing
 * else is. The children say how far they are through memory they share with the test. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

enum { THREADS = 4, KILLS = 100 };

typedef struct progress {
    _Atomic uint64_t done[THREADS]; /* events committed */
    _Atomic uint32_t records;
    char path[512];
    _Atomic int ready;
} progress;

static progress *shared;
static tn_journal *child_journal;

static void *endless(void *p)
{
    uint32_t me = (uint32_t)(uintptr_t)p;
    tn_journal_thread *t = tn_journal_attach(child_journal, this_tid());
    for (uint64_t n = 0;; n++) {
        tn_event *e = tn_journal_slot(child_journal, t, 0);
        if (e == NULL)
            return NULL; /* the parent finds a drop counted, and fails */
        e->tsc = tn_stamp();
        e->api = (uint16_t)(me + 1);
        e->addr = n;
        e->aux = n * 0x9e3779b97f4a7c15u;
        e->bytes = me;
        e->aux2 = ~n;
        tn_journal_commit(e, TN_EV_ALLOC);
        tn_journal_counters(t)[me]++;
        atomic_store_explicit(&shared->done[me], n + 1, memory_order_release);
        if (n % 500 == 0 && me == 0) {
            uint32_t id = atomic_load(&shared->records);
            char text[64];
            memset(text, 'a' + (int)(id % 26), sizeof text);
            text[sizeof text - 1] = '\0';
            if (tn_journal_record(child_journal, TN_REC_STRING, &id, sizeof id, text, sizeof text) == TN_OK)
                atomic_store(&shared->records, id + 1);
        }
        /* A thread that ends and comes back, so that hand-over is killed too. */
        if (n % 700 == 699) {
            tn_journal_detach(child_journal, t);
            t = tn_journal_attach(child_journal, this_tid());
        }
    }
}

static void child(void)
{
    pthread_t threads[THREADS];
    child_journal = open_journal(NULL, 0);
    snprintf(shared->path, sizeof shared->path, "%s", tn_journal_path(child_journal));
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, endless, (void *)i);
    atomic_store(&shared->ready, 1);
    for (;;)
        pause();
}

static void check_journal(const uint64_t done[THREADS], uint32_t records)
{
    uint64_t next[THREADS] = { 0 };
    tn_reader *r = open_reader(shared->path);
    const tn_journal_header *h = tn_reader_header(r);
    ck_assert_uint_eq(h->flags, 0);
    ck_assert_uint_eq(h->dropped_events + h->dropped_records, 0);
    ck_assert_msg(tn_reader_damage(r) == NULL, "%s", tn_reader_damage(r));
    uint64_t last = 0;
    for (const tn_event *e; (e = tn_reader_next(r, NULL)) != NULL; last = e->tsc) {
        ck_assert_uint_ge(e->tsc, last);
        ck_assert_int_eq(e->type, TN_EV_ALLOC);
        ck_assert_uint_lt(e->bytes, THREADS);
        ck_assert_uint_eq(e->api, e->bytes + 1);
        ck_assert_msg(e->addr == next[e->bytes], "thread %d: %llu where %llu was due", (int)e->bytes,
                      (unsigned long long)e->addr, (unsigned long long)next[e->bytes]);
        ck_assert_uint_eq(e->aux, e->addr * 0x9e3779b97f4a7c15u);
        ck_assert_uint_eq(e->aux2, ~e->addr);
        next[e->bytes]++;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        /* One event may have been committed but not yet reported. */
        ck_assert_uint_ge(next[i], done[i]);
        ck_assert_uint_le(next[i], done[i] + 1);
        ck_assert_uint_ge(tn_reader_calls(r, i) + 1, next[i]);
        ck_assert_uint_le(tn_reader_calls(r, i), next[i]);
    }
    for (uint32_t id = 0; id < records; id++) {
        const char *text = tn_reader_string(r, id);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(strlen(text), 63);
        ck_assert_int_eq(text[62], 'a' + (int)(id % 26));
    }
    tn_reader_close(r);
}

START_TEST(nothing_committed_is_lost)
{
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    printf("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < KILLS; i++) {
        memset(shared, 0, sizeof *shared);
        fflush(NULL);
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            child();
        while (!atomic_load(&shared->ready))
            usleep(100);
        usleep((useconds_t)(rand() % 12000));
        kill(pid, SIGKILL);
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        uint64_t done[THREADS];
        for (int k = 0; k < THREADS; k++)
            done[k] = atomic_load(&shared->done[k]);
        check_journal(done, atomic_load(&shared->records));
        unlink(shared->path);
    }
}
END_TEST

/* Killed between its creation and its first event: a journal with no events, or one cut short, never a crash. */
START_TEST(killed_at_the_start)
{
    for (int i = 0; i < 50; i++) {
        memset(shared, 0, sizeof *shared);
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            child();
        usleep((useconds_t)(i * 20));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        DIR *dir = opendir(fixture_dir);
        for (struct dirent *e; (e = readdir(dir)) != NULL;) {
            char path[768];
            tn_reader *r;
            if (strstr(e->d_name, TN_JOURNAL_SUFFIX) == NULL)
                continue;
            snprintf(path, sizeof path, "%s/%s", fixture_dir, e->d_name);
            tn_error error = tn_reader_open(path, &r);
            ck_assert_msg(error == TN_OK || error == TN_E_TRUNCATED, "%s", tn_error_text(error));
            if (error == TN_OK)
                tn_reader_close(r);
            unlink(path);
        }
        closedir(dir);
    }
}
END_TEST

static void begin(void)
{
    fixture_begin();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
}

int main(void)
{
    Suite *s = suite_create("journal_kill");
    TCase *c = tcase_create("kill");
    tcase_add_checked_fixture(c, begin, fixture_end);
    tcase_set_timeout(c, 240);
    tcase_add_test(c, nothing_committed_is_lost);
    tcase_add_test(c, killed_at_the_start);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
