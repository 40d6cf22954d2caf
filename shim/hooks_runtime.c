/* The runtime's hooks under their own names: each calls the runtime of the object it was called from. In
 * libtenure_wrap.a that is the one the program was linked with, static or shared. */
#include "shim/hooks.h"
#include "shim/real.h"
#include "shim/record.h"

#define TN_OF_CALLER(name) \
    ({ const tn_runtime_functions *rt = tn_cudart_of(__builtin_return_address(0)); rt ? rt->name : NULL; })
#ifdef TENURE_WRAP
#define TN_REAL_RUNTIME(name) (TN_LINKED(name) ? TN_LINKED(name) : TN_OF_CALLER(name))
#define TN_COPY_HERE (TN_LINKED(cudaMalloc) ? (const void *)TN_LINKED(cudaMalloc) : (const void *)tn_cudart_of(__builtin_return_address(0)))
#else
#define TN_REAL_RUNTIME(name) TN_OF_CALLER(name)
#define TN_COPY_HERE ((const void *)tn_cudart_of(__builtin_return_address(0)))
#endif
#define TN_RUNTIME(klass, variant, name, params, args, before, after) \
    cudaError_t TN_EXPORTED(name) params TN_BODY(cudaError_t, klass, name, variant, args, before, after, TN_REAL_RUNTIME(name))
#include "shim/api_runtime.def"
