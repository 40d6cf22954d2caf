/* What stays with the driver, and the cause that is written beside it. */
#include <string.h>

#include "planner/classify_parts.h"

const char *tn_native_cause(const tn_unit *u, int exports)
{
    static const struct { uint8_t kind; const char *cause; } kinds[] = {
        {TN_KIND_MANAGED, "managed memory moves between host and device by itself"},
        {TN_KIND_REGISTERED, "the memory is the program's own, registered with the driver"},
        {TN_KIND_ARRAY, "an array's layout is the driver's"},
        {TN_KIND_MIPMAP, "an array's layout is the driver's"},
        {TN_KIND_GRAPH, "the memory belongs to a graph"},
        {TN_KIND_POOL, "the program made the pool it comes from"},
        {TN_KIND_PITCH, "the pitch is the driver's choice"},
    };
    int is_handle = u->kinds == 1u << TN_KIND_VMM_HANDLE;
    if (exports && u->flags & TN_LF_EXPORTED)
        return is_handle ? "a handle of it was exported, or retained by an address" : "its memory was handed to another process";
    if (u->flags & TN_LF_SYNC_MEMOPS)
        return "the program asked for synchronous copies on it";
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (u->kinds & 1u << kinds[i].kind)
            return kinds[i].cause;
    if (u->family == TN_FAMILY_COUNT)
        return "the site takes memory of several families";
    if (is_handle && (u->mixed_detail || u->detail & TN_VMM_OTHER))
        return u->mixed_detail ? "the site asks for handles of several properties" : "handles of properties that no pool has";
    if (u->mixed_detail)
        return "the site takes pinned memory with several flags";
    if (u->live_blocks == 0)
        return "it was only ever seen while a capture was active, or without a context";
    return NULL;
}

static const struct tn_frame *innermost(const tn_trace *t, uint32_t site, uint32_t *process)
{
    const tn_trace_site *x = &t->sites[site];
    *process = x->process;
    return x->record && x->record->frame_count ? &x->record->frames[0] : NULL;
}

/* By build-id and offset, since modules are numbered by each process. */
static int same_frame(const tn_trace *t, uint32_t a, uint32_t b)
{
    uint32_t p, q;
    const struct tn_frame *x = innermost(t, a, &p), *y = innermost(t, b, &q);
    if (!x || !y || x->offset != y->offset)
        return 0;
    const tn_rec_module *m = tn_reader_module(t->processes[p].reader, x->module), *n = tn_reader_module(t->processes[q].reader, y->module);
    return m && n && m->build_id_bytes == n->build_id_bytes && m->hashed == n->hashed && memcmp(m->build_id, n->build_id, sizeof m->build_id) == 0;
}

/* An allocator that exported one block may export any: sites with the same innermost frame go with it. */
void tn_keep_exporters(tn_section *s, uint8_t *open)
{
    for (size_t i = 0; i < s->unit_count; i++) {
        if (!(s->units[i].flags & TN_LF_EXPORTED))
            continue;
        for (size_t k = 0; k < s->unit_count; k++) {
            if (!open[k] || !same_frame(s->trace, s->units[i].site, s->units[k].site))
                continue;
            tn_decide(&s->units[k], TN_D_NATIVE, s->units[k].backed_bytes, "the same caller handed another block to another process");
            open[k] = 0;
        }
    }
}
