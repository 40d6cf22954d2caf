/* Random programs on marks, beside a device that does nothing before it has to: an operation is done only when a wait, or what a wait was for,
 * came after it. Whatever the marks call done or ordered must be so on that device, however calls of several threads overlap; and where a
 * program has one thread, and streams few enough for every table, the marks must know all that the device knows. */
#include <stdio.h>

#include "marks_clock.h"

enum { OPS = 2048, DEPS = 32, STREAMS = 12, EVENTS = 6, CONTEXTS = 2, BLOCKS = 12, PENDING = 5, SEEDS = 300, STEPS = 500 };
enum { KERNEL, RECORD, JOIN };

typedef struct op {
    int kind;
    uint32_t stream; /* index */
    bool told, done;
    int deps[DEPS]; /* those of its streams, and what a join waits for */
    int dep_count;
    int before; /* in its stream, -1: none */
} op;

typedef struct stream {
    uint32_t number, ctx;
    unsigned what;
    int last; /* op, -1: none */
    uint64_t told; /* tick for which the marks know that it had work */
} stream;

typedef struct block {
    bool live;
    tn_work_set set;
    int count; /* of ops when it was given back */
    bool need[OPS];
} block;

/* A call of some thread, which goes on when it is its turn. */
typedef enum call_kind { WORK, RECORDING, JOINING, WAIT_STREAM, WAIT_CONTEXT, WAIT_EVENT, CALLS } call_kind;
typedef struct call {
    bool live;
    call_kind kind;
    int phase;
    uint32_t stream, ctx;
    int event, op;
    bool whole; /* a record of the whole context */
    uint64_t begun, ended, answer;
} call;

/* Check tells its parent of each assertion that is made, so that those made a million times are made by hand. */
static tn_marks *m;
static op ops[OPS];
static int op_count;
static stream streams[STREAMS];
static int stream_count;
static uint32_t numbers;
static struct { int ops[STREAMS], count; } events[EVENTS]; /* last record: what it waits for */
static block blocks[BLOCKS];
static call calls[PENDING];
static uint64_t state, the_seed;
static bool exact;    /* one thread, few streams */
static bool by_ticks; /* work is stamped by what waits, records and joins move, and told once under one tick; else by the clock */
static unsigned long said_clean, said_ready, said_not;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* ---- the device */

static void depend(op *o, int on)
{
    if (on < 0) return;
    if (o->dep_count == DEPS) ck_abort_msg("too many operations before one");
    o->deps[o->dep_count++] = on;
}

/* What an operation comes after that is enqueued now. */
static void order(op *o, uint32_t s)
{
    *o = (op){.stream = s, .before = streams[s].last};
    depend(o, streams[s].last);
    for (int i = 0; i < stream_count; i++) {
        const stream *other = &streams[i];
        if (i == (int)s || other->ctx != streams[s].ctx || other->last < 0) continue;
        bool waits = ((streams[s].what & TN_MARKS_LEGACY) && !(other->what & TN_MARKS_NONBLOCKING)) ||
                     ((other->what & TN_MARKS_LEGACY) && !(streams[s].what & TN_MARKS_NONBLOCKING));
        if (waits) depend(o, other->last);
    }
}

static int enqueue(int kind, uint32_t s)
{
    if (op_count == OPS) ck_abort_msg("too many operations");
    op *o = &ops[op_count];
    order(o, s);
    o->kind = kind;
    streams[s].last = op_count;
    return op_count++;
}

/* What must be done before it can begin; where `told`, as if calls that have not returned had not been made: nobody can rely on them. */
static void close_over(const op *first, bool told, bool *in)
{
    static int list[OPS * DEPS];
    static bool seen[OPS];
    int n = 0;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < first->dep_count; i++) list[n++] = first->deps[i];
    while (n) {
        int at = list[--n];
        const op *o = &ops[at];
        if (seen[at]) continue;
        seen[at] = true;
        if (told && !o->told) {
            if (o->before >= 0) list[n++] = o->before;
            continue;
        }
        in[at] = true;
        for (int i = 0; i < o->dep_count; i++)
            if (!seen[o->deps[i]]) list[n++] = o->deps[i];
    }
}

static void force(int at)
{
    static bool in[OPS];
    if (at < 0 || ops[at].done) return;
    memset(in, 0, sizeof in);
    op virtual = {.deps = {at}, .dep_count = 1};
    close_over(&virtual, false, in);
    for (int i = 0; i <= at; i++)
        if (in[i]) ops[i].done = true;
}

/* ---- calls */

static uint32_t any_stream(void) { return below((uint32_t)stream_count); }

static void make_stream(int at)
{
    stream *s = &streams[at];
    *s = (stream){.number = ++numbers, .ctx = 1 + (exact ? 0 : below(CONTEXTS)), .what = TN_MARKS_NONBLOCKING, .last = -1};
    if (!exact && below(2)) s->what = 0;
}

static bool is_in_use(uint32_t s, int event)
{
    for (int i = 0; i < PENDING; i++)
        if (calls[i].live && ((event >= 0 && calls[i].event == event) || (event < 0 && calls[i].stream == s))) return true;
    return false;
}

static void begin(call *c)
{
    *c = (call){.live = true, .kind = (call_kind)below(CALLS), .stream = any_stream(), .ctx = 1 + below(CONTEXTS), .event = (int)below(EVENTS)};
    if (exact) c->ctx = 1;
    if (c->kind == WAIT_CONTEXT && below(4)) c->kind = WORK;
    c->whole = !exact && c->kind == RECORDING && below(8) == 0;
    if (c->kind == RECORDING) c->answer = tn_marks_event_begins(m, 0x1000 + 64 * (uint64_t)c->event);
    c->begun = by_ticks && c->kind != WORK ? tn_marks_begin(m, tick()) : tick();
}

static void act(call *c)
{
    switch (c->kind) {
    case WORK:
        c->op = enqueue(KERNEL, c->stream);
        break;
    case RECORDING:
        events[c->event].count = 0;
        for (int s = 0; s < stream_count; s++) {
            if (c->whole ? streams[s].ctx != c->ctx || streams[s].last < 0 : s != (int)c->stream) continue;
            if (!c->whole) c->op = enqueue(RECORD, (uint32_t)s);
            events[c->event].ops[events[c->event].count++] = streams[s].last;
        }
        break;
    case JOINING:
        c->op = enqueue(JOIN, c->stream);
        for (int i = 0; i < events[c->event].count; i++) depend(&ops[c->op], events[c->event].ops[i]);
        break;
    case WAIT_STREAM:
        force(streams[c->stream].last);
        break;
    case WAIT_CONTEXT:
        for (int s = 0; s < stream_count; s++)
            if (streams[s].ctx == c->ctx) force(streams[s].last);
        for (int i = 0; i < op_count; i++) /* streams that have ended */
            if (ops[i].stream >= STREAMS && ops[i].stream - STREAMS == c->ctx) force(i);
        break;
    default:
        for (int i = 0; i < events[c->event].count; i++) force(events[c->event].ops[i]);
        break;
    }
    c->ended = by_ticks ? tn_marks_tick(&work_tick) : tick();
}

static void tell(call *c)
{
    stream *s = &streams[c->stream];
    uint64_t event = 0x1000 + 64 * (uint64_t)c->event;
    if (!tn_marks_knows(m, s->number) && c->kind <= JOINING) tn_marks_stream(m, s->ctx, s->number, s->what);
    switch (c->kind) {
    case WORK:
        if (!by_ticks || s->told != c->ended) tn_marks_work(m, s->ctx, s->number, c->ended);
        s->told = c->ended;
        ops[c->op].told = true;
        break;
    case RECORDING:
        if (c->whole) tn_marks_event_lost(m, event, c->answer);
        else tn_marks_event_recorded(m, event, c->answer, s->number, c->begun, c->ended);
        if (!c->whole) ops[c->op].told = true;
        break;
    case JOINING:
        tn_marks_joined(m, s->ctx, s->number, event, c->begun, c->ended);
        ops[c->op].told = true;
        break;
    case WAIT_STREAM:
        tn_marks_waited_stream(m, s->number, c->begun);
        break;
    case WAIT_CONTEXT:
        tn_marks_waited_context(m, c->ctx, c->begun);
        break;
    default:
        tn_marks_waited_event(m, event, c->begun);
        break;
    }
    c->live = false;
}

/* ---- blocks */

static void give_back(block *b)
{
    uint32_t s = any_stream(), ctx = 1 + below(CONTEXTS);
    tn_work table = tn_marks_work_table(m, 1);
    int how = (int)below(3);
    if (exact) ctx = 1;
    b->live = true;
    b->count = op_count;
    memset(b->need, 0, sizeof b->need);
    if (how == 0) { /* plain, of one context or of all */
        if (below(4) == 0) ctx = 0;
        /* and what another context did, where this one's work comes after it: that may have used the block, by peer access */
        for (int i = op_count - 1; i >= 0; i--) {
            uint32_t of = ops[i].stream >= STREAMS ? ops[i].stream - STREAMS : streams[ops[i].stream].ctx;
            op virtual = {.deps = {i}, .dep_count = 1};
            if (ops[i].told && (!ctx || of == ctx) && !b->need[i]) close_over(&virtual, true, b->need);
        }
        tn_marks_uncovered(m, ctx, &b->set);
    } else { /* in the order of a stream; or two in those of two, whose memory becomes one */
        op virtual;
        b->set = (tn_work_set){0};
        for (int i = 0; i < how; i++, s = any_stream()) {
            order(&virtual, s);
            close_over(&virtual, true, b->need);
            tn_work_set_add(&b->set, &table, tn_marks_of_stream(m, streams[s].number));
        }
    }
}

static bool is_wide(const tn_work_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->marks[i].queue >> 63) return true;
    return false;
}

static void look_at(block *b)
{
    static bool after[OPS];
    tn_work table = tn_marks_work_table(m, 1);
    tn_work_set set = b->set;
    uint32_t s = any_stream();
    op virtual;
    memset(after, 0, sizeof after);
    bool clean = tn_work_set_is_clean(&set, &table), ready = tn_work_set_is_ready(&set, &table, streams[s].number);
    order(&virtual, s);
    close_over(&virtual, false, after);
    bool all_done = true, all_after = true;
    for (int i = 0; i < b->count; i++) {
        if (!b->need[i]) continue;
        bool done = ops[i].done, is_kernel = ops[i].kind == KERNEL;
        if (clean && is_kernel && !done) ck_abort_msg("seed %llu: called done and is not: operation %d", (unsigned long long)the_seed, i);
        if (ready && is_kernel && !done && !after[i]) ck_abort_msg("seed %llu: called ordered and is not: operation %d", (unsigned long long)the_seed, i);
        if (ops[i].kind == RECORD) continue;
        all_done &= done;
        all_after &= done || after[i];
    }
    said_clean += clean;
    said_ready += ready && !clean;
    said_not += !ready;
    if (!exact || is_wide(&b->set)) return;
    if (!clean && all_done) ck_abort_msg("seed %llu: all is done, and the marks do not know it", (unsigned long long)the_seed);
    if (!ready && all_after) ck_abort_msg("seed %llu: all is ordered, and the marks do not know it", (unsigned long long)the_seed);
}

static void step(void)
{
    call *c = &calls[exact ? 0 : below(PENDING)];
    if (!c->live) begin(c);
    do {
        if (c->phase == 0) act(c);
        else tell(c);
        c->phase++;
    } while (exact && c->live);
    block *b = &blocks[below(BLOCKS)];
    if (!b->live || below(10) == 0) give_back(b);
    block *other = &blocks[below(BLOCKS)];
    look_at(other->live ? other : b);
    if (exact) return;
    uint32_t s = any_stream();
    if (below(40) == 0 && s > 1 && !is_in_use(s, -1)) {
        tn_marks_stream_ended(m, streams[s].number);
        for (int i = 0; i < op_count; i++)
            if (ops[i].stream == s) ops[i].stream = STREAMS + streams[s].ctx;
        make_stream((int)s);
    }
    int e = (int)below(EVENTS);
    if (below(20) == 0 && !is_in_use(0, e)) {
        tn_marks_event_destroyed(m, 0x1000 + 64 * (uint64_t)e);
        events[e].count = 0;
    }
}

static void run(uint64_t seed, bool one_thread)
{
    exact = one_thread;
    by_ticks = seed % 2;
    the_seed = seed;
    state = seed * 0x9e3779b97f4a7c15u + 1;
    op_count = 0;
    numbers = (uint32_t)seed % 1000;
    memset(calls, 0, sizeof calls);
    memset(events, 0, sizeof events);
    memset(blocks, 0, sizeof blocks);
    stream_count = exact ? 4 : 3 + (int)below(STREAMS - 2);
    bool small = !exact && seed % 4 == 0;
    m = marks_new(small ? 2 + below(6) : 256, small ? 1 + below(4) : 64, NULL, NULL);
    for (int i = 0; i < stream_count; i++) make_stream(i);
    if (!exact && below(2)) streams[0] = (stream){.number = ++numbers, .ctx = 1, .what = TN_MARKS_LEGACY, .last = -1};
    if (!exact && below(2)) streams[1] = (stream){.number = ++numbers, .ctx = 2, .what = TN_MARKS_LEGACY, .last = -1};
    for (int i = 0; i < STEPS; i++) step();
    tn_marks_destroy(&m);
}

START_TEST(what_is_called_done_or_ordered_is_so_on_a_device_that_does_nothing_before_it_has_to)
{
    said_clean = said_ready = said_not = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(seed, false);
    }
    printf("clean %lu, ordered %lu, neither %lu\n", said_clean, said_ready, said_not);
    ck_assert_uint_gt(said_clean, 1000);
    ck_assert_uint_gt(said_ready, 1000);
    ck_assert_uint_gt(said_not, 1000);
}
END_TEST

START_TEST(with_one_thread_and_room_for_everything_nothing_is_late)
{
    said_clean = said_ready = said_not = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(seed, true);
    }
    printf("clean %lu, ordered %lu, neither %lu\n", said_clean, said_ready, said_not);
    ck_assert_uint_gt(said_clean, 1000);
    ck_assert_uint_gt(said_ready, 1000);
    ck_assert_uint_gt(said_not, 1000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("marks_model");
    TCase *t = tcase_create("marks_model");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_is_called_done_or_ordered_is_so_on_a_device_that_does_nothing_before_it_has_to);
    tcase_add_test(t, with_one_thread_and_room_for_everything_nothing_is_late);
    suite_add_tcase(s, t);
    setvbuf(stdout, NULL, _IONBF, 0);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
