/* Outputs of failed calls, sizes of zero, threads without a context, forks, late calls, and life after error 700. */
#include "test_driver.h"

#include <pthread.h>
#include <sys/wait.h>

#define MARK ((CUdeviceptr)0x5a5a5a5a)
#define TOO_MUCH (4096 * GIB)

START_TEST(failed_allocations_write_null)
{
    CUdeviceptr p = MARK;
    start();
    CUstream s = new_stream();
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, TOO_MUCH));
    ck_assert_uint_eq(p, 0);
    p = MARK;
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&p, TOO_MUCH, s));
    ck_assert_uint_eq(p, 0);
    void *h = &p;
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&h, (size_t)1 << 62, 0));
    ck_assert_ptr_null(h);
    h = &p;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&h, 4096, 0x8000));
    ck_assert_ptr_null(h);
    p = MARK;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 4096, 0));
    ck_assert_uint_eq(p, 0);
    OK(cuMemAlloc(&p, 4096)); /* nothing sticks */
}
END_TEST

START_TEST(unregister_tells_unknown_memory_from_memory_of_another_kind)
{
    static char mine[3 * 4096] __attribute__((aligned(4096)));
    CUdeviceptr p;
    unsigned flags;
    void *h;
    start();
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemAllocHost(&h, 4096));
    GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(mine));
    OK(cuMemHostRegister(mine, sizeof mine, 0));
    OK(cuMemHostGetFlags(&flags, mine));
    ck_assert_uint_eq(flags, CU_MEMHOSTREGISTER_DEVICEMAP);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(mine + 4096));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(h));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister((void *)(uintptr_t)p));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(NULL));
    OK(cuMemHostUnregister(mine));
    OK(cuMemHostRegister(mine, sizeof mine, CU_MEMHOSTREGISTER_PORTABLE));
    OK(cuMemHostGetFlags(&flags, mine));
    ck_assert_uint_eq(flags, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}
END_TEST

START_TEST(failed_vmm_calls_leave_their_outputs_alone)
{
    CUdeviceptr p = MARK;
    CUmemGenericAllocationHandle h = MARK;
    CUmemAllocationProp prop = device_prop(0);
    start();
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&h, TOO_MUCH, &prop, 0));
    ck_assert_uint_eq(h, MARK);
    ck_assert_int_ne(cuMemAddressReserve(&p, (size_t)1 << 60, 0, 0, 0), CUDA_SUCCESS);
    ck_assert_uint_eq(p, MARK);
}
END_TEST

START_TEST(a_refused_pitch_is_written_once_it_is_known)
{
    CUdeviceptr p = MARK;
    size_t pitch = 77;
    start();
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch(&p, &pitch, (size_t)1 << 32, 4096, 4));
    ck_assert_uint_eq(p, 0);
    ck_assert_uint_eq(pitch, (size_t)1 << 32);
    p = MARK;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 1000, 10, 3));
    ck_assert_uint_eq(p, 0);
    ck_assert_uint_eq(pitch, 0);
}
END_TEST

START_TEST(size_zero)
{
    CUdeviceptr p = MARK;
    size_t pitch = 77;
    void *h = &p;
    start();
    CUstream s = new_stream();
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    ck_assert_uint_eq(p, 0);
    p = MARK;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 0, 4, 4));
    ck_assert_uint_eq(p, 0);
    ck_assert_uint_eq(pitch, 0);
    p = MARK;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    ck_assert_uint_eq(p, 0);
    OK(cuMemAllocAsync(&p, 0, s));
    OK(cuMemAllocHost(&h, 0));
    OK(cuMemHostAlloc(&h, 0, 0));
}
END_TEST

START_TEST(memory_queries_take_null_outputs_and_totals_agree)
{
    size_t f = 0, t = 0, total;
    start();
    OK(cuMemGetInfo(NULL, NULL));
    OK(cuMemGetInfo(&f, NULL));
    OK(cuMemGetInfo(NULL, &t));
    OK(cuDeviceTotalMem(&total, 0));
    ck_assert_uint_eq(t, total);
    ck_assert_uint_lt(f, t);
}
END_TEST

static void *without_context(void *arg)
{
    CUdeviceptr p = *(CUdeviceptr *)arg, q = MARK;
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&q, 4096));
    ck_assert_uint_eq(q, 0);
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo(NULL, NULL));
    OK(cuMemFree(p));
    return NULL;
}

START_TEST(a_thread_without_a_context_may_free_but_not_allocate)
{
    CUdeviceptr p;
    pthread_t t;
    start();
    OK(cuMemAlloc(&p, 4096));
    ck_assert_int_eq(pthread_create(&t, NULL, without_context, &p), 0);
    pthread_join(t, NULL);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(a_forked_child_gets_3_and_no_address)
{
    int status;
    start();
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr p = MARK;
        int n = 77;
        bool ok = cuMemAlloc(&p, 4096) == CUDA_ERROR_NOT_INITIALIZED && p == 0 && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                  cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && n == 77;
        _exit(ok ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    OK(cuCtxSynchronize()); /* and the parent goes on */
}
END_TEST

START_TEST(a_child_forked_before_cuda_starts_afresh)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CUcontext c;
        CUdeviceptr p;
        _exit(cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc(&p, 4096));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static CUdeviceptr late_block;
static void older_than_cuda(void) { _exit(cuMemFree(late_block) == CUDA_ERROR_DEINITIALIZED ? 0 : 1); }

START_TEST(late_calls_get_4)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CUcontext c;
        atexit(older_than_cuda);
        if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc(&late_block, 4096))
            _exit(2);
        exit(3);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(after_700_a_reset_and_an_allocation_give_46)
{
    CUcontext c;
    CUdeviceptr p = 0x1000, q;
    unsigned char v = 1;
    size_t n = 4096;
    void *args[] = {&p, &v, &n};
    start();
    CUstream s = new_stream();
    OK(launch(s, "fake_fill", args)); /* no such memory */
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&q, 4096));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(q));
    OK(cuDevicePrimaryCtxReset(0));
    GIVES(CUDA_ERROR_DEVICE_UNAVAILABLE, cuDevicePrimaryCtxRetain(&c, 0));
}
END_TEST

START_TEST(the_chosen_call_fails_once)
{
    CUdeviceptr p = MARK;
    CUmemGenericAllocationHandle h = MARK;
    CUmemAllocationProp prop = device_prop(0);
    setenv("FAKEGPU_FAIL", "cuMemAlloc_v2:2,cuMemCreate:1", 1);
    start();
    OK(cuMemAlloc(&p, 4096));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, 4096));
    ck_assert_uint_eq(p, 0);
    OK(cuMemAlloc(&p, 4096));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&h, 2 * MIB, &prop, 0));
    ck_assert_uint_eq(h, MARK);
    OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, failed_allocations_write_null);
    tcase_add_test(t, unregister_tells_unknown_memory_from_memory_of_another_kind);
    tcase_add_test(t, failed_vmm_calls_leave_their_outputs_alone);
    tcase_add_test(t, a_refused_pitch_is_written_once_it_is_known);
    tcase_add_test(t, size_zero);
    tcase_add_test(t, memory_queries_take_null_outputs_and_totals_agree);
    tcase_add_test(t, a_thread_without_a_context_may_free_but_not_allocate);
    tcase_add_test(t, a_forked_child_gets_3_and_no_address);
    tcase_add_test(t, a_child_forked_before_cuda_starts_afresh);
    tcase_add_test(t, late_calls_get_4);
    tcase_add_test(t, after_700_a_reset_and_an_allocation_give_46);
    tcase_add_test(t, the_chosen_call_fails_once);
}

int main(void) { return run_tests("outputs", fill); }
