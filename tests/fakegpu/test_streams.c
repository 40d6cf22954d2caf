/* Order inside and across streams, events, the default streams, and host memory rules of copies. */
#include "test_driver.h"

#include <dirent.h>
#include <pthread.h>

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

START_TEST(a_process_that_only_allocates_has_no_threads)
{
    CUdeviceptr p;
    void *h;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemAllocHost(&h, 4096));
    OK(cuMemFree(p));
    ck_assert_int_eq(threads_now(), 1);
    spin(s, 1);
    ck_assert_int_eq(threads_now(), 2);
}
END_TEST

START_TEST(the_legacy_stream_waits_for_blocking_streams_and_they_for_it)
{
    CUstream blocking, free_stream;
    CUdeviceptr p;
    start();
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    free_stream = new_stream();
    OK(cuMemAlloc(&p, 4));
    slow_fill(blocking, p, 1, 1, 80);
    OK(cuMemsetD8Async(p, 2, 1, NULL)); /* after the kernel */
    slow_fill(NULL, p + 1, 3, 1, 80);
    OK(cuMemsetD8Async(p + 1, 4, 1, blocking)); /* after the default stream's kernel */
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p), 2);
    ck_assert_uint_eq(first_byte(p + 1), 4);
    slow_fill(NULL, p + 2, 5, 1, 80);
    OK(cuMemsetD8Async(p + 2, 6, 1, free_stream)); /* not ordered behind it */
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p + 2), 5);
}
END_TEST

static CUresult per_thread_fill(CUdeviceptr p, unsigned char v) { return cuMemsetD8Async(p, v, 1, CU_STREAM_PER_THREAD); }

static void *other_default(void *arg)
{
    CUdeviceptr p = *(CUdeviceptr *)arg;
    OK(cuCtxSetCurrent(NULL));
    start();
    OK(per_thread_fill(p, 8)); /* another stream than the first thread's: does not wait for its kernel */
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

START_TEST(each_thread_has_a_default_stream_of_its_own)
{
    CUdeviceptr p;
    pthread_t t;
    unsigned long long legacy, mine;
    start();
    OK(cuMemAlloc(&p, 1));
    OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
    ck_assert_uint_ne(legacy, mine);
    hold(CU_STREAM_PER_THREAD);
    slow_fill(CU_STREAM_PER_THREAD, p, 7, 1, 0);
    ck_assert_int_eq(pthread_create(&t, NULL, other_default, &p), 0);
    pthread_join(t, NULL);
    ck_assert(busy(CU_STREAM_PER_THREAD));
    release();
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ck_assert_uint_eq(first_byte(p), 7);
}
END_TEST

START_TEST(an_event_orders_two_streams)
{
    CUdeviceptr p;
    CUevent e;
    start();
    CUstream a = new_stream(), b = new_stream();
    OK(cuMemAlloc(&p, 1));
    OK(cuEventCreate(&e, 0));
    OK(cuEventQuery(e)); /* never recorded: done */
    hold(a);
    slow_fill(a, p, 1, 1, 0);
    OK(cuEventRecord(e, a));
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    OK(cuStreamWaitEvent(b, e, 0));
    OK(cuMemsetD8Async(p, 2, 1, b));
    OK(cuEventDestroy(e)); /* the wait stands */
    release();
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(first_byte(p), 2);
    ck_assert(!busy(a));
}
END_TEST

START_TEST(elapsed_time_is_that_of_the_work)
{
    CUevent a, b;
    float ms;
    start();
    CUstream s = new_stream();
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventRecord(a, s));
    spin(s, 60);
    hold(s);
    OK(cuEventRecord(b, s));
    GIVES(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, a, b));
    release();
    OK(cuStreamSynchronize(s));
    OK(cuEventElapsedTime(&ms, a, b));
    ck_assert(ms >= 59 && ms < 3000);
}
END_TEST

START_TEST(a_destroyed_stream_still_finishes)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 1));
    slow_fill(s, p, 9, 1, 80);
    OK(cuStreamDestroy(s));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p), 9);
}
END_TEST

START_TEST(pageable_sources_may_be_reused_at_once_pinned_ones_may_not)
{
    CUdeviceptr p;
    unsigned char pageable = 1, *pinned;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 2));
    OK(cuMemAllocHost((void **)&pinned, 1));
    *pinned = 1;
    hold(s);
    OK(cuMemcpyHtoDAsync(p, &pageable, 1, s));
    ck_assert(busy(s)); /* a small pageable source is taken at the call, without waiting */
    OK(cuMemcpyHtoDAsync(p + 1, pinned, 1, s));
    ck_assert(busy(s));
    pageable = *pinned = 2;
    release();
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 1);
    ck_assert_uint_eq(first_byte(p + 1), 2);
}
END_TEST

static void note(void *arg) { *(volatile int *)arg += 1; }

START_TEST(host_functions_run_in_order)
{
    volatile int n = 0;
    start();
    CUstream s = new_stream();
    hold(s);
    OK(cuLaunchHostFunc(s, note, (void *)&n));
    ck_assert_int_eq(n, 0);
    release();
    OK(cuStreamSynchronize(s));
    ck_assert_int_eq(n, 1);
}
END_TEST

static void ask(void *arg)
{
    size_t f, t;
    *(volatile CUresult *)arg = cuMemGetInfo(&f, &t);
}

START_TEST(host_functions_may_not_ask_for_memory)
{
    volatile CUresult said = CUDA_SUCCESS;
    size_t f, t;
    start();
    OK(cuLaunchHostFunc(new_stream(), ask, (void *)&said));
    OK(cuCtxSynchronize());
    ck_assert_int_eq(said, CUDA_ERROR_NOT_PERMITTED);
    OK(cuMemGetInfo(&f, &t));
}
END_TEST

START_TEST(a_wait_value_holds_the_stream)
{
    CUdeviceptr flag;
    start();
    CUstream a = new_stream(), b = new_stream();
    OK(cuMemAlloc(&flag, 4));
    OK(cuMemsetD32(flag, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(a, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
    usleep(20000);
    ck_assert(busy(a));
    OK(cuStreamWriteValue32(b, flag, 5, 0));
    OK(cuStreamSynchronize(a));
}
END_TEST

START_TEST(copies_check_their_ranges)
{
    CUdeviceptr p;
    unsigned char b[16];
    start();
    OK(cuMemAlloc(&p, 8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, b, 9));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(b, p + 8, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p + 4, 0, 5));
    OK(cuMemFree(p));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, b, 1));
}
END_TEST

START_TEST(the_delay_holds_every_operation)
{
    CUdeviceptr p;
    setenv("FAKEGPU_DELAY_US", "300000", 1);
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 1));
    OK(cuMemsetD8Async(p, 1, 1, s));
    ck_assert(busy(s));
    OK(cuStreamSynchronize(s));
}
END_TEST

START_TEST(streams_code_and_limits_are_charged)
{
    CUstream s[128];
    start();
    size_t before = free_bytes();
    for (int i = 0; i < 128; i++)
        s[i] = new_stream();
    ck_assert_uint_eq(before - free_bytes(), 64 * MIB);
    before = free_bytes();
    spin(s[0], 1);
    ck_assert_uint_eq(before - free_bytes(), 2 * MIB); /* the module's code, once */
    spin(s[0], 1);
    ck_assert_uint_eq(before - free_bytes(), 2 * MIB);
    before = free_bytes();
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1536));
    ck_assert_uint_eq(before - free_bytes(), 132 * MIB); /* at once */
    spin(s[0], 1);
    ck_assert_uint_eq(before - free_bytes(), 132 * MIB);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    ck_assert_uint_eq(free_bytes(), before);
    before = free_bytes();
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 * MIB));
    spin(s[0], 1);
    ck_assert_uint_eq(before - free_bytes(), 34 * MIB);
}
END_TEST

START_TEST(managed_memory_is_charged_at_its_first_touch)
{
    CUdeviceptr p;
    start();
    size_t before = free_bytes();
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuMemsetD8(p, 1, 4096));
    ck_assert_uint_ge(before - free_bytes(), 128 * MIB);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, a_process_that_only_allocates_has_no_threads);
    tcase_add_test(t, the_legacy_stream_waits_for_blocking_streams_and_they_for_it);
    tcase_add_test(t, each_thread_has_a_default_stream_of_its_own);
    tcase_add_test(t, an_event_orders_two_streams);
    tcase_add_test(t, elapsed_time_is_that_of_the_work);
    tcase_add_test(t, a_destroyed_stream_still_finishes);
    tcase_add_test(t, pageable_sources_may_be_reused_at_once_pinned_ones_may_not);
    tcase_add_test(t, host_functions_run_in_order);
    tcase_add_test(t, host_functions_may_not_ask_for_memory);
    tcase_add_test(t, a_wait_value_holds_the_stream);
    tcase_add_test(t, copies_check_their_ranges);
    tcase_add_test(t, the_delay_holds_every_operation);
    tcase_add_test(t, streams_code_and_limits_are_charged);
    tcase_add_test(t, managed_memory_is_charged_at_its_first_touch);
}

int main(void) { return run_tests("streams", fill); }
