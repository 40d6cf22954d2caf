/* A stack of #if levels. */
#include "census/census_conditions.h"

#include <stdlib.h>

int tn_conditions_if(tn_conditions *c, tn_condition value, size_t brackets)
{
    if (c->count == c->room) {
        size_t room = c->room ? c->room * 2 : 64;
        tn_condition_level *levels = room > TN_CONDITIONS_DEEPEST ? NULL : realloc(c->levels, room * sizeof(*levels));
        if (!levels)
            return -1;
        c->levels = levels;
        c->room = room;
    }
    int around = tn_conditions_dead(c);
    c->levels[c->count++] = (tn_condition_level){
        .brackets = brackets,
        .around_dead = (unsigned char)around,
        .dead = value == TN_CONDITION_FALSE,
        .taken = value == TN_CONDITION_TRUE,
    };
    return 0;
}

const tn_condition_level *tn_conditions_elif(tn_conditions *c, tn_condition value)
{
    if (!c->count)
        return NULL;
    tn_condition_level *level = &c->levels[c->count - 1];
    level->dead = level->taken || value == TN_CONDITION_FALSE;
    level->taken |= value == TN_CONDITION_TRUE;
    return level;
}

void tn_conditions_endif(tn_conditions *c)
{
    if (c->count)
        c->count--;
}
