/* Host memory that others own and the driver has pinned for them: which ranges are registered, so that each is registered once and unregistered
 * once. The caller owns the ledger and every range, and keeps a range alive until it is unregistered. Any thread may call any function but
 * create and destroy; no lock is held around a driver call, of which unregistering waits for the device. */
#ifndef TENURE_TIERS_HOST_REGISTRATION_H
#define TENURE_TIERS_HOST_REGISTRATION_H

#include <stdint.h>

#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's own values. */
typedef enum tn_registration_flags {
    TN_REGISTER_PORTABLE = 1,
    TN_REGISTER_MAPPED = 2,
    TN_REGISTER_IO_MEMORY = 4,
    TN_REGISTER_READ_ONLY = 8,
    TN_REGISTER_FLAGS = 15
} tn_registration_flags;

/* One registration. Not to be copied: unregistering empties the one it is given. */
typedef struct tn_registration {
    void *base; /* NULL of an empty one */
    size_t bytes;
    unsigned flags;
    uint64_t id; /* never given twice by a ledger */
} tn_registration;

typedef struct tn_registrations_stats {
    size_t live, bytes;              /* registered now */
    uint64_t registered, refused;    /* refused: overlaps, and what the driver refused */
    uint64_t unregistered, unknown;  /* unknown: of what is not registered here */
} tn_registrations_stats;

typedef struct tn_registrations tn_registrations;

/* `cuda` is kept. ARGUMENT; UNSUPPORTED: an entry is missing; HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_registrations_create(const tn_cuda *cuda, const tn_metadata *metadata, tn_registrations **ledger);

/* Unregisters what is left, as far as the driver does, frees the ledger, and returns how many those were. NULL is allowed. */
size_t tn_registrations_destroy(tn_registrations *ledger);

/* Registers [base, base + bytes). *registration is empty after an error. ARGUMENT: NULL, no bytes, a range that wraps round, a flag that is none.
 * REGISTERED: a part of it is, here, or by somebody else as the driver knows; ranges that share a page only are left to the driver. Else
 * what the driver says. */
TN_MEM_MUST_USE tn_mem_error tn_registrations_add(tn_registrations *ledger, void *base, size_t bytes, unsigned flags,
                                                  tn_registration *registration);

/* Unregisters and empties. ARGUMENT: it is empty. UNREGISTERED: not, or no longer, in this ledger; the driver is not asked. Else what the
 * driver says, and it is registered still. */
TN_MEM_MUST_USE tn_mem_error tn_registrations_remove(tn_registrations *ledger, tn_registration *registration);

/* The registration that holds `address`, as a copy that is not to be removed. UNREGISTERED: there is none. */
TN_MEM_MUST_USE tn_mem_error tn_registrations_find(tn_registrations *ledger, const void *address, tn_registration *registration);

tn_cuda_failure tn_registrations_failure(const tn_registrations *ledger);
void tn_registrations_read_stats(tn_registrations *ledger, tn_registrations_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
