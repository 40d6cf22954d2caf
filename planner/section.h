/* A trace cut into what one layout is made for: a program (its executable, for an interpreter also the script) on one device. Processes and
 * contexts of that program are instances of the section; its units are the sites, each with what was seen of it. A tn_sections owns all of
 * that and borrows the trace. One thread. */
#ifndef TENURE_PLANNER_SECTION_H
#define TENURE_PLANNER_SECTION_H

#include "planner/discipline.h"
#include "planner/room.h"
#include "planner/trace.h"

/* One site, or one of the Python callers of a native site, and what the planner has decided. */
typedef struct tn_unit {
    uint32_t site;           /* in trace->sites */
    tn_family family;        /* TN_FAMILY_COUNT: of several, or of kinds that are never placed */
    uint32_t kinds;          /* bit k: blocks of TN_KIND k */
    uint32_t detail;         /* pinned: the flags; handles: their properties */
    uint8_t flags;           /* TN_LF_* of any of its blocks */
    uint8_t mixed_detail;    /* its blocks have several flags */
    uint8_t by_host;         /* every block was first written from the host, before Serving */
    uint8_t phases;          /* bit p: blocks came in phase p */
    uint8_t within_loading;  /* every block came and went while Loading, in processes that told their phases */
    uint8_t repeats;         /* a block came after one was freed */
    uint8_t varies;          /* it repeats, and not always with the same size: other requests may ask for more */
    uint64_t blocks;         /* over all instances */
    uint8_t placeable;       /* one of its blocks may be placed */
    uint64_t smallest, largest; /* requested; of those that may be placed, where there are any */
    /* The most over all instances, sizes rounded to native alignment. */
    uint64_t live_bytes;     /* alive at once */
    uint64_t live_blocks;
    uint64_t backed_bytes;   /* by the driver, until the free */
    uint64_t bump_bytes;     /* a bump arena that takes back what is on top */
    uint64_t stack_bytes;    /* the same, where a block can be used again from its free on */
    uint64_t region_bytes;   /* regions that close at a free */
    uint64_t slot_bytes;     /* packed slots of its own, before any is shared */
    uint64_t at_peak;        /* alive when all candidates for packing were at their highest */
    /* Decided. */
    tn_discipline discipline, runner_up;
    uint64_t capacity, runner_capacity;
    const char *reason;      /* constant text */
    const char *rule;        /* the rule that decided, borrowed, or NULL */
    tn_room room;            /* that a rule gives it */
    int held;                /* its blocks' addresses are in graphs: shared with no other site */
} tn_unit;

/* One context of one process on the section's device; the first of a process has the handles of them all, which belong to none. Blocks that may be
 * placed, as indices into the process's lives: in the order in which they came, were freed, and became clean; of the last two only those that did. */
typedef struct tn_instance {
    uint32_t process, ctx;
    uint32_t *births, *frees, *cleans;
    size_t birth_count, free_count, clean_count;
} tn_instance;

typedef struct tn_section {
    const tn_trace *trace;
    char *exe_build_id;      /* hexadecimal; empty where there is none */
    char *exe;               /* the file's name */
    char *script;            /* of an interpreter; NULL: none */
    uint8_t device;
    tn_instance *instances; size_t instance_count;
    uint32_t *processes; size_t process_count; /* in trace->processes */
    tn_unit *units; size_t unit_count;         /* by key, then Python key */
    uint32_t *unit_of;       /* by index in trace->sites; TN_TRACE_NONE: no block on this device */
} tn_section;

typedef struct tn_sections {
    tn_section *at;
    size_t count;
} tn_sections;

/* `apart[site]` != 0 (NULL: nowhere): the Python callers of this native site are units of their own. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_sections_make(const tn_trace *trace, const uint8_t *apart, tn_sections *out);
void tn_sections_free(tn_sections *s);

/* The same section with the blocks of chosen[unit] alone, for those who walk them often. It borrows all but its instances; tn_section_unpick
 * frees those. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_section_pick(const tn_section *s, const uint8_t *chosen, tn_section *out);
void tn_section_unpick(tn_section *picked);

/* tn_program_script (program_script.h), for the caller to free; NULL: none. */
char *tn_section_script(const char *exe, const char *cmdline, size_t bytes);

/* Blocks that were taken without a context, or while a capture was active, are the driver's whatever a plan says. A capture does not mind a handle. */
static inline int tn_may_be_placed(const tn_life *l)
{
    tn_family f = tn_family_of_kind(l->kind);
    return l->ctx != 0 && (f == TN_FAMILY_HANDLE || !(l->flags & TN_LF_IN_CAPTURE)) && f != TN_FAMILY_COUNT;
}

/* ---- walking an instance's blocks in order ---- */

typedef struct tn_walk {
    const tn_life *lives;
    const uint32_t *births, *ends;
    size_t birth_count, end_count, i, j;
    int clean;
} tn_walk;

/* `clean`: a block ends when its memory may serve another, not when it is freed. */
static inline tn_walk tn_walk_begin(const tn_section *s, const tn_instance *in, int clean)
{
    return (tn_walk){.lives = s->trace->processes[in->process].lives, .births = in->births, .birth_count = in->birth_count, .clean = clean,
                     .ends = clean ? in->cleans : in->frees, .end_count = clean ? in->clean_count : in->free_count};
}

/* The next change: 1 a birth, -1 an end, 0 none any more. *index is the life's. Ends that never came are left out. */
static inline int tn_walk_next(tn_walk *w, uint32_t *index)
{
    if (w->j < w->end_count) {
        const tn_life *l = &w->lives[w->ends[w->j]];
        if (w->i == w->birth_count || (w->clean ? l->clean : l->freed) <= w->lives[w->births[w->i]].begin) {
            *index = w->ends[w->j++];
            return -1;
        }
    }
    if (w->i < w->birth_count) {
        *index = w->births[w->i++];
        return 1;
    }
    return 0;
}

/* 1 where none of the section's units is chosen. */
static inline int tn_none_chosen(const tn_section *s, const uint8_t *chosen)
{
    for (size_t i = 0; i < s->unit_count; i++)
        if (chosen[i])
            return 0;
    return 1;
}

static inline uint64_t tn_unit_bytes(const tn_unit *u, uint64_t bytes)
{
    return tn_round_up(bytes, tn_native_alignment(u->family, bytes));
}

#endif
