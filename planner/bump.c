/* A stack of blocks; offsets follow from the marks. */
#include "planner/bump.h"

#include <stdlib.h>

int tn_bump_take(tn_bump *b, uint64_t bytes, uint64_t alignment, uint32_t *slot)
{
    if (b->count == b->room) {
        size_t room = b->room ? b->room * 2 : 8;
        void *grown = realloc(b->blocks, room * sizeof *b->blocks);
        if (!grown)
            return 0;
        b->blocks = grown;
        b->room = room;
    }
    *slot = (uint32_t)b->count;
    b->blocks[b->count++] = (struct tn_bump_block){.top = b->mark};
    b->mark = tn_round_up(b->mark, alignment) + bytes;
    if (b->mark > b->high)
        b->high = b->mark;
    return 1;
}

void tn_bump_free(tn_bump *b, uint32_t slot)
{
    b->blocks[slot].gone = 1;
    b->tombstones += slot + 1u != b->count;
    while (b->count && b->blocks[b->count - 1].gone)
        b->mark = b->blocks[--b->count].top;
}

tn_error tn_bump_capacity(const tn_section *s, const uint8_t *chosen, uint64_t *capacity)
{
    *capacity = 0;
    if (tn_none_chosen(s, chosen))
        return TN_OK;
    for (size_t k = 0; k < s->instance_count; k++) {
        uint32_t *place = malloc((s->trace->processes[s->instances[k].process].life_count + 1) * sizeof *place);
        tn_bump bump = {0};
        tn_walk w = tn_walk_begin(s, &s->instances[k], 1);
        uint32_t i;
        int made = place != NULL;
        for (int what; made && (what = tn_walk_next(&w, &i));) {
            const tn_life *l = &w.lives[i];
            const tn_unit *u = &s->units[s->unit_of[l->site]];
            if (!chosen[s->unit_of[l->site]])
                continue;
            if (what > 0)
                made = tn_bump_take(&bump, tn_round_up(l->bytes, 512), tn_native_alignment(u->family, l->bytes), &place[i]);
            else
                tn_bump_free(&bump, place[i]);
        }
        if (bump.high > *capacity)
            *capacity = bump.high;
        free(bump.blocks);
        free(place);
        if (!made)
            return TN_E_NOMEM;
    }
    return TN_OK;
}
