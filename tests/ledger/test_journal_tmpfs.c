/* The writer on a real file system that is really full: a tmpfs of 8 MiB in a mount namespace of the test's
 * own. Where the machine grants no namespace, each test prints one line that begins with `skip`. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* As `unshare -rm` does, or without the user namespace where we are root already. */
static int own_mounts(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        return 0;
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_text("/proc/self/setgroups", "deny") != 0 || write_text("/proc/self/uid_map", map) != 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    return write_text("/proc/self/gid_map", map);
}

static int small_disk(const char *test)
{
    if (own_mounts() == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", fixture_dir, "tmpfs", 0, "size=8m,mode=700") == 0)
        return 1;
    printf("skip %s: no mount namespace to be had (%s)\n", test, strerror(errno));
    return 0;
}

/* Takes all the space there is; the file's descriptor, to give it back with. */
static int fill_up(void)
{
    char path[300], zeros[4096] = { 0 };
    snprintf(path, sizeof path, "%s/filler", fixture_dir);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    while (write(fd, zeros, sizeof zeros) == (ssize_t)sizeof zeros)
        ;
    return fd;
}

static uint64_t accounted(const char *path, uint64_t *events)
{
    tn_reader *r = open_reader(path);
    ck_assert_msg(tn_reader_damage(r) == NULL, "%s", tn_reader_damage(r));
    *events = tn_reader_event_count(r);
    uint64_t n = *events + tn_reader_header(r)->dropped_events;
    tn_reader_close(r);
    return n;
}

static tn_journal *shared_journal;
static void *overfill(void *p)
{
    tn_journal_thread *t = tn_journal_attach(shared_journal, this_tid());
    write_numbered(shared_journal, t, (uint64_t)(uintptr_t)p, 0, 100000);
    tn_journal_detach(shared_journal, t);
    return NULL;
}

START_TEST(four_threads_write_three_times_what_fits)
{
    if (!small_disk("four_threads_write_three_times_what_fits"))
        return;
    pthread_t threads[4];
    uint64_t events;
    shared_journal = open_journal(NULL, 0);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, overfill, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tn_journal_end(shared_journal);
    ck_assert_uint_eq(accounted(tn_journal_path(shared_journal), &events), 400000);
    ck_assert_uint_gt(events, 100000); /* 8 MiB hold some 125 thousand */
    ck_assert_uint_lt(events, 131072);
}
END_TEST

START_TEST(a_disk_that_fills_and_empties)
{
    if (!small_disk("a_disk_that_fills_and_empties"))
        return;
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    uint64_t total = 0, events, before;
    for (int round = 0; round < 5; round++) {
        ck_assert_uint_gt(write_numbered(j, t, 1, 0, 10000), 0);
        int filler = fill_up();
        write_numbered(j, t, 1, 0, 10000);
        before = accounted(tn_journal_path(j), &events) - events;
        ck_assert_uint_ge(before, 10000 - TN_EVENTS_PER_CHUNK);
        ck_assert_int_eq(ftruncate(filler, 0), 0);
        close(filler);
        total += 20000;
    }
    tn_journal_end(j);
    ck_assert_uint_eq(accounted(tn_journal_path(j), &events), total);
}
END_TEST

START_TEST(a_full_disk_at_the_start_is_an_error)
{
    if (!small_disk("a_full_disk_at_the_start_is_an_error"))
        return;
    int filler = fill_up();
    tn_journal_options options = { .run_dir = fixture_dir };
    tn_journal *j = NULL;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_NOSPACE);
    ck_assert_int_eq(count_journals(), 0);
    close(filler);
}
END_TEST

/* The kernel refuses to remount while our descriptor is open; where it does not, the writer has to cope. */
START_TEST(a_disk_remounted_read_only_or_gone)
{
    if (!small_disk("a_disk_remounted_read_only_or_gone"))
        return;
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    write_numbered(j, t, 1, 0, 5000);
    (void)mount("none", fixture_dir, NULL, MS_REMOUNT | MS_RDONLY, NULL);
    write_numbered(j, t, 1, 5000, 5000);
    int file = open(tn_journal_path(j), O_RDONLY);
    ck_assert_int_eq(umount2(fixture_dir, MNT_DETACH), 0);
    ck_assert_int_ne(access(tn_journal_path(j), F_OK), 0);
    write_numbered(j, t, 1, 10000, 5000);
    tn_journal_end(j);
    char path[64];
    uint64_t events;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ck_assert_uint_eq(accounted(path, &events), 15000);
}
END_TEST

START_TEST(a_new_file_system_in_the_place_of_the_old)
{
    if (!small_disk("a_new_file_system_in_the_place_of_the_old"))
        return;
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    write_numbered(j, t, 1, 0, 500);
    /* A file of the same name that is not ours, and our descriptor closed: nothing may be written to it. */
    for (int fd = 100; fd < 1100; fd++) {
        char link[64], target[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n > 0 && strstr(target, TN_JOURNAL_SUFFIX) != NULL)
            close(fd);
    }
    ck_assert_int_eq(mount("none", fixture_dir, "tmpfs", 0, "size=8m,mode=700"), 0);
    write_file(tn_journal_path(j), "foreign", 7);
    ck_assert_uint_eq(write_numbered(j, t, 1, 500, 5000), TN_EVENTS_PER_CHUNK - 500);
    struct stat st;
    ck_assert_int_eq(stat(tn_journal_path(j), &st), 0);
    ck_assert_int_eq(st.st_size, 7);
    ck_assert_int_eq(umount(fixture_dir), 0);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->flags, TN_HF_STOPPED);
    ck_assert_uint_eq(tn_reader_header(r)->stop_error, TN_E_OPEN);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 5500 - TN_EVENTS_PER_CHUNK);
    tn_reader_close(r);
}
END_TEST

static void end(void)
{
    (void)umount2(fixture_dir, MNT_DETACH);
    fixture_end();
}

int main(void)
{
    Suite *s = suite_create("journal_tmpfs");
    TCase *c = tcase_create("tmpfs");
    tcase_add_checked_fixture(c, fixture_begin, end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, four_threads_write_three_times_what_fits);
    tcase_add_test(c, a_disk_that_fills_and_empties);
    tcase_add_test(c, a_full_disk_at_the_start_is_an_error);
    tcase_add_test(c, a_disk_remounted_read_only_or_gone);
    tcase_add_test(c, a_new_file_system_in_the_place_of_the_old);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
