/* Contexts and modules: who is current where, and what a destroyed context takes with it. */
#include <stdatomic.h>

#include "shim/identity.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

static void context_event(tn_hook_frame *f, int what, tn_context c, void *handle)
{
    tn_event *e = tn_event_new(f, rec_stamp(f));
    if (!e) return;
    e->kind = (uint8_t)what;
    e->ctx = c.number;
    e->device = c.device;
    e->addr = (uint64_t)handle;
    e->site = what == TN_CTX_SET || what == TN_CTX_PUSH || what == TN_CTX_POP ? TN_SITE_NONE : tn_frame_site(f);
    tn_journal_commit(e, TN_EV_CONTEXT);
}

void rec_ctx(tn_hook_frame *f, int r, int what, void *context, int device)
{
    if (r != 0 || !context || f->nested) return;
    /* A new context under a handle that is known still: its end was not seen. (A green context's is asked for again and again.) */
    if (what == TN_CTX_CREATE && device != TN_DEV_UNKNOWN) tn_context_gone(context);
    if (what == TN_CTX_CREATE) tn_context_made(context);
    if (what == TN_CTX_PRIMARY_RETAIN) tn_context_set_primary(device, context);
    tn_context c = tn_context_of(f, context, device);
    if (what == TN_CTX_CREATE && device == TN_DEV_UNKNOWN) tn_serve_marks_context_green(c.number, c.device);
    context_event(f, what, c, context);
    rec_ctx_made(f, device, context);
}

/* Drops from the ledger what natively dies with a context: everything of it but stream-ordered blocks and VMM
 * handles, which live on. */
static int dies_with(const tn_entry *e, void *context)
{
    return e->ctx == *(const uint32_t *)context && e->kind != TN_KIND_ASYNC && e->kind != TN_KIND_POOL &&
           e->kind != TN_KIND_VMM_HANDLE;
}

static void swept(const tn_entry *e, void *context)
{
    (void)context;
    if (e->kind == TN_KIND_MANAGED) rec_charge_managed(-1);
}

/* The handle is another context's by now, or nobody's, where the context has left before (tn_context_leaves()). */
static void context_dies(tn_hook_frame *f, int what, void *handle, tn_context c)
{
    f->thread->told++;
    context_event(f, what, c, handle);
    tn_ledger_sweep(dies_with, swept, &c.number);
    if (tn_serving) tn_serve_context_ended(c.number);
    tn_serve_marks_context_ended(c.number);
    rec_functions_gone(); /* those of its modules, and what its libraries' kernels had loaded there */
}

static void known_context_dies(tn_hook_frame *f, int what, void *handle)
{
    context_dies(f, what, handle, tn_context_of(f, handle, TN_DEVICE_NONE));
    tn_context_gone(handle);
}

static _Atomic uint64_t reset_devices; /* a bit each: the primary context was reset, so the next retain makes it anew, under its old handle */

/* A primary context that is retained once more is not made. */
void rec_ctx_primary_retain_begin(tn_hook_frame *f, int device)
{
    unsigned flags;
    int active = 0;
    if (device < 0 || device >= 64) return;
    if (tn_context_primary(device) && !(atomic_fetch_and(&reset_devices, ~((uint64_t)1 << device)) >> device & 1)) return;
    if (tn_real.cuDevicePrimaryCtxGetState && tn_real.cuDevicePrimaryCtxGetState(device, &flags, &active) == 0 && active) return;
    rec_ctx_begin(f, device);
}

void rec_ctx_primary_begin(tn_hook_frame *f, int device)
{
    rec_begin(f);
    f->handle = tn_context_primary(device);
    if (!f->nested) tn_serve_marks_context_ends(tn_context_number(f->handle));
    rec_ctx_end_begin(f, f->handle, device);
}

/* A release that was not the last one leaves the context active; the state query says which it was. It makes no
 * context and is not a memory call. */
void rec_ctx_primary(tn_hook_frame *f, int r, int what, int device)
{
    if (!f->handle || f->nested) return;
    if (r != 0) {
        tn_serve_marks_context_stays(tn_context_number(f->handle), f->handle);
        rec_ctx_end_done(f, 1, f->handle);
        return;
    }
    if (what == TN_CTX_PRIMARY_RELEASE) {
        unsigned flags;
        int active = 1;
        if (!tn_real.cuDevicePrimaryCtxGetState || tn_real.cuDevicePrimaryCtxGetState(device, &flags, &active) != 0) active = 1;
        if (active) {
            tn_serve_marks_context_stays(tn_context_number(f->handle), f->handle);
            context_event(f, what, tn_context_of(f, f->handle, device), f->handle);
            rec_ctx_end_done(f, 1, f->handle);
            return;
        }
    }
    /* The last release ends it; its handle may belong to another context then. A reset context keeps its own. */
    if (what == TN_CTX_PRIMARY_RELEASE) tn_context_set_primary(device, NULL);
    else if (device >= 0 && device < 64) atomic_fetch_or(&reset_devices, (uint64_t)1 << device);
    known_context_dies(f, what == TN_CTX_PRIMARY_RELEASE ? TN_CTX_DESTROY : what, f->handle);
    rec_ctx_end_done(f, 0, NULL);
}

void rec_ctx_destroy_begin(tn_hook_frame *f, void *context)
{
    rec_begin(f);
    if (!f->nested) tn_serve_marks_context_ends(tn_context_number(context));
    rec_ctx_end_begin(f, context, -1);
    if (f->nested) return;
    int made;
    tn_context c = tn_context_leaves(context, &made);
    f->handle = (void *)((uint64_t)made << 63 | (uint64_t)c.number << 8 | c.device);
}

void rec_ctx_destroy(tn_hook_frame *f, int r, void *context)
{
    tn_context c = {(uint32_t)((uint64_t)f->handle >> 8), (uint8_t)(uint64_t)f->handle};
    if (r == 0 && context && !f->nested) {
        context_dies(f, TN_CTX_DESTROY, context, c);
    } else if (!f->nested) {
        tn_context_back(context, c, (uint64_t)f->handle >> 63);
        tn_serve_marks_context_stays(c.number, context);
    }
    rec_ctx_end_done(f, r != 0, context);
}

void rec_ctx_reset(tn_hook_frame *f, void *context) { known_context_dies(f, TN_CTX_RESET, context); }

void rec_ctx_current(tn_hook_frame *f, int r, int what)
{
    CUcontext c = NULL;
    if (r != 0 || f->nested || !tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&c) != 0) return;
    tn_context now = tn_context_of(f, c, -1);
    if (now.number == f->thread->context) return; /* frameworks set the same context at every call */
    f->thread->context = now.number;
    context_event(f, what, now, c);
}

void rec_module(tn_hook_frame *f, int r, int what, void *handle)
{
    if (r != 0 || !handle) return;
    tn_context c = tn_context_current(f);
    tn_event *e = tn_event_new(f, rec_stamp(f));
    if (!e) return;
    e->kind = (uint8_t)what;
    e->ctx = c.number;
    e->device = c.device;
    e->addr = (uint64_t)handle;
    e->site = tn_frame_site(f);
    tn_journal_commit(e, TN_EV_MODULE);
    if (what == TN_MODULE_UNLOAD || what == TN_LIBRARY_UNLOAD) rec_functions_gone();
}
