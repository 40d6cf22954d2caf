/* The file's contents in memory, for its reader and its writer. */
#ifndef TENURE_PLANNER_RESERVE_MODEL_H
#define TENURE_PLANNER_RESERVE_MODEL_H

#include <jansson.h>
#include <stdio.h>

#include "planner/reserve.h"

typedef struct tn_reserve_measured {
    char run[TN_RESERVE_TEXT], date[TN_RESERVE_TEXT];
    tn_charges charges;
} tn_reserve_measured;

typedef struct tn_reserve_entry {
    char gpu[TN_RESERVE_TEXT], driver[TN_RESERVE_TEXT], loading[TN_RESERVE_TEXT];
    char (*libraries)[TN_RESERVE_TEXT]; /* sorted, each once */
    size_t library_count;
    tn_reserve_measured measured[TN_RESERVE_KEPT]; /* the oldest first */
    size_t measured_count;
} tn_reserve_entry;

struct tn_reserve {
    tn_reserve_entry *entries; /* sorted by tn_reserve_compare; room for one more than TN_RESERVE_ENTRIES */
    size_t entry_count;
};

enum { TN_RESERVE_LIBRARIES = 1024, TN_RESERVE_BYTES = 64 << 20 };

tn_reserve *tn_reserve_new(void); /* empty; NULL without memory */
int tn_reserve_compare(const tn_reserve_entry *a, const tn_reserve_entry *b);
/* Sorts, drops what stands twice. */
void tn_reserve_sort_libraries(tn_reserve_entry *entry);
/* The measurement goes to the entry like `key`, which is taken over, and made where there is none. Drops what is too old. */
void tn_reserve_add(tn_reserve *reserve, tn_reserve_entry *key, const tn_reserve_measured *measured);
/* The whole file's text, to be freed; NULL without memory. */
char *tn_reserve_text(const tn_reserve *reserve);

#endif
