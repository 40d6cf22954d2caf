#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/callsite_tables.h"
#include "tests/callsite/mock_journal.h"

static void put(uint64_t epoch, uint64_t hash, const uint64_t *frames, int n, uint32_t value)
{
    tn_tables_lock();
    tn_rawcache_insert(epoch, hash, frames, n, value);
    tn_tables_unlock();
}

/* Equal hashes must not merge chains: the whole chain is compared, its length too. */
START_TEST(equal_hashes_stay_apart)
{
    uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 }, epoch = tn_epoch();
    uint32_t v = 0;
    put(epoch, 7, a, 3, 10);
    ck_assert_int_eq(tn_rawcache_find(epoch, 7, b, 3, &v), 0);
    ck_assert_int_eq(tn_rawcache_find(epoch, 7, a, 2, &v), 0);
    put(epoch, 7, b, 3, 11);
    put(epoch, 7, a, 2, 12);
    ck_assert_int_eq(tn_rawcache_find(epoch, 7, a, 3, &v), 1);
    ck_assert_uint_eq(v, 10);
    ck_assert_int_eq(tn_rawcache_find(epoch, 7, b, 3, &v), 1);
    ck_assert_uint_eq(v, 11);
    ck_assert_int_eq(tn_rawcache_find(epoch, 7, a, 2, &v), 1);
    ck_assert_uint_eq(v, 12);
}
END_TEST

START_TEST(closed_while_a_dlclose_runs_and_empty_afterwards)
{
    uint64_t a[] = { 1, 2, 3 }, before = tn_epoch();
    uint32_t v = 0;
    put(before, 7, a, 3, 10);
    tn_epoch_dlclose_begin();
    tn_epoch_dlclose_begin();
    uint64_t during = tn_epoch();
    ck_assert_int_eq(tn_epoch_idle(during), 0);
    ck_assert_int_eq(tn_rawcache_find(before, 7, a, 3, &v), 0);
    ck_assert_int_eq(tn_rawcache_find(during, 7, a, 3, &v), 0);
    put(during, 7, a, 3, 11);
    tn_epoch_dlclose_end();
    ck_assert_int_eq(tn_epoch_idle(tn_epoch()), 0);
    tn_epoch_dlclose_end();
    uint64_t after = tn_epoch();
    ck_assert_int_eq(tn_epoch_idle(after), 1);
    ck_assert_uint_ne(before, after);
    ck_assert_int_eq(tn_rawcache_find(after, 7, a, 3, &v), 0);
    put(before, 7, a, 3, 12); /* found out before the dlclose: too late */
    ck_assert_int_eq(tn_rawcache_find(after, 7, a, 3, &v), 0);
    put(after, 7, a, 3, 13);
    ck_assert_int_eq(tn_rawcache_find(after, 7, a, 3, &v), 1);
    ck_assert_uint_eq(v, 13);
    ck_assert_int_eq(tn_rawcache_find(before, 7, a, 3, &v), 0);
}
END_TEST

START_TEST(ten_thousand_chains_grow_the_table)
{
    uint64_t epoch = tn_epoch(), f[16];
    uint32_t v = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        for (int k = 0; k < 16; k++)
            f[k] = 0x7f0000000000u + i * 16u + (uint64_t)k * 4096u;
        put(epoch, tn_rawcache_hash(f, 16), f, 16, i + 2);
    }
    for (uint32_t i = 0; i < 10000; i++) {
        for (int k = 0; k < 16; k++)
            f[k] = 0x7f0000000000u + i * 16u + (uint64_t)k * 4096u;
        ck_assert_int_eq(tn_rawcache_find(epoch, tn_rawcache_hash(f, 16), f, 16, &v), 1);
        ck_assert_uint_eq(v, i + 2);
    }
}
END_TEST

/* A host that brings ever new chains does not take ever more memory. */
START_TEST(a_full_cache_starts_again)
{
    uint64_t first = tn_epoch();
    uint32_t v;
    for (uint64_t i = 1; i <= 140000; i++)
        put(tn_epoch(), tn_rawcache_hash(&i, 1), &i, 1, 5);
    ck_assert_uint_ne(tn_epoch(), first);
    uint64_t last = 140000, early = 1;
    ck_assert_int_eq(tn_rawcache_find(tn_epoch(), tn_rawcache_hash(&last, 1), &last, 1, &v), 1);
    ck_assert_int_eq(tn_rawcache_find(tn_epoch(), tn_rawcache_hash(&early, 1), &early, 1, &v), 0);
}
END_TEST

/* Readers race with insertions and with new generations, in which every chain has another value: what they are given must be the value of the
 * epoch they asked for. */
static int stop;

static void chain_of(uint64_t i, uint64_t *f)
{
    for (uint64_t k = 0; k < 8; k++)
        f[k] = i * 8 + k;
}

static void *read_along(void *arg)
{
    long *wrong = arg;
    uint64_t f[8];
    uint32_t v;
    for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        chain_of(i % 500, f);
        uint64_t epoch = tn_epoch();
        if (tn_rawcache_find(epoch, tn_rawcache_hash(f, 8), f, 8, &v) && v != (uint32_t)(epoch >> 16) * 1000 + i % 500)
            ++*wrong;
    }
    return NULL;
}

START_TEST(readers_race_with_generations)
{
    pthread_t threads[3];
    long wrong[3] = { 0 };
    for (int t = 0; t < 3; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_along, &wrong[t]), 0);
    for (int round = 0; round < 2000; round++) {
        uint64_t epoch = tn_epoch(), f[8];
        for (uint64_t i = 0; i < 500; i++) {
            uint64_t j = (i * 7 + (uint64_t)round) % 500; /* other entries take each place */
            chain_of(j, f);
            put(epoch, tn_rawcache_hash(f, 8), f, 8, (uint32_t)((uint32_t)(epoch >> 16) * 1000 + j));
        }
        tn_epoch_dlclose_begin();
        tn_epoch_dlclose_end();
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int t = 0; t < 3; t++) {
        pthread_join(threads[t], NULL);
        ck_assert_int_eq(wrong[t], 0);
    }
}
END_TEST

START_TEST(sites_with_equal_keys_stay_apart)
{
    tn_site_frame a = { 1, 1, 16 }, b = { 1, 1, 32 }, elsewhere = { 1, 9, 16 };
    tn_tables_lock();
    uint32_t first = tn_site_intern(mock_journal(), 42, &a, 1, 0, 0), second = tn_site_intern(mock_journal(), 42, &b, 1, 0, 0);
    uint32_t same = tn_site_intern(mock_journal(), 42, &elsewhere, 1, 0, 0);
    tn_tables_unlock();
    ck_assert_uint_eq(first, TN_SITE_FIRST);
    ck_assert_uint_eq(second, TN_SITE_FIRST + 1);
    ck_assert_uint_eq(same, first);
    ck_assert_int_eq(mock_site_count, 2);
}
END_TEST

START_TEST(ten_thousand_sites)
{
    tn_site_frame f[2] = { { 1, 1, 0 }, { 2, 2, 7 } };
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < 10000; i++) {
            f[0].offset = i;
            tn_tables_lock();
            uint32_t id = tn_site_intern(mock_journal(), i * 0x9e3779b97f4a7c15u, f, 2, 3, 0);
            tn_tables_unlock();
            ck_assert_uint_eq(id, TN_SITE_FIRST + i);
        }
    ck_assert_int_eq(mock_site_count, 10000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("callsite tables");
    TCase *t = tcase_create("tables");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, equal_hashes_stay_apart);
    tcase_add_test(t, closed_while_a_dlclose_runs_and_empty_afterwards);
    tcase_add_test(t, ten_thousand_chains_grow_the_table);
    tcase_add_test(t, a_full_cache_starts_again);
    tcase_add_test(t, readers_race_with_generations);
    tcase_add_test(t, sites_with_equal_keys_stay_apart);
    tcase_add_test(t, ten_thousand_sites);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
