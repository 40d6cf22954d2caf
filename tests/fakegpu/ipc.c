/*
 * Memory handles between processes. A handle names the exporting process, its memory file and the block's place in
 * it; opening maps those pages. A handle of an address inside a block equals the handle of the block.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Compared as bytes, so there is no padding in it. */
struct mem_handle { char magic[8]; pid_t pid; int fd; int device; int zero; size_t offset, size; uint64_t id; };
_Static_assert(sizeof(struct mem_handle) == 48, "no padding");
struct opened { struct mem_handle h; char *map; size_t len; int count; };

char *fk_ipc_map(pid_t pid, int fd, size_t offset, size_t len)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
    int f = open(path, O_RDWR | O_CLOEXEC);
    if (f < 0)
        return NULL;
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f, (off_t)offset);
    close(f);
    return p != MAP_FAILED ? p : NULL;
}

static CUresult do_get(CUipcMemHandle *out, CUdeviceptr p)
{
    struct fk_block *b = fk_block_at(p);
    FK_TRY(fk_ctx_error());
    if (out == NULL || b == NULL || (b->kind != FK_DEVICE && b->kind != FK_PITCH))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_dev *d = &fk_devs[b->device];
    if (d->memfd < 0 || fk_cfg.mode == FK_WDDM)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct mem_handle h = {"fakeipc", getpid(), d->memfd, b->device, 0, (size_t)(b->base - (CUdeviceptr)(uintptr_t)d->va),
                           b->size, b->buffer_id};
    _Static_assert(sizeof h <= sizeof *out, "handle");
    memset(out, 0, sizeof *out);
    memcpy(out, &h, sizeof h);
    return CUDA_SUCCESS;
}
FK_API(cuIpcGetMemHandle, (CUipcMemHandle *out, CUdeviceptr p), do_get(out, p))

static CUresult do_open(CUdeviceptr *out, CUipcMemHandle v, unsigned flags)
{
    struct fk_ctx *c;
    struct mem_handle h;
    FK_TRY(fk_need_ctx(&c));
    memcpy(&h, &v, sizeof h);
    if (out == NULL || flags & ~1u || memcmp(h.magic, "fakeipc", 8) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (h.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* a process does not open its own handle */
    for (struct fk_block *b = fk_block_next(0); b != NULL; b = fk_block_next(b->base + 1)) {
        struct opened *o = b->kind == FK_IMPORT ? b->import : NULL;
        if (o != NULL && memcmp(&o->h, &h, sizeof h) == 0) {
            o->count++;
            *out = b->base;
            return CUDA_SUCCESS;
        }
    }
    size_t from = h.offset / 4096 * 4096, len = fk_up(h.offset + h.size, 4096) - from;
    struct opened *o = calloc(1, sizeof *o);
    char *map = o != NULL ? fk_ipc_map(h.pid, h.fd, from, len) : NULL;
    if (map == NULL) {
        free(o);
        return CUDA_ERROR_MAP_FAILED;
    }
    *o = (struct opened){h, map, len, 1};
    struct fk_block *b = fk_block_add((CUdeviceptr)(uintptr_t)(map + (h.offset - from)), h.size, FK_IMPORT,
                                      h.device < fk_cfg.devices ? h.device : 0, c);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->import = o;
    *out = b->base;
    return CUDA_SUCCESS;
}
FK_API(cuIpcOpenMemHandle, (CUdeviceptr *out, CUipcMemHandle h, unsigned flags), do_open(out, h, flags))
FK_API(cuIpcOpenMemHandle_v2, (CUdeviceptr *out, CUipcMemHandle h, unsigned flags), do_open(out, h, flags))

void fk_import_release(struct fk_block *b)
{
    struct opened *o = b->import;
    munmap(o->map, o->len);
    free(o);
}

static CUresult do_close(CUdeviceptr p)
{
    struct fk_block *b = fk_block_at(p);
    FK_TRY(fk_ctx_error());
    if (b == NULL || b->kind != FK_IMPORT || b->base != p)
        return CUDA_ERROR_INVALID_VALUE;
    struct opened *o = b->import;
    if (--o->count > 0)
        return CUDA_SUCCESS;
    fk_wait_device(b->device);
    fk_block_destroy(b);
    return CUDA_SUCCESS;
}
FK_API(cuIpcCloseMemHandle, (CUdeviceptr p), do_close(p))

/* Neither dma-buf nor fabric is there to be had. */
FK_API(cuMemGetHandleForAddressRange,
       (void *out, CUdeviceptr p, size_t n, CUmemRangeHandleType type, unsigned long long flags),
       ((void)out, (void)p, (void)n, (void)type, (void)flags, CUDA_ERROR_NOT_SUPPORTED))
