/* For the packed slots alone: the region cut at every offset where a slot begins or ends. Between two cuts lies a cell, which a slot has
 * wholly or not at all; each knows which slot has it now, so a hand-out looks at what is there and not at all that could be. A cell passes on
 * by the rules of packed_state.h alone. The allocator owns it; its readers may be any threads. */
#ifndef TENURE_TIERS_PACKED_CELLS_H
#define TENURE_TIERS_PACKED_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/metadata.h"
#include "tiers/packed_plan.h"

/* The cells from `first` to before `end`; of a slot at least one. */
typedef struct tn_packed_range {
    uint32_t first, end;
} tn_packed_range;

#define TN_PACKED_BLOCK 64u

/* A slot that has all cells of a block is written down once, so that a large one is taken and looked at 64 cells at a time. */
typedef struct tn_packed_cells {
    uint32_t *owners;       /* a cell each: 1 + the slot that has it; 0: none ever had. Holds where the block's owner is 0 */
    uint32_t *block_owners; /* of TN_PACKED_BLOCK cells each: 1 + the slot that has them all; 0: look at the cells */
    size_t *keys;           /* offsets where slots begin, hashed; SIZE_MAX: none */
    uint32_t *cells_of_key; /* beside them */
    size_t *starts;         /* a cell each: where it begins, rising; and behind them where the last one ends */
    size_t cell_count, key_count;
    unsigned key_shift;
} tn_packed_cells;

/* Cuts the region of a plan that was found sound and writes where each slot lies. False: no memory, and nothing is held. */
bool tn_packed_cells_create(tn_packed_cells *cells, const tn_packed_plan *plan, const tn_metadata *metadata, tn_packed_range *ranges);
void tn_packed_cells_free(tn_packed_cells *cells, const tn_metadata *metadata);

/* 1 + the slot that has `cell`, 0 for none; *next (may be NULL) is the first cell from there on of which more must be asked. */
static inline uint32_t tn_packed_cells_owner(const tn_packed_cells *cells, uint32_t cell, uint32_t *next)
{
    uint32_t block = cell / TN_PACKED_BLOCK, owner = __atomic_load_n(&cells->block_owners[block], __ATOMIC_ACQUIRE);
    if (next != NULL)
        *next = owner != 0 ? (block + 1) * TN_PACKED_BLOCK : cell + 1;
    return owner != 0 ? owner : __atomic_load_n(&cells->owners[cell], __ATOMIC_ACQUIRE);
}

/* Swaps `slot` in for no slot at all. False where there is one by now. */
bool tn_packed_cells_take_untouched(tn_packed_cells *cells, uint32_t cell, uint32_t slot);

/* Passes every cell of the range to `slot`. The caller has claimed it and all that have any of them. */
void tn_packed_cells_pass(tn_packed_cells *cells, tn_packed_range range, uint32_t slot);

/* The first cell of the slots that begin at `offset`; false where none does. */
bool tn_packed_cells_find(const tn_packed_cells *cells, size_t offset, uint32_t *cell);

/* The cell that `offset` lies in, in a time that rises with the logarithm of how many there are; false before the first and behind the last. */
bool tn_packed_cells_around(const tn_packed_cells *cells, size_t offset, uint32_t *cell);

#endif
