/* For the library alone: how the seam is called. */
#ifndef TENURE_TIERS_SEAM_USE_H
#define TENURE_TIERS_SEAM_USE_H

#include "tiers/seam.h"

/* NULL where it is empty. */
extern const tn_seam *tn_seam_filled __attribute__((visibility("hidden")));

static inline const tn_seam *tn_seam_now(void)
{
    return __atomic_load_n(&tn_seam_filled, __ATOMIC_ACQUIRE);
}

/* TN_SEAM(handed_out, allocator, tag, address, bytes) */
#define TN_SEAM(entry, ...)                          \
    do {                                             \
        const tn_seam *seam_ = tn_seam_now();        \
        if (__builtin_expect(seam_ != NULL, 0))      \
            seam_->entry(seam_->self, __VA_ARGS__);  \
    } while (0)

#endif
