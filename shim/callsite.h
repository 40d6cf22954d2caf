/* Where a call comes from: the chain of return addresses above the outermost hook, interned as a site of the journal. Any thread may
 * call; a miss takes the loader's lock (through libunwind and dl_iterate_phdr) with none of ours held. Nothing here is called in a
 * signal handler inside a hook: those calls get TN_SITE_NO_STACK. No malloc: tables come from mappings of our own. */
#ifndef TENURE_SHIM_CALLSITE_H
#define TENURE_SHIM_CALLSITE_H

#include <stdint.h>

#include "ledger/journal.h"

/* Once, at the first CUDA start, outside any allocation path, before the first tn_callsite(): opens libunwind.so.8 by path, RTLD_LOCAL, from the
 * folder of this library (`own_dir`), then from the environment's TENURE_LIBUNWIND, then by its bare name. Returns 0, or -1 where none was to
 * be had: then frames are walked by frame pointers within the thread's stack bounds, and sites carry TN_SF_OWN_WALK. */
int tn_callsite_start(tn_journal *journal, const char *own_dir);

/* Costs on a warm hit, ns (scripts/bench record; a 2-core Xeon VM, model 167). Stack of 8 / 16 / 24 frames: from verified slots 10 / 14 / 14 where all
 * frames have frame pointers, 5 / 8 / 10 where none has; by libunwind 132 / 191 / 207; by frame pointers 28 / 47 / 56. Never more than 17 frames
 * are looked at unless frames are skipped. */

/* The site of a hook whose own return address is `caller` (__builtin_return_address(0) of the exported wrapper) and whose frame address is
 * `frame` (its __builtin_frame_address(0), while that activation is live; NULL: not known, then the cache of verified slots is passed by).
 * Frames of the shim (all frames below `caller`) and of shared CUDA runtimes (modules for which tn_is_libcudart holds) are skipped; then at most
 * TN_FRAMES_MAX frames, deepest first. The key is a 64-bit hash of (build-id, offset) pairs; anonymous code is one `jit` frame however many of
 * them follow each other. The first time a chain is seen its MODULE and SITE records are written before the id is returned. Two chains of raw
 * addresses with equal keys get the same id. Returns TN_SITE_NONE only if no memory is left or even its
 * caller is one too many. Frames whose module has the same build-id are equal
 * wherever it is loaded. outer_api and flags of the record are those of the first time. errno is kept. */
uint32_t tn_callsite(const void *caller, const void *frame, uint16_t outer_api) __attribute__((hot));

/* How often a new chain came when there were as many sites as are kept (callsite_tables.h), and was given its caller's. The function is called at the
 * first one, on its thread and with no lock held; set it before the first tn_callsite(), or leave it NULL. */
uint64_t tn_callsite_not_kept(void);
extern void (*tn_callsite_full)(void);

/* Around the real dlclose: while one runs, caches are neither read nor filled; afterwards they have a new generation. */
void tn_callsite_dlclose_begin(void);
void tn_callsite_dlclose_end(void);

/* The slow path, which the cache of verified slots (callsite_slots.h) saves: a function that fills `frames` (return addresses, deepest first, the first one is `caller`) and returns how
 * many, at most max (never more than TN_FRAMES_MAX + 24); 0 when `caller` is not on the stack it saw: the site is then {caller}, TN_SF_CALLER_ONLY.
 * The own walk until tn_callsite_start(), then libunwind where it was to be had. errno may be changed: tn_callsite() restores it. */
typedef int (*tn_unwind_fn)(const void *caller, uint64_t *frames, int max);
extern tn_unwind_fn tn_unwind;

#endif
