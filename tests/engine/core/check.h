/* Error checking of runtime calls.
 *
 * No state of its own; usable from any thread. A failed mandatory call ends
 * the process with the call's text, file and line, as serving engines do. */
#ifndef ENGINE_CORE_CHECK_H
#define ENGINE_CORE_CHECK_H

#include <cuda_runtime_api.h>

/* Ends the process with exit code 3 unless `rc` is success. */
void cu_check(cudaError_t rc, const char *what, const char *file, int line);

#define CU_CHECK(call) cu_check((call), #call, __FILE__, __LINE__)

/* For calls that may fail: forgets the error and says whether the call succeeded. */
int cu_try(cudaError_t rc);

#endif
