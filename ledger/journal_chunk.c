/* The journal's file: how it grows, how a chunk is opened and put away, what an error means for the rest of
 * the run. Everything here but tn_journal_may_grow runs under the growth lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#define ARENA_BYTES 65536u

void tn_journal_block(tn_journal *j, tn_error e)
{
    __atomic_store_n(&j->drops_since_block, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&j->blocked, (uint32_t)e, __ATOMIC_RELAXED);
    if (e == TN_E_NOSPACE || e == TN_E_NOMEM)
        return; /* space and memory come back, and then so does recording */
    if (__atomic_exchange_n(&j->stopped, (uint32_t)e, __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(&j->header->stop_error, (uint32_t)e, __ATOMIC_RELAXED);
        __atomic_fetch_or(&j->header->flags, TN_HF_STOPPED, __ATOMIC_RELEASE);
    }
}

int tn_journal_may_grow(tn_journal *j)
{
    if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED) != 0)
        return 0;
    if (__atomic_load_n(&j->blocked, __ATOMIC_RELAXED) == 0)
        return 1;
    if (__atomic_add_fetch(&j->drops_since_block, 1, __ATOMIC_RELAXED) < TN_RETRY_DROPS)
        return 0;
    __atomic_store_n(&j->drops_since_block, 0, __ATOMIC_RELAXED);
    return 1;
}

void tn_clock_pair(uint64_t *tsc, uint64_t *mono_ns)
{
    uint64_t best = UINT64_MAX;
    /* The narrowest of three windows around the clock: one may hold an interrupt. */
    for (int i = 0; i < 3; i++) {
        struct timespec now;
        uint64_t before = tn_stamp();
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t window = tn_stamp() - before;
        if (window >= best)
            continue;
        best = window;
        *tsc = before + window / 2;
        *mono_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
}

void tn_journal_clock(tn_journal *j)
{
    tn_journal_header *h = j->header;
    uint64_t tsc = h->tsc_start, mono = h->mono_start_ns;
    tn_clock_pair(&tsc, &mono);
    h->tsc_last = tsc;
    h->mono_last_ns = mono;
    /* Below a millisecond the pairs' own error (some 50 ns) would be the larger one. */
    if (mono - h->mono_start_ns >= 1000000u && tsc > h->tsc_start)
        h->tsc_hz = (uint64_t)((unsigned __int128)(tsc - h->tsc_start) * 1000000000u / (mono - h->mono_start_ns));
}

void *tn_journal_small(tn_journal *j, size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    if (bytes > j->arena_left) {
        void *slab = tn_sys_map_own(ARENA_BYTES);
        if (slab == NULL)
            return NULL;
        j->arena = slab;
        j->arena_left = ARENA_BYTES;
    }
    void *p = j->arena;
    j->arena = (char *)j->arena + bytes;
    j->arena_left -= bytes;
    return p;
}

/* A file that has become so long grows by so many chunks at once: in one step they cost a third less (ext4, Linux 6.18). */
#define STEP_FROM ((int64_t)1 << 20)
#define STEP_CHUNKS 4

/* How far a file that has to reach `end` is preallocated: no further than it may grow. */
static int64_t step(const tn_journal *j, int64_t end)
{
    int64_t ahead = end + (STEP_CHUNKS - 1) * (int64_t)TN_CHUNK_BYTES;
    return j->file_end < STEP_FROM || (uint64_t)ahead > j->max_bytes || ahead > j->os.file_size_limit() ? end : ahead;
}

/* Makes the file reach `end`. */
static tn_error reach(tn_journal *j, int64_t end)
{
    if ((uint64_t)end > j->max_bytes)
        return TN_E_LIMIT;
    /* Beyond the limit the kernel would send SIGXFSZ, which kills a program that does not expect it. */
    if (end > j->os.file_size_limit())
        return TN_E_NOSPACE;
    if (j->buffered || end <= j->file_end)
        return TN_OK;
    tn_error e = tn_journal_check_fd(j);
    if (e != TN_OK)
        return e;
    int64_t ahead = step(j, end);
    int failed = j->os.preallocate(j->fd, j->file_end, ahead - j->file_end) != 0;
    if (failed && ahead > end && tn_errno_error(errno) == TN_E_NOSPACE) { /* there may be room for the one that is needed */
        ahead = end;
        failed = j->os.preallocate(j->fd, j->file_end, ahead - j->file_end) != 0;
    }
    if (failed)
        return tn_errno_error(errno);
    j->file_end = ahead;
    return TN_OK;
}

static void window_left(tn_journal *j, tn_window *w)
{
    if (w->in_use > 0 || w == j->window)
        return;
    tn_sys_unmap(w->map, w->map_bytes);
    w->next = j->free_windows;
    j->free_windows = w;
}

/* Maps what is prepared from `offset` on, where that is more than one chunk: 20 us a chunk to make and map four at once, 37 to make four and map
 * each (ext4, Linux 6.18, which keeps them in one folio). NULL: there is no more than one, or it cannot be had; then one is tried. */
static tn_window *open_window(tn_journal *j, int64_t offset)
{
    int64_t prepared = (j->file_end - offset) / (int64_t)TN_CHUNK_BYTES;
    uint32_t chunks = prepared < STEP_CHUNKS ? (uint32_t)prepared : STEP_CHUNKS;
    if (chunks < 2)
        return NULL;
    tn_window *w = j->free_windows != NULL ? j->free_windows : tn_journal_small(j, sizeof *w);
    if (w == NULL)
        return NULL;
    j->free_windows = j->free_windows != NULL ? w->next : NULL;
    int64_t lead = offset & (int64_t)(j->page_bytes - 1);
    *w = (tn_window){ .map_bytes = (size_t)chunks * TN_CHUNK_BYTES + (size_t)lead, .offset = offset, .chunks = chunks };
    w->map = j->os.map(j->fd, offset - lead, w->map_bytes);
    if (w->map != NULL)
        return w;
    w->next = j->free_windows;
    j->free_windows = w;
    return NULL;
}

/* The chunk at `offset` from the open window, or from a new one. 0: it has to be mapped by itself. */
static int take_from_window(tn_journal *j, tn_chunk *c, int64_t offset)
{
    if (j->window == NULL)
        j->window = open_window(j, offset);
    tn_window *w = j->window;
    if (w == NULL)
        return 0;
    int fits = offset == w->offset + (int64_t)w->given_out * (int64_t)TN_CHUNK_BYTES;
    if (fits) {
        size_t at = w->map_bytes - (size_t)(w->chunks - w->given_out) * TN_CHUNK_BYTES;
        c->head = (tn_chunk_header *)((char *)w->map + at);
        c->window = w;
        w->given_out++;
        w->in_use++;
    }
    if (!fits || w->given_out == w->chunks) {
        j->window = NULL;
        window_left(j, w);
    }
    return fits;
}

static tn_error map_chunk(tn_journal *j, tn_chunk *c, int64_t offset)
{
    c->window = NULL;
    if (j->buffered) {
        if (c->map == NULL) {
            c->map = tn_sys_map_memory(TN_CHUNK_BYTES);
            c->map_bytes = TN_CHUNK_BYTES;
        } else {
            memset(c->map, 0, TN_CHUNK_BYTES);
        }
        if (c->map == NULL)
            return TN_E_NOMEM;
        c->head = c->map;
    } else {
        tn_error e = tn_journal_check_fd(j);
        if (e != TN_OK)
            return e;
        c->offset = offset;
        if (take_from_window(j, c, offset))
            return TN_OK;
        /* With 64 KiB pages a chunk begins inside a page: map from that page's start. */
        int64_t lead = offset & (int64_t)(j->page_bytes - 1);
        c->map_bytes = TN_CHUNK_BYTES + (size_t)lead;
        c->map = j->os.map(j->fd, offset - lead, c->map_bytes);
        if (c->map == NULL)
            return tn_errno_error(errno);
        c->head = (tn_chunk_header *)((char *)c->map + lead);
    }
    c->offset = offset;
    return TN_OK;
}

tn_error tn_chunk_open(tn_journal *j, tn_chunk *c, uint32_t type, uint32_t thread, uint32_t tid, uint64_t sequence)
{
    c->head = NULL;
    if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED) != 0)
        return (tn_error)j->stopped;
    int64_t offset = j->next_chunk;
    tn_error e = reach(j, offset + (int64_t)TN_CHUNK_BYTES);
    if (e == TN_OK)
        e = map_chunk(j, c, offset);
    if (e != TN_OK) {
        tn_journal_block(j, e);
        return e;
    }
    j->next_chunk = offset + (int64_t)TN_CHUNK_BYTES;
    __atomic_store_n(&j->blocked, 0, __ATOMIC_RELAXED);
    tn_journal_clock(j);
    c->head->type = type;
    c->head->thread = thread;
    c->head->tid = tid;
    c->head->sequence = sequence;
    c->head->tsc = j->header->tsc_last;
    /* A kill before this store leaves a chunk that the reader passes over. */
    __atomic_store_n(&c->head->magic, TN_CHUNK_MAGIC, __ATOMIC_RELEASE);
    return TN_OK;
}

void tn_chunk_retire(tn_journal *j, tn_chunk *c)
{
    if (c->head != NULL && c->window != NULL) {
        c->window->in_use--;
        window_left(j, c->window);
        c->window = NULL;
    } else if (c->head != NULL && !j->buffered) {
        tn_sys_unmap(c->map, c->map_bytes);
        c->map = NULL;
    }
    c->head = NULL;
}

tn_error tn_journal_write(tn_journal *j, const void *p, size_t bytes, int64_t offset)
{
    const char *from = p;
    tn_error e = TN_OK;
    if (offset + (int64_t)bytes > j->os.file_size_limit())
        e = TN_E_NOSPACE;
    else
        e = tn_journal_check_fd(j);
    while (e == TN_OK && bytes > 0) {
        int64_t n = j->os.write_at(j->fd, from, bytes, offset);
        if (n <= 0) {
            e = n == 0 ? TN_E_NOSPACE : tn_errno_error(errno);
            break;
        }
        from += n;
        offset += n;
        bytes -= (size_t)n;
    }
    if (e != TN_OK)
        tn_journal_block(j, e);
    return e;
}

void tn_journal_write_header(tn_journal *j)
{
    if (j->buffered)
        (void)tn_journal_write(j, j->header, sizeof *j->header, 0);
}
