/* V2: a serving loop over every tier at once acquires nothing while it serves. The guard fails every acquisition in Serving, and so does the
 * library's own metadata there; what the loop computes depends on every buffer, and is what a loop over malloc computes. */
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

enum { LOADING, SERVING };
enum { LAYERS = 6, REQUESTS = 4, TOKENS = 24, STEPS = 500, KV_BYTES = 512, KV_BLOCKS = REQUESTS * TOKENS / 4, DRAFT = 700 };
enum { WEIGHT = 4096, PROMPT_SITE = 0, LOGITS_SITE = 1, SAMPLE_SITE = 2, STREAM = 1 };

typedef struct server {
    int phase;
    size_t refused, metadata_refused;
} server;

static server state;
static tn_host *host;
static tn_backend backend;

static tn_mem_error may_acquire(void *self, const char *tag, size_t bytes)
{
    server *s = self;
    (void)tag, (void)bytes;
    s->refused += s->phase == SERVING;
    return s->phase == SERVING ? TN_MEM_E_BUDGET : TN_MEM_OK;
}

static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    server *s = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    s->metadata_refused += s->phase == SERVING;
    return s->phase == SERVING ? NULL : realloc(block, new_bytes);
}

static const tn_metadata metadata = {.resize = resize, .self = &state};

/* A request that is being served; its blocks hold four tokens each. */
typedef struct request {
    bool active;
    size_t tokens, until;
    tn_block kv[TOKENS / 4];
    unsigned char *kv_data[TOKENS / 4], *prompt;
    uint64_t sum;
} request;

typedef struct tiers {
    tn_arena *weights, *engine;
    tn_block_pool *kv;
    tn_scratch *scratch;
    tn_packed *packed;
    tn_stable_slots *graphs;
    unsigned char *layers[LAYERS], *tables;
} tiers;

/* The prompts, one a request, and logits and sample, which share a place: they are never alive at once. */
static tn_packed_slot slots[REQUESTS + 2];
static tn_packed_plan plan;

static void enter(int phase)
{
    state.phase = phase;
    tn_host_set_phase(host, phase);
}

static unsigned char *bytes_of(tn_stable_span span)
{
    return tn_stable_data(span);
}

static void load(tiers *t, random_state *random)
{
    tn_stable_span span;
    tn_work work = device_begin();
    for (uint32_t i = 0; i < REQUESTS; i++)
        slots[i] = (tn_packed_slot){.site = PROMPT_SITE, .ordinal = i, .offset = i * 1024, .bytes = 1000};
    slots[REQUESTS] = (tn_packed_slot){.site = LOGITS_SITE, .offset = REQUESTS * 1024, .bytes = 4096};
    slots[REQUESTS + 1] = (tn_packed_slot){.site = SAMPLE_SITE, .offset = REQUESTS * 1024 + 1024, .bytes = 1024};
    plan = (tn_packed_plan){.slots = slots, .slot_count = REQUESTS + 2, .site_count = 3, .capacity = 16 * KIB};
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = &backend, .tag = "weights", .first_bytes = LAYERS * WEIGHT, .max_regions = 1,
                                                  .planned_blocks = LAYERS, .metadata = &metadata}, &t->weights));
    expect_ok(tn_arena_create(&(tn_arena_options){.backend = &backend, .tag = "engine", .discipline = TN_ARENA_ENGINE, .metadata = &metadata,
                                                  .first_bytes = 4 * KIB, .max_regions = 1, .planned_blocks = 2}, &t->engine));
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = &backend, .tag = "kv", .blocks = KV_BLOCKS, .stride = KV_BYTES,
                                                            .work = &work, .metadata = &metadata}, &t->kv));
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = &backend, .tag = "scratch", .capacity = 64 * KIB, .blocks = 16,
                                                      .metadata = &metadata}, &t->scratch));
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = &backend, .tag = "packed", .plan = &plan, .work = work, .metadata = &metadata}, &t->packed));
    expect_ok(tn_stable_slots_create(&(tn_stable_slots_options){.backend = &backend, .tag = "graphs", .capacity = 8 * KIB, .work = &work,
                                                                .slots = REQUESTS + 1, .metadata = &metadata}, &t->graphs));
    for (int i = 0; i < LAYERS; i++) {
        expect_ok(tn_arena_take(t->weights, WEIGHT, 0, &span));
        t->layers[i] = bytes_of(span);
        for (size_t j = 0; j < WEIGHT; j++)
            t->layers[i][j] = (unsigned char)random_next(random);
    }
    expect_ok(tn_arena_take(t->engine, 2 * KIB, 0, &span));
    t->tables = bytes_of(span);
}

static void unload(tiers *t)
{
    device_finish_all();
    expect_ok(tn_stable_slots_destroy(&t->graphs));
    expect_ok(tn_packed_destroy(&t->packed));
    expect_ok(tn_scratch_destroy(&t->scratch));
    expect_ok(tn_block_pool_destroy(&t->kv));
    expect_ok(tn_arena_destroy(&t->engine));
    expect_ok(tn_arena_destroy(&t->weights));
}

static void admit(tiers *t, request *r, uint64_t number)
{
    tn_stable_span span;
    size_t bytes = 500 + number % 500;
    expect_ok(tn_packed_take(t->packed, PROMPT_SITE, bytes, STREAM, &span, NULL));
    *r = (request){.active = true, .until = 1 + number % TOKENS, .prompt = bytes_of(span)};
    memset(r->prompt, (int)(number % 251), bytes);
}

/* Ends a request, at whatever point it is: every block goes back with the work that may still read it. */
static void end_request(tiers *t, request *r)
{
    tn_work_mark mark = device_enqueue(STREAM);
    tn_work_set set = device_set(mark);
    for (size_t i = 0; i < (r->tokens + 3) / 4; i++)
        expect_ok(tn_block_pool_release(t->kv, &r->kv[i], &mark, 1));
    expect_ok(tn_packed_free(t->packed, r->prompt, &set));
    r->active = false;
}

/* One more token: each layer's scratch lies over the one before, and one of them is freed out of order. */
static void decode(tiers *t, request *r, const unsigned char *batch)
{
    size_t block = r->tokens / 4;
    tn_stable_span span;
    if (r->tokens % 4 == 0) {
        expect_ok(tn_block_pool_acquire(t->kv, STREAM, &r->kv[block]));
        expect_ok(tn_block_pool_span(t->kv, &r->kv[block], &span));
        r->kv_data[block] = bytes_of(span);
        memset(r->kv_data[block], 0, KV_BYTES);
    }
    tn_scratch_mark pass, layer;
    expect_ok(tn_scratch_open_mark(t->scratch, &pass));
    expect_ok(tn_scratch_take(t->scratch, WEIGHT, 0, &span));
    unsigned char *hidden = bytes_of(span);
    memset(hidden, (int)(r->tokens + r->prompt[0] + batch[0]), WEIGHT);
    for (int l = 0; l < LAYERS; l++) {
        expect_ok(tn_scratch_open_mark(t->scratch, &layer));
        expect_ok(tn_scratch_take(t->scratch, WEIGHT, 0, &span));
        unsigned char *q = bytes_of(span);
        expect_ok(tn_scratch_take(t->scratch, DRAFT, 0, &span));
        memset(bytes_of(span), l, DRAFT);
        for (size_t i = 0; i < WEIGHT; i++)
            q[i] = (unsigned char)(hidden[i] * 3 + t->layers[l][i]);
        expect_ok(tn_scratch_free(t->scratch, q));
        for (size_t i = 0; i < WEIGHT; i++)
            hidden[i] = q[i];
        expect_ok(tn_scratch_rewind(t->scratch, layer));
    }
    expect_ok(tn_packed_take(t->packed, LOGITS_SITE, WEIGHT, STREAM, &span, NULL));
    memcpy(bytes_of(span), hidden, WEIGHT);
    for (size_t i = 0; i < WEIGHT; i++)
        r->sum = r->sum * 31 + bytes_of(span)[i];
    tn_work_set set = device_set(device_enqueue(STREAM));
    expect_ok(tn_packed_free(t->packed, tn_stable_data(span), &set));
    expect_ok(tn_packed_take(t->packed, SAMPLE_SITE, 1000, STREAM, &span, NULL));
    memset(bytes_of(span), (int)(r->sum & 0xFF), 1000);
    expect_ok(tn_packed_free(t->packed, tn_stable_data(span), NULL));
    expect_ok(tn_scratch_rewind(t->scratch, pass));
    memset(r->kv_data[block] + r->tokens % 4 * (KV_BYTES / 4), (int)(r->sum & 0xFF), KV_BYTES / 4);
    for (size_t i = 0; i <= block; i++)
        r->sum = r->sum * 31 + r->kv_data[i][KV_BYTES / 4 - 1];
    r->tokens++;
}

/* The same token by token, with nothing but what it computes. */
static uint64_t expected_sum(const tiers *t, const request *r, const unsigned char *batches)
{
    uint64_t sum = 0;
    unsigned char first[TOKENS / 4];
    for (size_t token = 0; token < r->tokens; token++) {
        for (size_t i = 0; i < WEIGHT; i++) {
            unsigned char hidden = (unsigned char)(token + r->prompt[0] + batches[token]);
            for (int l = 0; l < LAYERS; l++)
                hidden = (unsigned char)(hidden * 3 + t->layers[l][i]);
            sum = sum * 31 + hidden;
        }
        if (token % 4 == 0)
            first[token / 4] = (unsigned char)(sum & 0xFF);
        for (size_t i = 0; i <= token / 4; i++)
            sum = sum * 31 + first[i];
    }
    return sum;
}

/* The batch's buffer is where its captured graph has it, one for each batch size. */
static const unsigned char *batch_buffer(tiers *t, size_t active, void **address)
{
    tn_stable_span span;
    expect_ok(tn_stable_slots_take(t->graphs, active, 256 * active, 0, STREAM, &span));
    if (address[active] == NULL)
        address[active] = tn_stable_data(span);
    ck_assert_ptr_eq(tn_stable_data(span), address[active]);
    memset(bytes_of(span), (int)active, 256 * active);
    return bytes_of(span);
}

START_TEST(v2_a_decode_loop_acquires_nothing_while_it_serves)
{
    uint64_t seed = fixture_seed(0xDEC0DE01 + (uint64_t)_i);
    random_state random = {seed};
    tiers t;
    request requests[REQUESTS] = {{.active = false}};
    unsigned char batches[REQUESTS][TOKENS];
    void *address[REQUESTS + 1] = {NULL};
    size_t finished = 0, cancelled = 0;
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = MIB});
    state = (server){.phase = LOADING};
    expect_ok(tn_backend_init(&backend, &tn_host_table, host, &(tn_backend_guard){.may_acquire = may_acquire, .self = &state}));
    enter(LOADING);
    load(&t, &random);
    enter(SERVING);
    for (size_t step = 0; step < STEPS; step++) {
        size_t active = 0;
        for (size_t i = 0; i < REQUESTS; i++) {
            if (!requests[i].active && random_below(&random, 3) == 0)
                admit(&t, &requests[i], random_next(&random));
            active += requests[i].active;
        }
        if (active == 0)
            continue;
        const unsigned char *batch = batch_buffer(&t, active, address);
        for (size_t i = 0; i < REQUESTS; i++) {
            request *r = &requests[i];
            if (!r->active)
                continue;
            batches[i][r->tokens] = batch[0];
            decode(&t, r, batch);
            if (r->tokens == r->until || random_below(&random, 40) == 0) {
                ck_assert_msg(r->sum == expected_sum(&t, r, batches[i]), "%s", fixture_seed_line(seed, step));
                finished += r->tokens == r->until;
                cancelled += r->tokens != r->until;
                end_request(&t, r);
            }
        }
        tn_work_set set = device_set(device_enqueue(STREAM));
        expect_ok(tn_stable_slots_release(t.graphs, active, &set));
        if (step % 5 == 0)
            device_finish(STREAM);
    }
    for (size_t i = 0; i < REQUESTS; i++)
        if (requests[i].active)
            end_request(&t, &requests[i]);
    ck_assert_uint_gt(finished, STEPS / 50);
    ck_assert_uint_gt(cancelled, STEPS / 100);
    for (int op = 0; op < TN_HOST_ANY; op++)
        ck_assert_uint_eq(fixture_count(host, (tn_host_op)op, SERVING), 0);
    ck_assert_uint_eq(state.refused, 0);
    ck_assert_uint_eq(state.metadata_refused, 0);
    /* The guard is no dummy. */
    tn_region region;
    expect_error(TN_MEM_E_BUDGET, tn_backend_acquire(&backend, 1, 0, "late", &region));
    ck_assert_uint_eq(state.refused, 1);
    enter(LOADING);
    unload(&t);
    fixture_finish(host);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("decode_loop");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, v2_a_decode_loop_acquires_nothing_while_it_serves, 0, 3);
    return fixture_run("decode_loop", tests);
}
