/* The scratch stack beside a model that keeps every block ever taken and works out anew, at each step, where the top is. Misplaced
 * rewinds and frees are part of the game. A failure prints the seed; TENURE_SEED runs it again. */
#include <string.h>

#include "fixture.h"

enum { BLOCKS = 400, MARKS = 40, STEPS = 4000 };

typedef struct model_block {
    uintptr_t address;
    size_t bytes;
    unsigned char fill;
    bool live;
} model_block;

typedef struct model_mark {
    tn_scratch_mark mark;
    size_t blocks; /* how many there were */
    bool open;
} model_mark;

/* Blocks in the order of their takes; those that were dropped are gone from here. Marks too, and a few closed ones beyond. */
typedef struct model {
    uintptr_t base;
    size_t capacity, high;
    model_block blocks[BLOCKS];
    size_t count;
    model_mark marks[MARKS];
    size_t mark_count;
    tn_scratch_mark closed[8];
    uint64_t exhausted, bad_frees, bad_marks, generation;
} model;

static const char *where;

#define must(condition)                                              \
    do {                                                             \
        if (!(condition))                                            \
            ck_abort_msg("%s does not hold: %s", #condition, where); \
    } while (0)

static size_t floor_of(const model *m)
{
    return m->mark_count > 0 ? m->marks[m->mark_count - 1].blocks : 0;
}

/* What can be taken back is: dead blocks above every live one and every mark. */
static void settle(model *m)
{
    while (m->count > floor_of(m) && !m->blocks[m->count - 1].live)
        m->count--;
}

static size_t top_of(const model *m)
{
    return m->count > 0 ? m->blocks[m->count - 1].address + m->blocks[m->count - 1].bytes - m->base : 0;
}

static void check_take(tn_scratch *s, model *m, size_t bytes, size_t alignment, unsigned char fill)
{
    tn_stable_span span;
    tn_mem_error error = tn_scratch_take(s, bytes, alignment, &span);
    uintptr_t address = (m->base + top_of(m) + alignment - 1) / alignment * alignment;
    if (address + bytes > m->base + m->capacity) {
        must(error == TN_MEM_E_EXHAUSTED && tn_stable_data(span) == NULL);
        m->exhausted++;
        return;
    }
    must(error == TN_MEM_OK && (uintptr_t)tn_stable_data(span) == address && tn_stable_bytes(span) == bytes);
    memset(tn_stable_data(span), fill, bytes);
    m->blocks[m->count++] = (model_block){address, bytes, fill, true};
    if (top_of(m) > m->high)
        m->high = top_of(m);
}

static void check_free(tn_scratch *s, model *m, size_t pick)
{
    model_block *b = &m->blocks[pick];
    for (size_t i = 0; b->live && i < b->bytes; i++)
        must(((unsigned char *)b->address)[i] == b->fill);
    tn_mem_error error = tn_scratch_free(s, (void *)b->address);
    must(error == (b->live ? TN_MEM_OK : TN_MEM_E_STALE));
    m->bad_frees += !b->live;
    b->live = false;
    settle(m);
}

static void check_bad_free(tn_scratch *s, model *m, uintptr_t address)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->blocks[i].address == address)
            return;
    must(tn_scratch_free(s, (void *)address) == (address - m->base < top_of(m) || address - m->base >= m->capacity ? TN_MEM_E_ARGUMENT
                                                                                                                  : TN_MEM_E_STALE));
    m->bad_frees++;
}

static void check_rewind(tn_scratch *s, model *m, size_t depth)
{
    tn_mem_error error = tn_scratch_rewind(s, m->marks[depth].mark);
    if (depth + 1 < m->mark_count) {
        must(error == TN_MEM_E_ORDER);
        m->bad_marks++;
        return;
    }
    must(error == TN_MEM_OK);
    m->count = m->marks[depth].blocks;
    m->closed[m->generation % 8] = m->marks[depth].mark;
    m->mark_count--;
    settle(m);
}

static void check_figures(const tn_scratch *s, const model *m)
{
    tn_scratch_stats stats;
    size_t live = 0, live_bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        live += m->blocks[i].live;
        live_bytes += m->blocks[i].live ? m->blocks[i].bytes : 0;
    }
    tn_scratch_read_stats(s, &stats);
    must(stats.used == top_of(m));
    must(stats.live_blocks == live);
    must(stats.live_bytes == live_bytes);
    must(stats.tombstones == m->count - live);
    must(stats.open_marks == m->mark_count);
    must(stats.high_water == m->high);
    must(stats.exhausted == m->exhausted);
    must(stats.bad_frees == m->bad_frees);
    must(stats.bad_marks == m->bad_marks);
    must(stats.generation == m->generation);
}

static void step(tn_scratch *s, model *m, random_state *random, size_t number, bool lifo)
{
    uint64_t what = random_below(random, 1000);
    if (what < 2 || m->count == BLOCKS) {
        tn_scratch_reset(s);
        if (m->mark_count > 0)
            m->closed[m->generation % 8] = m->marks[0].mark;
        m->count = m->mark_count = 0;
        m->generation++;
    } else if (what < 80 && m->mark_count < MARKS) {
        model_mark *made = &m->marks[m->mark_count++];
        *made = (model_mark){.blocks = m->count};
        expect_ok(tn_scratch_open_mark(s, &made->mark));
    } else if (what < 150 && m->mark_count > 0) {
        check_rewind(s, m, what % 4 == 0 ? random_below(random, m->mark_count) : m->mark_count - 1);
    } else if (what < 160) {
        tn_scratch_mark closed = m->closed[random_below(random, 8)];
        must(tn_scratch_rewind(s, closed) == (closed.stack == 0 ? TN_MEM_E_ARGUMENT : TN_MEM_E_STALE));
        m->bad_marks++;
    } else if (what < 180) {
        check_bad_free(s, m, m->base + random_below(random, m->capacity + 100));
    } else if (what < 600 || m->count == 0) {
        size_t bytes = 1 + random_below(random, what % 16 == 0 ? 30 * KIB : 2 * KIB);
        check_take(s, m, bytes, (size_t)1 << random_below(random, 12), (unsigned char)(1 + number % 200));
    } else {
        check_free(s, m, lifo ? m->count - 1 : random_below(random, m->count));
    }
}

static void random_life(uint64_t seed, bool lifo)
{
    random_state random = {seed};
    model *m = calloc(1, sizeof *m);
    tn_scratch *s = NULL;
    tn_host *host = fixture_host(&(tn_host_options){.quarantine = MIB});
    m->capacity = 128 * KIB;
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(host), .tag = "s", .capacity = m->capacity, .blocks = 1},
                                &s));
    tn_stable_span first;
    expect_ok(tn_scratch_take(s, 1, 1, &first));
    m->base = (uintptr_t)tn_stable_data(first);
    expect_ok(tn_scratch_free(s, tn_stable_data(first)));
    m->high = 1;
    for (size_t i = 0; i < STEPS; i++) {
        where = fixture_seed_line(seed, i);
        step(s, m, &random, i, lifo);
        check_figures(s, m);
    }
    ck_assert_uint_eq(tn_host_journal_length(host), 1);
    expect_ok(tn_scratch_destroy(&s));
    fixture_finish(host);
    free(m);
}

START_TEST(frees_in_reverse_agree_with_the_model)
{
    random_life(fixture_seed(0x5C4A7C41 + (uint64_t)_i), true);
}
END_TEST

START_TEST(frees_in_any_order_agree_with_the_model)
{
    random_life(fixture_seed(0x5C4A7C81 + (uint64_t)_i), false);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("scratch_model");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, frees_in_reverse_agree_with_the_model, 0, 12);
    tcase_add_loop_test(tests, frees_in_any_order_agree_with_the_model, 0, 12);
    return fixture_run("scratch_model", tests);
}
