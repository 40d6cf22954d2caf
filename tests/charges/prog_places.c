/* A context on the device that the program means to use and one on a device that it does not; `capture`: marks and allocations of all sorts while
 * a stream is captured, by the capturing thread and by one with no context, so that readings are taken then; `calm`: a long time of launches and waits in
 * which no memory moves, and a pool that shrinks at a wait after it. Prints what the calls answered. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/tenure.h"

#define MIB ((size_t)1 << 20)

static int stray(void)
{
    CUcontext mine, other;
    CUdeviceptr p, q;
    int r[6] = {cuInit(0), cuDevicePrimaryCtxRetain(&mine, 0), cuDevicePrimaryCtxRetain(&other, 1), cuCtxSetCurrent(mine), cuMemAlloc(&p, 10 * MIB), 0};
    tenure_mark("both");
    r[5] = cuMemAlloc(&q, 3 * MIB);
    tenure_mark("end");
    printf("%d %d %d %d %d %d\n", r[0], r[1], r[2], r[3], r[4], r[5]);
    return 0;
}

/* Many contexts that come and go, and one that stays. */
static int ended(void)
{
    CUcontext c;
    CUdeviceptr p;
    int r = cuInit(0);
    for (int i = 0; i < 12; i++) r |= cuCtxCreate(&c, NULL, 0, 0) | cuMemAlloc(&p, 10 * MIB) | cuCtxDestroy(c);
    r |= cuCtxCreate(&c, NULL, 0, 0) | cuMemAlloc(&p, 10 * MIB);
    tenure_mark("the last one");
    printf("%d\n", r);
    return 0;
}

static void *elsewhere(void *unused)
{
    CUcontext c = (CUcontext)1;
    (void)unused;
    tenure_mark("from a thread without a context");
    int r = cuCtxGetCurrent(&c);
    printf("elsewhere: %d %s\n", r, c ? "a context" : "none");
    return NULL;
}

static int capture(CUstreamCaptureMode mode)
{
    CUcontext c;
    CUstream s, work;
    CUgraph graph = NULL;
    CUdeviceptr p, in_graph, small;
    pthread_t t;
    CUstreamCaptureStatus status;
    int r[8] = {cuInit(0), cuDevicePrimaryCtxRetain(&c, 0), cuCtxSetCurrent(c), cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), cuStreamCreate(&work, CU_STREAM_NON_BLOCKING),
                cuMemAllocAsync(&p, 5 * MIB, work), 0, 0};
    tenure_mark("before");
    int begin = cuStreamBeginCapture(s, mode);
    int inside = cuMemAllocAsync(&in_graph, 3 * MIB, s);
    tenure_mark("capturing");
    if (pthread_create(&t, NULL, elsewhere, NULL) != 0) return 1;
    pthread_join(t, NULL);
    CUevent event;
    int made = cuEventCreate(&event, 0);
    int reserved = cuMemAddressReserve(&small, 2 * MIB, 0, 0, 0);
    r[6] = cuStreamIsCapturing(s, &status);
    printf("status %d\n", (int)status);
    int ended = cuStreamEndCapture(s, &graph);
    r[7] = cuMemFreeAsync(p, work);
    tenure_mark("after");
    printf("%d %d %d %d %d %d %d %d begin %d inside %d event %d reserve %d end %d %s\n", r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], begin, inside, made,
           reserved, ended, graph ? "graph" : "none");
    return 0;
}

static int steps(CUfunction f, CUstream s, unsigned ms)
{
    int failures = 0;
    for (unsigned i = 0; i < ms / 2; i++) {
        for (int k = 0; k < 20; k++) failures += cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL) != 0;
        failures += cuStreamSynchronize(s) != 0;
        usleep(2000);
    }
    return failures;
}

static int calm(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
    CUcontext c;
    CUmodule m;
    CUfunction f;
    CUstream s;
    CUdeviceptr p;
    int r[5] = {cuInit(0), cuDevicePrimaryCtxRetain(&c, 0), cuCtxSetCurrent(c), cuModuleLoadData(&m, ptx), cuStreamCreate(&s, CU_STREAM_NON_BLOCKING)};
    int failures = cuModuleGetFunction(&f, m, "nothing") != 0;
    failures += cuMemAllocAsync(&p, 64 * MIB, s) != 0;
    failures += steps(f, s, 1000);
    tenure_mark("calm");
    failures += cuMemFreeAsync(p, s) != 0; /* the pool gives it back at the wait */
    failures += steps(f, s, 2);
    tenure_mark("shrunk");
    printf("%d %d %d %d %d failures %d\n", r[0], r[1], r[2], r[3], r[4], failures);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "stray") == 0) return stray();
    if (argc > 1 && strcmp(argv[1], "calm") == 0) return calm();
    if (argc > 1 && strcmp(argv[1], "ended") == 0) return ended();
    if (argc > 1 && strcmp(argv[1], "global") == 0) return capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (argc > 1 && strcmp(argv[1], "thread_local") == 0) return capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (argc > 1 && strcmp(argv[1], "relaxed") == 0) return capture(CU_STREAM_CAPTURE_MODE_RELAXED);
    return 2;
}
