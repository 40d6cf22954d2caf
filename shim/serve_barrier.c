#include "shim/serve_barrier.h"

#include <stdatomic.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

#define CONTEXTS 64u /* that are served (serve_places.c) */

static _Atomic(CUevent) events[CONTEXTS]; /* recorded again and again: what counts is where */

void tn_serve_barrier(tn_hook_frame *f, void *stream)
{
    if (stream != CU_STREAM_LEGACY && (stream || f->ptds)) return;
    if (!tn_marks_is_barrier(tn_serving_marks, tn_stream_number(f, stream))) return;
    uint32_t ctx = tn_context_current(f).number;
    CUevent event = ctx && ctx < CONTEXTS ? atomic_load(&events[ctx]) : NULL, there = NULL;
    int made = !event && tn_real.cuEventCreate && tn_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == 0;
    int kept = made && ctx && ctx < CONTEXTS && atomic_compare_exchange_strong(&events[ctx], &there, event);
    if (!event || !tn_real.cuEventRecord || tn_real.cuEventRecord(event, CU_STREAM_LEGACY) != 0)
        tn_coverage(TN_COV_NOTE, "a served free in the legacy default stream orders nothing: no event could be recorded there");
    if (made && !kept && tn_real.cuEventDestroy_v2) (void)tn_real.cuEventDestroy_v2(event);
}

void tn_serve_barrier_context_ended(uint32_t ctx)
{
    if (ctx < CONTEXTS) atomic_store(&events[ctx], NULL);
}
