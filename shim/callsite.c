/* From a hook's return address to a site id. See callsite.h. Three ways, each tried where the one before has no answer: the thread's verified
 * slots (callsite_slots.h); the unwinder, one hash and one compare of the raw chain (callsite_tables.h); and turning addresses into (module,
 * offset) pairs, for which the loader is asked. */
#include "shim/callsite.h"

#include <errno.h>

#include "ledger/tn_hot_data.h"
#include "shim/callsite_find.h"
#include "shim/callsite_slots.h"
#include "shim/callsite_tables.h"
#include "shim/modules.h"
#include "shim/unwind.h"

_Static_assert(TN_UNWIND_MAX == TN_FRAMES_MAX + 24, "callsite.h promises it");

/* One more than a site holds, to know whether the chain goes on. Enough unless frames are skipped or merged (TN_RAW_DEEPER). */
#define RAW_FRAMES ((int)TN_FRAMES_MAX + 1)

TN_HOT_DATA tn_unwind_fn tn_unwind = tn_unwind_own;
void (*tn_callsite_full)(void);
static uint64_t chains_not_kept;
static tn_journal *the_journal;

int tn_callsite_start(tn_journal *journal, const char *own_dir)
{
    the_journal = journal;
    if (tn_unwind_libunwind_open(own_dir) != 0)
        return -1;
    tn_slots_start();
    tn_unwind = tn_unwind_libunwind;
    return 0;
}

void tn_callsite_dlclose_begin(void)
{
    tn_epoch_dlclose_begin();
}

void tn_callsite_dlclose_end(void)
{
    tn_epoch_dlclose_end();
}

/* What one call of tn_callsite() is about. */
typedef struct request {
    const void *caller, *frame;
    uint64_t epoch;
    uint16_t outer_api;
} request;

typedef struct chain {
    tn_site_frame frames[TN_FRAMES_MAX];
    uint32_t count;
    uint32_t flags;
    uint64_t key, caller_key; /* of all frames; of the first one alone */
    int open; /* the raw frames ended before it was known whether more would follow */
} chain;

/* The key's definition: for each frame, deepest first, the module's hash and the offset are mixed in. It stands in journals and plans and must
 * never change. */
static uint64_t mix(uint64_t key, uint64_t x)
{
    key = (key ^ x) * 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    return key ^ (key >> 29);
}

/* A copy of the entry of the module that holds a return address; the jit entry for anonymous code. 0: no memory left. The address before
 * it is looked up: a call that never returns may be a module's last instruction. */
static int module_at(uint64_t epoch, uint64_t addr, tn_site_module *out)
{
    tn_tables_lock();
    const tn_site_module *m = tn_site_module_at(epoch, addr - 1);
    if (m)
        *out = *m;
    tn_tables_unlock();
    if (m)
        return 1;
    tn_module_info info;
    int found = tn_module_of((const void *)(addr - 1), &info);
    tn_tables_lock();
    m = found ? tn_site_module_intern(the_journal, epoch, &info) : tn_site_module_jit(the_journal);
    if (m)
        *out = *m;
    tn_tables_unlock();
    return m != NULL;
}

static int append(chain *c, const tn_site_module *m, uint64_t addr)
{
    if (c->count == TN_FRAMES_MAX) {
        c->flags |= TN_SF_CUT;
        return 0;
    }
    uint64_t offset = m->is_jit ? 0 : addr - m->base;
    c->frames[c->count++] = (tn_site_frame){ m->identity, m->record, offset };
    c->key = mix(mix(c->key, m->hash), offset);
    if (c->count == 1)
        c->caller_key = c->key;
    return 1;
}

/* Turns raw frames into a chain: the CUDA runtime's are left out, runs of anonymous code become one frame. 0: no memory left. */
static int canonicalise(uint64_t epoch, const uint64_t *raw, int n, int max, chain *c)
{
    int after_jit = 0;
    c->count = 0;
    c->key = 0x54454e5552450002u;
    c->open = 0;
    for (int i = 0; i < n; i++) {
        tn_site_module m;
        if (!module_at(epoch, raw[i], &m))
            return 0;
        if (m.is_cudart || (m.is_jit && after_jit))
            continue;
        after_jit = m.is_jit;
        if (!append(c, &m, raw[i]))
            return 1;
    }
    c->open = n == max;
    if (c->count == 0) { /* nothing but the runtime: then its caller within is the best there is */
        tn_site_module m;
        c->flags |= TN_SF_CALLER_ONLY;
        return module_at(epoch, raw[0], &m) && append(c, &m, raw[0]);
    }
    return 1;
}

static int unwind(const void *caller, uint64_t *raw, int max, uint32_t *flags)
{
    int n = tn_unwind(caller, raw, max);
    *flags = tn_unwind == tn_unwind_own ? TN_SF_OWN_WALK : 0;
    if (n > 0)
        return n;
    *flags |= TN_SF_CALLER_ONLY;
    raw[0] = (uint64_t)caller;
    return 1;
}

static void keep(uint64_t epoch, uint64_t hash, const uint64_t *raw, int n, uint32_t value)
{
    tn_tables_lock();
    tn_rawcache_insert(epoch, hash, raw, n, value);
    tn_tables_unlock();
}

/* Where there are as many sites as are kept: that of the innermost frame alone. Places that call are no more than the program has of them. */
static uint32_t intern_caller(const request *q, const chain *c)
{
    uint32_t flags = (c->flags & TN_SF_OWN_WALK) | TN_SF_CALLER_ONLY | TN_SF_TOO_MANY;
    uint32_t site = tn_site_intern(the_journal, c->caller_key, c->frames, 1, q->outer_api, flags);
    return site == TN_SITE_TOO_MANY ? TN_SITE_NONE : site;
}

static uint32_t intern(const request *q, uint64_t hash, const uint64_t *raw, int n, const chain *c)
{
    tn_tables_lock();
    uint32_t site = tn_site_intern(the_journal, c->key, c->frames, c->count, q->outer_api, c->flags);
    int too_many = site == TN_SITE_TOO_MANY;
    if (too_many)
        site = intern_caller(q, c);
    if (site != TN_SITE_NONE)
        tn_rawcache_insert(q->epoch, hash, raw, n, site);
    tn_tables_unlock();
    if (too_many && __atomic_fetch_add(&chains_not_kept, 1, __ATOMIC_RELAXED) == 0 && tn_callsite_full)
        tn_callsite_full();
    return site;
}

uint64_t tn_callsite_not_kept(void)
{
    return __atomic_load_n(&chains_not_kept, __ATOMIC_RELAXED);
}

/* The verified slots stand for the walk by unwind tables: only chains of that one go in and come out. */
static inline int uses_slots(const void *frame)
{
    return tn_slots_mode != TN_SLOTS_OFF && frame != NULL && tn_unwind == tn_unwind_libunwind;
}

static uint32_t keep_slots(const request *q, const uint64_t *raw, int n, int max, uint32_t flags, uint32_t site)
{
    if (site != TN_SITE_NONE && !(flags & TN_SF_CALLER_ONLY) && uses_slots(q->frame))
        tn_slots_keep(q->epoch, q->frame, raw, n, max, site);
    return site;
}

/* For chains that RAW_FRAMES frames do not decide: the same again with all frames there may be. */
static uint32_t look_deeper(const request *q)
{
    uint64_t raw[TN_UNWIND_MAX];
    chain c;
    uint32_t site, walked;
    int n = unwind(q->caller, raw, TN_UNWIND_MAX, &walked);
    uint64_t hash = tn_rawcache_hash(raw, n);
    if (!tn_rawcache_find(q->epoch, hash, raw, n, &site)) {
        c.flags = walked;
        if (!canonicalise(q->epoch, raw, n, TN_UNWIND_MAX, &c))
            return TN_SITE_NONE;
        if (c.open)
            c.flags |= TN_SF_CUT;
        site = intern(q, hash, raw, n, &c);
    }
    return keep_slots(q, raw, n, TN_UNWIND_MAX, walked, site);
}

/* The site, or TN_RAW_DEEPER. */
static uint32_t miss(const request *q, uint64_t hash, const uint64_t *raw, int n, uint32_t flags)
{
    chain c;
    c.flags = flags;
    if (!canonicalise(q->epoch, raw, n, RAW_FRAMES, &c))
        return TN_SITE_NONE;
    if (!c.open)
        return intern(q, hash, raw, n, &c);
    keep(q->epoch, hash, raw, n, TN_RAW_DEEPER);
    return TN_RAW_DEEPER;
}

static uint32_t walk(const request *q)
{
    uint64_t raw[RAW_FRAMES];
    uint32_t flags, site;
    int n = unwind(q->caller, raw, RAW_FRAMES, &flags);
    uint64_t hash = tn_rawcache_hash(raw, n);
    if (!tn_rawcache_find(q->epoch, hash, raw, n, &site))
        site = miss(q, hash, raw, n, flags);
    return site == TN_RAW_DEEPER ? look_deeper(q) : keep_slots(q, raw, n, RAW_FRAMES, flags, site);
}

static __attribute__((noinline)) uint32_t slow(const void *caller, const void *frame, uint16_t outer_api, uint64_t epoch)
{
    uint32_t found = uses_slots(frame) ? tn_slots_find(epoch, caller, frame) : TN_SITE_NONE;
    if (found != TN_SITE_NONE && tn_slots_mode == TN_SLOTS_ON)
        return found;
    int saved = errno;
    request q = { caller, found == TN_SITE_NONE ? frame : NULL, epoch, outer_api };
    uint32_t site = walk(&q);
    if (found != TN_SITE_NONE)
        tn_slots_checked(found != site);
    errno = saved;
    return site;
}

/* No call on the common way. A frame that is not known is 0 and on no stack. */
uint32_t tn_callsite(const void *caller, const void *frame, uint16_t outer_api)
{
    uint64_t epoch = tn_epoch();
    const tn_slots *c = tn_slots_own;
    if (__builtin_expect(c != NULL && tn_slots_mode == TN_SLOTS_ON && tn_unwind == tn_unwind_libunwind, 1)) {
        uint32_t found = tn_slots_look(c, epoch, (uint64_t)caller, (uint64_t)frame);
        if (__builtin_expect(found != TN_SITE_NONE, 1))
            return found;
    }
    return slow(caller, frame, outer_api, epoch);
}
