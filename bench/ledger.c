/* Nanoseconds of processor time of the ledger's and the journal's operations with 100,000 blocks alive, at 1 and 2 threads on cores of
 * their own, with a site for each thread and with one site for all. The blocks lie as a driver's do: 512 bytes to 2 MiB, one after the
 * other. usage: ledger EMPTY_FOLDER */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/stats.h"
#include "ledger/journal.h"
#include "ledger/ledger.h"

#define LIVE 100000u
#define THREADS 2u
#define ROUNDS 9  /* of one case in a row */
#define PASSES 9  /* through all cases, so that what else the machine does falls on all of them */
#define WAYS 3
#define OPERATIONS 10000u
#define BASE 0x7f0000000000u

typedef enum work { INSERT_REMOVE, FIND, FIND_INSIDE, APPEND, WORKS } work;
static const char *const work_names[WORKS] = {"ledger insert and remove", "ledger find, by start", "ledger find, inside a block",
                                              "journal append"};

typedef struct way { unsigned threads; int one_site; } way;
static const way ways[WAYS] = {{1, 1}, {2, 0}, {2, 1}};

/* Of a case, what all passes gave. */
typedef struct samples {
    double cpu[PASSES * THREADS * ROUNDS], wall[PASSES * THREADS * ROUNDS];
    size_t count;
} samples;
static samples all[WORKS][WAYS];

typedef struct worker {
    pthread_t thread;
    unsigned number, threads;
    uint32_t site;
    work what;
    unsigned at; /* the block whose turn it is */
    uint64_t *blocks; /* its own share; their starts */
    uint32_t *bytes;
    unsigned count;
    double cpu[ROUNDS], wall[ROUNDS];
} worker;

static tn_journal *journal;
static pthread_barrier_t barrier;
static uint64_t blocks[LIVE];
static uint32_t sizes[LIVE];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "ledger: %s\n", what);
    exit(1);
}

static void insert(uint64_t addr, uint64_t bytes, uint32_t site)
{
    tn_entry e = {.addr = addr, .bytes = bytes, .backed = bytes, .site = site, .ctx = 1, .kind = TN_KIND_DEVICE, .tsc = tn_stamp()};
    must(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL) == 0, "a block was there already, or no memory");
}

static void append(tn_journal_thread *t, uint64_t addr, uint64_t bytes, uint32_t site)
{
    tn_event *e = tn_journal_slot(journal, t, 0);
    must(e != NULL, "the journal dropped an event");
    e->tsc = tn_stamp();
    e->kind = TN_KIND_DEVICE;
    e->site = site;
    e->ctx = 1;
    e->addr = addr;
    e->bytes = bytes;
    e->aux = bytes;
    tn_journal_commit(e, TN_EV_ALLOC);
}

static void operate(worker *w, tn_journal_thread *t)
{
    tn_entry e;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        unsigned one = w->at; /* in turn: the shares are shuffled */
        w->at = one + 1 < w->count ? one + 1 : 0;
        uint64_t addr = w->blocks[one];
        switch (w->what) {
        case INSERT_REMOVE:
            must(tn_ledger_remove(TN_SPACE_ADDRESS, addr, &e), "a block is gone");
            insert(addr, w->bytes[one], w->site);
            break;
        case FIND:
            must(tn_ledger_find(TN_SPACE_ADDRESS, addr, &e) && e.addr == addr, "a block is not found");
            break;
        case FIND_INSIDE:
            must(tn_ledger_find(TN_SPACE_ADDRESS, addr + w->bytes[one] / 2, &e) && e.addr == addr, "a block is not found");
            break;
        default:
            append(t, addr, w->bytes[one], w->site);
        }
    }
}

static void *run(void *arg)
{
    worker *w = arg;
    tn_journal_thread *t = tn_journal_attach(journal, (uint32_t)gettid());
    must(t != NULL, "the journal has no room for a thread");
    bench_pin(w->number);
    for (int round = -2; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        double cpu = bench_cpu_ns(), wall = bench_wall_ns();
        operate(w, t);
        if (round < 0)
            continue;
        w->cpu[round] = (bench_cpu_ns() - cpu) / OPERATIONS;
        w->wall[round] = (bench_wall_ns() - wall) / OPERATIONS;
    }
    tn_journal_detach(journal, t);
    return NULL;
}

static void measure(work what, unsigned threads, int one_site, samples *to)
{
    static worker workers[THREADS];
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        worker *w = &workers[i];
        *w = (worker){.number = i, .threads = threads, .what = what, .site = one_site ? 2 : 2 + i,
                      .count = LIVE / threads, .blocks = blocks + i * (LIVE / threads), .bytes = sizes + i * (LIVE / threads)};
        must(pthread_create(&w->thread, NULL, run, w) == 0, "no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        memcpy(to->cpu + to->count, workers[i].cpu, sizeof workers[i].cpu);
        memcpy(to->wall + to->count, workers[i].wall, sizeof workers[i].wall);
        to->count += ROUNDS;
    }
    pthread_barrier_destroy(&barrier);
}

static void print(work what, unsigned threads, int one_site, samples *of)
{
    char name[128];
    snprintf(name, sizeof name, "%s, %u thread%s", work_names[what], threads,
             threads == 1 ? "" : one_site ? "s, one site" : "s, a site each");
    bench_print("ledger", name, "ns", "cpu", of->cpu, of->count);
    bench_print("ledger", name, "ns", "wall", of->wall, of->count);
}

int main(int argc, char **argv)
{
    must(argc == 2, "usage: ledger EMPTY_FOLDER");
    tn_journal_options o = {.run_dir = argv[1], .libtenure_path = ""};
    must(tn_journal_open(&o, &journal) == TN_OK && tn_ledger_init() == TN_OK, "no journal there");
    bench_pin(0);
    uint64_t random = 1181783497276652981u, at = BASE;
    for (unsigned i = 0; i < LIVE; i++) {
        sizes[i] = 512u << next_random(&random) % 13;
        blocks[i] = at;
        at += sizes[i];
        insert(blocks[i], sizes[i], 2);
    }
    /* A thread's share lies all over the range, as in a program whose threads allocate in turn. */
    for (unsigned i = LIVE - 1; i > 0; i--) {
        unsigned k = (unsigned)(next_random(&random) % (i + 1));
        uint64_t block = blocks[i];
        uint32_t bytes = sizes[i];
        blocks[i] = blocks[k], sizes[i] = sizes[k];
        blocks[k] = block, sizes[k] = bytes;
    }
    for (int pass = 0; pass < PASSES; pass++)
        for (work what = 0; what < WORKS; what++)
            for (int i = 0; i < WAYS; i++)
                measure(what, ways[i].threads, ways[i].one_site, &all[what][i]);
    for (work what = 0; what < WORKS; what++)
        for (int i = 0; i < WAYS; i++)
            print(what, ways[i].threads, ways[i].one_site, &all[what][i]);
    must(tn_ledger_count() == LIVE, "the blocks alive are not those it began with");
    tn_journal_end(journal);
    return 0;
}
