#include "shim/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "shim/modules.h"

#define WAITS 4000 /* of 50 us */

static _Atomic int inside, forking;
static int child; /* written in the child's only thread */
static __thread int mine __attribute__((tls_model("initial-exec")));

static void pause_shortly(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }

void tn_loader_enter(void)
{
    atomic_fetch_add(&inside, 1);
    /* Whoever comes second sees the other: the fork this count, or this thread the fork. */
    for (int i = 0; i < WAITS && mine == 0 && atomic_load(&forking); i++) {
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
    atomic_fetch_add(&forking, 1);
    for (int i = 0; i < WAITS && atomic_load(&inside) > mine; i++) pause_shortly();
}

static void after_fork(void) { atomic_fetch_sub(&forking, 1); }

static void in_child(void)
{
    atomic_store(&forking, 0);
    atomic_store(&inside, mine);
    child = 1;
    tn_modules_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }
