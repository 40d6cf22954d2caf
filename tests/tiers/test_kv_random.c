/* Requests come and go at random over a pool that is too small for them, for many seeds: after each step every block holds its own tokens,
 * every reference has its holder, and no block was handed out with another queue's work on it. A failure prints the seed; TENURE_SEED
 * runs it again. */
#include <string.h>

#include "kv_cache.h"

enum { STEPS = 1500, PROMPTS = 5 };

static kv_cache kv;

/* A few prompts that have beginnings in common. */
static size_t make_prompt(random_state *random, int *tokens)
{
    uint64_t which = random_below(random, PROMPTS);
    size_t count = 1 + random_below(random, 12 * KV_TOKENS), common = 3 * KV_TOKENS * (1 + which % 2);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int)(i < common ? i : 1000 * (which + 1) + i);
    return count;
}

static void step(random_state *random)
{
    kv_sequence *s = &kv.sequences[random_below(random, KV_SEQUENCES)], *other = &kv.sequences[random_below(random, KV_SEQUENCES)];
    int tokens[KV_TABLE * KV_TOKENS];
    size_t count;
    uint64_t what = random_below(random, 100);
    tn_mem_error error = TN_MEM_OK;
    if (random_below(random, 3) == 0)
        device_finish(1 + random_below(random, DEVICE_QUEUES), 1 + random_below(random, 40));
    if (random_below(random, 20) == 0)
        kv.fail_at = kv.step + 1 + random_below(random, 8);
    if (what < 25 && !s->active) {
        count = make_prompt(random, tokens);
        error = kv_begin(&kv, s, 1 + random_below(random, DEVICE_QUEUES), tokens, count);
    } else if (what < 60 && s->active && s->token_count < KV_TABLE * KV_TOKENS) {
        error = kv_append(&kv, s, (int)random_below(random, 4));
    } else if (what < 66 && s->active) {
        error = kv_speculate(&kv, s, random_below(random, 10));
    } else if (what < 72 && s->active && !other->active) {
        error = kv_fork(&kv, s, other);
    } else if (what < 76 && s->active && s->blocks > 4) {
        size_t first = 1 + random_below(random, s->blocks - 3);
        kv_make_holes(&kv, s, first, first + random_below(random, s->blocks - first - 1));
    } else if (what < 82 && s->active) {
        kv_finish(&kv, s);
    } else if (what < 87 && s->active) {
        kv_cancel(&kv, s);
    } else if (what < 90) {
        kv_evict(&kv);
    } else if (what < 93 && kv.entry_count > 0) {
        kv_entry *entry = &kv.entries[random_below(random, kv.entry_count)];
        entry->pins = entry->pins > 0 ? entry->pins - 1 : 1;
    } else if (what < 95) {
        static kv_saved saved[KV_ENTRIES];
        count = kv_save(&kv, saved, 4);
        for (size_t i = 0; i < count; i++)
            if (kv_evict(&kv))
                continue;
        error = kv_load(&kv, saved, count);
    } else if (what < 98) {
        (void)!tn_block_pool_trim(kv.pool);
        (void)!tn_block_pool_trim(kv.window);
    }
    ck_assert_msg(error == TN_MEM_OK || error == TN_MEM_E_EXHAUSTED || error == TN_MEM_E_DRIVER, "%s: %s", tn_mem_error_text(error),
                  kv_where);
    kv_check(&kv);
}

START_TEST(requests_at_random_never_touch_each_others_blocks)
{
    uint64_t seed = fixture_seed(0xCAC4E + (uint64_t)_i);
    random_state random = {seed};
    kv_open(&kv, &(kv_options){.blocks = 36, .window_blocks = 16, .max_shares = 40});
    for (size_t i = 0; i < STEPS; i++) {
        kv_where = fixture_seed_line(seed, i);
        step(&random);
    }
    for (size_t i = 0; i < KV_SEQUENCES; i++)
        if (kv.sequences[i].active)
            kv_cancel(&kv, &kv.sequences[i]);
    for (size_t i = 0; i < kv.entry_count; i++)
        kv.entries[i].pins = 0;
    while (kv_evict(&kv))
        ;
    kv_check(&kv);
    ck_assert_uint_eq(kv_holders(&kv), 0);
    ck_assert_uint_gt(kv.hits, 20);
    ck_assert_uint_gt(kv.evictions, 20);
    ck_assert_uint_gt(kv.waits, 5);
    kv_close(&kv);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kv_random");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, requests_at_random_never_touch_each_others_blocks, 0, 16);
    return fixture_run("kv_random", tests);
}
