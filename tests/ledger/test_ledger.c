/* The ledger against a model that is too simple to be wrong: an array that is searched from end to end. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ledger/journal_format.h"
#include "ledger/ledger.h"

static void begin(void)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
    ck_assert_uint_eq(tn_ledger_count(), 0);
}

static uint64_t random_state = 1;
static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du;
}

static tn_entry block(uint64_t addr, uint64_t bytes)
{
    return (tn_entry){ .addr = addr, .bytes = bytes, .backed = bytes + 1, .site = (uint32_t)addr, .ctx = 3, .stream = 4,
                       .kind = 5, .device = 1, .phase = 2, .extra = ~addr, .tsc = addr ^ bytes };
}

static void insert(tn_space space, uint64_t addr, uint64_t bytes)
{
    tn_entry e = block(addr, bytes);
    ck_assert_int_eq(tn_ledger_insert(space, &e, NULL), 0);
}

static void ck_same(const tn_entry *e, uint64_t addr, uint64_t bytes)
{
    tn_entry expected = block(addr, bytes);
    ck_assert_uint_eq(e->addr, addr);
    ck_assert_uint_eq(e->bytes, bytes);
    ck_assert_uint_eq(e->backed, expected.backed);
    ck_assert_uint_eq(e->site, expected.site);
    ck_assert_uint_eq(e->ctx, 3);
    ck_assert_uint_eq(e->stream, 4);
    ck_assert_uint_eq(e->kind, 5);
    ck_assert_uint_eq(e->device, 1);
    ck_assert_uint_eq(e->phase, 2);
    ck_assert_uint_eq(e->extra, expected.extra);
    ck_assert_uint_eq(e->tsc, expected.tsc);
}

/* Sizes at and around each power of two, at aligned and odd places: each block is found from its first to its
 * last byte and not beyond, whichever level and however many pages it has. */
START_TEST(every_size_is_found_from_end_to_end)
{
    uint64_t offsets[] = { 0, 1, 255, 4096, 0x1ff, ((uint64_t)1 << 21) - 100, ((uint64_t)1 << 30) - 4096 };
    for (unsigned bit = 0; bit < 46; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t bytes = ((uint64_t)1 << bit) + (uint64_t)delta;
            for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
                uint64_t addr = ((uint64_t)1 << 46) + offsets[i];
                uint64_t last = addr + (bytes == 0 ? 0 : bytes - 1);
                tn_entry e;
                insert(TN_SPACE_ADDRESS, addr, bytes);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr, &e), 1);
                ck_same(&e, addr, bytes);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, last, &e), 1);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr + bytes / 2, &e), 1);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, last + 1, &e), 0);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr - 1, &e), 0);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_MAPPING, addr, &e), 0);
                if (bytes > 1)
                    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, last, &e), 0);
                ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, addr, &e), 1);
                ck_same(&e, addr, bytes);
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr, &e), 0);
                ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, addr, &e), 0);
            }
        }
    }
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

START_TEST(the_ends_of_the_address_space)
{
    tn_entry e;
    insert(TN_SPACE_ADDRESS, 0, UINT64_MAX);
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, UINT64_MAX - 1, &e), 1);
    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0, &e), 1);
    insert(TN_SPACE_ADDRESS, UINT64_MAX - 10, 1000); /* a nonsensical size must do no harm */
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, UINT64_MAX, &e), 1);
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, 5, &e), 0);
    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, UINT64_MAX - 10, NULL), 1);
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

START_TEST(handles_are_not_ranges)
{
    tn_entry e;
    /* Handles 1, 2, 3 of 2 MiB each: numbers beside each other. */
    for (uint64_t h = 1; h <= 3000; h++)
        insert(h % 2 ? TN_SPACE_VMM_HANDLE : TN_SPACE_ARRAY, h, (uint64_t)2 << 20);
    for (uint64_t h = 1; h <= 3000; h++) {
        ck_assert_int_eq(tn_ledger_find(h % 2 ? TN_SPACE_VMM_HANDLE : TN_SPACE_ARRAY, h, &e), 1);
        ck_assert_uint_eq(e.addr, h);
        ck_assert_int_eq(tn_ledger_find(h % 2 ? TN_SPACE_ARRAY : TN_SPACE_VMM_HANDLE, h, &e), 0);
    }
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_VMM_HANDLE, 3001, &e), 0);
    ck_assert_uint_eq(tn_ledger_count(), 3000);
}
END_TEST

START_TEST(a_start_seen_again_replaces)
{
    tn_entry e = block(0x10000, 512), old;
    ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, &old), 0);
    e = block(0x10000, (uint64_t)1 << 32); /* on another level */
    ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, &old), 1);
    ck_same(&old, 0x10000, 512);
    e = block(0x10000, 100);
    ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 1);
    ck_assert_uint_eq(tn_ledger_count(), 1);
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, 0x10000 + 100, NULL), 0);
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, 0x10000 + 99, NULL), 1);
}
END_TEST

START_TEST(the_first_write_is_told_once)
{
    tn_entry e;
    insert(TN_SPACE_ADDRESS, 0x7000000, 1000000);
    ck_assert_int_eq(tn_ledger_mark_write(0x6ffffff, 1, &e), 0);
    ck_assert_int_eq(tn_ledger_mark_write(0x7000000 + 999999, 2, &e), 1);
    ck_assert_uint_eq(e.addr, 0x7000000);
    ck_assert_uint_eq(e.first_write, 2);
    ck_assert_int_eq(tn_ledger_mark_write(0x7000000, 1, &e), 0);
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, 0x7000000, &e), 1);
    ck_assert_uint_eq(e.first_write, 2);
    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x7000000, &e), 1);
    ck_assert_uint_eq(e.first_write, 2);
    insert(TN_SPACE_ADDRESS, 0x7000000, 1000000);
    ck_assert_int_eq(tn_ledger_mark_write(0x7000000, 1, NULL), 1);

    /* Mapped memory is no block; its mapping is told instead, and only where there is no block. */
    insert(TN_SPACE_MAPPING, 0x9000000, 4096);
    ck_assert_int_eq(tn_ledger_mark_write(0x9000010, 1, &e), 1);
    ck_assert_uint_eq(e.addr, 0x9000000);
    ck_assert_int_eq(tn_ledger_mark_write(0x9000020, 1, &e), 0);
    insert(TN_SPACE_MAPPING, 0x7000000, 4096);
    ck_assert_int_eq(tn_ledger_mark_write(0x7000000, 1, &e), 0);
    insert(TN_SPACE_RESERVATION, 0xa000000, 4096);
    ck_assert_int_eq(tn_ledger_mark_write(0xa000000, 1, &e), 0);
}
END_TEST

/* The model: blocks that do not overlap, in the order they came. */
enum { MODEL_MAX = 600 };
static struct { uint64_t addr, bytes; uint8_t write; } model[MODEL_MAX];
static int model_count;

static int model_find(uint64_t addr)
{
    for (int i = 0; i < model_count; i++)
        if (addr >= model[i].addr && addr - model[i].addr < (model[i].bytes ? model[i].bytes : 1))
            return i;
    return -1;
}

static int model_overlaps(uint64_t addr, uint64_t bytes)
{
    for (int i = 0; i < model_count; i++)
        if (addr <= model[i].addr + model[i].bytes && model[i].addr <= addr + bytes)
            return 1;
    return 0;
}

START_TEST(random_operations_agree_with_the_model)
{
    random_state = (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)random_state);
    model_count = 0;
    for (int step = 0; step < 400000; step++) {
        uint64_t what = next_random() % 100;
        tn_entry e;
        if (what < 30 && model_count < MODEL_MAX) {
            uint64_t bytes = next_random() >> (24 + next_random() % 40);
            uint64_t addr = 0x100000 + next_random() % ((uint64_t)1 << (12 + next_random() % 32));
            if (next_random() % 2)
                addr &= ~(uint64_t)511;
            if (model_overlaps(addr, bytes))
                continue;
            insert(TN_SPACE_ADDRESS, addr, bytes);
            model[model_count].addr = addr;
            model[model_count].bytes = bytes;
            model[model_count++].write = 0;
        } else if (what < 55 && model_count > 0) {
            int i = (int)(next_random() % (uint64_t)model_count);
            ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, model[i].addr, &e), 1);
            ck_same(&e, model[i].addr, model[i].bytes);
            ck_assert_uint_eq(e.first_write, model[i].write);
            model[i] = model[--model_count];
        } else if (model_count > 0) {
            int i = (int)(next_random() % (uint64_t)model_count);
            uint64_t addr = model[i].addr + next_random() % (model[i].bytes + 2) - 1 + (what == 99 ? next_random() >> 30 : 0);
            int expected = model_find(addr);
            if (what < 85) {
                ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, addr, &e), expected >= 0);
            } else {
                int first = expected >= 0 && model[expected].write == 0;
                ck_assert_int_eq(tn_ledger_mark_write(addr, 3, &e), first);
                if (!first)
                    continue;
                model[expected].write = 3;
            }
            if (expected >= 0) {
                ck_same(&e, model[expected].addr, model[expected].bytes);
                ck_assert_uint_eq(e.first_write, model[expected].write);
            }
        }
        ck_assert_uint_eq(tn_ledger_count(), (size_t)model_count);
    }
    for (int i = 0; i < model_count; i++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, model[i].addr, NULL), 1);
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

/* Of a block that is found is kept what tells whether it is still that one, written or not. */
START_TEST(a_block_that_was_found_is_known_until_it_changes)
{
    tn_entry e;
    tn_written w = {0}, none = {0};
    insert(TN_SPACE_ADDRESS, 0x40000, 1000);
    ck_assert_int_eq(tn_ledger_is_written(&none, 0x40000), 0);
    ck_assert_int_eq(tn_ledger_find_at(TN_SPACE_ADDRESS, 0x40000 + 1000, &e, &w), 0);
    ck_assert_int_eq(tn_ledger_find_at(TN_SPACE_ADDRESS, 0x40000 + 999, &e, &w), 1);
    ck_same(&e, 0x40000, 1000);
    ck_assert_uint_eq(w.start, 0x40000);
    ck_assert_uint_eq(w.bytes, 1000);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000), 1);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000 + 999), 1);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000 + 1000), 0);
    ck_assert_int_eq(tn_ledger_mark_write(0x40000, TN_WRITE_H2D, &e), 1);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000), 0); /* to be found again, as one that is written */
    ck_assert_int_eq(tn_ledger_find_at(TN_SPACE_ADDRESS, 0x40000, &e, &w), 1);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000), 1);
    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x40000, NULL), 1);
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000), 0);
    insert(TN_SPACE_ADDRESS, 0x40000, 1000); /* in the same place, and another life */
    ck_assert_int_eq(tn_ledger_is_written(&w, 0x40000), 0);
    ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x40000, NULL), 1);
}
END_TEST

static int odd_context(const tn_entry *e, void *arg)
{
    (void)arg;
    return e->ctx == 7;
}

static void count_gone(const tn_entry *e, void *arg)
{
    ck_assert_uint_eq(e->ctx, 7);
    /* No lock is held: the ledger may be used. */
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, e->addr, NULL), 0);
    ++*(int *)arg;
}

START_TEST(a_sweep_takes_all_of_a_context_and_nothing_else)
{
    enum { BLOCKS = 60000 };
    uint64_t addr = (uint64_t)1 << 40;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        tn_entry e = block(addr, 1 + next_random() % ((uint64_t)1 << (9 + i % 14)));
        e.ctx = i % 3 == 0 ? 7 : 8;
        ck_assert_int_eq(tn_ledger_insert(i % 10 == 0 ? TN_SPACE_MAPPING : TN_SPACE_ADDRESS, &e, NULL), 0);
        addr += (e.bytes + 511) & ~(uint64_t)511;
    }
    int gone = 0;
    tn_ledger_sweep(odd_context, count_gone, &gone);
    ck_assert_int_eq(gone, BLOCKS / 3);
    ck_assert_uint_eq(tn_ledger_count(), BLOCKS - BLOCKS / 3);
    tn_ledger_sweep(odd_context, NULL, NULL);
    ck_assert_uint_eq(tn_ledger_count(), BLOCKS - BLOCKS / 3);
}
END_TEST

static long resident_pages(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_int_eq(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return resident;
}

/* A sanitizer's own memory is counted with the process's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOW_MEMORY 1
#else
#define SHADOW_MEMORY 0
#endif

START_TEST(memory_follows_the_number_of_blocks)
{
    enum { BLOCKS = 300000 };
    long before = resident_pages();
    for (uint64_t i = 0; i < BLOCKS; i++)
        insert(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, 700);
    long full = resident_pages();
    ck_assert_int_le((full - before) * 4096 / BLOCKS, 200); /* bytes a block */
    for (uint64_t i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, NULL), 1);
    ck_assert_int_le((resident_pages() - before) * 4096, 8 << 20);
    /* Coming and going for long costs no memory either. */
    long idle = resident_pages();
    for (uint64_t i = 0; i < BLOCKS; i++) {
        insert(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, 700);
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, NULL), 1);
    }
    ck_assert_int_le((resident_pages() - idle) * 4096, 1 << 20);
}
END_TEST

typedef struct worker_arg {
    uint64_t base, seed;
    int failures, rounds;
} worker_arg;

/* Each worker owns every eighth place of one dense range, so neighbours share pages, shards and slabs. */
static void *worker(void *p)
{
    worker_arg *a = p;
    enum { PLACES = 400 };
    uint64_t place_bytes = 3000, sizes[PLACES] = { 0 }, seed = a->seed;
    for (int i = 0; i < a->rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(seed >> 33) % PLACES;
        uint64_t addr = 0x40000000 + (k * 8 + a->base) * place_bytes;
        tn_entry e;
        if (sizes[k] == 0) {
            sizes[k] = 1 + (seed >> 20) % place_bytes;
            e = block(addr, sizes[k]);
            a->failures += tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL) != 0;
        } else if (i % 3 == 0) {
            a->failures += !tn_ledger_remove(TN_SPACE_ADDRESS, addr, &e) || e.bytes != sizes[k];
            sizes[k] = 0;
        } else {
            a->failures += !tn_ledger_find(TN_SPACE_ADDRESS, addr + sizes[k] - 1, &e) || e.addr != addr || e.extra != ~addr;
            a->failures += tn_ledger_find(TN_SPACE_ADDRESS, addr + place_bytes - 1, &e) && e.addr != addr;
            /* Somebody else's: whatever it says, it must be whole. */
            uint64_t other = addr + place_bytes * ((seed >> 50) % 8);
            if (tn_ledger_find(TN_SPACE_ADDRESS, other, &e))
                a->failures += e.extra != ~e.addr || e.tsc != (e.addr ^ e.bytes);
            (void)tn_ledger_mark_write(other, (uint8_t)(1 + a->base % 4), NULL);
        }
    }
    for (unsigned k = 0; k < PLACES; k++)
        if (sizes[k] != 0)
            a->failures += !tn_ledger_remove(TN_SPACE_ADDRESS, 0x40000000 + (k * 8 + a->base) * place_bytes, NULL);
    return NULL;
}

static int drop_none(const tn_entry *e, void *arg)
{
    (void)arg;
    return e->kind == 200;
}

/* A race is found by the order of two accesses, not by their number, and each costs twenty times as much then. */
#ifdef __SANITIZE_THREAD__
enum { ROUNDS = 50000 };
#else
enum { ROUNDS = 200000 };
#endif

START_TEST(eight_threads_at_once)
{
    pthread_t threads[8];
    worker_arg args[8];
    for (uint64_t i = 0; i < 8; i++) {
        args[i] = (worker_arg){ .base = i, .seed = i * 77 + 5, .rounds = ROUNDS };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, &args[i]), 0);
    }
    for (int i = 0; i < 20; i++)
        tn_ledger_sweep(drop_none, NULL, NULL);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(args[i].failures, 0);
    }
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

static _Atomic int first_writers;
static void *first_writer(void *p)
{
    for (uint64_t i = 0; i < 20000; i++)
        first_writers += tn_ledger_mark_write(0x50000000 + i * 4096 + (uint64_t)(uintptr_t)p, 1, NULL);
    return NULL;
}

START_TEST(one_of_several_threads_is_the_first_writer)
{
    pthread_t threads[4];
    for (uint64_t i = 0; i < 20000; i++)
        insert(TN_SPACE_ADDRESS, 0x50000000 + i * 4096 + 100, 4000); /* across a page: reached by two shards */
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, first_writer, (void *)(100 + i * 1200));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(first_writers, 20000);
}
END_TEST

START_TEST(errno_is_left_alone)
{
    errno = 77;
    for (uint64_t i = 0; i < 5000; i++)
        insert(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, 700);
    for (uint64_t i = 0; i < 5000; i++)
        tn_ledger_remove(TN_SPACE_ADDRESS, 0x10000000 + i * 1024, NULL);
    ck_assert_int_eq(errno, 77);
}
END_TEST

/* The node of a removed block waits for its return: with the same bytes, others, or in another space. */
START_TEST(a_block_that_comes_again_is_a_new_one)
{
    const uint64_t at = 0x7f0000040000;
    for (unsigned round = 0; round < 64; round++) {
        uint64_t bytes = round % 4 == 3 ? 3 << 16 : 1 << 16;
        tn_space space = round % 8 < 6 ? TN_SPACE_ADDRESS : TN_SPACE_MAPPING;
        tn_entry e = block(at, bytes), old;
        e.extra = round;
        e.first_write = 0;
        ck_assert_int_eq(tn_ledger_insert(space, &e, NULL), 0);
        ck_assert_int_eq(tn_ledger_find(space, at + bytes - 1, &old), 1);
        ck_assert_uint_eq(old.extra, round);
        ck_assert_uint_eq(old.first_write, 0);
        ck_assert_int_eq(tn_ledger_find(space, at + bytes, NULL), 0);
        ck_assert_int_eq(tn_ledger_find(space == TN_SPACE_ADDRESS ? TN_SPACE_MAPPING : TN_SPACE_ADDRESS, at, NULL), 0);
        ck_assert_int_eq(tn_ledger_mark_write(at + 1, 2, NULL), 1);
        if (round % 5 == 0) { /* seen again without a free */
            e.extra = ~(uint64_t)round;
            ck_assert_int_eq(tn_ledger_insert(space, &e, &old), 1);
            ck_assert_uint_eq(old.extra, round);
            ck_assert_int_eq(tn_ledger_mark_write(at + 1, 2, NULL), 1);
        }
        ck_assert_uint_eq(tn_ledger_count(), 1);
        ck_assert_int_eq(tn_ledger_remove(space, at, &old), 1);
        ck_assert_uint_eq(old.extra, round % 5 == 0 ? ~(uint64_t)round : round);
        ck_assert_uint_eq(old.first_write, 2);
        ck_assert_int_eq(tn_ledger_remove(space, at, NULL), 0);
        ck_assert_int_eq(tn_ledger_find(space, at + 1, NULL), 0);
        if (round % 16 == 15)
            tn_ledger_thread_ends();
    }
    ck_assert_uint_eq(tn_ledger_count(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ledger");
    TCase *c = tcase_create("ledger");
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, every_size_is_found_from_end_to_end);
    tcase_add_test(c, the_ends_of_the_address_space);
    tcase_add_test(c, handles_are_not_ranges);
    tcase_add_test(c, a_start_seen_again_replaces);
    tcase_add_test(c, the_first_write_is_told_once);
    tcase_add_test(c, random_operations_agree_with_the_model);
    tcase_add_test(c, a_block_that_was_found_is_known_until_it_changes);
    tcase_add_test(c, a_sweep_takes_all_of_a_context_and_nothing_else);
    if (!SHADOW_MEMORY)
        tcase_add_test(c, memory_follows_the_number_of_blocks);
    tcase_add_test(c, eight_threads_at_once);
    tcase_add_test(c, one_of_several_threads_is_the_first_writer);
    tcase_add_test(c, errno_is_left_alone);
    tcase_add_test(c, a_block_that_comes_again_is_a_new_one);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
