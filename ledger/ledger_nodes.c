/* Where the ledger's nodes live: slabs of 1 MiB, handed out in pages of 64 nodes to stacks of free ones, which threads share as little as
 * they can. Pages that hold none but free nodes go back to the system when the ledger shrinks; their addresses stay. */
#define _GNU_SOURCE
#include <errno.h>

#include "ledger/ledger_internal.h"
#include "ledger/tn_sys.h"

#define PAGE_NODES 64u
#define SLAB_PAGES 256u
#define SLAB_BYTES ((size_t)SLAB_PAGES * PAGE_NODES * sizeof(tn_node))
#define SLABS (1u << (TN_NODE_BITS - TN_SLAB_NODES_BITS))
#define STACKS 64u
#define NODE_MASK ((1u << TN_NODE_BITS) - 1)

/* Free nodes, a word: the topmost one's number, and above it a number that each change raises, without which a pop that was interrupted
 * could take a node for the topmost that came back meanwhile, with another below it. */
typedef struct stack {
    uint64_t top;
} __attribute__((aligned(64))) stack;

/* Page 0 of a slab, under the supply lock. */
typedef struct slab_head {
    uint64_t state[SLAB_PAGES];     /* with which the page's nodes begin: above all that they ever had */
    uint32_t next_free[SLAB_PAGES]; /* page number + 1 of the next page that was given back */
    uint8_t first[SLAB_PAGES];      /* while trimming: place + 1 of the first of the page's free nodes, which are a chain */
    uint8_t count[SLAB_PAGES];      /* and how many they are */
} slab_head;
_Static_assert(sizeof(slab_head) <= PAGE_NODES * sizeof(tn_node), "the head takes one page");

tn_node *tn_slabs[SLABS];
static stack stacks[STACKS];
static uint32_t threads;                                                        /* atomic */
static __thread uint32_t own_stack __attribute__((tls_model("initial-exec"))); /* + 1 */

static tn_lock supply = TN_LOCK_INIT(TN_LOCK_LEDGER_SLABS);
static uint32_t fresh_page;  /* pages from here on were never handed out; atomic for tn_node_next */
static uint32_t given_back;  /* page number + 1 */

static slab_head *head_of(uint32_t page)
{
    return (slab_head *)(void *)tn_slabs[page / SLAB_PAGES];
}

static stack *mine(void)
{
    if (own_stack == 0)
        own_stack = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) % STACKS;
    return &stacks[own_stack - 1];
}

static uint64_t with_top(uint64_t top, uint32_t node)
{
    return (top & ~(uint64_t)NODE_MASK) + NODE_MASK + 1 + node;
}

static uint32_t below(uint32_t node)
{
    return (uint32_t)__atomic_load_n(&tn_node_at(node)->words[0], __ATOMIC_RELAXED) & NODE_MASK;
}

static uint32_t pop(stack *s)
{
    uint64_t top = __atomic_load_n(&s->top, __ATOMIC_ACQUIRE);
    while ((top & NODE_MASK) != 0) {
        /* Where another thread has it already, its first word may be anything; then the swap fails. */
        uint32_t node = (uint32_t)top & NODE_MASK;
        if (__atomic_compare_exchange_n(&s->top, &top, with_top(top, below(node)), 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return node;
    }
    return TN_NO_NODE;
}

static void push(stack *s, uint32_t first, uint32_t last)
{
    uint64_t top = __atomic_load_n(&s->top, __ATOMIC_RELAXED);
    do {
        __atomic_store_n(&tn_node_at(last)->words[0], top & NODE_MASK, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&s->top, &top, with_top(top, first), 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* All nodes of a stack, as a chain. */
static uint32_t take_all(stack *s)
{
    uint64_t top = __atomic_load_n(&s->top, __ATOMIC_RELAXED);
    while ((top & NODE_MASK) != 0 &&
           !__atomic_compare_exchange_n(&s->top, &top, with_top(top, TN_NO_NODE), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        ;
    return (uint32_t)top & NODE_MASK;
}

/* Another thread's free nodes: where one allocates what another frees, they gather there. One is returned, the rest is ours. */
static uint32_t take_over(stack *own)
{
    uint32_t in_use = __atomic_load_n(&threads, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < STACKS && i < in_use; i++) {
        uint32_t first = &stacks[i] == own ? TN_NO_NODE : take_all(&stacks[i]);
        if (first == TN_NO_NODE)
            continue;
        uint32_t rest = below(first), last = rest;
        uint64_t top = __atomic_load_n(&own->top, __ATOMIC_RELAXED);
        if (rest == TN_NO_NODE)
            return first;
        if ((top & NODE_MASK) == 0 &&
            __atomic_compare_exchange_n(&own->top, &top, with_top(top, rest), 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return first;
        while (below(last) != TN_NO_NODE)
            last = below(last);
        push(own, rest, last);
        return first;
    }
    return TN_NO_NODE;
}

/* A page's number, 0 when there is no memory. Supply lock. */
static uint32_t take_page(void)
{
    uint32_t page;
    if (given_back != 0) {
        page = given_back - 1;
        given_back = head_of(page)->next_free[page % SLAB_PAGES];
        return page;
    }
    page = fresh_page;
    if (page % SLAB_PAGES == 0) {
        if (page / SLAB_PAGES == SLABS)
            return 0;
        tn_node *slab = tn_sys_map_memory(SLAB_BYTES);
        if (slab == NULL)
            return 0;
        __atomic_store_n(&tn_slabs[page / SLAB_PAGES], slab, __ATOMIC_RELEASE);
        page++;
    }
    __atomic_store_n(&fresh_page, page + 1, __ATOMIC_RELEASE);
    return page;
}

static __attribute__((noinline)) uint32_t refill(stack *own)
{
    uint32_t first = take_over(own);
    if (first != TN_NO_NODE)
        return first;
    int saved = errno;
    tn_lock_take(&supply);
    uint32_t page = take_page();
    uint64_t state = page == 0 ? 0 : head_of(page)->state[page % SLAB_PAGES];
    tn_lock_release(&supply);
    errno = saved;
    if (page == 0)
        return TN_NO_NODE;
    first = page * PAGE_NODES;
    for (uint32_t i = 0; i < PAGE_NODES; i++) {
        tn_node *n = tn_node_at(first + i);
        __atomic_store_n(&n->words[0], i + 1 < PAGE_NODES ? first + i + 1 : TN_NO_NODE, __ATOMIC_RELAXED);
        __atomic_store_n(&n->state, state, __ATOMIC_RELAXED);
    }
    push(own, first + 1, first + PAGE_NODES - 1);
    return first;
}

uint32_t tn_node_new(void)
{
    stack *own = mine();
    uint32_t node = pop(own);
    return node != TN_NO_NODE ? node : refill(own);
}

void tn_node_free(uint32_t node)
{
    push(mine(), node, node);
}

/* The page's nodes are all in its chain. Supply lock. */
static void give_back_page(slab_head *head, uint32_t page)
{
    uint32_t i = page % SLAB_PAGES;
    uint64_t state = 0;
    for (uint32_t k = 0; k < PAGE_NODES; k++) {
        uint64_t s = tn_state_next(__atomic_load_n(&tn_node_at(page * PAGE_NODES + k)->state, __ATOMIC_RELAXED));
        state = s > state ? s : state;
    }
    head->state[i] = state;
    head->next_free[i] = given_back;
    given_back = page + 1;
    /* Fails where the host has locked its memory; then the page is handed out again as it is. */
    (void)tn_sys_advise(tn_node_at(page * PAGE_NODES), PAGE_NODES * sizeof(tn_node), MADV_DONTNEED);
}

/* The nodes of a chain, as one chain for each page. */
static void sort_by_page(uint32_t chain)
{
    while (chain != TN_NO_NODE) {
        uint32_t node = chain, page = node / PAGE_NODES;
        slab_head *head = head_of(page);
        uint8_t *first = &head->first[page % SLAB_PAGES];
        chain = below(node);
        __atomic_store_n(&tn_node_at(node)->words[0], *first == 0 ? TN_NO_NODE : page * PAGE_NODES + *first - 1, __ATOMIC_RELAXED);
        *first = (uint8_t)(node % PAGE_NODES + 1);
        head->count[page % SLAB_PAGES]++;
    }
}

void tn_nodes_trim(void)
{
    int saved = errno;
    tn_lock_take(&supply);
    for (uint32_t i = 0; i < STACKS; i++)
        sort_by_page(take_all(&stacks[i]));
    for (uint32_t page = 1; page < fresh_page; page++) {
        slab_head *head = head_of(page);
        uint32_t i = page % SLAB_PAGES, count = head->count[i];
        if (i == 0 || count == 0)
            continue;
        uint32_t first = page * PAGE_NODES + head->first[i] - 1, last = first;
        head->first[i] = head->count[i] = 0;
        if (count == PAGE_NODES) {
            give_back_page(head, page);
            continue;
        }
        while (below(last) != TN_NO_NODE)
            last = below(last);
        push(mine(), first, last);
    }
    tn_lock_release(&supply);
    errno = saved;
}

uint32_t tn_node_next(uint32_t node)
{
    node++;
    if (node % (SLAB_PAGES * PAGE_NODES) < PAGE_NODES)
        node = node / (SLAB_PAGES * PAGE_NODES) * (SLAB_PAGES * PAGE_NODES) + PAGE_NODES;
    return node / PAGE_NODES < __atomic_load_n(&fresh_page, __ATOMIC_ACQUIRE) ? node : TN_NO_NODE;
}
