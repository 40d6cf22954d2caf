/* The three tables behind tn_callsite(): raw chains seen since the last dlclose, the sites of the process, and its modules. They belong to
 * the process and are never freed. tn_rawcache_find() takes no lock and may run in any thread at any time; everything else needs
 * tn_tables_lock(), which is held over table work and journal records only, never over the loader or libunwind. No malloc. */
#ifndef TENURE_SHIM_CALLSITE_TABLES_H
#define TENURE_SHIM_CALLSITE_TABLES_H

#include <stdint.h>

#include "ledger/journal.h"
#include "shim/modules.h"

void tn_tables_lock(void);
void tn_tables_unlock(void);

/* The epoch: a generation in the upper bits, how many dlcloses are running in the lower ones. What was looked up in one epoch holds as long as
 * the epoch is the same and idle. */
extern uint64_t tn_the_epoch __attribute__((visibility("hidden")));
static inline uint64_t tn_epoch(void)
{
    return __atomic_load_n(&tn_the_epoch, __ATOMIC_ACQUIRE);
}
int tn_epoch_idle(uint64_t epoch);
void tn_epoch_dlclose_begin(void);
void tn_epoch_dlclose_end(void);

/* Raw chains. A value is a site id or TN_RAW_DEEPER: these frames do not decide, ask again with more of them. */
#define TN_RAW_DEEPER UINT32_MAX
uint64_t tn_rawcache_hash(const uint64_t *frames, int n);
/* 1 and *value filled when exactly this chain was inserted in this epoch. */
int tn_rawcache_find(uint64_t epoch, uint64_t hash, const uint64_t *frames, int n, uint32_t *value);
/* Keeps the chain unless the epoch has gone or no memory is left; then it is looked up the long way again. Lock held. */
void tn_rawcache_insert(uint64_t epoch, uint64_t hash, const uint64_t *frames, int n, uint32_t value);

/* One loaded module. `identity` is equal for equal build-ids, wherever and how often they are loaded; `record` is the journal's id. */
typedef struct tn_site_module {
    uint64_t base, segment, segment_end;
    uint64_t epoch; /* segment and base hold in it */
    uint64_t hash;  /* of the build-id, for keys */
    uint32_t record, identity;
    uint8_t build_id[32];
    uint8_t build_id_bytes, hashed, is_cudart, is_jit;
} tn_site_module;

/* The module known in this epoch to hold addr, or NULL. Lock held; the pointer stays good, its contents only while the lock is held. */
const tn_site_module *tn_site_module_at(uint64_t epoch, uint64_t addr);
/* The entry of what tn_module_of() said; writes its MODULE record when it is new. NULL: no memory. Lock held. */
const tn_site_module *tn_site_module_intern(tn_journal *journal, uint64_t epoch, const tn_module_info *info);
/* The one entry that stands for all anonymous code. NULL: no memory. Lock held. */
const tn_site_module *tn_site_module_jit(tn_journal *journal);

typedef struct tn_site_frame {
    uint32_t identity, record;
    uint64_t offset;
} tn_site_frame;

/* So many sites of whole chains are kept, and beside them so many of callers alone (TN_SF_TOO_MANY), so that a program whose chains never repeat
 * does not grow without end: a site is some 1.1 KB, with all that is kept by site and its record. Tests may lower the first one. */
#define TN_SITES_MAX (1u << 18)
#define TN_CALLERS_MAX (1u << 16)
extern uint32_t tn_sites_max;
#define TN_SITE_TOO_MANY (UINT32_MAX - 1)

/* The id of the site with this key and this chain (identities and offsets); writes its SITE record before a new id is returned.
 * TN_SITE_NONE: no memory. TN_SITE_TOO_MANY: it is new, and there are as many as are kept of those with its flags. Lock held. */
uint32_t tn_site_intern(tn_journal *journal, uint64_t key, const tn_site_frame *frames, uint32_t n, uint32_t outer_api, uint32_t flags);

/* An id of the same series for a site that is described elsewhere (python_places.c). Takes the lock. */
uint32_t tn_site_new_id(void);

#endif
