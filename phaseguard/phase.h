/* In which phase a process is: Loading, Planning, Serving, and forward only, but for a swap: Serving re-entered as Planning, which ends
 * when Serving is reached again. A tn_phase_state is one word, owned by whoever embeds it; zeroed memory is Loading. Any thread may
 * move it and read it; of two that move it at once each is told what its own move was. */
#ifndef TENURE_PHASEGUARD_PHASE_H
#define TENURE_PHASEGUARD_PHASE_H

#include <stdint.h>

#include "ledger/journal_format.h"

typedef struct tn_phase_state {
    uint32_t word; /* bits 0-1 the phase, bit 2 a swap is open, from bit 3 on the number of swaps; atomic */
} tn_phase_state;

typedef enum tn_phase_move {
    TN_MOVE_NONE = 0,   /* it is in that phase already */
    TN_MOVE_FORWARD,
    TN_MOVE_SWAP_BEGIN, /* Serving to Planning */
    TN_MOVE_SWAP_END,   /* and back to Serving */
    TN_MOVE_BACKWARD,   /* refused: to Loading from anywhere */
    TN_MOVE_INVALID,    /* refused: no phase */
} tn_phase_move;

typedef struct tn_phase_moved {
    tn_phase_move move;
    uint32_t from;
    uint32_t swap; /* which swap this begins or ends, from 1; else 0 */
} tn_phase_moved;

/* Moves the state to `to` (TN_PHASE_*) where that is allowed. */
tn_phase_moved tn_phase_set(tn_phase_state *s, uint32_t to);

static inline uint32_t tn_phase_of(const tn_phase_state *s)
{
    return __atomic_load_n(&s->word, __ATOMIC_RELAXED) & 3u;
}
/* Swaps begun so far. */
static inline uint32_t tn_phase_swaps(const tn_phase_state *s)
{
    return __atomic_load_n(&s->word, __ATOMIC_RELAXED) >> 3;
}

/* Whether going from one to the other is refused. */
int tn_phase_is_backward(uint32_t from, uint32_t to);

/* "loading", "planning", "serving"; NULL for another number. And back: -1 for another word. */
const char *tn_phase_word(uint32_t phase);
int tn_phase_parse(const char *word);
/* Who moved a phase or set a mark (TN_CAUSE_*): "ctl", "api", ...; "unknown" for another number. */
const char *tn_cause_word(uint64_t cause);

#endif
