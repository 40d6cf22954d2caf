/* A driver-level program whose blocks of every family are written past their ends, by a kernel (the driver would refuse a copy), where its argument
 * says so: "overrun". Prints what new and
 * freed blocks hold; exits with 5 when CUDA answered as it should. "held" keeps a stream busy over a free in its order, so that a free that
 * waited would never return; "contexts" frees in the order of streams of 70 contexts that come and go. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/generator/kernels.h"

static int wrong;

#define WANT(call, wanted) want(#call, (call), wanted)
static void want(const char *what, int got, int wanted)
{
    if (got == wanted) return;
    printf("%s gave %d\n", what, got);
    wrong = 1;
}

/* All allocations and frees stand in functions of their own, so that the report can name them. */
__attribute__((noinline)) static CUdeviceptr take_plain(size_t bytes)
{
    CUdeviceptr p = 0;
    WANT(cuMemAlloc(&p, bytes), 0);
    return p;
}
__attribute__((noinline)) static CUdeviceptr take_kept(size_t bytes)
{
    CUdeviceptr p = 0;
    WANT(cuMemAlloc(&p, bytes), 0);
    return p;
}
__attribute__((noinline)) static void give_plain(CUdeviceptr p) { WANT(cuMemFree(p), 0); }
__attribute__((noinline)) static CUdeviceptr take_ordered(size_t bytes, CUstream s)
{
    CUdeviceptr p = 0;
    WANT(cuMemAllocAsync(&p, bytes, s), 0);
    return p;
}
__attribute__((noinline)) static void give_ordered(CUdeviceptr p, CUstream s) { WANT(cuMemFreeAsync(p, s), 0); }
__attribute__((noinline)) static unsigned char *take_pinned(size_t bytes)
{
    void *p = NULL;
    WANT(cuMemAllocHost(&p, bytes), 0);
    return p;
}
__attribute__((noinline)) static void give_pinned(void *p) { WANT(cuMemFreeHost(p), 0); }

/* "7 bytes of 0x3f" where all are the same, else "mixed". */
static void contents(const char *what, const unsigned char *at, size_t bytes)
{
    for (size_t i = 1; i < bytes; i++)
        if (at[i] != at[0]) {
            printf("%s mixed\n", what);
            return;
        }
    printf("%s 0x%02x\n", what, at[0]);
}

static void device_contents(const char *what, CUdeviceptr p, size_t bytes)
{
    static unsigned char copy[4096];
    WANT(cuMemcpyDtoH(copy, p, bytes), 0);
    contents(what, copy, bytes);
}

/* By a kernel of the current context. */
static void store(CUdeviceptr p, unsigned char value, unsigned long long bytes, CUstream s)
{
    CUmodule module;
    CUfunction fill;
    void *arguments[] = {&p, &value, &bytes};
    WANT(cuModuleLoadData(&module, generator_ptx), 0);
    WANT(cuModuleGetFunction(&fill, module, "fake_fill"), 0);
    WANT(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, s, arguments, NULL), 0);
}

static _Atomic int go;
static void CUDA_CB hold(void *arg)
{
    (void)arg;
    while (!go) usleep(1000);
}

static void captured(CUstream s)
{
    CUgraph graph;
    CUstream side;
    CUdeviceptr p = take_plain(1000), other = take_plain(1000);
    WANT(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING), 0);
    WANT(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
    WANT(cuMemsetD8Async(p, 1, 1000, side), 0);
    CUdeviceptr q = take_ordered(1000, s);
    give_ordered(q, s);
    give_plain(other); /* nothing may be waited for now, nor written */
    WANT(cuStreamEndCapture(side, &graph), 0);
    WANT(cuGraphDestroy(graph), 0);
    WANT(cuStreamDestroy(side), 0);
    give_plain(p);
}

/* In the order of a stream whose context is not the current one. */
static void elsewhere(int overrun)
{
    CUcontext here, other;
    CUstream s;
    WANT(cuCtxGetCurrent(&here), 0);
    WANT(cuCtxCreate(&other, NULL, 0, 0), 0);
    WANT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
    WANT(cuCtxSetCurrent(here), 0);
    CUdeviceptr q = take_ordered(3000, s);
    WANT(cuMemsetD8Async(q, 2, 3000, s), 0);
    WANT(cuCtxSetCurrent(other), 0);
    if (overrun) store(q + 3000, 2, 5, s);
    WANT(cuCtxSetCurrent(here), 0);
    give_ordered(q, s);
    WANT(cuStreamSynchronize(s), 0);
    give_ordered(take_ordered(3000, s), s);
    WANT(cuStreamSynchronize(s), 0);
    WANT(cuStreamDestroy(s), 0);
    WANT(cuCtxDestroy(other), 0);
}

static void come_and_go(CUstream own)
{
    for (int i = 0; i < 70; i++) { /* more than are looked at at once */
        CUcontext here, other;
        CUstream s;
        CUdeviceptr q = take_ordered(2000, own);
        WANT(cuStreamSynchronize(own), 0);
        WANT(cuCtxGetCurrent(&here), 0);
        WANT(cuCtxCreate(&other, NULL, 0, 0), 0);
        WANT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
        give_ordered(q, s);
        WANT(cuStreamSynchronize(s), 0);
        WANT(cuCtxDestroy(other), 0);
        WANT(cuCtxSetCurrent(here), 0);
    }
}

int main(int argc, char **argv)
{
    int contexts = argc > 1 && strcmp(argv[1], "contexts") == 0;
    int overrun = argc > 1 && strcmp(argv[1], "overrun") == 0, held = argc > 1 && strcmp(argv[1], "held") == 0;
    CUdevice device;
    CUcontext context;
    CUstream s;
    WANT(cuInit(0), 0);
    const char *loads = getenv("CHECKED_LOADS"); /* as the driver loads a tool */
    if (loads && !dlopen(loads, RTLD_NOW)) printf("%s\n", dlerror());
    WANT(cuDeviceGet(&device, 0), 0);
    WANT(cuDevicePrimaryCtxRetain(&context, device), 0);
    WANT(cuCtxSetCurrent(context), 0);
    WANT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
    CUdeviceptr kept = take_kept(700);
    for (int round = 0; round < 3; round++) {
        /* Room behind 1000 bytes, none behind 1024. */
        CUdeviceptr p = take_plain(1000), full = take_plain(1024);
        WANT(cuMemsetD8Async(p, 1, 1000, s), 0);
        WANT(cuMemsetD8Async(full, 1, 1024, s), 0);
        if (overrun && round == 1) {
            store(p + 1000, 1, 7, s);
            store(full + 1024, 1, 1, s);
        }
        give_plain(p);
        give_plain(full);
        CUdeviceptr q = take_ordered(2000, s);
        if (held && round == 1) WANT(cuLaunchHostFunc(s, hold, NULL), 0);
        WANT(cuMemsetD8Async(q, 2, 2000, s), 0);
        if (overrun && round == 2) store(q + 2010, 2, 3, s);
        give_ordered(q, s);
        go = 1;
        unsigned char *h = take_pinned(100);
        contents("pinned", h, 100);
        memset(h, 3, 100 + (overrun && round == 0 ? 1 : 0));
        give_pinned(h);
        WANT(cuStreamSynchronize(s), 0);
    }
    for (int again = 0; again < 2; again++) {
        CUdeviceptr p = take_plain(1000);
        device_contents(again ? "again" : "new", p, 1000);
        WANT(cuMemsetD8(p, 4, 1000), 0);
        give_plain(p);
    }
    CUdeviceptr q = take_ordered(2000, s);
    WANT(cuStreamSynchronize(s), 0);
    device_contents("ordered", q, 2000);
    give_ordered(q, s);
    captured(s);
    elsewhere(overrun);
    if (contexts) come_and_go(s);
    if (overrun) store(kept + 701, 5, 2, s);
    WANT(cuCtxSynchronize(), 0);
    return wrong ? 1 : 5;
}
