/* What ended contexts leave behind. Their plain and pinned memory is gone; their stream-ordered arenas stay as long as a block is live there, which the
 * program may free once more, and would be the device's loss for good: a program that resets its device again and again would run out of it. Frees of
 * other threads find an arena by its context's number, without a lock: so it is first made unfindable, then every thread is waited for. */
#include "shim/charge_reading.h"
#include "shim/quiet.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve_graphs.h"
#include "shim/serve_marks.h"
#include "shim/serve_places_inside.h"

/* ---- the driver's calls for what is left: the context and its stream are gone */

static int free_nothing(unsigned long long address)
{
    (void)address;
    return 0;
}

static int free_nothing_pinned(void *address)
{
    (void)address;
    return 0;
}

static int free_in_no_stream(unsigned long long address, tn_cuda_stream stream)
{
    (void)stream;
    return tn_real.cuMemFree_v2 ? (int)tn_real.cuMemFree_v2((CUdeviceptr)address) : (int)CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- taking apart, by one thread at a time */

static void take_apart(tn_context_place *p)
{
    p->cuda.free = free_nothing;
    p->cuda.host_free = free_nothing_pinned;
    p->cuda.free_async = free_in_no_stream;
    tn_place_destroy(&p->place, 1);
    size_t kept = tn_async_destroy(p->async);
    if (kept) tn_coverage(TN_COV_NOTE, "the driver did not take back a stream-ordered arena of a context that has ended");
    (void)tn_driver_destroy(p->driver);
    p->async = NULL;
    p->driver = NULL;
    for (unsigned i = 0; i < TN_PLACE_PINNED_SETS; i++) {
        (void)tn_pinned_destroy(p->pinned[i]);
        p->pinned[i] = NULL;
    }
    p->is_quiet = 0;
    p->beside = 0;
    atomic_store(&p->state, TN_PLACE_IS_EMPTY);
    atomic_store(&p->ctx, 0);
}

static int may_go(const tn_context_place *p) { return !p->place || !tn_place_has_live(p->place); }

/* Makes those unfindable that may go; how many there are. */
static uint32_t hide(void)
{
    uint32_t hidden = 0;
    for (uint32_t i = 0; i < TN_PLACES; i++)
        for (tn_context_place *p = tn_places_of(i); p; p = atomic_load(&p->next)) {
            if (atomic_load(&p->state) != TN_PLACE_IS_ENDED || p->is_quiet || !atomic_load(&p->ctx) || !may_go(p)) continue;
            atomic_store(&p->ctx, TN_PLACE_LEAVING);
            hidden++;
        }
    return hidden;
}

/* Every thread was outside since: what a call that was under way then has taken there is seen now, and nothing more comes. */
static void settle(int quiet)
{
    for (uint32_t i = 0; i < TN_PLACES; i++)
        for (tn_context_place *p = tn_places_of(i); p; p = atomic_load(&p->next)) {
            if (atomic_load(&p->ctx) != TN_PLACE_LEAVING || p->is_quiet) continue;
            if (!quiet || !may_go(p)) {
                atomic_store(&p->ctx, p->number);
                continue;
            }
            if (p->place) tn_serve_graphs_forget(p->place);
            tn_marks_uncovered(tn_serving_marks, 0, &p->uncovered); /* a block may have been used in any context */
            p->is_quiet = 1;
        }
}

void tn_places_take_apart(tn_hook_frame *f)
{
    static _Atomic int under_way;
    tn_work work = tn_marks_work_table(tn_serving_marks, 0);
    if (atomic_exchange(&under_way, 1)) return;
    if (hide()) settle(tn_quiet_since_now(&f->thread->busy));
    if (tn_capture_gate_wait()) {
        for (uint32_t i = 0; i < TN_PLACES; i++)
            for (tn_context_place *p = tn_places_of(i); p; p = atomic_load(&p->next))
                if (p->is_quiet && tn_work_set_is_clean(&p->uncovered, &work)) take_apart(p);
        tn_capture_gate_waited();
    }
    atomic_store(&under_way, 0);
}
