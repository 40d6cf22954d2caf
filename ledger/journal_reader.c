/* Opening a journal: is it one, is it whole, and what its clock means. */
#define _GNU_SOURCE
#include "ledger/journal_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/reader_internal.h"

/* Events are referred to by offset / 64 in 32 bits. */
#define FILE_BYTES_MAX ((uint64_t)UINT32_MAX * sizeof(tn_event))

static tn_error check_header(tn_reader *r)
{
    static const char magic[sizeof r->header.magic + 1] = TN_JOURNAL_MAGIC;
    size_t have = r->bytes < sizeof r->header.magic ? r->bytes : sizeof r->header.magic;

    if (have > 0 && memcmp(r->map, magic, have) != 0) {
        static const char none[sizeof r->header.magic];
        if (have == sizeof none && memcmp(r->map, none, have) == 0)
            return TN_E_TRUNCATED; /* killed before its header was complete */
        /* The last character of the magic is the family's version. */
        return have == sizeof none && memcmp(r->map, magic, have - 1) == 0 ? TN_E_VERSION : TN_E_FORMAT;
    }
    if (r->bytes < offsetof(tn_journal_header, flags))
        return TN_E_TRUNCATED;
    const tn_journal_header *h = (const tn_journal_header *)r->map;
    if (h->version != TN_JOURNAL_VERSION)
        return TN_E_VERSION;
    if (h->header_bytes != TN_HEADER_BYTES || h->chunk_bytes != TN_CHUNK_BYTES || h->event_bytes != sizeof(tn_event))
        return TN_E_FORMAT;
    return r->bytes < TN_HEADER_BYTES ? TN_E_TRUNCATED : TN_OK;
}

static void copy_header(tn_reader *r)
{
    tn_journal_header *h = &r->header;
    memcpy(h, r->map, sizeof *h);
    h->host[sizeof h->host - 1] = '\0';
    h->boot_id[sizeof h->boot_id - 1] = '\0';
    h->exe[sizeof h->exe - 1] = '\0';
    h->cmdline[sizeof h->cmdline - 1] = '\0';
    h->exe_build_id[sizeof h->exe_build_id - 1] = '\0';
    h->libtenure_path[sizeof h->libtenure_path - 1] = '\0';

    if (h->tsc_hz != 0) {
        r->ns_per_tick = 1e9 / (double)h->tsc_hz;
    } else if (h->tsc_last > h->tsc_start && h->mono_last_ns > h->mono_start_ns) {
        r->ns_per_tick = (double)(h->mono_last_ns - h->mono_start_ns) / (double)(h->tsc_last - h->tsc_start);
    } else {
        r->ns_per_tick = 1.0;
        r->no_clock = 1;
    }
}

static void append_count(char *out, size_t bytes, uint64_t n, const char *thing)
{
    size_t used = strlen(out);
    if (n == 0 || used >= bytes)
        return;
    snprintf(out + used, bytes - used, "%s%llu %s%s unreadable", used == 0 ? "" : ", ", (unsigned long long)n, thing,
             n == 1 ? " is" : "s are");
}

/* One sentence from what was counted, or none. */
static void describe_damage(tn_reader *r)
{
    char what[192] = "";
    if (r->tail_bytes > 0)
        snprintf(what, sizeof what, "its last chunk is cut short");
    append_count(what, sizeof what, r->bad_chunks, "chunk");
    append_count(what, sizeof what, r->bad_records, "record");
    append_count(what, sizeof what, r->bad_events, "event");
    if (what[0] != '\0')
        snprintf(r->damage, sizeof r->damage, "The journal is damaged: %s.", what);
    else if (r->no_clock && r->event_count > 0)
        snprintf(r->damage, sizeof r->damage, "The journal's clock is unknown, so times are in ticks.");
}

static tn_error map_file(tn_reader *r, const char *path)
{
    /* Not blocking: the name may be a pipe's. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    tn_error e = TN_OK;
    if (fd < 0)
        return TN_E_OPEN;
    if (fstat(fd, &st) != 0) {
        e = TN_E_IO;
    } else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_BYTES_MAX) {
        e = TN_E_FORMAT;
    } else if (st.st_size == 0) {
        e = TN_E_TRUNCATED;
    } else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            e = TN_E_IO;
        } else {
            r->map = p;
            r->bytes = (size_t)st.st_size;
        }
    }
    close(fd);
    return e;
}

tn_error tn_reader_open(const char *path, tn_reader **out)
{
    if (path == NULL || out == NULL)
        return TN_E_ARGUMENT;
    *out = NULL;
    tn_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return TN_E_NOMEM;
    tn_error e = map_file(r, path);
    if (e == TN_OK)
        e = check_header(r);
    if (e == TN_OK) {
        copy_header(r);
        r->chunk_count = (r->bytes - TN_HEADER_BYTES) / TN_CHUNK_BYTES;
        r->tail_bytes = (r->bytes - TN_HEADER_BYTES) % TN_CHUNK_BYTES;
        e = tn_reader_index(r);
    }
    if (e != TN_OK) {
        tn_reader_close(r);
        return e;
    }
    describe_damage(r);
    *out = r;
    return TN_OK;
}

void tn_reader_close(tn_reader *r)
{
    if (r == NULL)
        return;
    tn_reader_free_records(r);
    free(r->event_chunks);
    free(r->stragglers);
    free(r->heap);
    if (r->map != NULL)
        munmap((void *)(uintptr_t)r->map, r->bytes);
    free(r);
}

const tn_journal_header *tn_reader_header(const tn_reader *r)
{
    return &r->header;
}

uint64_t tn_reader_calls(const tn_reader *r, uint32_t api)
{
    return api < TN_API_MAX ? r->counters[api] : 0;
}

uint64_t tn_reader_resolved(const tn_reader *r, uint32_t api)
{
    return api < TN_API_MAX ? r->counters[TN_API_MAX + api] : 0;
}

uint64_t tn_reader_ns(const tn_reader *r, uint64_t tsc)
{
    if (tsc <= r->header.tsc_start)
        return 0;
    double ns = (double)(tsc - r->header.tsc_start) * r->ns_per_tick;
    return ns >= 1.8e19 ? UINT64_MAX : (uint64_t)ns;
}

const char *tn_reader_damage(const tn_reader *r)
{
    return r->damage[0] != '\0' ? r->damage : NULL;
}
