/* The table that packed slots are served from, and its check. A slot is a place in one region for one block of a site and size class; two
 * slots may share addresses where their blocks were never alive at once. The table is the caller's, and is only read. Any thread. */
#ifndef TENURE_TIERS_PACKED_PLAN_H
#define TENURE_TIERS_PACKED_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "tiers/error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PACKED_SLOTS_MAX ((size_t)1 << 28)
#define TN_PACKED_NO_SLOT UINT32_MAX

typedef struct tn_packed_slot {
    uint32_t site;       /* below the plan's site_count */
    uint32_t size_class; /* of the site; a greater class has more bytes */
    uint32_t ordinal;    /* 0, 1, ... : as many as the class had alive at once */
    size_t offset;       /* from the region's base */
    size_t bytes;        /* the most that it holds, the same for all ordinals of a class */
    size_t alignment;    /* of its address; 0: TN_ALIGNMENT_DEFAULT */
} tn_packed_slot;

typedef struct tn_packed_plan {
    const tn_packed_slot *slots; /* by rising (site, size class, ordinal) */
    size_t slot_count;
    uint32_t site_count;
    size_t capacity;             /* of the region, in bytes */
} tn_packed_plan;

typedef enum tn_packed_fault {
    TN_PACKED_SOUND = 0,
    TN_PACKED_NO_TABLE,      /* no slots, or more than TN_PACKED_SLOTS_MAX */
    TN_PACKED_BAD_SITE,      /* not below site_count */
    TN_PACKED_BAD_ORDER,     /* not above the slot before it, by (site, size class, ordinal) */
    TN_PACKED_BAD_ORDINAL,   /* the ordinals of a class are not 0, 1, ... */
    TN_PACKED_BAD_BYTES,     /* zero, not as the others of its class, or not more than the site's class before */
    TN_PACKED_BAD_ALIGNMENT, /* no power of two, above TN_ALIGNMENT_MAX, or the offset is no multiple of it */
    TN_PACKED_BAD_CAPACITY,  /* the slot reaches beyond the region, or that is above TN_BYTES_MAX */
    TN_PACKED_BAD_OVERLAP,   /* two slots of a class, which are there to be alive at once, share addresses */
    TN_PACKED_FAULT_COUNT
} tn_packed_fault;

/* The first fault found, with the index of its slot and, of an overlap, the other's. */
typedef struct tn_packed_problem {
    tn_packed_fault fault;
    size_t slot, other;
} tn_packed_problem;

/* Whether the table holds what its users rely on. ARGUMENT: it does not, and *problem (may be NULL) says why. HOST_MEMORY: it could not be
 * said; `metadata` (NULL: malloc) is used for as long as the call takes, 16 bytes a slot. */
TN_MEM_MUST_USE tn_mem_error tn_packed_plan_check(const tn_packed_plan *plan, const tn_metadata *metadata, tn_packed_problem *problem);

/* A short English phrase; never NULL, also for values outside the enum. */
const char *tn_packed_fault_text(tn_packed_fault fault);

#ifdef __cplusplus
}
#endif

#endif
