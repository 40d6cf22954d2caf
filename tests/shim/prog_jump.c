/* Jumps out of a runtime call that waits, by an alarm's handler, and then calls the driver itself from deeper in the stack. Sizes 101..:
 * one site before and after. Wants FAKEGPU_ALLOC_US, so that allocations wait (outside the fake driver's lock). */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "tests/shim/prog.h"

static sigjmp_buf home;

static void jump_home(int signal)
{
    (void)signal;
    siglongjmp(home, 1);
}

static __attribute__((noinline)) void marker(size_t bytes, int depth)
{
    volatile char space[512];
    space[0] = (char)depth;
    CUdeviceptr p = 0;
    if (depth > 0)
        marker(bytes, depth - 1);
    else
        MUST(cuMemAlloc(&p, bytes) == CUDA_SUCCESS);
    space[1] = space[0];
}

static __attribute__((noinline)) void runtime_marker(size_t bytes)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, bytes) == cudaSuccess);
    __asm__ volatile("");
}

static __attribute__((noinline)) void left_in_the_middle(void)
{
    struct itimerval soon = {{0, 0}, {0, 5000}};
    void *p = NULL;
    MUST(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    must(cudaMalloc(&p, 1 << 20) != cudaSuccess, "the handler jumps");
}

int main(void)
{
    struct sigaction action = {.sa_handler = jump_home};
    volatile int i, jumps = 0;
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    runtime_marker(201);
    for (i = 0; i < 3; i++) {
        marker(101 + (size_t)i, 20);
        runtime_marker(211 + (size_t)i);
        if (i == 2)
            break;
        if (sigsetjmp(home, 1) == 0)
            left_in_the_middle();
        else
            jumps++;
    }
    printf("jumped %d times\n", jumps);
    return 0;
}
