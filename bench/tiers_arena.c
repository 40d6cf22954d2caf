#define _GNU_SOURCE
/* What a take from an arena costs, on the host backend, each thread with an arena of its own. usage: tiers_arena */
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/slices.h"
#include "tiers/backend_host.h"
#include "tiers/tenure_tiers.h"

#define BLOCK ((size_t)256)
#define OPERATIONS 4096

typedef struct place {
    tn_host *host;
    tn_arena *arena;
} place;

static void must(tn_mem_error error)
{
    bench_must(error == TN_MEM_OK, tn_mem_error_text(error));
}

static place *begin_place(void)
{
    place *p = calloc(1, sizeof *p);
    bench_must(p != NULL, "no memory");
    must(tn_host_create(&(tn_host_options){0}, &p->host));
    return p;
}

static void end_place(void *state)
{
    place *p = state;
    bench_must(tn_host_destroy(p->host) == 0, "regions were not released");
    free(p);
}

/* A model that is loaded and unloaded again and again. */
static void begin_arena(place *p)
{
    must(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(p->host), .tag = "bench", .first_bytes = OPERATIONS * BLOCK,
                                             .max_regions = 1}, &p->arena));
}

static void *begin_reset(unsigned thread)
{
    (void)thread;
    place *p = begin_place();
    begin_arena(p);
    return p;
}

static void before_reset(void *state)
{
    place *p = state;
    must(tn_arena_reset(p->arena));
    must(tn_arena_open_region(p->arena, 0));
}

static void takes(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_arena_take(p->arena, BLOCK, 0, &span));
        bench_used(tn_stable_data(span));
    }
}

static void end_arena(void *state)
{
    place *p = state;
    must(tn_arena_destroy(&p->arena));
    end_place(p);
}

/* An arena that has held nothing yet, and none of whose tables lies where the process has been: each page of them is touched for the
 * first time, as when an engine loads its first model. */
#define FIRST_OPERATIONS 65536

static void *map(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    void *got = NULL;
    if (new_bytes == 0)
        munmap(block, old_bytes);
    else if (block == NULL)
        got = mmap(NULL, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        got = mremap(block, old_bytes, new_bytes, MREMAP_MAYMOVE);
    return got == MAP_FAILED ? NULL : got;
}

static void *begin_first(unsigned thread)
{
    (void)thread;
    return begin_place();
}

static void begin_load(place *p, size_t planned_blocks)
{
    static const tn_metadata mapped = {map, NULL};
    if (p->arena != NULL)
        must(tn_arena_destroy(&p->arena));
    must(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(p->host), .tag = "bench", .first_bytes = FIRST_OPERATIONS * BLOCK,
                                             .max_regions = 1, .planned_blocks = planned_blocks, .metadata = &mapped}, &p->arena));
    must(tn_arena_open_region(p->arena, 0));
}

static void before_first(void *state)
{
    begin_load(state, 0);
}

/* The records are made, and their pages touched, when the region is opened. */
static void before_planned(void *state)
{
    begin_load(state, FIRST_OPERATIONS);
}

static void first_takes(void *state)
{
    place *p = state;
    for (int i = 0; i < FIRST_OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_arena_take(p->arena, BLOCK, 0, &span));
        bench_used(tn_stable_data(span));
    }
}

static const bench_slices cases[] = {
    {"arena take", "tiers", 10, OPERATIONS, begin_reset, before_reset, takes, end_arena},
    {"arena take, first load", "tiers", 0, FIRST_OPERATIONS, begin_first, before_first, first_takes, end_arena},
    {"arena take, first load, planned", "tiers", 0, FIRST_OPERATIONS, begin_first, before_planned, first_takes, end_arena},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned threads = 1; threads <= BENCH_THREADS_MAX; threads++)
            bench_slices_run(&cases[i], threads);
    return 0;
}
