/* The writer where the disk, a limit or the system says no: the program goes on, what is lost is counted, and
 * what was written before stays readable. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

/* A table that counts its calls and fails from the n-th one on, `fail_for` times, with `fail_errno`. */
static int calls, fail_from, fail_for, fail_errno;
static int space_for = 1 << 30; /* preallocate says ENOSPC beyond this */
static int64_t size_limit = INT64_MAX;
static int no_preallocation;
static int64_t largest_step;

static int fails(void)
{
    int n = calls++;
    if (fail_from < 0 || n < fail_from || n - fail_from >= fail_for)
        return 0;
    errno = fail_errno;
    return 1;
}

static int t_open(const char *path)
{
    return fails() ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int t_preallocate(int fd, int64_t offset, int64_t bytes)
{
    if (fails())
        return -1;
    if (no_preallocation || offset + bytes > space_for) {
        errno = no_preallocation ? EOPNOTSUPP : ENOSPC;
        return -1;
    }
    largest_step = bytes > largest_step ? bytes : largest_step;
    return fallocate(fd, 0, offset, bytes);
}

static void *t_map(int fd, int64_t offset, size_t bytes)
{
    if (fails())
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return p == MAP_FAILED ? NULL : p;
}

static int64_t t_write(int fd, const void *p, size_t bytes, int64_t offset)
{
    return fails() ? -1 : pwrite(fd, p, bytes, offset);
}

static int64_t t_limit(void)
{
    return fails() ? 0 : size_limit; /* a limit cannot fail to be read, but it can be 0 */
}

static const tn_journal_os failing = { t_open, t_preallocate, t_map, t_write, t_limit };

static void begin(void)
{
    fixture_begin();
    calls = 0;
    fail_from = -1;
    fail_for = 1;
    space_for = 1 << 30;
    size_limit = INT64_MAX;
    no_preallocation = 0;
}

static uint64_t dropped(const char *path)
{
    tn_reader *r = open_reader(path);
    uint64_t n = tn_reader_header(r)->dropped_events;
    tn_reader_close(r);
    return n;
}

/* Some of everything; returns the events that were taken. */
static uint32_t exercise(tn_journal *j, uint32_t *attempted)
{
    uint32_t written = 0;
    *attempted = 0;
    for (int round = 0; round < 3; round++) {
        tn_journal_thread *t = tn_journal_attach(j, this_tid());
        if (t != NULL)
            ck_assert_ptr_nonnull(tn_journal_counters(t));
        written += write_numbered(j, t, 1, *attempted, 1500);
        *attempted += 1500;
        (void)tn_journal_record(j, TN_REC_STRING, "\1\0\0\0text", 9, NULL, 0);
        tn_journal_detach(j, t);
    }
    tn_journal_end(j);
    return written;
}

static void fail_each_call(int err, int for_calls)
{
    int nth = 0, opened = 0;
    for (;; nth++) {
        tn_journal_options options = { .run_dir = fixture_dir, .os = &failing };
        tn_journal *j = NULL;
        calls = 0;
        fail_from = nth;
        fail_for = for_calls;
        fail_errno = err;
        int files = count_journals();
        tn_error e = tn_journal_open(&options, &j);
        if (e != TN_OK) {
            ck_assert_ptr_null(j);
            ck_assert_int_eq(count_journals(), files); /* nothing half made is left */
            ck_assert_int_lt(nth, 100);
            continue;
        }
        opened++;
        uint32_t attempted, written = exercise(j, &attempted);
        int reached = calls > nth;
        fail_from = -1;
        tn_reader *r = open_reader(tn_journal_path(j));
        const tn_journal_header *h = tn_reader_header(r);
        /* Every event is in the file or counted as dropped; without any failure, all are there. A buffered journal
         * whose header cannot be written any more shows by its missing end that it cannot know. */
        if (!no_preallocation || (h->flags & TN_HF_ENDED))
            ck_assert_uint_ge(tn_reader_event_count(r) + h->dropped_events, attempted);
        else
            ck_assert_int_gt(for_calls, 1);
        ck_assert_uint_le(tn_reader_event_count(r), written);
        if (!no_preallocation || !reached) /* a header that could not be rewritten has no clock */
            ck_assert_msg(tn_reader_damage(r) == NULL, "call %d: %s", nth, tn_reader_damage(r));
        if (!reached) {
            ck_assert_uint_eq(tn_reader_event_count(r), attempted);
            ck_assert_uint_eq(h->dropped_events, 0);
            ck_assert_str_eq(tn_reader_string(r, 1), "text");
        }
        tn_reader_close(r);
        if (!reached)
            break;
        ck_assert_int_lt(nth, 500);
    }
    ck_assert_int_gt(opened, 3);
}

static const int errnos[] = { ENOSPC, EDQUOT, EFBIG, EROFS, EIO, ENOMEM, EBADF };

START_TEST(any_call_may_fail_once)
{
    fail_each_call(errnos[_i], 1);
}
END_TEST

START_TEST(any_call_may_fail_for_good)
{
    fail_each_call(errnos[_i], 1 << 30);
}
END_TEST

START_TEST(any_call_may_fail_when_buffered)
{
    no_preallocation = 1;
    fail_each_call(errnos[_i], 1);
    fail_each_call(errnos[_i], 1 << 30);
}
END_TEST

START_TEST(a_full_disk_is_asked_again_now_and_then)
{
    tn_journal *j = open_journal(&failing, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    space_for = (int)(TN_HEADER_BYTES + 3 * TN_CHUNK_BYTES); /* counters, two of events */
    uint32_t fit = 2 * TN_EVENTS_PER_CHUNK;
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, fit + 20000), fit);
    ck_assert_uint_eq(dropped(tn_journal_path(j)), 20000);
    int before = calls;
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, 40960), 0);
    ck_assert_int_le(calls - before, 2 * (40960 / 4096) + 2); /* not at each drop */
    ck_assert_int_ge(calls - before, 40960 / 4096 - 1);
    ck_assert_int_ne(tn_journal_record(j, TN_REC_STRING, "\1\0\0\0text", 9, NULL, 0), TN_OK);

    space_for = 1 << 30; /* somebody made room */
    uint32_t written = write_numbered(j, t, 2, 0, 10000);
    ck_assert_uint_ge(written, 10000 - 4096);
    ck_assert_uint_lt(written, 10000);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 20000 + 40960 + 10000 - written);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_records, 1);
    ck_assert_uint_eq(tn_reader_header(r)->flags & TN_HF_STOPPED, 0);
    ck_assert_uint_eq(tn_reader_event_count(r), fit + written);
    tn_reader_close(r);
}
END_TEST

/* Several chunks are asked for at once, which must not lose the room that is left for fewer. */
static void ck_uses_all_room(tn_journal_options options)
{
    enum { CHUNKS = 22 }; /* one of counters */
    tn_journal *j = NULL;
    options.run_dir = fixture_dir;
    options.os = &failing;
    largest_step = 0;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_OK);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    uint32_t written = write_numbered(j, t, 1, 0, (CHUNKS + 1) * TN_EVENTS_PER_CHUNK);
    ck_assert_uint_eq(written, (CHUNKS - 1) * TN_EVENTS_PER_CHUNK);
    tn_journal_detach(j, t);
    tn_journal_end(j);
    ck_assert_uint_eq(dropped(tn_journal_path(j)), 2 * TN_EVENTS_PER_CHUNK);
    ck_assert_int_eq(largest_step, 4 * (int64_t)TN_CHUNK_BYTES);
}

START_TEST(a_long_journal_grows_by_steps_and_uses_all_room)
{
    const int64_t room = TN_HEADER_BYTES + 22 * (int64_t)TN_CHUNK_BYTES;
    space_for = (int)room;
    ck_uses_all_room((tn_journal_options){ 0 });
    space_for = 1 << 30;
    ck_uses_all_room((tn_journal_options){ .max_bytes = (uint64_t)room });
    size_limit = room;
    ck_uses_all_room((tn_journal_options){ 0 });
}
END_TEST

static int large_maps;
static void *one_chunk_at_a_time(int fd, int64_t offset, size_t bytes)
{
    if (bytes >= 2 * TN_CHUNK_BYTES) {
        large_maps++;
        errno = ENOMEM;
        return NULL;
    }
    return t_map(fd, offset, bytes);
}

/* Chunks that were prepared together are mapped together; where that cannot be had, one by one, and nothing is lost. */
START_TEST(what_cannot_be_mapped_at_once_is_mapped_one_by_one)
{
    tn_journal_os os = failing;
    os.map = one_chunk_at_a_time;
    tn_journal_options options = { .run_dir = fixture_dir, .os = &os };
    tn_journal *j = NULL;
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_OK);
    tn_journal_thread *t = tn_journal_attach(j, this_tid());
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, 40 * TN_EVENTS_PER_CHUNK), 40 * TN_EVENTS_PER_CHUNK);
    tn_journal_detach(j, t);
    tn_journal_end(j);
    ck_assert_int_gt(large_maps, 4);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(count_in_order(r, 1), 40 * TN_EVENTS_PER_CHUNK);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 0);
    tn_reader_close(r);
}
END_TEST

START_TEST(the_journal_keeps_to_its_own_limit)
{
    tn_journal *j = open_journal(NULL, TN_HEADER_BYTES + 4 * TN_CHUNK_BYTES + 100);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    uint32_t written = write_numbered(j, t, 1, 0, 10000);
    ck_assert_uint_eq(written, 3 * TN_EVENTS_PER_CHUNK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_STRING, "\1\0\0\0text", 9, NULL, 0), TN_E_LIMIT);
    /* A thread that comes now counts in memory, and what it counted is not lost silently. */
    tn_journal_thread *u = NULL;
    for (int i = 0; i < 6; i++)
        u = tn_journal_attach(j, (uint32_t)i + 2);
    ck_assert_ptr_nonnull(u);
    tn_journal_counters(u)[5] = 1000;
    tn_journal_counters(u)[TN_API_MAX + 5] = 7;
    tn_journal_detach(j, u);
    tn_journal_end(j);
    struct stat st;
    ck_assert_int_eq(stat(tn_journal_path(j), &st), 0);
    ck_assert_int_eq(st.st_size, TN_HEADER_BYTES + 4 * TN_CHUNK_BYTES);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->flags, TN_HF_STOPPED | TN_HF_ENDED);
    ck_assert_uint_eq(tn_reader_header(r)->stop_error, TN_E_LIMIT);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 10000 - written + 1000);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_records, 1);
    ck_assert_uint_eq(count_in_order(r, 1), written);
    tn_reader_close(r);
}
END_TEST

START_TEST(a_file_size_limit_does_not_kill)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    struct rlimit old, low = { TN_HEADER_BYTES + 2 * TN_CHUNK_BYTES + 1, RLIM_INFINITY };
    getrlimit(RLIMIT_FSIZE, &old);
    low.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &low); /* SIGXFSZ keeps its deadly default */
    uint32_t written = write_numbered(j, t, 1, 0, 20000);
    ck_assert_uint_eq(written, TN_EVENTS_PER_CHUNK);
    tn_journal_end(j);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_uint_eq(dropped(tn_journal_path(j)), 20000 - written);
}
END_TEST

START_TEST(a_file_size_limit_below_the_header_refuses_to_open)
{
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &low);
    tn_journal_options options = { .run_dir = fixture_dir };
    tn_journal *j = NULL;
    tn_error e = tn_journal_open(&options, &j);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_int_eq(e, TN_E_NOSPACE);
    ck_assert_int_eq(count_journals(), 0);
}
END_TEST

START_TEST(a_file_size_limit_holds_buffered_writes_too)
{
    const tn_journal_os os = { .preallocate = t_preallocate };
    no_preallocation = 1;
    tn_journal *j = open_journal(&os, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = TN_HEADER_BYTES + 2 * TN_CHUNK_BYTES + 1;
    setrlimit(RLIMIT_FSIZE, &low);
    write_numbered(j, t, 1, 0, 20000);
    tn_journal_detach(j, t);
    setrlimit(RLIMIT_FSIZE, &old);
    tn_journal_end(j);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_event_count(r) + tn_reader_header(r)->dropped_events, 20000);
    ck_assert_uint_gt(tn_reader_header(r)->dropped_events, 0);
    tn_reader_close(r);
}
END_TEST

START_TEST(without_preallocation_writes_are_buffered)
{
    no_preallocation = 1;
    tn_journal *j = open_journal(&failing, 0);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->flags, TN_HF_BUFFERED);
    tn_reader_close(r);

    tn_journal_thread *t = tn_journal_attach(j, 1), *u = tn_journal_attach(j, 2);
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, 2500), 2500);
    ck_assert_uint_eq(write_numbered(j, u, 2, 0, 10), 10);
    tn_journal_counters(t)[1] = 4;
    write_api_record(j, 1, "cudaFree");
    r = open_reader(tn_journal_path(j));
    /* What a SIGKILL now would leave: full chunks and all records. */
    ck_assert_uint_eq(count_in_order(r, 1), 2 * TN_EVENTS_PER_CHUNK);
    ck_assert_uint_eq(count_in_order(r, 2), 0);
    ck_assert_ptr_nonnull(tn_reader_api(r, 1, NULL));
    tn_reader_close(r);

    tn_journal_detach(j, u);
    r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(count_in_order(r, 2), 10);
    tn_reader_close(r);

    u = tn_journal_attach(j, 3); /* goes on in the chunk that was written */
    ck_assert_uint_eq(write_numbered(j, u, 2, 10, 10), 10);
    tn_journal_end(j);
    r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(tn_reader_header(r)->flags, TN_HF_BUFFERED | TN_HF_ENDED);
    ck_assert_uint_eq(count_in_order(r, 1), 2500);
    ck_assert_uint_eq(count_in_order(r, 2), 20);
    ck_assert_uint_eq(tn_reader_calls(r, 1), 4);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_events, 0);
    ck_assert_ptr_null(tn_reader_damage(r));
    tn_reader_close(r);
}
END_TEST

START_TEST(a_folder_deleted_after_the_start_changes_nothing)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    fixture_end();
    ck_assert_int_ne(access(tn_journal_path(j), F_OK), 0);
    /* The descriptor still holds the file. */
    ck_assert_uint_eq(write_numbered(j, t, 1, 0, 5000), 5000);
    tn_journal_end(j);
    tn_journal_options options = { .run_dir = fixture_dir };
    ck_assert_int_eq(tn_journal_open(&options, &j), TN_E_OPEN);
}
END_TEST

START_TEST(a_full_chunk_and_a_handler_inside_a_hook)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    ck_assert_ptr_null(tn_journal_slot(j, t, 1)); /* no chunk yet: nested may not make one */
    write_numbered(j, t, 1, 0, TN_EVENTS_PER_CHUNK);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_null(tn_journal_slot(j, t, 1));
    ck_assert_ptr_null(tn_journal_slot(j, NULL, 0));
    ck_assert_uint_eq(write_numbered(j, t, 1, TN_EVENTS_PER_CHUNK, 10), 10);
    ck_assert_uint_eq(dropped(tn_journal_path(j)), 102);
}
END_TEST

START_TEST(records_have_a_largest_size)
{
    tn_journal *j = open_journal(NULL, 0);
    size_t room = TN_CHUNK_BYTES - sizeof(tn_chunk_header) - sizeof(tn_record);
    char *text = malloc(room + 1);
    memset(text, 'x', room + 1);
    const uint32_t id = 5;
    text[room - 5] = '\0';
    ck_assert_int_eq(tn_journal_record(j, TN_REC_STRING, &id, sizeof id, text, room - 4), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_STRING, &id, sizeof id, text, room - 3), TN_E_LIMIT);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_STRING, &id, sizeof id, text, SIZE_MAX), TN_E_LIMIT);
    tn_reader *r = open_reader(tn_journal_path(j));
    ck_assert_uint_eq(strlen(tn_reader_string(r, 5)), room - 5);
    ck_assert_uint_eq(tn_reader_header(r)->dropped_records, 2);
    tn_reader_close(r);
    free(text);
}
END_TEST

int main(void)
{
    int n = (int)(sizeof errnos / sizeof errnos[0]);
    Suite *s = suite_create("journal_full");
    TCase *c = tcase_create("full");
    tcase_add_checked_fixture(c, begin, fixture_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, any_call_may_fail_once, 0, n);
    tcase_add_loop_test(c, any_call_may_fail_for_good, 0, n);
    tcase_add_loop_test(c, any_call_may_fail_when_buffered, 0, n);
    tcase_add_test(c, a_full_disk_is_asked_again_now_and_then);
    tcase_add_test(c, a_long_journal_grows_by_steps_and_uses_all_room);
    tcase_add_test(c, what_cannot_be_mapped_at_once_is_mapped_one_by_one);
    tcase_add_test(c, the_journal_keeps_to_its_own_limit);
    tcase_add_test(c, a_file_size_limit_does_not_kill);
    tcase_add_test(c, a_file_size_limit_below_the_header_refuses_to_open);
    tcase_add_test(c, a_file_size_limit_holds_buffered_writes_too);
    tcase_add_test(c, without_preallocation_writes_are_buffered);
    tcase_add_test(c, a_folder_deleted_after_the_start_changes_nothing);
    tcase_add_test(c, a_full_chunk_and_a_handler_inside_a_hook);
    tcase_add_test(c, records_have_a_largest_size);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
