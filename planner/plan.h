/* A plan in memory: what a plan file says (docs/PLAN.md), no more and no less. A tn_plan owns everything it points to, strings included,
 * until tn_plan_free; arrays are in the order of the file. One thread a plan until it is filled; then it is constant, and any thread may read it.
 * Of libc alone, with memory from the caller's hook: plans are also loaded inside the programs that they are for. */
#ifndef TENURE_PLANNER_PLAN_H
#define TENURE_PLANNER_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/tn_error.h"
#include "planner/discipline.h"
#include "planner/room.h"
#include "tiers/metadata.h"

#define TN_PLAN_SCHEMA "tenure-plan/1"
#define TN_PLAN_MESSAGE 1536
#define TN_PLAN_HANDLES_MAX ((uint64_t)1 << 20) /* of one pool */

typedef struct tn_plan_frame { /* innermost first; what is not known is NULL or 0 */
    const char *module, *build_id, *function, *file;
    uint64_t offset;   /* of the return address in the module */
    uint64_t delta;    /* in the function */
    uint32_t line;
    uint8_t inlined;   /* stands for no return address: inlined into the next one */
} tn_plan_frame;

typedef struct tn_plan_class { /* a size class: all its slots hold `bytes` */
    uint64_t bytes, alignment;
    uint64_t *offsets; size_t count;
} tn_plan_class;

typedef struct tn_plan_row { /* one site */
    uint64_t key, python;      /* python 0: all callers */
    uint64_t coarse;           /* hash of its frames' modules and functions; 0: not known */
    tn_discipline discipline, runner_up;
    tn_family family;          /* TN_FAMILY_COUNT: native, of several or other kinds */
    uint32_t detail;           /* pinned: the flags; handles: their properties (TN_VMM_*) */
    uint8_t held, varies;      /* varies: it asks for other sizes each time */
    uint64_t capacity, runner_capacity; /* what it takes; T1, T2, T4, packed: its part, shared with others */
    uint64_t blocks, largest;  /* most alive at once; bytes of the largest request */
    uint64_t alignment;        /* of the largest; 0: native */
    uint64_t headroom;         /* bytes a slot has beyond the largest request seen, by --headroom or a rule */
    tn_room room;              /* by rules, beyond what its history takes */
    const char *reason, *rule; /* rule: NULL where none decided */
    tn_plan_frame *frames; size_t frame_count;
    const char **python_frames; size_t python_frame_count;
    tn_plan_class *classes; size_t class_count; /* packed, T5b; by rising bytes */
} tn_plan_row;

typedef struct tn_plan_region { uint64_t key, python, first_bytes, capacity, count; uint32_t times; } tn_plan_region;

typedef struct tn_plan_tier {
    tn_discipline discipline;
    tn_family family;
    uint32_t detail;
    uint64_t block;            /* T3 of handles: bytes of each; `slots` says how many there are */
    uint64_t sites, capacity;
    uint64_t streams;          /* T4: stacks of that capacity */
    uint64_t live_peak, live_exact; /* seen: at native alignment; rounded to 512 B (packed, T5b, else 0) */
    uint64_t lower_bound, with_waits, slots, hand_outs, shared, nearest; /* packed, T5b; else 0 */
    uint32_t classes_an_octave;
} tn_plan_tier;

typedef struct tn_plan_phase { uint8_t phase; uint64_t device_bytes, native_bytes, pinned_bytes; } tn_plan_phase; /* most alive in it */

typedef struct tn_plan_sizing { /* the memory query by which the program sizes its largest pool */
    int known;
    uint64_t key, python;      /* the site of the query */
    uint32_t ordinal;          /* the n-th from it on this device */
    uint64_t free_bytes;       /* as it was answered */
    uint64_t *sized; size_t sized_count; /* keys of the sites that it sizes */
} tn_plan_sizing;

typedef struct tn_plan_charge { const char *name, *source, *date; uint64_t bytes; } tn_plan_charge;

typedef struct tn_plan_section {
    const char *exe_build_id, *exe, *script; /* script: NULL */
    uint32_t device;
    uint64_t instances;        /* contexts that were seen in one process at most: each has arenas of its own */
    uint64_t graph_execs;      /* at once, at most */
    uint64_t native_bytes;     /* device memory that stays with the driver, as it backed it, at its highest */
    uint64_t device_live_peak; /* of all device memory of the placed families, at native alignment, until freed */
    uint64_t total;            /* device tiers, native bytes and charges */
    tn_plan_sizing sizing;
    tn_plan_charge *charges; size_t charge_count;
    tn_plan_phase *phases; size_t phase_count;
    tn_plan_tier *tiers; size_t tier_count;     /* by family, discipline, flags */
    tn_plan_region *regions; size_t region_count; /* by key, Python key, first bytes */
    tn_plan_row *rows; size_t row_count;        /* by key, then Python key */
} tn_plan_section;

typedef struct tn_plan {
    uint64_t budget;           /* 0: none was given */
    uint32_t headroom;         /* percent; 0: none */
    uint64_t gap;              /* bytes that every placed block has behind it, of which no other has any; in all sizes of the plan */
    uint64_t processes, events; /* what it was made of */
    tn_plan_section *sections; size_t section_count;
    void *memory;              /* plan_memory.c: everything above */
} tn_plan;

void tn_plan_free(tn_plan *plan);

/* ---- for those who fill one ---- */

/* With memory from the hook, which must outlive it and answers blocks aligned to 8 bytes at least; of tn_plan_new(): malloc's. NULL: none is left. */
tn_plan *tn_plan_new_in(const tn_metadata *memory);
tn_plan *tn_plan_new(void);
/* Zeroed memory, a copy of a string as it can stand in the file (text_mask.h; NULL for NULL), that live as long as the plan. NULL when none is
 * left, which tn_plan_failed() remembers. */
void *tn_plan_memory(tn_plan *plan, size_t count, size_t size);
const char *tn_plan_text(tn_plan *plan, const char *text);
const char *tn_plan_text_of(tn_plan *plan, const char *text, size_t bytes); /* not ended by a 0 */
int tn_plan_failed(const tn_plan *plan);
/* Appends one frame or charge. NULL as above. */
tn_plan_frame *tn_plan_add_frame(tn_plan *plan, tn_plan_row *row);
tn_plan_charge *tn_plan_add_charge(tn_plan *plan, tn_plan_section *section);

/* ---- for those who ask one ---- */

/* The section's row for a key pair: that with the Python part, else the native one; NULL. */
const tn_plan_row *tn_plan_row_of(const tn_plan_section *section, uint64_t key, uint64_t python);

/* The section that binds a process on a device: the same build-id (hexadecimal), script (program_script.h; NULL: none) and ordinal; NULL. An
 * executable without a build-id is bound by its file's name, `exe` with or without folders, by sections that have none either. */
const tn_plan_section *tn_plan_section_for(const tn_plan *plan, const char *build_id, const char *script, uint32_t device);
const tn_plan_section *tn_plan_section_named(const tn_plan *plan, const char *exe, const char *script, uint32_t device);

#endif
