/* The phases' order, and their names. */
#include "phaseguard/phase.h"

#include <stddef.h>
#include <string.h>

#define IN_SWAP 4u
#define SWAP_UNIT 8u

static tn_phase_moved moved_to(uint32_t word, uint32_t to, uint32_t *next)
{
    tn_phase_moved m = {.from = word & 3u};
    *next = (word & ~3u) | to;
    if (to > TN_PHASE_SERVING) {
        m.move = TN_MOVE_INVALID;
    } else if (to == m.from) {
        m.move = TN_MOVE_NONE;
    } else if (m.from == TN_PHASE_SERVING && to == TN_PHASE_PLANNING) {
        m.move = TN_MOVE_SWAP_BEGIN;
        *next = ((word & ~7u) + SWAP_UNIT) | IN_SWAP | to;
        m.swap = *next / SWAP_UNIT;
    } else if (to < m.from) {
        m.move = TN_MOVE_BACKWARD;
    } else if (to == TN_PHASE_SERVING && word & IN_SWAP) {
        m.move = TN_MOVE_SWAP_END;
        *next = (word & ~7u) | to;
        m.swap = word / SWAP_UNIT;
    } else {
        m.move = TN_MOVE_FORWARD;
    }
    return m;
}

tn_phase_moved tn_phase_set(tn_phase_state *s, uint32_t to)
{
    uint32_t word = __atomic_load_n(&s->word, __ATOMIC_RELAXED), next;
    for (;;) {
        tn_phase_moved m = moved_to(word, to, &next);
        if (m.move == TN_MOVE_NONE || m.move >= TN_MOVE_BACKWARD)
            return m;
        if (__atomic_compare_exchange_n(&s->word, &word, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return m;
    }
}

int tn_phase_is_backward(uint32_t from, uint32_t to)
{
    uint32_t next;
    return moved_to(from & 3u, to, &next).move >= TN_MOVE_BACKWARD;
}

static const char *const phases[] = {"loading", "planning", "serving"};
static const char *const causes[] = {"unknown", "ctl", "api", "line", "port", "http", "call", "quiet", "nvtx", "soak"};

const char *tn_phase_word(uint32_t phase)
{
    return phase < sizeof phases / sizeof phases[0] ? phases[phase] : NULL;
}

int tn_phase_parse(const char *word)
{
    for (int i = 0; i < (int)(sizeof phases / sizeof phases[0]); i++)
        if (strcmp(word, phases[i]) == 0)
            return i;
    return -1;
}

const char *tn_cause_word(uint64_t cause)
{
    return causes[cause < sizeof causes / sizeof causes[0] ? cause : 0];
}
