/*
 * Blocks by address, and the memory of the card. A block belongs to its device; its context may be NULL.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_MEMORY_H
#define FAKEGPU_FAKE_MEMORY_H

#include "fake.h"

/* ---- blocks by address (registry.c) ---- */
enum fk_kind { FK_DEVICE = 1, FK_PITCH, FK_MANAGED, FK_ASYNC, FK_GRAPH, FK_HOST, FK_REGISTERED, FK_VMM, FK_IMPORT };
struct fk_block {
    CUdeviceptr base;
    size_t size, backed; /* bytes asked for; bytes of the card's memory by the driver's rounding */
    enum fk_kind kind;
    int device;
    struct fk_ctx *ctx; /* NULL for memory that outlives contexts */
    uint64_t buffer_id;
    unsigned flags;
    bool sync_memops, freeing, touched, read_mostly, live; /* live: graph memory between its alloc and free nodes */
    uint64_t alloc_stream;
    struct fk_pool *pool;
    struct fk_piece *piece; /* of the pool */
    struct fk_vmm *vmm;
    size_t vmm_offset;
    int access[FK_MAX_DEVICES]; /* VMM: CUmemAccess_flags per device */
    void *import;               /* IPC: the mapping's record */
    bool passed;                /* plain, freed in the order of a stream which has come there; known until somebody waits */
    struct fk_block *next_passed;
    uint64_t free_stream;       /* whose */
    struct fk_ctx *free_ctx;
    struct fk_block *left, *right;
    uint32_t prio;
};
/** Creates and files a block. NULL only when the host is out of memory. */
struct fk_block *fk_block_add(CUdeviceptr base, size_t size, enum fk_kind kind, int device, struct fk_ctx *ctx);
void fk_block_remove(struct fk_block *b);
/** The block that holds address p, or NULL. */
struct fk_block *fk_block_at(CUdeviceptr p);
/** First block whose base is >= p, or NULL. */
struct fk_block *fk_block_next(CUdeviceptr p);
/** Files a plain block under those whose stream-ordered free has been reached. They go where somebody waits for that stream (0: for all of its
 *  context), or all of a device's, where its memory is short. */
void fk_block_pass(struct fk_block *b);
void fk_passed_waited(struct fk_ctx *c, uint64_t stream);
bool fk_passed_settle(int device);
/** True if [p, p+n) lies inside one block or inside adjoining VMM mappings. */
bool fk_range_ok(CUdeviceptr p, size_t n);
/* Whether p lies in what a device block was rounded up to, behind its end: device address space, and nobody's. */
bool fk_in_slack(CUdeviceptr p);
bool fk_is_device_kind(enum fk_kind k);
/** Gives a block's memory back and forgets it, without waiting (memory.c). Not for stream-ordered blocks. */
void fk_block_destroy(struct fk_block *b);

/* ---- physical memory (phys.c) ---- */
struct fk_extent { size_t off, len; struct fk_extent *next; };
struct fk_slab;
struct fk_piece;
struct fk_stats { uint64_t live_req, peak_req, live_backed, peak_backed, allocs, frees, graph_bytes; };
struct fk_dev {
    int ordinal, memfd;
    char *va;      /* the whole card, mapped once: address = va + offset */
    size_t span;   /* offsets; larger than the capacity, since address space does not fragment on a card */
    size_t capacity, used;
    size_t host_mapped;     /* bytes of host memory that is mapped for the device */
    struct fk_extent *free_list;
    struct fk_slab *slabs, **slab_of; /* slab_of: by page */
    struct fk_ctx *primary;
    struct fk_pool *default_pool, *pool;
    bool faulted;          /* a sticky error happened: no new context (46) */
    size_t reset_charge;
    size_t graph_reserved, graph_reserved_high, graph_used_high;
    struct fk_stats st;
    _Atomic uint32_t *shared_refs; /* per physical page: users in other processes of an exported handle */
};
extern struct fk_dev fk_devs[FK_MAX_DEVICES];
extern struct fk_stats fk_host_stats, fk_registered_stats;
CUresult fk_phys_start(struct fk_dev *d);
/** Takes `bytes` of capacity; false if the card is full (WDDM mode never is). */
bool fk_charge(struct fk_dev *d, size_t bytes);
void fk_charge_force(struct fk_dev *d, size_t bytes);
void fk_uncharge(struct fk_dev *d, size_t bytes);
/* One card for several processes (shared.c); without FAKEGPU_SHARED nothing, and 0. */
void fk_shared_enter(void); /* no other process takes memory until fk_shared_leave */
void fk_shared_leave(void);
void fk_shared_publish(const struct fk_dev *d);
size_t fk_shared_others(int ordinal);
/** Address space of the card in 2 MiB steps, without charge. 0 if none is left. */
CUdeviceptr fk_extent_take(struct fk_dev *d, size_t bytes);
/** The same with room on both sides, while there is much: what a pool has may grow. */
CUdeviceptr fk_extent_take_apart(struct fk_dev *d, size_t bytes);
/** As fk_extent_take at an address that must be where a free run begins; false if it is not, or the run is too short. */
bool fk_extent_take_at(struct fk_dev *d, CUdeviceptr p, size_t bytes);
void fk_extent_give(struct fk_dev *d, CUdeviceptr p, size_t bytes);
/** Memory of a plain block, charged by the driver's rounding. 0 if the card is full. */
CUdeviceptr fk_plain_take(struct fk_dev *d, size_t bytes);
void fk_plain_give(struct fk_dev *d, CUdeviceptr p, size_t bytes);
/** Overwrites the pages of [p, p+n) that were touched (drops those inside a large range); others stay untouched. */
void fk_poison(CUdeviceptr p, size_t n);
void fk_drop_pages(CUdeviceptr p, size_t n);
size_t fk_plain_backed(size_t bytes);
void fk_stat_add(struct fk_stats *s, size_t req, size_t backed);
void fk_stat_sub(struct fk_stats *s, size_t req, size_t backed);
static inline size_t fk_up(size_t n, size_t to) { return n > SIZE_MAX - to ? SIZE_MAX / to * to : (n + to - 1) / to * to; }

#endif
