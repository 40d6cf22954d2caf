/* Launches that come the short way and what must keep one from it: another stream, another context under the same default stream,
 * the per-thread default stream, an event between, a capture, another thread, a refusal, an unloaded module, a forked child. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define REST_US 20000 /* check_short_way.c knows it */
#define MUST(call) failures += (call) != CUDA_SUCCESS

CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n"
                          ".visible .entry other()\n{\n  ret;\n}\n";
static CUcontext first, second;
static int failures;

static void launch(CUfunction f, CUstream s, int times)
{
    for (int i = 0; i < times; i++) MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL));
}

static void launch_own(CUfunction f, int times)
{
    for (int i = 0; i < times; i++) MUST(cuLaunchKernel_ptsz(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void *elsewhere(void *f)
{
    MUST(cuCtxSetCurrent(first));
    launch(f, NULL, 7); /* the legacy stream is one for all threads */
    launch_own(f, 11);  /* this one is this thread's */
    return NULL;
}

static void *begin_capture(void *stream)
{
    MUST(cuCtxSetCurrent(first));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    return NULL;
}

static void *end_capture(void *stream)
{
    CUgraph graph;
    MUST(cuCtxSetCurrent(first));
    MUST(cuStreamEndCapture(stream, &graph));
    return NULL;
}

static void by_another_thread(void *(*what)(void *), void *arg)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, what, arg));
    MUST(pthread_join(thread, NULL));
}

int main(void)
{
    CUdevice device;
    CUmodule module, module2, again;
    CUfunction f, g;
    CUstream s, captured;
    CUdeviceptr p;
    CUgraph graph;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&first, device));
    MUST(cuCtxCreate(&second, NULL, 0, device));
    MUST(cuModuleLoadData(&module2, ptx));
    MUST(cuModuleGetFunction(&g, module2, "nothing"));
    MUST(cuCtxSetCurrent(first));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&f, module, "nothing"));
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));

    launch(f, NULL, 4);
    usleep(REST_US);
    launch(f, NULL, 1); /* stream 1 of what is launched into: 5 */
    launch(f, s, 4);    /* 2: 4 */
    for (int i = 0; i < 3; i++) {
        launch(f, NULL, 1); /* 1: 8 */
        launch(f, s, 1);    /* 2: 7 */
    }
    launch(f, NULL, 2); /* 1: 10 */
    MUST(cuCtxSetCurrent(second));
    launch(g, NULL, 3); /* 3: 3 */
    MUST(cuCtxSetCurrent(first));
    launch(f, NULL, 2); /* 1: 12 */
    MUST(cuCtxSetCurrent(second));
    launch(g, NULL, 3); /* 3: 6 */
    MUST(cuCtxSetCurrent(first));
    launch_own(f, 2);   /* 4: 2 */
    launch(f, NULL, 1); /* 1: 13 */
    launch_own(f, 2);   /* 4: 4 */
    launch(f, CU_STREAM_LEGACY, 2);     /* 1: 15 */
    launch(f, CU_STREAM_PER_THREAD, 2); /* 4: 6 */
    launch(f, s, 2); /* 2: 9 */
    MUST(cuMemAlloc(&p, 4096));
    launch(f, s, 2); /* 2: 11, of a new event */
    MUST(cuMemFree(p));
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .hStream = s};
    for (int i = 0; i < 3; i++) MUST(cuLaunchKernelEx(&config, f, NULL, NULL)); /* 2: 14 */
    int refused = cuLaunchKernel(f, 1, 1, 1, 5000, 1, 1, 0, s, NULL, NULL) != 0;
    refused += cuLaunchKernelEx(NULL, f, NULL, NULL) != 0;
    launch(f, s, 1); /* 2: 15 */

    MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch(f, s, 6); /* 2: 21, six of them captured */
    MUST(cuStreamEndCapture(s, &graph));
    launch(f, s, 1); /* 2: 22 */
    by_another_thread(begin_capture, captured);
    launch(f, s, 3); /* 2: 25, three of them while a capture is active somewhere */
    by_another_thread(end_capture, captured);
    launch(f, s, 2); /* 2: 27 */

    by_another_thread(elsewhere, f); /* 1: 22, 5: 11 */
    launch(f, NULL, 1); /* 1: 23 */

    pid_t child = fork();
    if (child == 0) {
        int r = cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        _exit(r == 0 ? 1 : 0); /* CUDA is not to be used there */
    }
    int status = 0;
    MUST(waitpid(child, &status, 0) != child);

    /* While managed memory lives any launch may move its pages. */
    MUST(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    launch(f, NULL, 4); /* 1: 27 */
    MUST(cuMemFree(p));
    launch(f, NULL, 4); /* 1: 31 */

    MUST(cuCtxSynchronize());
    MUST(cuModuleUnload(module));
    MUST(cuModuleLoadData(&again, ptx));
    MUST(cuModuleGetFunction(&f, again, "other"));
    launch(f, NULL, 2); /* 1: 33; a first, also where the handle is the old one */
    printf("failures=%d refused=%d child=%d\n", failures, refused, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
