/* The writer where nothing goes wrong: what is written is read, by any number of threads, under a private name. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

START_TEST(everything_written_is_read)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, 5000), 5000);
    write_api_record(j, 3, "cudaMalloc");
    tn_journal_counters(t)[3] = 5000;
    tn_journal_counters(t)[TN_API_MAX + 3] = 2;
    tn_journal_set_versions(j, 13000, 0);
    tn_journal_set_versions(j, 0, 13010);
    tn_journal_set_flags(j, TN_HF_WRAP);
    tn_journal_end(j);

    tn_reader *r = open_reader(tn_journal_path(j));
    const tn_journal_header *h = tn_reader_header(r);
    ck_assert_uint_eq(h->pid, (uint32_t)getpid());
    ck_assert_uint_eq(h->ppid, (uint32_t)getppid());
    ck_assert_uint_eq(h->flags, TN_HF_ENDED | TN_HF_WRAP);
    ck_assert_uint_eq(h->driver_version, 13000);
    ck_assert_uint_eq(h->runtime_version, 13010);
    ck_assert_uint_eq(h->api_count, 20);
    ck_assert_str_eq(h->libtenure_path, "/opt/tenure/libtenure.so");
    char exe[1024] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    ck_assert_str_eq(h->exe, exe);
    ck_assert_uint_ge(strlen(h->boot_id), 36);
    ck_assert_uint_gt(strlen(h->cmdline), 0);
    ck_assert_uint_eq(h->dropped_events, 0);
    ck_assert_uint_eq(h->dropped_records, 0);
    ck_assert_uint_eq(tn_reader_event_count(r), 5000);
    ck_assert_uint_eq(count_in_order(r, 1), 5000);
    const char *name = NULL;
    ck_assert_ptr_nonnull(tn_reader_api(r, 3, &name));
    ck_assert_str_eq(name, "cudaMalloc");
    ck_assert_uint_eq(tn_reader_calls(r, 3), 5000);
    ck_assert_uint_eq(tn_reader_resolved(r, 3), 2);
    ck_assert_ptr_null(tn_reader_damage(r));
    tn_reader_close(r);
}
END_TEST

START_TEST(the_file_is_private_and_named_by_host_and_pid)
{
    umask(0);
    tn_journal *j = open_journal(NULL, 0);
    struct stat st;
    ck_assert_int_eq(stat(tn_journal_path(j), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    umask(0777);
    tn_journal *k = open_journal(NULL, 0);
    ck_assert_int_eq(stat(tn_journal_path(k), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_str_ne(tn_journal_path(j), tn_journal_path(k));

    char expected[64];
    snprintf(expected, sizeof expected, "-%d-", (int)getpid());
    const char *name = strrchr(tn_journal_path(j), '/') + 1;
    const char *pid = strstr(name, expected);
    ck_assert_ptr_nonnull(pid);
    ck_assert_ptr_ne(pid, name);
    ck_assert_uint_eq(strspn(pid + strlen(expected), "0123456789abcdef"), 16);
    ck_assert_str_eq(pid + strlen(expected) + 16, TN_JOURNAL_SUFFIX);
}
END_TEST

static int existing_opens_left;
static int open_finds_one_there(const char *path)
{
    if (existing_opens_left-- > 0) {
        errno = EEXIST;
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

START_TEST(a_name_that_exists_is_never_taken_over)
{
    const tn_journal_os os = { .open_exclusive = open_finds_one_there };
    existing_opens_left = 3;
    tn_journal *j = open_journal(&os, 0);
    ck_assert_ptr_nonnull(strstr(tn_journal_path(j), fixture_dir));
    existing_opens_left = 1000;
    tn_journal_options options = { .run_dir = fixture_dir, .os = &os };
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_OPEN);
    ck_assert_ptr_null(j);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_an_error)
{
    tn_journal *j = NULL;
    tn_journal_options options = { .run_dir = "/nonexistent/folder" };
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_OPEN);
    options.run_dir = "";
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_ARGUMENT);
    options.run_dir = fixture_dir;
    options.api_count = TN_API_MAX + 1;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_ARGUMENT);
    ck_assert_int_eq(count_journals(), 0);
}
END_TEST

START_TEST(a_relative_folder_outlives_a_change_of_folder)
{
    ck_assert_int_eq(chdir(fixture_dir), 0);
    tn_journal_options options = { .run_dir = "." };
    tn_journal *j = NULL;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_OK);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(access(tn_journal_path(j), R_OK), 0);
}
END_TEST

typedef struct writer_arg {
    tn_journal *j;
    uint64_t mark;
    uint32_t count;
} writer_arg;

static void *writer(void *p)
{
    writer_arg *a = p;
    tn_journal_thread *t = tn_journal_attach(a->j, this_tid());
    tn_journal_counters(t)[7] += a->count;
    uint32_t written = write_numbered(a->j, t, a->mark, 0, a->count);
    tn_journal_detach(a->j, t);
    return (void *)(uintptr_t)written;
}

START_TEST(eight_threads_write_side_by_side)
{
    enum { THREADS = 8, EVENTS = 20000 };
    tn_journal *j = open_journal(NULL, 0);
    pthread_t threads[THREADS];
    writer_arg args[THREADS];
    for (int i = 0; i < THREADS; i++) {
        args[i] = (writer_arg){ j, (uint64_t)i + 1, EVENTS };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, writer, &args[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *written;
        pthread_join(threads[i], &written);
        ck_assert_uint_eq((uintptr_t)written, EVENTS);
    }
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_event_count(r), THREADS * EVENTS);
    ck_assert_uint_eq(tn_reader_calls(r, 7), THREADS * EVENTS);
    for (int i = 0; i < THREADS; i++)
        ck_assert_uint_eq(count_in_order(r, (uint64_t)i + 1), EVENTS);
    uint64_t last = 0;
    tn_reader_rewind(r);
    for (const tn_event *e; (e = tn_reader_next(r, NULL)) != NULL; last = e->tsc)
        ck_assert_uint_ge(e->tsc, last);
    ck_assert_ptr_null(tn_reader_damage(r));
    tn_reader_close(r);
}
END_TEST

static unsigned mappings_of(const char *path)
{
    char line[4400];
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        n += strstr(line, strrchr(path, '/')) != NULL;
    fclose(maps);
    return n;
}

/* Chunks that are mapped together go to whoever needs one next, and stay mapped until the slowest of them is full. */
START_TEST(writers_share_what_is_mapped_together)
{
    enum { WRITERS = 5, ROUNDS = 600 };
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t[WRITERS];
    uint64_t written[WRITERS] = { 0 };
    unsigned most = 0;
    for (unsigned i = 0; i < WRITERS; i++)
        t[i] = tn_journal_attach(j, this_tid());
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < WRITERS; i++) { /* some write hundreds of times what another does */
            uint32_t count = i == 0 ? 1 : 125 * i;
            ck_assert_uint_eq(write_numbered(j, t[i], i + 1, written[i], count), count);
            written[i] += count;
        }
        unsigned now = mappings_of(tn_journal_path(j));
        most = now > most ? now : most;
    }
    /* Header, counters, each writer's own window, and the one that chunks are given out from. */
    ck_assert_uint_gt(most, WRITERS);
    ck_assert_uint_le(most, WRITERS + 4);
    for (unsigned i = 0; i < WRITERS; i++)
        tn_journal_detach(j, t[i]);
    tn_journal_end(j);
    tn_reader *r = open_reader(tn_journal_path(j));
    for (unsigned i = 0; i < WRITERS; i++)
        ck_assert_uint_eq(count_in_order(r, i + 1), written[i]);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 0);
    ck_assert_ptr_null(tn_reader_damage(r));
    tn_reader_close(r);
}
END_TEST

START_TEST(a_thousand_threads_in_turn_use_one_chunk)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    write_numbered(j, t, 0, 0, 1);
    tn_journal_detach(j, t);
    struct stat before, after;
    ck_assert_int_eq(stat(tn_journal_path(j), &before), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        t = tn_journal_attach(j, i + 2);
        /* The last event is the former thread's: nothing of this one's may be merged into it. */
        ck_assert_ptr_null(tn_journal_last(t));
        ck_assert_uint_eq(write_numbered(j, t, 0, i + 1, 1), 1);
        ck_assert_ptr_nonnull(tn_journal_last(t));
        tn_journal_counters(t)[1]++;
        tn_journal_detach(j, t);
    }
    ck_assert_int_eq(stat(tn_journal_path(j), &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(count_in_order(r, 0), 1001);
    ck_assert_uint_eq(tn_reader_thread_count(r), 1);
    ck_assert_uint_eq(tn_reader_calls(r, 1), 1000);
    tn_reader_close(r);
}
END_TEST

START_TEST(a_handed_on_chunk_is_not_written_by_two)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *a = tn_journal_attach(j, 1), *b = tn_journal_attach(j, 2);
    ck_assert_ptr_ne(tn_journal_counters(a), tn_journal_counters(b));
    write_numbered(j, a, 1, 0, 10);
    write_numbered(j, b, 2, 0, 10);
    tn_journal_detach(j, a);
    tn_journal_thread *c = tn_journal_attach(j, 3), *d = tn_journal_attach(j, 4);
    ck_assert_ptr_ne(c, d);
    write_numbered(j, b, 2, 10, 10);
    write_numbered(j, c, 3, 0, 2000);
    write_numbered(j, d, 4, 0, 10);
    tn_journal_detach(j, c);
    tn_journal_detach(j, c); /* twice is an error of the caller's that costs nothing */
    a = tn_journal_attach(j, 5);
    b = tn_journal_attach(j, 6);
    ck_assert_ptr_ne(a, b);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(count_in_order(r, 1), 10);
    ck_assert_uint_eq(count_in_order(r, 2), 20);
    ck_assert_uint_eq(count_in_order(r, 3), 2000);
    ck_assert_uint_eq(count_in_order(r, 4), 10);
    tn_reader_close(r);
}
END_TEST

START_TEST(order_is_stamp_then_thread_then_position)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *a = tn_journal_attach(j, 1), *b = tn_journal_attach(j, 2);
    /* (thread, stamp, number it must come out as); a slot not committed in between is passed over. */
    static const struct { int who; uint64_t tsc, number; } in[] = {
        { 1, 500, 5 }, { 0, 300, 1 }, { 0, 100, 0 }, { 1, 300, 3 }, { 1, 300, 4 }, { 0, 300, 2 }, { 0, 900, 6 },
    };
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        (void)tn_journal_slot(j, in[i].who ? b : a, 0);
        tn_event *e = tn_journal_slot(j, in[i].who ? b : a, 0);
        e->tsc = in[i].tsc;
        e->addr = in[i].number;
        tn_journal_commit(e, TN_EV_FREE);
    }
    tn_reader *r = open_reader(tn_journal_path(j));
    uint64_t number = 0;
    uint32_t thread = 0;
    for (const tn_event *e; (e = tn_reader_next(r, &thread)) != NULL; number++) {
        ck_assert_uint_eq(e->addr, number);
        ck_assert_uint_eq(thread, number == 3 || number == 4 || number == 5 ? 2 : 1);
    }
    ck_assert_uint_eq(number, 7);
    tn_reader_close(r);
}
END_TEST

static tn_journal *handler_journal;
static tn_journal_thread *handler_thread;
static volatile uint64_t handler_written;
static void on_alarm(int sig)
{
    (void)sig;
    tn_event *e = tn_journal_slot(handler_journal, handler_thread, 1);
    if (e == NULL)
        return;
    e->tsc = tn_stamp();
    e->addr = handler_written++;
    e->bytes = 99;
    tn_journal_commit(e, TN_EV_ALLOC);
}

START_TEST(a_signal_handler_gets_slots_of_its_own)
{
    handler_journal = open_journal(NULL, 0);
    handler_thread = tn_journal_attach(handler_journal, this_tid());
    struct sigaction act = { .sa_handler = on_alarm };
    sigaction(SIGALRM, &act, NULL);
    const struct itimerval every = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
    ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
    uint64_t written = 0;
    while (written < 300000)
        written += write_numbered(handler_journal, handler_thread, 1, written, 1000);
    setitimer(ITIMER_REAL, &off, NULL);
    tn_reader *r = open_reader(tn_journal_path(handler_journal));
    ck_assert_uint_eq(count_in_order(r, 1), written);
    ck_assert_uint_gt(handler_written, 0);
    ck_assert_uint_eq(count_in_order(r, 99), handler_written);
    tn_reader_close(r);
}
END_TEST

START_TEST(a_forked_child_has_no_part_in_the_journal)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    write_numbered(j, t, 1, 0, 10);
    pid_t child = fork();
    if (child == 0) {
        /* Not allowed, but harmless: nothing of the journal is left in a child. */
        char line[512];
        FILE *maps = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, maps) != NULL)
            if (strstr(line, TN_JOURNAL_SUFFIX) != NULL)
                _exit(1);
        if (tn_journal_slot(j, t, 0) != NULL || tn_journal_attach(j, 9) != NULL)
            _exit(2);
        tn_journal_drop(j, 5);
        tn_journal_set_flags(j, TN_HF_STOPPED);
        if (tn_journal_record(j, TN_REC_STRING, "abcdefg", 8, NULL, 0) == TN_OK)
            _exit(3);
        tn_journal_detach(j, t);
        tn_journal_end(j);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(write_numbered(j, t, 1, 10, 10), 10);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_event_count(r), 20);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 0);
    ck_assert_uint_eq(tn_reader_header(r)->flags, 0);
    tn_reader_close(r);
}
END_TEST

static int own_descriptor(const tn_journal *j)
{
    int ours = -1;
    for (int fd = 3; fd < 4096; fd++) {
        char link[64], target[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        if (strcmp(target, tn_journal_path(j)) == 0) {
            ck_assert_int_eq(ours, -1);
            ours = fd;
        }
    }
    return ours;
}

START_TEST(the_host_may_close_our_descriptor)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    write_numbered(j, t, 1, 0, 100);
    /* As a daemon does that closes all it finds; the test framework's own descriptors stay. */
    int ours = own_descriptor(j);
    ck_assert_int_ge(ours, 100); /* out of the way of programs that count on low numbers */
    close(ours);
    /* The number is in use again, for a file that must not be touched. */
    char other[300];
    snprintf(other, sizeof other, "%s/other", fixture_dir);
    int fd = open(other, O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(dup2(fd, ours), ours);
    ck_assert_uint_eq(write_numbered(j, t, 1, 100, 5000), 5000);
    struct stat st;
    ck_assert_int_eq(stat(other, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(count_in_order(r, 1), 5100);
    tn_reader_close(r);
}
END_TEST

START_TEST(a_want_of_descriptors_passes)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    write_numbered(j, t, 1, 0, 100);
    close(own_descriptor(j));
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = { .rlim_cur = 0, .rlim_max = limit.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t wanted = 100 + 20000 + 20000;
    uint64_t written = 100 + write_numbered(j, t, 1, 100, 20000);
    ck_assert_uint_lt(written, 20100); /* the file could not be opened again */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t again = write_numbered(j, t, 1, 20100, 20000);
    ck_assert_uint_gt(again, 10000);
    written += again;
    tn_journal_end(j);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->flags & TN_HF_STOPPED, 0);
    ck_assert_uint_eq(tn_reader_event_count(r), written);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, wanted - written);
    tn_reader_close(r);
}
END_TEST

START_TEST(errno_is_left_alone)
{
    tn_journal_options options = { .run_dir = fixture_dir };
    tn_journal *j = NULL;
    errno = 77;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_OK);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    write_numbered(j, t, 1, 0, 3000);
    write_api_record(j, 1, "x");
    tn_journal_detach(j, t);
    tn_journal_end(j);
    ck_assert_int_eq(errno, 77);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("journal_write");
    TCase *c = tcase_create("write");
    tcase_add_checked_fixture(c, fixture_begin, fixture_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, everything_written_is_read);
    tcase_add_test(c, the_file_is_private_and_named_by_host_and_pid);
    tcase_add_test(c, a_name_that_exists_is_never_taken_over);
    tcase_add_test(c, a_folder_that_cannot_be_written_is_an_error);
    tcase_add_test(c, a_relative_folder_outlives_a_change_of_folder);
    tcase_add_test(c, eight_threads_write_side_by_side);
    tcase_add_test(c, writers_share_what_is_mapped_together);
    tcase_add_test(c, a_thousand_threads_in_turn_use_one_chunk);
    tcase_add_test(c, a_handed_on_chunk_is_not_written_by_two);
    tcase_add_test(c, order_is_stamp_then_thread_then_position);
    tcase_add_test(c, a_signal_handler_gets_slots_of_its_own);
    tcase_add_test(c, a_forked_child_has_no_part_in_the_journal);
    tcase_add_test(c, the_host_may_close_our_descriptor);
    tcase_add_test(c, a_want_of_descriptors_passes);
    tcase_add_test(c, errno_is_left_alone);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
