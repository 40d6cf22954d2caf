/* Stream-ordered allocation: what a free does when, and what the pool says. */
#include "test_cudart_common.h"

#include <stdint.h>
#include <string.h>

static uint64_t used(cudaMemPool_t pool)
{
    uint64_t bytes = 0;

    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
}

static uint64_t reserved(cudaMemPool_t pool)
{
    uint64_t bytes = 0;

    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes));
    return bytes;
}

START_TEST(free_async_takes_a_plain_block_when_the_stream_gets_there)
{
    cudaStream_t s;
    void *p;

    environment("FAKEGPU_DELAY_US", LONG_US);
    s = new_stream();
    OK(cudaMalloc(&p, 4096));
    OK(launch_idle(s));
    OK(cudaFreeAsync(p, s));
    IS(cudaStreamQuery(s), cudaErrorNotReady);
    ck_assert_int_eq(type_of(p), cudaMemoryTypeDevice);
    OK(cudaStreamSynchronize(s));
    ck_assert_int_eq(type_of(p), cudaMemoryTypeUnregistered);
    IS(cudaFree(p), cudaErrorInvalidValue);
}
END_TEST

START_TEST(free_async_of_managed_memory_is_not_supported)
{
    void *p;

    OK(cudaMallocManaged(&p, 4096, cudaMemAttachGlobal));
    IS(cudaFreeAsync(p, NULL), cudaErrorNotSupported);
    OK(cudaFree(p));
}
END_TEST

START_TEST(free_async_of_a_stranger_is_refused)
{
    int local;
    void *h;

    OK(cudaMallocHost(&h, 64));
    IS(cudaFreeAsync(&local, NULL), cudaErrorInvalidValue);
    IS(cudaFreeAsync(h, NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(used_bytes_fall_at_the_call_while_the_kernel_still_runs)
{
    cudaMemPool_t pool;
    cudaStream_t s;
    void *p;

    environment("FAKEGPU_DELAY_US", LONG_US);
    s = new_stream();
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&p, 8 * MIB, s));
    OK(cudaStreamSynchronize(s));
    ck_assert_uint_ge(used(pool), 8 * MIB);
    OK(cudaMemsetAsync(p, 0, 8 * MIB, s));
    OK(cudaFreeAsync(p, s));
    ck_assert_uint_lt(used(pool), 8 * MIB);
    IS(cudaStreamQuery(s), cudaErrorNotReady);
}
END_TEST

START_TEST(pending_bytes_fail_a_plain_malloc_until_a_synchronisation)
{
    cudaMemPool_t pool;
    cudaStream_t s;
    size_t free_bytes, total;
    uint64_t forever = UINT64_MAX;
    void *p, *q = NULL;

    environment("FAKEGPU_DELAY_US", LONG_US);
    s = new_stream();
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &forever));
    OK(cudaMemGetInfo(&free_bytes, &total));
    OK(cudaMallocAsync(&p, free_bytes / 10 * 9, s));
    OK(cudaStreamSynchronize(s));
    OK(launch_idle(s));
    OK(cudaFreeAsync(p, s));
    IS(cudaMalloc(&q, total / 2), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(q);
    OK(cudaDeviceSynchronize());
    OK(cudaMalloc(&q, total / 2));
}
END_TEST

START_TEST(an_idle_pool_keeps_its_bytes_up_to_the_threshold)
{
    cudaMemPool_t pool;
    uint64_t forever = UINT64_MAX;
    void *p;

    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &forever));
    OK(cudaMallocAsync(&p, 40 * MIB, NULL));
    ck_assert_uint_ge(reserved(pool), 40 * MIB);
    ck_assert_uint_eq(reserved(pool) % (32 * MIB), 0);
    OK(cudaFreeAsync(p, NULL));
    OK(cudaDeviceSynchronize());
    ck_assert_uint_ge(reserved(pool), 40 * MIB);
    OK(cudaMemPoolTrimTo(pool, 0));
    ck_assert_uint_eq(reserved(pool), 0);
}
END_TEST

START_TEST(a_pool_without_threshold_shrinks_at_a_synchronisation)
{
    cudaMemPool_t pool;
    void *p;

    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&p, 40 * MIB, NULL));
    OK(cudaFreeAsync(p, NULL));
    OK(cudaStreamSynchronize(NULL));
    ck_assert_uint_eq(reserved(pool), 0);
}
END_TEST

START_TEST(a_pool_of_ones_own)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool, standard, current;
    cudaStream_t s = new_stream();
    void *p;

    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocFromPoolAsync(&p, MIB, pool, s));
    ck_assert_uint_ge(used(pool), MIB);
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamSynchronize(s));
    ck_assert_uint_eq(used(pool), 0);
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    ck_assert_ptr_eq(current, pool);
    OK(cudaDeviceSetMemPool(0, standard));
    OK(cudaMemPoolDestroy(pool));
}
END_TEST

START_TEST(bytes_of_a_stream_ordered_block)
{
    cudaStream_t s = new_stream();
    unsigned char back[256];
    void *p;

    OK(cudaMallocAsync(&p, sizeof back, s));
    ck_assert_int_eq(type_of(p), cudaMemoryTypeDevice);
    ck_assert_uint_eq((size_t)p % 512, 0);
    OK(cudaMemsetAsync(p, 0x3c, sizeof back, s));
    OK(cudaMemcpyAsync(back, p, sizeof back, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamSynchronize(s));
    for (size_t i = 0; i < sizeof back; i++)
        ck_assert_uint_eq(back[i], 0x3c);
}
END_TEST

cudaError_t cudaMallocAsync_ptsz(void **ptr, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

/* The _ptsz name means the thread's own stream by NULL, not the legacy one. */
START_TEST(per_thread_names_use_the_threads_stream)
{
    void *p;

    environment("FAKEGPU_DELAY_US", LONG_US);
    OK(cudaMallocAsync_ptsz(&p, 64, NULL));
    OK(cudaMemsetAsync(p, 0, 64, cudaStreamPerThread));
    IS(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    OK(cudaFreeAsync_ptsz(p, NULL));
    OK(cudaStreamSynchronize_ptsz(NULL));
    IS(cudaStreamQuery(cudaStreamPerThread), cudaSuccess);
}
END_TEST

RUN_TESTS("async", free_async_takes_a_plain_block_when_the_stream_gets_there,
          free_async_of_managed_memory_is_not_supported, free_async_of_a_stranger_is_refused,
          used_bytes_fall_at_the_call_while_the_kernel_still_runs,
          pending_bytes_fail_a_plain_malloc_until_a_synchronisation,
          an_idle_pool_keeps_its_bytes_up_to_the_threshold,
          a_pool_without_threshold_shrinks_at_a_synchronisation, a_pool_of_ones_own,
          bytes_of_a_stream_ordered_block, per_thread_names_use_the_threads_stream)
