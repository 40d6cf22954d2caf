/* The per-thread cache of call chains: its tree, how chains get into it, and how caches begin and end. See callsite_slots.h and callsite_find.h.
 * Chains with the same innermost frames share them: most programs allocate through one funnel, so that the first frames of all chains are
 * the same. */
#define _GNU_SOURCE
#include "shim/callsite_slots.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "ledger/tn_hot_data.h"
#include "ledger/tn_sys.h"
#include "shim/callsite_find.h"
#include "shim/callsite_tables.h"
#include "shim/unwind.h"

#if defined(__x86_64__)
#define SUPPORTED 1
#else
#define SUPPORTED 0
#endif

/* Different values of one frame pointer: below an alloca of ever new sizes there would be no end to them. */
#define ALTERNATIVES_MAX 16
/* So often a strip must have been of no use before it gets another chain. */
#define STRIP_OTHERS 8

typedef tn_slot_node node;

TN_HOT_DATA int tn_slots_mode = TN_SLOTS_DEFAULT;
uint64_t tn_slots_hits, tn_slots_differences;
static int can_end;
static pthread_key_t thread_end;
__thread tn_slots *tn_slots_own __attribute__((tls_model("initial-exec")));
static __thread uint8_t has_none __attribute__((tls_model("initial-exec"))); /* and gets none: the thread is ending, or it could not be had */

void tn_slots_checked(int is_different)
{
    __atomic_fetch_add(&tn_slots_hits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&tn_slots_differences, (uint64_t)(is_different != 0), __ATOMIC_RELAXED);
}

/* ---- looking up */

static inline uint32_t place_of(uint32_t parent, uint64_t word)
{
    return (uint32_t)((word ^ (uint64_t)parent << 48) * 0x9e3779b97f4a7c15u >> (64 - TN_SLOTS_INDEX_BITS));
}

/* Another child of k's parent; NULL: none. Siblings lie at one offset, so no word is read but the one that k is about, and the one below it.
 * The index is half full at most. */
static const node *sibling(const tn_slots *c, const node *k, uint64_t frame)
{
    uint64_t word = tn_slot_word(frame + k->offset) - (k->kind == TN_SLOT_RELATIVE ? frame : 0);
    for (uint32_t i = place_of(k->parent, word);; i = (i + 1) & (TN_SLOTS_INDEX - 1)) {
        const node *m = &c->nodes[c->index[i]];
        if (m == c->nodes)
            return NULL;
        if (m->parent == k->parent && m->expected[0] == word &&
            (m->kind != TN_SLOT_PAIR || tn_slot_word(frame + m->offset - 8) == m->expected[1] + frame))
            return m;
    }
}

static inline int agrees(const node *k, uint64_t frame)
{
    uint64_t word = tn_slot_word(frame + k->offset);
    if (k->kind == TN_SLOT_RELATIVE)
        return word - frame == k->expected[0];
    return word == k->expected[0] && (k->kind == TN_SLOT_WORD || tn_slot_word(frame + k->offset - 8) - frame == k->expected[1]);
}

/* Writes `count` checks of one kind at p, and the largest offset to *reach; returns the number of groups, 0 where they do not fit. */
static unsigned lay_out_run(const node *const *first, int count, uint64_t *p, uint64_t *end, uint32_t *reach)
{
    unsigned kind = first[0]->kind, size = kind == TN_SLOT_PAIR ? 9 : 5, groups = ((unsigned)count + 3) / 4;
    if (groups > 63 || (uint64_t)(end - p) < groups * size)
        return 0;
    for (unsigned i = 0; i < 4 * groups; i++) {
        const node *k = first[-(i < (unsigned)count ? (int)i : count - 1)];
        uint64_t *group = p + i / 4 * size;
        unsigned lane = i % 4;
        if (k->offset / 8 > UINT16_MAX)
            return 0;
        group[0] = (lane == 0 ? 0 : group[0]) | (uint64_t)(k->offset / 8) << 16 * lane;
        group[kind == TN_SLOT_PAIR ? 1 + 2 * lane : 1 + lane] = k->expected[0];
        if (kind == TN_SLOT_PAIR)
            group[2 + 2 * lane] = k->expected[1];
        *reach = k->offset > *reach ? k->offset : *reach;
    }
    return groups;
}

/* The chain that ends in `leaf` as a strip, unless it is too long for one. */
static void lay_out(const tn_slots *c, const node *leaf, tn_slot_strip *s)
{
    const node *path[TN_STRIP_WORDS]; /* the innermost last */
    int n = 0;
    for (const node *k = leaf; k != c->nodes; k = &c->nodes[k->parent]) {
        if (n == TN_STRIP_WORDS)
            return;
        path[n++] = k;
    }
    uint64_t *p = s->words;
    __atomic_store_n(&s->caller, 0, __ATOMIC_RELAXED); /* until it is whole: a signal handler may jump away from here */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    s->runs = 0;
    s->reach = 0;
    unsigned shift = 0;
    for (int i = n - 1, count; i >= 0; i -= count, shift += 8) {
        for (count = 1; i - count >= 0 && path[i - count]->kind == path[i]->kind; count++)
            ;
        unsigned groups = lay_out_run(&path[i], count, p, s->words + TN_STRIP_WORDS, &s->reach);
        if (groups == 0 || shift == 64)
            return;
        p += groups * (path[i]->kind == TN_SLOT_PAIR ? 9 : 5);
        s->runs |= (uint64_t)(groups << 2 | path[i]->kind) << shift;
    }
    s->site = leaf->site;
    s->others = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&s->caller, path[n - 1]->expected[0], __ATOMIC_RELAXED);
}

/* By the tree. A chain that is found gets the strip, but two that want one strip do not get it in turns. */
static uint32_t climb(const tn_slots *c, uint64_t caller, uint64_t frame)
{
    uint64_t room = c->end - frame - 8; /* the last offset at which a word may be read */
    if (c->count == 1)
        return TN_SITE_NONE;
    for (const node *k = &c->nodes[1];; k++) {
        if (k->offset > room || (!agrees(k, frame) && (k = sibling(c, k, frame)) == NULL))
            return TN_SITE_NONE;
        if (k->site == TN_SITE_NONE)
            continue;
        tn_slot_strip *strip = tn_strip_of(c, caller, frame);
        if (strip->caller == 0 || ++strip->others == STRIP_OTHERS)
            lay_out(c, k, strip);
        return k->site;
    }
}

uint32_t tn_slots_find_in(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame)
{
    uint32_t site = tn_slots_look(c, epoch, caller, frame);
    return site != TN_SITE_NONE || !tn_slots_hold(c, epoch, caller, frame) ? site : climb(c, caller, frame);
}

uint32_t tn_slots_find(uint64_t epoch, const void *caller, const void *frame)
{
    const tn_slots *c = tn_slots_own;
    return c ? tn_slots_find_in(c, epoch, (uint64_t)caller, (uint64_t)frame) : TN_SITE_NONE;
}

/* ---- keeping */

/* One word to compare. */
typedef struct check {
    uint64_t expected;
    uint32_t offset;
    uint32_t is_relative;
} check;

#define CHECKS_MAX (2 * TN_UNWIND_MAX)

static const tn_cfi_rule *rule_of(tn_slots *c, uint64_t ret)
{
    struct tn_slots_rule *e = &c->rules[ret * 0x9e3779b97f4a7c15u >> (64 - 9)];
    if (e->ret != ret) {
        tn_cfi_rule_of(ret, &e->rule);
        e->ret = ret;
    }
    return &e->rule;
}
_Static_assert(TN_SLOTS_RULES == 1u << 9, "rule_of() takes nine bits");

/* A walk by the unwind tables: the address of the present frame's saved frame pointer (0: lost) and its stack pointer. */
typedef struct walk {
    uint64_t frame, end;
    uint64_t sp, fp_at;
    check *checks;
    int n;
} walk;

static int is_word(const walk *w, uint64_t addr)
{
    return addr % 8 == 0 && addr >= w->frame && addr < w->end && w->end - addr >= 8 && addr - w->frame <= INT32_MAX;
}

static void add(walk *w, uint64_t addr, int is_relative, uint64_t expected)
{
    w->checks[w->n++] = (check){ expected, (uint32_t)(addr - w->frame), (uint32_t)is_relative };
}

/* From the frame that `rule` is for to its caller's, which must be at return address `next`. */
static int step(walk *w, const tn_cfi_rule *rule, uint64_t next)
{
    uint64_t cfa;
    if (rule->ra_offset != -8)
        return 0;
    if (rule->kind == TN_CFI_SP) {
        cfa = w->sp + (uint64_t)(int64_t)rule->cfa;
    } else if (rule->kind == TN_CFI_FP && w->fp_at) {
        uint64_t fp = *(const tn_stack_word *)w->fp_at;
        add(w, w->fp_at, 1, fp - w->frame);
        cfa = fp + (uint64_t)(int64_t)rule->cfa;
    } else {
        return 0;
    }
    uint64_t slot = cfa - 8;
    if (slot < w->sp || !is_word(w, slot) || *(const tn_stack_word *)slot != next)
        return 0;
    add(w, slot, 0, next);
    if (rule->fp == TN_CFI_FP_SAVED) {
        w->fp_at = cfa + (uint64_t)(int64_t)rule->fp_offset;
        if (!is_word(w, w->fp_at))
            w->fp_at = 0;
    } else if (rule->fp != TN_CFI_FP_SAME) {
        w->fp_at = 0;
    }
    w->sp = cfa;
    return 1;
}

/* The words that decide this chain, in the order in which they may be read; 0: it is none that may be kept. */
static int checks_of(tn_slots *c, uint64_t frame, const uint64_t *frames, int n, int max, check *checks)
{
    /* The hook's frame: the frame pointer, saved, its return address, and above it the stack pointer at the call. */
    walk w = { frame, c->end, frame + 16, frame, checks, 0 };
    if (frame - c->lowest > c->span || frame % 8 != 0 || *(const tn_stack_word *)(frame + 8) != frames[0])
        return 0;
    add(&w, frame + 8, 0, frames[0]);
    for (int i = 0; i + 1 < n; i++)
        if (!step(&w, rule_of(c, frames[i]), frames[i + 1]))
            return 0;
    /* A shorter chain than there was room for must end because nothing is above it, which is a fact about its last return address. */
    return n == max || rule_of(c, frames[n - 1])->kind == TN_CFI_END ? w.n : 0;
}

static void clear(tn_slots *c)
{
    memset(c->index, 0, sizeof c->index);
    for (unsigned i = 0; i < TN_STRIPS; i++)
        c->strips[i].caller = 0;
    c->count = 1;
}

/* The nodes of a chain; returns their number. */
static int nodes_of(const check *checks, int n, node *out)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        node *k = &out[count++];
        *k = (node){ .expected = { checks[i].expected, 0 }, .offset = checks[i].offset, .kind = checks[i].is_relative ? TN_SLOT_RELATIVE : TN_SLOT_WORD };
        if (i + 1 < n && !checks[i].is_relative && checks[i + 1].is_relative && checks[i + 1].offset + 8 == checks[i].offset) {
            k->kind = TN_SLOT_PAIR;
            k->expected[1] = checks[++i].expected;
        }
    }
    return count;
}

static int is_same(const node *a, const node *k)
{
    return a->kind == k->kind && a->expected[0] == k->expected[0] && a->expected[1] == k->expected[1];
}

/* The node among e's children that is the same as k; 0: none. *alike: how many have k's word, but not its kind or its frame pointer. */
static uint32_t known(const tn_slots *c, uint32_t e, const node *k, int *alike)
{
    *alike = 0;
    if (e + 1 < c->count && c->nodes[e + 1].parent == e && c->nodes[e + 1].expected[0] == k->expected[0]) {
        if (is_same(&c->nodes[e + 1], k))
            return e + 1;
        ++*alike;
    }
    for (uint32_t i = place_of(e, k->expected[0]); c->index[i] != 0; i = (i + 1) & (TN_SLOTS_INDEX - 1)) {
        const node *m = &c->nodes[c->index[i]];
        if (m->parent != e || m->expected[0] != k->expected[0])
            continue;
        if (is_same(m, k))
            return c->index[i];
        *alike += m->kind == k->kind ? 1 : ALTERNATIVES_MAX; /* of another kind: cannot be */
    }
    return 0;
}

static void put_in_index(tn_slots *c, uint32_t parent, uint32_t at)
{
    uint32_t i = place_of(parent, c->nodes[at].expected[0]);
    while (c->index[i])
        i = (i + 1) & (TN_SLOTS_INDEX - 1);
    c->index[i] = (uint16_t)at;
}

/* The rest of a chain, from the first node that e has no child for. */
static void append(tn_slots *c, uint32_t e, const node *rest, int n, uint32_t site)
{
    uint32_t at = c->count, parent = e;
    for (int i = 0; i < n; i++) {
        node *k = &c->nodes[at + (uint32_t)i];
        *k = rest[i];
        k->parent = (uint16_t)parent;
        k->site = i == n - 1 ? site : TN_SITE_NONE;
        parent = at + (uint32_t)i;
    }
    c->count += (uint32_t)n;
    if (at != e + 1) /* or it is the first child */
        put_in_index(c, e, at);
}

/* Whether `at`, a child of e, is about the word that k is about. Always, as long as the unwind tables are the same. */
static int is_place_of(const tn_slots *c, uint32_t at, const node *k)
{
    return c->nodes[at].offset == k->offset && (c->nodes[at].kind == TN_SLOT_RELATIVE) == (k->kind == TN_SLOT_RELATIVE);
}

/* Whether k may be put beside the children that e has. */
static int may_join(tn_slots *c, uint32_t e, const node *k, int alike)
{
    if (e + 1 == c->count)
        return 1; /* node 0 of an empty cache: there is none */
    node *first = &c->nodes[e + 1];
    if (!is_place_of(c, e + 1, k) || alike >= ALTERNATIVES_MAX)
        return 0;
    if (k->kind != TN_SLOT_RELATIVE)
        return first->expected[0] != k->expected[0] || first->kind == k->kind;
    if (first->alternatives == ALTERNATIVES_MAX)
        return 0;
    first->alternatives++;
    return 1;
}

int tn_slots_keep_in(tn_slots *c, uint64_t epoch, uint64_t frame, const uint64_t *frames, int n, int max, uint32_t site)
{
    check checks[CHECKS_MAX];
    node nodes[CHECKS_MAX];
    if (n < 1 || n > TN_UNWIND_MAX || site < TN_SITE_FIRST)
        return 0;
    if (c->epoch != epoch) {
        memset(c->rules, 0, sizeof c->rules);
        clear(c);
        c->epoch = epoch;
    }
    int count = nodes_of(checks, checks_of(c, frame, frames, n, max, checks), nodes);
    if (count == 0)
        return 0;
    if (c->count + (uint32_t)count > TN_SLOTS_NODES)
        clear(c);
    uint32_t e = 0, next;
    int i = 0, alike = 0;
    for (; i < count && (next = known(c, e, &nodes[i], &alike)) != 0; i++) {
        if (!is_place_of(c, next, &nodes[i]))
            return 0;
        e = next;
        if (c->nodes[e].site != TN_SITE_NONE)
            return 0; /* it is there already */
    }
    if (i == count || !may_join(c, e, &nodes[i], alike)) /* to end where another goes on: cannot be either */
        return 0;
    append(c, e, nodes + i, count - i, site);
    return 1;
}

tn_slots *tn_slots_new(uint64_t lowest, uint64_t end)
{
    tn_slots *c = SUPPORTED && end - lowest >= 16 ? tn_sys_map_memory(sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->lowest = lowest;
    c->end = end;
    c->span = end - lowest - 16;
    c->strips = c->strip_room;
    c->count = 1;
    return c;
}

void tn_slots_free(tn_slots *c)
{
    tn_sys_unmap(c, sizeof *c);
}

const tn_slots *tn_slots_mine(void)
{
    return tn_slots_own;
}

uint32_t tn_slots_count(const tn_slots *c)
{
    return c->count - 1;
}

/* ---- a thread's own */

static void ends(void *c)
{
    tn_slots_own = NULL;
    has_none = 1;
    tn_slots_free(c);
}

void tn_slots_start(void)
{
    if (!can_end)
        can_end = pthread_key_create(&thread_end, ends) == 0;
}

static tn_slots *make_mine(void)
{
    uint64_t lowest, end;
    has_none = 1;
    if (!SUPPORTED || !can_end || tn_stack_bounds(&lowest, &end) != 0)
        return NULL;
    tn_slots *c = tn_slots_new(lowest, end);
    if (!c)
        return NULL;
    if (pthread_setspecific(thread_end, c) != 0) {
        tn_slots_free(c);
        return NULL;
    }
    tn_slots_own = c;
    has_none = 0;
    return c;
}

void tn_slots_keep(uint64_t epoch, const void *frame, const uint64_t *frames, int n, int max, uint32_t site)
{
    tn_slots *c = tn_slots_own;
    if (!tn_epoch_idle(epoch) || tn_epoch() != epoch || has_none || (!c && !(c = make_mine())))
        return;
    tn_slots_keep_in(c, epoch, (uint64_t)frame, frames, n, max, site);
}
