/* What counts while a process serves, told from its events alone: the rules that the guard in the process and the report share. A
 * tn_serving_thread belongs to one thread of the recorded process and is fed that thread's events in their order; zeroed memory is a
 * thread of which nothing is known. Pure: no clock, no lock, no memory. */
#ifndef TENURE_PHASEGUARD_SERVING_H
#define TENURE_PHASEGUARD_SERVING_H

#include <stdint.h>

#include "ledger/journal_format.h"

typedef enum tn_serving_what {
    TN_SERVING_NOTHING = 0,
    TN_SERVING_ALLOCATION, /* a call that reached the driver and can take memory: also a hit in a pool, also a refused one */
    TN_SERVING_RETRY,      /* one that follows the refusal of this thread's last: the two are one allocation */
    TN_SERVING_POOL,       /* a pool took more from the device */
    TN_SERVING_GRAPH,      /* the memory of graphs grew */
    TN_SERVING_SERVED,     /* an allocation that a tier answered: it never reached the driver */
    TN_SERVING_CHARGE,     /* anything else that takes device memory in no allocation's name grew */
} tn_serving_what;

typedef struct tn_serving_thread {
    uint64_t refused_bytes; /* of the refused request; what retries it asks for no more */
    uint8_t refused;        /* its last allocation was refused */
    uint8_t kind, device;
} tn_serving_thread;

/* Whether allocations of this kind are counted at all. */
static inline int tn_serving_counts_kind(uint8_t kind)
{
    return kind != TN_KIND_NONE && kind != TN_KIND_GRAPH && kind < TN_KIND_IMPORTED;
}

/* The tier (TN_ROUTE_*) that served an allocation, or whose memory an ARENA event is of; 0: the driver's. */
static inline unsigned tn_serving_tier(const tn_event *e)
{
    int can = e->type == TN_EV_ARENA || (e->type == TN_EV_ALLOC && (e->kind == TN_KIND_DEVICE || e->kind == TN_KIND_ASYNC || e->kind == TN_KIND_PINNED ||
                                                                  e->kind == TN_KIND_VMM_HANDLE));
    return can ? tn_route_tier(tn_route_of(e->aux2)) : 0;
}

/* What the event is, and what the thread's next one will be held against. Fed in every phase: a retry may come after the flip. Memory
 * that a graph owns is counted where it grows, imported memory is another's, and registering is counted, since it reaches the driver. */
tn_serving_what tn_serving_event(tn_serving_thread *t, const tn_event *e);

/* What one pool, or the graphs of one device, had reserved when last read; zeroed memory is one that was never read. */
typedef struct tn_serving_held { uint64_t reserved; } tn_serving_held;

/* The same for a reading of a pool (TN_CHARGE_POOL, TN_CHARGE_GRAPH_MEMORY), held against the one before of the same pool. */
tn_serving_what tn_serving_pool(tn_serving_held *held, const tn_event *e);

/* Counts of one site, tier or process while Serving. */
typedef struct tn_serving_counts {
    uint64_t driver_allocations; /* first uses included, retries not */
    uint64_t first_uses;         /* of a site that had made none before, in any phase */
    uint64_t retries, refused;   /* refused: calls, of allocations and retries */
    uint64_t requested_bytes;    /* of granted calls */
    uint64_t served_allocations; /* answered by a tier: never in a record */
    uint64_t pool_growths, graph_growths, charge_growths;
} tn_serving_counts;

/* Adds an event that tn_serving_event() called `what`; `first` where its site had allocated nothing before. Not atomic. */
void tn_serving_add(tn_serving_counts *c, tn_serving_what what, const tn_event *e, int first);

#endif
