/* Readings at phases, marks and now and then: the journal's side of them. */
#include "shim/record_charge.h"

#include "shim/identity.h"
#include "shim/real.h"

void rec_reconcile_in(tn_hook_frame *f, int cause)
{
    size_t free_bytes, total;
    tn_context c = tn_context_current(f);
    if (f->nested || !c.number || !tn_real.cuMemGetInfo_v2 || tn_real.cuMemGetInfo_v2(&free_bytes, &total) != 0) return;
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = TN_CHARGE_READING;
    e->device = c.device;
    e->ctx = c.number;
    e->addr = (uint64_t)cause;
    e->bytes = e->aux = total - free_bytes;
    tn_journal_commit(e, TN_EV_CHARGE);
}

void rec_reconcile(int cause)
{
    tn_hook_frame f;
    if (!tn_own_enter(&f)) return;
    rec_reconcile_in(&f, cause);
    tn_own_leave(&f);
}
