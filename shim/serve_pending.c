#include "shim/serve_pending.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/pages.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

#define PLACES 256u /* in a part of the table; another part comes where all are taken */
#define SWEPT 4u    /* places that each free looks at, so that what nobody waits for leaves the table too; divides PLACES */
#define WORDS (sizeof(tn_entry) / sizeof(uint64_t))

enum { FREE = 0, CLAIMED, PENDS };

/* Read without a lock: `turn` says whether what was read belongs together. */
typedef struct pending {
    _Atomic uint64_t turn;  /* the state in the lowest two bits; rises by 4 with each block */
    _Atomic uint64_t words[WORDS], queue, sequence;
    _Atomic(CUevent) event; /* stays with the place, for its next block of the same context */
    _Atomic uint32_t ctx;   /* the stream's and the event's */
} pending;

typedef struct part {
    pending places[PLACES];
    _Atomic(struct part *) next; /* a part that has come stays */
} part;

static part first;
static _Atomic(part *) lately = &first; /* where a place was found */
static _Atomic unsigned parts = 1, hand;
_Atomic int tn_serve_pending_count;

static unsigned state_of(uint64_t turn) { return (unsigned)(turn & 3); }

/* From `turn` to FREE, once. */
static void end(pending *p, uint64_t turn)
{
    if (atomic_compare_exchange_strong(&p->turn, &turn, (turn & ~(uint64_t)3) + 4 + FREE)) atomic_fetch_sub(&tn_serve_pending_count, 1);
}

static int read_place(pending *p, uint64_t *turn, tn_entry *block, tn_work_mark *mark, CUevent *event)
{
    uint64_t words[WORDS];
    *turn = atomic_load(&p->turn);
    if (state_of(*turn) != PENDS) return 0;
    for (unsigned i = 0; i < WORDS; i++) words[i] = atomic_load_explicit(&p->words[i], memory_order_acquire);
    mark->queue = atomic_load_explicit(&p->queue, memory_order_acquire);
    mark->sequence = atomic_load_explicit(&p->sequence, memory_order_acquire);
    *event = atomic_load_explicit(&p->event, memory_order_acquire);
    memcpy(block, words, sizeof *block);
    return atomic_load(&p->turn) == *turn;
}

static int is_covered(const tn_entry *block, tn_work_mark mark)
{
    tn_work work = tn_marks_work_table(tn_serving_marks, block->ctx);
    return work.table->done(work.self, mark);
}

static int is_through(const tn_hook_frame *f, const tn_entry *block, tn_work_mark mark, CUevent event)
{
    if (is_covered(block, mark)) return 1;
    if (f->nested || !event || !tn_capture_gate_wait()) return 0;
    int through = tn_real.cuEventQuery(event) == CUDA_SUCCESS;
    tn_capture_gate_waited();
    return through;
}

int tn_serve_pending_look(uint64_t address, tn_entry *block)
{
    for (part *of = &first; of; of = atomic_load(&of->next))
        for (unsigned i = 0; i < PLACES; i++) {
            uint64_t turn;
            tn_work_mark mark;
            CUevent event;
            if (!read_place(&of->places[i], &turn, block, &mark, &event) || address - block->addr >= block->bytes) continue;
            if (!is_covered(block, mark)) return 1;
            end(&of->places[i], turn);
        }
    return 0;
}

/* Makes the place's event where it has none of that context, in which it must be current, and records it. */
static int record(pending *p, uint32_t ctx, void *stream)
{
    CUevent event = atomic_load(&p->ctx) == ctx ? atomic_load(&p->event) : NULL;
    if (!event && (tn_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != 0)) return 0;
    atomic_store(&p->event, event);
    atomic_store(&p->ctx, ctx);
    return tn_real.cuEventRecord(event, stream) == 0;
}

/* The next few places, whoever's: who is through leaves. The driver is asked about events of this context, which the caller uses, alone: another's
 * may be going. */
static void sweep(const tn_hook_frame *f, uint32_t ctx)
{
    unsigned at = atomic_fetch_add(&hand, SWEPT) % (atomic_load(&parts) * PLACES);
    part *of = &first;
    for (unsigned n = at / PLACES; n; n--) of = atomic_load(&of->next);
    for (unsigned i = 0; i < SWEPT; i++) {
        pending *p = &of->places[at % PLACES + i];
        uint64_t turn;
        tn_entry block;
        tn_work_mark mark;
        CUevent event;
        int is_ours = atomic_load(&p->ctx) == ctx; /* before the rest: it stays so as long as the context is there */
        if (read_place(p, &turn, &block, &mark, &event) && is_through(f, &block, mark, is_ours ? event : NULL)) end(p, turn);
    }
}

/* A free place of the part whose event, if it has had one, is of this context. */
static pending *claim_in(part *of, uint32_t ctx, uint64_t *turn)
{
    for (unsigned i = 0; i < PLACES; i++) {
        pending *p = &of->places[i];
        uint64_t now = atomic_load(&p->turn);
        uint32_t event_of = atomic_load(&p->ctx);
        if (state_of(now) != FREE || (event_of && event_of != ctx)) continue;
        *turn = (now & ~(uint64_t)3) + CLAIMED;
        if (atomic_compare_exchange_strong(&p->turn, &now, *turn)) return p;
    }
    return NULL;
}

static pending *claim(uint32_t ctx, uint64_t *turn)
{
    pending *p = claim_in(atomic_load(&lately), ctx, turn);
    for (part *of = &first; !p;) {
        p = claim_in(of, ctx, turn);
        if (p) {
            atomic_store(&lately, of);
            break;
        }
        part *next = atomic_load(&of->next);
        if (!next) {
            part *made = tn_pages(sizeof *made);
            if (!made) return NULL;
            if (atomic_compare_exchange_strong(&of->next, &next, made)) {
                atomic_fetch_add(&parts, 1); /* after it can be found */
                next = made;
            } else {
                tn_pages_free(made, sizeof *made);
            }
        }
        of = next;
    }
    return p;
}

static void say_forgotten(void)
{
    static _Atomic int said;
    if (!atomic_exchange(&said, 1))
        tn_coverage(TN_COV_NOTE, "a served plain block, freed in the order of a stream, was unknown at once: no event could be recorded behind it");
}

void tn_serve_pending_add(tn_hook_frame *f, const tn_entry *block, void *stream, tn_work_mark mark)
{
    uint64_t turn, words[WORDS];
    CUcontext of = NULL, current = NULL, popped;
    if (mark.queue == TN_WORK_NO_QUEUE || is_covered(block, mark)) return; /* nothing is before it in the stream */
    uint32_t ctx = tn_context_of_stream(f, stream).number;
    if (!stream) stream = f->ptds ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    sweep(f, ctx);
    pending *p = ctx && tn_real.cuEventCreate && tn_real.cuEventRecord && tn_real.cuEventQuery ? claim(ctx, &turn) : NULL;
    if (!p) {
        say_forgotten();
        return;
    }
    /* The event is of the stream's context, which need not be the current one. */
    int push = tn_context_current(f).number != ctx && tn_real.cuStreamGetCtx && tn_real.cuCtxPushCurrent_v2 && tn_real.cuCtxPopCurrent_v2 &&
               tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&current) == 0 && tn_real.cuStreamGetCtx(stream, &of) == 0 && of != current;
    int pushed = push && tn_real.cuCtxPushCurrent_v2(of) == 0;
    int recorded = pushed == push && record(p, ctx, stream);
    if (pushed) (void)tn_real.cuCtxPopCurrent_v2(&popped);
    if (!recorded) {
        say_forgotten();
        atomic_store(&p->turn, turn - CLAIMED + FREE);
        return;
    }
    memcpy(words, block, sizeof words);
    for (unsigned i = 0; i < WORDS; i++) atomic_store_explicit(&p->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&p->queue, mark.queue, memory_order_relaxed);
    atomic_store_explicit(&p->sequence, mark.sequence, memory_order_relaxed);
    atomic_fetch_add(&tn_serve_pending_count, 1);
    atomic_store(&p->turn, turn - CLAIMED + PENDS);
}

void tn_serve_pending_context_ended(uint32_t ctx)
{
    for (part *of = &first; ctx && of; of = atomic_load(&of->next))
        for (unsigned i = 0; i < PLACES; i++) {
            pending *p = &of->places[i];
            tn_entry block;
            tn_work_mark mark;
            CUevent event;
            uint64_t turn;
            if (read_place(p, &turn, &block, &mark, &event) && (block.ctx == ctx || atomic_load(&p->ctx) == ctx)) end(p, turn);
            if (atomic_load(&p->ctx) != ctx) continue;
            atomic_store(&p->event, NULL);
            atomic_store(&p->ctx, 0);
        }
}
