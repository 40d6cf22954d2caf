/* What a place costs by itself, on the host backend: a request of a planned site and its free, without the hooks around them. Each thread has a
 * place of its own, but where two threads share one. usage: serve_place */
#include <stdlib.h>

#include "bench/slices.h"
#include "serve/place.h"
#include "tiers/backend_host.h"

#define OPERATIONS 4096
#define BLOCK ((size_t)64 << 10)
#define SITES 64
#define FIXED 8

enum { PACKED, T3 = SITES, T2, T4, ROWS };

typedef struct state {
    tn_host *device, *async;
    tn_place *place;
    uint32_t stream;
} state;

static void must(tn_mem_error error)
{
    bench_must(error == TN_MEM_OK, tn_mem_error_text(error));
}

/* Work that is done as soon as it is asked about. */
static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    return mark.queue == 1;
}

static tn_work_mark all(void *self)
{
    (void)self;
    return (tn_work_mark){.queue = 1, .sequence = UINT64_MAX};
}

static const tn_work_table work_table = {.done = done, .all = all};

/* Sites whose slots lie half over each other's, as a plan packs them; one site of each other tier. */
static const tn_plan_section *section(void)
{
    static uint64_t offsets[SITES];
    static tn_plan_class classes[SITES];
    static tn_plan_row rows[ROWS];
    static tn_plan_tier tiers[] = {
        {.discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = 16 * BLOCK},
        {.discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .capacity = FIXED * BLOCK},
        {.discipline = TN_D_PACKED, .family = TN_FAMILY_DEVICE, .capacity = (SITES + 1) * BLOCK / 2},
        {.discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .capacity = 16 * BLOCK, .streams = 4},
    };
    static const tn_plan_section s = {.rows = rows, .row_count = ROWS, .tiers = tiers, .tier_count = sizeof tiers / sizeof *tiers};
    for (uint32_t i = 0; i < SITES; i++) {
        offsets[i] = i * BLOCK / 2;
        classes[i] = (tn_plan_class){.bytes = BLOCK, .alignment = 512, .offsets = &offsets[i], .count = 1};
        rows[i] = (tn_plan_row){.key = i + 1, .discipline = TN_D_PACKED, .family = TN_FAMILY_DEVICE, .largest = BLOCK, .classes = &classes[i], .class_count = 1};
    }
    rows[T3] = (tn_plan_row){.key = T3 + 1, .discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .largest = BLOCK, .capacity = FIXED * BLOCK};
    rows[T2] = (tn_plan_row){.key = T2 + 1, .discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .largest = BLOCK};
    rows[T4] = (tn_plan_row){.key = T4 + 1, .discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .largest = BLOCK};
    return &s;
}

static void *begin(unsigned thread)
{
    const tn_work work = {.table = &work_table};
    state *s = calloc(1, sizeof *s);
    bench_must(s != NULL, "no memory");
    must(tn_host_create(&(tn_host_options){0}, &s->device));
    must(tn_host_create(&(tn_host_options){0}, &s->async));
    must(tn_place_create(&(tn_place_options){.section = section(), .device = tn_host_backend(s->device), .async = tn_host_backend(s->async),
                                             .work = work, .work_everywhere = work}, &s->place, NULL));
    s->stream = thread + 1;
    return s;
}

static void end(void *given)
{
    state *s = given;
    tn_place_destroy(&s->place, 0);
    bench_must(tn_host_destroy(s->device) + tn_host_destroy(s->async) == 0, "regions were not released");
    free(s);
}

static inline void pair(state *s, uint32_t row, uint32_t stream, const tn_work_set *uncovered)
{
    tn_place_answer a;
    tn_place_take(s->place, row, BLOCK, stream, 0, 1, &a);
    bench_must(a.address != NULL, "a request was not served");
    bench_used(a.address);
    must(tn_place_give(s->place, row, a.address, stream, uncovered));
}

#define PAIRS(name, row, stream, set)                 \
    static void name(void *given)                     \
    {                                                 \
        state *s = given;                             \
        static const tn_work_set clean, used = {.marks = {{.queue = 1, .sequence = 1}}, .count = 1}; \
        (void)clean;                                  \
        (void)used;                                   \
        for (uint32_t i = 0; i < OPERATIONS; i++)     \
            pair(s, row, stream, &set);               \
    }

PAIRS(packed, PACKED + SITES / 2, 0, clean)
PAIRS(packed_used, PACKED + SITES / 2, 0, used)
PAIRS(packed_turns, i % SITES, 0, used)
PAIRS(fixed, T3, 0, used)
PAIRS(engine, T2, 0, clean)
PAIRS(engine_used, T2, 0, used)
PAIRS(stack, T4, s->stream, used)

static state *shared;

static void *begin_shared(unsigned thread)
{
    state *s = calloc(1, sizeof *s);
    bench_must(s != NULL, "no memory");
    s->place = shared->place;
    s->stream = thread + 1;
    return s;
}

static void end_shared(void *given)
{
    free(given);
}

/* Sites far apart, or slots of one site: what two threads share is the place. Not T2, where two that leapfrog fill any arena. */
PAIRS(shared_packed, PACKED + 8 * (s->stream - 1), 0, used)
PAIRS(shared_fixed, T3, 0, used)

static const bench_slices cases[] = {
    {"place, packed, clean", "place", 60, OPERATIONS, begin, NULL, packed, end},
    {"place, packed, work marks", "place", 60, OPERATIONS, begin, NULL, packed_used, end},
    {"place, packed, 64 sites in turn", "place", 0, OPERATIONS, begin, NULL, packed_turns, end},
    {"place, T3", "place", 60, OPERATIONS, begin, NULL, fixed, end},
    {"place, T2, clean", "place", 60, OPERATIONS, begin, NULL, engine, end},
    {"place, T2, work marks", "place", 60, OPERATIONS, begin, NULL, engine_used, end},
    {"place, T4", "place", 60, OPERATIONS, begin, NULL, stack, end},
    {"one place, packed, each its site", "place", 0, OPERATIONS, begin_shared, NULL, shared_packed, end_shared},
    {"one place, T3, one site", "place", 0, OPERATIONS, begin_shared, NULL, shared_fixed, end_shared},
};

int main(void)
{
    shared = begin(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned threads = 1; threads <= BENCH_THREADS_MAX; threads++)
            bench_slices_run(&cases[i], threads);
    end(shared);
    return 0;
}
