/*
 * The card's memory: capacity (charges) and bytes (one sparse shared file per device, mapped once).
 * Address space is handed out in 2 MiB extents, lowest first, so that a freed address comes back soon; requests below
 * 2 MiB share pages in 512-byte grains where one has room, as a block of 1.03 MiB was seen to on a card. Nothing is touched on allocation; a free overwrites only touched pages.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct fk_dev fk_devs[FK_MAX_DEVICES];
struct fk_stats fk_host_stats, fk_registered_stats;

#define GRAINS (FK_PAGE / FK_GRAIN)
struct fk_slab {
    struct fk_slab *next, *prev;
    size_t off;
    unsigned free;          /* free grains */
    unsigned longest;       /* no run of free grains is longer; may be too large */
    uint64_t used[GRAINS / 64];
};

CUresult fk_phys_start(struct fk_dev *d)
{
    if (d->va != NULL)
        return CUDA_SUCCESS;
    size_t pages = fk_up(d->capacity, FK_PAGE) / FK_PAGE * 4;
    d->span = pages * FK_PAGE;
    size_t table = fk_up(pages * sizeof *d->shared_refs, FK_PAGE), total = d->span + table;
    struct rlimit lim;
    int fd = -1, map = MAP_SHARED | MAP_NORESERVE;
    /* Under a file-size limit growing the file would raise SIGXFSZ; anonymous memory then serves, without IPC. */
    if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && (lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur >= total))
        fd = memfd_create("fakegpu", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)total) != 0) {
        close(fd);
        fd = -1;
    }
    char *room = mmap(NULL, total + FK_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *at = (char *)fk_up((uintptr_t)room, FK_PAGE);
    if (fd < 0)
        map |= MAP_ANONYMOUS;
    if (mmap(at, total, PROT_READ | PROT_WRITE, map | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, total + FK_PAGE);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    madvise(at, total, MADV_DONTDUMP);
    d->free_list = malloc(sizeof *d->free_list);
    d->slab_of = calloc(pages, sizeof *d->slab_of);
    if (d->free_list == NULL || d->slab_of == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *d->free_list = (struct fk_extent){0, d->span, NULL};
    d->va = at;
    d->memfd = fd;
    d->shared_refs = (_Atomic uint32_t *)(void *)(at + d->span);
    return CUDA_SUCCESS;
}

bool fk_charge(struct fk_dev *d, size_t bytes)
{
    fk_shared_enter();
    size_t used = d->used + fk_shared_others(d->ordinal);
    bool full = bytes > d->capacity || used > d->capacity - bytes;
    /* WDDM pages memory out to the host: only a request larger than the address space is refused. */
    bool granted = !full || (fk_cfg.mode == FK_WDDM && bytes <= d->span / 2);
    if (granted)
        fk_charge_force(d, bytes);
    fk_shared_leave();
    return granted;
}

void fk_charge_force(struct fk_dev *d, size_t bytes)
{
    d->used += bytes;
    fk_shared_publish(d);
}

void fk_uncharge(struct fk_dev *d, size_t bytes)
{
    d->used -= bytes < d->used ? bytes : d->used;
    fk_shared_publish(d);
}

/* Takes len bytes from the start of a free extent. */
static size_t cut(struct fk_extent **at, size_t len)
{
    struct fk_extent *e = *at;
    size_t off = e->off;
    e->off += len;
    e->len -= len;
    if (e->len == 0) {
        *at = e->next;
        free(e);
    }
    return off;
}

CUdeviceptr fk_extent_take(struct fk_dev *d, size_t bytes)
{
    size_t len = fk_up(bytes, FK_PAGE);
    if (fk_phys_start(d) != CUDA_SUCCESS || len < bytes || len == 0)
        return 0;
    fk_vmm_released_elsewhere(d);
    for (struct fk_extent **at = &d->free_list; *at != NULL; at = &(*at)->next)
        if ((*at)->len >= len)
            return (CUdeviceptr)(uintptr_t)(d->va + cut(at, len));
    return 0;
}

CUdeviceptr fk_extent_take_apart(struct fk_dev *d, size_t bytes)
{
    size_t len = fk_up(bytes, FK_PAGE);
    if (fk_phys_start(d) != CUDA_SUCCESS || len < bytes || len == 0)
        return 0;
    size_t apart = fk_up(d->span / 64, FK_PAGE);
    fk_vmm_released_elsewhere(d);
    for (struct fk_extent *e = d->free_list; e != NULL; e = e->next) {
        if (e->len < len || e->len - len < 2 * apart)
            continue;
        struct fk_extent *behind = malloc(sizeof *behind);
        if (behind == NULL)
            return 0;
        *behind = (struct fk_extent){e->off + apart + len, e->len - apart - len, e->next};
        e->len = apart;
        e->next = behind;
        return (CUdeviceptr)(uintptr_t)(d->va + e->off + apart);
    }
    return fk_extent_take(d, bytes);
}

bool fk_extent_take_at(struct fk_dev *d, CUdeviceptr p, size_t bytes)
{
    size_t off = (size_t)(p - (CUdeviceptr)(uintptr_t)d->va), len = fk_up(bytes, FK_PAGE);
    struct fk_extent **at = &d->free_list;
    while (*at != NULL && (*at)->off < off)
        at = &(*at)->next;
    if (*at == NULL || (*at)->off != off || (*at)->len < len)
        return false;
    cut(at, len);
    return true;
}

void fk_extent_give(struct fk_dev *d, CUdeviceptr p, size_t bytes)
{
    size_t off = (size_t)(p - (CUdeviceptr)(uintptr_t)d->va), len = fk_up(bytes, FK_PAGE);
    struct fk_extent **at = &d->free_list, *before = NULL;
    while (*at != NULL && (*at)->off < off) {
        before = *at;
        at = &(*at)->next;
    }
    if (before != NULL && before->off + before->len == off) {
        before->len += len;
        struct fk_extent *after = before->next;
        if (after != NULL && before->off + before->len == after->off) {
            before->len += after->len;
            before->next = after->next;
            free(after);
        }
    } else if (*at != NULL && off + len == (*at)->off) {
        (*at)->off = off;
        (*at)->len += len;
    } else {
        struct fk_extent *e = malloc(sizeof *e);
        if (e == NULL)
            abort();
        *e = (struct fk_extent){off, len, *at};
        *at = e;
    }
}

/* First run of n free grains in the slab, or -1. */
static int find_run(const struct fk_slab *s, unsigned n)
{
    unsigned run = 0;
    for (unsigned i = 0; i < GRAINS; i++) {
        if (run == 0 && i % 64 == 0 && s->used[i / 64] == UINT64_MAX) {
            i += 63;
            continue;
        }
        run = s->used[i / 64] >> (i % 64) & 1 ? 0 : run + 1;
        if (run == n)
            return (int)(i + 1 - n);
    }
    return -1;
}

static void mark_run(struct fk_slab *s, unsigned first, unsigned n, bool use)
{
    for (unsigned i = first; i < first + n; i++) {
        if (use)
            s->used[i / 64] |= (uint64_t)1 << (i % 64);
        else
            s->used[i / 64] &= ~((uint64_t)1 << (i % 64));
    }
    s->free = use ? s->free - n : s->free + n;
}

CUdeviceptr fk_plain_take(struct fk_dev *d, size_t bytes)
{
    size_t len = fk_up(bytes, FK_PAGE);
    if (bytes >= FK_PAGE) {
        if (len < bytes || !fk_charge(d, len))
            return 0;
        CUdeviceptr p = fk_extent_take(d, len);
        if (p == 0)
            fk_uncharge(d, len);
        return p;
    }
    unsigned n = (unsigned)(fk_up(bytes, FK_GRAIN) / FK_GRAIN);
    for (struct fk_slab *s = d->slabs; s != NULL; s = s->next) {
        if (s->free < n || s->longest < n)
            continue;
        int at = find_run(s, n);
        if (at >= 0) {
            mark_run(s, (unsigned)at, n, true);
            return (CUdeviceptr)(uintptr_t)(d->va + s->off + (size_t)at * FK_GRAIN);
        }
        s->longest = n - 1;
    }
    if (!fk_charge(d, FK_PAGE))
        return 0;
    struct fk_slab *s = calloc(1, sizeof *s);
    CUdeviceptr p = s != NULL ? fk_extent_take(d, FK_PAGE) : 0;
    if (p == 0) {
        fk_uncharge(d, FK_PAGE);
        free(s);
        return 0;
    }
    s->off = (size_t)(p - (CUdeviceptr)(uintptr_t)d->va);
    s->free = s->longest = GRAINS;
    d->slab_of[s->off / FK_PAGE] = s;
    s->next = d->slabs;
    s->prev = NULL;
    if (s->next != NULL)
        s->next->prev = s;
    d->slabs = s;
    mark_run(s, 0, n, true);
    return p;
}

void fk_plain_give(struct fk_dev *d, CUdeviceptr p, size_t bytes)
{
    if (bytes >= FK_PAGE) {
        fk_drop_pages(p, fk_up(bytes, FK_PAGE));
        fk_extent_give(d, p, bytes);
        if (fk_cfg.mode != FK_WDDM)
            fk_uncharge(d, fk_up(bytes, FK_PAGE));
        return;
    }
    fk_poison(p, bytes);
    size_t off = (size_t)(p - (CUdeviceptr)(uintptr_t)d->va);
    struct fk_slab *s = d->slab_of[off / FK_PAGE];
    mark_run(s, (unsigned)((off - s->off) / FK_GRAIN), (unsigned)(fk_up(bytes, FK_GRAIN) / FK_GRAIN), false);
    s->longest = GRAINS;
    if (s->free < GRAINS)
        return;
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)(d->va + s->off);
    *(s->prev != NULL ? &s->prev->next : &d->slabs) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    d->slab_of[off / FK_PAGE] = NULL;
    free(s);
    fk_drop_pages(base, FK_PAGE);
    fk_extent_give(d, base, FK_PAGE);
    if (fk_cfg.mode != FK_WDDM)
        fk_uncharge(d, FK_PAGE);
}

size_t fk_plain_backed(size_t bytes)
{
    return bytes <= FK_SMALL ? fk_up(bytes, FK_GRAIN) : fk_up(bytes, FK_PAGE);
}

/* Looking for touched pages costs a call per MiB, so the inside of a large range is dropped instead of overwritten. */
void fk_poison(CUdeviceptr p, size_t n)
{
    char *at = (char *)(uintptr_t)p, *end = at + n;
    if (n > 4 * FK_MIB) {
        CUdeviceptr from = fk_up(p, 4096), to = (p + n) / 4096 * 4096;
        fk_drop_pages(from, to - from);
        fk_poison(p, from - p);
        fk_poison(to, p + n - to);
        return;
    }
    while (at < end) {
        char *page = (char *)((uintptr_t)at & ~(uintptr_t)4095);
        size_t span = (size_t)(end - page), take = span < 256 * 4096 ? span : 256 * 4096;
        unsigned char present[256];
        if (mincore(page, take, present) != 0)
            return;
        for (size_t i = 0; i * 4096 < take; i++) {
            char *from = page + i * 4096, *to = from + 4096;
            from = from < at ? at : from;
            to = to > end ? end : to;
            if (present[i] & 1)
                memset(from, 0xDE, (size_t)(to - from));
        }
        at = page + take;
    }
}

void fk_drop_pages(CUdeviceptr p, size_t n)
{
    madvise((void *)(uintptr_t)p, n, MADV_REMOVE);
}

void fk_stat_add(struct fk_stats *s, size_t req, size_t backed)
{
    s->allocs++;
    s->live_req += req;
    s->live_backed += backed;
    if (s->live_req > s->peak_req)
        s->peak_req = s->live_req;
    if (s->live_backed > s->peak_backed)
        s->peak_backed = s->live_backed;
}

void fk_stat_sub(struct fk_stats *s, size_t req, size_t backed)
{
    s->frees++;
    s->live_req -= req;
    s->live_backed -= backed;
}
