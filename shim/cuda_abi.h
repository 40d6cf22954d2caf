/* The one place where the shim meets CUDA's headers: the types of the calls it stands in front of. Nothing
 * of CUDA is linked. The old, unversioned driver functions are wanted beside the new ones, hence the
 * internal switch; only its types and prototypes are used, so that a wrapper with a wrong signature does not
 * compile. */
#ifndef TENURE_SHIM_CUDA_ABI_H
#define TENURE_SHIM_CUDA_ABI_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

/* What CUDA advises programs not to call they call all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#endif
