/* From verdicts to rules. */
#include "planner/needs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "planner/plan_text.h"

static uint64_t slots_of(const tn_plan_row *row)
{
    uint64_t count = 0;
    if (row->discipline == TN_D_T3)
        return row->blocks;
    for (size_t i = 0; i < row->class_count; i++)
        count += row->classes[i].count;
    return count;
}

/* Stacks and regions follow an order of requests that the run does not keep; slots follow none. */
static void read_need(const tn_plan_row *row, const tn_verdict_row *v, tn_need *out)
{
    tn_room more = {.given = 1, .size = v->largest};
    out->discipline = TN_D_COUNT;
    switch (row->discipline) {
    case TN_D_PACKED:
    case TN_D_T5B:
    case TN_D_T3:
        more.apart = v->in_the_way != 0;
        more.blocks = v->by_spill[TN_SPILL_TOO_MANY] ? slots_of(row) + v->more : 0;
        break;
    case TN_D_T2:
    case TN_D_T5A:
        more.bytes = v->by_spill[TN_SPILL_NO_ROOM] ? row->room.bytes + v->more_bytes : 0;
        break;
    default:
        out->discipline = TN_D_PACKED;
        break;
    }
    if (more.blocks > TN_ROOM_BLOCKS_MAX)
        more.blocks = TN_ROOM_BLOCKS_MAX;
    more.given = more.size || more.blocks || more.bytes || more.apart;
    tn_room_join(&out->room, &more);
}

static int by_row(const void *a, const void *b)
{
    const tn_need *x = a, *y = b;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static tn_need *need_of(tn_needs *needs, uint32_t section, uint32_t row)
{
    for (size_t i = 0; i < needs->count; i++)
        if (needs->at[i].section == section && needs->at[i].row == row)
            return &needs->at[i];
    return NULL;
}

tn_error tn_needs_join(tn_needs *needs, const tn_plan *plan, const tn_verdict *verdict)
{
    for (size_t i = 0; i < verdict->row_count; i++) {
        const tn_verdict_row *v = &verdict->rows[i];
        const tn_plan_row *row = &plan->sections[v->section].rows[v->row];
        if (!v->excesses && !v->in_the_way)
            continue;
        tn_need need = {.section = v->section, .row = v->row, .room = row->room, .excesses = v->excesses}, *known = need_of(needs, v->section, v->row);
        read_need(row, v, &need);
        if (!need.room.given && need.discipline == TN_D_COUNT)
            continue; /* what keeps it from its addresses is set apart instead */
        if (known) {
            tn_room_join(&known->room, &need.room);
            known->excesses += need.excesses;
            continue;
        }
        tn_need *at = TN_TRACE_PUSH(needs->at, needs->count);
        if (!at)
            return TN_E_NOMEM;
        *at = need;
    }
    if (needs->count)
        qsort(needs->at, needs->count, sizeof *needs->at, by_row);
    return TN_OK;
}

void tn_needs_free(tn_needs *needs)
{
    free(needs->at);
    *needs = (tn_needs){0};
}

void tn_needs_print(const tn_needs *needs, const tn_plan *plan, FILE *out)
{
    for (size_t i = 0; i < needs->count; i++) {
        const tn_need *n = &needs->at[i];
        const tn_plan_row *row = &plan->sections[n->section].rows[n->row];
        char words[96], room[96];
        tn_plan_row_words(row, words, sizeof words);
        if (n->discipline != TN_D_COUNT)
            fprintf(out, "%s key=%016" PRIx64 " # %s\n", tn_discipline_name(n->discipline), row->key, words);
        if (n->room.given)
            fprintf(out, "room %s key=%016" PRIx64 " # %s\n", tn_room_text(&n->room, room, sizeof room), row->key, words);
    }
}
