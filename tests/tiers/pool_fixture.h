/* One pool a test, and what each test of pools does with it. */
#ifndef TENURE_TESTS_TIERS_POOL_FIXTURE_H
#define TENURE_TESTS_TIERS_POOL_FIXTURE_H

#include "tiers/block_pool_inside.h"
#include "work_device.h"

extern tn_host *host;
extern tn_block_pool *pool;

/* A host of 64 MiB and a fresh device; at the end the pool, if one was made, is sound, and all is given back. */
void pool_begin(void);
void pool_end(void);

void make_slots(size_t blocks, size_t shares, const tn_work *work);
void make_region(size_t blocks, size_t stride);

/* The figures, which add up, of a pool that is sound. */
tn_block_pool_stats stats_now(void);

/* One block more; one less, with nothing left to do, or with a mark. None of them fails. */
tn_block take(void);
void give(tn_block *block);
void give_marked(tn_block *block, tn_work_mark mark);

#endif
