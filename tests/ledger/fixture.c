#define _GNU_SOURCE
#include "fixture.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

char fixture_dir[256];

void fixture_begin(void)
{
    const char *base = getenv("TEST_TMPDIR");
    snprintf(fixture_dir, sizeof fixture_dir, "%s/journal.XXXXXX", base != NULL ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(fixture_dir));
}

void fixture_end(void)
{
    char path[768];
    DIR *dir = opendir(fixture_dir);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", fixture_dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    closedir(dir);
    rmdir(fixture_dir);
}

tn_journal *open_journal(const tn_journal_os *os, uint64_t max_bytes)
{
    tn_journal_options options = {
        .run_dir = fixture_dir,
        .max_bytes = max_bytes,
        .shim_version = 0x000100,
        .api_count = 20,
        .libtenure_path = "/opt/tenure/libtenure.so",
        .os = os,
    };
    tn_journal *j = NULL;
    tn_error e = tn_journal_open(&options, &j);
    ck_assert_msg(e == TN_OK, "%s", tn_error_text(e));
    ck_assert_ptr_nonnull(j);
    return j;
}

tn_reader *open_reader(const char *path)
{
    tn_reader *r = NULL;
    tn_error e = tn_reader_open(path, &r);
    ck_assert_msg(e == TN_OK, "%s: %s", path, tn_error_text(e));
    return r;
}

uint32_t this_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

uint32_t write_numbered(tn_journal *j, tn_journal_thread *t, uint64_t mark, uint64_t first, uint32_t count)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        tn_event *e = tn_journal_slot(j, t, 0);
        if (e == NULL)
            continue;
        e->tsc = tn_stamp();
        e->kind = TN_KIND_DEVICE;
        e->api = 3;
        e->addr = first + i;
        e->bytes = mark;
        tn_journal_commit(e, TN_EV_ALLOC);
        written++;
    }
    return written;
}

uint64_t count_in_order(tn_reader *r, uint64_t mark)
{
    uint64_t next = 0;
    tn_reader_rewind(r);
    for (const tn_event *e; (e = tn_reader_next(r, NULL)) != NULL;) {
        if (e->bytes != mark)
            continue;
        ck_assert_int_eq(e->type, TN_EV_ALLOC);
        ck_assert_msg(e->addr == next, "mark %llu: %llu where %llu was due", (unsigned long long)mark,
                      (unsigned long long)e->addr, (unsigned long long)next);
        next++;
    }
    return next;
}

int count_journals(void)
{
    int n = 0;
    DIR *dir = opendir(fixture_dir);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        size_t length = strlen(e->d_name);
        n += length > 4 && strcmp(e->d_name + length - 4, TN_JOURNAL_SUFFIX) == 0;
    }
    closedir(dir);
    return n;
}

void write_api_record(tn_journal *j, uint16_t id, const char *name)
{
    tn_rec_api api = { .id = id, .level = TN_LEVEL_RUNTIME, .klass = TN_CLASS_ALLOC };
    ck_assert_int_eq(tn_journal_record(j, TN_REC_API, &api, sizeof api, name, strlen(name) + 1), TN_OK);
}

unsigned char *read_file(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    unsigned char *p = malloc((size_t)st.st_size + 1);
    ck_assert_ptr_nonnull(p);
    size_t used = 0;
    while (used < (size_t)st.st_size) {
        ssize_t n = read(fd, p + used, (size_t)st.st_size - used);
        ck_assert_int_gt(n, 0);
        used += (size_t)n;
    }
    close(fd);
    *bytes = used;
    return p;
}

void write_file(const char *path, const void *p, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, p, bytes), (ssize_t)bytes);
    close(fd);
}
