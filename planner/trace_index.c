/* Open addressing, linear probing; what follows a removed entry moves up, so that no marks are left behind. */
#include "planner/trace_index.h"

#include <stdlib.h>

void tn_index_free(tn_index *t)
{
    free(t->slots);
    *t = (tn_index){0};
}

static size_t home(const tn_index *t, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 24) & t->mask;
}

static size_t find_slot(const tn_index *t, uint64_t key)
{
    size_t i = home(t, key);
    while (t->slots[i].used && t->slots[i].key != key)
        i = (i + 1) & t->mask;
    return i;
}

uint32_t tn_index_find(const tn_index *t, uint64_t key)
{
    if (t->count == 0)
        return TN_INDEX_NONE;
    size_t i = find_slot(t, key);
    return t->slots[i].used ? t->slots[i].value : TN_INDEX_NONE;
}

static tn_error grow(tn_index *t)
{
    tn_index old = *t;
    size_t size = old.slots ? (old.mask + 1) * 2 : 256;
    t->slots = calloc(size, sizeof(tn_index_slot));
    if (!t->slots) {
        *t = old;
        return TN_E_NOMEM;
    }
    t->mask = size - 1;
    for (size_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].used)
            t->slots[find_slot(t, old.slots[i].key)] = old.slots[i];
    free(old.slots);
    return TN_OK;
}

tn_error tn_index_set(tn_index *t, uint64_t key, uint32_t value)
{
    if (!t->slots || t->count * 2 > t->mask) {
        tn_error e = grow(t);
        if (e != TN_OK)
            return e;
    }
    size_t i = find_slot(t, key);
    t->count += !t->slots[i].used;
    t->slots[i] = (tn_index_slot){.key = key, .value = value, .used = 1};
    return TN_OK;
}

uint32_t tn_index_take(tn_index *t, uint64_t key)
{
    if (t->count == 0)
        return TN_INDEX_NONE;
    size_t hole = find_slot(t, key);
    if (!t->slots[hole].used)
        return TN_INDEX_NONE;
    uint32_t value = t->slots[hole].value;
    for (size_t i = hole;;) {
        i = (i + 1) & t->mask;
        if (!t->slots[i].used)
            break;
        if (((i - home(t, t->slots[i].key)) & t->mask) < ((i - hole) & t->mask))
            continue; /* it may not stand before its home */
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole].used = 0;
    t->count--;
    return value;
}
