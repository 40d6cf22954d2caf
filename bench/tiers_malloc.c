/* For scale, what malloc and free cost, whichever this process has: glibc's, or the library that LD_PRELOAD put in front of it. usage: tiers_malloc ALLOCATOR SYMBOL, the label and a symbol that the library must have. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "bench/slices.h"

#define BLOCK ((size_t)256)
#define LARGE_BLOCK ((size_t)64 << 10)
#define OPERATIONS 4096

typedef struct place {
    void *blocks[OPERATIONS];
    size_t held;
} place;

static void *begin(unsigned thread)
{
    (void)thread;
    place *p = calloc(1, sizeof *p);
    bench_must(p != NULL, "no memory");
    return p;
}

static void drop(void *state)
{
    place *p = state;
    while (p->held > 0)
        free(p->blocks[--p->held]);
}

static void end(void *state)
{
    drop(state);
    free(state);
}

static void *checked_malloc(size_t bytes)
{
    void *block = malloc(bytes);
    bench_must(block != NULL, "no memory");
    bench_used(block); /* else the compiler leaves out the pair */
    return block;
}

static void takes(void *state)
{
    place *p = state;
    for (p->held = 0; p->held < OPERATIONS; p->held++)
        p->blocks[p->held] = checked_malloc(BLOCK);
}

static void pairs(void *state)
{
    (void)state;
    for (int i = 0; i < OPERATIONS; i++)
        free(checked_malloc(BLOCK));
}

static void large_pairs(void *state)
{
    (void)state;
    for (int i = 0; i < OPERATIONS; i++)
        free(checked_malloc(LARGE_BLOCK));
}

static const bench_slices cases[] = {
    {"malloc alone, 256 B", "", 0, OPERATIONS, begin, drop, takes, end},
    {"malloc and free, 256 B", "", 0, OPERATIONS, begin, NULL, pairs, end},
    {"malloc and free, 64 KiB", "", 0, OPERATIONS, begin, NULL, large_pairs, end},
};

int main(int argc, char **argv)
{
    bench_must(argc == 3, "usage: tiers_malloc ALLOCATOR SYMBOL");
    bench_must(dlsym(RTLD_DEFAULT, argv[2]) != NULL, "this process has not the allocator that it should measure");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_slices named = cases[i];
        named.allocator = argv[1];
        for (unsigned threads = 1; threads <= BENCH_THREADS_MAX; threads++)
            bench_slices_run(&named, threads);
    }
    return 0;
}
