/* The ledger under many threads at once, against what a driver promises: an address belongs to one block at a time, and the free of one
 * block ends before the address goes to the next. The number of blocks alive rises and falls, so that the tables grow and shrink under
 * the other threads' feet. Compiled a second time for ThreadSanitizer, with fewer rounds. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "ledger/ledger.h"

#ifdef __SANITIZE_THREAD__
#define ROUNDS 25000
#define BLOCKS 6000u
#else
#define ROUNDS 150000
#define BLOCKS 40000u
#endif
#define THREADS 6

static void begin(void)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* Failures are counted and not asserted: Check's assertions are the main thread's. */
static _Atomic int failures;
static void must(int holds, const char *what)
{
    if (!holds && failures++ < 5)
        fprintf(stderr, "%s\n", what);
}

/* ---- a driver: places of one size class each, which one thread at a time has */

enum { FREE = 0, BUSY, LIVE };
typedef struct place {
    _Atomic int state;
    uint64_t token; /* of the block that lives there; the state's */
} place;
static place places[BLOCKS];

static uint64_t bytes_of(uint64_t p)
{
    return (uint64_t)1 << (9 + p % 13);
}

/* Packed by sizes, so that neighbours share pages of all levels and some lie across two. */
static uint64_t addr_of(uint64_t p)
{
    return ((uint64_t)1 << 40) + (p % 13 << 36) + p / 13 * (bytes_of(p) + 512) + 512;
}

static tn_entry block_at(uint64_t p, uint64_t token)
{
    return (tn_entry){ .addr = addr_of(p), .bytes = bytes_of(p), .backed = ~token, .site = (uint32_t)token, .ctx = 1, .kind = 1, .extra = token,
                       .tsc = token ^ addr_of(p) };
}

static int is_whole(const tn_entry *e)
{
    return e->backed == ~e->extra && e->site == (uint32_t)e->extra && e->tsc == (e->extra ^ e->addr);
}

typedef struct worker {
    pthread_t thread;
    uint64_t number, random;
} worker;

/* Sometimes more blocks come than go, sometimes fewer. */
static int is_rising(int round)
{
    return round / (ROUNDS / 10) % 2 == 0;
}

static void free_place(uint64_t p, uint64_t *random)
{
    uint64_t token = places[p].token;
    tn_entry e;
    memset(&e, 0, sizeof e);
    must(tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), &e) == 1, "a live block is not there to be freed");
    must(e.extra == token && is_whole(&e), "another block was freed");
    if (next(random) % 16 == 0) { /* the driver refuses */
        e = block_at(p, token);
        must(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL) == 0, "a refused free does not come back");
        atomic_store(&places[p].state, LIVE);
        return;
    }
    must(tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), &e) == 0, "a freed block is freed again");
    atomic_store(&places[p].state, FREE); /* at once another thread's */
}

static void look_at(uint64_t p, uint64_t *random)
{
    uint64_t token = places[p].token;
    tn_entry e;
    memset(&e, 0, sizeof e);
    must(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p), &e) == 1 && e.extra == token, "a live block is not found by its start");
    must(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p) + next(random) % bytes_of(p), &e) == 1 && e.extra == token && is_whole(&e),
         "a live block is not found inside");
    (void)tn_ledger_mark_write(addr_of(p) + 1, 1 + (uint8_t)(token % 3), NULL);
    must(tn_ledger_mark_write(addr_of(p), 1, NULL) == 0, "a block is written for the first time twice");
    atomic_store(&places[p].state, LIVE);
}

static void *use_driver(void *arg)
{
    worker *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p = next(&w->random) % BLOCKS;
        int expected = is_rising(round) || next(&w->random) % 4 == 0 ? FREE : LIVE;
        if (atomic_compare_exchange_strong(&places[p].state, &expected, BUSY)) {
            if (expected == FREE) {
                tn_entry e;
                places[p].token = next(&w->random);
                e = block_at(p, places[p].token);
                must(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL) == 0, "a block was there before");
                atomic_store(&places[p].state, LIVE);
            } else if (next(&w->random) % 4 == 0) {
                look_at(p, &w->random);
            } else {
                free_place(p, &w->random);
            }
        } else { /* somebody else's: whatever is found is whole */
            tn_entry e;
            uint64_t addr = addr_of(p) + next(&w->random) % bytes_of(p);
            if (tn_ledger_find(TN_SPACE_ADDRESS, addr, &e))
                must(is_whole(&e) && addr >= e.addr && addr - e.addr < e.bytes, "an entry is of two blocks");
        }
    }
    return NULL;
}

static void run_all(void *(*work)(void *), worker *workers, int n)
{
    for (int i = 0; i < n; i++) {
        workers[i].number = (uint64_t)i;
        workers[i].random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1) ^ (uint64_t)getpid();
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    ck_assert_int_eq(failures, 0);
}

START_TEST(addresses_pass_from_thread_to_thread)
{
    worker workers[THREADS];
    size_t live = 0;
    run_all(use_driver, workers, THREADS);
    for (uint64_t p = 0; p < BLOCKS; p++) {
        tn_entry e;
        int is_live = places[p].state == LIVE;
        live += (size_t)is_live;
        ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p), &e), is_live);
        if (is_live)
            ck_assert_uint_eq(e.extra, places[p].token);
    }
    ck_assert_uint_eq(tn_ledger_count(), live);
    for (uint64_t p = 0; p < BLOCKS; p++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), NULL), places[p].state == LIVE);
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

/* ---- one block, many frees */

static _Atomic uint32_t freed_by[BLOCKS];
static pthread_barrier_t barrier;

static void *free_all(void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++) {
        pthread_barrier_wait(&barrier);
        for (uint64_t p = 0; p < BLOCKS; p++) {
            tn_entry e;
            if (!tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), &e))
                continue;
            freed_by[p]++;
            must(e.extra == p * 3 + (uint64_t)round && is_whole(&e), "another block was freed");
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

START_TEST(of_many_frees_of_one_block_one_gets_it)
{
    worker workers[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, free_all, &workers[i]), 0);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t p = 0; p < BLOCKS; p++) {
            tn_entry e = block_at(p, p * 3 + round);
            ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
            freed_by[p] = 0;
        }
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (uint64_t p = 0; p < BLOCKS; p++)
            ck_assert_uint_eq(freed_by[p], 1);
        ck_assert_uint_eq(tn_ledger_count(), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    ck_assert_int_eq(failures, 0);
}
END_TEST

/* ---- blocks that stay, while the tables are rebuilt again and again */

#define STAY 500u
static _Atomic int done;

static void *watch(void *arg)
{
    worker *w = arg;
    while (!done) {
        uint64_t p = next(&w->random) % STAY;
        tn_entry e;
        must(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p), &e) == 1 && e.extra == p, "a block that stays is not found by its start");
        must(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p) + bytes_of(p) - 1, &e) == 1 && e.extra == p, "a block that stays is not found inside");
        must(tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p) + bytes_of(p), &e) == 0, "a block is found beyond its end");
    }
    return NULL;
}

static void *rise_and_fall(void *arg)
{
    worker *w = arg;
    for (int round = 0; round < 8; round++) {
        for (uint64_t p = STAY + w->number; p < BLOCKS; p += 2) {
            tn_entry e = block_at(p, p);
            must(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL) == 0, "a block was there before");
        }
        for (uint64_t p = STAY + w->number; p < BLOCKS; p += 2)
            must(tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), NULL) == 1, "a block is gone");
    }
    return NULL;
}

START_TEST(no_look_up_misses_a_block_that_is_moved)
{
    worker watchers[3], movers[2];
    done = 0;
    for (uint64_t p = 0; p < STAY; p++) {
        tn_entry e = block_at(p, p);
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        watchers[i].random = 88172645463325252u + (uint64_t)i;
        ck_assert_int_eq(pthread_create(&watchers[i].thread, NULL, watch, &watchers[i]), 0);
    }
    run_all(rise_and_fall, movers, 2);
    done = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(watchers[i].thread, NULL);
    ck_assert_int_eq(failures, 0);
    ck_assert_uint_eq(tn_ledger_count(), STAY);
}
END_TEST

/* ---- frees against a sweep */

static _Atomic uint32_t swept[BLOCKS], removed[BLOCKS];

static uint64_t place_of(const tn_entry *e)
{
    return e->extra;
}

static int is_odd(const tn_entry *e, void *arg)
{
    (void)arg;
    return e->extra % 2;
}

static void count_swept(const tn_entry *e, void *arg)
{
    (void)arg;
    must(is_whole(e), "a swept entry is of two blocks");
    swept[place_of(e)]++;
}

static void *remove_all(void *arg)
{
    worker *w = arg;
    for (uint64_t p = w->number; p < BLOCKS; p += 3) {
        tn_entry e;
        if (tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(BLOCKS - 1 - p), &e))
            removed[place_of(&e)]++;
    }
    return NULL;
}

START_TEST(a_block_is_swept_or_freed_once)
{
    worker workers[3];
    for (uint64_t p = 0; p < BLOCKS; p++) {
        tn_entry e = block_at(p, p);
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        workers[i].number = (uint64_t)i;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, remove_all, &workers[i]), 0);
    }
    for (int i = 0; i < 20; i++)
        tn_ledger_sweep(is_odd, count_swept, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i].thread, NULL);
    ck_assert_int_eq(failures, 0);
    for (uint64_t p = 0; p < BLOCKS; p++)
        ck_assert_uint_eq(swept[p] + removed[p], 1);
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

/* ---- signal handlers and forks in the middle */

static _Atomic int looks, wrong_looks;

static void handler(int signal)
{
    (void)signal;
    tn_entry e;
    uint64_t p = (uint64_t)looks++ % STAY;
    if (!tn_ledger_find(TN_SPACE_ADDRESS, addr_of(p) + bytes_of(p) / 2, &e) || e.extra != p)
        wrong_looks++;
}

START_TEST(a_signal_handler_may_look_up)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    for (uint64_t p = 0; p < STAY; p++) {
        tn_entry e = block_at(p, p);
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
    }
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; round < 20 || looks < 200; round++) {
        for (uint64_t p = STAY; p < BLOCKS; p++) {
            tn_entry e = block_at(p, p);
            ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
        }
        for (uint64_t p = STAY; p < BLOCKS; p++)
            ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, addr_of(p), NULL), 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_eq(wrong_looks, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ledger_threads");
    TCase *c = tcase_create("ledger_threads");
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_set_timeout(c, 240);
    tcase_add_test(c, addresses_pass_from_thread_to_thread);
    tcase_add_test(c, of_many_frees_of_one_block_one_gets_it);
    tcase_add_test(c, no_look_up_misses_a_block_that_is_moved);
    tcase_add_test(c, a_block_is_swept_or_freed_once);
    tcase_add_test(c, a_signal_handler_may_look_up);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
