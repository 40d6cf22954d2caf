/* CUDA calls from a signal handler, errno around every call, and jumps out of a handler, on a driver that bears all of it natively.
 * usage: prog_signal timer | jump */
#define _GNU_SOURCE
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "tests/shim/mini/mini.h"
#include "tests/shim/prog.h"

enum { TICKS = 400, WORKERS = 2 };

static volatile sig_atomic_t ticks;
static _Atomic int wrong_errno, wrong_result;

static void expect_errno(int value)
{
    if (errno != value)
        wrong_errno++;
}

static void on_tick(int signal)
{
    int saved = errno;
    CUdeviceptr p = 0;
    (void)signal;
    errno = 5;
    wrong_result += cuMemAlloc(&p, 77) != CUDA_SUCCESS;
    expect_errno(5);
    wrong_result += cuMemFree(p) != CUDA_SUCCESS;
    expect_errno(5);
    wrong_result += cuMemAlloc(&p, (size_t)1 << 60) != CUDA_ERROR_OUT_OF_MEMORY;
    ticks++;
    errno = saved;
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; ticks < TICKS; i++) {
        CUdeviceptr p = 0;
        errno = 1000 + i % 1000;
        wrong_result += cuMemAlloc(&p, (size_t)(i % 5000 + 100)) != CUDA_SUCCESS;
        expect_errno(1000 + i % 1000);
        wrong_result += cuMemFree(p) != CUDA_SUCCESS;
        expect_errno(1000 + i % 1000);
        if (i % 16 != 0)
            continue;
        wrong_result += cuMemAlloc(&p, MINI_ERRNO) != CUDA_SUCCESS;
        expect_errno(MINI_ERRNO_VALUE);
        errno = 0;
        wrong_result += cuMemFree(MINI_BAD_ADDRESS) != CUDA_ERROR_INVALID_VALUE;
        expect_errno(MINI_ERRNO_VALUE + 1);
        wrong_result += cuMemFree(p) != CUDA_SUCCESS;
    }
    return NULL;
}

static int timer(void)
{
    pthread_t threads[WORKERS];
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    MUST(cuInit(0) == CUDA_SUCCESS);
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
    /* The workers alone take the signals. */
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    MUST(setitimer(ITIMER_REAL, &every, NULL) == 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    every = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    printf("wrong results %d, wrong errno %d\n", wrong_result, wrong_errno);
    fprintf(stderr, "ticks=%d allocations=%llu frees=%llu\n", (int)ticks, (unsigned long long)mini_allocations(),
            (unsigned long long)mini_frees());
    return 0;
}

static sigjmp_buf home;

static void jump_home(int signal)
{
    (void)signal;
    siglongjmp(home, 1);
}

/* One line that allocates, reached the same way each time. */
static __attribute__((noinline)) void marker(size_t bytes)
{
    CUdeviceptr p = 0;
    MUST(cuMemAlloc(&p, bytes) == CUDA_SUCCESS);
    __asm__ volatile("");
}

static __attribute__((noinline)) void deep_marker(size_t bytes, int depth)
{
    volatile char space[512];
    space[0] = (char)depth;
    if (depth > 0)
        deep_marker(bytes, depth - 1);
    else
        marker(bytes);
    space[1] = space[0];
}

static __attribute__((noinline)) void left_in_the_middle(int depth)
{
    volatile char space[512];
    CUdeviceptr p = 0;
    space[0] = (char)depth;
    if (depth > 0)
        left_in_the_middle(depth - 1);
    else
        must(cuMemAlloc(&p, MINI_SIGNAL) != CUDA_SUCCESS, "the handler jumps");
    space[1] = space[0];
}

/* Sizes 101.., 201.. and 301..: the same site before the jumps and after each. */
static int jump(void)
{
    struct sigaction action = {.sa_handler = jump_home};
    volatile int i = 0;
    MUST(cuInit(0) == CUDA_SUCCESS);
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    for (i = 0; i < 6; i++) {
        marker(101 + (size_t)i);
        deep_marker(201 + (size_t)i, 1);
        deep_marker(301 + (size_t)i, 40);
        if (i < 5 && sigsetjmp(home, 1) == 0)
            left_in_the_middle(i % 2 != 0 ? 30 : 0);
    }
    printf("jumped 5 times, allocations %llu\n", (unsigned long long)mini_allocations());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "timer") == 0)
        return timer();
    return argc == 2 && strcmp(argv[1], "jump") == 0 ? jump() : 2;
}
