/* What became of a driver call: its CUresult as an error of ours, and kept as it was for who wants to know more. A log belongs to what holds
 * it, a backend for instance; any thread may add to it and read it, and neither takes a lock. */
#ifndef TENURE_TIERS_CUDA_ERROR_H
#define TENURE_TIERS_CUDA_ERROR_H

#include <stdint.h>

#include "tiers/cuda_calls.h"
#include "tiers/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_cuda_log {
    uint64_t last;     /* call and code of the last failure as one word */
    uint64_t failures; /* how many there were */
} tn_cuda_log;

/* The last failure: `code` the CUresult as the driver gave it, 0 where none failed yet, and then `call` means nothing. */
typedef struct tn_cuda_failure {
    int code;
    tn_cuda_call call;
    uint64_t failures;
} tn_cuda_failure;

/* The error of ours for a CUresult: 0 is OK, what is not known by name DRIVER. */
TN_MEM_MUST_USE tn_mem_error tn_cuda_error(int code);

/* The same, and the log keeps it where it failed. */
TN_MEM_MUST_USE tn_mem_error tn_cuda_note(tn_cuda_log *log, tn_cuda_call call, int code);

tn_cuda_failure tn_cuda_last_failure(const tn_cuda_log *log);

/* The driver's name of a call; "?" outside the enum. */
const char *tn_cuda_call_name(tn_cuda_call call);

#ifdef __cplusplus
}
#endif

#endif
