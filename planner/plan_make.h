/* From what was recorded to a plan. The trace and all that the options point to are borrowed for the call. One thread. */
#ifndef TENURE_PLANNER_PLAN_MAKE_H
#define TENURE_PLANNER_PLAN_MAKE_H

#include "planner/plan.h"
#include "planner/section.h"

/* Names for a site's frames, asked for each row: appends to the row by tn_plan_add_frame(). NULL: modules and offsets alone. */
typedef void (*tn_plan_namer)(void *user, tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row);
/* Charges of a section, likewise. */
typedef void (*tn_plan_charger)(void *user, tn_plan *plan, const tn_section *section, tn_plan_section *out);

/* Which memory query sizes the largest pool: the one that the record shows (zero), none, or the `ordinal`-th of the site with that key. */
typedef enum tn_sizing_choice { TN_SIZING_AS_SEEN = 0, TN_SIZING_NONE, TN_SIZING_GIVEN } tn_sizing_choice;
typedef struct tn_plan_sizing_option { tn_sizing_choice choice; uint32_t ordinal; uint64_t key; } tn_plan_sizing_option;

typedef struct tn_plan_options {
    uint64_t budget;
    uint64_t steps;            /* of the search for offsets */
    uint32_t classes_an_octave; /* 0: chosen */
    uint32_t headroom;         /* percent, for sites that vary and for T2; 0: as seen */
    uint64_t gap;              /* that the trace's blocks were given (gap.h), for the plan to say so */
    tn_plan_sizing_option sizing;
    tn_discipline (*rule_of)(void *user, const tn_trace *trace, uint32_t site, const char **rule);
    void (*room_of)(void *user, const tn_trace *trace, uint32_t site, tn_room *room);
    tn_plan_namer namer;
    tn_plan_charger charger;
    void *user;
} tn_plan_options;

/* The plan for a trace; runs of one section give one layout that holds each of them. On failure *out is NULL and `message` one sentence:
 * TN_E_NOMEM, TN_E_EMPTY (no allocation in it), TN_E_ARGUMENT (no run has the given sizing query). */
TN_MUST_USE tn_error tn_plan_make(const tn_trace *trace, const tn_plan_options *options, tn_plan **out, char message[TN_PLAN_MESSAGE]);

#endif
