/* An ordinary driver-level program that knows what it allocates: two processes (forked before CUDA starts), each with the
 * same few blocks, and one request that is refused. Exits with 5 when CUDA answered as it should. */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static int wrong;

static void want(const char *what, int got, int wanted)
{
    if (got == wanted)
        return;
    printf("%s gave %d\n", what, got);
    wrong = 1;
}

static int work(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr first, second, refused, range;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    void *host;
    want("cuInit", cuInit(0), 0);
    want("cuDeviceGet", cuDeviceGet(&device, 0), 0);
    want("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device), 0);
    want("cuCtxSetCurrent", cuCtxSetCurrent(context), 0);
    want("cuMemAlloc", cuMemAlloc(&first, 3 * MIB), 0);
    want("cuMemAlloc", cuMemAlloc(&second, 1000), 0);
    want("cuMemAlloc of 4 TiB", cuMemAlloc(&refused, (size_t)4 << 40), CUDA_ERROR_OUT_OF_MEMORY);
    want("cuMemAllocHost", cuMemAllocHost(&host, 8192), 0);
    want("cuMemFree", cuMemFree(first), 0);
    want("cuMemCreate", cuMemCreate(&handle, 2 * MIB, &properties, 0), 0);
    want("cuMemAddressReserve", cuMemAddressReserve(&range, 4 * MIB, 0, 0, 0), 0);
    want("cuMemMap", cuMemMap(range, 2 * MIB, 0, handle, 0), 0);
    want("cuMemUnmap", cuMemUnmap(range, 2 * MIB), 0);
    want("cuMemRelease", cuMemRelease(handle), 0);
    want("cuMemAddressFree", cuMemAddressFree(range, 4 * MIB), 0);
    return wrong ? 1 : 5;
}

int main(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return 1;
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0); /* one after the other, so that the peaks of the run are known */
    int code = work(); /* called in one place: both processes have the same sites */
    if (child > 0)
        printf("child %d, parent %d\n", WEXITSTATUS(status), code);
    return code;
}
