/* Which calls wait for an unrelated running kernel. */
#include "test_driver.h"

#define SPIN_MS 120

/* Runs `call` beside a kernel and holds the answer to whether the kernel had ended when it returned. */
#define WAITS(s, code, call) do { spin(s, SPIN_MS); GIVES(code, call); ck_assert_msg(!busy(s), #call " did not wait"); } while (0)
#define PASSES(s, code, call) \
    do { hold(s); GIVES(code, call); ck_assert_msg(busy(s), #call " waited"); release(); OK(cuStreamSynchronize(s)); } while (0)

START_TEST(a_free_waits_at_any_size)
{
    static const size_t sizes[] = {1, 256, MIB, MIB + 1, 64 * MIB, 4 * GIB};
    start();
    CUstream s = new_stream();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CUdeviceptr p;
        OK(cuMemAlloc(&p, sizes[i]));
        WAITS(s, CUDA_SUCCESS, cuMemFree(p));
    }
}
END_TEST

START_TEST(a_pitched_and_a_managed_free_wait)
{
    CUdeviceptr p;
    size_t pitch;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocPitch(&p, &pitch, 100, 10, 4));
    WAITS(s, CUDA_SUCCESS, cuMemFree(p));
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    WAITS(s, CUDA_SUCCESS, cuMemFree(p));
}
END_TEST

START_TEST(pinned_unregister_and_array_frees_wait)
{
    void *h;
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    static char mine[8192];
    start();
    CUstream s = new_stream();
    OK(cuMemAllocHost(&h, 4096));
    WAITS(s, CUDA_SUCCESS, cuMemFreeHost(h));
    OK(cuMemHostRegister(mine, sizeof mine, 0));
    WAITS(s, CUDA_SUCCESS, cuMemHostUnregister(mine));
    OK(cuArrayCreate(&a, &d));
    WAITS(s, CUDA_SUCCESS, cuArrayDestroy(a));
}
END_TEST

START_TEST(null_and_bad_frees_do_not_wait)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 4096));
    PASSES(s, CUDA_SUCCESS, cuMemFree(0));
    PASSES(s, CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 512));
    PASSES(s, CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1000));
    PASSES(s, CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(&p));
    PASSES(s, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(&p));
}
END_TEST

START_TEST(allocations_and_queries_do_not_wait)
{
    CUdeviceptr p;
    void *h;
    size_t f, t;
    static char mine[4096];
    CUmemoryPool pool;
    start();
    CUstream s = new_stream();
    PASSES(s, CUDA_SUCCESS, cuMemAlloc(&p, 4 * MIB));
    PASSES(s, CUDA_SUCCESS, cuMemAllocHost(&h, 4096));
    PASSES(s, CUDA_SUCCESS, cuMemHostRegister(mine, sizeof mine, 0));
    PASSES(s, CUDA_SUCCESS, cuMemGetInfo(&f, &t));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    PASSES(s, CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
}
END_TEST

START_TEST(vmm_calls_do_not_wait)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = device_prop(0);
    CUmemAccessDesc d = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    start();
    CUstream s = new_stream();
    PASSES(s, CUDA_SUCCESS, cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    PASSES(s, CUDA_SUCCESS, cuMemCreate(&h, 2 * MIB, &prop, 0));
    PASSES(s, CUDA_SUCCESS, cuMemMap(p, 2 * MIB, 0, h, 0));
    PASSES(s, CUDA_SUCCESS, cuMemSetAccess(p, 2 * MIB, &d, 1));
    PASSES(s, CUDA_SUCCESS, cuMemUnmap(p, 2 * MIB));
    PASSES(s, CUDA_SUCCESS, cuMemRelease(h));
    PASSES(s, CUDA_SUCCESS, cuMemAddressFree(p, 2 * MIB));
}
END_TEST

START_TEST(an_allocation_that_fails_for_memory_does_not_wait)
{
    CUdeviceptr p;
    size_t f, t;
    start();
    CUstream s = new_stream();
    OK(cuMemGetInfo(&f, &t));
    PASSES(s, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, 4096 * GIB));
    PASSES(s, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, t));
    PASSES(s, CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, f + 64 * MIB));
}
END_TEST

START_TEST(a_free_of_a_stream_ordered_block_does_not_wait)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocAsync(&p, 4096, s));
    OK(cuStreamSynchronize(s));
    PASSES(s, CUDA_SUCCESS, cuMemFree(p));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(a_stream_ordered_block_freed_in_flight_is_error_700)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocAsync(&p, 4096, s));
    hold(s);
    slow_fill(s, p, 1, 4096, 0);
    OK(cuMemFree(p));
    release();
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&p, 4096)); /* and the error stays */
}
END_TEST

START_TEST(a_block_in_use_survives_until_its_free_has_waited)
{
    CUdeviceptr p, q;
    start();
    CUstream s = new_stream(), other = new_stream();
    OK(cuMemAlloc(&p, 4 * MIB));
    slow_fill(s, p, 0x11, 4 * MIB, SPIN_MS);
    OK(cuMemFree(p));
    OK(cuMemAlloc(&q, 4 * MIB));
    ck_assert_uint_eq(p, q); /* the address comes back */
    OK(cuMemsetD8Async(q, 0x22, 4 * MIB, other));
    OK(cuStreamSynchronize(other));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(q), 0x22);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, a_free_waits_at_any_size);
    tcase_add_test(t, a_pitched_and_a_managed_free_wait);
    tcase_add_test(t, pinned_unregister_and_array_frees_wait);
    tcase_add_test(t, null_and_bad_frees_do_not_wait);
    tcase_add_test(t, allocations_and_queries_do_not_wait);
    tcase_add_test(t, vmm_calls_do_not_wait);
    tcase_add_test(t, an_allocation_that_fails_for_memory_does_not_wait);
    tcase_add_test(t, a_free_of_a_stream_ordered_block_does_not_wait);
    tcase_add_test(t, a_stream_ordered_block_freed_in_flight_is_error_700);
    tcase_add_test(t, a_block_in_use_survives_until_its_free_has_waited);
}

int main(void) { return run_tests("waiting", fill); }
