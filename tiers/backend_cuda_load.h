/* Fills the table of driver calls from the libcuda of this process, or loads one; for programs that have no better way to its functions. Not part
 * of the core: it uses dlopen and dlsym. The library stays loaded. Any thread; nothing here starts CUDA. */
#ifndef TENURE_TIERS_BACKEND_CUDA_LOAD_H
#define TENURE_TIERS_BACKEND_CUDA_LOAD_H

#include "tiers/cuda_calls.h"
#include "tiers/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entries that the driver does not export are NULL, and *missing, where it is not NULL, the name of the first of these, else NULL.
 * UNSUPPORTED: there is no libcuda.so.1 to load; *cuda is empty. */
TN_MEM_MUST_USE tn_mem_error tn_cuda_load(tn_cuda *cuda, const char **missing);

/* The same by a look-up of the caller's own: an address or NULL for each of the driver's names. */
void tn_cuda_fill(tn_cuda *cuda, void *(*look_up)(void *self, const char *name), void *self, const char **missing);

#ifdef __cplusplus
}
#endif

#endif
