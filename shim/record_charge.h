/* Readings of what a device has in use, and what of it belongs to no allocation. Process-wide state without locks of ours around
 * CUDA calls; any thread may call, with or without a current context, also while a capture is active: the only CUDA calls made are
 * cuMemGetInfo, context push and pop, graph-memory attributes and, outside captures, pool attributes (tests/gpu/safe_calls.c shows that they
 * harm none). Nothing here creates a context, leaves another one current, changes errno, or runs in a forked child or a destructor. */
#ifndef TENURE_SHIM_RECORD_CHARGE_H
#define TENURE_SHIM_RECORD_CHARGE_H

#include "shim/hook.h"

/* Reads every device on which this process has a context known to be alive and journals a CHARGE event of kind TN_CHARGE_READING each, with
 * `cause` (TN_READ_*) in it. Outside any hook: at a phase change, a mark. A call from inside a hook or from a signal handler within one does
 * nothing: there, rec_reconcile_in(). */
void rec_reconcile(int cause);
/* The same inside the hook of `f`. */
void rec_reconcile_in(tn_hook_frame *f, int cause);

/* ---- around calls: charge_rows.def says which. Called by tn_enter and tn_leave. */
enum { TN_HOW_NONE = 0, TN_HOW_MARKED /* may move memory; no reading */, TN_HOW_SELDOM /* a reading around the row's first calls */,
       TN_HOW_OFTEN /* those, and one now and then */, TN_HOW_ALWAYS, TN_HOW_WAITS /* like OFTEN, and not marked */,
       TN_HOW_TOUCHES /* like SELDOM; like OFTEN while managed memory is alive */ };
unsigned tn_charge_bits(int api); /* TN_ROW_MARKED, TN_ROW_WINDOW */
int tn_charge_is_young(int api); /* a reading is still due around its next calls because they are its first */
void tn_charge_enter(tn_hook_frame *f); /* of a row that may get a reading */
void tn_charge_window_end(tn_hook_frame *f);
void tn_charge_tick(tn_hook_frame *f);

/* This call may move memory, from here until tn_charge_unmark(). */
static inline void tn_charge_mark(tn_hook_frame *f)
{
    f->charged = f->window.marked = 1;
    f->thread->marks++;
    tn_moving_begin(f->thread->moving);
}

static inline void tn_charge_unmark(tn_hook_frame *f)
{
    if (!f->window.marked) return;
    f->window.marked = 0;
    if (!f->thread->marks) return; /* a longjmp was taken to have left this call */
    f->thread->marks--;
    tn_moving_end(f->thread->moving);
}

/* Whether a reading for its own sake is due. By the thread's last event, which costs no look at the counter; it may be a little older than the
 * last reading of another thread. */
#define TN_CHARGE_TICK 30000000 /* 10 ms at 3 GHz: a reading at least so often where memory moves */
static inline int tn_charge_tick_is_due(uint64_t stamp)
{
    return (int64_t)(stamp - atomic_load_explicit(&tn_hot_page->last_reading, memory_order_relaxed)) > TN_CHARGE_TICK;
}

/* Around a call of our own that takes device memory, inside the hook of `f`, whose own reading it ends. */
void rec_charge_own_begin(tn_hook_frame *f, uint8_t kind, uint8_t device);
void rec_charge_own_end(tn_hook_frame *f);

/* ---- what rows say themselves */
void rec_launch_begin(tn_hook_frame *f, const void *function);      /* a reading around a function's first launch */
void rec_launch_refused(tn_hook_frame *f, const void *function);    /* that launch failed: the next one is the first again */
void rec_graph_launch_begin(tn_hook_frame *f, const void *exec);    /* and an executable graph's */
void rec_kernel_begin(tn_hook_frame *f, const void *kernel);        /* a reading around a kernel's first look-up in a context, which may load its module */
void rec_kernel(tn_hook_frame *f, int r);                           /* where that failed the next one is the first again */
void rec_functions_gone(void);                                      /* after a module was unloaded or a context ended: handles may mean others now */
void rec_graph_exec_gone(const void *exec);
void rec_ctx_begin(tn_hook_frame *f, int device);                   /* before a context may be made there */
void rec_ctx_made(tn_hook_frame *f, int device, void *context);     /* after it was */
void rec_ctx_end_begin(tn_hook_frame *f, void *context, int device); /* before one may end; device -1: the current one's */
void rec_ctx_end_done(tn_hook_frame *f, int still_alive, void *context);

/* Bytes that others had in use on the device before this process's first context there, as the driver counts; 0: none, or NVML did not say. */
uint64_t rec_charge_baseline(uint8_t device);
/* Other processes on the device, by NVML, at most once in some seconds: for marks and phases. */
void rec_charge_neighbours(tn_hook_frame *f, uint8_t device);

/* From the ledger's side: a managed block came or went; memory of a pool or of a graph was granted. */
void rec_charge_managed(int sign);
void rec_free_managed_begin(tn_hook_frame *f);

#endif
