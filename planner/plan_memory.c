/* One owner for all that a plan points to: pieces in a chain, freed together. */
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"

typedef struct piece { struct piece *next; size_t used, room; } piece;
typedef struct memory { piece *first; int failed; } memory;

#define PIECE_BYTES 65536u

tn_plan *tn_plan_new(void)
{
    tn_plan *plan = calloc(1, sizeof *plan);
    if (plan && !(plan->memory = calloc(1, sizeof(memory)))) {
        free(plan);
        return NULL;
    }
    return plan;
}

void tn_plan_free(tn_plan *plan)
{
    if (!plan)
        return;
    memory *m = plan->memory;
    for (piece *p = m->first, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(m);
    free(plan);
}

void *tn_plan_memory(tn_plan *plan, size_t count, size_t size)
{
    memory *m = plan->memory;
    if (size && count > (SIZE_MAX / 2) / size) {
        m->failed = 1;
        return NULL;
    }
    size_t bytes = (count * size + 15) & ~(size_t)15;
    if (!m->first || m->first->room - m->first->used < bytes) {
        size_t room = bytes > PIECE_BYTES ? bytes : PIECE_BYTES;
        piece *p = calloc(1, sizeof(piece) + 16 + room);
        if (!p) {
            m->failed = 1;
            return NULL;
        }
        p->room = room;
        p->next = m->first;
        m->first = p;
    }
    piece *p = m->first;
    void *at = (char *)(((uintptr_t)(p + 1) + 15) & ~(uintptr_t)15) + p->used;
    p->used += bytes;
    return at;
}

const char *tn_plan_text(tn_plan *plan, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = tn_plan_memory(plan, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int tn_plan_failed(const tn_plan *plan)
{
    return ((const memory *)plan->memory)->failed;
}

/* Arrays that grow by one: doubled at powers of two, the old one left to the plan. */
static void *append(tn_plan *plan, void *array, size_t *count, size_t size)
{
    size_t n = *count;
    char *at = array;
    if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) {
        at = tn_plan_memory(plan, n < 4 ? 4 : n * 2, size);
        if (!at)
            return NULL;
        if (n)
            memcpy(at, array, n * size);
    }
    ++*count;
    return at;
}

tn_plan_frame *tn_plan_add_frame(tn_plan *plan, tn_plan_row *row)
{
    tn_plan_frame *frames = append(plan, row->frames, &row->frame_count, sizeof *frames);
    if (!frames)
        return NULL;
    row->frames = frames;
    return &frames[row->frame_count - 1];
}

tn_plan_charge *tn_plan_add_charge(tn_plan *plan, tn_plan_section *section)
{
    tn_plan_charge *charges = append(plan, section->charges, &section->charge_count, sizeof *charges);
    if (!charges)
        return NULL;
    section->charges = charges;
    return &charges[section->charge_count - 1];
}

const tn_plan_row *tn_plan_row_of(const tn_plan_section *section, uint64_t key, uint64_t python)
{
    const tn_plan_row *native = NULL;
    size_t low = 0, high = section->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (section->rows[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < section->row_count && section->rows[low].key == key; low++) {
        if (section->rows[low].python == python)
            return &section->rows[low];
        if (section->rows[low].python == 0)
            native = &section->rows[low];
    }
    return native;
}
