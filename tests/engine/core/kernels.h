/* The engine's kernels: copies and fills of a small window.
 *
 * Every output depends on the contents of its inputs, so a block that was
 * handed out twice shows in the checksum. All calls only enqueue; each buffer
 * must hold KERNEL_WINDOW bytes; NULL arguments make a call do nothing, which
 * is how a best-effort buffer that was refused is skipped. */
#ifndef ENGINE_CORE_KERNELS_H
#define ENGINE_CORE_KERNELS_H

#include <cuda_runtime_api.h>

#define KERNEL_WINDOW 512

/* dst = f(src); device or pinned memory on either side. */
void kernel_unary(void *dst, const void *src, cudaStream_t stream);

/* The same between two device addresses; the only form for memory that a capture
 * allocated, whose kind the runtime cannot tell before the graph runs. */
void kernel_device(void *dst, const void *src, cudaStream_t stream);

/* dst = f(a, b). */
void kernel_binary(void *dst, const void *a, const void *b, cudaStream_t stream);

/* dst = constant. */
void kernel_fill(void *dst, int value, cudaStream_t stream);

/* One matrix product through the optional library, or through kernel_binary without it. */
void kernel_gemm(void *c, const void *a, const void *b, cudaStream_t stream);

/* Opens the optional library named by ENGINE_BLAS; returns whether it is used. */
int blas_open(void);
void blas_close(void);

#endif
