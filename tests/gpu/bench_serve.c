/* What a pair of allocation and free costs in a program, bare and served by a plan. Two workers make batches in turns on the same core, and each of the
 * cases has call sites of its own, so that a plan has a row for it. By the processor time of the calling thread, and by the clock.
 *
 *   bench_serve record LIBTENURE RUN                  some batches of every case, recorded: what a plan is made of
 *   bench_serve compare TURNS LIBTENURE PLAN RUN      JSON lines: bare and served, ns a pair
 *   bench_serve once CASE BATCHES LIBTENURE PLAN RUN  one case, served, for its journal; prints how many pairs that were
 *   bench_serve cases                                 their names, one a line
 *
 * The same binary runs on the fake GPU (LD_LIBRARY_PATH) and on a card. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/stats.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define LIVE 100000
#define THREADS_MAX 16
#define BUSY_NS 100000 /* of work on another stream, a pair */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry nothing()\n{\n  ret;\n}\n"
                          ".visible .entry spin(.param .u64 ns)\n{\n"
                          "  .reg .u64 %begin, %now, %limit;\n  .reg .pred %again;\n"
                          "  ld.param.u64 %limit, [ns];\n  mov.u64 %begin, %globaltimer;\n"
                          "more:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %now, %now, %begin;\n"
                          "  setp.lt.u64 %again, %now, %limit;\n  @%again bra more;\n  ret;\n}\n";

static cudaStream_t stream, other;
static cudaKernel_t nothing, spin;
static int runs_kernels; /* a device that takes kernels and does nothing is kept busy by a function of the host's */

typedef struct cost { double cpu, wall; } cost;

static void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "bench_serve: %s: %s\n", what, cudaGetErrorName(e));
    exit(1);
}

static inline void begin_time(cost *c)
{
    c->cpu -= bench_cpu_ns();
    c->wall -= bench_wall_ns();
}

static inline void end_time(cost *c)
{
    c->wall += bench_wall_ns();
    c->cpu += bench_cpu_ns();
}

/* ---- pairs; each function is two sites */

#define PLAIN(name, bytes)                            \
    static void name(unsigned n, cost *c)             \
    {                                                 \
        void *p;                                      \
        begin_time(c);                                \
        for (unsigned i = 0; i < n; i++) {            \
            must(cudaMalloc(&p, bytes), "cudaMalloc"); \
            must(cudaFree(p), "cudaFree");            \
        }                                             \
        end_time(c);                                  \
    }

#define ASYNC(name, bytes)                                            \
    static void name(unsigned n, cost *c)                             \
    {                                                                 \
        void *p;                                                      \
        begin_time(c);                                                \
        for (unsigned i = 0; i < n; i++) {                            \
            must(cudaMallocAsync(&p, bytes, stream), "cudaMallocAsync"); \
            must(cudaFreeAsync(p, stream), "cudaFreeAsync");          \
        }                                                             \
        end_time(c);                                                  \
    }

/* Timed call by call: what stands between them is not the allocator's. The readings of the clocks are in the figure, some 100 ns. */
#define APART(name, bytes, before, between)           \
    static void name(unsigned n, cost *c)             \
    {                                                 \
        void *p;                                      \
        for (unsigned i = 0; i < n; i++) {            \
            before;                                   \
            begin_time(c);                            \
            must(cudaMalloc(&p, bytes), "cudaMalloc"); \
            end_time(c);                              \
            between;                                  \
            begin_time(c);                            \
            must(cudaFree(p), "cudaFree");            \
            end_time(c);                              \
        }                                             \
    }

static void launch(void)
{
    void *none[] = {NULL};
    must(cudaLaunchKernel((const void *)nothing, (dim3){1, 1, 1}, (dim3){32, 1, 1}, none, 0, stream), "cudaLaunchKernel");
}

static void CUDART_CB sleep_there(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = BUSY_NS}, NULL);
}

static void busy_kernel(void)
{
    uint64_t ns = BUSY_NS;
    void *arguments[] = {&ns};
    must(cudaLaunchKernel((const void *)spin, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, other), "cudaLaunchKernel");
}

static void busy(void)
{
    if (runs_kernels)
        busy_kernel();
    else
        must(cudaLaunchHostFunc(other, sleep_there, NULL), "cudaLaunchHostFunc");
}

PLAIN(plain_256, 256)
PLAIN(plain_64k, 64 * KIB)
PLAIN(plain_2m, 2 * MIB)
PLAIN(plain_64m, 64 * MIB)
ASYNC(async_256, 256)
ASYNC(async_64k, 64 * KIB)
ASYNC(async_2m, 2 * MIB)
ASYNC(async_64m, 64 * MIB)
APART(launch_256, 256, , launch())
APART(launch_64k, 64 * KIB, , launch())
APART(launch_2m, 2 * MIB, , launch())
APART(launch_64m, 64 * MIB, , launch())
APART(apart_64k, 64 * KIB, , )
APART(busy_256, 256, busy(), )
APART(busy_64k, 64 * KIB, busy(), )
APART(busy_2m, 2 * MIB, busy(), )
APART(busy_64m, 64 * MIB, busy(), )
PLAIN(live_64k, 64 * KIB)

/* By the driver alone, as a resolver hands its functions out. */
static int (*driver_alloc)(void **, size_t), (*driver_free)(void *), (*driver_current)(void **);

static void must_driver(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "bench_serve: %s: %d\n", what, code);
        exit(1);
    }
}

static void driver_64k(unsigned n, cost *c)
{
    void *p;
    begin_time(c);
    for (unsigned i = 0; i < n; i++) {
        must_driver(driver_alloc(&p, 64 * KIB), "cuMemAlloc");
        must_driver(driver_free(p), "cuMemFree");
    }
    end_time(c);
}

/* What a pair that is served asks of the driver all the same. */
static void current_twice(unsigned n, cost *c)
{
    void *p;
    begin_time(c);
    for (unsigned i = 0; i < 2 * n; i++)
        must_driver(driver_current(&p), "cuCtxGetCurrent");
    end_time(c);
}

static void launches(unsigned n, cost *c)
{
    begin_time(c);
    for (unsigned i = 0; i < n; i++)
        launch();
    end_time(c);
}

static void copies(unsigned n, cost *c)
{
    static void *block;
    if (block == NULL)
        must(cudaMalloc(&block, 64 * KIB), "cudaMalloc");
    begin_time(c);
    for (unsigned i = 0; i < n; i++)
        must(cudaMemcpyAsync((char *)block + 4 * KIB, block, 64, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    end_time(c);
}

static void pinned_64k(unsigned n, cost *c)
{
    void *p;
    begin_time(c);
    for (unsigned i = 0; i < n; i++) {
        must(cudaHostAlloc(&p, 64 * KIB, cudaHostAllocDefault), "cudaHostAlloc");
        must(cudaFreeHost(p), "cudaFreeHost");
    }
    end_time(c);
}

/* ---- several threads */

static pthread_barrier_t together;
typedef void (*pairs_fn)(unsigned, cost *);
typedef struct worker { pthread_t thread; unsigned n; cost c; pairs_fn pairs; } worker;

PLAIN(threads_64k, 64 * KIB)
ASYNC(threads_async_64k, 64 * KIB)
/* A site for each thread. */
#define EACH(number)             \
    PLAIN(own_##number, 64 * KIB) \
    ASYNC(own_async_##number, 64 * KIB)
EACH(0) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11) EACH(12) EACH(13) EACH(14) EACH(15)
static const pairs_fn one_site[THREADS_MAX] = {[0 ... THREADS_MAX - 1] = threads_64k};
static const pairs_fn one_site_async[THREADS_MAX] = {[0 ... THREADS_MAX - 1] = threads_async_64k};
static const pairs_fn own_site[THREADS_MAX] = {own_0, own_1, own_2, own_3, own_4, own_5, own_6, own_7, own_8, own_9, own_10, own_11, own_12, own_13, own_14, own_15};
static const pairs_fn own_site_async[THREADS_MAX] = {own_async_0, own_async_1, own_async_2, own_async_3, own_async_4, own_async_5, own_async_6, own_async_7,
                                                     own_async_8, own_async_9, own_async_10, own_async_11, own_async_12, own_async_13, own_async_14, own_async_15};

static void *work(void *self)
{
    worker *w = self;
    cost before = {0};
    must(cudaSetDevice(0), "cudaSetDevice");
    w->pairs(2, &before); /* a thread's first calls find out where it is */
    (void)pthread_barrier_wait(&together);
    w->pairs(w->n, &w->c);
    return NULL;
}

static void by_threads(unsigned threads, unsigned n, cost *c, const pairs_fn *pairs)
{
    worker w[THREADS_MAX];
    if (pthread_barrier_init(&together, NULL, threads) != 0)
        exit(1);
    for (unsigned i = 0; i < threads; i++) {
        w[i] = (worker){.n = n, .pairs = pairs[i]};
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            exit(1);
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(w[i].thread, NULL);
        c->cpu += w[i].c.cpu / threads;
        c->wall += w[i].c.wall / threads;
    }
    pthread_barrier_destroy(&together);
}

static void four_threads(unsigned n, cost *c) { by_threads(4, n, c, one_site); }
static void four_threads_async(unsigned n, cost *c) { by_threads(4, n, c, one_site_async); }
static void four_own(unsigned n, cost *c) { by_threads(4, n, c, own_site); }
static void sixteen_own(unsigned n, cost *c) { by_threads(16, n, c, own_site); }
static void sixteen_own_async(unsigned n, cost *c) { by_threads(16, n, c, own_site_async); }

/* ---- cases */

static void make_live(void)
{
    static int made;
    void *p;
    for (; made < LIVE; made++)
        must(cudaMalloc(&p, 256), "cudaMalloc");
}

/* The last one leaves its blocks alive. */
static const struct operation {
    const char *name, *label;
    void (*run)(unsigned, cost *);
    unsigned batch;
    void (*before)(void);
} operations[] = {
    {"plain_256", "cudaMalloc, cudaFree, 256 B", plain_256, 200, NULL},
    {"plain_64k", "cudaMalloc, cudaFree, 64 KiB", plain_64k, 200, NULL},
    {"plain_2m", "cudaMalloc, cudaFree, 2 MiB", plain_2m, 100, NULL},
    {"plain_64m", "cudaMalloc, cudaFree, 64 MiB", plain_64m, 50, NULL},
    {"async_256", "cudaMallocAsync, FreeAsync, 256 B", async_256, 200, NULL},
    {"async_64k", "cudaMallocAsync, FreeAsync, 64 KiB", async_64k, 200, NULL},
    {"async_2m", "cudaMallocAsync, FreeAsync, 2 MiB", async_2m, 200, NULL},
    {"async_64m", "cudaMallocAsync, FreeAsync, 64 MiB", async_64m, 100, NULL},
    {"apart_64k", "call by call, 64 KiB, idle", apart_64k, 100, NULL},
    {"launch_256", "a launch between, 256 B", launch_256, 100, NULL},
    {"launch_64k", "a launch between, 64 KiB", launch_64k, 100, NULL},
    {"launch_2m", "a launch between, 2 MiB", launch_2m, 100, NULL},
    {"launch_64m", "a launch between, 64 MiB", launch_64m, 50, NULL},
    {"busy_256", "a kernel elsewhere, 256 B", busy_256, 20, NULL},
    {"busy_64k", "a kernel elsewhere, 64 KiB", busy_64k, 20, NULL},
    {"busy_2m", "a kernel elsewhere, 2 MiB", busy_2m, 20, NULL},
    {"busy_64m", "a kernel elsewhere, 64 MiB", busy_64m, 20, NULL},
    {"pinned_64k", "cudaHostAlloc, cudaFreeHost, 64 KiB", pinned_64k, 50, NULL},
    {"driver_64k", "cuMemAlloc, cuMemFree, 64 KiB", driver_64k, 200, NULL},
    {"current", "cuCtxGetCurrent, twice", current_twice, 200, NULL},
    {"launches", "cudaLaunchKernel alone", launches, 200, NULL},
    {"copies", "cudaMemcpyAsync alone", copies, 200, NULL},
    {"threads_4", "cudaMalloc, cudaFree, 64 KiB, 4 threads, one site", four_threads, 200, NULL},
    {"threads_4_async", "cudaMallocAsync, FreeAsync, 64 KiB, 4 threads, one site", four_threads_async, 200, NULL},
    {"threads_4_own", "cudaMalloc, cudaFree, 64 KiB, 4 threads, a site each", four_own, 200, NULL},
    {"threads_16_own", "cudaMalloc, cudaFree, 64 KiB, 16 threads, a site each", sixteen_own, 200, NULL},
    {"threads_16_async", "cudaMallocAsync, FreeAsync, 64 KiB, 16 threads, a site each", sixteen_own_async, 200, NULL},
    {"live_64k", "cudaMalloc, cudaFree, 64 KiB, 100000 live", live_64k, 200, make_live},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

static void prepare(void)
{
    cudaLibrary_t library;
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), "cudaLibraryLoadData");
    must(cudaLibraryGetKernel(&nothing, library, "nothing"), "cudaLibraryGetKernel");
    must(cudaLibraryGetKernel(&spin, library, "spin"), "cudaLibraryGetKernel");
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    /* A pool that gives everything back at each synchronisation would measure that. */
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    must(cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&driver_alloc, 12000, cudaEnableDefault, NULL), "cuMemAlloc");
    must(cudaGetDriverEntryPointByVersion("cuMemFree", (void **)&driver_free, 12000, cudaEnableDefault, NULL), "cuMemFree");
    must(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&driver_current, 12000, cudaEnableDefault, NULL), "cuCtxGetCurrent");
    launch();
    for (int i = 0; i < 2; i++) { /* the first launch loads its code */
        double from = bench_wall_ns();
        busy_kernel();
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        runs_kernels = bench_wall_ns() - from > BUSY_NS / 2;
    }
    /* Only now: the driver's own threads, made by the calls before, are not to share this core. */
    bench_pin(0);
}

static cost batch(const struct operation *o)
{
    cost c = {0};
    if (o->before)
        o->before();
    o->run(o->batch, &c);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return (cost){.cpu = c.cpu / o->batch, .wall = c.wall / o->batch};
}

/* ---- the workers: the same frames whoever asks, so that a plan fits */

typedef struct channel { pid_t pid; int to, from; } channel;

static int serve(int from, int to)
{
    unsigned char which;
    prepare();
    while (read(from, &which, 1) == 1 && which < OPERATIONS) {
        cost c = batch(&operations[which]);
        if (write(to, &c, sizeof c) != sizeof c)
            return 1;
    }
    return 0;
}

/* NULL for what is not set. */
static channel start(char *self, const char *preload, const char *plan, const char *run)
{
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0)
        exit(1);
    channel c = {.pid = fork(), .to = down[1], .from = up[0]};
    if (c.pid == 0) {
        const char *names[] = {"LD_PRELOAD", "TENURE_PLAN", "TENURE_RUN"}, *values[] = {preload, plan, run};
        char from[16], to[16];
        close(down[1]);
        close(up[0]);
        for (int i = 0; i < 3; i++) {
            unsetenv(names[i]);
            if (values[i])
                setenv(names[i], values[i], 1);
        }
        snprintf(from, sizeof from, "%d", down[0]);
        snprintf(to, sizeof to, "%d", up[1]);
        execl("/proc/self/exe", self, "serve", from, to, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    return c;
}

static cost ask(const channel *c, size_t operation)
{
    unsigned char which = (unsigned char)operation;
    cost answer;
    if (write(c->to, &which, 1) != 1 || read(c->from, &answer, sizeof answer) != sizeof answer) {
        fprintf(stderr, "bench_serve: a worker ended early\n");
        exit(1);
    }
    return answer;
}

static int stop(const channel *c)
{
    int status;
    close(c->to);
    return waitpid(c->pid, &status, 0) != c->pid || status != 0;
}

static int record(char *self, const char *preload, const char *run)
{
    channel c = start(self, preload, NULL, run);
    for (size_t o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < 2; i++)
            (void)ask(&c, o);
    return stop(&c);
}

static void print(size_t operation, const char *clock, const char *way, double *samples, size_t n)
{
    char name[128];
    snprintf(name, sizeof name, "%s, %s", operations[operation].label, way);
    bench_print("serve", name, "ns a pair", clock, samples, n);
}

static int compare(char *self, size_t turns, const char *preload, const char *plan, const char *run)
{
    double *s = calloc(turns * 4, sizeof *s);
    channel both[2] = {start(self, NULL, NULL, NULL), start(self, preload, plan, run)};
    if (!s)
        return 1;
    for (size_t o = 0; o < OPERATIONS; o++) {
        (void)ask(&both[0], o);
        (void)ask(&both[1], o);
        for (size_t i = 0; i < turns; i++)
            for (size_t k = 0; k < 2; k++) {
                size_t way = (i + k) & 1;
                cost c = ask(&both[way], o);
                s[2 * way * turns + i] = c.cpu;
                s[(2 * way + 1) * turns + i] = c.wall;
            }
        for (size_t way = 0; way < 2; way++) {
            print(o, "cpu", way ? "served" : "bare", s + 2 * way * turns, turns);
            print(o, "wall", way ? "served" : "bare", s + (2 * way + 1) * turns, turns);
        }
    }
    free(s);
    int bad = stop(&both[1]); /* first: it has the other's pipe as well */
    return stop(&both[0]) | bad;
}

static int once(char *self, const char *name, size_t batches, const char *preload, const char *plan, const char *run)
{
    size_t o = 0;
    while (o < OPERATIONS && strcmp(operations[o].name, name) != 0)
        o++;
    if (o == OPERATIONS)
        return 2;
    channel c = start(self, preload, plan, run);
    for (size_t i = 0; i < batches; i++)
        (void)ask(&c, o);
    printf("%zu\n", batches * operations[o].batch);
    return stop(&c);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "record") == 0)
        return record(argv[0], argv[2], argv[3]);
    if (argc == 6 && strcmp(argv[1], "compare") == 0 && strtoul(argv[2], NULL, 10) > 0)
        return compare(argv[0], strtoul(argv[2], NULL, 10), argv[3], argv[4], argv[5]);
    if (argc == 7 && strcmp(argv[1], "once") == 0)
        return once(argv[0], argv[2], strtoul(argv[3], NULL, 10), argv[4], argv[5], argv[6]);
    if (argc == 2 && strcmp(argv[1], "cases") == 0) {
        for (size_t o = 0; o < OPERATIONS; o++)
            puts(operations[o].name);
        return 0;
    }
    fprintf(stderr, "usage: bench_serve record LIBTENURE RUN\n"
                    "       bench_serve compare TURNS LIBTENURE PLAN RUN\n"
                    "       bench_serve once CASE BATCHES LIBTENURE PLAN RUN\n"
                    "       bench_serve cases\n");
    return 2;
}
