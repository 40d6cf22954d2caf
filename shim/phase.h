/* Phases, marks and the counting guard in the recorded process: what tells it in which phase it is (its control block, tenure.h, the n-th
 * call of a function), and what is counted there. The state belongs to the process; any thread may call, a forked child of a process
 * that had started does not. tn_attention points to the one word that the common path reads. */
#ifndef TENURE_SHIM_PHASE_H
#define TENURE_SHIM_PHASE_H

#include "phaseguard/guard.h"
#include "shim/hook.h"

extern tn_guard tn_process_guard;
/* Not 0: tn_phase_attend() has something to look at. In the control block, or a word of our own where there is none. */
extern uint32_t *tn_attention;

static inline int tn_phase_wants_attention(void) { return __builtin_expect(__atomic_load_n(tn_attention, __ATOMIC_RELAXED) != 0, 0); }
static inline uint8_t tn_phase_now(void) { return (uint8_t)tn_phase_of(&tn_process_guard.phase); }

/* Once, when this process starts to record: the control block, the guard's mode and the triggers of the environment. */
void tn_phase_start(tn_journal *journal);
/* Once recording has begun: journals what the program said through tenure.h before. */
void tn_phase_started(void);
/* Inside a hook that has been entered: takes commands and counts calls that a trigger waits for. */
void tn_phase_attend(tn_hook_frame *f);
/* At the end of the process: commands that came after its last CUDA call. No CUDA call. */
void tn_phase_ends(void);

/* Before the commit of an event that may count while serving; `type` is what it will be. */
void tn_guard_event(tn_hook_frame *f, tn_event *e, tn_event_type type);

/* The same for the allocation of a thread that a tier has answered. */
void tn_guard_served(tn_thread *t, const tn_event *e) __attribute__((hot));
/* Whether a request for `bytes` bytes that the plan leaves to the driver is to be refused, since the process serves and its guard says so. In mode
 * abort it does not return: the call and its backtrace are on standard error. */
int tn_guard_refuses(tn_hook_frame *f, uint64_t bytes);

/* Begins (TN_MARK_RANGE_BEGIN), ends or sets a mark; for tenure.h and NVTX. 0, or 1 where nothing is recorded. */
int tn_mark(int kind, const char *text, uint64_t range, int cause);

#endif
