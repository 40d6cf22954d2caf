/*
 * Inside of a pool, for the files that know it. A pool owns its chunks, a chunk its pieces; a piece that was
 * freed holds the operation of its free. All under fk_lock.
 */
#ifndef FAKEGPU_POOL_H
#define FAKEGPU_POOL_H

#include "fake.h"

struct fk_piece {
    struct fk_chunk *chunk;
    struct fk_piece *prev, *next;           /* all of the chunk, by address */
    struct fk_piece *free_prev, *free_next; /* its free ones, by address */
    CUdeviceptr p;
    size_t n;
    bool used, settled; /* settled: free, and a synchronisation has seen its free done */
    struct fk_op *free_op;
};
struct fk_chunk {
    struct fk_chunk *next;
    CUdeviceptr p;
    size_t n, free_bytes;
    size_t longest; /* no run of free neighbours is longer; may be too large, never too small */
    bool unsettled; /* a free piece has yet to be settled */
    struct fk_piece *free, *last; /* the first free one; the one at the end */
};
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
/** A chunk whose one piece is free and settled; NULL without host memory. */
struct fk_chunk *fk_chunk_new(CUdeviceptr at, size_t n);
/** Forgets the pieces and the chunk, which must be one free piece. */
void fk_chunk_delete(struct fk_chunk *c);
/** Lengthens the chunk, which ends in a free piece, by n bytes of that piece's state. False without host memory. */
bool fk_chunk_extend(struct fk_chunk *c, size_t n);
/** Takes the last n bytes off the chunk; they are free and not all of it. */
void fk_chunk_shorten(struct fk_chunk *c, size_t n);
/** Free, and the stream has passed its free. */
bool fk_piece_idle(const struct fk_piece *f);
/** Takes n bytes from the start of a free piece; what is left stays free. False without host memory. */
bool fk_piece_use(struct fk_piece *f, size_t n);
/** Frees a used piece; `op` (may be NULL) is the operation of its free. May join it with its neighbours. */
void fk_piece_free(struct fk_piece *f, struct fk_op *op);
/** Joins free neighbours that are idle, or freed by one stream, and measures the longest run anew. */
void fk_chunk_coalesce(struct fk_chunk *c);
/** After a synchronisation: idle pieces may be trimmed from now on. */
void fk_chunk_settle(struct fk_chunk *c);
/** Gives back whole idle chunks while more than `keep` is reserved. `any`: also those no synchronisation has seen. */
bool fk_pool_trim(struct fk_pool *p, uint64_t keep, bool any);

#endif
