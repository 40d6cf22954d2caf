/* What every wrapper does first and last: the frame of one hooked call and the thread's state. A frame lives
 * on the stack of its call; the thread state belongs to its thread, and signal handlers on that thread see
 * it half-way, which `busy` tells them. */
#ifndef TENURE_SHIM_HOOK_H
#define TENURE_SHIM_HOOK_H

#include <pthread.h>
#include <stdint.h>

#include "ledger/journal.h"
#include "ledger/ledger.h"
#include "phaseguard/serving.h"
#include "shim/api.h"
#include "shim/hot.h"
#include "shim/moving.h"

/* The outermost hook of a call: a runtime hook, or a driver hook with no runtime hook around it. */
typedef struct tn_outer {
    const void *frame;  /* its frame, NULL if none: a hook that is entered above it means that a longjmp has left it */
    const void *caller; /* its return address */
    const void *stack;  /* its frame address, which says where on the stack that stands */
    uint32_t site;      /* TN_SITE_NONE until somebody asks */
    uint32_t native;    /* the same without the Python part */
    uint16_t api;
    uint8_t level;
} tn_outer;

#define TN_WRITTEN 4u
#define TN_READ 4u
#define TN_SEEN 8u

typedef struct tn_thread {
    /* One cache line: all that a launch's short way needs of the thread (shim/launch.h). */
    _Alignas(64) int busy;    /* our own code is running: a hook entered now comes from a signal handler */
    uint32_t marks;           /* calls of this thread that are marked as moving memory now */
    const tn_hot *hot;        /* NULL: the thread is not attached, or has no counters */
    struct {
        tn_event *event;      /* the thread's last event, where that is work; NULL: it is not */
        const void *stream;   /* of its last work, the handle; a default stream's special one */
        void *context;        /* of a default stream in a process that knows several; else NULL */
        uint64_t generation;
        uint64_t tick;        /* for which the marks have been told of it (serve/marks.h); 0: nothing serves */
    } work;
    uint64_t *counters;
    /* Two more, in which an allocation and a free find the rest. */
    uint64_t stamp;           /* of the last event */
    int *error;               /* where this thread's errno is: asking libc four times a hook would be a tenth of its cost */
    uint64_t recorded;        /* allocations and frees recorded by driver rows of this thread */
    tn_outer outer;           /* the hook that names the site of what is recorded now */
    uint32_t guarded;         /* the site of its last granted allocation before Serving: the guard has seen it allocate */
    uint16_t user;            /* where cudart.c found its last caller */
    uint8_t own_streams;      /* per-thread default streams of this thread are in the table of streams */
    tn_journal_thread *journal;
    tn_moving *moving;        /* NULL: no reading is quiet */
    struct { void *handle; uint64_t generation; uint32_t number; uint8_t device; } known; /* the context last looked up */
    tn_serving_thread serving; /* what the guard knows of its last allocation */
    uint32_t context;         /* number of the current context as last journalled */
    uint32_t serial;          /* of the thread's attachment: tells threads apart that stand at one address one after another */
    struct { void *context, *handle; uint64_t generation; uint32_t number; } stream[4];
    struct { const void *copy, *context; uint64_t generation; } through; /* the runtime that this thread has been through, and where (shim/serve_short.h) */
    const void *frees[4];     /* real functions of a runtime below which a driver row was seen to record */
    _Alignas(64) tn_written written[TN_WRITTEN]; /* blocks that this thread has lately copied to, the last one first (shim/short.h) */
    tn_written read[TN_READ];       /* likewise, blocks in arenas that it has lately copied from, or set (shim/serve_reach.h) */
    struct { uint32_t ctx, number; uint8_t device, capturing; } work_is; /* what the events of work.stream say */
    uint32_t told;            /* handles that began or ended, as driver rows of this thread have seen it */
    uint32_t seen[TN_SEEN];   /* by site: of these too the guard knows that they allocate, which it never forgets */
} tn_thread;

extern __thread tn_thread tn_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A hook that inherits its site leaves thread->outer alone; where there was no hook around it is emptied, else put back: nearly no call
 * has to copy it. */
enum { TN_OUTER_KEEP = 0, TN_OUTER_EMPTY, TN_OUTER_BACK };

typedef struct tn_hook_frame {
    tn_thread *thread;
    uint64_t begun;        /* stamp before the real call: waits, work that may wait, what ends something; else 0 */
    uint64_t recorded;     /* thread->recorded when the hook was entered */
    int errno_in;
    uint16_t api;
    uint8_t on;            /* this call is journalled */
    uint8_t stamped;       /* the row's class wants `begun` */
    uint8_t nested;        /* made from a signal handler inside a hook: no lock, no stack */
    uint8_t busy_held;     /* `busy` is this frame's to lower */
    uint8_t ptds;
    uint8_t outer;         /* TN_OUTER_*: what leaving does to thread->outer */
    uint8_t charged;       /* the call may move device memory, or has a reading around it */
    uint16_t route;        /* TN_ROUTE_*: what a plan made of this request */
    struct {
        uint8_t kind;      /* of a reading of the device before the call, TN_CHARGE_*; 0: none taken */
        uint8_t device, quiet;
        uint8_t marked;    /* this call is counted as one that may move memory */
        uint8_t making;    /* a context begins or ends */
        uint8_t hidden;    /* a test switched this row off */
        uint8_t warm;      /* a launch of a function that was launched before */
    } window;
    uint8_t freed_known;   /* `freed` was in the ledger and has been taken out */
    uint8_t freed_space;
    uint64_t freed_addr;
    void *handle;          /* of a *_begin */
    tn_entry freed;
    uint32_t stream;       /* number of a stream that is being destroyed */
    uint32_t told;         /* of a runtime row that looks at it: thread->told before the real call */
    struct {               /* that reading; record_charge.h */
        uint64_t used, others, tsc;
        uint64_t unrecorded; /* tn_unrecorded_ended then */
    } before;
    tn_outer around;       /* thread->outer as it was found, for TN_OUTER_BACK alone */
} tn_hook_frame;
/* More would make the compiler realign the hooks' stacks: then the word above the frame address is a copy of the return address and not the slot. */
_Static_assert(_Alignof(tn_hook_frame) <= 16, "the frame address of a hook must tell where its return address is");

/* Enters the hook of row `api`, called from `caller`; `stack` is the exported function's own __builtin_frame_address(0). Never fails; where
 * nothing is to be journalled, f->on is 0. */
void tn_enter(tn_hook_frame *f, int api, int ptds, const void *caller, const void *stack);
/* Between our own code before the real call and the real call, and again after it: errno belongs to the program. */
void tn_call(tn_hook_frame *f);
void tn_returned(tn_hook_frame *f);
void tn_leave(tn_hook_frame *f);

/* A frame for work of this library's own outside any hooked call (a mark, a phase): events made with it name no API. Returns 0, and
 * nothing may be made with it, where the process does not record or this thread is inside a hook (a signal handler). */
int tn_own_enter(tn_hook_frame *f);
void tn_own_leave(tn_hook_frame *f);

/* For shim/frame.c: whether a call of this row is journalled, seen from a thread that is not known to be ready for it. Starts the recording
 * where this is the process's first CUDA call, and attaches the thread. Sets f->nested. */
int tn_hook_prepare(tn_hook_frame *f, int api);

/* The journal while this process records, else NULL. */
tn_journal *tn_recording(void);
/* Whether this process has been asked to record and has not started: it may yet. A forked child of one that has started may not. */
int tn_may_start(void);
/* Whether this process was asked to record (TENURE_RUN); if not, nothing is put in front of anything. */
int tn_wanted(void);
/* Counts one more address of row `api` handed out by a resolver; also before recording starts. */
void tn_count_resolved(int api);
/* Writes a coverage line (TN_COV_*) now or, before recording starts, when it does; at most 16 wait. */
void tn_coverage(uint32_t what, const char *text);
/* Names in the journal what does not come past the hooks; before a dlclose and at the end of the process. */
void tn_look_for_bypass(void);
/* A slot of the thread's journal with api, outer api, phase and device filled in; NULL: dropped and counted. */
tn_event *tn_event_new(tn_hook_frame *f, uint64_t tsc);
/* The site of the outermost hook of this thread's present call; looked for where nobody has asked for it yet. */
uint32_t tn_frame_find_site(tn_hook_frame *f);
static inline uint32_t tn_frame_site(tn_hook_frame *f)
{
    uint32_t site = f->thread->outer.site;
    return __builtin_expect(f->on && !f->nested && site != TN_SITE_NONE, 1) ? site : tn_frame_find_site(f);
}

#endif
