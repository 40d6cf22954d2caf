/*
 * Pools, handles of virtual memory management, arrays, and memory shared between processes.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_POOL_H
#define FAKEGPU_FAKE_POOL_H

#include "fake.h"

/* ---- pools (pool.c) ---- */
struct fk_pool *fk_pool_default(struct fk_dev *d);
/** The stream has passed a free: poisons pool bytes, gives a plain block back. */
void fk_free_reached(CUdeviceptr p, size_t bytes);
CUresult fk_pool_free_async(struct fk_block *b, struct fk_stream *s);
/** cuMemFree of a stream-ordered block: at once, nothing waited for. */
void fk_pool_free_now(struct fk_block *b);
/** Trims idle pool bytes of the device, thresholds or not; true if anything was given back. */
bool fk_pool_trim_idle(struct fk_dev *d);
/** A synchronisation: frees whose stream has passed them become idle bytes, surplus idle bytes go back. */
void fk_pool_settle(void);
bool fk_pool_holds(CUdeviceptr p, size_t n);
CUresult fk_pool_attribute(CUdeviceptr p, struct fk_pool **out);
bool fk_pool_accessible(const struct fk_pool *p, int device);

/* ---- VMM, arrays, IPC ---- */
struct fk_vmm {
    uint64_t magic;
    int device, refs, maps;
    size_t size, offset;
    CUmemAllocationProp prop;
    bool imported;
    char *import_va, *import_page; /* imported handles: their bytes, and their count, in this process */
    _Atomic uint32_t *import_refs;
    struct fk_vmm *next;
};
void fk_vmm_released_elsewhere(struct fk_dev *d);
struct fk_array {
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUdeviceptr mem;
    size_t bytes, pitch, rows, slices;
    int device;
    struct fk_ctx *ctx;
    bool level, deferred; /* level: belongs to a mipmapped array */
    struct fk_array *next;
};
void fk_arrays_destroy(struct fk_ctx *c);
/** Opens page memory of another process; NULL with errno-like CUresult in *err. */
char *fk_ipc_map(pid_t pid, int fd, size_t offset, size_t len);
void fk_import_release(struct fk_block *b);

#endif
