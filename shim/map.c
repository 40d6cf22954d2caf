#include "shim/map.h"

#include <stddef.h>

#include "shim/pages.h"

#define SLAB_BYTES 65536u

static tn_map_node **bucket_of(tn_map *m, uint64_t a, uint64_t b)
{
    uint64_t h = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu);
    h ^= h >> 29;
    return &m->bucket[(h * 0xbf58476d1ce4e5b9u) >> 54];
}

static tn_map_node **slot_of(tn_map *m, uint64_t a, uint64_t b)
{
    tn_map_node **p = bucket_of(m, a, b);
    while (*p && ((*p)->a != a || (*p)->b != b)) p = &(*p)->next;
    return p;
}

static tn_map_node *new_node(tn_map *m)
{
    if (!m->free_list) {
        tn_map_node *slab = tn_pages(SLAB_BYTES);
        if (!slab) return NULL;
        for (size_t i = 0; i < SLAB_BYTES / sizeof *slab; i++) {
            slab[i].next = m->free_list;
            m->free_list = &slab[i];
        }
    }
    tn_map_node *n = m->free_list;
    m->free_list = n->next;
    return n;
}

int tn_map_get(tn_map *m, uint64_t a, uint64_t b, uint64_t *value)
{
    pthread_mutex_lock(&m->lock);
    const tn_map_node *n = *slot_of(m, a, b);
    if (n && value) *value = n->value;
    pthread_mutex_unlock(&m->lock);
    return n != NULL;
}

int tn_map_add(tn_map *m, uint64_t a, uint64_t b, uint64_t *value)
{
    int added;
    pthread_mutex_lock(&m->lock);
    tn_map_node **p = slot_of(m, a, b);
    if (*p) {
        *value = (*p)->value;
        added = 0;
    } else if ((*p = new_node(m)) != NULL) {
        **p = (tn_map_node){.a = a, .b = b, .value = *value};
        added = 1;
    } else {
        added = -1;
    }
    pthread_mutex_unlock(&m->lock);
    return added;
}

uint64_t tn_map_count(tn_map *m, uint64_t a, uint64_t b)
{
    uint64_t count = 0;
    pthread_mutex_lock(&m->lock);
    tn_map_node **p = slot_of(m, a, b);
    if (!*p && (*p = new_node(m)) != NULL) **p = (tn_map_node){.a = a, .b = b};
    if (*p) count = ++(*p)->value;
    pthread_mutex_unlock(&m->lock);
    return count;
}

static void take_out(tn_map *m, tn_map_node **p)
{
    tn_map_node *n = *p;
    *p = n->next;
    n->next = m->free_list;
    m->free_list = n;
}

int tn_map_remove(tn_map *m, uint64_t a, uint64_t b, uint64_t *value)
{
    pthread_mutex_lock(&m->lock);
    tn_map_node **p = slot_of(m, a, b);
    int found = *p != NULL;
    if (found) {
        if (value) *value = (*p)->value;
        take_out(m, p);
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

int tn_map_remove_any(tn_map *m, uint64_t a, uint64_t *value)
{
    int found = 0;
    pthread_mutex_lock(&m->lock);
    for (unsigned i = 0; !found && i < TN_MAP_BUCKETS; i++)
        for (tn_map_node **p = &m->bucket[i]; !found && *p;) {
            found = (*p)->a == a;
            if (!found) {
                p = &(*p)->next;
                continue;
            }
            *value = (*p)->value;
            take_out(m, p);
        }
    pthread_mutex_unlock(&m->lock);
    return found;
}
