/* The slots that instances need, and when each is in use: what is laid out. For layout.c; owned by its user. */
#ifndef TENURE_PLANNER_SLOTS_H
#define TENURE_PLANNER_SLOTS_H

#include "planner/layout.h"

#define TN_HEADROOM_ONE_SIZE UINT32_MAX /* slots of one size for what comes with requests, and nothing else of headroom */

typedef struct tn_use { uint64_t begin, end; uint32_t slot; } tn_use; /* half-open, on one clock: instance after instance */
typedef struct tn_slot_pair { uint32_t a, b; } tn_slot_pair;

typedef struct tn_slots {
    tn_slot *at; size_t count;
    tn_use *uses; size_t use_count;        /* by slot, then time */
    tn_slot_pair *pairs; size_t pair_count; /* in use together by streams' order; with `by_pairs`, else none */
    int by_pairs;   /* uses alone do not say who may share: several streams */
    uint64_t live_peak, live_exact;
} tn_slots;

/* `per_octave`: 1 .. 64 size classes an octave, UINT32_MAX one for each size. `headroom`: as in tn_layout_options. `clean`: blocks end when their
 * memory may serve another, not at their free. TN_E_NOMEM, TN_E_LIMIT: more than TN_LAYOUT_SLOTS_MAX. */
TN_MUST_USE tn_error tn_slots_make(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint32_t headroom, int clean, tn_slots *out);
void tn_slots_free(tn_slots *s);

#endif
