/* What the stand-in at the seam knows; read and set by the test through seam_stand_in_account, which it looks up. One thread. */
#ifndef TENURE_TESTS_TIERS_SEAM_STAND_IN_H
#define TENURE_TESTS_TIERS_SEAM_STAND_IN_H

#include <stdbool.h>

#include "tiers/seam.h"

typedef struct seam_account {
    size_t limit; /* bytes of one acquisition at most */
    bool mute;    /* is there, and gives no table */
    size_t live, reserved, regions, block_bytes;
    size_t found, asked, acquired, kept, handed_out;
    size_t wrong; /* what does not go together */
} seam_account;

#endif
