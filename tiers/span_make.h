/* For the tier allocators alone, and not installed: the one place where a stable span begins. Who calls it vouches that the memory
 * keeps its address until its region is released. */
#ifndef TENURE_TIERS_SPAN_MAKE_H
#define TENURE_TIERS_SPAN_MAKE_H

#include "tiers/span.h"

tn_stable_span tn_stable_make(void *data, size_t bytes);

#endif
