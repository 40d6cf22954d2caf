/* A driver-level program that gives blocks back while the device works with them, and takes others, as a script says (see step): "calm" waits after
 * each, "hasty" never does. With "blocking" its streams wait for the legacy one, in which it then uses plain blocks. Exits with 5 when CUDA answered
 * as it should. usage: waiting_program calm|hasty SCRIPT [blocking] */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1 << 10)

static int wrong, is_calm, is_blocking;
static CUstream streams[2];

#define WANT(call) want(#call, (int)(call))
static void want(const char *what, int got)
{
    if (got == 0) return;
    printf("%s gave %d\n", what, got);
    wrong = 1;
}

/* Sites of their own, so that rules and rows can name them. */
__attribute__((noinline)) static CUdeviceptr take_fixed(CUstream s)
{
    CUdeviceptr p = 0;
    WANT(cuMemAllocAsync(&p, 64 * KIB, s));
    return p;
}
__attribute__((noinline)) static CUdeviceptr take_slot(CUstream s)
{
    CUdeviceptr p = 0;
    WANT(cuMemAllocAsync(&p, 96 * KIB, s));
    return p;
}
__attribute__((noinline)) static CUdeviceptr take_plain(void)
{
    CUdeviceptr p = 0;
    WANT(cuMemAlloc(&p, 4096 * KIB));
    return p;
}

static void rest(void)
{
    if (is_calm) WANT(cuCtxSynchronize());
}

static void use_ordered(CUdeviceptr (*take)(CUstream), CUstream s)
{
    CUdeviceptr p = take(s);
    WANT(cuMemsetD8Async(p, 1, 4 * KIB, s));
    WANT(cuMemFreeAsync(p, s));
    rest();
}

/* The second stream begins only when the first is done with what it has been given. */
static void join(void)
{
    CUevent event;
    WANT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    WANT(cuEventRecord(event, streams[0]));
    WANT(cuStreamWaitEvent(streams[1], event, 0));
    WANT(cuEventDestroy(event));
}

/* a, b: a block of the one site in the first stream, in the second; A, B: of the other site; j: the second stream waits for the first; p: a
 * plain block. Each site is called in one place. */
static void step(char what)
{
    if (what == 'j') {
        join();
    } else if (what == 'p') {
        CUdeviceptr p = take_plain();
        WANT(cuMemsetD8Async(p, 2, 4 * KIB, is_blocking ? NULL : streams[0]));
        WANT(cuMemFree(p));
        rest();
    } else {
        use_ordered(what >= 'a' ? take_fixed : take_slot, streams[what == 'b' || what == 'B']);
    }
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    if (argc < 3) return 2;
    is_calm = strcmp(argv[1], "calm") == 0;
    is_blocking = argc > 3;
    WANT(cuInit(0));
    WANT(cuDeviceGet(&device, 0));
    WANT(cuDevicePrimaryCtxRetain(&context, device));
    WANT(cuCtxSetCurrent(context));
    for (int i = 0; i < 2; i++) WANT(cuStreamCreate(&streams[i], is_blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < 10; round++)
        for (const char *p = argv[2]; *p != 0; p++)
            step(*p);
    return wrong ? 1 : 5;
}
