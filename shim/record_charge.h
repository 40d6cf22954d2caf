/* Readings of what a device has in use, and what of it belongs to no allocation. Process-wide state without locks of ours around
 * CUDA calls; any thread may call, with or without a current context, also while a capture is active: the only CUDA calls made are
 * cuMemGetInfo, context push and pop, and, outside captures, pool attributes (api_helpers.def says where each was shown to be safe).
 * Nothing here creates a context, leaves another one current, changes errno, or runs in a forked child or a destructor. */
#ifndef TENURE_SHIM_RECORD_CHARGE_H
#define TENURE_SHIM_RECORD_CHARGE_H

#include "shim/hook.h"

/* Reads every device on which this process has a context known to be alive and journals a CHARGE event of kind TN_CHARGE_READING each, with
 * `cause` (TN_READ_*) in it. Outside any hook: at a phase change, a mark. A call from inside a hook or from a signal handler within one does
 * nothing: there, rec_reconcile_in(). */
void rec_reconcile(int cause);
/* The same inside the hook of `f`. */
void rec_reconcile_in(tn_hook_frame *f, int cause);

#endif
