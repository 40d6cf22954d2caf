/* What the report's tests share. */
#define _GNU_SOURCE
#include "tests/report/report_test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

static char folder[PATH_MAX];

void scratch_make(void)
{
    const char *base = getenv("TEST_TMPDIR");
    snprintf(folder, sizeof(folder), "%s/report-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void scratch_remove(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(void)
{
    return folder;
}

const char *scratch_file(const char *name)
{
    static char paths[8][PATH_MAX + 256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

void put_journal(jm *j, const char *name)
{
    char file[256];
    snprintf(file, sizeof(file), "%s.tnj", name);
    jm_write(j, scratch_file(file), 0);
    jm_free(j);
}

tn_report *load_scratch(void)
{
    char message[TN_REPORT_MESSAGE];
    tn_report *loaded = NULL;
    tn_error error = tn_report_load(folder, &loaded, message);
    ck_assert_msg(error == TN_OK, "%s", message);
    return loaded;
}

tn_report *report;

void load_journal(jm *j)
{
    put_journal(j, "one");
    report = load_scratch();
}

void drop_report(void)
{
    tn_report_free(report);
    report = NULL;
    scratch_remove();
}

const tn_place *device(uint32_t i)
{
    ck_assert_uint_lt(TN_PLACE_HOST + 1 + i, report->place_count);
    return &report->places[TN_PLACE_HOST + 1 + i];
}

const tn_stat *kind(uint8_t k)
{
    return &device(0)->kinds[k];
}

tn_event ev(uint8_t type, uint8_t kind, uint64_t addr, uint64_t bytes)
{
    return (tn_event){.type = type, .kind = kind, .api = 1, .site = 2, .ctx = 1, .addr = addr, .bytes = bytes};
}

tn_event ev_alloc(uint8_t kind, uint64_t addr, uint64_t bytes)
{
    tn_event e = ev(TN_EV_ALLOC, kind, addr, bytes);
    e.aux = (bytes + 0xfff) & ~(uint64_t)0xfff; /* backed: whole pages */
    return e;
}

tn_event ev_free(uint8_t kind, uint64_t addr)
{
    tn_event e = ev(TN_EV_FREE, kind, addr, 0);
    e.api = 2;
    return e;
}

jm *plain_journal(uint32_t pid)
{
    jm *j = jm_new(pid);
    jm_api(j, 1, TN_LEVEL_RUNTIME, TN_CLASS_ALLOC, "cudaMalloc");
    jm_api(j, 2, TN_LEVEL_RUNTIME, TN_CLASS_FREE, "cudaFree");
    jm_device(j, 0, 0x11, (uint64_t)80 << 30, "NVIDIA Test");
    jm_module(j, 1, "00112233", "/nowhere/engine");
    jm_site(j, 2, 0x2222, 1, (const uint64_t[][2]){{1, 0x100}});
    return j;
}
