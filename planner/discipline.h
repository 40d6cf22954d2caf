/* The ways in which a site's blocks can be placed, and the families of memory that never share an arena. Constant tables; any thread. */
#ifndef TENURE_PLANNER_DISCIPLINE_H
#define TENURE_PLANNER_DISCIPLINE_H

#include <stdint.h>

typedef enum tn_discipline {
    TN_D_NATIVE = 0, /* the driver serves it */
    TN_D_T1,         /* bump regions that go back to the driver when a model is unloaded */
    TN_D_T2,         /* bump arena for what the engine keeps */
    TN_D_T3,         /* fixed blocks of one slab, shared with no other site */
    TN_D_T4,         /* last in, first out, a stack a stream */
    TN_D_PACKED,     /* slots at planned offsets, which share addresses where no journal saw both alive */
    TN_D_T5A,        /* pinned memory that is gone when loading ends */
    TN_D_T5B,        /* pinned slabs, slots at planned offsets */
    TN_D_COUNT
} tn_discipline;

typedef enum tn_family {
    TN_FAMILY_DEVICE = 0, /* plain device memory */
    TN_FAMILY_ASYNC,      /* stream-ordered, of the device's current pool */
    TN_FAMILY_PINNED,     /* host memory; flags are part of its identity */
    TN_FAMILY_HANDLE,     /* physical memory that the program maps itself; so are its properties (TN_VMM_*), and its size */
    TN_FAMILY_COUNT
} tn_family;

/* How many size classes an octave slots have: a number to 64, or one of these. */
#define TN_CLASSES_EACH UINT32_MAX       /* a size class for each size */
#define TN_CLASSES_ONE (UINT32_MAX - 1)  /* one for each site */

/* As in plan files and rules: "native", "T1" ... ; "device", "async", "pinned", "handle". Never NULL. */
const char *tn_discipline_name(tn_discipline d);
const char *tn_family_name(tn_family f);
/* TN_D_COUNT, TN_FAMILY_COUNT where there is none of that name. */
tn_discipline tn_discipline_find(const char *name);
tn_family tn_family_find(const char *name);

/* The family of a block's kind (TN_KIND_*), TN_FAMILY_COUNT for kinds that are never placed. */
tn_family tn_family_of_kind(uint8_t kind);
/* 1 where the family can have the discipline. */
int tn_discipline_fits(tn_discipline d, tn_family f);

/* Whether memory of the family is told apart by flags or properties too. */
static inline int tn_family_has_detail(tn_family f)
{
    return f == TN_FAMILY_PINNED || f == TN_FAMILY_HANDLE;
}

/* The alignment that the driver gives a block: 2 MiB to plain and pinned blocks above 1 MiB, else 512 B (tests/diff/mappings.c); to pinned ones at
 * least a page, which other drivers gave. Of a handle the granularity of its size. */
static inline uint64_t tn_native_alignment(tn_family f, uint64_t bytes)
{
    if (f == TN_FAMILY_HANDLE || (f != TN_FAMILY_ASYNC && bytes > (1u << 20)))
        return 2u << 20;
    return f == TN_FAMILY_PINNED ? 4096 : 512;
}

/* `multiple`: a power of two. Stays `n` where the next multiple is beyond 64 bits. */
static inline uint64_t tn_round_up(uint64_t n, uint64_t multiple)
{
    uint64_t over = n & (multiple - 1);
    return over && n <= UINT64_MAX - (multiple - over) ? n + (multiple - over) : n;
}

#endif
