/* Threads that allocate and free at once, by several families, with blocks handed from thread to thread. usage: prog_threads PAIRS */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/shim/prog.h"

enum { THREADS = 8, SLOTS = 64 };

static int pairs;
static _Atomic(void *) shared[SLOTS]; /* left by one thread, freed by whoever comes next */
static _Atomic long errors;

static void *work(void *number)
{
    int t = *(int *)number;
    long wrong = 0;
    for (int i = 0; i < pairs; i++) {
        void *p = NULL;
        wrong += cudaMalloc(&p, (size_t)(i % 3000 + t + 1)) != cudaSuccess;
        p = atomic_exchange(&shared[(i * 7 + t) % SLOTS], p);
        if (p != NULL)
            wrong += cudaFree(p) != cudaSuccess;
    }
    errors += wrong;
    return NULL;
}

int main(int argc, char **argv)
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];
    MUST(argc == 2 && (pairs = atoi(argv[1])) > 0);
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        MUST(pthread_create(&threads[t], NULL, work, &numbers[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (shared[i] != NULL)
            errors += cudaFree(shared[i]) != cudaSuccess;
    printf("%d threads, %ld errors\n", THREADS, (long)errors);
    return 0;
}
