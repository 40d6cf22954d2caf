/* Plain, pitched, managed and pinned memory, registered host memory, and the card's free figure. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Page tables of pinned and registered memory stand on the device: 2 MiB for each whole GiB of small pages, as seen on a card. */
static void page_tables(int device, int64_t bytes)
{
    struct fk_dev *d = &fk_devs[device];
    size_t before = d->host_mapped >> 30;
    d->host_mapped += (size_t)bytes;
    size_t after = d->host_mapped >> 30;
    if (after > before)
        fk_charge_force(d, (after - before) * FK_PAGE);
    else
        fk_uncharge(d, (before - after) * FK_PAGE);
}

void fk_block_destroy(struct fk_block *b)
{
    struct fk_dev *d = &fk_devs[b->device];
    switch (b->kind) {
    case FK_DEVICE:
    case FK_PITCH:
        if (!b->passed) /* else its live figure fell at the call */
            fk_stat_sub(&d->st, b->size, b->backed);
        fk_plain_give(d, b->base, b->size);
        break;
    case FK_MANAGED:
        fk_stat_sub(&d->st, b->size, b->backed);
        fk_drop_pages(b->base, fk_up(b->size, FK_PAGE));
        fk_extent_give(d, b->base, b->size);
        if (b->touched)
            fk_uncharge(d, b->backed);
        break;
    case FK_HOST:
        fk_stat_sub(&fk_host_stats, b->size, b->backed);
        page_tables(b->device, -(int64_t)b->backed);
        munmap((void *)(uintptr_t)b->base, b->backed);
        break;
    case FK_REGISTERED:
        fk_stat_sub(&fk_registered_stats, b->size, b->backed);
        page_tables(b->device, -(int64_t)b->backed);
        break;
    case FK_IMPORT:
        fk_import_release(b);
        break;
    default:
        break;
    }
    fk_block_remove(b);
}

/* ---- plain and pitched ---- */

/* A full card first gives up what its pools hold idle. A request that still finds no room is refused without waiting. */
static CUdeviceptr take_or_trim(struct fk_dev *d, size_t bytes)
{
    CUdeviceptr p = fk_plain_take(d, bytes);
    return p == 0 && fk_pool_trim_idle(d) ? fk_plain_take(d, bytes) : p;
}

static CUresult plain(CUdeviceptr *out, size_t bytes, enum fk_kind kind)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    struct fk_dev *d = &fk_devs[c->device];
    if (bytes == 0) /* a question of the size comes after that of the capture */
        return CUDA_ERROR_INVALID_VALUE;
    if (fk_take_failure())
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr p = take_or_trim(d, bytes);
    if (p == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_block *b = fk_block_add(p, bytes, kind, c->device, c);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->backed = fk_plain_backed(bytes);
    fk_stat_add(&d->st, bytes, b->backed);
    *out = p;
    return CUDA_SUCCESS;
}

static CUresult do_alloc(CUdeviceptr *out, size_t bytes)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return plain(out, bytes, FK_DEVICE);
}
FK_API_CLEARED(cuMemAlloc_v2, (CUdeviceptr *out, size_t bytes), FK_CLEAR(out), do_alloc(out, bytes))

static CUresult do_pitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    if (out == NULL || pitch == NULL || width == 0 || height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (element != 4 && element != 8 && element != 16)
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = fk_up(width, FK_GRAIN), bytes;
    if (row < width) /* no pitch for it exists */
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(row, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    *pitch = row; /* known, and written, before the memory is asked for */
    return plain(out, bytes, FK_PITCH);
}
FK_API_CLEARED(cuMemAllocPitch_v2, (CUdeviceptr *out, size_t *pitch, size_t w, size_t h, unsigned element),
               (FK_CLEAR(out), FK_CLEAR(pitch)), do_pitch(out, pitch, w, h, element))

static CUresult do_free(CUdeviceptr p)
{
    FK_TRY(fk_ctx_error());
    FK_TRY(fk_capture_unsafe());
    if (p == 0)
        return CUDA_SUCCESS;
    struct fk_block *b = fk_block_at(p);
    if (b == NULL || b->base != p || b->freeing)
        return CUDA_ERROR_INVALID_VALUE;
    switch (b->kind) {
    case FK_DEVICE:
    case FK_PITCH:
    case FK_MANAGED:
        b->freeing = true;
        fk_wait_device(b->device);
        fk_pool_settle();
        fk_passed_settle(b->device);
        fk_block_destroy(b);
        return fk_ctx_error();
    case FK_ASYNC:
        b->freeing = true;
        fk_fault_users(b->base, b->size);
        fk_pool_free_now(b);
        return CUDA_SUCCESS;
    case FK_GRAPH:
        return fk_graph_block_free(b) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
FK_API(cuMemFree_v2, (CUdeviceptr p), do_free(p))

/* ---- managed: charged to the card at its first touch there ---- */

static CUresult do_managed(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    struct fk_ctx *c;
    if (out == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    struct fk_dev *d = &fk_devs[c->device];
    CUdeviceptr p = fk_take_failure() ? 0 : fk_extent_take(d, bytes);
    if (p == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_block *b = fk_block_add(p, bytes, FK_MANAGED, c->device, c);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->backed = fk_plain_backed(bytes);
    b->flags = flags;
    fk_stat_add(&d->st, bytes, b->backed);
    *out = p;
    return CUDA_SUCCESS;
}
FK_API_CLEARED(cuMemAllocManaged, (CUdeviceptr *out, size_t bytes, unsigned flags), FK_CLEAR(out), do_managed(out, bytes, flags))

/* ---- pinned ---- */

/* Pages that stand as the card's pinned memory does: no block of up to 1 MiB lies across two of its mappings of 2 MiB, and larger ones begin at one. */
static void *host_pages(size_t len)
{
    size_t step = 4096;
    while (step < len && step < FK_PAGE)
        step *= 2;
    char *room = mmap(NULL, len + step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    char *at = (char *)fk_up((uintptr_t)room, step);
    if (at != room)
        munmap(room, (size_t)(at - room));
    munmap(at + len, (size_t)(room + step - at));
    return at;
}

static CUresult pinned(void **out, size_t bytes, unsigned flags)
{
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    if (bytes == 0)
        return CUDA_SUCCESS;
    size_t len = fk_up(bytes, 4096);
    /* Pages that would be pinned at once must exist. */
    size_t pages = (size_t)sysconf(_SC_PHYS_PAGES);
    void *p = fk_take_failure() || len < bytes || len / (size_t)sysconf(_SC_PAGESIZE) > pages
                  ? MAP_FAILED
                  : host_pages(len);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_block *b = fk_block_add((CUdeviceptr)(uintptr_t)p, bytes, FK_HOST, c->device, c);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->backed = len;
    b->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    fk_stat_add(&fk_host_stats, bytes, len);
    page_tables(c->device, (int64_t)len);
    *out = p;
    return CUDA_SUCCESS;
}
FK_API_CLEARED(cuMemAllocHost_v2, (void **out, size_t bytes), FK_CLEAR(out), pinned(out, bytes, 0))
FK_API_CLEARED(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), FK_CLEAR(out), pinned(out, bytes, flags))

/* Both frees of host memory: the block must be of the kind and start at p; both wait for the device. `missing` is for an
   address in no block at all; inside a block, or in one of another kind, it is an invalid value. */
static CUresult host_gone(void *p, enum fk_kind kind, CUresult missing)
{
    FK_TRY(fk_ctx_error());
    FK_TRY(fk_capture_unsafe());
    struct fk_block *b = p != NULL ? fk_block_at((CUdeviceptr)(uintptr_t)p) : NULL;
    if (b == NULL || b->kind != kind || b->base != (CUdeviceptr)(uintptr_t)p || b->freeing)
        return p == NULL && kind == FK_HOST ? CUDA_SUCCESS : b == NULL && p != NULL ? missing : CUDA_ERROR_INVALID_VALUE;
    b->freeing = true;
    fk_wait_device(b->device);
    fk_pool_settle();
    fk_block_destroy(b);
    return fk_ctx_error();
}
FK_API(cuMemFreeHost, (void *p), host_gone(p, FK_HOST, CUDA_ERROR_INVALID_VALUE))
FK_API(cuMemHostUnregister, (void *p), host_gone(p, FK_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED))

static CUresult do_register(void *p, size_t bytes, unsigned flags)
{
    struct fk_ctx *c;
    if (p == NULL || bytes == 0 || flags & ~0xFu)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)p;
    struct fk_block *next = fk_block_next(base);
    if (fk_block_at(base) != NULL || (next != NULL && next->base - base < bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct fk_block *b = fk_block_add(base, bytes, FK_REGISTERED, c->device, c);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->backed = (size_t)(fk_up(base + bytes, 4096) - base / 4096 * 4096);
    b->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    fk_stat_add(&fk_registered_stats, bytes, b->backed);
    page_tables(c->device, (int64_t)b->backed);
    return CUDA_SUCCESS;
}
FK_API(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags), do_register(p, bytes, flags))
FK_API(cuMemHostRegister, (void *p, size_t bytes, unsigned flags), do_register(p, bytes, flags))

static struct fk_block *host_block(void *p)
{
    struct fk_block *b = fk_block_at((CUdeviceptr)(uintptr_t)p);
    return b != NULL && (b->kind == FK_HOST || b->kind == FK_REGISTERED) ? b : NULL;
}

static CUresult do_device_pointer(CUdeviceptr *out, void *p, unsigned flags)
{
    FK_TRY(fk_ctx_error());
    if (out == NULL || flags != 0 || host_block(p) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)p; /* unified addressing: the same address on both sides */
    return CUDA_SUCCESS;
}
FK_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr *out, void *p, unsigned flags), do_device_pointer(out, p, flags))

static CUresult do_host_flags(unsigned *out, void *p)
{
    struct fk_block *b = host_block(p);
    if (out == NULL || b == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = b->kind == FK_HOST ? b->flags : b->flags & (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    return CUDA_SUCCESS;
}
FK_API(cuMemHostGetFlags, (unsigned *out, void *p), do_host_flags(out, p))

/* ---- figures ---- */

CUresult fk_write_info(size_t *free_out, size_t *total_out, int device)
{
    struct fk_dev *d = &fk_devs[device];
    size_t used = d->used + fk_shared_others(device), unused = d->capacity > used ? d->capacity - used : 0;
    if (fk_cfg.mode == FK_UMA) {
        /* One memory for all: the figure moves with what the rest of the machine does. */
        static unsigned wobble;
        size_t drift = (size_t)(wobble++ % 16) * 8 * FK_MIB;
        unused = unused > drift ? unused - drift : 0;
    }
    if (free_out != NULL)
        *free_out = unused;
    if (total_out != NULL)
        *total_out = d->capacity;
    return CUDA_SUCCESS;
}

static CUresult do_info(size_t *free_out, size_t *total_out)
{
    struct fk_ctx *c;
    if (fk_tls.in_host) /* no CUDA call may stand in a host function; the driver may say so in this way, or in none */
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult r = fk_need_ctx(&c);
    if (r == CUDA_ERROR_INVALID_CONTEXT) { /* written all the same */
        if (free_out != NULL)
            *free_out = 0;
        if (total_out != NULL)
            *total_out = 0;
    }
    return r != CUDA_SUCCESS ? r : fk_write_info(free_out, total_out, c->device);
}
FK_API(cuMemGetInfo_v2, (size_t *free_out, size_t *total_out), do_info(free_out, total_out))

static CUresult do_range(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    struct fk_block *b = fk_block_at(p);
    if (b == NULL || !b->live)
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = b->base;
    if (size != NULL)
        *size = b->size;
    return CUDA_SUCCESS;
}
FK_API(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *size, CUdeviceptr p), do_range(base, size, p))

/* ---- advice: accepted for managed memory; of its effects only read-mostly can be asked for ---- */

static CUresult managed_range(CUdeviceptr p, size_t n)
{
    struct fk_block *b = fk_block_at(p);
    FK_TRY(fk_ctx_error());
    if (n == 0 || b == NULL || b->kind != FK_MANAGED || n > b->base + b->size - p)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
static CUresult do_advise(CUdeviceptr p, size_t n, CUmem_advise a)
{
    FK_TRY(managed_range(p, n));
    struct fk_block *b = fk_block_at(p);
    /* Kept for a block as a whole: it is read-mostly from advice on all of it until any part is taken out. */
    if (a == CU_MEM_ADVISE_SET_READ_MOSTLY && n == b->size)
        b->read_mostly = true;
    else if (a == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
        b->read_mostly = false;
    return CUDA_SUCCESS;
}
FK_API(cuMemAdvise, (CUdeviceptr p, size_t n, CUmem_advise a, CUdevice dev), ((void)dev, do_advise(p, n, a)))
FK_API(cuMemAdvise_v2, (CUdeviceptr p, size_t n, CUmem_advise a, CUmemLocation where), ((void)where, do_advise(p, n, a)))

static CUresult do_prefetch(CUdeviceptr p, size_t n, bool to_device, CUstream h, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    FK_TRY(managed_range(p, n));
    struct fk_work w = {.type = FK_W_EMPTY};
    struct fk_block *b = fk_block_at(p);
    struct fk_dev *d = &fk_devs[b->device];
    if (to_device && !b->touched && fk_charge(d, b->backed))
        b->touched = true;
    if (!to_device && b->touched) {
        fk_uncharge(d, b->backed);
        b->touched = false;
    }
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, (CUdeviceptr p, size_t n, CUdevice dev, CUstream h),
          do_prefetch(p, n, dev >= 0, h, PT))
FK_API_PT(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz,
          (CUdeviceptr p, size_t n, CUmemLocation where, unsigned flags, CUstream h),
          ((void)flags, do_prefetch(p, n, where.type == CU_MEM_LOCATION_TYPE_DEVICE, h, PT)))

static CUresult do_range_attribute(void *out, size_t n, CUmem_range_attribute attr, CUdeviceptr p, size_t count)
{
    FK_TRY(managed_range(p, count));
    if (out == NULL || n < sizeof(int))
        return CUDA_ERROR_INVALID_VALUE;
    int v = attr == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ? fk_block_at(p)->read_mostly : CU_DEVICE_INVALID;
    for (size_t i = 0; i < n / sizeof v; i++)
        memcpy((char *)out + i * sizeof v, &v, sizeof v);
    return CUDA_SUCCESS;
}
FK_API(cuMemRangeGetAttribute, (void *out, size_t n, CUmem_range_attribute attr, CUdeviceptr p, size_t count),
       do_range_attribute(out, n, attr, p, count))

static CUresult do_range_attributes(void **out, size_t *sizes, CUmem_range_attribute *attrs, size_t n, CUdeviceptr p, size_t count)
{
    if (out == NULL || sizes == NULL || attrs == NULL || n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        FK_TRY(do_range_attribute(out[i], sizes[i], attrs[i], p, count));
    return CUDA_SUCCESS;
}
FK_API(cuMemRangeGetAttributes,
       (void **out, size_t *sizes, CUmem_range_attribute *attrs, size_t n, CUdeviceptr p, size_t count),
       do_range_attributes(out, sizes, attrs, n, p, count))

static CUresult do_prefetch_batch(CUdeviceptr *p, size_t *n, size_t count, const CUmemLocation *where, const size_t *first,
                                  size_t places, CUstream h, int pt)
{
    if (p == NULL || n == NULL || count == 0 || (places != 0 && (where == NULL || first == NULL || first[0] != 0)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, at = 0; i < count; i++) {
        while (at + 1 < places && first[at + 1] <= i)
            at++;
        if (places == 0)
            FK_TRY(managed_range(p[i], n[i])); /* discard alone: contents are given up, placement stays */
        else
            FK_TRY(do_prefetch(p[i], n[i], where[at].type == CU_MEM_LOCATION_TYPE_DEVICE, h, pt));
    }
    return CUDA_SUCCESS;
}
FK_API_PT(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz,
          (CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *w, size_t *first, size_t places, unsigned long long flags, CUstream h),
          ((void)flags, places == 0 ? CUDA_ERROR_INVALID_VALUE : do_prefetch_batch(p, n, count, w, first, places, h, PT)))
FK_API_PT(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz,
          (CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *w, size_t *first, size_t places, unsigned long long flags, CUstream h),
          ((void)flags, places == 0 ? CUDA_ERROR_INVALID_VALUE : do_prefetch_batch(p, n, count, w, first, places, h, PT)))
FK_API_PT(cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz,
          (CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream h),
          ((void)flags, do_prefetch_batch(p, n, count, NULL, NULL, 0, h, PT)))
