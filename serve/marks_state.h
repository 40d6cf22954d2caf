/* Of the marks, for their own files: what is kept, and how it is read without a lock.
 *
 * A stream's place is one cache line; `key` says whose it is, and since no number is given twice, who finds the same key before and after has
 * read that stream's words. For that the words are stored with release and loaded with acquire: who sees one of the next owner's sees, in the
 * second look at the key, that it has changed. `last` and `covered` only ever rise while a stream has the place. Work that happened before a
 * question (in the program's order) is seen by it: coherence is enough. The other way round, that a wait is seen late makes the answer late.
 * The lock is for what is rare: a stream or event gets a place or leaves it. */
#ifndef TENURE_SERVE_MARKS_STATE_H
#define TENURE_SERVE_MARKS_STATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/marks.h"

#define TN_MARKS_CONTEXTS 1024u /* at once; those beyond are not told apart, as if their numbers were not known */
#define TN_MARKS_NEAR 8u        /* places of contexts that are looked at */
#define TN_MARKS_PAIRS 8u       /* of one stream or event; what finds no place among them is forgotten */
#define TN_MARKS_WAYS 16u       /* places of the hash tables that are looked at */
#define TN_MARKS_REST 64u       /* places that have been left and are not given on yet: a thread may be about to write into one */
#define TN_MARKS_ENDED 4096u    /* streams that have ended and are remembered */

/* Queues of marks. A wide mark is done when all of its context is (its stream, if it names one, alone does not do); else its stream's. */
#define TN_MARKS_WIDE ((uint64_t)1 << 63)
#define TN_MARKS_EVERYWHERE 0x7fffffffu
static inline uint64_t tn_marks_queue(uint32_t ctx, uint32_t stream) { return (uint64_t)ctx << 32 | stream; }
static inline uint32_t tn_marks_queue_context(uint64_t queue) { return (uint32_t)(queue >> 32) & TN_MARKS_EVERYWHERE; }
static inline uint32_t tn_marks_queue_stream(uint64_t queue) { return (uint32_t)queue; }

/* What another stream waits for, or an event covers: the work of one stream before `upto`. */
typedef struct tn_marks_pair {
    uint32_t stream;
    uint64_t upto;
    uint64_t since; /* of a join: its call had returned then */
} tn_marks_pair;

typedef struct tn_marks_place {
    _Alignas(64) _Atomic uint64_t key;  /* tn_marks_queue(), 0: nobody's */
    _Atomic uint64_t covered;           /* its work with a smaller stamp is done */
    /* Stamps of its last work. Threads that enqueued first have a word each, that they write without a locked instruction (6 of them cost
     * what all the rest does); the others share one. */
    _Atomic uint64_t last[2], last_of_others;
    _Atomic uint64_t thread[2];
    _Atomic uint32_t what;              /* TN_MARKS_* */
} tn_marks_place;
#define TN_MARKS_JOINED ((uint32_t)1 << 31) /* in `what`: its `joined` is set */
_Static_assert(sizeof(tn_marks_place) == 64, "a stream's place is one line");

typedef struct tn_marks_joins {
    _Alignas(64) _Atomic uint32_t held;
    _Atomic uint32_t count;
    _Atomic uint64_t joined; /* stamp of the last join. It uses no memory, but the stream has not come further before what it waits for is done */
    tn_marks_pair pairs[TN_MARKS_PAIRS];
} tn_marks_joins;

typedef struct tn_marks_event {
    _Alignas(64) _Atomic uint64_t key; /* the handle, 0: nobody's */
    _Atomic uint32_t held;             /* for all below */
    uint32_t version;                  /* one more for each record that began */
    uint32_t flying;                   /* records that have begun and not ended */
    uint32_t count;                    /* of pairs; 0: a wait covers nothing */
    uint64_t since;                    /* the record's call had returned then */
    tn_marks_pair pairs[1 + TN_MARKS_PAIRS];
} tn_marks_event;

typedef struct tn_marks_context {
    _Alignas(64) _Atomic uint64_t covered; /* by waits for all of it; UINT64_MAX: it has ended */
    _Atomic uint64_t settled;              /* wide marks up to here were found done, stream by stream */
    _Atomic uint64_t loose;                /* stamp of the last work in it that has no place: of streams beyond, ended ones */
    _Atomic uint64_t touched;              /* stamp of the last record or join in its legacy default stream, which others may come after */
    _Atomic uint32_t legacy;               /* 1 + the place of that stream */
    _Atomic uint32_t number;               /* whose this is; changes hands when that context has ended, and before all else is the next one's */
    _Atomic uint32_t blocking;             /* so many places are of streams that wait for that one, and it for them */
} tn_marks_context;

typedef struct tn_marks_ended {
    _Atomic uint64_t stream, covered;
} tn_marks_ended;

struct tn_marks {
    tn_marks_place *places;
    _Atomic uint32_t *index;    /* hash of a stream's number -> 1 + its place */
    tn_marks_event *events;
    tn_marks_context *contexts; /* [0]: of contexts that are not known; its `covered` is every context's. Behind the last one: of one that has had
                                 * no work, or has ended */
    tn_marks_joins *joins;      /* by place */
    tn_marks_ended *ended;      /* by hash of number */
    uint32_t *left;             /* a ring of places without an owner */
    uint32_t streams;
    unsigned index_shift, event_shift; /* of a 32-bit hash */
    uint32_t index_mask, event_mask;
    uint64_t (*now)(void);
    tn_mem_error (*wait)(void *self, uint32_t ctx);
    void *self;
    _Atomic uint64_t *tick, own_tick;
    tn_metadata metadata;
    void *block;
    size_t bytes;
    _Alignas(64) _Atomic uint32_t used; /* places beyond have never had an owner */
    _Atomic uint32_t context_count;     /* places of contexts beyond have never had an owner */
    _Atomic uint32_t events_end;        /* no event covers anything */
    _Atomic uint32_t crowded;           /* a stream found no place, maybe a legacy one */
    _Atomic uint32_t astray;            /* records under way whose events have no place */
    _Atomic uint32_t held;
    uint32_t left_first, left_count;
    _Atomic uint64_t left_ever;         /* how often a place was left */
};

/* ---- locks of one word */

void tn_marks_hold_slowly(_Atomic uint32_t *held);
static inline bool tn_marks_try(_Atomic uint32_t *held) { return atomic_exchange_explicit(held, 1, memory_order_acquire) == 0; }
static inline void tn_marks_hold(_Atomic uint32_t *held)
{
    if (__builtin_expect(!tn_marks_try(held), 0)) tn_marks_hold_slowly(held);
}
static inline void tn_marks_let_go(_Atomic uint32_t *held) { atomic_store_explicit(held, 0, memory_order_release); }

/* ---- words that only rise */

static inline void tn_marks_raise(_Atomic uint64_t *word, uint64_t to)
{
    uint64_t there = atomic_load_explicit(word, memory_order_relaxed);
    /* Release: whoever reads the word comes after what it stands for. */
    while (there < to && !atomic_compare_exchange_weak_explicit(word, &there, to, memory_order_release, memory_order_relaxed)) {
    }
}
static inline uint64_t tn_marks_read(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_acquire); }
static inline uint64_t tn_marks_greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- places (marks_places.c) */

static inline uint32_t tn_marks_hash(uint64_t number) { return (uint32_t)(number * 0x9e3779b97f4a7c15u >> 32); }

/* The stream's place, or NULL. */
static inline tn_marks_place *tn_marks_find(const tn_marks *m, uint32_t stream)
{
    uint32_t at = tn_marks_hash(stream) >> m->index_shift;
    for (uint32_t i = 0; i < TN_MARKS_WAYS; i++) {
        uint32_t n = atomic_load_explicit(&m->index[(at + i) & m->index_mask], memory_order_acquire);
        if (n && (uint32_t)atomic_load_explicit(&m->places[n - 1].key, memory_order_acquire) == stream) return &m->places[n - 1];
    }
    return NULL;
}

/* The same, and gives it one where it has none; NULL: there is no place left. */
tn_marks_place *tn_marks_place_of(tn_marks *m, uint32_t ctx, uint32_t stream, unsigned what);

static inline tn_marks_joins *tn_marks_joins_of(const tn_marks *m, const tn_marks_place *p) { return &m->joins[p - m->places]; }

static inline tn_marks_context *tn_marks_context_near(const tn_marks *m, uint32_t ctx, uint32_t way)
{
    return &m->contexts[1 + (ctx - 1 + way) % (TN_MARKS_CONTEXTS - 1)];
}

/* The context's own, NULL: it has none. Numbers are never given twice, so a miss says that it has had no work, has ended, or found no place. */
static inline tn_marks_context *tn_marks_context_find(const tn_marks *m, uint32_t ctx)
{
    if (!ctx) return &m->contexts[0];
    for (uint32_t way = 0; way < TN_MARKS_NEAR; way++) {
        tn_marks_context *c = tn_marks_context_near(m, ctx, way);
        if (atomic_load_explicit(&c->number, memory_order_acquire) == ctx) return c;
    }
    return NULL;
}

/* [0] where it is not known. What one has that found no place is under 0 too, so of a miss there is nothing to know. */
static inline tn_marks_context *tn_marks_context_of(const tn_marks *m, uint32_t ctx)
{
    tn_marks_context *c = tn_marks_context_find(m, ctx);
    if (__builtin_expect(c != NULL, 1)) return c;
    return &m->contexts[TN_MARKS_CONTEXTS];
}

/* Up to where all work of a context is done; of those that are not known, of every one. */
static inline uint64_t tn_marks_covered_context(const tn_marks *m, uint32_t ctx)
{
    return tn_marks_greater(tn_marks_read(&m->contexts[0].covered), tn_marks_read(&tn_marks_context_of(m, ctx)->covered));
}

static inline uint64_t tn_marks_last(const tn_marks_place *p)
{
    return tn_marks_greater(tn_marks_greater(tn_marks_read(&p->last[0]), tn_marks_read(&p->last[1])), tn_marks_read(&p->last_of_others));
}

/* The same, of its last join too: so far must the stream have come before a block is clean that was given back in its order. */
static inline uint64_t tn_marks_last_in_order(const tn_marks *m, const tn_marks_place *p)
{
    uint64_t last = tn_marks_last(p);
    if (!(atomic_load_explicit(&p->what, memory_order_acquire) & TN_MARKS_JOINED)) return last;
    return tn_marks_greater(last, tn_marks_read(&tn_marks_joins_of(m, p)->joined));
}

/* Work of it has no place. */
void tn_marks_loosen(tn_marks *m, uint32_t ctx, uint64_t stamp);

/* A stream was given what is no work by itself. Others come after it where it is the legacy one, and so after what that comes after. */
static inline void tn_marks_touch(tn_marks *m, const tn_marks_place *p, uint64_t stamp)
{
    if (p && (atomic_load_explicit(&p->what, memory_order_relaxed) & TN_MARKS_LEGACY))
        tn_marks_raise(&tn_marks_context_of(m, tn_marks_queue_context(tn_marks_read(&p->key)))->touched, stamp);
}

/* What has been waited for of a pair's work. */
void tn_marks_cover(tn_marks *m, uint32_t stream, uint64_t upto);
bool tn_marks_is_covered(const tn_marks *m, uint32_t stream, uint64_t upto);
/* The joins of a stream that had been made before `begun`; returns how many were put into `out`. */
uint32_t tn_marks_joins_before(const tn_marks *m, const tn_marks_place *p, uint64_t begun, tn_marks_pair *out);

#endif
