#include "shim/serve_barrier.h"

#include <stdatomic.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

#define CONTEXTS 64u /* that keep their event; others make one each time */

/* Recorded again and again: what counts is where. By the remainder of the context's number. */
static struct { _Atomic uint32_t ctx; _Atomic(CUevent) event; } kept[CONTEXTS];

void tn_serve_barrier(tn_hook_frame *f, void *stream)
{
    if (stream != CU_STREAM_LEGACY && (stream || f->ptds)) return;
    if (!tn_marks_is_barrier(tn_serving_marks, tn_stream_number(f, stream))) return;
    uint32_t ctx = tn_context_current(f).number, nobody = 0, at = ctx % CONTEXTS;
    int is_ours = ctx && (atomic_compare_exchange_strong(&kept[at].ctx, &nobody, ctx) || nobody == ctx);
    CUevent event = is_ours ? atomic_load(&kept[at].event) : NULL, there = NULL;
    int made = !event && tn_real.cuEventCreate && tn_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == 0;
    int is_kept = made && is_ours && atomic_compare_exchange_strong(&kept[at].event, &there, event);
    if (!event || !tn_real.cuEventRecord || tn_real.cuEventRecord(event, CU_STREAM_LEGACY) != 0)
        tn_coverage(TN_COV_NOTE, "a served free in the legacy default stream orders nothing: no event could be recorded there");
    if (made && !is_kept && tn_real.cuEventDestroy_v2) (void)tn_real.cuEventDestroy_v2(event);
}

void tn_serve_barrier_context_ended(uint32_t ctx)
{
    if (atomic_load(&kept[ctx % CONTEXTS].ctx) != ctx) return;
    atomic_store(&kept[ctx % CONTEXTS].event, NULL);
    atomic_store(&kept[ctx % CONTEXTS].ctx, 0);
}
