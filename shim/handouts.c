/* The listener at the seam of tiers/ in a program that uses that library itself: what its allocators hand out is journalled by the site that took it.
 * The memory below comes through the hooks as any other does: it is in the ledger, and refused by the guard, once and there. */
#include <string.h>

#include "shim/callsite.h"
#include "shim/hook.h"
#include "shim/identity.h"
#include "shim/map.h"
#include "shim/record.h"
#include "tiers/seam.h"

enum { TAKEN = 0, BACK, ALL_BACK };

static tn_map allocators = TN_MAP_INIT; /* (address, 0): a number; an allocator at an address that another had is taken for the same, whose blocks are back */

static uint32_t number_of(const void *allocator)
{
    static _Atomic uint32_t count;
    uint64_t number;
    if (tn_map_get(&allocators, (uint64_t)(uintptr_t)allocator, 0, &number)) return (uint32_t)number;
    number = 1 + __atomic_fetch_add((uint32_t *)&count, 1, __ATOMIC_RELAXED);
    tn_map_add(&allocators, (uint64_t)(uintptr_t)allocator, 0, &number);
    return (uint32_t)number;
}

/* `caller` and `stack` are of the function that the allocator called, so the first frame is the allocator's. */
static void tell(int what, const void *allocator, const void *address, size_t bytes, const void *caller, const void *stack)
{
    tn_hook_frame f;
    tn_entry in;
    uint64_t tsc = tn_stamp();
    if (!tn_own_enter(&f)) return;
    f.thread->outer.caller = caller;
    f.thread->outer.stack = stack;
    uint32_t site = what == TAKEN ? tn_frame_site(&f) : TN_SITE_NONE;
    int known = address && tn_ledger_find(TN_SPACE_ADDRESS, (uint64_t)(uintptr_t)address, &in);
    uint8_t device = known ? in.device : tn_context_current(&f).device;
    tn_event *e = tn_event_new(&f, tsc);
    if (e) {
        e->api = e->outer_api = 0;
        e->kind = known && in.kind == TN_KIND_PINNED ? TN_KIND_HANDED_HOST : TN_KIND_HANDED;
        e->result = what;
        e->device = device;
        e->site = site;
        e->ctx = number_of(allocator);
        e->addr = (uint64_t)(uintptr_t)address;
        e->bytes = bytes;
        tn_journal_commit(e, TN_EV_HANDOUT);
    }
    tn_own_leave(&f);
}

static void handed_out(void *self, const void *allocator, const char *tag, const void *address, size_t bytes)
{
    (void)self;
    (void)tag;
    tell(TAKEN, allocator, address, bytes, __builtin_return_address(0), __builtin_frame_address(0));
}

static void taken_back(void *self, const void *allocator, const void *address)
{
    (void)self;
    tell(BACK, allocator, address, 0, NULL, NULL);
}

static void taken_back_all(void *self, const void *allocator)
{
    (void)self;
    tell(ALL_BACK, allocator, NULL, 0, NULL, NULL);
}

/* Asked and answered by the driver's hook under the backend, once. */
static tn_mem_error may_acquire(void *self, const void *backend, const char *tag, size_t bytes)
{
    (void)self;
    (void)backend;
    (void)tag;
    (void)bytes;
    return TN_MEM_OK;
}

static void region(void *self, const void *backend, const tn_region *region)
{
    (void)self;
    (void)backend;
    (void)region;
}

static void resized(void *self, const void *backend, const tn_region *region, size_t before)
{
    (void)self;
    (void)backend;
    (void)region;
    (void)before;
}

__attribute__((visibility("default"))) const tn_seam *tenure_tiers_seam_v1(void);

const tn_seam *tenure_tiers_seam_v1(void)
{
    static const tn_seam seam = {.version = TN_SEAM_VERSION, .bytes = sizeof(tn_seam), .may_acquire = may_acquire, .acquired = region, .resized = resized,
                                 .releasing = region, .kept = region, .handed_out = handed_out, .taken_back = taken_back,
                                 .taken_back_all = taken_back_all};
    return &seam;
}
