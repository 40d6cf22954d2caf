/* What a function of this library answers: one enum, one message table. Failure is a value, never an abort, and every result must
 * be looked at. Nothing here allocates or has state, so any thread may use it at any time. */
#ifndef TENURE_TIERS_ERROR_H
#define TENURE_TIERS_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_mem_error {
    TN_MEM_OK = 0,
    TN_MEM_E_ARGUMENT,      /* an argument outside the function's contract; nothing was tried */
    TN_MEM_E_OUT_OF_MEMORY, /* the backend has not that much memory */
    TN_MEM_E_BUDGET,        /* the guard refused: the budget or the phase does not allow it */
    TN_MEM_E_NOT_GROWABLE,  /* the backend or the region cannot grow or shrink in place */
    TN_MEM_E_EXHAUSTED,     /* the allocator has no room left within its plan */
    TN_MEM_E_STALE,         /* it was released, freed or reset before */
    TN_MEM_E_DRIVER,        /* the driver refused; what was asked for is as it was before */
    TN_MEM_E_HOST_MEMORY,   /* the host has no memory left for the library's own structures */
    TN_MEM_E_MUST_WAIT,     /* there is a freed block, but the device may still use each that would do; after a wait, ask again */
    TN_MEM_E_FOREIGN,       /* it was handed out by another allocator than the one it was given to */
    TN_MEM_E_NOT_SHARED,    /* blocks of this pool have one owner each, by its options */
    TN_MEM_E_ORDER,         /* something that was begun later must be ended first */
    TN_MEM_E_DIVERGED,      /* the program does not do what the plan was made from; serve this from elsewhere */
    TN_MEM_E_UNSUPPORTED,   /* this driver or device does not do that at all, now or later */
    TN_MEM_E_NO_CONTEXT,    /* CUDA is not started, already gone, or the calling thread has no context of it */
    TN_MEM_E_CAPTURING,     /* not while a stream is being captured into a graph */
    TN_MEM_E_REGISTERED,    /* that host memory, or a part of it, is registered already */
    TN_MEM_E_UNREGISTERED,  /* no registration begins there */
    TN_MEM_E_LEFTOVER,      /* something is still there that should be gone by now */
    TN_MEM_E_IN_USE,        /* it is handed out, and there is only one */
    TN_MEM_ERROR_COUNT
} tn_mem_error;

#define TN_MEM_MUST_USE __attribute__((warn_unused_result))

/* A short English phrase without a final full stop; never NULL, also for values outside the enum. */
const char *tn_mem_error_text(tn_mem_error error);

#ifdef __cplusplus
}
#endif

#endif
