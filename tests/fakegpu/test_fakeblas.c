/* The library with a private runtime: what it claims when, that its product
 * depends on its inputs alone, and that nothing of the private copy shows. */
#include "test_cudart_common.h"

#include "fakeblas.h"

#include <dlfcn.h>
#include <string.h>

static size_t free_bytes(void)
{
    size_t n = 0;

    OK(cudaMemGetInfo(&n, NULL));
    return n;
}

static float *filled(int value, size_t bytes)
{
    float *p;

    OK(cudaMalloc((void **)&p, bytes));
    OK(cudaMemset(p, value, bytes));
    return p;
}

START_TEST(the_handle_claims_1_kib_and_the_first_product_the_workspace)
{
    fakeblasHandle_t h;
    size_t before, created, first;
    float *A = filled(1, 4096), *B = filled(2, 4096), *C = filled(0, 4096);

    before = free_bytes();
    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    created = free_bytes();
    ck_assert_uint_le(before - created, 2 * MIB);
    IS(fakeblasGemm(h, NULL, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    first = free_bytes();
    ck_assert_uint_ge(created - first, FAKEBLAS_WORKSPACE_BYTES);
    IS(fakeblasGemm(h, NULL, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    OK(cudaDeviceSynchronize());
    ck_assert_uint_eq(free_bytes(), first);
    IS(fakeblasDestroy(h), FAKEBLAS_SUCCESS);
    ck_assert_uint_ge(free_bytes(), first + FAKEBLAS_WORKSPACE_BYTES);
}
END_TEST

static void product(fakeblasHandle_t h, cudaStream_t s, int a, int b, unsigned char *out)
{
    float *A = filled(a, 8192), *B = filled(b, 8192), *C = filled(0, 8192);

    OK(cudaDeviceSynchronize());
    IS(fakeblasGemm(h, s, 64, 32, 64, A, B, C), FAKEBLAS_SUCCESS);
    OK(cudaStreamSynchronize(s));
    OK(cudaMemcpy(out, C, 8192, cudaMemcpyDeviceToHost));
    OK(cudaFree(A));
    OK(cudaFree(B));
    OK(cudaFree(C));
}

START_TEST(the_product_depends_on_both_inputs_and_on_nothing_else)
{
    unsigned char x[8192], y[8192], z[8192], w[8192];
    fakeblasHandle_t h, g;
    cudaStream_t s = new_stream();

    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    IS(fakeblasCreate(&g), FAKEBLAS_SUCCESS);
    product(h, s, 3, 4, x);
    product(h, s, 3, 5, y);
    product(h, s, 2, 4, z);
    product(g, NULL, 3, 4, w);
    ck_assert_uint_eq(x[0], (unsigned char)(5 * 3 + 3 * 4 + 17));
    ck_assert_mem_eq(x, w, sizeof x);
    ck_assert_mem_ne(x, y, FAKEBLAS_TOUCHED_BYTES);
    ck_assert_mem_ne(x, z, FAKEBLAS_TOUCHED_BYTES);
    ck_assert_uint_eq(x[FAKEBLAS_TOUCHED_BYTES], 0);
}
END_TEST

START_TEST(products_on_two_streams_share_the_workspace_in_order)
{
    unsigned char x[4096], y[4096];
    float *A, *B, *C, *D;
    cudaStream_t s, t;
    fakeblasHandle_t h;

    environment("FAKEGPU_DELAY_US", "2000");
    s = new_stream();
    t = new_stream();
    A = filled(3, 4096);
    B = filled(4, 4096);
    C = filled(0, 4096);
    D = filled(0, 4096);
    OK(cudaDeviceSynchronize());
    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    IS(fakeblasGemm(h, s, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    IS(fakeblasGemm(h, t, 32, 32, 32, B, A, D), FAKEBLAS_SUCCESS);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(x, C, 4096, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(y, D, 4096, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(x[0], (unsigned char)(5 * 3 + 3 * 4 + 17));
    ck_assert_uint_eq(y[0], (unsigned char)(5 * 4 + 3 * 3 + 17));
}
END_TEST

START_TEST(a_workspace_of_the_callers_is_used_instead)
{
    float *A = filled(1, 4096), *B = filled(2, 4096), *C = filled(0, 4096);
    fakeblasHandle_t h;
    size_t before;
    void *workspace;

    OK(cudaMalloc(&workspace, MIB));
    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    IS(fakeblasSetWorkspace(h, workspace, MIB), FAKEBLAS_SUCCESS);
    before = free_bytes();
    IS(fakeblasGemm(h, NULL, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    ck_assert_uint_lt(before - free_bytes(), FAKEBLAS_WORKSPACE_BYTES);
    IS(fakeblasDestroy(h), FAKEBLAS_SUCCESS);
    OK(cudaFree(workspace));
}
END_TEST

START_TEST(a_captured_product_can_be_replayed)
{
    cudaStream_t s = new_stream();
    float *A = filled(3, 4096), *B = filled(4, 4096), *C = filled(0, 4096);
    unsigned char out[4096];
    fakeblasHandle_t h;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    OK(cudaDeviceSynchronize());
    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    IS(fakeblasGemm(h, s, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    IS(fakeblasGemm(h, s, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int value = 1; value < 4; value++) {
        OK(cudaMemset(A, value, 4096));
        OK(cudaDeviceSynchronize());
        OK(cudaGraphLaunch(exec, s));
        OK(cudaStreamSynchronize(s));
        OK(cudaMemcpy(out, C, 4096, cudaMemcpyDeviceToHost));
        ck_assert_uint_eq(out[0], (unsigned char)(5 * value + 3 * 4 + 17));
    }
}
END_TEST

START_TEST(a_full_device_is_an_allocation_failure_without_a_public_error)
{
    float *A = filled(1, 4096), *B = filled(2, 4096), *C = filled(0, 4096);
    fakeblasHandle_t h;
    void *rest;

    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    OK(cudaMalloc(&rest, free_bytes() - 32 * MIB));
    IS(fakeblasGemm(h, NULL, 32, 32, 32, A, B, C), FAKEBLAS_ALLOC_FAILED);
    IS(cudaPeekAtLastError(), cudaSuccess);
    OK(cudaFree(rest));
    IS(fakeblasGemm(h, NULL, 32, 32, 32, A, B, C), FAKEBLAS_SUCCESS);
}
END_TEST

START_TEST(bad_arguments)
{
    fakeblasHandle_t h;
    float *A = filled(1, 4096);

    IS(fakeblasCreate(NULL), FAKEBLAS_INVALID_VALUE);
    IS(fakeblasDestroy(NULL), FAKEBLAS_NOT_INITIALIZED);
    IS(fakeblasCreate(&h), FAKEBLAS_SUCCESS);
    IS(fakeblasGemm(h, NULL, 0, 1, 1, A, A, A), FAKEBLAS_INVALID_VALUE);
    IS(fakeblasGemm(h, NULL, 1, 1, 1, A, NULL, A), FAKEBLAS_INVALID_VALUE);
    IS(fakeblasSetWorkspace(h, NULL, 4), FAKEBLAS_INVALID_VALUE);
}
END_TEST

START_TEST(the_private_runtime_is_not_visible)
{
    void *blas = dlopen("libfakeblas.so", RTLD_NOW | RTLD_NOLOAD);
    Dl_info info;

    ck_assert_ptr_nonnull(blas);
    ck_assert_ptr_nonnull(dlsym(blas, "fakeblasCreate"));
    /* A look-up through its handle may fall through to what it needs, never to itself. */
    if (dlsym(blas, "cudaMalloc")) {
        ck_assert_int_ne(dladdr(dlsym(blas, "cudaMalloc"), &info), 0);
        ck_assert_ptr_null(strstr(info.dli_fname, "fakeblas"));
    }
}
END_TEST

RUN_TESTS("fakeblas", the_handle_claims_1_kib_and_the_first_product_the_workspace,
          the_product_depends_on_both_inputs_and_on_nothing_else,
          products_on_two_streams_share_the_workspace_in_order,
          a_workspace_of_the_callers_is_used_instead, a_captured_product_can_be_replayed,
          a_full_device_is_an_allocation_failure_without_a_public_error, bad_arguments,
          the_private_runtime_is_not_visible)
