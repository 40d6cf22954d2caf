/* Looking up in the cache of verified slots (callsite_slots.h), in a header of its own because tn_callsite() has it inline: at some ten
 * nanoseconds a call and its saved registers are a good part. A cache belongs to its thread, which alone reads and writes it.
 *
 * The cache is a tree. A node stands for words to compare, its children for what may come next, and a chain ends in a node with a site.
 * Beside it are strips: whole chains from the tree, laid out for comparing and found by the hook's caller and height. A strip that does not
 * agree costs one or two comparisons, and then the tree is asked. */
#ifndef TENURE_SHIM_CALLSITE_FIND_H
#define TENURE_SHIM_CALLSITE_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal_format.h"
#include "shim/callsite_slots.h"
#include "shim/cfi.h"

#define TN_SLOTS_INDEX_BITS 14
#define TN_SLOTS_INDEX (1u << TN_SLOTS_INDEX_BITS)
#define TN_SLOTS_RULES 512u
#define TN_STRIPS_BITS 7
#define TN_STRIPS (1u << TN_STRIPS_BITS)

typedef uint64_t __attribute__((may_alias)) tn_stack_word;

/* What a node stands for: one word to compare as it is; a saved frame pointer, to compare less the hook's frame address; or both, where
 * the frame pointer that the return address's function is found by was saved right below that address, as functions with frame pointers
 * do. */
enum { TN_SLOT_NONE = 0, TN_SLOT_WORD, TN_SLOT_RELATIVE, TN_SLOT_PAIR };

typedef struct tn_slot_node {
    uint64_t expected[2]; /* the first: of the word; the second: in a pair, the relative frame pointer below it */
    uint32_t offset;      /* of the word, from the hook's frame address; the same in all children of one node */
    uint32_t site;        /* 0: the node behind this one is its first child */
    uint16_t parent;      /* 0: node 0, which stands for the hook itself */
    uint8_t kind;
    uint8_t alternatives; /* in a first child that is relative: how many siblings it has */
    uint32_t unused;
} tn_slot_node;
_Static_assert(sizeof(tn_slot_node) == 32, "two nodes a cache line");

/* A chain in groups of four checks of one kind, the last check of a kind repeated where four are not full: a word with four offsets of 16
 * bits, in words, then what is expected there (of a pair: address and frame pointer in turn). So a check is little more than two loads and a
 * branch: the loop over nodes, with an offset and an end to look at each time, takes twice the time. */
#define TN_STRIP_WORDS 60
typedef struct tn_slot_strip {
    uint64_t caller; /* 0: empty */
    uint32_t site;
    uint32_t reach;  /* the largest offset, in bytes */
    uint64_t runs;   /* a byte each, the first one lowest: kind, and from bit 2 on how many groups; 0: the end */
    uint32_t others; /* how often it did not agree with a stack that the tree knew */
    uint32_t unused;
    uint64_t words[TN_STRIP_WORDS];
} tn_slot_strip;
_Static_assert(sizeof(tn_slot_strip) == 512, "strips begin with a cache line");

struct tn_slots {
    uint64_t epoch;
    uint64_t lowest, end; /* of the stack */
    uint64_t span;        /* a hook's frame, two words, begins at most so far above `lowest` */
    tn_slot_strip *strips; /* TN_STRIPS of them */
    uint32_t count;       /* nodes in use, node 0 among them */
    tn_slot_node nodes[TN_SLOTS_NODES] __attribute__((aligned(64)));
    uint16_t index[TN_SLOTS_INDEX]; /* second and later children, by (parent, first expected word) */
    struct tn_slots_rule {
        uint64_t ret;
        tn_cfi_rule rule;
    } rules[TN_SLOTS_RULES];
    tn_slot_strip strip_room[TN_STRIPS] __attribute__((aligned(64)));
};

/* The calling thread's, NULL: none. */
extern __thread tn_slots *tn_slots_own __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline uint64_t tn_slot_word(uint64_t address)
{
    return *(const tn_stack_word *)address;
}

static inline tn_slot_strip *tn_strip_of(const tn_slots *c, uint64_t caller, uint64_t frame)
{
    return &c->strips[(caller ^ frame << 7) * 0x9e3779b97f4a7c15u >> (64 - TN_STRIPS_BITS)];
}

/* Whether a strip's chain stands above the hook: innermost first, and each word is read only when all that say where it lies have been
 * compared. The strip reaches no further than the stack. */
static inline __attribute__((always_inline)) int tn_strip_agrees(const tn_slot_strip *s, uint64_t frame)
{
    const uint64_t *p = s->words;
    const tn_stack_word *word = (const tn_stack_word *)frame;
#define AT(i) word[(uint16_t)(offsets >> 16 * (i))]
#define BELOW(i) word[(int64_t)(uint16_t)(offsets >> 16 * (i)) - 1]
    for (uint64_t runs = s->runs; runs != 0; runs >>= 8) {
        const uint64_t groups = runs >> 2 & 63;
        if ((runs & 3) == TN_SLOT_WORD) {
            for (const uint64_t *end = p + 5 * groups; p != end; p += 5) {
                uint64_t offsets = p[0];
                if (AT(0) != p[1] || AT(1) != p[2] || AT(2) != p[3] || AT(3) != p[4])
                    return 0;
            }
        } else if ((runs & 3) == TN_SLOT_PAIR) {
            for (const uint64_t *end = p + 9 * groups; p != end; p += 9) {
                uint64_t offsets = p[0];
                if (AT(0) != p[1] || BELOW(0) != p[2] + frame || AT(1) != p[3] || BELOW(1) != p[4] + frame)
                    return 0;
                if (AT(2) != p[5] || BELOW(2) != p[6] + frame || AT(3) != p[7] || BELOW(3) != p[8] + frame)
                    return 0;
            }
        } else {
            for (const uint64_t *end = p + 5 * groups; p != end; p += 5) {
                uint64_t offsets = p[0];
                if (AT(0) != p[1] + frame || AT(1) != p[2] + frame || AT(2) != p[3] + frame || AT(3) != p[4] + frame)
                    return 0;
            }
        }
    }
#undef AT
#undef BELOW
    return 1;
}

/* Whether the cache is of this epoch and `frame` a hook's on its stack, called from `caller`. */
static inline int tn_slots_hold(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame)
{
    return c->epoch == epoch && frame - c->lowest <= c->span && tn_slot_word(frame + 8) == caller;
}

/* tn_slots_find_in() without the tree, which leaves nothing to save and restore. */
static inline __attribute__((always_inline)) uint32_t tn_slots_look(const tn_slots *c, uint64_t epoch, uint64_t caller, uint64_t frame)
{
    if (__builtin_expect(!tn_slots_hold(c, epoch, caller, frame), 0))
        return TN_SITE_NONE;
    const tn_slot_strip *strip = tn_strip_of(c, caller, frame);
    if (__builtin_expect(strip->caller != caller || strip->reach > c->end - frame - 8 || !tn_strip_agrees(strip, frame), 0))
        return TN_SITE_NONE;
    return strip->site;
}

#endif
