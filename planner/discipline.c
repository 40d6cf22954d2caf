/* Names and what fits what. */
#include "planner/discipline.h"

#include <string.h>

#include "ledger/journal_format.h"

static const char *const discipline_names[TN_D_COUNT] = {"native", "T1", "T2", "T3", "T4", "packed", "T5a", "T5b"};
static const char *const family_names[TN_FAMILY_COUNT] = {"device", "async", "pinned", "handle"};

const char *tn_discipline_name(tn_discipline d)
{
    return (unsigned)d < TN_D_COUNT ? discipline_names[d] : "unknown";
}

const char *tn_family_name(tn_family f)
{
    return (unsigned)f < TN_FAMILY_COUNT ? family_names[f] : "unknown";
}

tn_discipline tn_discipline_find(const char *name)
{
    unsigned d = 0;
    while (d < TN_D_COUNT && strcmp(name, discipline_names[d]) != 0)
        d++;
    return (tn_discipline)d;
}

tn_family tn_family_find(const char *name)
{
    unsigned f = 0;
    while (f < TN_FAMILY_COUNT && strcmp(name, family_names[f]) != 0)
        f++;
    return (tn_family)f;
}

tn_family tn_family_of_kind(uint8_t kind)
{
    switch (kind) {
    case TN_KIND_DEVICE: return TN_FAMILY_DEVICE;
    case TN_KIND_ASYNC: return TN_FAMILY_ASYNC;
    case TN_KIND_PINNED: return TN_FAMILY_PINNED;
    case TN_KIND_VMM_HANDLE: return TN_FAMILY_HANDLE;
    default: return TN_FAMILY_COUNT;
    }
}

int tn_discipline_fits(tn_discipline d, tn_family f)
{
    switch (d) {
    case TN_D_NATIVE: return 1;
    case TN_D_T1: return f == TN_FAMILY_DEVICE;
    case TN_D_T2:
    case TN_D_PACKED: return f == TN_FAMILY_DEVICE || f == TN_FAMILY_ASYNC;
    case TN_D_T3: return f != TN_FAMILY_PINNED;
    case TN_D_T4: return f == TN_FAMILY_ASYNC;
    case TN_D_T5A:
    case TN_D_T5B: return f == TN_FAMILY_PINNED;
    default: return 0;
    }
}
