/* For backend_vmm.c and vmm_peers.c alone: what the backend is made of. `access` and its count change only where no other call runs; the book and the
 * counters have locks or atomics of their own. */
#ifndef TENURE_TIERS_VMM_INSIDE_H
#define TENURE_TIERS_VMM_INSIDE_H

#include <pthread.h>

#include "tiers/backend_driver.h"
#include "tiers/backend_vmm.h"
#include "tiers/region_book.h"
#include "tiers/vmm_range.h"

typedef struct tn_vmm_region tn_vmm_region;

/* What stands behind a region; after its end among the remnants, where the driver has not taken all of it. */
struct tn_vmm_region {
    tn_vmm_region *next;
    tn_vmm_range range;
    tn_region plain;  /* the fallback's, where its base is not NULL; there is no range then */
    bool growable;
    unsigned quiet;   /* calls of decommit in a row that have not been followed yet */
    size_t wanted;    /* chunks: the most that any of these asked for */
};

struct tn_vmm {
    tn_backend backend;
    tn_metadata metadata;
    tn_cuda_log log;
    tn_vmm_device device;
    tn_cuda_access access[TN_VMM_PEERS_MAX + 1];
    tn_book book;
    tn_driver *plain;
    size_t chunk, capacity, held;
    unsigned patience;
    bool refused;
    uint64_t refusal, fallbacks, growths_refused;
    pthread_mutex_t lock; /* of the remnants; held around no driver call */
    tn_vmm_region *remnants;
};

tn_cuda_access tn_vmm_access_of(int device, int flags);

/* The peer's index among those who have access, or that behind the last. */
size_t tn_vmm_find_peer(const tn_vmm *vmm, int device);

#endif
