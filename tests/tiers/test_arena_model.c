/* The arena beside a model that keeps every block of every region and works out anew, at each step, what the arena must answer: address,
 * error, regions, figures. V1 holds after each step. A failure prints the seed; TENURE_SEED runs it again. */
#include <string.h>

#include "fixture.h"

enum { REGIONS = 6, BLOCKS = 300, STEPS = 3000 };

typedef struct model_block {
    uintptr_t address;
    size_t bytes;
    unsigned char fill;
    bool live;
} model_block;

typedef struct model_region {
    uintptr_t base;
    size_t capacity;
    model_block blocks[BLOCKS];
    size_t count;
    bool closed;
} model_region;

typedef struct model {
    tn_arena_discipline discipline;
    size_t first, growth, high, live_bytes, live_blocks;
    uint64_t generation, exhausted;
    model_region *regions;
    size_t region_count;
} model;

static tn_host *host;
static tn_arena *arena;
static const char *where;

#define must(condition)                                                   \
    do {                                                                  \
        if (!(condition))                                                 \
            ck_abort_msg("%s does not hold: %s", #condition, where);      \
    } while (0)

/* T1 never goes back; of T2 only what lives, or lies under it, counts. */
static size_t used_of(const model *m, const model_region *r)
{
    size_t used = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t end = r->blocks[i].address + r->blocks[i].bytes - r->base;
        if ((m->discipline == TN_ARENA_MODEL || r->blocks[i].live) && end > used)
            used = end;
    }
    return used;
}

static size_t live_of(const model_region *r)
{
    size_t live = 0;
    for (size_t i = 0; i < r->count; i++)
        live += r->blocks[i].live;
    return live;
}

static size_t total_used(const model *m)
{
    size_t used = 0;
    for (size_t i = 0; i < m->region_count; i++)
        used += used_of(m, &m->regions[i]);
    return used;
}

static void add_block(model *m, model_region *r, tn_stable_span span, unsigned char fill)
{
    must(r->count < BLOCKS);
    memset(tn_stable_data(span), fill, tn_stable_bytes(span));
    r->blocks[r->count++] = (model_block){(uintptr_t)tn_stable_data(span), tn_stable_bytes(span), fill, true};
    m->live_blocks++;
    m->live_bytes += tn_stable_bytes(span);
    if (total_used(m) > m->high)
        m->high = total_used(m);
}

static void check_take(model *m, size_t bytes, size_t alignment, unsigned char fill, bool acquire_fails)
{
    tn_stable_span span;
    model_region *last = m->region_count > 0 ? &m->regions[m->region_count - 1] : NULL;
    size_t planned = m->region_count == 0 ? m->first : m->growth;
    if (acquire_fails)
        tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    tn_mem_error error = tn_arena_take(arena, bytes, alignment, &span);
    tn_host_fail(host, TN_HOST_ACQUIRE, 0);
    if (last != NULL && !last->closed) {
        uintptr_t address = (last->base + used_of(m, last) + alignment - 1) / alignment * alignment;
        if (address + bytes <= last->base + last->capacity) {
            must(error == TN_MEM_OK && (uintptr_t)tn_stable_data(span) == address && tn_stable_bytes(span) == bytes);
            add_block(m, last, span, fill);
            return;
        }
    }
    if (bytes > planned || m->region_count == REGIONS) {
        must(error == TN_MEM_E_EXHAUSTED && tn_stable_data(span) == NULL);
        m->exhausted++;
    } else if (acquire_fails) {
        must(error == TN_MEM_E_OUT_OF_MEMORY && tn_stable_data(span) == NULL);
    } else {
        must(error == TN_MEM_OK && (uintptr_t)tn_stable_data(span) % alignment == 0 && tn_stable_bytes(span) == bytes);
        if (last != NULL && m->discipline == TN_ARENA_MODEL)
            last->closed = true;
        model_region *opened = &m->regions[m->region_count++];
        memset(opened, 0, sizeof *opened);
        opened->base = (uintptr_t)tn_stable_data(span);
        opened->capacity = planned;
        add_block(m, opened, span, fill);
    }
}

static void drop_region(model *m, size_t index)
{
    memmove(&m->regions[index], &m->regions[index + 1], (m->region_count - index - 1) * sizeof(model_region));
    m->region_count--;
}

/* Frees the block `pick` of region `index`, which may be freed already. */
static void check_free(model *m, size_t index, size_t pick)
{
    model_region *r = &m->regions[index];
    model_block *b = &r->blocks[pick];
    bool live = b->live;
    if (live) {
        const unsigned char *data = (const unsigned char *)b->address;
        for (size_t i = 0; i < b->bytes; i++)
            must(data[i] == b->fill);
    } else {
        /* Taken back and handed out again: the address may be a live block's by now. */
        for (size_t i = 0; i < r->count; i++)
            if (r->blocks[i].live && r->blocks[i].address == b->address)
                return;
    }
    tn_mem_error error = tn_arena_free(arena, (void *)b->address);
    if (!live) {
        must(error == TN_MEM_E_STALE || (m->discipline == TN_ARENA_ENGINE && error == TN_MEM_E_ARGUMENT));
        return;
    }
    must(error == TN_MEM_OK);
    b->live = false;
    m->live_blocks--;
    m->live_bytes -= b->bytes;
    if (m->discipline == TN_ARENA_MODEL)
        m->regions[m->region_count - 1].closed = true;
    if (live_of(r) > 0)
        return;
    if (m->discipline == TN_ARENA_MODEL || index > 0)
        drop_region(m, index);
    else
        r->closed = false;
}

static void check_figures(const model *m)
{
    tn_arena_stats stats;
    size_t capacity = 0;
    for (size_t i = 0; i < m->region_count; i++)
        capacity += m->regions[i].capacity;
    tn_arena_read_stats(arena, &stats);
    must(stats.regions == m->region_count);
    must(stats.capacity == capacity);
    must(stats.used == total_used(m));
    must(stats.live_bytes == m->live_bytes);
    must(stats.live_blocks == m->live_blocks);
    must(stats.high_water == m->high);
    must(stats.generation == m->generation);
    must(stats.exhausted == m->exhausted);
    tn_backend_stats backend;
    tn_backend_read_stats(tn_host_backend(host), &backend);
    must(backend.live == capacity);
}

static void random_life(uint64_t seed, tn_arena_discipline discipline)
{
    random_state random = {seed};
    model m = {.discipline = discipline, .first = 64 * KIB, .growth = 24 * KIB};
    m.regions = calloc(REGIONS, sizeof *m.regions);
    host = fixture_host(&(tn_host_options){.quarantine = MIB});
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = tn_host_backend(host), .tag = "arena", .discipline = discipline,
                                                  .first_bytes = m.first, .growth_bytes = m.growth, .max_regions = REGIONS},
                              &arena));
    for (size_t step = 0; step < STEPS; step++) {
        where = fixture_seed_line(seed, step);
        uint64_t what = random_below(&random, 1000);
        size_t index = m.region_count > 0 ? random_below(&random, m.region_count) : 0;
        bool full = m.region_count > 0 && m.regions[m.region_count - 1].count == BLOCKS;
        if (what < 3 || full) {
            expect_ok(tn_arena_reset(arena));
            m.region_count = m.live_blocks = m.live_bytes = 0;
            m.generation++;
        } else if (what < 10 && m.region_count > 0 && live_of(&m.regions[m.region_count - 1]) > 0) {
            tn_arena_close_region(arena);
            m.regions[m.region_count - 1].closed = true;
        } else if (what < 550 || m.region_count == 0 || m.regions[index].count == 0) {
            size_t bytes = 1 + random_below(&random, what % 16 == 0 ? 30 * KIB : 2 * KIB);
            size_t alignment = (size_t)1 << random_below(&random, 13);
            check_take(&m, bytes, alignment, (unsigned char)(1 + step % 200), what % 20 == 0);
        } else {
            check_free(&m, index, random_below(&random, m.regions[index].count));
        }
        check_figures(&m);
        if (step % 100 == 0)
            fixture_check_conservation(host);
    }
    expect_ok(tn_arena_destroy(&arena));
    fixture_finish(host);
    free(m.regions);
}

START_TEST(t1_agrees_with_the_model)
{
    random_life(fixture_seed(0xA7E4A1 + (uint64_t)_i), TN_ARENA_MODEL);
}
END_TEST

START_TEST(t2_agrees_with_the_model)
{
    random_life(fixture_seed(0xA7E4A2 + (uint64_t)_i), TN_ARENA_ENGINE);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("arena_model");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, t1_agrees_with_the_model, 0, 12);
    tcase_add_loop_test(tests, t2_agrees_with_the_model, 0, 12);
    return fixture_run("arena_model", tests);
}
