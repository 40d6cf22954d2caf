/* Device reset: what survives, what comes back, and a fault before one. */
#include "test_cudart_common.h"

#include <string.h>

START_TEST(default_pool_blocks_survive_and_can_be_freed_once)
{
    void *p, *plain;

    OK(cudaMallocAsync(&p, 4096, NULL));
    OK(cudaMalloc(&plain, 4096));
    OK(cudaDeviceSynchronize());
    OK(cudaDeviceReset());
    OK(cudaFree(NULL));
    ck_assert_int_eq(type_of(p), cudaMemoryTypeDevice);
    ck_assert_int_eq(type_of(plain), cudaMemoryTypeUnregistered);
    OK(cudaFree(p));
    IS(cudaFree(p), cudaErrorInvalidValue);
    IS(cudaFree(plain), cudaErrorInvalidValue);
}
END_TEST

START_TEST(allocating_again_works)
{
    unsigned char back[64];
    void *p;

    OK(cudaMalloc(&p, 64));
    OK(cudaDeviceReset());
    ck_assert_int_eq(context_exists(), 0);
    OK(cudaMalloc(&p, 64));
    ck_assert_int_eq(context_exists(), 1);
    OK(cudaMemset(p, 9, 64));
    OK(cudaMemcpy(back, p, 64, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(back[63], 9);
}
END_TEST

START_TEST(streams_and_events_are_gone)
{
    cudaStream_t s = new_stream();

    OK(cudaDeviceReset());
    OK(cudaFree(NULL));
    ck_assert_int_ne(cudaStreamSynchronize(s), cudaSuccess);
}
END_TEST

static void *reset_here(void *unused)
{
    OK(cudaDeviceReset());
    return unused;
}

START_TEST(from_a_thread_that_never_touched_cuda_it_does_nothing)
{
    void *p;

    OK(cudaMalloc(&p, 4096));
    on_thread(reset_here, NULL);
    ck_assert_int_eq(context_exists(), 1);
    ck_assert_int_eq(type_of(p), cudaMemoryTypeDevice);
    OK(cudaFree(p));
}
END_TEST

/* The kernel of a stale binding: this thread keeps the reset context current
 * and gets a new one by its next call. */
static void *touch_and_reset(void *unused)
{
    OK(cudaFree(NULL));
    OK(cudaDeviceReset());
    return unused;
}

START_TEST(another_thread_that_was_bound_before_goes_on)
{
    void *p;

    OK(cudaFree(NULL));
    on_thread(touch_and_reset, NULL);
    OK(cudaMalloc(&p, 64));
    OK(cudaFree(p));
}
END_TEST

static void fault(void)
{
    cudaStream_t s;
    void *p;

    environment("FAKEGPU_DELAY_US", "100000");
    s = new_stream();
    OK(cudaMallocAsync(&p, 4096, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaMemsetAsync(p, 1, 4096, s));
    OK(cudaFree(p));
    IS(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

START_TEST(a_fault_sticks)
{
    void *p;

    fault();
    (void)cudaGetLastError();
    IS(cudaMalloc(&p, 64), cudaErrorIllegalAddress);
    IS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    IS(cudaMemGetInfo(NULL, NULL), cudaErrorIllegalAddress);
}
END_TEST

START_TEST(after_a_fault_and_a_reset_malloc_gives_46)
{
    void *p;

    fault();
    (void)cudaDeviceReset();
    (void)cudaGetLastError();
    IS(cudaMalloc(&p, 64), cudaErrorDevicesUnavailable);
}
END_TEST

RUN_TESTS("reset", default_pool_blocks_survive_and_can_be_freed_once, allocating_again_works,
          streams_and_events_are_gone, from_a_thread_that_never_touched_cuda_it_does_nothing,
          another_thread_that_was_bound_before_goes_on, a_fault_sticks,
          after_a_fault_and_a_reset_malloc_gives_46)
