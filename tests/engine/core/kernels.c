#include "core/kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"

typedef int (*blas_create_fn)(void **handle);
typedef int (*blas_destroy_fn)(void *handle);
typedef int (*blas_gemm_fn)(void *handle, void *stream, int m, int n, int k, const void *a, const void *b, void *c);

static void *blas_handle;
static blas_destroy_fn blas_destroy;
static blas_gemm_fn blas_gemm;

void kernel_unary(void *dst, const void *src, cudaStream_t stream)
{
    if (dst == NULL || src == NULL)
        return;
    CU_CHECK(cudaMemcpyAsync(dst, src, 256, cudaMemcpyDefault, stream));
}

void kernel_device(void *dst, const void *src, cudaStream_t stream)
{
    CU_CHECK(cudaMemcpyAsync(dst, src, 256, cudaMemcpyDeviceToDevice, stream));
}

void kernel_binary(void *dst, const void *a, const void *b, cudaStream_t stream)
{
    if (dst == NULL || a == NULL || b == NULL)
        return;
    CU_CHECK(cudaMemcpyAsync(dst, a, 256, cudaMemcpyDefault, stream));
    CU_CHECK(cudaMemcpyAsync((char *)dst + 256, b, 128, cudaMemcpyDefault, stream));
}

void kernel_fill(void *dst, int value, cudaStream_t stream)
{
    if (dst == NULL)
        return;
    CU_CHECK(cudaMemsetAsync((char *)dst + 384, value, 64, stream));
}

void kernel_gemm(void *c, const void *a, const void *b, cudaStream_t stream)
{
    /* The library works in place of the copy only on its own windows: a 4x4
     * product needs 64 bytes of each operand, far inside every buffer. */
    if (blas_handle != NULL && c != NULL && a != NULL && b != NULL)
        (void)blas_gemm(blas_handle, stream, 4, 4, 4, a, b, (char *)c + 448);
    kernel_binary(c, a, b, stream);
}

int blas_open(void)
{
    const char *name = getenv("ENGINE_BLAS");
    if (name == NULL || name[0] == '\0')
        return 0;
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) {
        fprintf(stderr, "engine: ENGINE_BLAS: %s\n", dlerror());
        return 0;
    }
    blas_create_fn create = (blas_create_fn)dlsym(lib, "fakeblasCreate");
    blas_destroy = (blas_destroy_fn)dlsym(lib, "fakeblasDestroy");
    blas_gemm = (blas_gemm_fn)dlsym(lib, "fakeblasGemm");
    if (create == NULL || blas_destroy == NULL || blas_gemm == NULL || create(&blas_handle) != 0) {
        fprintf(stderr, "engine: ENGINE_BLAS: %s is not a usable library\n", name);
        blas_handle = NULL;
        return 0;
    }
    return 1;
}

void blas_close(void)
{
    if (blas_handle != NULL)
        (void)blas_destroy(blas_handle);
    blas_handle = NULL;
}
