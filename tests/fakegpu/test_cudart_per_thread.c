/* A program built for per-thread default streams: the header maps every stream
 * call to its _ptsz or _ptds twin, and NULL then means the thread's own stream. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "test_cudart_common.h"

#include <string.h>

START_TEST(null_is_the_threads_own_stream)
{
    unsigned long long own = 0, legacy = 0, null = 0;

    OK(cudaStreamGetId(NULL, &null));
    OK(cudaStreamGetId(cudaStreamPerThread, &own));
    OK(cudaStreamGetId(cudaStreamLegacy, &legacy));
    ck_assert_uint_eq(null, own);
    ck_assert_uint_ne(null, legacy);
}
END_TEST

struct seen {
    unsigned long long id;
};

static void *ask_id(void *p)
{
    OK(cudaStreamGetId(NULL, &((struct seen *)p)->id));
    return NULL;
}

START_TEST(two_threads_have_two_streams)
{
    struct seen a, b;

    on_thread(ask_id, &a);
    OK(cudaStreamGetId(NULL, &b.id));
    ck_assert_uint_ne(a.id, b.id);
}
END_TEST

START_TEST(copies_and_sets_of_every_dimension)
{
    unsigned char in[4][32], out[4][32];
    struct cudaMemcpy3DParms p = {0};
    struct cudaPitchedPtr volume;
    cudaStream_t s = new_stream();
    size_t pitch;
    void *flat, *pitched;

    memset(in, 0x21, sizeof in);
    OK(cudaMalloc(&flat, sizeof in));
    OK(cudaMallocPitch(&pitched, &pitch, 32, 4));
    OK(cudaMemcpy(flat, in, sizeof in, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(pitched, pitch, 0, 32, 4));
    OK(cudaMemcpy2DAsync(pitched, pitch, flat, 32, 32, 3, cudaMemcpyDeviceToDevice, NULL));
    OK(cudaMemcpy2D(out, 32, pitched, pitch, 32, 4, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(out[2][31], 0x21);
    ck_assert_uint_eq(out[3][0], 0);
    OK(cudaMemset(flat, 5, 32));
    OK(cudaMemsetAsync((char *)flat + 32, 6, 32, NULL));
    OK(cudaMemcpyAsync(out, flat, sizeof out, cudaMemcpyDefault, NULL));
    OK(cudaStreamSynchronize(NULL));
    ck_assert_uint_eq(out[0][31], 5);
    ck_assert_uint_eq(out[1][0], 6);
    OK(cudaMalloc3D(&volume, (struct cudaExtent){32, 2, 2}));
    OK(cudaMemset3DAsync(volume, 9, (struct cudaExtent){32, 2, 2}, s));
    OK(cudaStreamSynchronize(s));
    p.srcPtr = volume;
    p.dstPtr = (struct cudaPitchedPtr){out, 32, 32, 2};
    p.extent = (struct cudaExtent){32, 2, 2};
    p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    ck_assert_uint_eq(out[3][31], 9);
}
END_TEST

START_TEST(a_capture_of_the_threads_stream)
{
    enum cudaStreamCaptureStatus status;
    unsigned char byte = 0;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *p;

    OK(cudaMalloc(&p, 64));
    OK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemsetAsync(p, 3, 64, NULL));
    OK(cudaStreamIsCapturing(cudaStreamPerThread, &status));
    IS(status, cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(NULL, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(byte, 3);
}
END_TEST

START_TEST(a_batch_of_copies)
{
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    unsigned char out[8];
    size_t sizes[2] = {4, 4}, first = 0;
    cudaStream_t s = new_stream();
    const void *srcs[2];
    void *dsts[2], *p;

    OK(cudaMalloc(&p, 8));
    OK(cudaMemset(p, 1, 4));
    OK(cudaMemset((char *)p + 4, 2, 4));
    OK(cudaDeviceSynchronize()); /* the stream of the copies is none of the threads' own */
    srcs[0] = (char *)p + 4;
    srcs[1] = p;
    dsts[0] = out;
    dsts[1] = out + 4;
    OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &how, &first, 1, s));
    OK(cudaStreamSynchronize(s));
    ck_assert_uint_eq(out[0], 2);
    ck_assert_uint_eq(out[7], 1);
}
END_TEST

RUN_TESTS("per-thread", null_is_the_threads_own_stream, two_threads_have_two_streams,
          copies_and_sets_of_every_dimension, a_capture_of_the_threads_stream, a_batch_of_copies)
