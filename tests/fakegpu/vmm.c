/*
 * Virtual memory management: reservations, physical handles, mappings. A handle is an extent of the card's file; a
 * mapping shows those pages at the reserved address too. An exported handle is counted per page in the file itself,
 * so that an exporter that lets go does not reuse bytes that another process still maps.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct reservation { struct reservation *next; CUdeviceptr p; size_t n; };
static struct reservation *reservations, *vacated;
static struct fk_vmm *handles, *orphans; /* orphans: released here, still held elsewhere */

static CUresult check_prop(const CUmemAllocationProp *p, struct fk_dev **d)
{
    if (p == NULL || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return p->location.type == CU_MEM_LOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    if (p->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_PERMITTED;
    if (p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return fk_need_device(p->location.id, d);
}

static CUresult do_granularity(size_t *out, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags flags)
{
    struct fk_dev *d;
    if (out == NULL || (unsigned)flags > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(check_prop(p, &d));
    *out = FK_PAGE;
    return CUDA_SUCCESS;
}
FK_API(cuMemGetAllocationGranularity, (size_t *out, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags f),
       do_granularity(out, p, f))

/* ---- reservations ---- */

/* While work is in flight, what is unmapped turns into scratch bytes: a stray store of it is error 700, not a crash here. */
static void blank(CUdeviceptr p, size_t n)
{
    mmap((void *)(uintptr_t)p, n, fk_anything_busy() ? PROT_READ | PROT_WRITE : PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Address space goes back to the host when nothing is in flight any more. */
static void sweep(void)
{
    if (fk_anything_busy())
        return;
    for (struct reservation *r = vacated, *next; r != NULL; r = next) {
        next = r->next;
        munmap((void *)(uintptr_t)r->p, r->n);
        free(r);
    }
    vacated = NULL;
}

static void vacate(struct reservation *r)
{
    blank(r->p, r->n);
    r->next = vacated;
    vacated = r;
    sweep();
}

static CUresult do_reserve(CUdeviceptr *out, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags)
{
    FK_TRY(fk_ctx_error());
    if (out == NULL || n == 0 || n % FK_PAGE != 0 || flags != 0 || (align & (align - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t a = align > FK_PAGE ? align : FK_PAGE;
    if (n > (size_t)1 << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sweep();
    char *p = MAP_FAILED;
    if (hint != 0 && hint % a == 0)
        p = mmap((void *)(uintptr_t)hint, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) {
        char *room = mmap(NULL, n + a, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            return CUDA_ERROR_OUT_OF_MEMORY;
        p = (char *)fk_up((uintptr_t)room, a);
        if (p > room)
            munmap(room, (size_t)(p - room));
        munmap(p + n, (size_t)(room + a - p));
    }
    struct reservation *r = malloc(sizeof *r);
    if (r == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *r = (struct reservation){reservations, (CUdeviceptr)(uintptr_t)p, n};
    reservations = r;
    *out = r->p;
    return CUDA_SUCCESS;
}
FK_API(cuMemAddressReserve, (CUdeviceptr *out, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags),
       do_reserve(out, n, align, hint, flags))

static CUresult do_address_free(CUdeviceptr p, size_t n)
{
    FK_TRY(fk_ctx_error());
    for (struct reservation **at = &reservations; *at != NULL; at = &(*at)->next) {
        struct reservation *r = *at;
        if (r->p != p || r->n != n)
            continue;
        /* Anything mapped inside, or reaching into it or out of it, keeps the reservation. */
        struct fk_block *b = fk_block_at(p) != NULL ? fk_block_at(p) : fk_block_next(p);
        if (b != NULL && b->kind == FK_VMM && b->base < p + n)
            return CUDA_ERROR_INVALID_VALUE;
        *at = r->next;
        vacate(r);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
FK_API(cuMemAddressFree, (CUdeviceptr p, size_t n), do_address_free(p, n))

/* ---- handles ---- */

static _Atomic uint32_t *foreign_users(struct fk_dev *d, const struct fk_vmm *h) { return &d->shared_refs[h->offset / FK_PAGE]; }

static CUresult do_create(CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
    struct fk_dev *d;
    if (out == NULL || n == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(check_prop(p, &d));
    if (n % FK_PAGE != 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_phys_start(d));
    if (!fk_charge(d, n) && !(fk_pool_trim_idle(d) && fk_charge(d, n)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_vmm *h = calloc(1, sizeof *h);
    CUdeviceptr at = h != NULL ? fk_extent_take(d, n) : 0;
    if (at == 0) {
        fk_uncharge(d, n);
        free(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    h->device = d->ordinal;
    h->refs = 1;
    h->size = n;
    h->offset = (size_t)(at - (CUdeviceptr)(uintptr_t)d->va);
    h->prop = *p;
    h->next = handles;
    handles = h;
    fk_handle_add(h, FK_T_VMM);
    fk_stat_add(&d->st, n, n);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
    return CUDA_SUCCESS;
}
FK_API(cuMemCreate, (CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags),
       do_create(out, n, p, flags))

/* Bytes go back when neither a handle nor a mapping holds them, in this process or another. */
static void maybe_free(struct fk_vmm *h)
{
    struct fk_dev *d = &fk_devs[h->device];
    if (h->refs > 0 || h->maps > 0)
        return;
    for (struct fk_vmm **at = &handles; *at != NULL; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    if (h->imported) {
        if (h->import_refs != NULL) {
            atomic_fetch_sub(h->import_refs, 1);
            munmap(h->import_page, 4096);
        }
        munmap(h->import_va, h->size);
        free(h);
        return;
    }
    fk_stat_sub(&d->st, h->size, h->size);
    fk_uncharge(d, h->size);
    if (atomic_load(foreign_users(d, h)) != 0) {
        h->next = orphans;
        orphans = h;
        return;
    }
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)(d->va + h->offset);
    fk_drop_pages(p, h->size);
    fk_extent_give(d, p, h->size);
    free(h);
}

void fk_vmm_released_elsewhere(struct fk_dev *d)
{
    for (struct fk_vmm **at = &orphans; *at != NULL;) {
        struct fk_vmm *h = *at;
        if (h->device != d->ordinal || atomic_load(foreign_users(d, h)) != 0) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        CUdeviceptr p = (CUdeviceptr)(uintptr_t)(d->va + h->offset);
        fk_drop_pages(p, h->size);
        fk_extent_give(d, p, h->size);
        free(h);
    }
}

static CUresult handle_of(CUmemGenericAllocationHandle v, struct fk_vmm **out)
{
    *out = (struct fk_vmm *)(uintptr_t)v;
    return fk_handle_is(*out, FK_T_VMM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A card takes a handle that was released for as long as its memory is mapped, but to release it (tests/diff/golden/vmm_handles.txt). */
static CUresult handle_or_mapped(CUmemGenericAllocationHandle v, struct fk_vmm **out)
{
    for (struct fk_vmm *h = handles; h != NULL; h = h->next)
        if (h == (struct fk_vmm *)(uintptr_t)v && h->maps > 0) {
            *out = h;
            return CUDA_SUCCESS;
        }
    return handle_of(v, out);
}

/* As a request for one, this does not ask whether a fault has ended the context. */
static CUresult do_release(CUmemGenericAllocationHandle v)
{
    struct fk_vmm *h;
    FK_TRY(handle_of(v, &h));
    if (--h->refs == 0)
        fk_handle_del(h);
    maybe_free(h);
    return CUDA_SUCCESS;
}
FK_API(cuMemRelease, (CUmemGenericAllocationHandle v), do_release(v))

static CUresult do_retain(CUmemGenericAllocationHandle *out, void *addr)
{
    struct fk_block *b = fk_block_at((CUdeviceptr)(uintptr_t)addr);
    FK_TRY(fk_ctx_error());
    if (out == NULL || b == NULL || b->kind != FK_VMM)
        return CUDA_ERROR_INVALID_VALUE;
    if (b->vmm->refs++ == 0)
        fk_handle_add(b->vmm, FK_T_VMM);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)b->vmm;
    return CUDA_SUCCESS;
}
FK_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *out, void *addr), do_retain(out, addr))

static CUresult do_properties(CUmemAllocationProp *out, CUmemGenericAllocationHandle v)
{
    struct fk_vmm *h;
    FK_TRY(handle_or_mapped(v, &h));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = h->prop;
    return CUDA_SUCCESS;
}
FK_API(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *out, CUmemGenericAllocationHandle v),
       do_properties(out, v))

/* ---- mappings ---- */

static char *bytes_of(const struct fk_vmm *h)
{
    return h->imported ? h->import_va : fk_devs[h->device].va + h->offset;
}

static struct reservation *reserved_at(CUdeviceptr p)
{
    struct reservation *r = reservations;
    while (r != NULL && (p < r->p || p >= r->p + r->n))
        r = r->next;
    return r;
}

/*
 * A map may reach past its reservation: into the next one, or into address space of the driver's that nobody reserved.
 * How much of that lies there depends on the driver's own layout. Seen on an H200: none behind a reservation of one
 * page, a few pages behind larger ones, never as much as 64 MiB.
 */
static bool claim_beyond(const struct reservation *r, CUdeviceptr end)
{
    for (CUdeviceptr at = r->p + r->n; at < end;) {
        const struct reservation *next = reserved_at(at);
        if (next != NULL) {
            at = next->p + next->n;
            continue;
        }
        size_t beyond = (size_t)(end - at);
        return r->n > FK_PAGE && beyond < 32 * FK_PAGE - FK_PAGE &&
               mmap((void *)(uintptr_t)at, beyond, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
    }
    return true;
}

static CUresult do_map(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle v, unsigned long long flags)
{
    struct fk_vmm *h;
    FK_TRY(fk_ctx_error());
    FK_TRY(handle_or_mapped(v, &h));
    if (p == 0 || p % FK_PAGE != 0 || n == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0 || n != h->size)
        return n > h->size ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED; /* 4096 bytes too: a part */
    struct reservation *r = reserved_at(p);
    struct fk_block *next = fk_block_next(p);
    if (r == NULL || fk_block_at(p) != NULL || (next != NULL && next->base < p + n) || !claim_beyond(r, p + n))
        return CUDA_ERROR_INVALID_VALUE;
    void *to = (void *)(uintptr_t)p;
    if (mremap(bytes_of(h), 0, n, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(to, n, PROT_NONE); /* no access before cuMemSetAccess */
    struct fk_block *b = fk_block_add(p, n, FK_VMM, h->device, NULL);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->vmm = h;
    b->backed = n;
    h->maps++;
    return CUDA_SUCCESS;
}
FK_API(cuMemMap, (CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle v, unsigned long long flags),
       do_map(p, n, offset, v, flags))

/* Every mapping in [p, p+n), whole; an already unmapped range is not an error. */
static CUresult do_unmap(CUdeviceptr p, size_t n)
{
    FK_TRY(fk_ctx_error());
    if (p == 0 || p % FK_PAGE != 0 || n == 0 || n % FK_PAGE != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct reservation *r = reserved_at(p);
    struct fk_block *b = fk_block_at(p);
    if (r == NULL || (b != NULL && (b->kind != FK_VMM || b->base != p)))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_block *last = fk_block_at(p + n - 1);
    if (last != NULL && last->kind == FK_VMM && last->base + last->size > p + n)
        return CUDA_ERROR_INVALID_VALUE;
    fk_fault_users(p, n);
    while ((b = fk_block_next(p)) != NULL && b->base < p + n) {
        struct fk_vmm *h = b->vmm;
        CUdeviceptr end = b->base + b->size;
        blank(b->base, b->size);
        for (CUdeviceptr at = b->base; at < end; at += FK_PAGE) {
            struct reservation *r = reserved_at(at) == NULL ? malloc(sizeof *r) : NULL;
            if (r != NULL) { /* claimed for the map alone */
                *r = (struct reservation){NULL, at, FK_PAGE};
                vacate(r);
            }
        }
        fk_block_remove(b);
        h->maps--;
        maybe_free(h);
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemUnmap, (CUdeviceptr p, size_t n), do_unmap(p, n))

static CUresult do_set_access(CUdeviceptr p, size_t n, const CUmemAccessDesc *desc, size_t count)
{
    struct fk_dev *d;
    FK_TRY(fk_ctx_error());
    if (p == 0 || n == 0 || p % FK_PAGE != 0 || n % FK_PAGE != 0 || desc == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_NOT_SUPPORTED;
        FK_TRY(fk_need_device(desc[i].location.id, &d));
        if (desc[i].flags != 0 && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    struct fk_block *b = fk_block_at(p), *last = fk_block_at(p + n - 1);
    if (b == NULL || b->kind != FK_VMM || b->base != p || last == NULL || last->base + last->size != p + n || !fk_range_ok(p, n))
        return CUDA_ERROR_INVALID_VALUE;
    for (; b != NULL && b->base < p + n; b = fk_block_next(b->base + 1)) {
        bool any = false;
        for (size_t i = 0; i < count; i++)
            b->access[desc[i].location.id] = (int)desc[i].flags;
        for (int i = 0; i < FK_MAX_DEVICES; i++)
            any |= b->access[i] != 0;
        mprotect((void *)(uintptr_t)b->base, b->size, any ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemSetAccess, (CUdeviceptr p, size_t n, const CUmemAccessDesc *desc, size_t count), do_set_access(p, n, desc, count))

static CUresult do_get_access(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p)
{
    struct fk_dev *d;
    struct fk_block *b = fk_block_at(p);
    FK_TRY(fk_ctx_error());
    if (flags == NULL || where == NULL || where->type != CU_MEM_LOCATION_TYPE_DEVICE || b == NULL || b->kind != FK_VMM)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(where->id, &d));
    *flags = (unsigned long long)b->access[where->id];
    return CUDA_SUCCESS;
}
FK_API(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p), do_get_access(flags, where, p))

/* ---- between processes: a descriptor of a small file that says where the bytes are ---- */

struct export { char magic[8]; pid_t pid; int fd, device; size_t offset, size, refs_at; CUmemAllocationProp prop; };

static CUresult do_export(void *out, CUmemGenericAllocationHandle v, CUmemAllocationHandleType type, unsigned long long flags)
{
    struct fk_vmm *h;
    FK_TRY(fk_ctx_error());
    FK_TRY(handle_of(v, &h));
    if (out == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(h->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_dev *d = &fk_devs[h->device];
    if (d->memfd < 0 || h->imported)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct export e = {"fakevmm", getpid(), d->memfd, h->device, h->offset, h->size,
                       d->span + h->offset / FK_PAGE * sizeof *d->shared_refs, h->prop};
    int fd = memfd_create("fakegpu-handle", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &e, sizeof e) != (ssize_t)sizeof e) {
        if (fd >= 0)
            close(fd);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)out = fd;
    return CUDA_SUCCESS;
}
FK_API(cuMemExportToShareableHandle,
       (void *out, CUmemGenericAllocationHandle v, CUmemAllocationHandleType type, unsigned long long flags),
       do_export(out, v, type, flags))

static CUresult do_import(CUmemGenericAllocationHandle *out, void *os, CUmemAllocationHandleType type)
{
    struct export e;
    FK_TRY(fk_ctx_error());
    if (out == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (pread((int)(intptr_t)os, &e, sizeof e, 0) != (ssize_t)sizeof e || memcmp(e.magic, "fakevmm", 8) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (e.pid == getpid()) { /* back home: the same handle, one reference more */
        for (struct fk_vmm *h = handles; h != NULL; h = h->next)
            if (h->device == e.device && h->offset == e.offset && !h->imported) {
                if (h->refs++ == 0)
                    fk_handle_add(h, FK_T_VMM);
                *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
                return CUDA_SUCCESS;
            }
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct fk_vmm *h = calloc(1, sizeof *h);
    if (h == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    h->import_va = fk_ipc_map(e.pid, e.fd, e.offset, e.size);
    h->import_page = fk_ipc_map(e.pid, e.fd, e.refs_at / 4096 * 4096, 4096);
    if (h->import_va == NULL || h->import_page == NULL) {
        free(h);
        return CUDA_ERROR_INVALID_VALUE;
    }
    h->import_refs = (_Atomic uint32_t *)(void *)(h->import_page + e.refs_at % 4096);
    atomic_fetch_add(h->import_refs, 1);
    h->imported = true;
    h->device = e.device;
    h->size = e.size;
    h->prop = e.prop;
    h->refs = 1;
    h->next = handles;
    handles = h;
    fk_handle_add(h, FK_T_VMM);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)h;
    return CUDA_SUCCESS;
}
FK_API(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle *out, void *os, CUmemAllocationHandleType type),
       do_import(out, os, type))
