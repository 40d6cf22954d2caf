/* A small matrix library that behaves towards the driver as cuBLAS does.
 *
 * libfakeblas.so carries a private static copy of the fake runtime with hidden
 * symbols and finds the driver through that copy's own resolver, so nothing it
 * allocates passes a public cudart symbol. A handle belongs to the context that
 * was current when it was made and may be used by one thread at a time. */
#ifndef FAKEGPU_FAKEBLAS_H
#define FAKEGPU_FAKEBLAS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fakeblas *fakeblasHandle_t;

typedef enum {
    FAKEBLAS_SUCCESS = 0,
    FAKEBLAS_NOT_INITIALIZED = 1, /* no driver, no device, or a NULL handle */
    FAKEBLAS_ALLOC_FAILED = 3,    /* the device or the host had no memory left */
    FAKEBLAS_INVALID_VALUE = 7,
    FAKEBLAS_EXECUTION_FAILED = 13
} fakeblasStatus_t;

/** What the library claims by itself, in bytes. */
#define FAKEBLAS_HANDLE_BYTES ((size_t)1 << 10)
#define FAKEBLAS_WORKSPACE_BYTES ((size_t)64 << 20)
#define FAKEBLAS_PINNED_BYTES ((size_t)4 << 10)

/** Bytes of A and of B that a product reads, and of C that it writes, at most. */
#define FAKEBLAS_TOUCHED_BYTES (FAKEBLAS_PINNED_BYTES / 2)

/** Makes a handle; allocates FAKEBLAS_HANDLE_BYTES on the current device. */
fakeblasStatus_t fakeblasCreate(fakeblasHandle_t *handle);

/** Releases everything the handle claimed. */
fakeblasStatus_t fakeblasDestroy(fakeblasHandle_t handle);

/** Gives the library a workspace of the caller's instead of its own; a workspace
 *  it had claimed before is released. bytes 0 goes back to the default. */
fakeblasStatus_t fakeblasSetWorkspace(fakeblasHandle_t handle, void *workspace, size_t bytes);

/** C = A "times" B for row-major float matrices m x k, k x n, m x n on the device,
 *  enqueued on `stream` (a cudaStream_t). The first call of a handle claims the
 *  workspace and the pinned buffer and loads the library's kernel. The arithmetic
 *  is a stand-in: the first min(size, FAKEBLAS_TOUCHED_BYTES) bytes of C become a
 *  byte-wise mix of those of A and B, a function of their contents alone. */
fakeblasStatus_t fakeblasGemm(fakeblasHandle_t handle, void *stream, int m, int n, int k,
                              const float *A, const float *B, float *C);

#ifdef __cplusplus
}
#endif

#endif
