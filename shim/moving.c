/* The lines of the threads. */
#include "shim/moving.h"

#include "ledger/journal.h"
#include "shim/pages.h"

#define LINES 1024u

_Atomic uint64_t tn_unrecorded_begun, tn_unrecorded_ended;

static tn_moving *lines;
static _Atomic uint32_t used; /* lines that were ever claimed are below this */

int tn_moving_init(void)
{
    lines = tn_pages(LINES * sizeof *lines);
    return lines ? 0 : -1;
}

tn_moving *tn_moving_claim(void)
{
    if (!lines) return NULL;
    for (uint32_t i = 1; i < LINES; i++) {
        uint32_t high = atomic_load(&used), free_line = 0;
        if (!atomic_compare_exchange_strong(&lines[i].owned, &free_line, 1)) continue;
        while (high <= i && !atomic_compare_exchange_weak(&used, &high, i + 1)) {
        }
        return &lines[i];
    }
    uint32_t none = 0;
    atomic_compare_exchange_strong(&used, &none, 1);
    return &lines[0]; /* shared by all that found none */
}

void tn_moving_release(tn_moving *m)
{
    if (m && m != lines) atomic_store(&m->owned, 0);
}

int tn_moving_others(const tn_moving *own, uint64_t *begun)
{
    uint64_t sum = 0;
    int quiet = lines != NULL;
    uint32_t high = atomic_load(&used);
    for (uint32_t i = 0; lines && i < high; i++) {
        if (&lines[i] == own && i != 0) continue;
        uint32_t ended = atomic_load(&lines[i].ended), began = atomic_load(&lines[i].begun);
        quiet &= ended == began;
        sum += began;
    }
    *begun = sum;
    return quiet;
}

/* Some thousand cycles. The longest that was seen of a store buffer are some hundreds (56 stores that all miss). */
#define SETTLE_TICKS 1500u /* half a microsecond, some thirty times a second */

void tn_moving_settle(void)
{
#if defined(__x86_64__) /* elsewhere every mark is a locked instruction */
    for (uint64_t from = tn_stamp(); tn_stamp() - from < SETTLE_TICKS;) {
    }
#endif
    atomic_thread_fence(memory_order_seq_cst);
}
