/* Does a plan hold a run? Every request of the run is replayed against the plan's tiers; what finds no room is an excess. A tn_verdict owns its
 * arrays; its indices are into the plan and the trace it was made from. */
#ifndef TENURE_PLANNER_VERIFY_H
#define TENURE_PLANNER_VERIFY_H

#include "planner/match.h"
#include "planner/serve.h"

typedef struct tn_excess {
    uint32_t section;   /* of the plan */
    uint32_t row, process, at; /* in that section; whose event, and its position */
    tn_serve_answer answer;
    uint64_t bytes;     /* asked for */
} tn_excess;

typedef struct tn_verdict_row {
    uint32_t section, row;
    uint64_t excesses, waits, worst;
    tn_serve_answer first;
    uint64_t by_spill[TN_SPILL_COUNT];
    uint64_t largest;  /* the largest request that was too large */
    uint64_t more, more_bytes; /* the most alive at once of those that were too many, or found an arena full: blocks, and bytes at native alignment */
    int in_the_way;    /* it or another had the other's addresses, and it has the fewer bytes of the two */
} tn_verdict_row;

typedef struct tn_verdict {
    uint64_t hand_outs, excesses, waits;
    tn_excess first, worst;     /* where excesses > 0; the first in the order of processes, the worst by bytes short */
    tn_verdict_row *rows; size_t row_count;     /* those with an excess or a wait, or in the way, by section and row */
    struct tn_seen { uint32_t section, row; uint64_t blocks, largest, bytes; } *seen; /* what each matched site really had: most alive at once,
                                                                                         its largest request, and bytes alive at once */
    size_t seen_count;          /* in the order of the plan's rows, section by section */
    uint64_t by_key, by_name;   /* sites matched */
    uint64_t plan_only;         /* rows that no site of the run is */
    uint64_t unplanned, unplanned_bytes; /* sites without a row; the sum of what each had alive at most */
    struct tn_unplanned { uint64_t key, python, bytes, blocks; } *unplanned_sites; /* `unplanned` of them, by key */
    uint64_t native_bytes, native_planned; /* device memory that stays with the driver at its highest: seen, planned; of the section that is most over */
    uint64_t sections;          /* of the run that the plan has */
    char **missing; size_t missing_count; /* what the plan has no section for, a phrase each */
    int incomplete;             /* events of the run were dropped or unreadable */
} tn_verdict;

/* TN_E_NOMEM. `namer` as for tn_match_make. */
TN_MUST_USE tn_error tn_verify(const tn_plan *plan, const tn_trace *run, tn_plan_namer namer, void *user, tn_verdict *out);
void tn_verdict_free(tn_verdict *v);

typedef enum tn_judgement {
    TN_PLAN_HOLDS = 0,
    TN_PLAN_FALLS_SHORT,  /* an excess, or a section of the run that it does not have */
    TN_PLAN_UNCERTAIN     /* events were dropped, and a dropped free makes an excess; or the plan knows no site of the run */
} tn_judgement;

static inline tn_judgement tn_verdict_judge(const tn_verdict *v)
{
    if (v->incomplete || v->by_key + v->by_name == 0)
        return TN_PLAN_UNCERTAIN;
    return v->excesses || v->missing_count ? TN_PLAN_FALLS_SHORT : TN_PLAN_HOLDS;
}

#endif
