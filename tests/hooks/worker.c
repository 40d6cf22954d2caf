/* A library whose constructor waits for a thread that makes the library's first runtime calls: the loader's lock is held
 * meanwhile, so whoever stands in those calls' way must not want it. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>

static void *work(void *arg)
{
    void *p = NULL;
    printf("worker: malloc=%d\n", (int)cudaMalloc(&p, 4321));
    printf("worker: free=%d\n", (int)cudaFree(p));
    return arg;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, work, NULL) == 0) pthread_join(t, NULL);
}
