/*
 * What memory that grows in place costs and keeps, on whatever libcuda there is: one table with medians, and "ok NAME" or "not ok NAME: why"
 * for each property. Addresses reserved cost no memory; a commit takes exactly what it says; the base never changes; bytes outside what
 * shrinks stay; a graph captured once runs on, over memory that came later too; all goes back.
 * tiers_vmm [CHUNK_MIB [RESERVE_MIB [ROUNDS]]], 256, 24576 and 20 by default.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiers/backend_driver.h"
#include "tiers/backend_vmm.h"
#include "tiers_card.h"

#define MIB ((size_t)1 << 20)
#define SAMPLES_MAX 4096

static size_t chunk, reserve;
static int rounds, failed;
static tn_backend *backend;

typedef struct samples {
    double us[SAMPLES_MAX];
    size_t count;
} samples;

static samples reserving, unreserving, committing, decommitting, plain_alloc, plain_free, launching;

static void add(samples *s, double us)
{
    if (s->count < SAMPLES_MAX)
        s->us[s->count++] = us;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *what, samples *s)
{
    qsort(s->us, s->count, sizeof *s->us, by_value);
    printf("# %-58s %10.1f %10.1f %10.1f %7zu\n", what, s->us[s->count / 2], s->us[0], s->us[s->count - 1], s->count);
}

static void __attribute__((format(printf, 3, 4))) holds(const char *name, bool condition, const char *format, ...)
{
    va_list arguments;
    printf("%s %s: ", condition ? "ok" : "not ok", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    failed += !condition;
}

static void must(tn_mem_error error, const char *what)
{
    if (error == TN_MEM_OK)
        return;
    printf("not ok vmm: %s: %s\n", what, tn_mem_error_text(error));
    exit(1);
}

static tn_region acquire(size_t bytes, size_t initial)
{
    tn_region region;
    double began = card_now_us();
    must(tn_backend_acquire_growable(backend, bytes, initial, 0, "kv", &region), "acquire_growable");
    if (initial == 0)
        add(&reserving, card_now_us() - began);
    return region;
}

static void release(tn_region *region)
{
    bool empty = region->committed == 0;
    double began = card_now_us();
    must(tn_backend_release(backend, region), "release");
    if (empty)
        add(&unreserving, card_now_us() - began);
}

/* To `chunks` chunks one at a time, so that each has its time. */
static void resize(tn_region *region, size_t chunks)
{
    while (region->committed != chunks * chunk) {
        size_t now = region->committed / chunk;
        double began = card_now_us();
        if (now < chunks)
            must(tn_backend_commit(backend, region, (now + 1) * chunk), "commit");
        else
            must(tn_backend_decommit(backend, region, (now - 1) * chunk), "decommit");
        add(now < chunks ? &committing : &decommitting, card_now_us() - began);
    }
}

static void addresses_cost_no_memory(void)
{
    size_t before = card_used(), most = 0;
    for (int i = 0; i < rounds; i++) {
        tn_region region = acquire(reserve, 0);
        size_t cost = card_used() - before;
        most = cost > most ? cost : most;
        release(&region);
    }
    holds("vmm.addresses_cost_no_memory", most == 0 && card_used() == before, "%zu MiB reserved %d times, %+.3f MiB", reserve / MIB, rounds,
          (double)most / (double)MIB);
}

static void a_commit_takes_what_it_says(void)
{
    size_t before = card_used(), wrong = 0, count = 0;
    tn_region region = acquire(reserve, 0);
    for (int i = 0; i < rounds; i++)
        for (size_t n = 1; n <= 4; n++, count++) {
            size_t was = card_used();
            resize(&region, (size_t)(i % 2 == 0 ? n : 4 - n));
            size_t now = card_used();
            size_t change = now > was ? now - was : was - now;
            wrong += change != chunk;
        }
    resize(&region, 0);
    size_t left = card_used() - before;
    release(&region);
    holds("vmm.a_commit_takes_what_it_says", wrong == 0 && left == 0, "%zu commits and decommits of %zu MiB, %zu took or gave another size, "
          "%+.3f MiB left after the last", count, chunk / MIB, wrong, (double)left / (double)MIB);
}

/* The largest size that `acquire` alone reaches stays out: 10 chunks are 2.5 GiB at 256 MiB each. */
static void the_base_is_constant(void)
{
    static const size_t sizes[] = {8, 2, 6, 4, 10, 1, 10};
    tn_region region = acquire(reserve, 0), beside = acquire(reserve, chunk);
    void *base = region.base;
    size_t moved = 0, wrong = 0;
    card_fill(NULL, beside.base, 0x5EED, chunk);
    resize(&region, 1);
    card_fill(NULL, region.base, 0xC0DE, chunk);
    for (int i = 0; i < (rounds + 4) / 5; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            resize(&region, sizes[k]);
            moved += region.base != base;
        }
    wrong = card_wrong(NULL, region.base, 0xC0DE, chunk);
    holds("vmm.the_base_is_constant", moved == 0, "8, 2, 6, 4, 10, 1, 10 chunks, %d times; %p at each step", (rounds + 4) / 5, base);
    holds("vmm.bytes_that_stay_committed_are_intact", wrong == 0, "%zu of %zu words wrong", wrong, chunk / 4);
    wrong = card_wrong(NULL, beside.base, 0x5EED, chunk);
    holds("vmm.another_region_is_intact", wrong == 0, "%zu of %zu words wrong", wrong, chunk / 4);
    release(&region);
    release(&beside);
}

/* ---- graphs ---- */

static CUgraphExec capture(CUdeviceptr at, uint64_t bytes)
{
    CUgraph graph;
    CUgraphExec exec;
    uint32_t value = 1;
    uint64_t words = bytes / 4;
    void *arguments[] = {&at, &value, &words};
    CARD(cuStreamBeginCapture(card_stream(), CU_STREAM_CAPTURE_MODE_GLOBAL));
    CARD(cuLaunchKernel(card_add_kernel(), 512, 1, 1, 256, 1, 1, 0, card_stream(), arguments, NULL));
    CARD(cuStreamEndCapture(card_stream(), &graph));
    CARD(cuGraphInstantiate(&exec, graph, 0));
    CARD(cuGraphDestroy(graph));
    return exec;
}

static void run_graph(CUgraphExec exec)
{
    double began = card_now_us();
    CARD(cuGraphLaunch(exec, card_stream()));
    CARD(cuStreamSynchronize(card_stream()));
    add(&launching, card_now_us() - began);
}

/* What the first graph of a process takes for good is none of what is measured. */
static void warm_graphs(void)
{
    tn_cuda_address at;
    card_must(card_cuda()->alloc(&at, 4096), "cuMemAlloc");
    CUgraphExec exec = capture(at, 4096);
    run_graph(exec);
    CARD(cuGraphExecDestroy(exec));
    card_must(card_cuda()->free(at), "cuMemFree");
    launching.count = 0;
}

static void a_captured_graph_runs_on(void)
{
    tn_region region = acquire(reserve, 0);
    resize(&region, 1);
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)region.base;
    /* One over what is there, one over four chunks, of which three are addresses alone as yet. */
    CUgraphExec small = capture(at, chunk), large = capture(at, 4 * chunk);
    size_t wrong = 0;
    card_fill(NULL, region.base, 0, chunk);
    run_graph(small);
    wrong += card_wrong(NULL, region.base, 1, chunk);
    resize(&region, 7);
    run_graph(small);
    wrong += card_wrong(NULL, region.base, 2, chunk);
    resize(&region, 2);
    resize(&region, 8);
    run_graph(small);
    wrong += card_wrong(NULL, region.base, 3, chunk);
    holds("vmm.a_captured_graph_runs_on_while_the_range_grows", wrong == 0, "launched at 1, 7 and 8 chunks, not instantiated again: %zu words "
          "wrong", wrong);
    wrong = 0;
    for (uint32_t round = 0; round < 3; round++) {
        resize(&region, 1);
        resize(&region, 4);
        card_fill(NULL, (char *)region.base + chunk, 3 + round, 3 * chunk);
        run_graph(large);
        wrong += card_wrong(NULL, region.base, 4 + round, 4 * chunk);
    }
    holds("vmm.a_captured_graph_reaches_memory_that_came_later", wrong == 0,
          "captured over 4 chunks when 1 was committed, run after 3 growths: %zu words wrong", wrong);
    CARD(cuGraphExecDestroy(small));
    CARD(cuGraphExecDestroy(large));
    release(&region);
}

static void all_goes_back(void)
{
    size_t before = card_used();
    tn_region region = acquire(reserve, 0);
    resize(&region, 10);
    size_t held = card_used() - before;
    resize(&region, 0);
    size_t decommitted = card_used() - before;
    resize(&region, 10);
    release(&region);
    size_t released = card_used() - before;
    holds("vmm.all_goes_back", held == 10 * chunk && decommitted == 0 && released == 0,
          "%+.2f MiB with 10 chunks, %+.2f MiB after the decommit, %+.2f MiB after the release", (double)held / (double)MIB,
          (double)decommitted / (double)MIB, (double)released / (double)MIB);
}

/* The same size by a plain allocation, for scale. */
static void measure_plain(void)
{
    tn_driver *driver = NULL;
    must(tn_driver_create(&(tn_driver_options){.cuda = card_cuda()}, &driver), "tn_driver_create");
    for (int i = 0; i < rounds; i++) {
        tn_region region;
        double began = card_now_us();
        must(tn_backend_acquire(tn_driver_backend(driver), chunk, 0, "plain", &region), "acquire");
        add(&plain_alloc, card_now_us() - began);
        began = card_now_us();
        must(tn_backend_release(tn_driver_backend(driver), &region), "release");
        add(&plain_free, card_now_us() - began);
    }
    tn_driver_destroy(driver);
}

static size_t number(int argc, char **argv, int index, size_t otherwise)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    tn_vmm *vmm = NULL;
    tn_vmm_figures figures;
    chunk = number(argc, argv, 1, 256) * MIB;
    reserve = number(argc, argv, 2, 24576) * MIB;
    rounds = (int)number(argc, argv, 3, 20);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (chunk == 0 || rounds == 0 || reserve < 10 * chunk) {
        fprintf(stderr, "usage: tiers_vmm [CHUNK_MIB [RESERVE_MIB [ROUNDS]]], at least ten chunks to reserve\n");
        return 2;
    }
    card_start();
    warm_graphs();
    size_t before = card_used();
    must(tn_vmm_create(&(tn_vmm_options){.cuda = card_cuda(), .chunk = chunk, .patience = 1}, &vmm), "tn_vmm_create");
    backend = tn_vmm_backend(vmm);
    tn_vmm_read_figures(vmm, &figures);
    if (figures.refused) {
        printf("not ok vmm: refused, %s gave %d\n", tn_cuda_call_name(figures.refusal.call), figures.refusal.code);
        return 1;
    }
    addresses_cost_no_memory();
    a_commit_takes_what_it_says();
    the_base_is_constant();
    a_captured_graph_runs_on();
    all_goes_back();
    measure_plain();
    size_t left = tn_vmm_destroy(vmm);
    holds("vmm.ends_with_nothing_left", left == 0 && card_used() == before, "%zu regions, %+.3f MiB", left,
          ((double)card_used() - (double)before) / (double)MIB);
    char row[80];
    printf("# granularity %zu MiB, chunk %zu MiB, %zu MiB of addresses\n", figures.granularity / MIB, chunk / MIB, reserve / MIB);
    printf("# %-58s %10s %10s %10s %7s\n", "us", "median", "least", "most", "calls");
    snprintf(row, sizeof row, "reserve %zu MiB of addresses", reserve / MIB);
    print_row(row, &reserving);
    print_row("give them back", &unreserving);
    snprintf(row, sizeof row, "commit %zu MiB", chunk / MIB);
    print_row(row, &committing);
    snprintf(row, sizeof row, "decommit %zu MiB", chunk / MIB);
    print_row(row, &decommitting);
    snprintf(row, sizeof row, "plain allocation of %zu MiB", chunk / MIB);
    print_row(row, &plain_alloc);
    print_row("and its free", &plain_free);
    print_row("a launch of the captured graph and the wait for it", &launching);
    return failed == 0 ? 0 : 1;
}
