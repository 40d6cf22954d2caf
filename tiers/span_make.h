/* For the tier allocators alone, and not installed: the one place where a stable span begins. Who calls it vouches that the memory
 * keeps its address until its region is released. */
#ifndef TENURE_TIERS_SPAN_MAKE_H
#define TENURE_TIERS_SPAN_MAKE_H

#include "tiers/span.h"

tn_stable_span tn_stable_make(void *data, size_t bytes);

/* The same into *span. On a path of a few nanoseconds: a returned span is stored in two words and copied as one, which stalls the load
 * (3 ns of a take's 8). */
void tn_stable_put(void *data, size_t bytes, tn_stable_span *span) __attribute__((hot));

#endif
