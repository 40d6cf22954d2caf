/* The card's own accounting, the exported names, modes, host memory actually used, and many threads. */
#include "test_driver.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char path[256];

/* Runs `body` in a process of its own that exits normally, and reads the statistics it wrote. */
static char *stats_of(void (*body)(void), bool forked_name)
{
    static char text[65536];
    char name[512];
    int status;
    snprintf(path, sizeof path, "%s/fakegpu-stats-%ld", getenv("TEST_TMPDIR") != NULL ? getenv("TEST_TMPDIR") : "/tmp", (long)getpid());
    setenv("FAKEGPU_STATS", forked_name ? path : strcat(path, ".%p"), 1);
    pid_t child = fork();
    if (child == 0) {
        body();
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    path[strlen(path) - (forked_name ? 0 : 3)] = '\0';
    snprintf(name, sizeof name, "%s.%ld", path, (long)child);
    FILE *f = fopen(name, "r");
    ck_assert_msg(f != NULL, "%s was not written", name);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(name);
    return text;
}

static unsigned long long field(const char *text, const char *section, const char *key)
{
    const char *at = strstr(text, section);
    ck_assert_ptr_nonnull(at);
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(at, quoted);
    ck_assert_msg(at != NULL, "no %s in %s", key, text);
    return strtoull(at + strlen(quoted), NULL, 10);
}

static void every_kind(void)
{
    CUdeviceptr p, q;
    size_t pitch;
    void *h;
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = {100, 10, CU_AD_FORMAT_FLOAT, 1};
    CUmemGenericAllocationHandle v;
    CUmemAllocationProp prop = device_prop(0);
    static char mine[100];
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 1000));                                /* 1000 -> 1024 */
    OK(cuMemAlloc(&q, MIB + 1));                             /* MIB + 1 -> 2 MIB */
    OK(cuMemAllocPitch(&p, &pitch, 100, 10, 4));             /* 5120 -> 5120 */
    OK(cuMemAllocManaged(&p, 3 * MIB, CU_MEM_ATTACH_GLOBAL)); /* 3 MIB -> 4 MIB */
    OK(cuArrayCreate(&a, &d));                               /* 4000 -> 4096 */
    OK(cuMemCreate(&v, 4 * MIB, &prop, 0));                  /* 4 MIB */
    OK(cuMemAllocAsync(&p, 700, s));                         /* 700 -> 1024, then gone at the call */
    OK(cuMemFreeAsync(p, s));
    OK(cuMemFree(q));
    OK(cuMemAllocHost(&h, 5000));                            /* 5000 -> 8192 */
    OK(cuMemHostRegister(mine, sizeof mine, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(q));
}

START_TEST(every_kind_is_counted_by_its_rule)
{
    const char *t = stats_of(every_kind, false);
    const unsigned long long live = 1000 + 5120 + 3 * MIB + 4000 + 4 * MIB;
    const unsigned long long backed = 1024 + 5120 + 4 * MIB + 4096 + 4 * MIB;
    ck_assert_uint_eq(field(t, "devices", "live_requested_bytes"), live);
    ck_assert_uint_eq(field(t, "devices", "peak_requested_bytes"), live + MIB + 1 + 700);
    ck_assert_uint_eq(field(t, "devices", "live_backed_bytes"), backed);
    ck_assert_uint_eq(field(t, "devices", "peak_backed_bytes"), backed + 2 * MIB + 1024);
    ck_assert_uint_eq(field(t, "devices", "allocs"), 7);
    ck_assert_uint_eq(field(t, "devices", "frees"), 2);
    ck_assert_uint_eq(field(t, "host", "live_requested_bytes"), 5000);
    ck_assert_uint_eq(field(t, "host", "live_backed_bytes"), 8192);
    ck_assert_uint_eq(field(t, "registered", "live_requested_bytes"), 100);
    ck_assert_uint_eq(field(t, "calls", "cuMemAlloc_v2"), 2);
    ck_assert_uint_eq(field(t, "calls", "cuMemFree_v2"), 2);
}
END_TEST

START_TEST(a_forked_process_writes_a_file_of_its_own)
{
    ck_assert_uint_eq(field(stats_of(every_kind, true), "calls", "cuMemAlloc_v2"), 2);
}
END_TEST

START_TEST(wddm_oversubscribes_and_never_gives_back)
{
    CUdeviceptr p, q;
    setenv("FAKEGPU_MODE", "wddm", 1);
    setenv("FAKEGPU_MEM_MIB", "4096", 1);
    start();
    size_t before = free_bytes();
    OK(cuMemAlloc(&p, GIB));
    OK(cuMemFree(p));
    ck_assert_uint_eq(before - free_bytes(), GIB);
    OK(cuMemAlloc(&p, 3 * GIB));
    OK(cuMemAlloc(&q, 3 * GIB));
    ck_assert_uint_eq(free_bytes(), 0);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 4096 * GIB));
}
END_TEST

START_TEST(unified_memory_moves_by_itself)
{
    int v;
    setenv("FAKEGPU_MODE", "uma", 1);
    start();
    size_t first = free_bytes();
    ck_assert_uint_ne(first, free_bytes());
    OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0));
    ck_assert_int_eq(v, 1);
}
END_TEST

START_TEST(a_mig_instance_has_its_own_uuid_and_no_peers)
{
    CUuuid a, b;
    int can;
    setenv("FAKEGPU_MODE", "mig", 1);
    setenv("FAKEGPU_DEVICES", "2", 1);
    start();
    OK(cuDeviceGetUuid_v2(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 1));
    ck_assert_mem_ne(&a, &b, sizeof a);
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 0);
}
END_TEST

static size_t resident(void)
{
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%ld %ld", &ignored, &pages), 2);
    fclose(f);
    return (size_t)pages * 4096;
}

START_TEST(only_touched_pages_cost_host_memory)
{
    CUdeviceptr p;
    start();
    size_t before = resident();
    OK(cuMemAlloc(&p, 100 * GIB));
    OK(cuMemsetD8(p + 90 * GIB, 1, MIB));
    OK(cuCtxSynchronize());
    size_t used = resident() - before;
    ck_assert_uint_ge(used, MIB);
    ck_assert_uint_lt(used, 8 * MIB);
    OK(cuMemFree(p)); /* poisons nothing that was not touched */
    ck_assert_uint_lt(resident() - before, 8 * MIB);
}
END_TEST

START_TEST(a_free_touches_nothing_that_was_not_touched)
{
    CUdeviceptr p[64];
    start();
    size_t before = resident();
    for (int i = 0; i < 64; i++)
        OK(cuMemAlloc(&p[i], MIB));
    for (int i = 0; i < 64; i += 2) /* each page keeps a neighbour */
        OK(cuMemFree(p[i]));
    ck_assert_uint_lt(resident() - before, 4 * MIB);
}
END_TEST

START_TEST(a_freed_small_block_is_overwritten)
{
    CUdeviceptr p, keep;
    start();
    OK(cuMemAlloc(&keep, 512)); /* holds the page */
    OK(cuMemAlloc(&p, 512));
    OK(cuMemsetD8(p, 1, 512));
    OK(cuCtxSynchronize());
    OK(cuMemFree(p));
    OK(cuMemAlloc(&p, 512));
    ck_assert_uint_eq(first_byte(p), 0xDE);
}
END_TEST

START_TEST(a_file_size_limit_does_not_kill)
{
    CUdeviceptr p;
    struct rlimit l = {1 << 20, 1 << 20};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
    start();
    OK(cuMemAlloc(&p, 64 * MIB));
    OK(cuMemsetD8(p + 63 * MIB, 4, 10));
    ck_assert_uint_eq(first_byte(p + 63 * MIB), 4);
}
END_TEST

static void *allocator(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    CUdeviceptr p[64] = {0};
    start();
    for (int i = 0; i < 4000; i++) {
        unsigned k = (seed = seed * 1103515245u + 12345u) >> 16 & 63;
        if (p[k] != 0) {
            OK(cuMemFree(p[k]));
            p[k] = 0;
        } else {
            OK(cuMemAlloc(&p[k], 1 + (seed & 0x3ffff)));
            ck_assert_uint_eq(p[k] % 512, 0);
        }
    }
    for (int k = 0; k < 64; k++)
        if (p[k] != 0)
            OK(cuMemFree(p[k]));
    return NULL;
}

START_TEST(many_threads_leave_nothing_behind)
{
    pthread_t t[8];
    start();
    size_t before = free_bytes();
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, allocator, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

/* A process that takes 600 MiB, says so, and is killed with it. */
static pid_t neighbour(void)
{
    int said[2];
    char c = 0;
    ck_assert_int_eq(pipe(said), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        CUdeviceptr p;
        start();
        c = cuMemAlloc(&p, 600 * MIB) == CUDA_SUCCESS ? 'y' : 'n';
        if (write(said[1], &c, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_eq(read(said[0], &c, 1), 1);
    ck_assert_int_eq(c, 'y');
    return child;
}

START_TEST(processes_share_a_card_and_a_dead_one_has_none_of_it)
{
    char name[] = "/tmp/fakegpu-shared-XXXXXX";
    CUdeviceptr p;
    int file = mkstemp(name);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    ck_assert_int_eq(setenv("FAKEGPU_SHARED", name, 1), 0);
    ck_assert_int_eq(setenv("FAKEGPU_MEM_MIB", "2000", 1), 0);
    pid_t child = neighbour(); /* before this process starts CUDA: a child of one that has cannot use it */
    start();
    size_t both = free_bytes();
    ck_assert_uint_eq(both, (2000 - 2 * 527 - 600) * MIB);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, both + 2 * MIB));
    OK(cuMemAlloc(&p, both));
    OK(cuMemFree(p));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    siginfo_t ended;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0); /* not reaped */
    ck_assert_uint_eq(free_bytes(), (2000 - 527) * MIB);
    OK(cuMemAlloc(&p, 1400 * MIB));
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, every_kind_is_counted_by_its_rule);
    tcase_add_test(t, a_forked_process_writes_a_file_of_its_own);
    tcase_add_test(t, wddm_oversubscribes_and_never_gives_back);
    tcase_add_test(t, unified_memory_moves_by_itself);
    tcase_add_test(t, a_mig_instance_has_its_own_uuid_and_no_peers);
    tcase_add_test(t, only_touched_pages_cost_host_memory);
    tcase_add_test(t, a_free_touches_nothing_that_was_not_touched);
    tcase_add_test(t, a_freed_small_block_is_overwritten);
    tcase_add_test(t, a_file_size_limit_does_not_kill);
    tcase_add_test(t, many_threads_leave_nothing_behind);
    tcase_add_test(t, processes_share_a_card_and_a_dead_one_has_none_of_it);
}

int main(void) { return run_tests("stats", fill); }
