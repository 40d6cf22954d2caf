/* What a person may ask of a served run to find a program's errors: a canary behind every block (TENURE_CANARY=1), what new device blocks hold
 * (TENURE_FILL=zero or a byte), what freed ones hold (TENURE_POISON=1). All of it runs on the calling thread inside the hook of the allocation
 * or free, any thread, with no lock held; nothing is written, read or waited for while a capture is active. Without one of the options
 * tn_serve_checks is 0, and that is all that is looked at. */
#ifndef TENURE_SHIM_SERVE_CHECKS_H
#define TENURE_SHIM_SERVE_CHECKS_H

#include <stddef.h>
#include <stdint.h>

#include "planner/plan.h"
#include "shim/hook.h"
#include "shim/identity.h"

extern int tn_serve_checks __attribute__((visibility("hidden")));

#define TN_CANARY_BYTE 0xc9u
#define TN_POISON_BYTE 0xdeu
#define TN_CANARY_MAX 512u /* bytes of a canary, where a block has so much behind it */

/* Reads the options, once, where serving starts. */
void tn_serve_checks_start(void);

/* A tier has just given `address` for a request of `bytes`, for which it was asked for `asked`; f->route is set, and gets TN_ROUTE_CANARY
 * where a canary stands behind the block. `stream` as its caller named it, TN_STREAM_NONE of plain and pinned memory, whose context `c` is current; else it is the stream's. */
void tn_serve_check_taken(tn_hook_frame *f, tn_context c, const tn_plan_row *row, uint64_t asked, void *address, size_t bytes, void *stream);

/* The block in f->freed is about to be given back. Waits as the driver's own free would, for plain and pinned memory; a stream-ordered block is
 * looked at, and poisoned, in the order of its stream, with no wait. */
void tn_serve_check_given(tn_hook_frame *f, const tn_plan_row *row, uint64_t asked, void *stream);

/* The context has ended, or was reset. */
void tn_serve_checks_context_ended(uint32_t ctx);

#endif
