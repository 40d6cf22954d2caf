/* The per-thread cache of call chains. See callsite_slots.h. Chains with the same innermost frames share them: the cache is a tree whose nodes
 * are words to compare (return addresses, and frame pointers where they decide), and whose leaves are sites. Most programs allocate through
 * one funnel, so that the first frames of all chains are the same; looking at them once is what makes it cheap. */
#define _GNU_SOURCE
#include "shim/callsite_slots.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "ledger/tn_sys.h"
#include "shim/callsite_tables.h"
#include "shim/cfi.h"
#include "shim/unwind.h"

#if defined(__x86_64__)
#define SUPPORTED 1
#else
#define SUPPORTED 0
#endif

#define INDEX_BITS 14
#define INDEX (1u << INDEX_BITS)
#define RULES 512u
/* Different values of one frame pointer: below an alloca of ever new sizes there would be no end to them. */
#define ALTERNATIVES_MAX 16

typedef uint64_t __attribute__((may_alias)) stack_word;

/* What comes after a node: a word to compare as it is; a saved frame pointer, to compare less the hook's frame address; or nothing, then this is
 * the chain's site. */
enum { NEXT_WORD = 0, NEXT_RELATIVE = 1 };
_Static_assert(TN_SITE_FIRST > NEXT_RELATIVE, "sites and kinds share a field");

typedef struct node {
    uint64_t expected;
    uint32_t offset;      /* of the word, from the hook's frame address; the same in all children of one node */
    uint32_t next;        /* the first child of a node is the node behind it */
    uint16_t parent;      /* 0: node 0, which stands for the hook itself */
    uint8_t alternatives; /* in a first child that is relative: how many siblings it has */
} node;

typedef struct rule_entry {
    uint64_t ret;
    tn_cfi_rule rule;
} rule_entry;

struct tn_slots {
    uint64_t epoch;
    uint64_t lowest, end; /* of the stack */
    uint64_t span;        /* a hook's frame, two words, begins at most so far above `lowest` */
    uint32_t count;       /* nodes in use, node 0 among them */
    uint32_t reach;       /* the largest offset in any node */
    uint16_t index[INDEX]; /* second and later children, by (parent, expected) */
    rule_entry rules[RULES];
    node nodes[TN_SLOTS_NODES];
};

int tn_slots_mode = TN_SLOTS_DEFAULT;
uint64_t tn_slots_hits, tn_slots_differences;
static int can_end;
static pthread_key_t thread_end;
static __thread tn_slots *mine __attribute__((tls_model("initial-exec")));
static __thread uint8_t has_none __attribute__((tls_model("initial-exec"))); /* and gets none: the thread is ending, or it could not be had */

void tn_slots_checked(int is_different)
{
    __atomic_fetch_add(&tn_slots_hits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&tn_slots_differences, (uint64_t)(is_different != 0), __ATOMIC_RELAXED);
}

/* ---- looking up */

static inline uint32_t place_of(uint32_t parent, uint64_t word)
{
    return (uint32_t)((word ^ (uint64_t)parent << 48) * 0x9e3779b97f4a7c15u >> (64 - INDEX_BITS));
}

/* Another child of `parent` than its first; 0: none. The index is half full at most. */
static inline uint32_t child(const tn_slots *c, uint32_t parent, uint64_t word)
{
    for (uint32_t i = place_of(parent, word);; i = (i + 1) & (INDEX - 1)) {
        uint32_t n = c->index[i];
        if (n == 0 || (c->nodes[n].expected == word && c->nodes[n].parent == parent))
            return n;
    }
}

/* From node 0 to a leaf. `room`: the last offset at which a word may be read. */
static inline __attribute__((always_inline)) uint32_t descend(const tn_slots *c, uint64_t frame, uint64_t room, int is_near_end)
{
    const node *e = &c->nodes[0];
    for (;;) {
        const node *k = e + 1;
        if (e->next > NEXT_RELATIVE)
            return e->next;
        if (is_near_end && k->offset > room)
            return TN_SITE_NONE;
        uint64_t word = *(const stack_word *)(frame + k->offset);
        if (e->next == NEXT_RELATIVE)
            word -= frame;
        if (word != k->expected) {
            uint32_t at = child(c, (uint32_t)(e - c->nodes), word);
            if (at == 0)
                return TN_SITE_NONE;
            k = &c->nodes[at];
        }
        e = k;
    }
}

uint32_t tn_slots_find_in(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame)
{
    if (c->epoch != epoch || frame - c->lowest > c->span || *(const stack_word *)(frame + 8) != caller || c->count == 1)
        return TN_SITE_NONE;
    uint64_t room = c->end - frame - 8;
    return room >= c->reach ? descend(c, frame, room, 0) : descend(c, frame, room, 1);
}

uint32_t tn_slots_find(uint64_t epoch, const void *caller, const void *frame)
{
    const tn_slots *c = mine;
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
    rule_entry *e = &c->rules[ret * 0x9e3779b97f4a7c15u >> (64 - 9)];
    if (e->ret != ret) {
        tn_cfi_rule_of(ret, &e->rule);
        e->ret = ret;
    }
    return &e->rule;
}
_Static_assert(RULES == 1u << 9, "rule_of() takes nine bits");

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
        uint64_t fp = *(const stack_word *)w->fp_at;
        add(w, w->fp_at, 1, fp - w->frame);
        cfa = fp + (uint64_t)(int64_t)rule->cfa;
    } else {
        return 0;
    }
    uint64_t slot = cfa - 8;
    if (slot < w->sp || !is_word(w, slot) || *(const stack_word *)slot != next)
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
    if (frame - c->lowest > c->span || frame % 8 != 0 || *(const stack_word *)(frame + 8) != frames[0])
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
    c->count = 1;
    c->reach = 0;
}

/* The node among e's children that stands for this word; 0: none. */
static uint32_t known(const tn_slots *c, uint32_t e, const check *k)
{
    if (e + 1 < c->count && c->nodes[e + 1].parent == e && c->nodes[e + 1].expected == k->expected)
        return e + 1;
    return child(c, e, k->expected);
}

static void put_in_index(tn_slots *c, uint32_t parent, uint32_t at)
{
    uint32_t i = place_of(parent, c->nodes[at].expected);
    while (c->index[i])
        i = (i + 1) & (INDEX - 1);
    c->index[i] = (uint16_t)at;
}

/* The rest of a chain, from the first word that e has no child for. */
static void append(tn_slots *c, uint32_t e, const check *checks, int n, uint32_t site)
{
    uint32_t at = c->count, parent = e;
    for (int i = 0; i < n; i++) {
        uint32_t next = i == n - 1 ? site : checks[i + 1].is_relative ? NEXT_RELATIVE : NEXT_WORD;
        c->nodes[at + (uint32_t)i] = (node){ checks[i].expected, checks[i].offset, next, (uint16_t)parent, 0 };
        parent = at + (uint32_t)i;
        if (checks[i].offset > c->reach)
            c->reach = checks[i].offset;
    }
    c->count += (uint32_t)n;
    if (at != e + 1) /* or it is the first child */
        put_in_index(c, e, at);
}

/* Whether `at`, a child of e, is about the word that k is about. Always, as long as the unwind tables are the same. */
static int is_place_of(const tn_slots *c, uint32_t e, uint32_t at, const check *k)
{
    return c->nodes[at].offset == k->offset && (c->nodes[e].next == NEXT_RELATIVE) == (k->is_relative != 0);
}

/* Whether a new child of e that stands for this word may be put beside those that are there. */
static int may_join(tn_slots *c, uint32_t e, const check *k)
{
    if (e + 1 == c->count)
        return 1; /* node 0 of an empty cache: there is none */
    node *sibling = &c->nodes[e + 1];
    if (!is_place_of(c, e, e + 1, k))
        return 0;
    if (!k->is_relative)
        return 1;
    if (sibling->alternatives == ALTERNATIVES_MAX)
        return 0;
    sibling->alternatives++;
    return 1;
}

int tn_slots_keep_in(tn_slots *c, uint64_t epoch, uint64_t frame, const uint64_t *frames, int n, int max, uint32_t site)
{
    check checks[CHECKS_MAX];
    if (n < 1 || n > TN_UNWIND_MAX || site < TN_SITE_FIRST)
        return 0;
    if (c->epoch != epoch) {
        memset(c->rules, 0, sizeof c->rules);
        clear(c);
        c->epoch = epoch;
    }
    int count = checks_of(c, frame, frames, n, max, checks);
    if (count == 0)
        return 0;
    if (c->count + (uint32_t)count > TN_SLOTS_NODES)
        clear(c);
    uint32_t e = 0, next;
    int i = 0;
    for (; i < count && (next = known(c, e, &checks[i])) != 0; i++) {
        if (!is_place_of(c, e, next, &checks[i]))
            return 0;
        e = next;
        if (c->nodes[e].next > NEXT_RELATIVE)
            return 0; /* it is there already */
    }
    if (i == count || !may_join(c, e, &checks[i])) /* to end where another goes on: cannot be either */
        return 0;
    append(c, e, checks + i, count - i, site);
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
    c->count = 1;
    return c;
}

void tn_slots_free(tn_slots *c)
{
    tn_sys_unmap(c, sizeof *c);
}

const tn_slots *tn_slots_mine(void)
{
    return mine;
}

uint32_t tn_slots_count(const tn_slots *c)
{
    return c->count - 1;
}

/* ---- a thread's own */

static void ends(void *c)
{
    mine = NULL;
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
    mine = c;
    has_none = 0;
    return c;
}

void tn_slots_keep(uint64_t epoch, const void *frame, const uint64_t *frames, int n, int max, uint32_t site)
{
    tn_slots *c = mine;
    if (!tn_epoch_idle(epoch) || tn_epoch() != epoch || has_none || (!c && !(c = make_mine())))
        return;
    tn_slots_keep_in(c, epoch, (uint64_t)frame, frames, n, max, site);
}
