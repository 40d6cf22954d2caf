/* A thread's way into the journal: its slots, its counters, and their hand-over to the next thread. The
 * path of one event takes no lock and makes no system call; see tn_journal_slot. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#define COUNTER_BYTES (TN_COUNTERS * sizeof(uint64_t))

static uint32_t slots_taken(const tn_journal_thread *t)
{
    uint32_t left = __atomic_load_n(&t->left, __ATOMIC_RELAXED);
    return left <= TN_EVENTS_PER_CHUNK ? TN_EVENTS_PER_CHUNK - left : TN_EVENTS_PER_CHUNK;
}

/* A block of a counters chunk, making a chunk where all are given out; 0 if that fails. Growth. */
static int take_counter_block(tn_journal *j, tn_journal_thread *t)
{
    tn_counter_chunk *c = j->counter_chunks;
    if (c == NULL || c->used == TN_COUNTER_SLOTS) {
        if (j->spare_counter_chunk == NULL)
            j->spare_counter_chunk = tn_journal_small(j, sizeof *c);
        c = j->spare_counter_chunk; /* kept where the chunk fails, so that trying again costs no memory */
        if (c == NULL)
            return 0;
        uint64_t sequence = j->counter_chunks == NULL ? 0 : j->counter_chunks->chunk.head->sequence + 1;
        if (tn_chunk_open(j, &c->chunk, TN_CHUNK_COUNTERS, 0, 0, sequence) != TN_OK)
            return 0;
        j->spare_counter_chunk = NULL;
        c->next = j->counter_chunks;
        j->counter_chunks = c;
    }
    uint64_t *block = (uint64_t *)(c->chunk.head + 1) + (size_t)c->used * TN_COUNTERS;
    c->used++;
    if (t->memory_counters) {
        for (uint32_t i = 0; i < TN_COUNTERS; i++)
            block[i] = t->counters[i];
        /* What was reported as lost is on disk after all; the reported figure stays, as an upper bound. */
        tn_sys_unmap(t->counters, COUNTER_BYTES);
        t->memory_counters = 0;
    }
    t->counters = block;
    t->counter_chunk = c;
    return 1;
}

static int take_counters(tn_journal *j, tn_journal_thread *t)
{
    if (t->counters != NULL && !t->memory_counters)
        return 1;
    if (tn_journal_may_grow(j) && take_counter_block(j, t))
        return 1;
    if (t->counters == NULL) {
        t->counters = tn_sys_map_memory(COUNTER_BYTES);
        t->memory_counters = t->counters != NULL;
    }
    return t->counters != NULL;
}

tn_journal_thread *tn_journal_attach(tn_journal *j, uint32_t tid)
{
    if (j == NULL || j->header == NULL)
        return NULL;
    int saved = errno;
    tn_lock_take(&j->growth);
    tn_journal_thread *t = j->free_threads;
    if (t == NULL) {
        t = tn_journal_small(j, sizeof *t);
        if (t != NULL) {
            t->number = ++j->thread_count;
            t->next_all = j->threads;
            j->threads = t;
            j->free_threads = t;
        }
    }
    /* Without counters it stays in the list of free ones, for a better time. */
    if (t != NULL && !take_counters(j, t))
        t = NULL;
    if (t != NULL) {
        j->free_threads = t->next_free;
        t->tid = tid;
        t->first = slots_taken(t);
        t->attached = 1;
    }
    tn_lock_release(&j->growth);
    errno = saved;
    return t;
}

static void count_lost_calls(tn_journal *j, tn_journal_thread *t)
{
    if (!t->memory_counters)
        return;
    uint64_t calls = 0;
    for (uint32_t i = 0; i < TN_API_MAX; i++)
        calls += __atomic_load_n(&t->counters[i], __ATOMIC_RELAXED);
    if (calls > t->counted)
        tn_journal_drop(j, calls - t->counted);
    t->counted = calls;
}

/* Committed events among the first n slots, copied so that an event whose commit comes between is left out
 * whole: end() copies the chunks of threads that still run. */
static uint32_t copy_committed(tn_journal *j, const tn_journal_thread *t, uint32_t n)
{
    tn_event *to = (tn_event *)(j->scratch + sizeof(tn_chunk_header));
    uint32_t committed = 0;
    memcpy(j->scratch, t->chunk.head, sizeof(tn_chunk_header));
    for (uint32_t i = 0; i < TN_EVENTS_PER_CHUNK; i++) {
        if (i < n && __atomic_load_n(&t->events[i].type, __ATOMIC_ACQUIRE) != TN_EV_NONE) {
            to[i] = t->events[i];
            committed++;
        } else {
            memset(&to[i], 0, sizeof to[i]);
        }
    }
    return committed;
}

void tn_thread_flush(tn_journal *j, tn_journal_thread *t)
{
    if (!j->buffered)
        return;
    if (t->events != NULL) {
        uint32_t committed = copy_committed(j, t, slots_taken(t));
        if (committed > t->flushed) {
            if (tn_journal_write(j, j->scratch, TN_CHUNK_BYTES, t->chunk.offset) == TN_OK)
                t->flushed = committed;
        }
    }
    if (t->counter_chunk != NULL)
        (void)tn_journal_write(j, t->counter_chunk->chunk.head, TN_CHUNK_BYTES, t->counter_chunk->chunk.offset);
    tn_journal_write_header(j);
}

void tn_thread_count_lost(tn_journal *j, tn_journal_thread *t)
{
    count_lost_calls(j, t);
    if (!j->buffered || t->events == NULL)
        return;
    uint32_t committed = 0, taken = slots_taken(t);
    for (uint32_t i = 0; i < taken; i++)
        committed += __atomic_load_n(&t->events[i].type, __ATOMIC_RELAXED) != TN_EV_NONE;
    if (committed > t->flushed + t->unwritten) {
        tn_journal_drop(j, committed - t->flushed - t->unwritten);
        t->unwritten = committed - t->flushed;
    }
}

/* Puts the full chunk away; what could not be written is counted. Growth. */
static void put_chunk_away(tn_journal *j, tn_journal_thread *t)
{
    if (t->events == NULL)
        return;
    if (j->buffered) {
        tn_thread_flush(j, t);
        tn_thread_count_lost(j, t);
        t->flushed = t->unwritten = 0;
    }
    t->events = NULL;
    tn_chunk_retire(j, &t->chunk);
}

static __attribute__((noinline)) tn_event *slot_in_new_chunk(tn_journal *j, tn_journal_thread *t, int nested)
{
    tn_event *slot = NULL;
    /* So that drops do not count `left` down until it comes round to the chunk's slots again. */
    __atomic_store_n(&t->left, 0, __ATOMIC_RELAXED);
    if (j == NULL || j->header == NULL)
        return NULL;
    if (nested || !tn_journal_may_grow(j)) {
        tn_journal_drop(j, 1);
        return NULL;
    }
    int saved = errno;
    tn_lock_take(&j->growth);
    put_chunk_away(j, t);
    if (tn_chunk_open(j, &t->chunk, TN_CHUNK_EVENTS, t->number, t->tid, t->sequence) == TN_OK) {
        t->sequence++;
        t->first = 0;
        slot = (tn_event *)(t->chunk.head + 1);
        t->events = slot;
        /* Last: a signal handler that comes before finds the chunk full and drops. Slot 0 is this call's own. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&t->left, TN_EVENTS_PER_CHUNK - 1, __ATOMIC_RELEASE);
    } else {
        tn_journal_drop(j, 1);
    }
    tn_lock_release(&j->growth);
    errno = saved;
    return slot;
}

/* Takes one from `left` and returns what it was, in one step for a signal handler on this thread. No other thread writes it, so on x86-64 the
 * instruction needs no lock on the bus. */
static uint32_t take_one(uint32_t *left)
{
#if defined(__x86_64__)
    uint32_t was = UINT32_MAX;
    __asm__ __volatile__("xaddl %0, %1" : "+r"(was), "+m"(*left) : : "cc", "memory");
    return was;
#else
    return __atomic_fetch_sub(left, 1u, __ATOMIC_RELAXED);
#endif
}

tn_event *tn_journal_slot(tn_journal *j, tn_journal_thread *t, int nested)
{
    if (t == NULL) {
        tn_journal_drop(j, 1);
        return NULL;
    }
    /* A signal handler on this thread gets a slot of its own. It counts down because the kernel zeroes this structure in a forked child,
     * where none may be left. */
    uint32_t left = take_one(&t->left);
    if (__builtin_expect((int32_t)left > 0, 1)) {
        tn_event *slot = &t->events[TN_EVENTS_PER_CHUNK - left];
        /* The next event's line, which nobody has touched since the kernel zeroed it: without this the stores of the next event wait for
         * it, and the first locked instruction after them waits for the stores, some 25 ns an event. Past the last slot it asks for nothing
         * that is read. */
        __builtin_prefetch(slot + 1, 1);
        return slot;
    }
    return slot_in_new_chunk(j, t, nested);
}

tn_event *tn_journal_last(tn_journal_thread *t)
{
    if (t == NULL || t->events == NULL)
        return NULL;
    uint32_t n = slots_taken(t);
    if (n <= t->first)
        return NULL;
    tn_event *e = &t->events[n - 1];
    return e->type != TN_EV_NONE ? e : NULL;
}

uint64_t *tn_journal_counters(tn_journal_thread *t)
{
    return t == NULL ? NULL : t->counters;
}

void tn_journal_detach(tn_journal *j, tn_journal_thread *t)
{
    if (j == NULL || j->header == NULL || t == NULL)
        return;
    int saved = errno;
    tn_lock_take(&j->growth);
    if (t->attached) {
        t->attached = 0;
        tn_thread_flush(j, t);
        if (t->memory_counters && !(tn_journal_may_grow(j) && take_counter_block(j, t)))
            count_lost_calls(j, t);
        t->next_free = j->free_threads;
        j->free_threads = t;
    }
    tn_lock_release(&j->growth);
    errno = saved;
}
