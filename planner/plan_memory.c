/* One owner for all that a plan points to: pieces in a chain, freed together. */
#include <string.h>

#include "planner/plan.h"
#include "planner/text_mask.h"

typedef struct piece { struct piece *next; size_t used, room, bytes; } piece;
typedef struct memory { tn_plan plan; tn_metadata hook; piece *first; int failed; } memory;

#define PIECE_BYTES 4096u
#define PIECE_BYTES_MAX ((size_t)1 << 20) /* they grow to this, so that a large plan is not thousands of mappings where the hook maps */

tn_plan *tn_plan_new_in(const tn_metadata *hook)
{
    memory *m = hook->resize(hook->self, NULL, 0, sizeof *m);
    if (!m)
        return NULL;
    *m = (memory){.hook = *hook};
    m->plan.memory = m;
    return &m->plan;
}

void tn_plan_free(tn_plan *plan)
{
    if (!plan)
        return;
    memory *m = plan->memory;
    tn_metadata hook = m->hook;
    for (piece *p = m->first, *next; p; p = next) {
        next = p->next;
        (void)hook.resize(hook.self, p, p->bytes, 0);
    }
    (void)hook.resize(hook.self, m, sizeof *m, 0);
}

static piece *add_piece(memory *m, size_t least)
{
    size_t room = m->first ? m->first->bytes * 2 : PIECE_BYTES;
    room = room < PIECE_BYTES ? PIECE_BYTES : room > PIECE_BYTES_MAX ? PIECE_BYTES_MAX : room;
    room = (room > least + sizeof(piece) + 16 ? room - sizeof(piece) - 16 : least);
    size_t bytes = sizeof(piece) + 16 + room;
    piece *p = m->hook.resize(m->hook.self, NULL, 0, bytes);
    if (!p)
        return NULL;
    *p = (piece){.next = m->first, .room = room, .bytes = bytes};
    return m->first = p;
}

void *tn_plan_memory(tn_plan *plan, size_t count, size_t size)
{
    memory *m = plan->memory;
    if (size && count > (SIZE_MAX / 2) / size) {
        m->failed = 1;
        return NULL;
    }
    size_t bytes = (count * size + 15) & ~(size_t)15;
    piece *p = m->first;
    if ((!p || p->room - p->used < bytes) && !(p = add_piece(m, bytes))) {
        m->failed = 1;
        return NULL;
    }
    void *at = (char *)(((uintptr_t)(p + 1) + 15) & ~(uintptr_t)15) + p->used;
    p->used += bytes;
    return memset(at, 0, bytes);
}

const char *tn_plan_text_of(tn_plan *plan, const char *text, size_t bytes)
{
    char *copy = tn_plan_memory(plan, bytes + 1, 1);
    if (copy) {
        memcpy(copy, text, bytes);
        tn_text_mask(copy);
    }
    return copy;
}

const char *tn_plan_text(tn_plan *plan, const char *text)
{
    return text ? tn_plan_text_of(plan, text, strlen(text)) : NULL;
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
