/* What the blocks of one pool, the scratch stack and the packed slots cost, on the host backend: what comes and goes while a program
 * serves. Each thread has its own, but where two threads share a pool. usage: tiers_stream */
#include <stdlib.h>

#include "bench/slices.h"
#include "tiers/backend_host.h"
#include "tiers/tenure_tiers.h"

#define BLOCK ((size_t)64 << 10)
#define BLOCKS 64 /* of a pool, slots of a packed region */
#define OPERATIONS 4096
#define PASS 16   /* takes between a mark and its rewind */

typedef struct place {
    tn_host *host;
    tn_block_pool *pool;
    tn_scratch *scratch;
    tn_packed *packed;
    tn_fixed *fixed;
    char *kept[BLOCKS]; /* live while addresses are asked about */
    tn_block owners[BLOCKS];
    uint64_t enqueued, finished;
} place;

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
static const tn_work work = {.table = &work_table};

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
    if (p->pool != NULL)
        must(tn_block_pool_destroy(&p->pool));
    if (p->scratch != NULL)
        must(tn_scratch_destroy(&p->scratch));
    if (p->fixed != NULL)
        must(tn_fixed_destroy(&p->fixed));
    if (p->packed != NULL)
        must(tn_packed_destroy(&p->packed));
    bench_must(tn_host_destroy(p->host) == 0, "regions were not released");
    free(p);
}

static place *begin_pool_with(const tn_work *known)
{
    place *p = begin_place();
    must(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(p->host), .tag = "bench", .blocks = BLOCKS, .stride = BLOCK,
                                                       .max_shares = BLOCKS, .work = known}, &p->pool));
    return p;
}

static void *begin_pool(unsigned thread)
{
    (void)thread;
    return begin_pool_with(NULL);
}

static void *begin_marked_pool(unsigned thread)
{
    (void)thread;
    return begin_pool_with(&work);
}

static void pool_pairs(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        must(tn_block_pool_acquire(p->pool, TN_WORK_NO_QUEUE, &p->owners[0]));
        bench_used(&p->owners[0]);
        must(tn_block_pool_release(p->pool, &p->owners[0], NULL, 0));
    }
}

static void marked_pairs(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        must(tn_block_pool_acquire(p->pool, 1, &p->owners[0]));
        bench_used(&p->owners[0]);
        tn_work_mark mark = {.queue = 1, .sequence = ++p->enqueued};
        must(tn_block_pool_release(p->pool, &p->owners[0], &mark, 1));
    }
}

/* As requests come and go: half of the blocks are owned, and they go in the order in which they came. */
static void pool_queue(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        tn_block *owner = &p->owners[i % (BLOCKS / 2)];
        if (!tn_block_is_empty(owner))
            must(tn_block_pool_release(p->pool, owner, NULL, 0));
        must(tn_block_pool_acquire(p->pool, TN_WORK_NO_QUEUE, owner));
    }
}

static void end_queue(void *state)
{
    place *p = state;
    for (int i = 0; i < BLOCKS / 2; i++)
        must(tn_block_pool_release(p->pool, &p->owners[i], NULL, 0));
    end_place(p);
}

static void *begin_scratch(unsigned thread)
{
    (void)thread;
    place *p = begin_place();
    must(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(p->host), .tag = "bench", .capacity = 2 * PASS * BLOCK},
                           &p->scratch));
    return p;
}

static void scratch_pairs(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_scratch_take(p->scratch, BLOCK, 0, &span));
        bench_used(tn_stable_data(span));
        must(tn_scratch_free(p->scratch, tn_stable_data(span)));
    }
}

static void scratch_passes(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS / PASS; i++) {
        tn_scratch_mark mark;
        must(tn_scratch_open_mark(p->scratch, &mark));
        for (int k = 0; k < PASS; k++) {
            tn_stable_span span;
            must(tn_scratch_take(p->scratch, BLOCK, 0, &span));
            bench_used(tn_stable_data(span));
        }
        must(tn_scratch_rewind(p->scratch, mark));
    }
}

/* 64 sites with a slot each; each slot lies half over the one before it, so that a hand-out has two neighbours to look at. */
static void *begin_packed(unsigned thread)
{
    static tn_packed_slot slots[BENCH_THREADS_MAX][BLOCKS];
    place *p = begin_place();
    for (uint32_t i = 0; i < BLOCKS; i++)
        slots[thread][i] = (tn_packed_slot){.site = i, .offset = i * BLOCK / 2, .bytes = BLOCK};
    const tn_packed_plan plan = {.slots = slots[thread], .slot_count = BLOCKS, .site_count = BLOCKS, .capacity = (BLOCKS + 1) * BLOCK / 2};
    must(tn_packed_create(&(tn_packed_options){.backend = tn_host_backend(p->host), .tag = "bench", .plan = &plan, .work = work}, &p->packed));
    return p;
}

static void packed_pairs(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_packed_take(p->packed, BLOCKS / 2, BLOCK, 1, &span, NULL));
        bench_used(tn_stable_data(span));
        must(tn_packed_free(p->packed, tn_stable_data(span), NULL));
    }
}

/* In turn through all sites, a block given back while the device has work for it. */
static void packed_rounds(void *state)
{
    place *p = state;
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_packed_take(p->packed, i % BLOCKS, BLOCK, 1, &span, NULL));
        bench_used(tn_stable_data(span));
        const tn_work_set uncovered = {.marks = {{.queue = 1, .sequence = ++p->enqueued}}, .count = 1};
        must(tn_packed_free(p->packed, tn_stable_data(span), &uncovered));
    }
}

/* A class of 12,000 slots, as a plan has of a run that never waited. Each block is given back with work that nobody waits for, until the class
 * is full of such and a take must wait. */
#define MANY 12000u
#define MANY_TURNS 1000

static bool many_done(void *self, tn_work_mark mark)
{
    return mark.sequence <= ((place *)self)->finished;
}

static tn_work_mark many_all(void *self)
{
    return (tn_work_mark){.queue = 1, .sequence = ((place *)self)->enqueued};
}

static void *begin_many(unsigned thread)
{
    static const tn_work_table table = {.done = many_done, .all = many_all};
    static tn_packed_slot slots[BENCH_THREADS_MAX][MANY];
    place *p = begin_place();
    for (uint32_t i = 0; i < MANY; i++)
        slots[thread][i] = (tn_packed_slot){.ordinal = i, .offset = i * (size_t)512, .bytes = 512};
    const tn_packed_plan plan = {.slots = slots[thread], .slot_count = MANY, .site_count = 1, .capacity = MANY * (size_t)512};
    must(tn_packed_create(&(tn_packed_options){.backend = tn_host_backend(p->host), .tag = "bench", .plan = &plan, .work = {&table, p}}, &p->packed));
    return p;
}

static void packed_many(void *state)
{
    place *p = state;
    for (int i = 0; i < MANY_TURNS; i++) {
        tn_stable_span span;
        while (tn_packed_take(p->packed, 0, 512, 2, &span, NULL) == TN_MEM_E_MUST_WAIT)
            p->finished = p->enqueued;
        bench_used(tn_stable_data(span));
        const tn_work_set uncovered = {.marks = {{.queue = 1, .sequence = ++p->enqueued}}, .count = 1};
        must(tn_packed_free(p->packed, tn_stable_data(span), &uncovered));
    }
}

/* By the address of any byte, all blocks live: odd steps, so that neither the place nor the block repeats at once. */
static void *begin_packed_full(unsigned thread)
{
    static tn_packed_slot slots[BENCH_THREADS_MAX][BLOCKS];
    place *p = begin_place();
    for (uint32_t i = 0; i < BLOCKS; i++)
        slots[thread][i] = (tn_packed_slot){.site = i, .offset = i * BLOCK, .bytes = BLOCK};
    const tn_packed_plan plan = {.slots = slots[thread], .slot_count = BLOCKS, .site_count = BLOCKS, .capacity = BLOCKS * BLOCK};
    must(tn_packed_create(&(tn_packed_options){.backend = tn_host_backend(p->host), .tag = "bench", .plan = &plan, .work = work}, &p->packed));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        tn_stable_span span;
        must(tn_packed_take(p->packed, i, BLOCK, 1, &span, NULL));
        p->kept[i] = tn_stable_data(span);
    }
    return p;
}

static void packed_finds(void *state)
{
    place *p = state;
    for (size_t i = 0; i < OPERATIONS; i++) {
        void *base;
        size_t bytes;
        must(tn_packed_find(p->packed, p->kept[i * 37 % BLOCKS] + i * 101 % BLOCK, &base, &bytes));
        bench_used(base);
    }
}

static void *begin_fixed(unsigned thread)
{
    (void)thread;
    place *p = begin_place();
    must(tn_fixed_create(&(tn_block_pool_options){.backend = tn_host_backend(p->host), .tag = "bench", .blocks = BLOCKS, .stride = BLOCK}, &p->fixed));
    return p;
}

static void fixed_pairs(void *state)
{
    place *p = state;
    for (int i = 0; i < OPERATIONS; i++) {
        tn_stable_span span;
        must(tn_fixed_take(p->fixed, BLOCK, TN_WORK_NO_QUEUE, &span));
        bench_used(tn_stable_data(span));
        must(tn_fixed_free(p->fixed, tn_stable_data(span), NULL));
    }
}

static place *shared;

static void *begin_shared_pool(unsigned thread)
{
    (void)thread;
    return calloc(1, sizeof(tn_block));
}

static void shared_pairs(void *state)
{
    for (int i = 0; i < OPERATIONS; i++) {
        must(tn_block_pool_acquire(shared->pool, TN_WORK_NO_QUEUE, state));
        bench_used(state);
        must(tn_block_pool_release(shared->pool, state, NULL, 0));
    }
}

static void end_shared_pool(void *state)
{
    free(state);
}

static const bench_slices cases[] = {
    {"pool acquire and release", "tiers", 20, OPERATIONS, begin_pool, NULL, pool_pairs, end_place},
    {"pool, two threads on one", "tiers", 0, OPERATIONS, begin_shared_pool, NULL, shared_pairs, end_shared_pool},
    {"pool, released with a work mark", "tiers", 0, OPERATIONS, begin_marked_pool, NULL, marked_pairs, end_place},
    {"pool, first in first out", "tiers", 0, OPERATIONS, begin_pool, NULL, pool_queue, end_queue},
    {"scratch take and free", "tiers", 15, OPERATIONS, begin_scratch, NULL, scratch_pairs, end_place},
    {"scratch take, dropped by a rewind", "tiers", 0, OPERATIONS, begin_scratch, NULL, scratch_passes, end_place},
    {"packed hand-out and free", "tiers", 0, OPERATIONS, begin_packed, NULL, packed_pairs, end_place},
    {"packed, sites in turn, work marks", "tiers", 0, OPERATIONS, begin_packed, NULL, packed_rounds, end_place},
    {"packed, 12,000 slots, all but a few kept by work", "tiers", 200, MANY_TURNS, begin_many, NULL, packed_many, end_place},
    {"packed, the block of an address", "tiers", 0, OPERATIONS, begin_packed_full, NULL, packed_finds, end_place},
    {"fixed, take and free by address", "tiers", 0, OPERATIONS, begin_fixed, NULL, fixed_pairs, end_place},
};

int main(void)
{
    shared = begin_pool(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned threads = 1; threads <= BENCH_THREADS_MAX; threads++)
            bench_slices_run(&cases[i], threads);
    end_place(shared);
    return 0;
}
