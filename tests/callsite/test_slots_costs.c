/* What a hit in the verified slots does not do, and how caches live and end with threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/callsite/slots_looks.h"

/* ---- what a hit does not do */

static uint64_t mallocs;
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

void *malloc(size_t bytes)
{
    __atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    __atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    __atomic_fetch_add(&mallocs, 1, __ATOMIC_RELAXED);
    return __libc_realloc(p, bytes);
}

static __attribute__((noinline)) uint32_t plain_hook(void)
{
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 1);
    KEEP;
    return site;
}

/* `times` calls from one place; how many had the site of the first. */
static __attribute__((noinline)) int calls(int times)
{
    int same = 0;
    uint32_t first = TN_SITE_NONE;
    for (volatile int i = 0; i < times; i++) {
        uint32_t site = plain_hook();
        if (i == 0)
            first = site;
        same += site == first && site != TN_SITE_NONE;
    }
    return same;
}

START_TEST(a_hit_takes_no_memory)
{
    start();
    ck_assert_int_eq(calls(100), 100);
    uint64_t before = mallocs, after = 0;
    ck_assert_uint_gt(before, 0); /* or they are not counted */
    look l;
    for (volatile int i = 0; i < 3; i++) {
        before = mallocs;
        inner(&l);
        after = mallocs;
    }
    ck_hit(l);
    ck_assert_uint_eq(after, before);
}
END_TEST

/* In a child that dies of any system call but those few that strict mode lets pass. */
START_TEST(a_hit_makes_no_system_call)
{
    int to_parent[2], status, same = 0;
    start();
    ck_assert_int_eq(pipe(to_parent), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        for (volatile int i = 0; i < 2; i++) { /* the second time all of it hits */
            if (i == 1)
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            same = calls(1000);
        }
        ssize_t n = write(to_parent[1], &same, sizeof same);
        syscall(SYS_exit, n == sizeof same ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq((int)read(to_parent[0], &same, sizeof same), (int)sizeof same);
    ck_assert_int_eq(same, 1000);
}
END_TEST

static sem_t is_held, let_go;

static int hold(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info, (void)size, (void)arg;
    tn_tables_lock();
    sem_post(&is_held);
    sem_wait(&let_go);
    tn_tables_unlock();
    return 1;
}

static void *holds_locks(void *arg)
{
    dl_iterate_phdr(hold, arg);
    return NULL;
}

/* While another thread holds the loader's lock and ours; the test's time limit ends it if a hit waits. */
START_TEST(a_hit_takes_no_lock)
{
    pthread_t t;
    int same = 0;
    start();
    sem_init(&is_held, 0, 0);
    sem_init(&let_go, 0, 0);
    for (volatile int i = 0; i < 2; i++) {
        if (i == 1) {
            ck_assert_int_eq(pthread_create(&t, NULL, holds_locks, NULL), 0);
            sem_wait(&is_held);
        }
        same = calls(1000);
    }
    sem_post(&let_go);
    pthread_join(t, NULL);
    ck_assert_int_eq(same, 1000);
}
END_TEST

START_TEST(errno_is_kept)
{
    start();
    for (volatile int i = 0; i < 3; i++) {
        errno = 77;
        calls(2);
        ck_assert_int_eq(errno, 77);
    }
}
END_TEST

/* ---- threads */

typedef struct late {
    pthread_key_t key;
    const tn_slots *slots, *afterwards;
    look looks[3], last;
} late;

static void late_hook(void *arg)
{
    late *l = arg;
    inner(&l->last);
    l->afterwards = tn_slots_mine();
}

static void *thread_with_late_hook(void *arg)
{
    late *l = arg;
    for (volatile int i = 0; i < 3; i++)
        inner(&l->looks[i]);
    l->slots = tn_slots_mine();
    pthread_setspecific(l->key, l);
    return NULL;
}

START_TEST(a_cache_ends_with_its_thread)
{
    pthread_t t;
    unsigned char resident;
    pthread_key_t key;
    start(); /* its key comes first, so its end does */
    ck_assert_int_eq(pthread_key_create(&key, late_hook), 0);
    for (volatile int i = 0; i < 50; i++) {
        late l = { .key = key };
        ck_assert_int_eq(pthread_create(&t, NULL, thread_with_late_hook, &l), 0);
        ck_assert_int_eq(pthread_join(t, NULL), 0);
        ck_hit(l.looks[2]);
        ck_assert_ptr_nonnull(l.slots);
        ck_assert_int_eq(mincore((void *)((uintptr_t)l.slots & ~(uintptr_t)4095), 4096, &resident), -1);
        ck_assert_int_eq(errno, ENOMEM);
        ck_miss(l.last);
        ck_assert_ptr_null(l.afterwards);
    }
}
END_TEST

#define THREAD_STACK (256 * 1024)

static void *thread_on_own_stack(void *arg)
{
    look *looks = arg;
    for (volatile int depth = 0; depth < 40; depth++) /* the shallow ones end where the stack does */
        for (volatile int i = 0; i < 2; i++)
            recurse(&looks[2 * depth + i], depth);
    return NULL;
}

/* A thread on memory that an unreadable page follows. */
START_TEST(a_thread_on_memory_of_the_programs)
{
    static look looks[80];
    pthread_t t;
    pthread_attr_t attr;
    start();
    char *stack = mmap(NULL, THREAD_STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stack, MAP_FAILED);
    ck_assert_int_eq(mprotect(stack + THREAD_STACK, 4096, PROT_NONE), 0);
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstack(&attr, stack, THREAD_STACK), 0);
    ck_assert_int_eq(pthread_create(&t, &attr, thread_on_own_stack, looks), 0);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    for (volatile int i = 0; i < 80; i++) {
        ck_assert_uint_ge(looks[i].slow, TN_SITE_FIRST);
        if (i % 2)
            ck_hit(looks[i]);
        else
            ck_right(looks[i]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_hit_takes_no_memory,
        a_hit_makes_no_system_call,
        a_hit_takes_no_lock,
        errno_is_kept,
        a_cache_ends_with_its_thread,
        a_thread_on_memory_of_the_programs,
    };
    return run_tests("slots_costs", tests, (int)(sizeof tests / sizeof tests[0]));
}
