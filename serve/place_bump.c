/* The tiers that bump a mark in memory that stays: T2, and the stacks of T4. What is freed is taken back, and so
 * may be handed out again, only when it is clean, or, of a stack, ordered before its stream's next work. */
#include <string.h>

#include "serve/place_inside.h"

/* Blocks that wait, looked at before a take: all of a program's, but for one that frees many and waits for none. All of them are where it finds no room. */
#define AT_ONCE 16u

static const tn_plan_tier *tier_of(const tn_plan_section *s, tn_discipline d, unsigned family)
{
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].discipline == d && s->tiers[i].family == family) return &s->tiers[i];
    return NULL;
}

static tn_mem_error make_ring(tn_place *p, tn_place_bump *b)
{
    b->waiting = tn_place_memory(p, TN_PLACE_WAITING, sizeof *b->waiting);
    return b->waiting ? TN_MEM_OK : TN_MEM_E_HOST_MEMORY;
}

static tn_mem_error make_engine(tn_place *p, const tn_plan_tier *t, uint64_t *short_by)
{
    tn_place_bump *b = &p->engine[t->family];
    /* Aligned as its largest blocks are, so that they need no more room here than in the plan, which counts from 0. */
    tn_arena_options o = {.backend = tn_place_backend(p, t->family, 0), .tag = TN_PLACE_TAG_T2, .discipline = TN_ARENA_ENGINE,
                          .first_bytes = t->capacity, .max_regions = 1, .region_alignment = tn_native_alignment(t->family, t->capacity),
                          .work = tn_place_work(p, t->family), .metadata = &p->metadata};
    if (!o.backend) return TN_MEM_E_UNSUPPORTED;
    tn_mem_error error = tn_arena_create(&o, &b->arena);
    if (error == TN_MEM_OK) error = make_ring(p, b);
    if (error == TN_MEM_OK && (error = tn_arena_open_region(b->arena, 0)) != TN_MEM_OK && short_by) *short_by = t->capacity;
    return error;
}

static tn_mem_error make_stacks(tn_place *p, const tn_plan_tier *t, uint64_t *short_by)
{
    tn_scratch_options o = {.backend = tn_place_backend(p, t->family, 0), .tag = TN_PLACE_TAG_T4, .capacity = t->capacity, .alignment = 512,
                            .metadata = &p->metadata};
    if (!o.backend) return TN_MEM_E_UNSUPPORTED;
    p->stacks = tn_place_memory(p, t->streams, sizeof *p->stacks);
    if (!p->stacks) return TN_MEM_E_HOST_MEMORY;
    while (p->stack_count < t->streams) {
        tn_place_bump *b = &p->stacks[p->stack_count];
        tn_mem_error error = tn_scratch_create(&o, &b->stack);
        if (error != TN_MEM_OK) {
            if (short_by) *short_by = t->capacity;
            return error;
        }
        p->stack_count++;
        if ((error = make_ring(p, b)) != TN_MEM_OK) return error;
    }
    return TN_MEM_OK;
}

tn_mem_error tn_place_bumps_create(tn_place *p, uint64_t *short_by)
{
    const tn_plan_section *s = p->options.section;
    tn_mem_error error = TN_MEM_OK;
    for (size_t i = 0; i < s->tier_count && error == TN_MEM_OK; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        if (t->capacity == 0) continue;
        if (t->discipline == TN_D_T2) error = make_engine(p, t, short_by);
        else if (t->discipline == TN_D_T4) error = make_stacks(p, t, short_by);
    }
    return error;
}

static void drop(tn_place *p, tn_place_bump *b, int forget)
{
    /* A region that the driver does not take back, or that has gone with its context, stays with the backend, which ends next. */
    if (b->arena && (forget || tn_arena_destroy(&b->arena) != TN_MEM_OK)) tn_arena_abandon(&b->arena);
    if (b->stack && (forget || tn_scratch_destroy(&b->stack) != TN_MEM_OK)) tn_scratch_abandon(&b->stack);
    if (b->waiting) tn_metadata_free(&p->metadata, b->waiting, TN_PLACE_WAITING * sizeof *b->waiting);
    memset(b, 0, sizeof *b);
}

void tn_place_bumps_destroy(tn_place *p, int forget)
{
    for (unsigned family = 0; family < TN_FAMILY_COUNT; family++) {
        int gone = forget && family != TN_FAMILY_ASYNC;
        drop(p, &p->engine[family], gone);
    }
    const tn_plan_tier *t = tier_of(p->options.section, TN_D_T4, TN_FAMILY_ASYNC);
    for (size_t i = 0; i < p->stack_count; i++) {
        drop(p, &p->stacks[i], 0);
    }
    if (p->stacks && t) tn_metadata_free(&p->metadata, p->stacks, t->streams * sizeof *p->stacks);
    p->stacks = NULL;
    p->stack_count = 0;
}

/* What waits to be taken back is live for the tier below, and nobody's block. */
static int has_live(tn_place_bump *b)
{
    tn_arena_stats arena = {0};
    tn_scratch_stats stack = {0};
    tn_spin_lock(&b->lock);
    if (b->arena) tn_arena_read_stats(b->arena, &arena);
    if (b->stack) tn_scratch_read_stats(b->stack, &stack);
    int live = arena.live_blocks + stack.live_blocks > b->count + b->lost;
    tn_spin_unlock(&b->lock);
    return live;
}

int tn_place_bumps_have_live(tn_place *p)
{
    int live = has_live(&p->engine[TN_FAMILY_ASYNC]);
    for (size_t i = 0; i < p->stack_count && !live; i++) live = has_live(&p->stacks[i]);
    return live;
}

/* ---- taking */

static tn_mem_error free_now(tn_place_bump *b, void *address)
{
    return b->arena ? tn_arena_free(b->arena, address) : tn_scratch_free(b->stack, address);
}

/* Of the blocks that wait the `most` that have waited longest: those that are clean by now, or ordered before what the stack's stream does next
 * (an arena has no stream), are freed. */
static __attribute__((hot)) void take_back(tn_place_bump *b, const tn_work *work, size_t most)
{
    for (size_t looked = b->count < most ? b->count : most; looked > 0; looked--) {
        tn_place_waiting w = b->waiting[b->first];
        b->first = (b->first + 1) % TN_PLACE_WAITING;
        b->count--;
        if (!tn_work_set_is_ready(&w.uncovered, work, b->stream)) b->waiting[(b->first + b->count++) % TN_PLACE_WAITING] = w;
        else (void)(free_now(b, w.address) == TN_MEM_OK);
    }
}

/* The stream's stack; where it has none, the next that nobody has, if `claim`. They are claimed in their order. */
static __attribute__((hot)) tn_place_bump *stack_of(tn_place *p, uint64_t stream, int claim)
{
    for (size_t i = 0; i < p->stack_count; i++) {
        uint64_t there = __atomic_load_n(&p->stacks[i].stream, __ATOMIC_RELAXED);
        if (there == 0 && !claim) return NULL;
        if (there == 0 && __atomic_compare_exchange_n(&p->stacks[i].stream, &there, stream, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) there = stream;
        if (there == stream) return &p->stacks[i];
    }
    return NULL;
}

static tn_mem_error take_from(tn_place_bump *b, size_t bytes, size_t alignment, tn_stable_span *span)
{
    return b->arena ? tn_arena_take(b->arena, bytes, alignment, span) : tn_scratch_take(b->stack, bytes, alignment, span);
}

void tn_place_bump_take(tn_place *p, const tn_place_row *row, size_t bytes, uint32_t stream, tn_place_answer *out)
{
    tn_place_bump *b = row->tier == TN_PLACE_T2 ? &p->engine[row->family] : stack_of(p, stream, 1);
    size_t whole = tn_round_up(bytes, 512), alignment = row->tier == TN_PLACE_T2 ? tn_native_alignment(row->family, bytes) : 512;
    tn_stable_span span;
    tn_mem_error error;
    out->spill = TN_PLACE_NO_ROOM;
    if (!b || (!b->arena && !b->stack)) return;
    tn_spin_lock(&b->lock);
    if (b->count) take_back(b, tn_place_work(p, row->family), AT_ONCE);
    error = take_from(b, whole, alignment, &span);
    if (error != TN_MEM_OK && b->count > 0) {
        take_back(b, tn_place_work(p, row->family), b->count);
        error = take_from(b, whole, alignment, &span);
    }
    tn_spin_unlock(&b->lock);
    if (error != TN_MEM_OK) return;
    out->spill = TN_PLACE_SERVED;
    out->address = tn_stable_data(span);
    out->tier = row->tier;
}

/* What may still be in use waits, each block by itself: one that is used for long keeps no other. */
static __attribute__((hot)) tn_mem_error give_to(tn_place *p, tn_place_bump *b, const tn_work *work, void *address, const tn_work_set *uncovered)
{
    tn_place_waiting w = {.address = address};
    void *begin = NULL;
    if (uncovered && uncovered->count) w.uncovered = *uncovered;
    if (tn_work_set_is_ready(&w.uncovered, work, b->stream)) return free_now(b, address);
    tn_mem_error error = b->arena ? tn_arena_find(b->arena, address, &begin, NULL) : tn_scratch_find(b->stack, address, &begin, NULL);
    if (error != TN_MEM_OK || begin != address) return error != TN_MEM_OK ? error : TN_MEM_E_ARGUMENT;
    if (b->count == TN_PLACE_WAITING) take_back(b, work, b->count);
    if (b->count < TN_PLACE_WAITING) b->waiting[(b->first + b->count++) % TN_PLACE_WAITING] = w;
    else if (b->arena) return tn_arena_free_used(b->arena, address, uncovered); /* which keeps one set of work for all of them */
    else {
        b->lost++;
        __atomic_fetch_add(&p->not_taken_back, 1, __ATOMIC_RELAXED);
    }
    return TN_MEM_OK;
}

tn_mem_error tn_place_bump_give(tn_place *p, const tn_place_row *row, void *address, uint32_t stream, const tn_work_set *uncovered)
{
    tn_place_bump *b = row->tier == TN_PLACE_T2 ? &p->engine[row->family] : stack_of(p, stream, 0);
    if (!b || (!b->arena && !b->stack)) return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&b->lock);
    tn_mem_error error = give_to(p, b, tn_place_work(p, row->family), address, uncovered);
    tn_spin_unlock(&b->lock);
    return error;
}
