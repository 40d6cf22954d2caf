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

typedef struct node {
    uint64_t expected;
    uint32_t offset;      /* of the word, from the hook's frame address; the same in all children of one node */
    uint32_t site;        /* of the chain that ends here; TN_SITE_NONE: it goes on, and the first child is the next node */
    uint16_t parent;      /* 0 at the hook's caller */
    uint8_t is_relative;  /* a saved frame pointer, less the hook's frame address */
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
    uint32_t count;       /* nodes in use; the first one is none */
    uint16_t index[INDEX]; /* nodes by (parent, expected): those at the hook's caller and second and later children */
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

static inline uint64_t word_at(uint64_t frame, const node *k)
{
    return *(const stack_word *)(frame + k->offset) - (frame & -(uint64_t)k->is_relative);
}

uint32_t tn_slots_find_in(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame)
{
    if (c->epoch != epoch || frame - c->lowest > c->span || *(const stack_word *)(frame + 8) != caller)
        return TN_SITE_NONE;
    uint64_t room = c->end - frame - 8; /* the last offset at which a word still lies below the stack's end */
    uint32_t at = child(c, 0, caller);
    if (at == 0)
        return TN_SITE_NONE;
    const node *e = &c->nodes[at];
    while (e->site == TN_SITE_NONE) {
        const node *k = e + 1;
        if (k->offset > room)
            return TN_SITE_NONE;
        uint64_t word = word_at(frame, k);
        if (word != k->expected) {
            at = child(c, (uint32_t)(e - c->nodes), word);
            if (at == 0)
                return TN_SITE_NONE;
            k = &c->nodes[at];
        }
        e = k;
    }
    return e->site;
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
}

/* The node among e's children that stands for this word, or NULL. e: NULL at the hook's caller. */
static node *known(tn_slots *c, node *e, const check *k)
{
    if (e && (e + 1)->expected == k->expected)
        return e + 1;
    uint32_t at = child(c, e ? (uint32_t)(e - c->nodes) : 0, k->expected);
    return at ? &c->nodes[at] : NULL;
}

static void put_in_index(tn_slots *c, uint32_t parent, uint32_t at)
{
    uint32_t i = place_of(parent, c->nodes[at].expected);
    while (c->index[i])
        i = (i + 1) & (INDEX - 1);
    c->index[i] = (uint16_t)at;
}

/* The rest of a chain, from the first word that e (NULL: none) has no child for. */
static void append(tn_slots *c, node *e, const check *checks, int n, uint32_t site)
{
    uint32_t first = c->count, parent = e ? (uint32_t)(e - c->nodes) : 0;
    for (int i = 0; i < n; i++) {
        c->nodes[first + (uint32_t)i] = (node){ checks[i].expected, checks[i].offset, i == n - 1 ? site : TN_SITE_NONE,
                                                (uint16_t)(i ? first + (uint32_t)i - 1 : parent), (uint8_t)checks[i].is_relative, 0 };
    }
    c->count += (uint32_t)n;
    put_in_index(c, parent, first);
}

int tn_slots_keep_in(tn_slots *c, uint64_t epoch, uint64_t frame, const uint64_t *frames, int n, int max, uint32_t site)
{
    check checks[CHECKS_MAX];
    if (n < 1 || n > TN_UNWIND_MAX || site == TN_SITE_NONE)
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
    node *e = NULL, *next;
    int i = 0;
    while (i < count && (next = known(c, e, &checks[i])) && next->offset == checks[i].offset && next->is_relative == checks[i].is_relative) {
        e = next;
        i++;
        if (e->site != TN_SITE_NONE)
            return 0; /* it is there already */
    }
    if (i == count)
        return 0; /* ends where another goes on: cannot be, and is not kept */
    if (e) {
        node *sibling = e + 1;
        if (sibling->offset != checks[i].offset || sibling->is_relative != checks[i].is_relative)
            return 0; /* the same words and another place: cannot be either */
        if (sibling->is_relative && sibling->alternatives++ >= ALTERNATIVES_MAX) {
            sibling->alternatives = ALTERNATIVES_MAX;
            return 0;
        }
    }
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
