/* First use and steady use from many threads at once. */
#include "test_cudart_common.h"

#include <stdint.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 500

static pthread_barrier_t together;
static CUcontext bound[THREADS];

static void *first_use(void *p)
{
    size_t i = (size_t)p;
    void *block;

    pthread_barrier_wait(&together);
    if (cudaMalloc(&block, 64) != cudaSuccess || cudaFree(block) != cudaSuccess)
        return (void *)1;
    if (DRIVER(cuCtxGetCurrent, 4000)(&bound[i]) != CUDA_SUCCESS)
        return (void *)2;
    return NULL;
}

static void *steady_use(void *p)
{
    unsigned char value = (unsigned char)((size_t)p + 1), back[256];
    cudaStream_t s;

    pthread_barrier_wait(&together);
    if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess)
        return (void *)1;
    for (int i = 0; i < ROUNDS; i++) {
        void *block;
        cudaError_t e = i % 2 ? cudaMalloc(&block, sizeof back)
                              : cudaMallocAsync(&block, sizeof back, s);

        if (e != cudaSuccess)
            return (void *)2;
        if (cudaMemsetAsync(block, value, sizeof back, s) != cudaSuccess
            || cudaMemcpyAsync(back, block, sizeof back, cudaMemcpyDeviceToHost, s) != cudaSuccess
            || cudaStreamSynchronize(s) != cudaSuccess)
            return (void *)3;
        for (size_t k = 0; k < sizeof back; k++)
            if (back[k] != value)
                return (void *)4;
        e = i % 2 ? cudaFree(block) : cudaFreeAsync(block, s);
        if (e != cudaSuccess)
            return (void *)5;
    }
    return cudaStreamDestroy(s) == cudaSuccess ? NULL : (void *)6;
}

static void all_at_once(void *(*function)(void *))
{
    pthread_t t[THREADS];

    ck_assert_int_eq(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, function, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result = (void *)99;

        ck_assert_int_eq(pthread_join(t[i], &result), 0);
        ck_assert_msg(result == NULL, "thread %zu stopped at step %zu", i, (size_t)result);
    }
}

START_TEST(threads_that_start_together_share_one_primary_context)
{
    all_at_once(first_use);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_ptr_nonnull(bound[i]);
        ck_assert_ptr_eq(bound[i], bound[0]);
    }
}
END_TEST

START_TEST(threads_do_not_disturb_each_other)
{
    size_t before = 0, after = 0;

    OK(cudaMemGetInfo(&before, NULL));
    all_at_once(steady_use);
    OK(cudaDeviceSynchronize());
    OK(cudaMemGetInfo(&after, NULL));
    /* Streams keep a little; no block does. */
    ck_assert_uint_le(before - after, 32 * MIB);
}
END_TEST

RUN_TESTS("threads", threads_that_start_together_share_one_primary_context,
          threads_do_not_disturb_each_other)
