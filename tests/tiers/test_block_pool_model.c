/* V4: the pool beside a model of it, through a million steps of acquire, release, share, evict and pin, each of which must keep free,
 * waiting and live blocks and all references in balance, hand out only what is clean, and answer as the model says. Holders are tables of
 * requests and a cache with pins, which are a policy of the cache's and never references. A failure prints the seed; TENURE_SEED runs
 * it again. */
#include <string.h>

#include "pool_fixture.h"

enum { BLOCKS = 48, SHARES = 24, QUEUES = 4, OWNERS = 160, CACHE = 24, COPIES = 32, MARKS = 6, CHUNK = 8, STRIDE = 8 * 1024 };

typedef enum place { UNCOMMITTED, FREE, WAITING, LIVE } place;

typedef struct model_block {
    place place;
    size_t references;
    uint64_t marks[DEVICE_QUEUES + 1]; /* the last of each queue; 0: none */
    unsigned char fill;
} model_block;

typedef struct cached {
    tn_block owner;
    size_t pins;
} cached;

typedef struct model {
    model_block blocks[BLOCKS];
    uint32_t queue[BLOCKS]; /* waiting, the first released first */
    size_t waiting, committed, live, references, high, high_shares;
    uint64_t acquires, exhausted, must_wait, bad, resets, grown, trimmed;
    tn_block owners[OWNERS]; /* of requests; empty where nothing is held */
    cached cache[CACHE];     /* the least recently used first */
    size_t cached;
    tn_block copies[COPIES]; /* of owners that have released */
    bool grows, exact;       /* exact: no set overflows, so that what waits is known; else blocks may wait longer than the model says */
} model;

static model m;
static const char *where;
static size_t steps_of_kind[16];

#define must(condition)                                              \
    do {                                                             \
        if (!(condition))                                            \
            ck_abort_msg("%s does not hold: %s", #condition, where); \
    } while (0)

static bool is_clean(const model_block *b)
{
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        if (b->marks[q] > device_finished(q))
            return false;
    return true;
}

static bool is_ready(const model_block *b, uint64_t queue)
{
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        if (b->marks[q] > device_finished(q) && q != queue)
            return false;
    return true;
}

static void leave_queue(size_t index)
{
    memmove(&m.queue[index], &m.queue[index + 1], (m.waiting - index - 1) * sizeof *m.queue);
    m.waiting--;
}

static size_t count_free(void)
{
    return m.committed - m.waiting - m.live;
}

static void collect(void)
{
    for (size_t i = m.waiting; i-- > 0;)
        if (is_clean(&m.blocks[m.queue[i]])) {
            m.blocks[m.queue[i]].place = FREE;
            leave_queue(i);
        }
}

/* Whether any block of the chunks before that of `id` is free. */
static bool has_free_before_chunk_of(uint32_t id)
{
    for (uint32_t b = 0; b < id / CHUNK * CHUNK; b++)
        if (m.blocks[b].place == FREE)
            return true;
    return false;
}

static char *bytes_of(const tn_block *owner)
{
    tn_stable_span span;
    expect_error(TN_MEM_OK, tn_block_pool_span(pool, owner, &span));
    return tn_stable_data(span);
}

/* What a request wrote is there until the last holder lets go: no other has had the block. */
static void check_fill(const tn_block *owner)
{
    if (!m.grows)
        return;
    const char *bytes = bytes_of(owner);
    for (size_t i = 0; i < STRIDE; i += 509)
        must((unsigned char)bytes[i] == m.blocks[tn_block_id(owner)].fill);
}

static void open_chunk(void)
{
    for (size_t i = 0; i < CHUNK; i++)
        m.blocks[m.committed + i] = (model_block){.place = FREE};
    m.committed += CHUNK;
}

static void note_live(uint32_t id, const tn_block *owner, size_t step)
{
    model_block *b = &m.blocks[id];
    b->place = LIVE;
    b->references = 1;
    m.live++;
    m.references++;
    m.acquires++;
    m.high = m.live > m.high ? m.live : m.high;
    b->fill = (unsigned char)(step % 251 + 1);
    if (m.grows)
        memset(bytes_of(owner), b->fill, STRIDE);
}

static tn_mem_error expected_of_acquire(uint64_t queue, bool growth_fails, uint32_t *id)
{
    *id = TN_BLOCK_NO_ID; /* any that is free */
    if (count_free() > 0)
        return TN_MEM_OK;
    for (size_t i = 0; i < m.waiting; i++)
        if (is_ready(&m.blocks[m.queue[i]], queue)) {
            *id = m.queue[i];
            leave_queue(i);
            return TN_MEM_OK;
        }
    if (m.committed < BLOCKS && !growth_fails) {
        open_chunk();
        m.grown++;
        return TN_MEM_OK;
    }
    if (m.waiting > 0) {
        m.must_wait++;
        return TN_MEM_E_MUST_WAIT;
    }
    m.exhausted++;
    return m.committed < BLOCKS ? TN_MEM_E_OUT_OF_MEMORY : TN_MEM_E_EXHAUSTED;
}

static void acquire(tn_block *owner, uint64_t queue, bool growth_fails, size_t step)
{
    uint32_t id = TN_BLOCK_NO_ID;
    tn_host_allow_growth(host, !growth_fails);
    tn_mem_error wanted = m.exact ? expected_of_acquire(queue, growth_fails, &id) : TN_MEM_OK;
    tn_mem_error error = tn_block_pool_acquire(pool, queue, owner);
    if (!m.exact) { /* a set that overflowed waits for more than the model knows of; too early it never is */
        if (error != TN_MEM_OK) {
            must(error == (m.live < m.committed ? TN_MEM_E_MUST_WAIT : TN_MEM_E_EXHAUSTED));
            *(error == TN_MEM_E_MUST_WAIT ? &m.must_wait : &m.exhausted) += 1;
            return;
        }
        id = tn_block_id(owner);
        for (size_t i = 0; i < m.waiting; i++)
            if (m.queue[i] == id) {
                must(is_ready(&m.blocks[id], queue));
                leave_queue(i);
                m.blocks[id].place = FREE;
                break;
            }
    }
    must(error == wanted);
    if (error != TN_MEM_OK) {
        must(tn_block_is_empty(owner));
        return;
    }
    uint32_t got = tn_block_id(owner);
    must(got < m.committed && m.blocks[got].place != LIVE && m.blocks[got].references == 0);
    must(id == TN_BLOCK_NO_ID ? m.blocks[got].place == FREE && !(m.grows && has_free_before_chunk_of(got)) : got == id);
    note_live(got, owner, step);
}

static void share(const tn_block *from, tn_block *to)
{
    size_t shares = m.references - m.live;
    tn_mem_error error = tn_block_pool_share(pool, from, to);
    if (shares == SHARES) {
        must(error == TN_MEM_E_EXHAUSTED && tn_block_is_empty(to));
        m.exhausted++;
        return;
    }
    must(error == TN_MEM_OK && tn_block_id(to) == tn_block_id(from));
    m.blocks[tn_block_id(to)].references++;
    m.references++;
    m.high_shares = shares + 1 > m.high_shares ? shares + 1 : m.high_shares;
}

static void lose_reference(uint32_t id)
{
    model_block *b = &m.blocks[id];
    m.references--;
    if (--b->references > 0)
        return;
    m.live--;
    b->place = is_clean(b) ? FREE : WAITING;
    if (b->place == WAITING)
        m.queue[m.waiting++] = id;
}

static void note_marks(uint32_t id, const tn_work_mark *marks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        m.blocks[id].marks[marks[i].queue] = marks[i].sequence;
}

/* The work a holder leaves: of more queues than a set holds only where the model is not exact. */
static size_t make_marks(random_state *random, tn_work_mark *marks)
{
    size_t count = random_below(random, m.exact ? 3 : MARKS + 1);
    for (size_t i = 0; i < count; i++)
        marks[i] = device_enqueue(1 + random_below(random, m.exact ? QUEUES : DEVICE_QUEUES));
    return count;
}

static void release(random_state *random, tn_block *owner)
{
    tn_work_mark marks[MARKS];
    size_t count = make_marks(random, marks);
    uint32_t id = tn_block_id(owner);
    check_fill(owner);
    m.copies[random_below(random, COPIES)] = *owner;
    must(tn_block_pool_release(pool, owner, marks, count) == TN_MEM_OK);
    must(tn_block_is_empty(owner));
    note_marks(id, marks, count);
    lose_reference(id);
}

static void evict(random_state *random)
{
    for (size_t i = 0; i < m.cached; i++)
        if (m.cache[i].pins == 0) {
            release(random, &m.cache[i].owner);
            memmove(&m.cache[i], &m.cache[i + 1], (m.cached - i - 1) * sizeof *m.cache);
            m.cached--;
            return;
        }
}

static void reset(random_state *random)
{
    tn_work_mark marks[MARKS];
    size_t count = make_marks(random, marks);
    must(tn_block_pool_reset(pool, marks, count) == TN_MEM_OK);
    m.resets++;
    for (uint32_t id = 0; id < BLOCKS; id++)
        if (m.blocks[id].place == LIVE)
            note_marks(id, marks, count);
    /* Which waits first is the pool's affair after a reset; all that was live is now the model's to sort. */
    bool some_wait = false;
    for (uint32_t id = 0; id < BLOCKS; id++)
        while (m.blocks[id].references > 0) {
            some_wait = some_wait || !is_clean(&m.blocks[id]);
            lose_reference(id);
        }
    for (size_t i = 0; i < OWNERS; i++) {
        if (!tn_block_is_empty(&m.owners[i]))
            m.copies[i % COPIES] = m.owners[i];
        m.owners[i] = tn_block_none();
    }
    m.cached = 0;
    if (some_wait) {
        device_finish_all();
        must(tn_block_pool_collect(pool) >= m.waiting);
        collect();
        must(m.waiting == 0);
    }
}

static void misuse(random_state *random)
{
    tn_block *copy = &m.copies[random_below(random, COPIES)], to = tn_block_none(), kept = *copy;
    if (tn_block_is_empty(copy))
        return;
    switch (random_below(random, 3)) {
    case 0:
        must(tn_block_pool_release(pool, copy, NULL, 0) == TN_MEM_E_STALE);
        break;
    case 1:
        must(tn_block_pool_share(pool, copy, &to) == TN_MEM_E_STALE && tn_block_is_empty(&to));
        break;
    default:
        must(tn_block_pool_look(pool, copy, NULL) == TN_MEM_E_STALE);
    }
    must(memcmp(copy, &kept, sizeof kept) == 0);
    m.bad++;
}

static void trim(bool decommit_fails)
{
    if (!m.grows)
        return;
    collect();
    size_t keep = m.committed;
    for (bool all_free = true; keep > 0 && all_free;) {
        for (size_t i = keep - CHUNK; i < keep; i++)
            all_free = all_free && m.blocks[i].place == FREE;
        keep -= all_free ? CHUNK : 0;
    }
    tn_host_fail(host, TN_HOST_DECOMMIT, decommit_fails ? 1 : 0);
    tn_mem_error error = tn_block_pool_trim(pool);
    tn_host_fail(host, TN_HOST_DECOMMIT, 0);
    must(error == (decommit_fails && keep < m.committed ? TN_MEM_E_DRIVER : TN_MEM_OK));
    if (error != TN_MEM_OK)
        return;
    m.trimmed += (m.committed - keep) / CHUNK;
    for (; m.committed > keep; m.committed--)
        m.blocks[m.committed - 1].place = UNCOMMITTED;
}

static void check_figures(void)
{
    tn_block_pool_stats s;
    tn_block_pool_read_stats(pool, &s);
    must(s.free + s.waiting + s.live == s.committed);
    must(s.references == s.live + s.shares);
    must(s.live == m.live && s.references == m.references);
    must(s.committed == m.committed && s.high_water == m.high && s.high_shares == m.high_shares);
    must(s.acquires == m.acquires && s.exhausted == m.exhausted && s.must_wait == m.must_wait);
    must(s.bad_handles == m.bad && s.resets == m.resets && s.grown == m.grown && s.trimmed == m.trimmed);
    if (m.exact)
        must(s.waiting == m.waiting && s.free == count_free());
}

static void proceed(random_state *random)
{
    device_finish(1 + random_below(random, DEVICE_QUEUES), 1 + random_below(random, 8));
    if (m.exact)
        return;
    /* What the model takes to be waiting follows the pool here: which of them are clean is not to be told from their own marks. */
    device_finish_all();
    must(tn_block_pool_collect(pool) >= m.waiting);
    collect();
    must(m.waiting == 0);
}

static void step(random_state *random, size_t number)
{
    uint64_t what = random_below(random, 1000), queue = random_below(random, QUEUES + 1);
    tn_block *one = &m.owners[random_below(random, OWNERS)], *other = &m.owners[random_below(random, OWNERS)];
    cached *entry = m.cached > 0 ? &m.cache[random_below(random, m.cached)] : NULL;
    tn_block_pool_stats before, after;
    int kind = 0;
    if (what < 330) {
        if (tn_block_is_empty(one))
            acquire(one, queue, m.grows && what % 8 == 0, number);
    } else if (what < 640) {
        kind = 1;
        if (!tn_block_is_empty(one))
            release(random, one);
    } else if (what < 740) {
        kind = 2;
        if (!tn_block_is_empty(one) && tn_block_is_empty(other))
            share(one, other);
    } else if (what < 790) {
        kind = 3; /* a prefix is cached: the cache has a reference of its own */
        if (!tn_block_is_empty(one) && m.cached < CACHE) {
            m.cache[m.cached] = (cached){.owner = tn_block_none()};
            share(one, &m.cache[m.cached].owner);
            m.cached += !tn_block_is_empty(&m.cache[m.cached].owner);
        }
    } else if (what < 820) {
        kind = 4; /* and used by a request */
        if (entry != NULL && tn_block_is_empty(one))
            share(&entry->owner, one);
    } else if (what < 860) {
        kind = 5;
        evict(random);
    } else if (what < 890) {
        kind = 6;
        tn_block_pool_read_stats(pool, &before);
        if (entry != NULL)
            entry->pins = what % 2 == 0 ? entry->pins + 1 : entry->pins > 0 ? entry->pins - 1 : 0;
        tn_block_pool_read_stats(pool, &after);
        must(memcmp(&before, &after, sizeof before) == 0);
    } else if (what < 920) {
        kind = 7;
        misuse(random);
    } else if (what < 985) {
        kind = 8;
        proceed(random);
    } else if (what < 995) {
        kind = 9;
        trim(what % 3 == 0);
    } else if (what < 999) {
        kind = 10;
        if (m.exact) {
            size_t was = m.waiting;
            collect();
            must(tn_block_pool_collect(pool) == was - m.waiting);
        }
    } else {
        kind = 11;
        reset(random);
    }
    steps_of_kind[kind]++;
}

static void random_life(uint64_t seed, size_t steps, bool grows, bool exact)
{
    random_state random = {seed};
    m = (model){.grows = grows, .exact = exact};
    pool_begin();
    tn_block_pool_options options = {.blocks = BLOCKS, .max_shares = SHARES, .work = &device_work};
    if (grows) {
        options.backend = tn_host_backend(host);
        options.tag = "kv";
        options.stride = STRIDE; /* a chunk is the granularity, so that each growth reaches the backend */
        options.chunk_blocks = CHUNK;
    } else {
        for (size_t i = 0; i < BLOCKS / CHUNK; i++)
            open_chunk();
    }
    expect_ok(tn_block_pool_create(&options, &pool));
    for (size_t number = 0; number < steps; number++) {
        where = fixture_seed_line(seed, number);
        step(&random, number);
        check_figures();
        if (number % 64 == 0)
            must(tn_pool_is_sound(pool));
        if (grows && number % 4096 == 0)
            fixture_check_conservation(host);
    }
    /* Every holder lets go: nothing is left. */
    for (size_t i = 0; i < OWNERS; i++)
        if (!tn_block_is_empty(&m.owners[i]))
            release(&random, &m.owners[i]);
    for (size_t i = 0; i < m.cached; i++)
        release(&random, &m.cache[i].owner);
    tn_block_pool_stats stats = stats_now();
    must(stats.live == 0 && stats.references == 0 && stats.shared == 0);
    device_finish_all();
    expect_ok(tn_block_pool_destroy(&pool));
    fixture_finish(host);
}

START_TEST(v4_a_million_steps_keep_the_balance)
{
    random_life(fixture_seed(0xB10C), 1000000, false, true);
    for (int kind = 0; kind < 12; kind++)
        ck_assert_msg(steps_of_kind[kind] > 500, "only %zu steps of kind %d", steps_of_kind[kind], kind);
    ck_assert_uint_gt(m.must_wait, 1000);
    ck_assert_uint_gt(m.exhausted, 100);
    ck_assert_uint_eq(m.high, BLOCKS);
    ck_assert_uint_eq(m.high_shares, SHARES);
    ck_assert_uint_gt(m.bad, 1000);
}
END_TEST

START_TEST(a_pool_that_grows_agrees_with_the_model)
{
    random_life(fixture_seed(0xB10C1 + (uint64_t)_i), 25000, true, true);
    ck_assert_uint_gt(m.grown, 20);
    ck_assert_uint_gt(m.trimmed, 10);
}
END_TEST

START_TEST(blocks_that_many_queues_used_are_never_handed_out_too_early)
{
    random_life(fixture_seed(0xB10C2 + (uint64_t)_i), 25000, false, false);
    ck_assert_uint_gt(device_alls(), 10);
    ck_assert_uint_gt(m.must_wait, 10);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_model");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, v4_a_million_steps_keep_the_balance);
    tcase_add_loop_test(tests, a_pool_that_grows_agrees_with_the_model, 0, 6);
    tcase_add_loop_test(tests, blocks_that_many_queues_used_are_never_handed_out_too_early, 0, 6);
    return fixture_run("block_pool_model", tests);
}
