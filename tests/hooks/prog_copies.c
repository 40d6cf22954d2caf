/* Asynchronous copies and waits between launches, as many as open their short ways, and what must keep one from it: another stream or context,
 * a block given anew at the address of one that was copied to, more blocks than are remembered, a capture, a wait again, a refusal, another
 * thread, a signal handler, a forked child. With an argument managed memory lives all the while, which closes every short way: what is
 * journalled must be the same. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536u
#define BLOCKS 8
#define WARM 30 /* a wait goes the long way 24 times, a copy four */
#define MUST(call) failures += (call) != CUDA_SUCCESS

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuStreamQuery_ptsz(CUstream);

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
static CUcontext first, second;
static CUfunction f;
static CUdeviceptr block[BLOCKS], handled;
static char host[BYTES];
static int failures;

static void launch(CUstream s) { MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL)); }

/* Each row once. */
static void all(CUdeviceptr to, CUdeviceptr from, CUstream s)
{
    launch(s);
    MUST(cuMemcpyHtoDAsync(to, host, 256, s));
    MUST(cuMemcpyDtoDAsync(to, from, 256, s));
    MUST(cuMemcpyAsync(to, from, 256, s));
    MUST(cuMemsetD8Async(to, 1, 256, s));
    MUST(cuMemsetD32Async(to, 1, 64, s));
    MUST(cuMemcpyDtoHAsync(host, to, 256, s));
    launch(s);
    MUST(cuStreamSynchronize(s));
    MUST(cuMemcpyDtoDAsync(to, from, 256, s));
    MUST(cuMemcpyDtoHAsync(host, to, 256, s));
    MUST(cuStreamSynchronize(s));
    launch(s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamQuery(s));
}

/* Those of a thread's own stream. */
static void all_own(CUdeviceptr to)
{
    MUST(cuMemcpyHtoDAsync_v2_ptsz(to, host, 256, NULL));
    MUST(cuMemcpyAsync_ptsz(to, block[0], 256, NULL));
    MUST(cuStreamSynchronize_ptsz(NULL));
    MUST(cuMemcpyHtoDAsync_v2_ptsz(to, host, 256, NULL));
    MUST(cuStreamSynchronize_ptsz(NULL));
    MUST(cuStreamQuery_ptsz(NULL));
}

static void events(CUevent e, CUstream s)
{
    launch(s);
    MUST(cuEventRecord(e, s));
    MUST(cuEventSynchronize(e));
    MUST(cuMemcpyDtoHAsync(host, block[0], 64, s));
    MUST(cuEventSynchronize(e));
    MUST(cuEventQuery(e));
    for (int i = 0; i < 5; i++) MUST(cuEventQuery(e));
    MUST(cuEventSynchronize(e));
    MUST(cuStreamSynchronize(s));
    for (int i = 0; i < 5; i++) MUST(cuStreamSynchronize(s));
    launch(s);
    MUST(cuStreamSynchronize(s));
}

static void *elsewhere(void *s)
{
    MUST(cuCtxSetCurrent(first));
    for (int i = 0; i < 3; i++) {
        all(block[1], block[0], s);
        all_own(block[2]);
    }
    return NULL;
}

static void handler(int number)
{
    (void)number;
    MUST(cuMemcpyDtoDAsync(handled, block[0], 128, NULL));
    MUST(cuMemcpyHtoDAsync(handled, host, 128, NULL));
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUmodule module;
    CUstream s;
    CUevent e;
    CUgraph graph;
    CUdeviceptr managed, p;
    int refused = 0;
    pthread_t thread;
    (void)argv;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&first, device));
    MUST(cuCtxCreate(&second, NULL, 0, device));
    MUST(cuCtxSetCurrent(first));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&f, module, "nothing"));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&e, 0));
    if (argc > 1) MUST(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    for (int i = 0; i < BLOCKS; i++) MUST(cuMemAlloc(&block[i], BYTES));
    MUST(cuMemAlloc(&handled, BYTES));
    for (int i = 0; i < WARM; i++) {
        all(block[0], block[1], NULL);
        all(block[0], block[1], s);
        all_own(block[0]);
        MUST(cuEventRecord(e, s));
        MUST(cuEventSynchronize(e));
        MUST(cuEventQuery(e));
    }
    /* More blocks than are remembered, at their ends and inside. */
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < BLOCKS; i++) {
            launch(NULL);
            MUST(cuMemcpyDtoDAsync(block[i] + 1024u * (unsigned)round, block[0] + 512, 256, NULL));
            MUST(cuMemsetD8Async(block[i] + BYTES - 1, 1, 1, NULL));
        }
    /* A block anew: each has a first writer. */
    for (int i = 0; i < 6; i++) {
        MUST(cuMemAlloc(&p, BYTES));
        launch(NULL);
        if (i % 2) MUST(cuMemcpyHtoDAsync(p, host, 256, NULL));
        MUST(cuMemcpyDtoDAsync(p, block[0], 256, NULL));
        MUST(cuMemcpyDtoDAsync(p + 256, block[0], 256, NULL));
        MUST(cuMemFree(p));
    }
    for (int i = 0; i < 3; i++) {
        all(block[2], block[3], i % 2 ? s : NULL);
        all(block[3], block[2], i % 2 ? NULL : s);
    }
    events(e, s);
    events(e, NULL);

    launch(NULL);
    MUST(cuCtxSetCurrent(second)); /* the default stream of another context */
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, NULL));
    MUST(cuStreamSynchronize(NULL));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, NULL));
    MUST(cuCtxSetCurrent(first));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, NULL));
    MUST(cuStreamSynchronize(NULL));

    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, s));
    MUST(cuEventRecord(e, s));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, s)); /* captured too, in an event of its own */
    MUST(cuStreamEndCapture(s, &graph));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, s));
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, s));
    MUST(cuStreamSynchronize(s));

    launch(NULL);
    refused += cuMemcpyHtoDAsync(64, host, 64, NULL) != CUDA_SUCCESS;
    refused += cuMemcpyDtoDAsync(block[0] + BYTES - 1, block[1], BYTES, NULL) != CUDA_SUCCESS;
    MUST(cuMemcpyDtoDAsync(block[0], block[1], 64, NULL));

    MUST(pthread_create(&thread, NULL, elsewhere, s));
    MUST(pthread_join(thread, NULL));
    signal(SIGUSR1, handler);
    launch(NULL);
    MUST(raise(SIGUSR1));
    MUST(raise(SIGUSR1));
    MUST(cuStreamSynchronize(NULL));

    pid_t child = fork();
    if (child == 0) {
        int r = (cuMemcpyDtoDAsync(block[0], block[1], 64, NULL) == 0) + (cuStreamSynchronize(NULL) == 0);
        _exit(r); /* CUDA is not to be used there */
    }
    int status = 0;
    MUST(waitpid(child, &status, 0) != child);
    MUST(cuMemcpyDtoHAsync(host, block[1], 64, NULL));
    MUST(cuStreamSynchronize(NULL));
    printf("failures=%d refused=%d child=%d\n", failures, refused, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
