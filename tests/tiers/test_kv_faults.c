/* V5: a request fails or is cancelled at each step of its life in turn, and each acquisition fails in turn: the backend's, the pool's, a
 * share. Whatever came before, the net change of references is zero, nothing of the request is left, and the others hold what they held. */
#include <string.h>

#include "kv_cache.h"

enum { CACHED = 3, TOKENS = 40, AT_MOST = 400 };

static kv_cache kv;
static int prompt[KV_TABLE * KV_TOKENS];
static size_t cancel_after; /* which operation of a life is its last; 0: none */

static tn_block_pool_stats stats_of(tn_block_pool *pool)
{
    tn_block_pool_stats stats;
    tn_block_pool_read_stats(pool, &stats);
    return stats;
}

/* One warmed prefix in the cache, and another request that runs beside all this and shares it. */
static void open_and_warm(const kv_options *options)
{
    kv_open(&kv, options);
    for (int i = 0; i < KV_TABLE * KV_TOKENS; i++)
        prompt[i] = i < CACHED * KV_TOKENS ? i : 100 + i;
    expect_ok(kv_begin(&kv, &kv.sequences[0], 1, prompt, CACHED * KV_TOKENS));
    kv_finish(&kv, &kv.sequences[0]);
    expect_ok(kv_begin(&kv, &kv.sequences[0], 1, prompt, CACHED * KV_TOKENS));
}

static void close_all(void)
{
    for (size_t i = 0; i < KV_SEQUENCES; i++)
        if (kv.sequences[i].active)
            kv_cancel(&kv, &kv.sequences[i]);
    while (kv_evict(&kv))
        ;
    kv_check(&kv);
    ck_assert_uint_eq(stats_of(kv.pool).references + stats_of(kv.window).references, 0);
    kv_close(&kv);
}

/* A request from its prompt to its end: prefix, prefill, decoding, speculation, a fork, holes. Stops at the first error. */
static tn_mem_error live(kv_sequence *one, kv_sequence *other)
{
    size_t done = 0;
    tn_mem_error error = kv_begin(&kv, one, 2, prompt, 5 * KV_TOKENS + 1);
    if (error != TN_MEM_OK || ++done == cancel_after)
        return error;
    for (int i = 0; i < 6; i++) {
        error = kv_append(&kv, one, 50 + i);
        if (error != TN_MEM_OK || ++done == cancel_after)
            return error;
    }
    error = kv_speculate(&kv, one, 9);
    if (error != TN_MEM_OK || ++done == cancel_after)
        return error;
    error = kv_fork(&kv, one, other);
    if (error != TN_MEM_OK || ++done == cancel_after)
        return error;
    kv_make_holes(&kv, one, 1, 3);
    if (++done == cancel_after)
        return error;
    for (int i = 0; i < 5; i++) {
        error = kv_append(&kv, i % 2 == 0 ? one : other, 70 + i);
        if (error != TN_MEM_OK || ++done == cancel_after)
            return error;
    }
    return TN_MEM_OK;
}

/* Lives once and ends by cancellation; whether it got to its end first. All that was held before is held after, by the same. */
static bool live_and_cancel(tn_mem_error *error)
{
    kv_sequence *one = &kv.sequences[1], *other = &kv.sequences[2];
    tn_block_pool_stats before = stats_of(kv.pool), window = stats_of(kv.window);
    kv.step = 0;
    *error = live(one, other);
    kv_check(&kv);
    if (one->active)
        kv_cancel(&kv, one);
    if (other->active)
        kv_cancel(&kv, other);
    tn_block_pool_stats after = stats_of(kv.pool);
    ck_assert_uint_eq(after.references, before.references);
    ck_assert_uint_eq(after.live, before.live);
    ck_assert_uint_eq(after.shares, before.shares);
    ck_assert_uint_eq(stats_of(kv.window).references, window.references);
    ck_assert_uint_eq(kv.entry_count, CACHED);
    kv_check(&kv);
    return *error == TN_MEM_OK;
}

static const kv_options roomy = {.blocks = 40, .window_blocks = 20, .max_shares = 40};

START_TEST(v5_a_failure_at_every_step_leaves_no_reference)
{
    size_t at = 0;
    tn_mem_error error = TN_MEM_OK;
    open_and_warm(&roomy);
    do {
        ck_assert_uint_lt(at, AT_MOST);
        kv.fail_at = ++at;
    } while (!live_and_cancel(&error) && error == TN_MEM_E_DRIVER);
    expect_ok(error);
    ck_assert_uint_gt(at, 40);
    ck_assert_uint_eq(kv.step, at - 1); /* every step there is was failed once */
    kv.fail_at = 0;
    close_all();
}
END_TEST

static bool has_failed_commit(void)
{
    for (size_t i = 0; i < tn_host_journal_length(kv.host); i++) {
        tn_host_entry entry;
        expect_ok(tn_host_journal_entry(kv.host, i, &entry));
        if (entry.op == TN_HOST_COMMIT && entry.error != TN_MEM_OK)
            return true;
    }
    return false;
}

START_TEST(v5_a_failure_of_every_commit_leaves_no_reference)
{
    size_t at = 0, refused = 0;
    bool failed;
    do {
        tn_mem_error error;
        ck_assert_uint_lt(++at, AT_MOST);
        open_and_warm(&roomy); /* anew, for what was committed once is not asked for again */
        for (size_t i = 0; i < CACHED; i++)
            kv.entries[i].pins = 1; /* so that no eviction helps */
        tn_host_fail(kv.host, TN_HOST_COMMIT, at);
        live_and_cancel(&error);
        ck_assert(error == TN_MEM_OK || error == TN_MEM_E_OUT_OF_MEMORY);
        refused += error != TN_MEM_OK; /* where a released block is still waiting, a wait for it makes good the commit */
        failed = has_failed_commit();
        tn_host_fail(kv.host, TN_HOST_COMMIT, 0);
        for (size_t i = 0; i < CACHED; i++)
            kv.entries[i].pins = 0;
        close_all();
    } while (failed);
    ck_assert_uint_gt(at, 8);
    ck_assert_uint_gt(refused, 4);
}
END_TEST

START_TEST(v5_a_failure_of_every_share_leaves_no_reference)
{
    size_t shares = CACHED;
    tn_mem_error error = TN_MEM_OK;
    do {
        open_and_warm(&(kv_options){.blocks = 40, .window_blocks = 20, .max_shares = shares++});
        live_and_cancel(&error);
        ck_assert(error == TN_MEM_OK || error == TN_MEM_E_EXHAUSTED);
        close_all();
    } while (error != TN_MEM_OK && shares < AT_MOST);
    expect_ok(error);
    ck_assert_uint_gt(shares, 2 * CACHED + 4);
}
END_TEST

/* Pools of every size up to one that suffices: exhaustion comes at each acquisition in turn, of either pool. */
START_TEST(v5_exhaustion_at_every_acquisition_leaves_no_reference)
{
    for (int which = 0; which < 2; which++) {
        size_t blocks = which == 0 ? CACHED : KV_WINDOW + 1;
        tn_mem_error error = TN_MEM_OK;
        size_t refused = 0;
        do {
            open_and_warm(which == 0 ? &(kv_options){.blocks = blocks, .window_blocks = 20, .max_shares = 40}
                                     : &(kv_options){.blocks = 40, .window_blocks = blocks, .max_shares = 40});
            for (size_t i = 0; i < CACHED; i++)
                kv.entries[i].pins = 1;
            live_and_cancel(&error);
            ck_assert(error == TN_MEM_OK || error == TN_MEM_E_EXHAUSTED);
            refused += error != TN_MEM_OK;
            for (size_t i = 0; i < CACHED; i++)
                kv.entries[i].pins = 0;
            close_all();
        } while (error != TN_MEM_OK && blocks++ < AT_MOST);
        expect_ok(error);
        ck_assert_uint_ge(refused, which == 0 ? 4 : 2);
    }
}
END_TEST

START_TEST(a_request_cancelled_at_every_point_leaves_nothing_and_gives_nothing_away)
{
    /* The device does nothing by itself: every block of a cancelled request has work on it, and kv_take looks that none is given to a
     * request of another queue before it is done. */
    for (cancel_after = 1; cancel_after < 20; cancel_after++) {
        open_and_warm(&(kv_options){.blocks = 20, .window_blocks = 10, .max_shares = 40});
        tn_mem_error error;
        live_and_cancel(&error);
        expect_ok(error);
        kv_sequence *next = &kv.sequences[3];
        int tokens[14 * KV_TOKENS];
        for (int i = 0; i < 14 * KV_TOKENS; i++)
            tokens[i] = 9000 + i;
        expect_ok(kv_begin(&kv, next, 3, tokens, 14 * KV_TOKENS));
        kv_check(&kv);
        close_all();
    }
    cancel_after = 0;
}
END_TEST

START_TEST(v5_a_failed_load_of_a_persisted_cache_leaves_no_reference)
{
    static kv_saved saved[KV_ENTRIES];
    open_and_warm(&roomy);
    kv_cancel(&kv, &kv.sequences[0]);
    for (int i = 0; i < TOKENS; i++)
        prompt[i] = 3000 + i;
    expect_ok(kv_begin(&kv, &kv.sequences[0], 1, prompt, TOKENS));
    kv_finish(&kv, &kv.sequences[0]);
    size_t count = kv_save(&kv, saved, KV_ENTRIES);
    ck_assert_uint_eq(count, CACHED + TOKENS / KV_TOKENS);
    close_all();
    size_t at = 0;
    tn_mem_error error;
    kv_open(&kv, &roomy);
    do {
        kv.step = 0;
        kv.fail_at = ++at;
        error = kv_load(&kv, saved, count);
        ck_assert_uint_eq(stats_of(kv.pool).references, error == TN_MEM_OK ? count : 0);
        ck_assert_uint_eq(kv.entry_count, error == TN_MEM_OK ? count : 0);
        kv_check(&kv);
    } while (error == TN_MEM_E_DRIVER);
    expect_ok(error);
    ck_assert_uint_eq(at, 2 * count + 1);
    kv.fail_at = 0;
    close_all();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kv_faults");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, v5_a_failure_at_every_step_leaves_no_reference);
    tcase_add_test(tests, v5_a_failure_of_every_commit_leaves_no_reference);
    tcase_add_test(tests, v5_a_failure_of_every_share_leaves_no_reference);
    tcase_add_test(tests, v5_exhaustion_at_every_acquisition_leaves_no_reference);
    tcase_add_test(tests, a_request_cancelled_at_every_point_leaves_nothing_and_gives_nothing_away);
    tcase_add_test(tests, v5_a_failed_load_of_a_persisted_cache_leaves_no_reference);
    return fixture_run("kv_faults", tests);
}
