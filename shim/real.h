/* The real functions behind the hooks: one struct of function pointers for the driver, one for each copy of
 * the runtime in the process, one for NVML. Only shim/driver.c and shim/cudart.c fill them, before the
 * pointers are published; afterwards they are constant while the library is loaded, and any thread may read them.
 * Precondition of every call through them: not made while a lock of ours is held, unless the comment at the
 * call says why that is safe. A NULL pointer means that this driver or runtime has no such function. */
#ifndef TENURE_SHIM_REAL_H
#define TENURE_SHIM_REAL_H

#include <stdint.h>

#include "shim/api.h"
#include "shim/cuda_abi.h"
#include "shim/hot.h"

typedef struct tn_driver_functions {
#define TN_DRIVER(klass, variant, name, params, ...) CUresult(*name) params;
#include "shim/api_driver_memory.def"
#include "shim/api_driver_order.def"
#include "shim/api_driver_work.def"
#include "shim/api_driver_copy.def"
#undef TN_DRIVER
#define TN_HELPER(name, params) CUresult(*name) params;
#include "shim/api_helpers.def"
#undef TN_HELPER
} tn_driver_functions;

typedef struct tn_runtime_functions {
#define TN_RUNTIME(klass, variant, name, params, ...) cudaError_t(*name) params;
#include "shim/api_runtime.def"
#undef TN_RUNTIME
    cudaError_t (*cudaGetDevice)(int *);
} tn_runtime_functions;

typedef struct tn_nvml_functions {
#define TN_NVML(klass, name, params, ...) int(*name) params;
#include "shim/api_nvml.def"
#undef TN_NVML
} tn_nvml_functions;

extern tn_driver_functions tn_real;
extern tn_nvml_functions tn_real_nvml;

/* ---- the loader's own functions, found by dlvsym so that they are not ours */
void *tn_real_dlsym(void *handle, const char *name);
int tn_real_dlclose(void *handle);

/* ---- the driver */
/* Fills tn_real from a handle of libcuda (the one that dlopen gave) or, for NULL, from the libcuda already in
 * the process. The first driver wins; another one is named in the journal's coverage and left alone. Returns
 * whether `path` (may be NULL) is the driver that tn_real now belongs to. */
int tn_driver_bind(void *handle, const char *path);
/* The hook for a real driver function's address, exactly that symbol and variant; NULL for any other address. */
void *tn_driver_hook_of(const void *real, int *api);
/* Fills tn_real_nvml likewise. */
void tn_nvml_bind(void *handle);
/* After a dlclose: forgets a driver or an NVML that has been unloaded; the next look-up or call binds anew. */
void tn_driver_forget(void);
/* Puts the functions that launches need on the hot page (shim/hot.h): when the page or the driver is a new one. */
void tn_driver_hot(void);
/* For the atfork handler of the child. */
void tn_driver_after_fork(void);
/* What the next object in the global scope defines under a hook's name, or NULL; for calls that no driver answers. */
void *tn_behind_us(const char *name, const void *hook);

/* ---- runtimes */
#define TN_CUDARTS 8
typedef struct tn_cudart {
    tn_runtime_functions fn;
    uint64_t base, end;
    char path[256];
} tn_cudart;
extern tn_cudart tn_cudarts[TN_CUDARTS];

/* The functions of the runtime that the object around `caller` uses: its own dependencies first, then the
 * global scope behind us, then any runtime in the process. NULL if there is none. */
const tn_runtime_functions *tn_cudart_of(const void *caller) __attribute__((hot));
/* The number of the copy in the module at [base, ...), added if it is new; -1 for a ninth copy. */
int tn_cudart_copy(void *handle, uint64_t base, uint64_t end, const char *path);
/* The wrapper of runtime row `api` that is bound to copy k. */
void *tn_cudart_bound(int k, int api);
/* Whether `address` lies in a copy of the runtime; also where no copy is known to tell by. No lock. */
int tn_cudart_holds(const void *address);
/* Writes where the first runtime lies to the page. */
void tn_cudart_range_to(tn_hot *hot);
/* Looks for a preload that stands in front of the runtime; from the constructor. */
void tn_cudart_look_in_front(void);
/* After a dlclose: forget which object uses which copy, and copies that are gone. */
void tn_cudart_forget(void);
/* For the atfork handler of the child. */
void tn_cudart_after_fork(void);

#endif
