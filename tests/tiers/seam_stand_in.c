/* A shared object that listens at the seam, as the shim will: keeps an account of its own, by backend and id, and of blocks by address. Built with
 * another SEAM_VERSION, or SEAM_BYTES, it is one that the library must not believe. One thread. */
#include <stdlib.h>
#include <string.h>

#include "tests/tiers/seam_stand_in.h"

#ifndef SEAM_VERSION
#define SEAM_VERSION TN_SEAM_VERSION
#endif
#ifndef SEAM_BYTES
#define SEAM_BYTES sizeof(tn_seam)
#endif

#define REGIONS 64
#define BLOCKS 256

typedef struct kept_region {
    const void *backend;
    uint64_t id;
    size_t committed, reserved;
} kept_region;

typedef struct kept_block {
    const void *allocator, *address;
    size_t bytes;
} kept_block;

static kept_region regions[REGIONS];
static kept_block blocks[BLOCKS];
static seam_account account;

static kept_region *find(const void *backend, uint64_t id)
{
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].backend == backend && regions[i].id == id)
            return &regions[i];
    return NULL;
}

static tn_mem_error may_acquire(void *self, const void *backend, const char *tag, size_t bytes)
{
    (void)self;
    (void)backend;
    account.asked++;
    if (strcmp(tag, "refused") == 0 || bytes > account.limit)
        return TN_MEM_E_BUDGET;
    return TN_MEM_OK;
}

static void put(const void *backend, const tn_region *region)
{
    kept_region *r = find(NULL, 0);
    *r = (kept_region){backend, region->id, region->committed, region->reserved};
    account.live += region->committed;
    account.reserved += region->reserved;
    account.regions++;
}

static void acquired(void *self, const void *backend, const tn_region *region)
{
    (void)self;
    account.acquired++;
    put(backend, region);
}

static void resized(void *self, const void *backend, const tn_region *region, size_t before)
{
    (void)self;
    kept_region *r = find(backend, region->id);
    account.wrong += r == NULL || r->committed != before;
    if (r == NULL)
        return;
    account.live += region->committed - r->committed;
    r->committed = region->committed;
}

static void releasing(void *self, const void *backend, const tn_region *region)
{
    (void)self;
    kept_region *r = find(backend, region->id);
    if (r == NULL)
        return;
    account.live -= r->committed;
    account.reserved -= r->reserved;
    account.regions--;
    *r = (kept_region){0};
}

static void kept(void *self, const void *backend, const tn_region *region)
{
    (void)self;
    account.kept++;
    put(backend, region);
}

static void handed_out(void *self, const void *allocator, const char *tag, const void *address, size_t bytes)
{
    (void)self;
    account.wrong += tag == NULL;
    account.handed_out++;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].allocator == NULL) {
            blocks[i] = (kept_block){allocator, address, bytes};
            account.block_bytes += bytes;
            return;
        }
    account.wrong++;
}

static void taken_back(void *self, const void *allocator, const void *address)
{
    (void)self;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].allocator == allocator && blocks[i].address == address) {
            account.block_bytes -= blocks[i].bytes;
            blocks[i] = (kept_block){0};
            return;
        }
    account.wrong++;
}

static void taken_back_all(void *self, const void *allocator)
{
    (void)self;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].allocator == allocator) {
            account.block_bytes -= blocks[i].bytes;
            blocks[i] = (kept_block){0};
        }
}

__attribute__((visibility("default"))) const tn_seam *tenure_tiers_seam_v1(void);
__attribute__((visibility("default"))) seam_account *seam_stand_in_account(void);

const tn_seam *tenure_tiers_seam_v1(void)
{
    static const tn_seam seam = {
        .version = SEAM_VERSION,
        .bytes = SEAM_BYTES,
        .may_acquire = may_acquire,
        .acquired = acquired,
        .resized = resized,
        .releasing = releasing,
        .kept = kept,
        .handed_out = handed_out,
        .taken_back = taken_back,
        .taken_back_all = taken_back_all,
    };
    account.found++;
    return account.mute ? NULL : &seam;
}

seam_account *seam_stand_in_account(void)
{
    return &account;
}
