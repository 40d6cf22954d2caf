/* Threads that take, release and drop stable slots, of keys of their own and of keys that all want: one at a time has a key, a key of its own keeps
 * its address until its thread drops it, and no byte is two keys' at once. A failure prints the seed. */
#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

enum { THREADS = 3, OWN = 12, SHARED = 4, KEYS = THREADS * OWN + SHARED, BYTES = 256 };

#ifdef __SANITIZE_THREAD__
#define ROUNDS 4000
#else
#define ROUNDS 40000
#endif

static tn_host *host;
static tn_stable_slots *slots;
static uint32_t holders[KEYS]; /* threads that believe to have the key */

typedef struct worker {
    pthread_t thread;
    uint64_t seed;
    unsigned number;
    uint64_t takes, refused;
    const char *failure;
} worker;

#define claim(condition)                                         \
    do {                                                         \
        if (!(condition) && w->failure == NULL)                  \
            w->failure = #condition;                             \
    } while (0)

typedef struct mine {
    char *data; /* of the last take, NULL after a drop; of a shared key only while it is held */
    bool held;
} mine;

static void take(worker *w, unsigned key, mine *m)
{
    tn_stable_span span;
    tn_mem_error error = tn_stable_slots_take(slots, key, BYTES, 0, w->number + 1, &span);
    if (error != TN_MEM_OK) {
        bool own = key < THREADS * OWN;
        claim(error == TN_MEM_E_EXHAUSTED || error == TN_MEM_E_MUST_WAIT || (!own && error == TN_MEM_E_IN_USE));
        claim(tn_stable_data(span) == NULL);
        w->refused++;
        return;
    }
    claim(__atomic_fetch_add(&holders[key], 1, __ATOMIC_SEQ_CST) == 0);
    claim(m->data == NULL || m->data == tn_stable_data(span));
    m->data = tn_stable_data(span);
    m->held = true;
    memset(m->data, (int)key + 1, BYTES);
    w->takes++;
}

static void release(worker *w, unsigned key, mine *m, bool drops, bool in_flight)
{
    for (size_t i = 0; i < BYTES; i++)
        claim((unsigned char)m->data[i] == (unsigned char)(key + 1));
    tn_work_set set = device_set(in_flight ? device_enqueue(w->number + 1) : (tn_work_mark){0});
    __atomic_fetch_sub(&holders[key], 1, __ATOMIC_SEQ_CST);
    claim(tn_stable_slots_release(slots, key, &set) == TN_MEM_OK);
    m->held = false;
    tn_mem_error dropped = drops ? tn_stable_slots_drop(slots, key) : TN_MEM_OK;
    bool own = key < THREADS * OWN;
    /* Another may have taken a shared one meanwhile, or dropped it. */
    claim(dropped == TN_MEM_OK || (!own && (dropped == TN_MEM_E_IN_USE || dropped == TN_MEM_E_ARGUMENT)));
    if (drops || !own)
        m->data = NULL;
}

static void *run(void *argument)
{
    worker *w = argument;
    random_state random = {w->seed};
    mine all[KEYS] = {{0}};
    for (size_t i = 0; i < ROUNDS && w->failure == NULL; i++) {
        uint64_t at = random_below(&random, OWN + SHARED);
        unsigned key = (unsigned)(at < OWN ? w->number * OWN + at : THREADS * OWN + at - OWN);
        if (all[key].held)
            release(w, key, &all[key], random_below(&random, 3) == 0, random_below(&random, 4) == 0);
        else
            take(w, key, &all[key]);
        if (i % 32 == 0)
            device_finish(w->number + 1);
    }
    for (unsigned key = 0; key < KEYS; key++)
        if (all[key].held)
            release(w, key, &all[key], false, false);
    return NULL;
}

START_TEST(one_thread_has_a_key_at_a_time)
{
    uint64_t seed = fixture_seed(0x57AB1E77 + (uint64_t)_i);
    random_state random = {seed};
    worker workers[THREADS];
    tn_work work = device_begin();
    host = fixture_host(&(tn_host_options){0});
    /* Room for fewer slots than there are keys. */
    expect_ok(tn_stable_slots_create(&(tn_stable_slots_options){.backend = tn_host_backend(host), .tag = "stable", .capacity = 30 * BYTES,
                                                                .slots = KEYS, .work = &work},
                                     &slots));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.seed = random_next(&random), .number = i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    uint64_t takes = 0, refused = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_msg(workers[i].failure == NULL, "%s does not hold: %s", workers[i].failure, fixture_seed_line(seed, 0));
        takes += workers[i].takes;
        refused += workers[i].refused;
    }
    ck_assert_uint_gt(takes, ROUNDS / 4);
    ck_assert_uint_gt(refused, 0);
    tn_stable_slots_stats stats;
    tn_stable_slots_read_stats(slots, &stats);
    ck_assert_uint_eq(stats.taken, 0);
    ck_assert_uint_eq(stats.taken_bytes, 0);
    ck_assert_uint_eq(stats.released + stats.dropped, stats.slots);
    device_finish_all();
    expect_ok(tn_stable_slots_destroy(&slots));
    fixture_finish(host);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("stable_threads");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, one_thread_has_a_key_at_a_time, 0, 3);
    return fixture_run("stable_threads", tests);
}
