/* Eight threads that ask for the first block of a context at the same moment, as an engine's workers do. Exits with 5 when each got one. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stddef.h>

#define THREADS 8

static CUcontext context;
static pthread_barrier_t together;

static void *asks(void *arg)
{
    CUdeviceptr block = 0;
    int *code = arg;
    *code = (int)cuCtxSetCurrent(context);
    pthread_barrier_wait(&together);
    *code |= (int)cuMemAlloc(&block, 1 << 20);
    pthread_barrier_wait(&together);
    *code |= block ? (int)cuMemFree(block) : 0;
    return NULL;
}

int main(void)
{
    CUdevice device;
    pthread_t threads[THREADS];
    int codes[THREADS] = {0};
    int wrong = (int)cuInit(0) | (int)cuDeviceGet(&device, 0) | (int)cuDevicePrimaryCtxRetain(&context, device) |
                pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, asks, &codes[i]) != 0) return 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong |= codes[i];
    }
    return wrong ? 1 : 5;
}
