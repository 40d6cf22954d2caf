#define TN_TIERS_BLOCK_MEMBERS
#include "tiers/block.h"

#include <stddef.h>

tn_block tn_block_none(void)
{
    return (tn_block){0};
}

bool tn_block_is_empty(const tn_block *owner)
{
    return owner == NULL || owner->tn_block_pool_ == 0;
}

uint32_t tn_block_id(const tn_block *owner)
{
    return tn_block_is_empty(owner) ? TN_BLOCK_NO_ID : owner->tn_block_id_;
}

bool tn_block_move(tn_block *from, tn_block *to)
{
    if (tn_block_is_empty(from) || to == NULL || !tn_block_is_empty(to))
        return false;
    *to = *from;
    *from = (tn_block){0};
    return true;
}
