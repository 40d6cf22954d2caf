/* The verified-slot cache: where the return addresses of known call chains stood on the stack, and the sites of those chains. One cache a thread,
 * read and written by that thread alone, in a mapping of its own that is unmapped at the thread's end. Never used in a signal handler that
 * interrupted it (hooks in such handlers get TN_SITE_NO_STACK before they come here).
 *
 * Why a hit is right. The exported hook knows the slot of its own return address exactly, and in which word it saved the frame pointer. From
 * a return address whose function's CFA is the stack pointer plus a constant, the slot of the next one follows from the address alone; where
 * the CFA is the frame pointer plus a constant, from the address and the word in which an inner frame saved the frame pointer. So each word
 * is read only when all words that say where it lies have been compared, innermost first; a chain that agrees to its end is the chain
 * that the unwind tables would give, whatever stale addresses lie about. Chains with any other frame are not kept. Offsets are relative to
 * the hook's frame, so one entry serves at every height of the stack.
 *
 * Used on the thread's own stack only, within the bounds that pthread_getattr_np gives: coroutines and alternate signal stacks have no bounds
 * that are known to hold. x86-64 only: on aarch64 a return address may be in a register or signed, and every look-up misses. */
#ifndef TENURE_SHIM_CALLSITE_SLOTS_H
#define TENURE_SHIM_CALLSITE_SLOTS_H

#include <stdint.h>

/* 480 chains of 17 frames that have nothing in common; 370 KiB a thread, of which only what is used is ever touched. A full cache starts afresh. */
#define TN_SLOTS_NODES 8192u

/* Off: every look-up misses. Check: whatever is found is also looked up the long way by tn_callsite(); the answer is the long way's, hits and
 * differences are counted. Set before the first CUDA call. */
enum { TN_SLOTS_OFF = 0, TN_SLOTS_ON, TN_SLOTS_CHECK };
#ifndef TN_SLOTS_DEFAULT
#define TN_SLOTS_DEFAULT TN_SLOTS_ON
#endif
extern int tn_slots_mode;
extern uint64_t tn_slots_hits, tn_slots_differences; /* TN_SLOTS_CHECK only; any thread */
void tn_slots_checked(int is_different);

/* Once, before the first look-up: makes caches end with their threads. Where that is not to be had there are none. */
void tn_slots_start(void);

/* The site of the chain above a hook, or TN_SITE_NONE. `caller` is the exported hook's return address, `frame` its __builtin_frame_address(0),
 * whose activation must still be live. A few loads; no lock, no system call, no libc. */
uint32_t tn_slots_find(uint64_t epoch, const void *caller, const void *frame);

/* Keeps the chain `frames` (as tn_unwind gave it; n of at most max) with its site, if the words on the stack and the unwind tables give the very
 * same chain. Where a thread has no cache yet, it gets one (pthread_getattr_np, one mapping). May take the loader's lock and change errno;
 * none of our locks may be held. */
void tn_slots_keep(uint64_t epoch, const void *frame, const uint64_t *frames, int n, int max, uint32_t site);

/* The parts, for tests: a cache for the stack [lowest, end), not bound to a thread; NULL where there is no memory or no support. */
typedef struct tn_slots tn_slots;
tn_slots *tn_slots_new(uint64_t lowest, uint64_t end);
void tn_slots_free(tn_slots *c);
uint32_t tn_slots_find_in(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame);
/* 1: kept. */
int tn_slots_keep_in(tn_slots *c, uint64_t epoch, uint64_t frame, const uint64_t *frames, int n, int max, uint32_t site);
/* The calling thread's, or NULL. */
const tn_slots *tn_slots_mine(void);
/* Words to compare that are held now: always fewer than TN_SLOTS_NODES. */
uint32_t tn_slots_count(const tn_slots *c);

#endif
