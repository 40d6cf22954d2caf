/* Events that say of a block, or of its site, what makes it special: mappings, exports, graphs, first writes. */
#include "planner/trace_replay.h"

/* ---- virtual memory ---- */

void tn_replay_map(tn_replay *r)
{
    uint32_t life = tn_index_find(&r->handles, r->e->aux);
    struct handle_state *s = life == TN_INDEX_NONE ? NULL : tn_replay_handle(r, life);
    if (r->e->result != 0 || !s)
        return;
    mapping *m = TN_TRACE_PUSH(r->mappings, r->mapping_count);
    if (!m) {
        r->error = TN_E_NOMEM;
        return;
    }
    *m = (mapping){.bytes = r->e->bytes, .life = life};
    s->maps++;
    s->mapped = 1;
    tn_replay_check(r, tn_index_set(&r->mapped, r->e->addr, (uint32_t)r->mapping_count - 1));
}

void tn_replay_end_handle(tn_replay *r, uint32_t index, const struct handle_state *s)
{
    tn_replay_end(r, index);
    if (!s->mapped)
        return;
    r->p->lives[index].clean = TN_LIFE_OPEN;
    tn_replay_check(r, tn_marks_freed(r->marks, index, 0, r->e->tsc));
}

static void end_mapping(tn_replay *r, uint32_t i)
{
    struct handle_state *s = tn_replay_handle(r, r->mappings[i].life);
    if (s && --s->maps == 0 && s->refs == 0)
        tn_replay_end_handle(r, r->mappings[i].life, s);
}

void tn_replay_unmap(tn_replay *r)
{
    uint64_t at = r->e->addr, left = r->e->bytes;
    uint32_t i;
    while (r->e->result == 0 && left > 0 && (i = tn_index_take(&r->mapped, at)) != TN_INDEX_NONE) {
        const mapping *m = &r->mappings[i];
        end_mapping(r, i);
        if (m->bytes == 0 || m->bytes >= left)
            return;
        at += m->bytes;
        left -= m->bytes;
    }
    /* A gap: only looking at every mapping finds what lies behind it. */
    for (size_t k = 0; r->e->result == 0 && left > 0 && r->mapped.slots && k <= r->mapped.mask;) {
        const tn_index_slot s = r->mapped.slots[k];
        if (!s.used || s.key < at || s.key - at >= left) {
            k++;
            continue;
        }
        tn_index_take(&r->mapped, s.key); /* another may have moved up to k */
        end_mapping(r, s.value);
    }
}

/* ---- what makes a block or its site special ---- */

/* The live block that holds an address. Rare, so each is looked at. */
static uint32_t find_inside(const tn_replay *r, uint64_t addr)
{
    uint32_t exact = tn_index_find(&r->addresses, addr);
    if (exact != TN_INDEX_NONE)
        return exact;
    for (size_t i = 0; r->addresses.slots && i <= r->addresses.mask; i++) {
        const tn_index_slot *s = &r->addresses.slots[i];
        if (s->used && addr >= s->key && addr - s->key < r->p->lives[s->value].bytes)
            return s->value;
    }
    return TN_INDEX_NONE;
}

/* The handle that is mapped at an address. */
static uint32_t find_mapped(const tn_replay *r, uint64_t addr)
{
    for (size_t i = 0; r->mapped.slots && i <= r->mapped.mask; i++) {
        const tn_index_slot *s = &r->mapped.slots[i];
        if (s->used && addr >= s->key && addr - s->key < r->mappings[s->value].bytes)
            return r->mappings[s->value].life;
    }
    return TN_INDEX_NONE;
}

void tn_replay_flag(tn_replay *r, uint64_t addr, uint8_t flag)
{
    uint32_t index = find_inside(r, addr);
    if (index == TN_INDEX_NONE)
        index = find_mapped(r, addr);
    if (index != TN_INDEX_NONE)
        r->p->lives[index].flags |= flag;
}

void tn_replay_export(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->result != 0)
        return;
    if (e->kind == TN_EXPORT_IPC || e->kind == TN_EXPORT_DMABUF || e->kind == TN_EXPORT_POOL_POINTER) {
        tn_replay_flag(r, e->addr, TN_LF_EXPORTED);
    } else if (e->kind == TN_EXPORT_FD) {
        uint32_t life = tn_index_find(&r->handles, e->addr);
        if (life != TN_INDEX_NONE)
            r->p->lives[life].flags |= TN_LF_EXPORTED;
    } else if (e->kind == TN_EXPORT_RETAIN) {
        uint32_t life = tn_index_find(&r->handles, e->aux);
        if (life == TN_INDEX_NONE) { /* released while it was mapped, and had back */
            life = find_mapped(r, e->addr);
            if (life != TN_INDEX_NONE)
                tn_replay_check(r, tn_index_set(&r->handles, e->aux, life));
        }
        struct handle_state *s = life == TN_INDEX_NONE ? NULL : tn_replay_handle(r, life);
        if (!s)
            return;
        s->refs++;
        r->p->lives[life].flags |= TN_LF_EXPORTED;
    }
}

void tn_replay_node(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->kind == TN_NODE_FREE) { /* a graph's own memory ends with its free node */
        uint32_t index = tn_index_find(&r->addresses, e->bytes);
        if (e->result == 0 && index != TN_INDEX_NONE && r->p->lives[index].kind == TN_KIND_GRAPH) {
            tn_index_take(&r->addresses, e->bytes);
            tn_replay_end(r, index);
        }
        return;
    }
    if (e->kind == TN_NODE_UNREADABLE || e->kind == TN_NODE_ALLOC || e->bytes == 0)
        return;
    uint32_t index = tn_index_find(&r->addresses, e->bytes);
    if (index != TN_INDEX_NONE)
        r->p->lives[index].flags |= TN_LF_HELD;
    else if (e->aux2 >= TN_SITE_FIRST && e->aux2 < r->site_end)
        r->trace->sites[tn_replay_site(r, (uint32_t)e->aux2)].flags |= TN_LF_HELD;
}

void tn_replay_graph(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->result != 0)
        return;
    if (e->kind == TN_GRAPH_INSTANTIATE) {
        uint32_t old = tn_index_take(&r->execs, e->addr);
        if (old != TN_INDEX_NONE)
            r->exec_count[old & 255]--;
        tn_replay_check(r, tn_index_set(&r->execs, e->addr, e->device));
        if (++r->exec_count[e->device] > r->p->graph_execs[e->device])
            r->p->graph_execs[e->device] = r->exec_count[e->device];
    } else if (e->kind == TN_GRAPH_EXEC_DESTROY) {
        uint32_t device = tn_index_take(&r->execs, e->addr);
        if (device != TN_INDEX_NONE)
            r->exec_count[device & 255]--;
    }
}

void tn_replay_first_write(tn_replay *r)
{
    uint32_t index = tn_index_find(&r->addresses, r->e->addr);
    if (index == TN_INDEX_NONE || r->p->lives[index].first_write)
        return;
    r->p->lives[index].first_write = r->e->kind;
    r->p->lives[index].write_phase = r->e->phase;
}

/* Which pool stream-ordered blocks come from that name none. One that is destroyed is current no more. */
void tn_replay_pool(tn_replay *r)
{
    uint64_t pool = r->e->addr;
    if (r->e->kind == TN_POOL_CREATE)
        tn_replay_check(r, tn_index_set(&r->pools, pool, 0));
    else if (r->e->kind == TN_POOL_DEVICE_SET && r->e->bytes <= UINT8_MAX)
        r->current_pool[r->e->bytes] = tn_index_find(&r->pools, pool) != TN_INDEX_NONE ? pool : 0;
    if (r->e->kind != TN_POOL_DESTROY)
        return;
    tn_index_take(&r->pools, pool);
    for (size_t i = 0; i <= UINT8_MAX; i++)
        if (r->current_pool[i] == pool)
            r->current_pool[i] = 0;
}
