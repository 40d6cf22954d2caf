/* The keys of sites by their ids, kept where a plan serves: a plan names sites by keys, hooks know them by ids. Written before an id is handed
 * out, never changed; any thread may read. No lock. */
#ifndef TENURE_SHIM_CALLSITE_KEYS_H
#define TENURE_SHIM_CALLSITE_KEYS_H

#include <stdint.h>

#define TN_SITE_KEYS_MAX (1u << 20) /* more than there can be: sites of whole chains, of callers, and with a Python part (callsite_tables.h, python_places.h) */

typedef struct tn_site_key { uint64_t key, python; } tn_site_key; /* python 0: a native site */

extern tn_site_key *tn_site_keys __attribute__((visibility("hidden"))); /* by id; NULL: nobody asked for them */

/* Keeps keys from now on; before the first site is found. 0, or -1: no memory. */
int tn_site_keys_start(void);

static inline void tn_site_key_note(uint32_t id, uint64_t key, uint64_t python)
{
    if (tn_site_keys && id < TN_SITE_KEYS_MAX) tn_site_keys[id] = (tn_site_key){key, python};
}

#endif
