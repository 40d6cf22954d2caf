#include "tiers/seam_use.h"

const tn_seam *tn_seam_filled;

tn_mem_error tn_seam_set(const tn_seam *seam)
{
    if (seam != NULL) {
        if (seam->version != TN_SEAM_VERSION || seam->bytes < sizeof *seam)
            return TN_MEM_E_UNSUPPORTED;
        if (seam->may_acquire == NULL || seam->acquired == NULL || seam->resized == NULL || seam->releasing == NULL ||
            seam->kept == NULL || seam->handed_out == NULL || seam->taken_back == NULL || seam->taken_back_all == NULL)
            return TN_MEM_E_ARGUMENT;
    }
    __atomic_store_n(&tn_seam_filled, seam, __ATOMIC_RELEASE);
    return TN_MEM_OK;
}
