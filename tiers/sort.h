/* Pairs sorted by their key, in place and without memory of its own, which libc's qsort does not promise. No state; any thread. */
#ifndef TENURE_TIERS_SORT_H
#define TENURE_TIERS_SORT_H

#include <stddef.h>

typedef struct tn_sort_item {
    size_t key, value;
} tn_sort_item;

/* Lets the item at `root` sink to its place in the heap of `count` items. */
static inline void tn_sort_sink(tn_sort_item *items, size_t root, size_t count)
{
    tn_sort_item sinking = items[root];
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && items[child].key < items[child + 1].key)
            child++;
        if (items[child].key <= sinking.key)
            break;
        items[root] = items[child];
        root = child;
    }
    items[root] = sinking;
}

/* By rising key; equal keys in no particular order. */
static inline void tn_sort(tn_sort_item *items, size_t count)
{
    for (size_t root = count / 2; root-- > 0;)
        tn_sort_sink(items, root, count);
    for (size_t last = count; last-- > 1;) {
        tn_sort_item largest = items[0];
        items[0] = items[last];
        items[last] = largest;
        tn_sort_sink(items, 0, last);
    }
}

#endif
