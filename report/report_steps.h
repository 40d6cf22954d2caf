/* The run in steps: a process's begin, its phases and marks, its end, and what came and went between them. Kept by a watcher of the
 * replay; owned by the report. The steps of all processes stand in one array in the order of the replay, each process's own
 * in the order of their times. One thread. */
#ifndef TENURE_REPORT_REPORT_STEPS_H
#define TENURE_REPORT_REPORT_STEPS_H

#include "report/report_watch.h"

typedef enum tn_step_type { TN_STEP_BEGIN, TN_STEP_PHASE, TN_STEP_MARK, TN_STEP_END } tn_step_type;

/* What one row gained and lost. */
typedef struct tn_step_change {
    uint32_t row;
    int64_t backed;        /* bytes that came less bytes that went */
    int64_t blocks;
    uint64_t came, went;   /* blocks */
} tn_step_change;

/* One place at a step. */
typedef struct tn_step_place {
    uint32_t place;
    uint64_t live;         /* backed bytes of this process there: the kinds that are in a device's sum; of the host the pinned ones */
    uint64_t used;         /* the device's used bytes as read at the step */
    int has_used;
} tn_step_place;

typedef struct tn_step {
    uint32_t process;
    tn_step_type type;
    uint8_t phase;         /* from here on */
    uint8_t untaken;       /* the process never took the command: it was found in its control block */
    uint64_t cause;        /* TN_CAUSE_* */
    uint64_t swap;         /* which swap this phase begins or ends, from 1; else 0 */
    const char *name;      /* of a mark; NULL where its text was dropped */
    uint64_t at_ns;        /* as tn_moment.ns */
    tn_step_place *places;
    size_t place_count;
    tn_step_change *changes; /* since the process's step before, by row in rising order */
    size_t change_count;
} tn_step;

typedef struct tn_steps {
    tn_step *steps;
    size_t count, capacity;
    struct tn_steps_process *processes;
} tn_steps;

extern const tn_watcher tn_steps_watcher;

/* A running sum of changes by row. Zeroed memory is an empty one. */
typedef struct tn_step_sum {
    tn_step_change *rows; /* [row_count]; rows that no step changed hold zeros */
    size_t row_count;
    uint32_t *touched;
    size_t touched_count;
} tn_step_sum;

TN_MUST_USE tn_error tn_step_sum_begin(tn_step_sum *sum, const tn_report *report);
void tn_step_sum_add(tn_step_sum *sum, const tn_step *step);
void tn_step_sum_clear(tn_step_sum *sum);
void tn_step_sum_free(tn_step_sum *sum);

/* What a step, or several one after the other, added to one owner or site; the largest gain first. */
typedef struct tn_step_line {
    uint32_t site;         /* index in report->sites; TN_NO_INDEX for the line of an owner */
    const char *owner;
    int64_t backed, blocks;
    uint64_t came;
} tn_step_line;

/* The lines of a sum, of places that are devices and of kinds in a device's sum (or of all, pinned memory too, with `all`). Free
 * *out; rows that gained and lost nothing have no line. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_step_lines(const tn_report *report, const tn_step_sum *sum, int by_owner, int all, tn_step_line **out, size_t *count);

/* The place of a step, or NULL; of no step (NULL), too. */
const tn_step_place *tn_step_place_of(const tn_step *step, uint32_t place);

#endif
