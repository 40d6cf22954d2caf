#include "shim/callsite_keys.h"

#include "shim/callsite_memory.h"

tn_site_key *tn_site_keys;

int tn_site_keys_start(void)
{
    if (!tn_site_keys) tn_site_keys = tn_pages(TN_SITE_KEYS_MAX * sizeof *tn_site_keys);
    return tn_site_keys ? 0 : -1;
}
