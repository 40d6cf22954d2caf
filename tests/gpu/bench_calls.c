/* What recording adds to whole calls. Two workers, one bare and one with the preload, make batches in turns on the same core; what counts is
 * the difference of the two batches of a turn. Every call is made with 16 frames on the stack.
 *
 *   bench_calls compare TURNS LIBTENURE RUN    JSON lines: bare, recorded, added per call; by processor time of the thread, and by the clock
 *   bench_calls compare TURNS - -              both workers bare: what the method itself says where there is no difference
 *   bench_calls loop plain|async|launch N      makes N pairs or calls, for the journal's size
 *   bench_calls profile OPERATION BATCHES      one worker's batches alone, for a profiler
 *
 * The same binary runs on the fake GPU (LD_LIBRARY_PATH) and on a card. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stats.h"

#define FRAMES_BELOW_MAIN 12 /* with main, libc's two, _start: 16 */
#define COPY_BYTES 4096
#define BLOCK_BYTES (64u << 10)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";

static cudaStream_t stream;
static cudaKernel_t kernel;
static void *device_block, *host_block;

static void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "bench_calls: %s: %s\n", what, cudaGetErrorName(e));
    exit(1);
}

static void plain_pair(unsigned n)
{
    void *p;
    for (unsigned i = 0; i < n; i++) {
        must(cudaMalloc(&p, BLOCK_BYTES), "cudaMalloc");
        must(cudaFree(p), "cudaFree");
    }
}

static void async_pair(unsigned n)
{
    void *p;
    for (unsigned i = 0; i < n; i++) {
        must(cudaMallocAsync(&p, BLOCK_BYTES, stream), "cudaMallocAsync");
        must(cudaFreeAsync(p, stream), "cudaFreeAsync");
    }
}

/* The same two with what a program does between its calls: 256 KiB of its own, of which each line is touched, so that nothing of ours is
 * left in the first cache. The calls alone are timed, one by one. */
#define BETWEEN_BYTES (256u << 10)
static double apart_ns;

static double touch_between(void)
{
    static volatile unsigned char own[BETWEEN_BYTES];
    for (size_t i = 0; i < sizeof own; i += 64)
        own[i]++;
    return bench_wall_ns();
}

static void plain_apart(unsigned n)
{
    void *p;
    for (unsigned i = 0; i < n; i++) {
        apart_ns -= touch_between();
        must(cudaMalloc(&p, BLOCK_BYTES), "cudaMalloc");
        apart_ns += bench_wall_ns();
        apart_ns -= touch_between();
        must(cudaFree(p), "cudaFree");
        apart_ns += bench_wall_ns();
    }
}

static void async_apart(unsigned n)
{
    void *p;
    for (unsigned i = 0; i < n; i++) {
        apart_ns -= touch_between();
        must(cudaMallocAsync(&p, BLOCK_BYTES, stream), "cudaMallocAsync");
        apart_ns += bench_wall_ns();
        apart_ns -= touch_between();
        must(cudaFreeAsync(p, stream), "cudaFreeAsync");
        apart_ns += bench_wall_ns();
    }
}

static void launch(unsigned n)
{
    void *none[] = {NULL};
    for (unsigned i = 0; i < n; i++)
        must(cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, none, 0, stream), "cudaLaunchKernel");
}

static void copy(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        must(cudaMemcpyAsync(device_block, host_block, COPY_BYTES, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
}

/* A batch stays well under the 1024 launches that a stream takes before it makes its caller wait. */
static const struct operation { const char *name, *label; void (*run)(unsigned); unsigned batch, calls; int waits, apart; } operations[] = {
    {"plain", "cudaMalloc, cudaFree", plain_pair, 100, 2, 1, 0},
    {"async", "cudaMallocAsync, cudaFreeAsync", async_pair, 200, 2, 0, 0},
    {"launch", "cudaLaunchKernel", launch, 200, 1, 0, 0},
    {"copy", "cudaMemcpyAsync", copy, 200, 1, 0, 0},
    {"plain_apart", "cudaMalloc, cudaFree, 256 KiB between", plain_apart, 50, 2, 1, 1},
    {"async_apart", "cudaMallocAsync, cudaFreeAsync, 256 KiB between", async_apart, 50, 2, 0, 1},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

static __attribute__((noinline, noclone)) void deep(int more, const struct operation *o, unsigned n)
{
    if (more > 1)
        deep(more - 1, o, n);
    else
        o->run(n);
    __asm__ __volatile__("" ::: "memory");
}

typedef struct cost { double cpu, wall; } cost;

static void CUDART_CB hold_stream(void *gate) { (void)sem_wait(gate); }

/* The stream stands still while the batch is put into it: otherwise what is measured is how the caller and whoever does the work meet,
 * which is a different story in every batch. */
static cost batch(const struct operation *o)
{
    static sem_t gate; /* nobody has it between two batches */
    int held = !o->waits; /* cudaFree waits for the stream */
    apart_ns = 0;
    if (held)
        must(cudaLaunchHostFunc(stream, hold_stream, &gate), "cudaLaunchHostFunc");
    double cpu = bench_cpu_ns(), wall = bench_wall_ns();
    deep(FRAMES_BELOW_MAIN - 1, o, o->batch);
    cost c = {.cpu = bench_cpu_ns() - cpu, .wall = bench_wall_ns() - wall};
    if (held)
        sem_post(&gate);
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    double calls = (double)o->batch * o->calls;
    if (o->apart)
        c.cpu = c.wall = apart_ns;
    return (cost){.cpu = c.cpu / calls, .wall = c.wall / calls};
}

static void prepare(void)
{
    cudaLibrary_t library;
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), "cudaLibraryLoadData");
    must(cudaLibraryGetKernel(&kernel, library, "nothing"), "cudaLibraryGetKernel");
    must(cudaMalloc(&device_block, BLOCK_BYTES), "cudaMalloc");
    must(cudaHostAlloc(&host_block, COPY_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    /* A pool that gives everything back at each synchronisation would measure that. */
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    /* Once with the stream free: a kernel's first launch loads its code, for which the driver may wait for the device, and a stream that is
     * held would never let it. */
    for (size_t i = 0; i < OPERATIONS; i++)
        operations[i].run(1);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (size_t i = 0; i < OPERATIONS; i++)
        (void)batch(&operations[i]);
    /* Only now: the driver's own threads, made by the calls before, are not to share this core. */
    bench_pin(0);
}

/* ---- the two workers */

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

static channel start(char *self, const char *preload, const char *run)
{
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0)
        exit(1);
    channel c = {.pid = fork(), .to = down[1], .from = up[0]};
    if (c.pid == 0) {
        char from[16], to[16];
        close(down[1]);
        close(up[0]);
        unsetenv("LD_PRELOAD");
        unsetenv("TENURE_RUN");
        if (strcmp(preload, "-") != 0) {
            setenv("LD_PRELOAD", preload, 1);
            setenv("TENURE_RUN", run, 1);
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
        fprintf(stderr, "bench_calls: a worker ended early\n");
        exit(1);
    }
    return answer;
}

static void print(size_t operation, const char *clock, double *bare, double *recorded, double *added, size_t n)
{
    struct { const char *what; double *samples; } rows[] = {{"bare", bare}, {"recorded", recorded}, {"added", added}};
    for (size_t i = 0; i < 3; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s, %s", operations[operation].label, rows[i].what);
        bench_print("calls", name, "ns per call", clock, rows[i].samples, n);
    }
}

/* A preload that did not load would make the best figures of all. */
static int holds_journal(const char *run)
{
    struct dirent *entry;
    int found = 0;
    DIR *dir = opendir(run);
    while (dir && (entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name);
        found |= n > 4 && strcmp(entry->d_name + n - 4, ".tnj") == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static int compare(char *self, size_t turns, const char *preload, const char *run)
{
    double *s = calloc(turns * 6, sizeof *s);
    channel bare = start(self, "-", "-"), recorded = start(self, preload, run);
    if (!s)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    for (size_t o = 0; o < OPERATIONS; o++) {
        (void)ask(&bare, o);
        (void)ask(&recorded, o);
        for (size_t i = 0; i < turns; i++) {
            cost b, r;
            if (i % 2) {
                r = ask(&recorded, o);
                b = ask(&bare, o);
            } else {
                b = ask(&bare, o);
                r = ask(&recorded, o);
            }
            s[i] = b.cpu, s[turns + i] = r.cpu, s[2 * turns + i] = r.cpu - b.cpu;
            s[3 * turns + i] = b.wall, s[4 * turns + i] = r.wall, s[5 * turns + i] = r.wall - b.wall;
        }
        if (!operations[o].apart)
            print(o, "cpu", s, s + turns, s + 2 * turns, turns);
        print(o, "wall", s + 3 * turns, s + 4 * turns, s + 5 * turns, turns);
    }
    int bad = 0, status;
    close(bare.to);
    close(recorded.to);
    bad |= waitpid(bare.pid, &status, 0) != bare.pid || status != 0;
    bad |= waitpid(recorded.pid, &status, 0) != recorded.pid || status != 0;
    free(s);
    if (strcmp(preload, "-") != 0 && !holds_journal(run)) {
        fprintf(stderr, "bench_calls: the recorded worker left no journal in %s\n", run);
        bad = 1;
    }
    return bad;
}

static const struct operation *operation_named(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_calls compare TURNS LIBTENURE|- RUN|-\n"
                    "       bench_calls loop plain|async|launch|copy|plain_apart|async_apart N\n"
                    "       bench_calls profile plain|async|launch|copy|plain_apart|async_apart BATCHES\n");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(atoi(argv[2]), atoi(argv[3]));
    if (argc == 5 && strcmp(argv[1], "compare") == 0 && strtoul(argv[2], NULL, 10) > 0)
        return compare(argv[0], strtoul(argv[2], NULL, 10), argv[3], argv[4]);
    const struct operation *o = argc == 4 ? operation_named(argv[2]) : NULL;
    unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (!o)
        return usage();
    prepare();
    if (strcmp(argv[1], "profile") == 0) {
        while (n-- > 0)
            (void)batch(o);
    } else if (strcmp(argv[1], "loop") == 0) {
        for (; n > 0; n -= n < o->batch ? n : o->batch) {
            deep(FRAMES_BELOW_MAIN - 1, o, (unsigned)(n < o->batch ? n : o->batch));
            must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        }
    } else {
        return usage();
    }
    return 0;
}
