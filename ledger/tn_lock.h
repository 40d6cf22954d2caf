/* The lock of the shim and the ledger: one word, a compare-and-swap when it is free, a futex wait when it
 * is not. A lock belongs to the structure it stands in; zeroed memory is an unlocked lock of no rank. It is not
 * recursive and must not be taken in a signal handler that may have interrupted its holder (`nested` calls
 * take none). With TN_DEBUG, taking a lock whose rank is lower than one already held traps. */
#ifndef TENURE_LEDGER_TN_LOCK_H
#define TENURE_LEDGER_TN_LOCK_H

#include <stdint.h>

/* Locks are taken in rising order; equal ranks only where the comment says in which order. */
typedef enum tn_lock_rank {
    TN_LOCK_NONE = 0,          /* not checked */
    TN_LOCK_LEDGER = 100,      /* growth of the ledger's tables */
    TN_LOCK_LEDGER_SLABS = 110, /* and its supply of nodes */
    TN_LOCK_JOURNAL_RECORDS = 200,
    TN_LOCK_JOURNAL_GROWTH = 210,
} tn_lock_rank;

typedef struct tn_lock {
    uint32_t word; /* 0 free, 1 held, 2 held and somebody may be waiting */
    uint32_t rank; /* tn_lock_rank */
} tn_lock;

#define TN_LOCK_INIT(r) { 0, (uint32_t)(r) }

/* The slow halves, and the debug build's bookkeeping. */
void tn_lock_wait(tn_lock *l);
void tn_lock_wake(tn_lock *l);
void tn_lock_note_taken(const tn_lock *l);
void tn_lock_note_released(const tn_lock *l);

static inline int tn_lock_try(tn_lock *l)
{
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&l->word, &expected, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
#ifdef TN_DEBUG
    tn_lock_note_taken(l);
#endif
    return 1;
}

static inline void tn_lock_take(tn_lock *l)
{
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&l->word, &expected, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        tn_lock_wait(l);
#ifdef TN_DEBUG
    tn_lock_note_taken(l);
#endif
}

static inline void tn_lock_release(tn_lock *l)
{
#ifdef TN_DEBUG
    tn_lock_note_released(l);
#endif
    if (__atomic_exchange_n(&l->word, 0u, __ATOMIC_RELEASE) == 2u)
        tn_lock_wake(l);
}

#endif
