/* The arithmetic of a device's memory: what is claimed in the order in which it is taken (charges, T2, T1, T3, scratch), and the KV pool
 * from what is left of a budget. Pure: sizes in, sizes out, no device, clock or environment; the same input gives the same bytes. Inputs
 * and plans are flat values without pointers, copied by assignment; any thread. */
#ifndef TENURE_PLANNER_MEMORY_H
#define TENURE_PLANNER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/demand.h"

/* In the order of taking, which is the order of the lines. */
typedef enum tn_memory_part {
    TN_PART_CHARGE = 0, TN_PART_NATIVE, TN_PART_T2, TN_PART_T1, TN_PART_T3, TN_PART_T4, TN_PART_ROUNDING, TN_PART_KV, TN_PARTS
} tn_memory_part;

enum { TN_MEMORY_NAME = 112, TN_MEMORY_LINES = 112, TN_MEMORY_LEVERS = 8, TN_MEMORY_SHOWN_LEVERS = 3 };
#define TN_MEMORY_NO_BUDGET UINT64_MAX

typedef struct tn_memory_line {
    char name[TN_MEMORY_NAME];
    tn_memory_part part;
    uint64_t bytes;
} tn_memory_line;

/* A pool of equal blocks that takes what is left. block_bytes 0: there is none, and all else is 0. */
typedef struct tn_memory_kv {
    uint64_t block_bytes, block_tokens;
    uint64_t sequence_blocks; /* one sequence of full length */
    uint64_t sequence_tokens; /* its length as advertised */
    uint64_t sequences;       /* that the limits let in at once */
    uint64_t full_sequences;  /* how many of them must fit at full length: the admission floor */
    uint64_t blocks;          /* of a plan: granted; never more than sequences x sequence_blocks, which is all that can be reached */
} tn_memory_kv;

typedef struct tn_memory_input {
    tn_memory_line lines[TN_MEMORY_LINES]; /* no KV, no rounding; in any order, kept within a part */
    size_t line_count;
    tn_memory_kv kv;
    uint64_t granularity; /* in which the device gives memory: each tier and the pool are rounded up to it. 0 or 1: not rounded */
    uint64_t budget;      /* bytes, or TN_MEMORY_NO_BUDGET: then everything wanted is granted */
} tn_memory_input;

typedef enum tn_memory_result {
    TN_MEMORY_FITS = 0,
    TN_MEMORY_OVER,      /* more than the budget without a single KV block */
    TN_MEMORY_KV_FLOOR,  /* it would fit, with fewer KV blocks than the sequences that must fit need */
    TN_MEMORY_TOO_LARGE  /* a sum or product, or the budget, is above INT64_MAX: `where` says which; no figure holds */
} tn_memory_result;

typedef struct tn_memory_lever {
    char what[TN_MEMORY_NAME]; /* "limits.max_seq_len 4096 -> 2048" */
    uint64_t frees;            /* bytes by which `required` falls, found by planning again; never 0 */
    uint64_t over;             /* what is then still missing; 0: that lever is enough */
} tn_memory_lever;

typedef struct tn_memory_plan {
    tn_memory_result result;
    char where[TN_MEMORY_NAME];
    uint64_t budget;
    tn_memory_line lines[TN_MEMORY_LINES + 2]; /* in the order of parts; with a line for rounding and for KV where there are such */
    size_t line_count;
    tn_memory_kv kv;
    uint64_t wanted_blocks; /* sequences x sequence_blocks */
    uint64_t room_blocks;   /* what the budget has left for the pool; without a budget as wanted_blocks */
    uint64_t total;         /* the sum of the lines. Of a plan that fits at most the budget; of one that does not, the least it needs */
    uint64_t over, left;    /* total - budget, budget - total; one of them is 0; both without a budget */
    tn_memory_lever levers[TN_MEMORY_LEVERS]; /* the largest first, of equals the one that stands earlier in memory_demand.c */
    size_t lever_count;     /* 0 of a plan that fits */
    bool single_fits; /* of a demand that does not fit: it would if one sequence of full length were enough */
    uint64_t fitting_seq_len, fitting_batch; /* of a demand that does not fit: the largest that would, alone; 0: none would */
} tn_memory_plan;

/* Sums up and divides. `out` gets no levers. */
void tn_memory_fit(const tn_memory_input *input, tn_memory_plan *out);

/* Adds a line; false where there are TN_MEMORY_LINES already. A longer name is cut. Lines of 0 bytes are left out. */
bool tn_memory_add(tn_memory_input *input, tn_memory_part part, const char *name, uint64_t bytes);

/* A demand's lines and KV pool. `measured` takes the place of the demand's own charges; NULL: those hold. False, with the name of the
 * line in `where`, where a product or sum leaves 64 bits. The budget is the demand's. */
bool tn_memory_of_demand(const tn_demand *demand, const tn_charges *measured, tn_memory_input *out, char where[TN_MEMORY_NAME]);

/* plan_memory: the demand within `budget` (TN_MEMORY_NO_BUDGET: without one), and where it does not fit, its levers. */
void tn_memory_plan_demand(const tn_demand *demand, const tn_charges *measured, uint64_t budget, tn_memory_plan *out);

/* The same for an engine that was recorded: its lines are `base`, which stays as it is, and the demand gives the KV pool alone: levers
 * change the pool and nothing else. The base's own pool does not count. */
void tn_memory_plan_around(const tn_demand *demand, const tn_memory_input *base, uint64_t budget, tn_memory_plan *out);

/* The admission floor: the blocks below which a plan is refused. */
uint64_t tn_memory_floor_blocks(const tn_memory_kv *kv);

#endif
