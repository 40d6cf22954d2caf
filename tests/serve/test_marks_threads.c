/* Marks under threads: each enqueues into streams of its own on a device that finishes in its own time, gives blocks back to the others and
 * looks at theirs; one waits, streams and events come and go. What is called done must be done on the device. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "marks_clock.h"

enum { WORKERS = 4, STREAMS = 3, ROUNDS = 4000, BLOCKS = 64, NUMBERS = 1 << 20 };

static tn_marks *m;

/* The device: of each stream what was enqueued and what is finished. Finished only by waits, so that nothing is done by luck. */
static _Atomic uint64_t enqueued[NUMBERS], finished[NUMBERS];
static _Atomic uint32_t numbers, running, alive[WORKERS][STREAMS];

typedef struct block {
    _Atomic uint32_t held;
    bool full;
    uint32_t stream;
    uint64_t piece;
    tn_work_set set;
} block;
static block blocks[BLOCKS];

static void finish(uint32_t stream, uint64_t upto)
{
    uint64_t there = atomic_load(&finished[stream]);
    while (there < upto && !atomic_compare_exchange_weak(&finished[stream], &there, upto)) {
    }
}

static uint32_t new_stream(void)
{
    uint32_t number = atomic_fetch_add(&numbers, 1) + 1;
    ck_assert_uint_lt(number, NUMBERS);
    tn_marks_stream(m, 1, number, TN_MARKS_NONBLOCKING);
    return number;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

static void look(block *b)
{
    if (atomic_exchange(&b->held, 1)) return;
    tn_work table = tn_marks_work_table(m, 1);
    if (b->full && tn_work_set_is_clean(&b->set, &table)) {
        if (atomic_load(&finished[b->stream]) < b->piece) abort();
        b->full = false;
    }
    atomic_store(&b->held, 0);
}

static void give_back(block *b, uint32_t stream, uint64_t piece, bool in_order)
{
    if (atomic_exchange(&b->held, 1)) return;
    if (!b->full) {
        b->stream = stream;
        b->piece = piece;
        b->full = true;
        if (in_order) {
            b->set.marks[0] = tn_marks_of_stream(m, stream);
            b->set.count = 1;
        } else {
            tn_marks_uncovered(m, 1, &b->set);
        }
    }
    atomic_store(&b->held, 0);
}

static void *worker(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg, state = me * 77 + 5;
    for (int round = 0; round < ROUNDS; round++) {
        _Atomic uint32_t *mine = &alive[me][below(&state, STREAMS)];
        uint32_t s = atomic_load(mine);
        uint64_t piece = atomic_fetch_add(&enqueued[s], 1) + 1;
        tn_marks_work(m, 1, s, tick());
        give_back(&blocks[below(&state, BLOCKS)], s, piece, below(&state, 2));
        look(&blocks[below(&state, BLOCKS)]);
        if (below(&state, 4) == 0) { /* a wait for the stream, by an event or without */
            uint64_t event = 0x100 + 64 * me;
            bool by_event = below(&state, 2), waits_late = below(&state, 2);
            uint64_t answer = by_event ? tn_marks_event_begins(m, event) : 0, begun = tick(), upto = atomic_load(&enqueued[s]);
            if (by_event) tn_marks_event_recorded(m, event, answer, s, begun, tick());
            if (waits_late) sched_yield();
            uint64_t waiting = by_event ? tick() : begun;
            finish(s, upto);
            if (by_event) tn_marks_waited_event(m, event, waiting);
            else tn_marks_waited_stream(m, s, waiting);
            if (below(&state, 8) == 0) tn_marks_event_destroyed(m, event);
        }
        if (below(&state, 16) == 0) { /* joins another one's stream, and waits for its own */
            uint32_t other = atomic_load(&alive[(me + 1) % WORKERS][0]);
            uint64_t event = 0x900 + 64 * me, answer = tn_marks_event_begins(m, event), begun = tick();
            uint64_t upto = atomic_load(&enqueued[other]);
            tn_marks_event_recorded(m, event, answer, other, begun, tick());
            begun = tick();
            tn_marks_joined(m, 1, s, event, begun, tick());
            begun = tick();
            uint64_t own = atomic_load(&enqueued[s]);
            finish(other, upto);
            finish(s, own);
            tn_marks_waited_stream(m, s, begun);
        }
        if (below(&state, 32) == 0) { /* ends with work in it */
            tn_marks_stream_ended(m, s);
            atomic_store(mine, new_stream());
        }
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void *waiter(void *arg)
{
    (void)arg;
    while (atomic_load(&running)) {
        uint64_t begun = tick();
        uint32_t count = atomic_load(&numbers);
        for (uint32_t s = 1; s <= count; s++) finish(s, atomic_load(&enqueued[s]));
        tn_marks_waited_context(m, 1, begun);
        for (int i = 0; i < BLOCKS; i++) look(&blocks[i]);
        sched_yield();
    }
    return NULL;
}

START_TEST(what_is_called_done_is_done_however_threads_meet)
{
    pthread_t threads[WORKERS + 1];
    m = marks_new(256, 64, NULL, NULL);
    for (int w = 0; w < WORKERS; w++)
        for (int s = 0; s < STREAMS; s++) alive[w][s] = new_stream();
    running = WORKERS;
    for (uintptr_t w = 0; w < WORKERS; w++) ck_assert_int_eq(pthread_create(&threads[w], NULL, worker, (void *)w), 0);
    ck_assert_int_eq(pthread_create(&threads[WORKERS], NULL, waiter, NULL), 0);
    for (int w = 0; w <= WORKERS; w++) pthread_join(threads[w], NULL);
    tn_marks_waited_context(m, 1, tick());
    for (uint32_t s = 1; s <= numbers; s++) finish(s, enqueued[s]);
    for (int i = 0; i < BLOCKS; i++) {
        look(&blocks[i]);
        ck_assert(!blocks[i].full);
    }
    tn_work_set set;
    tn_marks_uncovered(m, 1, &set);
    ck_assert_uint_eq(set.count, 0);
    tn_marks_destroy(&m);
}
END_TEST

/* The other way round: many threads in one stream, whose last work must never be lost. */
enum { SAME = 6, TURNS = 2000 };
static _Atomic uint64_t latest;

static void *same_stream(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        uint64_t stamp = tick();
        tn_marks_work(m, 1, 7, stamp);
        tn_work_mark mark = tn_marks_of_stream(m, 7);
        if (mark.sequence < stamp) abort();
        uint64_t there = atomic_load(&latest);
        while (there < stamp && !atomic_compare_exchange_weak(&latest, &there, stamp)) {
        }
    }
    return NULL;
}

START_TEST(no_work_of_a_stream_that_many_threads_use_is_lost)
{
    pthread_t threads[SAME];
    m = marks_new(0, 0, NULL, NULL);
    tn_marks_stream(m, 1, 7, TN_MARKS_NONBLOCKING);
    for (int i = 0; i < SAME; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, same_stream, NULL), 0);
    for (int i = 0; i < SAME; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_eq(tn_marks_of_stream(m, 7).sequence, latest);
    tn_marks_destroy(&m);
}
END_TEST

/* Threads that meet a new stream at once give it one place. */
static void *new_streams(void *arg)
{
    uint64_t *seen = arg;
    for (uint32_t s = 1; s <= 200; s++) {
        uint64_t stamp = tick();
        tn_marks_work(m, 1, s, stamp);
        seen[s] = stamp;
    }
    return NULL;
}

START_TEST(threads_that_meet_a_new_stream_at_once_give_it_one_place)
{
    static uint64_t seen[WORKERS][201];
    pthread_t threads[WORKERS];
    m = marks_new(0, 0, NULL, NULL);
    for (int i = 0; i < WORKERS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, new_streams, seen[i]), 0);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    for (uint32_t s = 1; s <= 200; s++) {
        for (int i = 0; i < WORKERS; i++) ck_assert_uint_ge(tn_marks_of_stream(m, s).sequence, seen[i][s]);
        tn_marks_waited_stream(m, s, tick());
    }
    tn_work_set set;
    tn_marks_uncovered(m, 1, &set);
    ck_assert_uint_eq(set.count, 0);
    tn_marks_destroy(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks_threads");
    TCase *t = tcase_create("marks_threads");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_is_called_done_is_done_however_threads_meet);
    tcase_add_test(t, no_work_of_a_stream_that_many_threads_use_is_lost);
    tcase_add_test(t, threads_that_meet_a_new_stream_at_once_give_it_one_place);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
