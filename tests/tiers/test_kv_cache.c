/* The ways of a KV cache, each as a story: two holders of a prefix, pins, holes, a cache that was on disk, a window that is never shared,
 * an end with work still running. */
#include <string.h>

#include "kv_cache.h"

static kv_cache kv;
static int prompt[KV_TABLE * KV_TOKENS];

static void begin(void)
{
    kv_open(&kv, &(kv_options){.blocks = 40, .window_blocks = 24, .max_shares = 64});
    for (int i = 0; i < KV_TABLE * KV_TOKENS; i++)
        prompt[i] = 1000 + i;
}

static void end(void)
{
    for (size_t i = 0; i < KV_SEQUENCES; i++)
        if (kv.sequences[i].active)
            kv_cancel(&kv, &kv.sequences[i]);
    for (size_t i = 0; i < kv.entry_count; i++)
        kv.entries[i].pins = 0;
    while (kv_evict(&kv))
        ;
    kv_check(&kv);
    kv_close(&kv);
}

static tn_block_pool_stats stats_of(tn_block_pool *pool)
{
    tn_block_pool_stats stats;
    tn_block_pool_read_stats(pool, &stats);
    return stats;
}

static size_t references_of(const tn_block *owner)
{
    size_t references = 0;
    expect_ok(tn_block_pool_look(kv.pool, owner, &references));
    return references;
}

/* Runs the prompt once: its first `blocks` blocks are cached, and `entries` are by then. */
static void warm(size_t blocks, size_t entries)
{
    expect_ok(kv_begin(&kv, &kv.sequences[0], 1, prompt, blocks * KV_TOKENS));
    kv_finish(&kv, &kv.sequences[0]);
    device_finish_all();
    ck_assert_uint_eq(kv.entry_count, entries);
    kv_check(&kv);
}

START_TEST(a_prefix_has_the_cache_and_two_requests_as_holders)
{
    warm(4, 4);
    size_t acquires = stats_of(kv.pool).acquires;
    kv_sequence *a = &kv.sequences[0], *b = &kv.sequences[1];
    expect_ok(kv_begin(&kv, a, 1, prompt, 4 * KV_TOKENS));
    expect_ok(kv_begin(&kv, b, 2, prompt, 4 * KV_TOKENS));
    ck_assert_uint_eq(stats_of(kv.pool).acquires, acquires); /* not one block was computed again */
    ck_assert_uint_eq(a->reused + b->reused, 8);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(tn_block_id(&a->table[i]), tn_block_id(&b->table[i]));
        ck_assert_uint_eq(references_of(&a->table[i]), 3);
    }
    while (kv_evict(&kv)) /* the cache lets go: the requests notice nothing */
        kv_check(&kv);
    ck_assert_uint_eq(references_of(&a->table[0]), 2);
    expect_ok(kv_append(&kv, a, 1));
    expect_ok(kv_append(&kv, b, 2));
    ck_assert_uint_ne(tn_block_id(&a->table[4]), tn_block_id(&b->table[4])); /* what they add is their own */
    kv_check(&kv);
    kv_cancel(&kv, a);
    ck_assert_uint_eq(references_of(&b->table[0]), 1);
    kv_check(&kv);
    kv_cancel(&kv, b);
    ck_assert_uint_eq(stats_of(kv.pool).live, 0);
}
END_TEST

START_TEST(a_finished_request_moves_its_references_and_makes_none)
{
    kv_sequence *a = &kv.sequences[0];
    expect_ok(kv_begin(&kv, a, 1, prompt, 5 * KV_TOKENS + 2));
    tn_block_pool_stats before = stats_of(kv.pool);
    ck_assert_uint_eq(before.references, 6);
    kv_finish(&kv, a);
    tn_block_pool_stats after = stats_of(kv.pool);
    ck_assert_uint_eq(after.references, 5); /* the open block is not worth keeping */
    ck_assert_uint_eq(after.high_shares, 0);
    ck_assert_uint_eq(after.high_water, before.high_water);
    /* The same tokens once more: the cache has them, so the second request's own blocks go back. */
    expect_ok(kv_begin(&kv, a, 1, prompt, 5 * KV_TOKENS + 2));
    kv_finish(&kv, a);
    ck_assert_uint_eq(stats_of(kv.pool).references, 5);
    kv_check(&kv);
}
END_TEST

START_TEST(a_block_that_was_evicted_and_handed_on_is_in_no_entry)
{
    warm(24, 24);
    for (int i = 0; i < KV_TABLE * KV_TOKENS; i++)
        prompt[i] += 5000;
    warm(20, 40); /* needs more than what is free: the oldest entries go */
    ck_assert_uint_gt(kv.evictions, 0);
    for (int i = 0; i < KV_TABLE * KV_TOKENS; i++)
        prompt[i] -= 5000;
    size_t hits = kv.hits;
    expect_ok(kv_begin(&kv, &kv.sequences[0], 1, prompt, 10 * KV_TOKENS));
    ck_assert_uint_eq(kv.hits, hits); /* the first blocks went first, and a prefix without its beginning is none */
    kv_check(&kv);
}
END_TEST

START_TEST(a_pin_is_a_policy_and_no_holder)
{
    warm(6, 6);
    tn_block_pool_stats before = stats_of(kv.pool);
    ck_assert_uint_eq(kv_pin(&kv, prompt, 3 * KV_TOKENS, 1), 3);
    ck_assert_uint_eq(kv_pin(&kv, prompt, 2 * KV_TOKENS, 1), 2); /* by two owners */
    tn_block_pool_stats after = stats_of(kv.pool);
    ck_assert_mem_eq(&before, &after, sizeof before);
    while (kv_evict(&kv))
        kv_check(&kv);
    ck_assert_uint_eq(kv.entry_count, 3); /* reclaiming went round the pinned ones */
    ck_assert_uint_eq(stats_of(kv.pool).references, 3);
    ck_assert_uint_eq(kv_pin(&kv, prompt, 3 * KV_TOKENS, -1), 3);
    while (kv_evict(&kv))
        ;
    ck_assert_uint_eq(kv.entry_count, 2); /* the other owner's pins hold */
    ck_assert_uint_eq(kv_pin(&kv, prompt, 2 * KV_TOKENS, -1), 2);
    while (kv_evict(&kv))
        ;
    ck_assert_uint_eq(stats_of(kv.pool).live, 0);
}
END_TEST

START_TEST(a_pool_full_of_pinned_blocks_is_exhausted_and_says_so)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KV_TABLE * KV_TOKENS; i++)
            prompt[i] = 7000 * round + i;
        warm(20, round == 0 ? 20 : 40);
        kv_pin(&kv, prompt, 20 * KV_TOKENS, 1);
    }
    ck_assert_uint_eq(stats_of(kv.pool).live, 40);
    int other[] = {1, 2, 3};
    expect_error(TN_MEM_E_EXHAUSTED, kv_begin(&kv, &kv.sequences[1], 1, other, 3));
    ck_assert(!kv.sequences[1].active);
    ck_assert_uint_eq(kv.evictions, 0);
    kv_check(&kv);
    kv_pin(&kv, prompt, KV_TOKENS, -1);
    expect_ok(kv_begin(&kv, &kv.sequences[1], 1, other, 3));
    ck_assert_uint_eq(kv.evictions, 1);
}
END_TEST

START_TEST(holes_keep_the_positions_of_what_is_behind_them)
{
    kv_sequence *a = &kv.sequences[0];
    int32_t before[KV_TABLE], after[KV_TABLE];
    expect_ok(kv_begin(&kv, a, 1, prompt, 10 * KV_TOKENS));
    kv_block_table(a, before);
    kv_make_holes(&kv, a, 2, 6);
    kv_block_table(a, after);
    ck_assert_uint_eq(a->blocks, 10);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(after[i], i >= 2 && i < 6 ? -1 : before[i]);
    ck_assert_uint_eq(stats_of(kv.pool).references, 6);
    kv_make_holes(&kv, a, 2, 6); /* a hole is not freed again */
    kv_check(&kv);
    for (int i = 0; i < 9; i++)
        expect_ok(kv_append(&kv, a, i));
    kv_block_table(a, after);
    for (int i = 2; i < 6; i++)
        ck_assert_int_eq(after[i], -1);
    ck_assert_int_eq(after[9], before[9]);
    kv_check(&kv);
    kv_finish(&kv, a); /* of a prefix with a hole what lies before it is one */
    ck_assert_uint_eq(kv.entry_count, 2);
    ck_assert_uint_eq(stats_of(kv.pool).live, 2);
}
END_TEST

START_TEST(a_hole_in_one_request_is_none_in_another)
{
    warm(4, 4);
    kv_sequence *a = &kv.sequences[0], *b = &kv.sequences[1];
    expect_ok(kv_begin(&kv, a, 1, prompt, 4 * KV_TOKENS));
    expect_ok(kv_fork(&kv, a, b));
    kv_make_holes(&kv, a, 1, 3);
    ck_assert_uint_eq(references_of(&b->table[1]), 2);
    ck_assert_uint_eq(references_of(&b->table[0]), 3);
    kv_check(&kv);
}
END_TEST

START_TEST(a_persisted_cache_takes_references_when_it_is_loaded)
{
    warm(6, 6);
    static kv_saved saved[KV_ENTRIES];
    size_t count = kv_save(&kv, saved, KV_ENTRIES);
    ck_assert_uint_eq(count, 6);
    end(); /* the process ends; the pools with it */
    begin();
    expect_ok(kv_load(&kv, saved, count));
    ck_assert_uint_eq(stats_of(kv.pool).references, 6);
    expect_ok(kv_load(&kv, saved, count)); /* what is there is not loaded again */
    ck_assert_uint_eq(stats_of(kv.pool).references, 6);
    kv_check(&kv);
    /* A loaded block is nobody's to be handed out: others fill the pool, and the cache's contents stand. */
    kv_pin(&kv, prompt, 6 * KV_TOKENS, 1);
    tn_block rest[40];
    size_t taken = 0;
    for (tn_mem_error error = TN_MEM_OK; error == TN_MEM_OK; taken += error == TN_MEM_OK) {
        rest[taken] = tn_block_none();
        error = tn_block_pool_acquire(kv.pool, TN_WORK_NO_QUEUE, &rest[taken]);
        if (error == TN_MEM_OK)
            memset(kv_bytes(kv.pool, &rest[taken]), 0xEE, KV_STRIDE);
    }
    ck_assert_uint_eq(taken, 34);
    for (size_t i = 0; i < taken; i++)
        expect_ok(tn_block_pool_release(kv.pool, &rest[i], NULL, 0));
    expect_ok(kv_begin(&kv, &kv.sequences[0], 3, prompt, 6 * KV_TOKENS));
    ck_assert_uint_eq(kv.sequences[0].reused, 6);
    ck_assert_uint_eq(references_of(&kv.sequences[0].table[0]), 2);
    kv_check(&kv);
}
END_TEST

START_TEST(a_load_that_does_not_fit_leaves_nothing)
{
    warm(6, 6);
    static kv_saved saved[KV_ENTRIES];
    size_t count = kv_save(&kv, saved, KV_ENTRIES);
    end();
    kv_open(&kv, &(kv_options){.blocks = 4, .window_blocks = 4, .max_shares = 4});
    expect_error(TN_MEM_E_EXHAUSTED, kv_load(&kv, saved, count));
    ck_assert_uint_eq(kv.entry_count, 0);
    ck_assert_uint_eq(stats_of(kv.pool).references, 0);
    expect_ok(kv_load(&kv, saved, 4));
    kv_check(&kv);
}
END_TEST

START_TEST(window_blocks_are_in_a_pool_of_their_own_and_never_shared)
{
    kv_sequence *a = &kv.sequences[0];
    expect_ok(kv_begin(&kv, a, 1, prompt, 5 * KV_TOKENS));
    tn_block *block = &a->table[4], *window = &a->window[4], to = tn_block_none();
    kv.misuses = 3;
    expect_error(TN_MEM_E_NOT_SHARED, tn_block_pool_share(kv.window, window, &to));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_share(kv.pool, window, &to));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_release(kv.pool, window, NULL, 0));
    expect_error(TN_MEM_E_FOREIGN, tn_block_pool_release(kv.window, block, NULL, 0));
    ck_assert(tn_block_is_empty(&to));
    ck_assert_uint_eq(stats_of(kv.pool).references, 5);
    ck_assert_uint_eq(stats_of(kv.window).references, KV_WINDOW);
    for (size_t i = 0; i < 5; i++)
        ck_assert(tn_block_is_empty(&a->window[i]) == (i + KV_WINDOW < 5));
    kv_sequence *b = &kv.sequences[1];
    expect_ok(kv_fork(&kv, a, b));
    ck_assert_uint_eq(tn_block_id(&a->table[4]), tn_block_id(&b->table[4]));
    ck_assert_uint_ne(tn_block_id(&a->window[4]), tn_block_id(&b->window[4]));
    ck_assert_uint_eq(stats_of(kv.window).shares, 0);
    kv_finish(&kv, b);
    kv_finish(&kv, a);
    ck_assert_uint_eq(stats_of(kv.window).references, 0); /* none of them is ever cached */
}
END_TEST

START_TEST(a_request_that_ends_with_its_work_running_gives_no_block_away)
{
    kv_sequence *a = &kv.sequences[0], *b = &kv.sequences[1];
    expect_ok(kv_begin(&kv, a, 1, prompt, 20 * KV_TOKENS));
    kv_cancel(&kv, a); /* nothing of queue 1 is done */
    tn_block_pool_stats stats = stats_of(kv.pool);
    ck_assert_uint_eq(stats.references, 0);
    ck_assert_uint_eq(stats.waiting, 20);
    prompt[0]++;
    expect_ok(kv_begin(&kv, b, 1, prompt, 20 * KV_TOKENS)); /* the same queue needs no wait */
    ck_assert_uint_eq(kv.waits, 0);
    kv_cancel(&kv, b);
    expect_ok(kv_begin(&kv, b, 2, prompt, 20 * KV_TOKENS)); /* another takes what is clean */
    kv_cancel(&kv, b);
    expect_ok(kv_begin(&kv, b, 3, prompt, 22 * KV_TOKENS)); /* and then waits; kv_take looks at each block's work */
    ck_assert_uint_gt(kv.waits, 0);
    kv_check(&kv);
}
END_TEST

START_TEST(an_entrys_work_is_waited_for_when_it_is_evicted)
{
    kv_sequence *a = &kv.sequences[0];
    expect_ok(kv_begin(&kv, a, 1, prompt, 20 * KV_TOKENS));
    kv_finish(&kv, a); /* the references are the cache's, the work on the blocks still runs */
    ck_assert_uint_eq(stats_of(kv.pool).waiting, 0);
    while (kv_evict(&kv))
        ;
    ck_assert_uint_eq(stats_of(kv.pool).waiting, 20);
    device_finish(1, 1000);
    ck_assert_uint_eq(tn_block_pool_collect(kv.pool), 20);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kv_cache");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_prefix_has_the_cache_and_two_requests_as_holders);
    tcase_add_test(tests, a_finished_request_moves_its_references_and_makes_none);
    tcase_add_test(tests, a_block_that_was_evicted_and_handed_on_is_in_no_entry);
    tcase_add_test(tests, a_pin_is_a_policy_and_no_holder);
    tcase_add_test(tests, a_pool_full_of_pinned_blocks_is_exhausted_and_says_so);
    tcase_add_test(tests, holes_keep_the_positions_of_what_is_behind_them);
    tcase_add_test(tests, a_hole_in_one_request_is_none_in_another);
    tcase_add_test(tests, a_persisted_cache_takes_references_when_it_is_loaded);
    tcase_add_test(tests, a_load_that_does_not_fit_leaves_nothing);
    tcase_add_test(tests, window_blocks_are_in_a_pool_of_their_own_and_never_shared);
    tcase_add_test(tests, a_request_that_ends_with_its_work_running_gives_no_block_away);
    tcase_add_test(tests, an_entrys_work_is_waited_for_when_it_is_evicted);
    return fixture_run("kv_cache", tests);
}
