/* The kinds of charges by name. */
#include "planner/charge.h"

#include <string.h>

static const struct {
    const char *key, *label;
} names[TN_CHARGES] = {
    [TN_CLAIM_CONTEXT] = {"context", "CUDA context + driver"},
    [TN_CLAIM_MODULES] = {"modules", "kernel code"},
    [TN_CLAIM_LIBRARIES] = {"libraries", "library reserve"},
    [TN_CLAIM_STREAMS] = {"streams", "streams and events"},
    [TN_CLAIM_GRAPHS] = {"graphs", "graphs"},
    [TN_CLAIM_LIMITS] = {"limits", "stacks, local memory, device heap"},
    [TN_CLAIM_POOLS] = {"pools", "slack of pools and shared pages"},
    [TN_CLAIM_OTHER] = {"other", "other charges"},
};

const char *tn_charge_key(tn_charge charge)
{
    return (unsigned)charge < TN_CHARGES ? names[charge].key : "unknown";
}

const char *tn_charge_label(tn_charge charge)
{
    return (unsigned)charge < TN_CHARGES ? names[charge].label : "unknown";
}

tn_charge tn_charge_find(const char *key)
{
    int i = 0;
    while (i < TN_CHARGES && strcmp(names[i].key, key) != 0)
        i++;
    return (tn_charge)i;
}
