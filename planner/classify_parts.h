/* What the parts of the classifier share. For them alone; no state. */
#ifndef TENURE_PLANNER_CLASSIFY_PARTS_H
#define TENURE_PLANNER_CLASSIFY_PARTS_H

#include "planner/classify.h"

static inline void tn_decide(tn_unit *u, tn_discipline d, uint64_t capacity, const char *reason)
{
    u->discipline = d;
    u->capacity = capacity;
    u->reason = reason;
}

/* Why it is the driver's, as a phrase; NULL: it need not be. `exports`: an export counts. */
const char *tn_native_cause(const tn_unit *u, int exports);
/* Closes what has an exporter's innermost frame. */
void tn_keep_exporters(tn_section *s, uint8_t *open);

#endif
