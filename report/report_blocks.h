/* The blocks that are alive at one point of the replay, found by (process, space, number). A tn_blocks owns
 * its blocks; they are named by index because the array moves when it grows. One thread uses it. */
#ifndef TENURE_REPORT_REPORT_BLOCKS_H
#define TENURE_REPORT_REPORT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/tn_error.h"

/* Numbers of different spaces may be equal: an address and a handle, a reservation and what is mapped at its start. */
enum { TN_BLOCK_ADDRESS = 0, TN_BLOCK_VMM_HANDLE, TN_BLOCK_ARRAY, TN_BLOCK_EXTERNAL, TN_BLOCK_RESERVATION, TN_BLOCK_MAPPING,
       TN_BLOCK_ARENA, /* memory of a tier; the block that is served at its start has the same address */
       TN_BLOCK_HANDED /* of the program's own tiers: the same */ };

typedef struct tn_block {
    uint64_t addr, requested, backed;
    uint64_t born_ns;
    uint32_t process, ctx, place, row, api; /* api, row: TN_NO_INDEX = none */
    uint32_t maps;   /* of a VMM handle: its mappings */
    uint32_t handle; /* of a mapping: its handle's block, TN_NO_INDEX = unknown */
    uint32_t refs;   /* of a VMM handle: releases that it still needs */
    uint8_t space, kind;
    uint8_t phase;   /* in which it came */
    uint8_t tier;    /* TN_ROUTE_*: that serves it, or whose memory it is; 0: the driver's */
    uint8_t used;    /* this element holds a block */
    uint8_t indexed; /* it can be found; a released handle that is still mapped cannot */
} tn_block;

typedef struct tn_blocks {
    tn_block *blocks;
    uint32_t count, capacity, free_head;
    uint32_t *slots; /* open addressing, linear probing: index of a block or TN_BLOCK_NONE */
    size_t mask, indexed;
} tn_blocks;

#define TN_BLOCK_NONE UINT32_MAX

/* Start from a zeroed struct. */
void tn_blocks_free(tn_blocks *table);
/* Adds a copy of *block, whose number must not be there yet, and returns its index in *out. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_blocks_add(tn_blocks *table, const tn_block *block, uint32_t *out);
/* TN_BLOCK_NONE when there is none. */
uint32_t tn_blocks_find(const tn_blocks *table, uint32_t process, uint8_t space, uint64_t addr);
/* Where the look for it begins, for asking memory of it ahead of time; NULL while the table is empty. */
const uint32_t *tn_blocks_slot(const tn_blocks *table, uint32_t process, uint8_t space, uint64_t addr);
/* The block stays, but its number may be used again. */
void tn_blocks_unindex(tn_blocks *table, uint32_t index);
/* Makes an unindexed block known again, by a number that must not be there. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_blocks_reindex(tn_blocks *table, uint32_t index, uint64_t addr);
/* Unindexes it where that is still due, and gives its element back. */
void tn_blocks_remove(tn_blocks *table, uint32_t index);

#endif
