#include "shim/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/modules.h"
#include "shim/real.h"

#define WAITS 4000 /* of 50 us */

static _Atomic int inside, forking;
static int child; /* written in the child's only thread */
static __thread int mine __attribute__((tls_model("initial-exec")));
static __thread int my_forks __attribute__((tls_model("initial-exec"))); /* a signal handler in the middle of one must not wait for it */

/* libc's nanosleep is a cancellation point, and fork is none: a thread with a cancellation pending would end here. */
static void pause_shortly(void) { syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); }

void tn_loader_enter(void)
{
    atomic_fetch_add(&inside, 1);
    /* Whoever comes second sees the other: the fork this count, or this thread the fork. */
    for (int i = 0; i < WAITS && mine == 0 && my_forks == 0 && atomic_load(&forking); i++) {
        atomic_fetch_sub(&inside, 1);
        pause_shortly();
        atomic_fetch_add(&inside, 1);
    }
    mine++;
}

void tn_loader_leave(void)
{
    mine--;
    atomic_fetch_sub(&inside, 1);
}

int tn_loader_forked(void) { return child; }

static void before_fork(void)
{
    my_forks++;
    atomic_fetch_add(&forking, 1);
    for (int i = 0; i < WAITS && atomic_load(&inside) > mine; i++) pause_shortly();
}

static void after_fork(void)
{
    atomic_fetch_sub(&forking, 1);
    my_forks--;
}

static void in_child(void)
{
    my_forks--;
    atomic_store(&forking, my_forks); /* a handler's fork within a fork */
    atomic_store(&inside, mine);
    child = 1;
    tn_modules_after_fork();
    tn_driver_after_fork();
    tn_cudart_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }
