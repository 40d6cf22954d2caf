/* How many there are at once is counted for each size and set of properties; everything else follows from that. */
#include "planner/handles.h"

#include <stdlib.h>
#include <string.h>

#include "planner/classify_parts.h"

/* Handles beyond so many times those that the program has at once only spare a wait. One stream of many that is not waited for, because its
 * thread does not run, keeps all of them from being clean, as often as others take and release. */
#define WAITING 2u

/* ---- counting ---- */

static int by_class(const void *a, const void *b)
{
    const tn_handle_class *x = a, *y = b;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    if (x->detail != y->detail)
        return x->detail < y->detail ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static tn_handle_class class_of(const tn_section *s, const tn_life *l, int by_unit)
{
    return (tn_handle_class){.bytes = l->bytes, .detail = l->detail, .unit = by_unit ? s->unit_of[l->site] : 0};
}

static size_t sort_unique(tn_handle_class *at, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(at, count, sizeof *at, by_class);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_class(&at[kept - 1], &at[i]) != 0)
            at[kept++] = at[i];
    return kept;
}

/* The most of each class at once in any instance, until clean or until released and unmapped. */
static void count_most(const tn_section *s, const uint8_t *chosen, int by_unit, int clean, tn_handle_class *at, size_t n, uint64_t *alive, uint64_t *most)
{
    memset(most, 0, (n + 1) * sizeof *most);
    for (size_t k = 0; k < s->instance_count; k++) {
        tn_walk w = tn_walk_begin(s, &s->instances[k], clean);
        uint32_t i;
        memset(alive, 0, (n + 1) * sizeof *alive);
        for (int what; (what = tn_walk_next(&w, &i));) {
            if (!chosen[s->unit_of[w.lives[i].site]])
                continue;
            tn_handle_class key = class_of(s, &w.lives[i], by_unit), *c = bsearch(&key, at, n, sizeof *at, by_class);
            uint64_t *now = &alive[c - at];
            *now = what > 0 ? *now + 1 : *now - 1;
            if (*now > most[c - at])
                most[c - at] = *now;
        }
    }
}

tn_error tn_handles_count(const tn_section *s, const uint8_t *chosen, int by_unit, tn_handle_class **out, size_t *count)
{
    size_t births = 0, n = 0;
    for (size_t k = 0; k < s->instance_count; k++)
        births += s->instances[k].birth_count;
    tn_handle_class *at = malloc((births + 1) * sizeof *at);
    uint64_t *alive = NULL;
    if (!at)
        return TN_E_NOMEM;
    for (size_t k = 0; k < s->instance_count; k++) {
        const tn_instance *in = &s->instances[k];
        const tn_life *lives = s->trace->processes[in->process].lives;
        for (size_t i = 0; i < in->birth_count; i++)
            if (chosen[s->unit_of[lives[in->births[i]].site]])
                at[n++] = class_of(s, &lives[in->births[i]], by_unit);
    }
    n = sort_unique(at, n);
    alive = malloc(3 * (n + 1) * sizeof *alive);
    if (!alive) {
        free(at);
        return TN_E_NOMEM;
    }
    uint64_t *released = alive + n + 1, *clean = released + n + 1;
    count_most(s, chosen, by_unit, 0, at, n, alive, released);
    count_most(s, chosen, by_unit, 1, at, n, alive, clean);
    for (size_t i = 0; i < n; i++)
        at[i].count = at[i].seen = clean[i] < released[i] * WAITING ? clean[i] : released[i] * WAITING;
    free(alive);
    *out = at;
    *count = n;
    return TN_OK;
}

/* ---- pools ---- */

static void add_room(tn_handle_class *at, const tn_unit *u, uint64_t seen_of_site, uint64_t bytes, size_t count)
{
    tn_handle_class key = {.bytes = bytes, .detail = u->detail}, *c = bsearch(&key, at, count, sizeof *at, by_class);
    if (u->room.blocks > seen_of_site)
        c->count += u->room.blocks - seen_of_site;
    else if (c->count == 0)
        c->count = 1;
}

/* Which size a rule gives room of: of size=, else the site's largest. */
static uint64_t room_bytes(const tn_unit *u)
{
    return u->room.size ? tn_round_up(u->room.size, tn_native_alignment(TN_FAMILY_HANDLE, u->room.size)) : u->largest;
}

tn_error tn_handles_plan(const tn_section *s, const uint8_t *chosen, tn_handle_class **out, size_t *count)
{
    tn_handle_class *of_units = NULL, *at = NULL;
    size_t unit_count = 0, n = 0;
    tn_error error = tn_handles_count(s, chosen, 1, &of_units, &unit_count);
    if (error == TN_OK)
        error = tn_handles_count(s, chosen, 0, &at, &n);
    tn_handle_class *grown = error == TN_OK ? realloc(at, (n + s->unit_count + 1) * sizeof *at) : NULL;
    if (!grown) {
        free(of_units);
        free(at);
        return TN_E_NOMEM;
    }
    at = grown;
    for (size_t i = 0; i < s->unit_count; i++)
        if (chosen[i] && s->units[i].room.size)
            at[n++] = (tn_handle_class){.bytes = room_bytes(&s->units[i]), .detail = s->units[i].detail};
    if (n)
        qsort(at, n, sizeof *at, by_class);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && by_class(&at[kept - 1], &at[i]) == 0) {
            at[kept - 1].count += at[i].count; /* of those by rules it is 0 */
            at[kept - 1].seen += at[i].seen;
        } else {
            at[kept++] = at[i];
        }
    }
    for (size_t i = 0; i < s->unit_count; i++) {
        const tn_unit *u = &s->units[i];
        if (!chosen[i] || !(u->room.size || u->room.blocks))
            continue;
        uint64_t seen = 0, bytes = room_bytes(u);
        for (size_t k = 0; k < unit_count; k++)
            if (of_units[k].unit == i && of_units[k].bytes == bytes)
                seen = of_units[k].count;
        add_room(at, u, seen, bytes, kept);
    }
    for (size_t i = 0; i < unit_count; i++) {
        tn_handle_class key = {.bytes = of_units[i].bytes, .detail = of_units[i].detail}, *c = bsearch(&key, at, kept, sizeof *at, by_class);
        c->sites++;
    }
    free(of_units);
    *out = at;
    *count = kept;
    return TN_OK;
}

/* ---- choosing ---- */

/* Handles are of one size for good: sizes that are not there at the same time cannot share. */
static const char *why_not(const tn_unit *u, const tn_handle_class *at, size_t count)
{
    uint64_t pooled = 0;
    for (size_t i = 0; i < count; i++)
        pooled += at[i].bytes * at[i].count;
    if (u->within_loading)
        return "gone before loading ended: a pool would keep the memory";
    if (count > TN_HANDLE_SIZES_MAX || pooled / 2 > u->live_bytes)
        return "handles of so many sizes that pools of each would hold more than twice what is there at once";
    return NULL;
}

tn_error tn_handles_choose(tn_section *s, uint8_t *open, uint8_t *chosen)
{
    tn_handle_class *at = NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->unit_count; i++)
        chosen[i] = open[i] && s->units[i].family == TN_FAMILY_HANDLE;
    tn_error error = tn_none_chosen(s, chosen) ? TN_OK : tn_handles_count(s, chosen, 1, &at, &count);
    for (size_t i = 0, from = 0; i < s->unit_count && error == TN_OK; i++) {
        tn_unit *u = &s->units[i];
        size_t end = from;
        if (!chosen[i])
            continue;
        while (end < count && at[end].unit == i)
            end++;
        const char *cause = why_not(u, at + from, end - from);
        if (cause)
            tn_decide(u, TN_D_NATIVE, u->backed_bytes, cause);
        else
            tn_decide(u, TN_D_T3, u->live_bytes, "handles of physical memory: from a pool of equal ones");
        open[i] = 0;
        from = end;
    }
    free(at);
    return error;
}
