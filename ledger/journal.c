/* Opening and ending a journal, and the few header fields that change in between. */
#define _GNU_SOURCE
#include "ledger/journal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#define DEFAULT_MAX_BYTES ((uint64_t)8 << 30)
#define NAME_TRIES 8

static size_t append(char *out, size_t at, size_t bytes, const char *text)
{
    for (; *text != '\0' && at + 1 < bytes; text++)
        out[at++] = *text;
    out[at] = '\0';
    return at;
}

static size_t append_number(char *out, size_t at, size_t bytes, uint64_t v, unsigned base, int width)
{
    char digits[24];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v > 0 || n < width);
    while (n > 0 && at + 1 < bytes)
        out[at++] = digits[--n];
    out[at] = '\0';
    return at;
}

/* The absolute path up to and including the last '/', because the host may change its folder before the
 * file has to be opened again. Returns its length, 0 if it does not fit. */
static size_t folder_part(char *out, size_t bytes, const char *run_dir)
{
    size_t at = 0;
    out[0] = '\0';
    if (run_dir[0] != '/' && syscall(SYS_getcwd, out, bytes) > 0 && out[0] == '/') {
        at = strlen(out);
        at = append(out, at, bytes, "/");
    } else if (run_dir[0] != '/') {
        out[0] = '\0'; /* a folder without a name: the relative path has to do */
    }
    at = append(out, at, bytes, run_dir);
    at = append(out, at, bytes, "/");
    return at + 128 < bytes ? at : 0;
}

static tn_error create_file(tn_journal *j, const char *run_dir, uint64_t *random_id, uint32_t pid)
{
    char host[64];
    size_t folder = folder_part(j->path, sizeof j->path, run_dir);
    if (folder == 0)
        return TN_E_OPEN;
    tn_journal_host_name(host);
    for (int i = 0; i < NAME_TRIES; i++) {
        *random_id = tn_journal_random();
        size_t at = append(j->path, folder, sizeof j->path, host);
        at = append(j->path, at, sizeof j->path, "-");
        at = append_number(j->path, at, sizeof j->path, pid, 10, 1);
        at = append(j->path, at, sizeof j->path, "-");
        at = append_number(j->path, at, sizeof j->path, *random_id, 16, 16);
        append(j->path, at, sizeof j->path, TN_JOURNAL_SUFFIX);
        j->fd = j->os.open_exclusive(j->path);
        if (j->fd >= 0)
            break;
        if (errno != EEXIST) {
            tn_error e = tn_errno_error(errno);
            return e == TN_E_NOPREALLOC ? TN_E_OPEN : e;
        }
    }
    if (j->fd < 0)
        return TN_E_OPEN;
    j->fd = tn_journal_raise_fd(j->fd);
    struct stat st;
    if (tn_sys_fstat(j->fd, &st) != 0)
        return TN_E_IO;
    j->dev = st.st_dev;
    j->ino = st.st_ino;
    return TN_OK;
}

/* Space for the header, mapped or, where the file system cannot preallocate or map, in memory. */
static tn_error make_header(tn_journal *j)
{
    if (TN_HEADER_BYTES > j->max_bytes)
        return TN_E_LIMIT;
    if ((int64_t)TN_HEADER_BYTES > j->os.file_size_limit())
        return TN_E_NOSPACE;
    if (j->os.preallocate(j->fd, 0, TN_HEADER_BYTES) != 0) {
        if (tn_errno_error(errno) != TN_E_NOPREALLOC)
            return tn_errno_error(errno);
        j->buffered = 1;
    } else {
        j->header = j->os.map(j->fd, 0, TN_HEADER_BYTES);
        if (j->header == NULL && errno != ENODEV && errno != EINVAL && errno != EOPNOTSUPP)
            return tn_errno_error(errno);
        j->buffered = j->header == NULL; /* a file system without shared mappings */
    }
    if (j->buffered) {
        j->header = tn_sys_map_memory(TN_HEADER_BYTES);
        j->scratch = tn_sys_map_memory(TN_CHUNK_BYTES);
        if (j->header == NULL || j->scratch == NULL)
            return TN_E_NOMEM;
    }
    j->file_end = TN_HEADER_BYTES;
    j->next_chunk = TN_HEADER_BYTES;
    return TN_OK;
}

const tn_journal_header *tn_journal_header_of(const tn_journal *j) { return j->header; }

static tn_error fill_header(tn_journal *j, const tn_journal_options *o, uint64_t random_id, uint32_t pid)
{
    tn_journal_header *h = j->header;
    struct timespec now;
    h->version = TN_JOURNAL_VERSION;
    h->header_bytes = TN_HEADER_BYTES;
    h->chunk_bytes = TN_CHUNK_BYTES;
    h->event_bytes = (uint32_t)sizeof(tn_event);
    h->flags = o->header_flags | (j->buffered ? (uint32_t)TN_HF_BUFFERED : 0u);
    tn_clock_pair(&h->tsc_start, &h->mono_start_ns);
    clock_gettime(CLOCK_REALTIME, &now);
    h->real_start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    h->tsc_last = h->tsc_start;
    h->mono_last_ns = h->mono_start_ns;
#if defined(__aarch64__)
    __asm__("mrs %0, cntfrq_el0" : "=r"(h->tsc_hz));
#endif
    h->random_id = random_id;
    h->pid = pid;
    h->ppid = (uint32_t)syscall(SYS_getppid);
    h->api_count = o->api_count;
    h->shim_version = o->shim_version;
    if (o->libtenure_path != NULL)
        append(h->libtenure_path, 0, sizeof h->libtenure_path, o->libtenure_path);
    tn_journal_identify(h);
    /* A kill before this leaves a file without the magic, which the reader calls cut short. */
    uint64_t magic;
    memcpy(&magic, TN_JOURNAL_MAGIC, sizeof magic);
    __atomic_store_n((uint64_t *)(void *)h->magic, magic, __ATOMIC_RELEASE);
    return j->buffered ? tn_journal_write(j, h, TN_HEADER_BYTES, 0) : TN_OK;
}

static void undo_open(tn_journal *j)
{
    if (j->header != NULL)
        tn_sys_unmap(j->header, TN_HEADER_BYTES);
    if (j->scratch != NULL)
        tn_sys_unmap(j->scratch, TN_CHUNK_BYTES);
    if (j->fd >= 0) {
        /* We created it exclusively a moment ago: an empty journal would only be reported as a broken one. */
        syscall(SYS_unlinkat, AT_FDCWD, j->path, 0);
        tn_sys_close(j->fd);
    }
    tn_sys_unmap(j, sizeof *j);
}

tn_error tn_journal_open(const tn_journal_options *o, tn_journal **out)
{
    if (o == NULL || out == NULL || o->run_dir == NULL || o->run_dir[0] == '\0' || o->api_count > TN_API_MAX)
        return TN_E_ARGUMENT;
    int saved = errno;
    *out = NULL;
    tn_journal *j = tn_sys_map_own(sizeof *j);
    if (j == NULL) {
        errno = saved;
        return TN_E_NOMEM;
    }
    const tn_journal_os *real = &tn_journal_real_os, *os = o->os != NULL ? o->os : real;
    j->os.open_exclusive = os->open_exclusive ? os->open_exclusive : real->open_exclusive;
    j->os.preallocate = os->preallocate ? os->preallocate : real->preallocate;
    j->os.map = os->map ? os->map : real->map;
    j->os.write_at = os->write_at ? os->write_at : real->write_at;
    j->os.file_size_limit = os->file_size_limit ? os->file_size_limit : real->file_size_limit;
    j->growth.rank = TN_LOCK_JOURNAL_GROWTH;
    j->records.rank = TN_LOCK_JOURNAL_RECORDS;
    j->max_bytes = o->max_bytes != 0 ? o->max_bytes : DEFAULT_MAX_BYTES;
    j->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    j->fd = -1;

    uint32_t pid = (uint32_t)syscall(SYS_getpid);
    uint64_t random_id = 0;
    tn_error e = create_file(j, o->run_dir, &random_id, pid);
    if (e == TN_OK)
        e = make_header(j);
    if (e == TN_OK)
        e = fill_header(j, o, random_id, pid);
    if (e == TN_OK)
        *out = j;
    else
        undo_open(j);
    errno = saved;
    return e;
}

void tn_journal_drop(tn_journal *j, uint64_t n)
{
    if (j != NULL && j->header != NULL)
        __atomic_fetch_add(&j->header->dropped_events, n, __ATOMIC_RELAXED);
}

void tn_journal_set_flags(tn_journal *j, uint32_t flags)
{
    if (j != NULL && j->header != NULL)
        __atomic_fetch_or(&j->header->flags, flags, __ATOMIC_RELAXED);
}

void tn_journal_set_versions(tn_journal *j, uint32_t driver, uint32_t runtime)
{
    if (j == NULL || j->header == NULL)
        return;
    if (driver != 0)
        __atomic_store_n(&j->header->driver_version, driver, __ATOMIC_RELAXED);
    if (runtime != 0)
        __atomic_store_n(&j->header->runtime_version, runtime, __ATOMIC_RELAXED);
}

/* exit() may have been called from a signal handler that interrupted the lock's holder, so the wait ends. */
static int take_growth_at_exit(tn_journal *j)
{
    const struct timespec pause = { 0, 1000000 };
    for (int i = 0; i < 200; i++) {
        if (tn_lock_try(&j->growth))
            return 1;
        syscall(SYS_nanosleep, &pause, (void *)0);
    }
    return 0;
}

void tn_journal_end(tn_journal *j)
{
    if (j == NULL || j->header == NULL)
        return;
    int saved = errno;
    tn_journal_set_flags(j, TN_HF_ENDED);
    if (take_growth_at_exit(j)) {
        tn_journal_clock(j);
        for (tn_journal_thread *t = j->threads; t != NULL; t = t->next_all) {
            tn_thread_flush(j, t);
            tn_thread_count_lost(j, t);
        }
        tn_journal_write_header(j);
        tn_lock_release(&j->growth);
    }
    errno = saved;
}

const char *tn_journal_path(const tn_journal *j)
{
    return j == NULL ? NULL : j->path;
}
