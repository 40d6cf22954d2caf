/* The reader against files that are cut, damaged or foreign: an error by value or a sentence, never a crash and
 * never an index out of range in what it hands out. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static char sample[512];

/* A journal with every table filled, two threads, and counters; its path is in `sample`. */
static void make_sample(void)
{
    struct { tn_rec_site site; struct tn_frame frames[3]; } site = {
        .site = { .id = 2, .frame_count = 3, .key = 0x1234567890abcdef, .outer_api = 1, .flags = TN_SF_CUT },
        .frames = { { 1, 0, 0x100 }, { 1, 0, 0x200 }, { 2, 0, 0x300 } },
    };
    tn_rec_module module = { .id = 1, .build_id_bytes = 20, .build_id = { 1, 2, 3 }, .base = 0x1000, .end = 0x9000 };
    tn_rec_device device = { .ordinal = 0, .uuid = { 7 }, .total_bytes = (uint64_t)80 << 30 };
    tn_rec_coverage coverage = { .what = TN_COV_BYPASS };
    uint32_t string = 1;
    tn_rec_python python = { .id = 1, .first_line = 40 };
    struct { tn_rec_python_site site; struct tn_python_frame frames[1]; } pair = {
        .site = { .id = 3, .native = 2, .key = 77, .frame_count = 1 }, .frames = { { 1, 42 } },
    };

    tn_journal *j = open_journal(NULL, 0);
    snprintf(sample, sizeof sample, "%s", tn_journal_path(j));
    tn_journal_thread *a = tn_journal_attach(j, 1), *b = tn_journal_attach(j, 2);
    write_numbered(j, a, 1, 0, 1500);
    write_numbered(j, b, 2, 0, 200);
    tn_journal_counters(a)[1] = 1500;
    tn_journal_counters(b)[1] = 200;
    write_api_record(j, 1, "cudaMalloc");
    ck_assert_int_eq(tn_journal_record(j, TN_REC_MODULE, &module, sizeof module, "/lib/a.so", 10), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_SITE, &site, sizeof site, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_DEVICE, &device, sizeof device, "Fake", 5), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_STRING, &string, sizeof string, "phase one", 10), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_COVERAGE, &coverage, sizeof coverage, "lib.so", 7), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_PYTHON, &python, sizeof python, "a.py\0f", 7), TN_OK);
    ck_assert_int_eq(tn_journal_record(j, TN_REC_PYTHON_SITE, &pair, sizeof pair, NULL, 0), TN_OK);
    tn_journal_end(j);
}

/* Uses everything a reader hands out, as a report would; returns a number that depends on it. */
static uint64_t use_all(tn_reader *r)
{
    uint64_t sum = 0, last = 0;
    const tn_journal_header *h = tn_reader_header(r);
    sum += strlen(h->host) + strlen(h->boot_id) + strlen(h->exe) + strlen(h->cmdline) + strlen(h->exe_build_id) +
           strlen(h->libtenure_path);
    uint32_t thread;
    size_t events = 0;
    tn_reader_rewind(r);
    for (const tn_event *e; (e = tn_reader_next(r, &thread)) != NULL; events++, last = e->tsc) {
        ck_assert_uint_ge(e->tsc, last);
        ck_assert(e->type != TN_EV_NONE && e->type < TN_EV_TYPE_COUNT);
        ck_assert_uint_lt(e->api, TN_API_MAX);
        ck_assert_uint_lt(e->outer_api, TN_API_MAX);
        ck_assert_uint_le(e->phase, TN_PHASE_SERVING);
        if (e->type == TN_EV_ALLOC)
            ck_assert_uint_lt(e->kind, TN_KIND_COUNT);
        ck_assert_uint_ne(thread, 0);
        sum += e->addr + tn_reader_ns(r, e->tsc);
    }
    ck_assert_uint_eq(events, tn_reader_event_count(r));
    ck_assert_uint_le(tn_reader_thread_count(r), events + 8);
    for (uint32_t id = 0; id < tn_reader_site_end(r); id++) {
        const tn_rec_site *s = tn_reader_site(r, id);
        if (s == NULL)
            continue;
        const tn_rec_python_site *python = tn_reader_site_python(r, id);
        ck_assert_uint_eq(s->id, python != NULL ? python->native : id);
        for (uint32_t i = 0; python != NULL && i < python->frame_count; i++) {
            const char *file, *function;
            if (tn_reader_python(r, python->frames[i].function, &file, &function) != NULL)
                sum += strlen(file) + strlen(function);
        }
        ck_assert_uint_le(s->frame_count, TN_FRAMES_MAX);
        for (uint32_t i = 0; i < s->frame_count; i++) {
            const char *path = tn_reader_module_path(r, s->frames[i].module);
            sum += s->frames[i].offset + (path != NULL ? strlen(path) : 0);
        }
    }
    for (uint32_t id = 0; id < 70000; id++) {
        const tn_rec_module *m = tn_reader_module(r, id);
        const char *text = tn_reader_string(r, id), *name = NULL;
        if (m != NULL)
            ck_assert_uint_le(m->build_id_bytes, sizeof m->build_id);
        if (text != NULL)
            sum += strlen(text);
        if (tn_reader_api(r, id, &name) != NULL)
            sum += strlen(name);
        if (tn_reader_device(r, id, &name) != NULL)
            sum += strlen(name);
        sum += tn_reader_calls(r, id) + tn_reader_resolved(r, id);
    }
    ck_assert_uint_le(tn_reader_api_end(r), TN_API_MAX);
    const char *text;
    for (size_t i = 0; tn_reader_coverage(r, i, &text) != NULL; i++)
        sum += strlen(text);
    if (tn_reader_damage(r) != NULL)
        ck_assert_int_eq(tn_reader_damage(r)[strlen(tn_reader_damage(r)) - 1], '.');
    return sum;
}

START_TEST(all_tables_are_read)
{
    const char *name, *text;
    make_sample();
    tn_reader *r = open_reader(sample);
    ck_assert_uint_eq(tn_reader_event_count(r), 1700);
    ck_assert_uint_eq(tn_reader_thread_count(r), 2);
    ck_assert_uint_eq(tn_reader_calls(r, 1), 1700);
    ck_assert_uint_eq(tn_reader_calls(r, 2), 0);
    ck_assert_uint_eq(tn_reader_calls(r, TN_API_MAX), 0);
    ck_assert_uint_eq(tn_reader_module(r, 1)->end, 0x9000);
    ck_assert_str_eq(tn_reader_module_path(r, 1), "/lib/a.so");
    ck_assert_ptr_null(tn_reader_module(r, 2));
    ck_assert_ptr_null(tn_reader_module_path(r, 0));
    ck_assert_uint_eq(tn_reader_site_end(r), 4);
    ck_assert_ptr_eq(tn_reader_site(r, 3), tn_reader_site(r, 2));
    ck_assert_ptr_null(tn_reader_site_python(r, 2));
    ck_assert_uint_eq(tn_reader_site_python(r, 3)->frames[0].line, 42);
    ck_assert_uint_eq(tn_reader_python(r, 1, &text, &name)->first_line, 40);
    ck_assert_str_eq(text, "a.py");
    ck_assert_str_eq(name, "f");
    ck_assert_ptr_null(tn_reader_python(r, 2, &text, &name));
    ck_assert_uint_eq(tn_reader_site(r, 2)->frames[2].offset, 0x300);
    ck_assert_ptr_null(tn_reader_site(r, TN_SITE_NO_STACK));
    ck_assert_uint_eq(tn_reader_device(r, 0, &name)->uuid[0], 7);
    ck_assert_str_eq(name, "Fake");
    ck_assert_str_eq(tn_reader_string(r, 1), "phase one");
    ck_assert_uint_eq(tn_reader_coverage(r, 0, &text)->what, TN_COV_BYPASS);
    ck_assert_str_eq(text, "lib.so");
    ck_assert_ptr_null(tn_reader_coverage(r, 1, &text));
    ck_assert_ptr_null(tn_reader_damage(r));
    use_all(r);
    tn_reader_close(r);
}
END_TEST

START_TEST(time_is_counted_from_the_creation)
{
    tn_journal *j = open_journal(NULL, 0);
    tn_journal_thread *t = tn_journal_attach(j, 1);
    usleep(20000);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t stamp = tn_stamp();
    write_numbered(j, t, 1, 0, 10);
    tn_journal_end(j);
    tn_reader *r = open_reader(tn_journal_path(j));
    const tn_journal_header *h = tn_reader_header(r);
    ck_assert_uint_gt(h->tsc_hz, 1000000);
    uint64_t expected = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - h->mono_start_ns;
    uint64_t ns = tn_reader_ns(r, stamp);
    ck_assert_uint_le(expected > ns ? expected - ns : ns - expected, 200000);
    ck_assert_uint_eq(tn_reader_ns(r, h->tsc_start), 0);
    ck_assert_uint_eq(tn_reader_ns(r, 0), 0);
    (void)tn_reader_ns(r, UINT64_MAX);
    tn_reader_close(r);
}
END_TEST

START_TEST(a_later_record_of_an_id_replaces_the_earlier)
{
    tn_journal *j = open_journal(NULL, 0);
    write_api_record(j, 1, "first");
    for (int i = 0; i < 3000; i++) /* over several chunks */
        write_api_record(j, 2, "in between");
    write_api_record(j, 1, "second");
    tn_reader *r = open_reader(tn_journal_path(j));
    const char *name;
    ck_assert_ptr_nonnull(tn_reader_api(r, 1, &name));
    ck_assert_str_eq(name, "second");
    tn_reader_close(r);
}
END_TEST

static tn_error open_cut(const unsigned char *bytes, size_t length, tn_reader **r)
{
    char path[600];
    snprintf(path, sizeof path, "%s/cut", fixture_dir);
    write_file(path, bytes, length);
    return tn_reader_open(path, r);
}

/* Every length up to the first chunk and around each chunk's boundaries, and every 601st in between. */
START_TEST(cut_at_any_length)
{
    size_t bytes;
    make_sample();
    unsigned char *file = read_file(sample, &bytes);
    char path[600];
    snprintf(path, sizeof path, "%s/cut", fixture_dir);
    write_file(path, file, bytes);
    uint64_t last_events = UINT64_MAX;
    for (size_t length = bytes;; length--) {
        size_t in_chunk = length >= TN_HEADER_BYTES ? (length - TN_HEADER_BYTES) % TN_CHUNK_BYTES : 0;
        if (in_chunk > 80 && in_chunk < TN_CHUNK_BYTES - 80 && length % 601 != 0)
            continue;
        ck_assert_int_eq(truncate(path, (off_t)length), 0);
        tn_reader *r;
        tn_error e = tn_reader_open(path, &r);
        ck_assert_msg(e == (length < TN_HEADER_BYTES ? TN_E_TRUNCATED : TN_OK), "length %zu: %s", length, tn_error_text(e));
        if (e == TN_OK) {
            ck_assert_uint_le(tn_reader_event_count(r), last_events);
            last_events = tn_reader_event_count(r);
            if (in_chunk != 0)
                ck_assert_str_eq(tn_reader_damage(r), "The journal is damaged: its last chunk is cut short.");
            if (in_chunk == 0 || in_chunk == 1)
                use_all(r);
            tn_reader_close(r);
        }
        if (length == 0)
            break;
    }
    ck_assert_uint_eq(last_events, 0);
    free(file);
}
END_TEST

START_TEST(damaged_at_random)
{
    size_t bytes;
    make_sample();
    unsigned char *file = read_file(sample, &bytes), *copy = malloc(bytes);
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    printf("seed %u\n", seed);
    srand(seed);
    uint64_t sum = 0, damaged = 0;
    size_t chunks = (bytes - TN_HEADER_BYTES) / TN_CHUNK_BYTES;
    for (int round = 0; round < 500; round++) {
        memcpy(copy, file, bytes);
        int flips = 1 + rand() % 40;
        for (int i = 0; i < flips; i++) {
            /* Half of them where they hurt: the start of a chunk, which is where heads and records are. */
            size_t at = (size_t)rand() % bytes;
            if (i % 2 == 0)
                at = TN_HEADER_BYTES + (size_t)rand() % chunks * TN_CHUNK_BYTES + (size_t)rand() % 512;
            copy[at] = rand() % 4 == 0 ? 0xff : (unsigned char)rand();
        }
        tn_reader *r;
        tn_error e = open_cut(copy, bytes, &r);
        if (e != TN_OK) {
            ck_assert_msg(e == TN_E_FORMAT || e == TN_E_VERSION || e == TN_E_TRUNCATED, "%s", tn_error_text(e));
            continue;
        }
        sum += use_all(r);
        damaged += tn_reader_damage(r) != NULL;
        tn_reader_close(r);
    }
    ck_assert_uint_gt(sum, 0);
    ck_assert_uint_gt(damaged, 100);
    free(copy);
    free(file);
}
END_TEST

START_TEST(hostile_records)
{
    size_t bytes;
    make_sample();
    unsigned char *file = read_file(sample, &bytes);
    size_t at = 0;
    for (size_t c = TN_HEADER_BYTES; c < bytes; c += TN_CHUNK_BYTES)
        if (((tn_chunk_header *)(file + c))->type == TN_CHUNK_RECORDS)
            at = c + sizeof(tn_chunk_header);
    ck_assert_uint_ne(at, 0);
    tn_record *record = (tn_record *)(file + at);
    static const uint32_t lengths[] = { 0, 1, 3, 4, 5, 55, 56, 65463, 65464, 65465, 65536, 0x7fffffff, 0xfffffff8, 0xffffffff };
    for (uint32_t type = 1; type < 9; type++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            for (int fill = 0; fill < 256; fill += 51) {
                memset(file + at, fill, TN_CHUNK_BYTES - sizeof(tn_chunk_header));
                record->type = type;
                record->bytes = lengths[i];
                tn_reader *r;
                ck_assert_int_eq(open_cut(file, bytes, &r), TN_OK);
                use_all(r);
                tn_reader_close(r);
            }
        }
    }
    free(file);
}
END_TEST

START_TEST(foreign_files_are_refused)
{
    tn_reader *r;
    size_t bytes;
    ck_assert_int_eq(tn_reader_open("/nonexistent", &r), TN_E_OPEN);
    ck_assert_int_eq(tn_reader_open(fixture_dir, &r), TN_E_FORMAT);
    ck_assert_int_eq(tn_reader_open("/proc/self/exe", &r), TN_E_FORMAT);
    ck_assert_int_eq(tn_reader_open("/dev/null", &r), TN_E_FORMAT);
    ck_assert_int_eq(open_cut((const unsigned char *)"hello\n", 6, &r), TN_E_FORMAT);
    ck_assert_int_eq(open_cut((const unsigned char *)"TENURE", 6, &r), TN_E_TRUNCATED);
    ck_assert_int_eq(open_cut((const unsigned char *)"", 0, &r), TN_E_TRUNCATED);
    ck_assert_ptr_null(r);
    char fifo[600];
    snprintf(fifo, sizeof fifo, "%s/fifo", fixture_dir);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(tn_reader_open(fifo, &r), TN_E_FORMAT); /* and does not wait for a writer */

    make_sample();
    unsigned char *file = read_file(sample, &bytes);
    tn_journal_header *h = (tn_journal_header *)file;
    h->version = TN_JOURNAL_VERSION + 1;
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_E_VERSION);
    h->version = TN_JOURNAL_VERSION;
    h->chunk_bytes *= 2;
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_E_FORMAT);
    h->chunk_bytes /= 2;
    h->magic[7] = '2';
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_E_VERSION);
    memset(file, 0, TN_HEADER_BYTES);
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_E_TRUNCATED); /* killed before the header was complete */
    free(file);
}
END_TEST

START_TEST(header_strings_end)
{
    size_t bytes;
    make_sample();
    unsigned char *file = read_file(sample, &bytes);
    tn_journal_header *h = (tn_journal_header *)file;
    memset(h->host, 'x', sizeof h->host);
    memset(h->exe, 'x', sizeof h->exe);
    memset(h->cmdline, 'x', sizeof h->cmdline);
    memset(h->libtenure_path, 'x', sizeof h->libtenure_path);
    tn_reader *r;
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_OK);
    ck_assert_uint_eq(strlen(tn_reader_header(r)->cmdline), sizeof h->cmdline - 1);
    ck_assert_uint_eq(strlen(tn_reader_header(r)->libtenure_path), sizeof h->libtenure_path - 1);
    tn_reader_close(r);
    free(file);
}
END_TEST

START_TEST(unknown_things_are_passed_over_and_said)
{
    size_t bytes;
    make_sample();
    unsigned char *file = read_file(sample, &bytes);
    for (size_t c = TN_HEADER_BYTES; c < bytes; c += TN_CHUNK_BYTES) {
        tn_chunk_header *head = (tn_chunk_header *)(file + c);
        if (head->type == TN_CHUNK_EVENTS && head->thread == 1 && head->sequence == 0)
            ((tn_event *)(head + 1))[10].type = TN_EV_TYPE_COUNT + 3;
        if (head->type == TN_CHUNK_RECORDS)
            ((tn_record *)(head + 1))->type = 77;
    }
    tn_reader *r;
    ck_assert_int_eq(open_cut(file, bytes, &r), TN_OK);
    ck_assert_uint_eq(tn_reader_event_count(r), 1699);
    ck_assert_ptr_null(tn_reader_api(r, 1, NULL));
    ck_assert_ptr_nonnull(tn_reader_module(r, 1));
    ck_assert_str_eq(tn_reader_damage(r), "The journal is damaged: 1 record is unreadable, 1 event is unreadable.");
    tn_reader_close(r);
    free(file);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("journal_reader");
    TCase *c = tcase_create("reader");
    tcase_add_checked_fixture(c, fixture_begin, fixture_end);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, all_tables_are_read);
    tcase_add_test(c, time_is_counted_from_the_creation);
    tcase_add_test(c, a_later_record_of_an_id_replaces_the_earlier);
    tcase_add_test(c, cut_at_any_length);
    tcase_add_test(c, damaged_at_random);
    tcase_add_test(c, hostile_records);
    tcase_add_test(c, foreign_files_are_refused);
    tcase_add_test(c, header_strings_end);
    tcase_add_test(c, unknown_things_are_passed_over_and_said);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
