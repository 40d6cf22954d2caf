/* Where a program that uses this library directly meets whoever keeps the account of its process: a table of functions that hears of every
 * acquisition and every hand-out, and may refuse an acquisition. Empty unless somebody fills it; then a hand-out costs one branch more that
 * is always predicted. Filled once, before threads use the library; the functions are called by any thread, possibly with an allocator's lock held. */
#ifndef TENURE_TIERS_SEAM_H
#define TENURE_TIERS_SEAM_H

#include <stddef.h>
#include <stdint.h>

#include "tiers/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_SEAM_VERSION 1u
/* What tn_seam_find looks for in the process: const tn_seam *tenure_tiers_seam_v1(void), NULL where nobody listens. */
#define TN_SEAM_SYMBOL "tenure_tiers_seam_v1"

/* No entry may be NULL. A backend and an allocator are known by an address that is theirs while they live; none of it is to be looked
 * behind. A region is as its caller has it, and known by its backend and id: one of an id that is not live is an old copy, and to be ignored.
 * None of these may call the library or wait. */
typedef struct tn_seam {
    uint32_t version; /* TN_SEAM_VERSION */
    uint32_t bytes;   /* sizeof(tn_seam) where the table was made: at least that of here */
    void *self;
    /* Before memory is acquired or committed, after the backend's own guard has allowed it: OK, or the error that the caller gets. */
    tn_mem_error (*may_acquire)(void *self, const void *backend, const char *tag, size_t bytes);
    void (*acquired)(void *self, const void *backend, const tn_region *region);
    void (*resized)(void *self, const void *backend, const tn_region *region, size_t committed_before);
    /* Before it goes back: its addresses may be another's as soon as it has. */
    void (*releasing)(void *self, const void *backend, const tn_region *region);
    void (*kept)(void *self, const void *backend, const tn_region *region); /* the release failed: it is there still */
    void (*handed_out)(void *self, const void *allocator, const char *tag, const void *address, size_t bytes);
    void (*taken_back)(void *self, const void *allocator, const void *address);
    void (*taken_back_all)(void *self, const void *allocator); /* every block of the allocator */
} tn_seam;

typedef enum tn_seam_state {
    TN_SEAM_ABSENT,  /* nobody is there; the table is empty */
    TN_SEAM_FILLED,
    TN_SEAM_REFUSED  /* somebody is, with another version, too short a table or one with a hole; it is empty */
} tn_seam_state;

/* Fills the table, which outlives all use of the library; NULL empties it. ARGUMENT: a hole; UNSUPPORTED: another version, too short. After an
 * error the table is as it was. */
TN_MEM_MUST_USE tn_mem_error tn_seam_set(const tn_seam *seam);

/* Looks for TN_SEAM_SYMBOL in the process, among what the program and its preloads export, and fills the table from what it gives. For
 * the start of a program, before its first acquisition. It uses dlsym and is no part of the core. */
tn_seam_state tn_seam_find(void);

#ifdef __cplusplus
}
#endif

#endif
