/*
 * Put before the engine's files whose sites have moved to the allocators of tiers/ (BUILD says which): each of their calls below is then a take or
 * a free of an arena, with the code of CUDA that the engine expects. Everything lives as long as the process. The main thread's alone.
 */
#ifndef TESTS_MIGRATED_SITES_H
#define TESTS_MIGRATED_SITES_H

#include <cuda_runtime_api.h>

/* The arena for plain device memory, or for pinned memory with these flags; made when it is first asked for. */
cudaError_t site_take(void **p, size_t bytes);
cudaError_t site_take_host(void **p, size_t bytes, unsigned flags);
/* Of an arena, or else CUDA's. */
cudaError_t site_give(void *p);
cudaError_t site_give_host(void *p);

#ifndef MIGRATED_GLUE
#define cudaMalloc(p, bytes) site_take((void **)(p), bytes)
#ifndef MIGRATED_DEVICE_CALLS
#define cudaHostAlloc(p, bytes, flags) site_take_host((void **)(p), bytes, flags)
#endif
#define cudaFree(p) site_give(p)
#define cudaFreeHost(p) site_give_host(p)
#endif

#endif
