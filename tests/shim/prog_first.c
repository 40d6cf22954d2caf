/* A process's first call that needs the driver, made while a fast timer's handler makes its own: both look for the driver, on one thread. The
 * runtime and the driver here bear that natively. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>

#include "tests/shim/prog.h"

static volatile sig_atomic_t ticks, wrong;

static void on_tick(int signal)
{
    void *p = NULL;
    (void)signal;
    wrong += cudaMalloc(&p, 77) != cudaSuccess || cudaFree(p) != cudaSuccess;
    ticks++;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 100}, {0, 100}};
    MUST(cudaFree(NULL) == cudaSuccess);
    MUST(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (ticks < 50) {
        void *p = NULL;
        wrong += cudaMalloc(&p, 100) != cudaSuccess || cudaFree(p) != cudaSuccess;
    }
    every = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    printf("wrong results %d\n", (int)wrong);
    return 0;
}
