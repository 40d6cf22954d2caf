/* A small map from pairs of 64-bit numbers to one: streams, contexts, functions, query counters. Owned by the
 * process; one lock a map, held for a few loads and never around a CUDA or loader call. Nodes come from
 * anonymous mappings, never from malloc, and go back to the map's own free list. */
#ifndef TENURE_SHIM_MAP_H
#define TENURE_SHIM_MAP_H

#include <pthread.h>
#include <stdint.h>

typedef struct tn_map_node {
    struct tn_map_node *next;
    uint64_t a, b, value;
} tn_map_node;

#define TN_MAP_BUCKETS 1024u
typedef struct tn_map {
    pthread_mutex_t lock;
    tn_map_node *free_list;
    tn_map_node *bucket[TN_MAP_BUCKETS];
} tn_map;

#define TN_MAP_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}

/* 1 and *value (may be NULL) where (a, b) is there, else 0. */
int tn_map_get(tn_map *m, uint64_t a, uint64_t b, uint64_t *value);
/* Puts (a, b) -> *value where it is not there yet and returns 1; where it is, fills *value and returns 0; -1 when no
 * memory is left. */
int tn_map_add(tn_map *m, uint64_t a, uint64_t b, uint64_t *value);
/* Adds one to the value of (a, b), starting at 0, and returns the new value; 0 when no memory is left. */
uint64_t tn_map_count(tn_map *m, uint64_t a, uint64_t b);
/* Takes (a, b) out: 1 and *value (may be NULL), or 0. */
int tn_map_remove(tn_map *m, uint64_t a, uint64_t b, uint64_t *value);
/* Takes a pair with this `a` out: 1 and *value, or 0 where there is none. */
int tn_map_remove_any(tn_map *m, uint64_t a, uint64_t *value);

#endif
