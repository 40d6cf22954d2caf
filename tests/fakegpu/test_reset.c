/* What a reset of the primary context destroys, leaves and charges. */
#include "test_driver.h"

#include "fakegpu.h"

START_TEST(stream_ordered_blocks_survive_and_are_freed_once)
{
    CUdeviceptr p, plain;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocAsync(&p, 4096, s));
    OK(cuMemAlloc(&plain, 4096));
    OK(cuMemsetD8Async(p, 9, 4096, s));
    OK(cuStreamSynchronize(s));
    OK(cuDevicePrimaryCtxReset(0));
    start();
    ck_assert_uint_eq(type_of(p), CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_eq(first_byte(p), 9);
    ck_assert_uint_eq(type_of(plain), 0);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(plain));
    OK(cuMemFree(p));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(allocating_again_works)
{
    CUdeviceptr p;
    start();
    OK(cuMemAlloc(&p, 4096));
    OK(cuDevicePrimaryCtxReset(0));
    start();
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemsetD8(p, 3, 4096));
    ck_assert_uint_eq(first_byte(p), 3);
}
END_TEST

START_TEST(a_reset_context_is_inactive_and_refuses)
{
    CUdeviceptr p;
    unsigned flags;
    int active = 1;
    void *h;
    CUstream s;
    start();
    s = new_stream();
    OK(cuMemAllocHost(&h, 4096));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
    GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&p, 4096));
    start();
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(h));
}
END_TEST

START_TEST(what_a_reset_leaves_charged)
{
    size_t total;
    unsigned long long used;
    CUdeviceptr big;
    OK(cuInit(0));
    OK(cuDeviceTotalMem(&total, 0));
    start();
    ck_assert_uint_eq(total - free_bytes(), 527 * MIB);
    OK(cuMemAlloc(&big, 8 * GIB));
    OK(cuDevicePrimaryCtxReset(0));
    ck_assert_int_eq(fakegpu_device_used(0, &used, NULL), 0);
    ck_assert_uint_eq(used, 127 * MIB);
    start();
    ck_assert_uint_eq(total - free_bytes(), 527 * MIB); /* the next context takes over what was left */
}
END_TEST

START_TEST(a_reset_without_a_context_is_a_no_op)
{
    int active;
    unsigned flags;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, stream_ordered_blocks_survive_and_are_freed_once);
    tcase_add_test(t, allocating_again_works);
    tcase_add_test(t, a_reset_context_is_inactive_and_refuses);
    tcase_add_test(t, what_a_reset_leaves_charged);
    tcase_add_test(t, a_reset_without_a_context_is_a_no_op);
}

int main(void) { return run_tests("reset", fill); }
