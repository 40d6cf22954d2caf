#include "kv_cache.h"

#include <string.h>

const char *kv_where = "from a fresh start";

#define must(condition)                                                 \
    do {                                                                \
        if (!(condition))                                               \
            ck_abort_msg("%s does not hold: %s", #condition, kv_where); \
    } while (0)

static tn_block_pool *make_pool(kv_cache *kv, size_t blocks, size_t max_shares, const char *tag)
{
    tn_block_pool *pool = NULL;
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(kv->host), .tag = tag, .blocks = blocks,
                                                            .stride = KV_STRIDE, .max_shares = max_shares, .chunk_blocks = 1,
                                                            .work = &device_work},
                                   &pool));
    return pool;
}

void kv_open(kv_cache *kv, const kv_options *options)
{
    memset(kv, 0, sizeof *kv);
    device_reset();
    kv->host = fixture_host(&(tn_host_options){.granularity = KV_STRIDE, .quarantine = 16 * MIB});
    kv->pool = make_pool(kv, options->blocks, options->max_shares, "kv");
    kv->window = make_pool(kv, options->window_blocks, 0, "window");
    kv->uses[0] = calloc(options->blocks, sizeof *kv->uses[0]);
    kv->uses[1] = calloc(options->window_blocks, sizeof *kv->uses[1]);
}

void kv_close(kv_cache *kv)
{
    device_finish_all();
    expect_ok(tn_block_pool_destroy(&kv->pool));
    expect_ok(tn_block_pool_destroy(&kv->window));
    free(kv->uses[0]);
    free(kv->uses[1]);
    fixture_finish(kv->host);
}

tn_mem_error kv_step(kv_cache *kv)
{
    return ++kv->step == kv->fail_at ? TN_MEM_E_DRIVER : TN_MEM_OK;
}

static uint64_t *uses_of(kv_cache *kv, tn_block_pool *pool, const tn_block *owner)
{
    return kv->uses[pool == kv->window][tn_block_id(owner)];
}

char *kv_bytes(tn_block_pool *pool, const tn_block *owner)
{
    tn_stable_span span;
    must(tn_block_pool_span(pool, owner, &span) == TN_MEM_OK);
    return tn_stable_data(span);
}

void kv_note_use(kv_cache *kv, tn_block_pool *pool, const tn_block *owner, uint64_t queue)
{
    if (!tn_block_is_empty(owner))
        uses_of(kv, pool, owner)[queue] = device_enqueue(queue).sequence;
}

tn_mem_error kv_take(kv_cache *kv, tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    for (;;) {
        tn_mem_error error = kv_step(kv);
        if (error == TN_MEM_OK)
            error = tn_block_pool_acquire(pool, queue, owner);
        if (error == TN_MEM_OK) {
            /* What ran on the block last is done, or runs before what this request will enqueue. */
            const uint64_t *uses = uses_of(kv, pool, owner);
            for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
                must(q == queue || device_finished(q) >= uses[q]);
            return TN_MEM_OK;
        }
        if (error == TN_MEM_E_MUST_WAIT) {
            kv->waits++;
            must(tn_block_pool_wait(pool) == TN_MEM_OK);
        } else if (error == TN_MEM_E_DRIVER || pool == kv->window || !kv_evict(kv)) {
            return error;
        }
    }
}

void kv_give(kv_cache *kv, tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    if (tn_block_is_empty(owner))
        return;
    tn_work_mark mark = {queue, uses_of(kv, pool, owner)[queue]};
    must(tn_block_pool_release(pool, owner, &mark, 1) == TN_MEM_OK);
}

static size_t blocks_for(size_t tokens)
{
    return (tokens + KV_TOKENS - 1) / KV_TOKENS;
}

/* What the kernels would compute: each block's bytes become those of its tokens. */
static void write_block(kv_cache *kv, tn_block_pool *pool, const kv_sequence *s, const tn_block *owner, size_t index)
{
    size_t begin = index * KV_TOKENS, end = begin + KV_TOKENS < s->token_count ? begin + KV_TOKENS : s->token_count;
    memcpy(kv_bytes(pool, owner), &s->tokens[begin], (end - begin) * sizeof *s->tokens);
    kv_note_use(kv, pool, owner, s->queue);
}

static void drop_blocks_from(kv_cache *kv, kv_sequence *s, size_t first)
{
    for (size_t i = first; i < s->blocks; i++) {
        kv_give(kv, kv->pool, s->queue, &s->table[i]);
        kv_give(kv, kv->window, s->queue, &s->window[i]);
    }
    s->blocks = s->blocks < first ? s->blocks : first;
}

/* Extends the table by the block at s->blocks, and the window, whose oldest block becomes a hole. */
static tn_mem_error add_block(kv_cache *kv, kv_sequence *s)
{
    size_t i = s->blocks;
    if (i == KV_TABLE)
        return TN_MEM_E_EXHAUSTED;
    tn_mem_error error = kv_take(kv, kv->pool, s->queue, &s->table[i]);
    if (error != TN_MEM_OK)
        return error;
    error = kv_take(kv, kv->window, s->queue, &s->window[i]);
    if (error == TN_MEM_OK && (error = kv_step(kv)) != TN_MEM_OK)
        kv_give(kv, kv->window, s->queue, &s->window[i]);
    if (error != TN_MEM_OK) {
        kv_give(kv, kv->pool, s->queue, &s->table[i]);
        return error;
    }
    s->blocks++;
    return TN_MEM_OK;
}

static void slide_window(kv_cache *kv, kv_sequence *s)
{
    for (size_t i = 0; i + KV_WINDOW < s->blocks; i++)
        kv_give(kv, kv->window, s->queue, &s->window[i]);
}

static tn_mem_error reuse_prefix(kv_cache *kv, kv_sequence *s)
{
    while ((s->blocks + 1) * KV_TOKENS <= s->token_count) {
        kv_entry *entry = kv_find(kv, kv_hash(s->tokens, (s->blocks + 1) * KV_TOKENS));
        if (entry == NULL)
            return TN_MEM_OK;
        tn_mem_error error = kv_step(kv);
        if (error == TN_MEM_OK)
            error = tn_block_pool_share(kv->pool, &entry->owner, &s->table[s->blocks]);
        if (error != TN_MEM_OK)
            return error;
        kv->hits++;
        s->blocks++;
        s->reused++;
    }
    return TN_MEM_OK;
}

tn_mem_error kv_begin(kv_cache *kv, kv_sequence *s, uint64_t queue, const int *tokens, size_t count)
{
    must(!s->active && count <= KV_TABLE * KV_TOKENS);
    memset(s, 0, sizeof *s);
    s->active = true;
    s->queue = queue;
    s->token_count = count;
    memcpy(s->tokens, tokens, count * sizeof *tokens);
    tn_mem_error error = reuse_prefix(kv, s);
    while (error == TN_MEM_OK && s->blocks < blocks_for(count)) {
        error = add_block(kv, s);
        if (error == TN_MEM_OK) {
            write_block(kv, kv->pool, s, &s->table[s->blocks - 1], s->blocks - 1);
            write_block(kv, kv->window, s, &s->window[s->blocks - 1], s->blocks - 1);
        }
        slide_window(kv, s);
    }
    if (error != TN_MEM_OK)
        kv_cancel(kv, s);
    return error;
}

tn_mem_error kv_append(kv_cache *kv, kv_sequence *s, int token)
{
    tn_mem_error error = kv_step(kv);
    if (error == TN_MEM_OK && blocks_for(s->token_count + 1) > s->blocks)
        error = add_block(kv, s);
    if (error != TN_MEM_OK)
        return error;
    s->tokens[s->token_count++] = token;
    size_t last = s->blocks - 1;
    for (size_t i = 0; i < last; i++) { /* attention reads them all */
        kv_note_use(kv, kv->pool, &s->table[i], s->queue);
        kv_note_use(kv, kv->window, &s->window[i], s->queue);
    }
    write_block(kv, kv->pool, s, &s->table[last], last);
    if (!tn_block_is_empty(&s->window[last]))
        write_block(kv, kv->window, s, &s->window[last], last);
    slide_window(kv, s);
    return TN_MEM_OK;
}

tn_mem_error kv_speculate(kv_cache *kv, kv_sequence *s, size_t count)
{
    size_t tokens = s->token_count, blocks = s->blocks;
    tn_mem_error error = TN_MEM_OK;
    for (size_t i = 0; i < count && error == TN_MEM_OK && blocks_for(tokens + i + 1) <= KV_TABLE; i++)
        if (blocks_for(tokens + i + 1) > s->blocks)
            error = add_block(kv, s);
    if (error == TN_MEM_OK)
        error = kv_step(kv); /* the verification */
    drop_blocks_from(kv, s, blocks);
    return error;
}

tn_mem_error kv_fork(kv_cache *kv, const kv_sequence *from, kv_sequence *to)
{
    must(!to->active);
    memset(to, 0, sizeof *to);
    to->active = true;
    to->queue = from->queue;
    to->token_count = from->token_count;
    memcpy(to->tokens, from->tokens, sizeof to->tokens);
    tn_mem_error error = TN_MEM_OK;
    for (size_t i = 0; i < from->blocks && error == TN_MEM_OK; i++, to->blocks += error == TN_MEM_OK) {
        bool full = (i + 1) * KV_TOKENS <= from->token_count;
        error = kv_step(kv);
        if (error == TN_MEM_OK && !tn_block_is_empty(&from->table[i])) {
            error = full ? tn_block_pool_share(kv->pool, &from->table[i], &to->table[i])
                         : kv_take(kv, kv->pool, to->queue, &to->table[i]);
            if (error == TN_MEM_OK && !full)
                write_block(kv, kv->pool, to, &to->table[i], i);
        }
        if (error == TN_MEM_OK && !tn_block_is_empty(&from->window[i])) {
            error = kv_take(kv, kv->window, to->queue, &to->window[i]);
            if (error == TN_MEM_OK)
                write_block(kv, kv->window, to, &to->window[i], i);
            else
                kv_give(kv, kv->pool, to->queue, &to->table[i]);
        }
    }
    if (error != TN_MEM_OK)
        kv_cancel(kv, to);
    return error;
}

void kv_make_holes(kv_cache *kv, kv_sequence *s, size_t first, size_t last)
{
    for (size_t i = first; i < last && i < s->blocks; i++)
        kv_give(kv, kv->pool, s->queue, &s->table[i]);
}

void kv_finish(kv_cache *kv, kv_sequence *s)
{
    for (size_t i = 0; (i + 1) * KV_TOKENS <= s->token_count && !tn_block_is_empty(&s->table[i]); i++)
        kv_keep(kv, kv_hash(s->tokens, (i + 1) * KV_TOKENS), &s->tokens[i * KV_TOKENS], s->queue, &s->table[i]);
    kv_cancel(kv, s);
}

void kv_cancel(kv_cache *kv, kv_sequence *s)
{
    drop_blocks_from(kv, s, 0);
    s->active = false;
}

void kv_block_table(const kv_sequence *s, int32_t *table)
{
    for (size_t i = 0; i < s->blocks; i++)
        table[i] = (int32_t)tn_block_id(&s->table[i]);
}

static size_t count_held(const tn_block *owners, size_t count)
{
    size_t held = 0;
    for (size_t i = 0; i < count; i++)
        held += !tn_block_is_empty(&owners[i]);
    return held;
}

size_t kv_holders(const kv_cache *kv)
{
    size_t held = kv->entry_count;
    for (size_t i = 0; i < KV_SEQUENCES; i++)
        held += count_held(kv->sequences[i].table, KV_TABLE);
    return held;
}

static void check_tokens(tn_block_pool *pool, const tn_block *owner, const int *tokens, size_t count)
{
    if (!tn_block_is_empty(owner))
        must(memcmp(kv_bytes(pool, owner), tokens, count * sizeof *tokens) == 0);
}

void kv_check(kv_cache *kv)
{
    size_t windows = 0;
    for (size_t n = 0; n < KV_SEQUENCES; n++) {
        const kv_sequence *s = &kv->sequences[n];
        windows += count_held(s->window, KV_TABLE);
        must(count_held(s->table + s->blocks, KV_TABLE - s->blocks) == 0);
        for (size_t i = 0; i < s->blocks && i * KV_TOKENS < s->token_count; i++) {
            size_t begin = i * KV_TOKENS, count = s->token_count - begin < KV_TOKENS ? s->token_count - begin : KV_TOKENS;
            check_tokens(kv->pool, &s->table[i], &s->tokens[begin], count);
            check_tokens(kv->window, &s->window[i], &s->tokens[begin], count);
        }
    }
    for (size_t i = 0; i < kv->entry_count; i++) {
        must(!tn_block_is_empty(&kv->entries[i].owner));
        check_tokens(kv->pool, &kv->entries[i].owner, kv->entries[i].tokens, KV_TOKENS);
    }
    tn_block_pool_stats blocks, window;
    tn_block_pool_read_stats(kv->pool, &blocks);
    tn_block_pool_read_stats(kv->window, &window);
    must(blocks.references == kv_holders(kv));
    must(window.references == windows && window.shares == 0);
    must(blocks.bad_handles + window.bad_handles == kv->misuses);
}
