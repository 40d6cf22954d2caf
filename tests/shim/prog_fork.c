/* Forks in every order around the start of CUDA; prints what each process got. usage: prog_fork MODE [N] */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/prog.h"

extern char **environ;
static char *self;

/* n allocations and as many frees but one; the sum of the error codes. */
static int work(int n)
{
    int errors = 0;
    void *first = NULL;
    for (int i = 0; i < n; i++) {
        void *p = NULL;
        errors += (int)cudaMalloc(&p, 1000 + (size_t)i);
        if (i == 0)
            first = p;
        else
            errors += (int)cudaFree(p);
    }
    return errors + (first == NULL && n > 0 ? 1000 : 0);
}

static int wait_code(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        MUST(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* What an allocation answers in a forked child, and whether the thread's error is the same. */
static int child_answer(void)
{
    void *p = NULL;
    int r = (int)cudaMalloc(&p, 4096), again = (int)cudaFree(NULL), last = (int)cudaGetLastError();
    return r * 16 + again + (last != r) * 128;
}

static int run_in_child(int (*f)(int), int n, int by_exit)
{
    fflush(stdout);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        int code = f(n);
        if (by_exit)
            exit(code);
        _exit(code);
    }
    return wait_code(pid);
}

static int answer(int n)
{
    (void)n;
    return child_answer();
}

static int before(int n)
{
    printf("child: %d\n", run_in_child(work, n, 1));
    printf("parent: %d\n", work(n + 2));
    printf("late child: %d\n", run_in_child(answer, 0, 1));
    printf("parent: %d\n", work(n));
    return 0;
}

static int after(int n)
{
    printf("parent: %d\n", work(n));
    for (int i = 0; i < 4; i++)
        printf("child: %d\n", run_in_child(answer, 0, i % 2));
    printf("parent: %d\n", work(n));
    return 0;
}

/* A child that started nothing forks once more: the grandchild starts afresh. */
static int grandchild(int n)
{
    return run_in_child(work, n, 1);
}

static int nested(int n)
{
    printf("grandchild: %d\n", run_in_child(grandchild, n, 1));
    return 0;
}

static int leave(int n)
{
    printf("child: %d\n", run_in_child(work, n, 0));
    return 0;
}

static volatile int stop;

static void *allocate_until_stopped(void *counts)
{
    int *n = counts;
    while (!stop) {
        n[1] += work(8);
        n[0] += 8;
    }
    return NULL;
}

/* One thread allocates while another forks: the children must get an answer, not hang. */
static int busy(int n)
{
    pthread_t t;
    int counts[2] = {0, 0}, bad = 0;
    printf("parent: %d\n", work(1));
    MUST(pthread_create(&t, NULL, allocate_until_stopped, counts) == 0);
    for (int i = 0; i < n; i++)
        bad += run_in_child(answer, 0, 0) != run_in_child(answer, 0, 0);
    stop = 1;
    pthread_join(t, NULL);
    printf("differing children: %d, errors %d\n", bad, counts[1]);
    fprintf(stderr, "allocations=%d\n", counts[0] + 1);
    return 0;
}

/* Two functions that call each other by the bits of `path`: each path is a stack of its own, which nobody has looked up before. */
static int path_b(unsigned path, int depth);

static __attribute__((noinline)) int path_a(unsigned path, int depth)
{
    int r = depth == 0 ? work(1) : (path & 1u ? path_a : path_b)(path >> 1, depth - 1);
    __asm__ volatile("");
    return r;
}

static __attribute__((noinline)) int path_b(unsigned path, int depth)
{
    int r = depth == 0 ? work(1) : (path & 1u ? path_a : path_b)(path >> 1, depth - 1);
    __asm__ volatile("" ::: "memory");
    return r;
}

static _Atomic unsigned paths;

static void *allocate_from_everywhere(void *counts)
{
    for (unsigned path = 0; !stop; path++) {
        ((int *)counts)[1] += path_a(path, 15);
        atomic_store(&paths, path + 1);
    }
    return NULL;
}

/* What a forked worker does that has nothing to do with CUDA: it loads a library. */
static int load_something(int n)
{
    (void)n;
    alarm(10);
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    return library == NULL || dlclose(library) != 0;
}

/* One thread allocates while another forks workers that load libraries: no lock of the loader's may have been taken along. */
static int loads(int n)
{
    pthread_t t;
    int counts[2] = {0, 0}, bad = 0;
    printf("parent: %d\n", work(1));
    MUST(pthread_create(&t, NULL, allocate_from_everywhere, counts) == 0);
    for (int i = 0; i < n; i++) {
        unsigned before = atomic_load(&paths);
        while (atomic_load(&paths) < before + 20)
            usleep(100);
        bad += run_in_child(load_something, 0, 0) != 0;
    }
    stop = 1;
    pthread_join(t, NULL);
    printf("%d workers, %d bad\n", n, bad);
    return 0;
}

static void *fork_here(void *n)
{
    printf("child: %d\n", run_in_child(work, *(int *)n, 1));
    return NULL;
}

static int in_thread(int n)
{
    pthread_t t;
    MUST(pthread_create(&t, NULL, fork_here, &n) == 0);
    pthread_join(t, NULL);
    printf("parent: %d\n", work(n));
    return 0;
}

static int spawn(int n, int by_vfork)
{
    char number[16];
    char *argv[] = {self, (char *)"alloc", number, NULL};
    pid_t pid;
    snprintf(number, sizeof number, "%d", n);
    fflush(stdout);
    if (!by_vfork) {
        MUST(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
    } else if ((pid = vfork()) == 0) {
        execv(self, argv);
        _exit(98);
    }
    return wait_code(pid);
}

static int exec_self(int n)
{
    char number[16];
    char *argv[] = {self, (char *)"alloc", number, NULL};
    snprintf(number, sizeof number, "%d", n);
    execv(self, argv);
    return 98;
}

/* Programs started by a program that has CUDA running. */
static int programs(int n)
{
    printf("parent: %d\n", work(n));
    printf("posix_spawn: %d\n", spawn(n, 0));
    printf("vfork: %d\n", spawn(n, 1));
    printf("fork and exec: %d\n", run_in_child(exec_self, n, 1));
    printf("parent: %d\n", work(n));
    return 0;
}

static void *kept;

static void query_at_exit(void)
{
    size_t free_bytes = 0, total = 0;
    int r = (int)cudaMemGetInfo(&free_bytes, &total);
    printf("at exit: %d\n", r);
}

__attribute__((destructor)) static void free_at_the_end(void)
{
    if (kept != NULL)
        printf("destructor: %d\n", (int)cudaFree(kept));
}

/* An exit handler older than CUDA that asks, a younger one, and a destructor that frees. */
static int exits(int n)
{
    atexit(query_at_exit);
    printf("errors %d\n", work(n));
    printf("kept: %d\n", (int)cudaMalloc(&kept, 512));
    atexit(query_at_exit);
    return 0;
}

static void *start_cuda(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)work(5);
}

static int answer_soon(int n)
{
    alarm(10);
    return answer(n);
}

/* A process that forks while another of its threads is starting CUDA; the child asks too. */
static int fork_in_the_start(int us)
{
    pthread_t t;
    void *errors = NULL;
    MUST(pthread_create(&t, NULL, start_cuda, NULL) == 0);
    usleep((useconds_t)us);
    int code = run_in_child(answer_soon, 0, 1);
    pthread_join(t, &errors);
    /* What becomes of the child depends on how far the start was, natively too, up to a crash in a half-loaded driver. What must not
     * happen is that it waits for ever. */
    return errors == NULL && code != 1000 + SIGALRM ? 0 : 1;
}

static int race(int n)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += run_in_child(fork_in_the_start, i * 53 % 5000, 1) != 0;
    printf("%d forks in the start, %d bad\n", n, bad);
    return 0;
}

static int allocate(int n)
{
    int errors = work(n);
    printf("alloc %d: %d\nerrors %d\n", n, errors, (int)cudaGetLastError());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int (*f)(int); } modes[] = {
        {"alloc", allocate}, {"before", before}, {"after", after}, {"nested", nested}, {"leave", leave}, {"busy", busy},
        {"thread", in_thread}, {"programs", programs}, {"race", race}, {"loads", loads}, {"exits", exits}, {"exec", exec_self},
    };
    self = argv[0];
    for (size_t i = 0; argc >= 2 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].f(argc > 2 ? atoi(argv[2]) : 1);
    return 2;
}
