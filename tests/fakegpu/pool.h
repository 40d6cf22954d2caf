/*
 * Inside of a pool, for the two files that know it. A pool owns its chunks, a chunk its pieces; a piece that was
 * freed holds the operation of its free. All under fk_lock.
 */
#ifndef FAKEGPU_POOL_H
#define FAKEGPU_POOL_H

#include "fake.h"

struct fk_piece {
    struct fk_piece *next;
    CUdeviceptr p;
    size_t n;
    bool used, settled; /* settled: free, and a synchronisation has seen its free done */
    struct fk_op *free_op;
};
struct fk_chunk { struct fk_chunk *next; CUdeviceptr p; size_t n; struct fk_piece *pieces; };
struct fk_pool {
    struct fk_pool *next;
    int device;
    bool destroyed, is_default;
    CUmemPoolProps props;
    struct fk_chunk *chunks;
    uint64_t threshold, reserved, used, reserved_high, used_high;
    int reuse[3]; /* follow events, opportunistic, internal dependencies */
    int access[FK_MAX_DEVICES];
    size_t live;
};

extern struct fk_pool *fk_pools;
struct fk_pool *fk_pool_new(int device);
/** Gives back whole idle chunks while more than `keep` is reserved. `any`: also those no synchronisation has seen. */
bool fk_pool_trim(struct fk_pool *p, uint64_t keep, bool any);

#endif
