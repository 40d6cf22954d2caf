#include "tests/planner/memory_check.h"

#include <stdio.h>
#include <string.h>

static wide up(wide n, wide step) { return step ? (n + step - 1) / step * step : n; }
static wide blocks_of(wide tokens, wide block) { return (tokens + block - 1) / block; }

/* Bits of an element, as the documentation lists them. */
static wide vector(tn_dtype dtype, wide elements)
{
    const char *name = tn_dtype_name(dtype);
    wide bits = 8;
    if (!strcmp(name, "f32"))
        bits = 32;
    if (!strcmp(name, "f16") || !strcmp(name, "bf16"))
        bits = 16;
    if (!strcmp(name, "fp4") || !strcmp(name, "int4") || !strcmp(name, "nvfp4"))
        bits = 4;
    return (elements * bits + 7) / 8 + (!strcmp(name, "nvfp4") ? (elements + 15) / 16 : 0);
}

memory_need memory_need_of(const tn_demand *d)
{
    memory_need n;
    memset(&n, 0, sizeof(n));
    wide batch = d->limits.max_batch, length = d->limits.max_seq_len, bs = d->kv.block_size, g = d->device.granularity;
    wide step = d->limits.step_tokens == TN_DEMAND_UNSET ? length : d->limits.step_tokens;
    wide drafted = d->speculation.enabled ? d->speculation.draft_tokens : 0;

    for (int i = 0; i < TN_CHARGES; i++)
        n.parts[TN_PART_CHARGE] += d->charges.bytes[i];
    n.parts[TN_PART_CHARGE] += (wide)d->graphs.execs * d->graphs.bytes_per_exec;
    n.parts[TN_PART_T1] = d->model.weights;
    for (size_t i = 0; i < d->item_count; i++) {
        static const tn_memory_part parts[] = {[TN_ITEM_CACHE] = TN_PART_T1, [TN_ITEM_ENGINE] = TN_PART_T2, [TN_ITEM_POOL] = TN_PART_T3,
                                               [TN_ITEM_SCRATCH] = TN_PART_T4};
        const tn_demand_item *it = &d->items[i];
        n.parts[parts[it->tier]] += it->bytes + it->per_sequence * batch + it->per_token * step + it->per_context_token * length +
                                    it->hidden_states * step * d->model.hidden_size * 2 + it->logits * step * d->model.vocab_size * 4;
    }
    if (d->vision.enabled) {
        n.parts[TN_PART_T1] += d->vision.weights;
        n.parts[TN_PART_T2] += d->vision.buffers + (wide)d->vision.image_tokens * d->model.hidden_size * 2;
    }
    if (d->speculation.enabled) {
        n.parts[TN_PART_T1] += d->speculation.weights;
        n.parts[TN_PART_T2] += d->speculation.buffers;
    }

    n.sequence_blocks = blocks_of(length + drafted, bs);
    wide layers = d->model.layers, per_layer = (wide)d->model.kv_tensors * bs;
    if (d->sliding_window.enabled) {
        wide heads = d->sliding_window.kv_heads == TN_DEMAND_UNSET ? d->model.kv_heads : d->sliding_window.kv_heads;
        wide dim = d->sliding_window.head_dim == TN_DEMAND_UNSET ? d->model.head_dim : d->sliding_window.head_dim;
        wide moved = d->sliding_window.step_tokens > drafted + 1 ? d->sliding_window.step_tokens : drafted + 1, most = 0;
        /* The blocks that a span touches, tried at every place in a block. */
        wide span = d->sliding_window.window + moved - 1;
        for (wide at = 0; at < bs; at++) {
            wide touched = (at + span - 1) / bs + 1;
            most = touched > most ? touched : most;
        }
        most = most < n.sequence_blocks ? most : n.sequence_blocks;
        n.parts[TN_PART_T3] += (wide)d->sliding_window.layers * heads * vector(d->kv.dtype, dim) * per_layer * most * batch;
        layers -= d->sliding_window.layers;
    }
    if (d->model.kv_layers != TN_DEMAND_UNSET)
        layers = d->model.kv_layers;
    n.block = layers * d->model.kv_heads * vector(d->kv.dtype, d->model.head_dim) * per_layer;
    if (d->speculation.enabled) {
        wide heads = d->speculation.kv_heads == TN_DEMAND_UNSET ? d->model.kv_heads : d->speculation.kv_heads;
        wide dim = d->speculation.head_dim == TN_DEMAND_UNSET ? d->model.head_dim : d->speculation.head_dim;
        n.block += (wide)d->speculation.kv_layers * heads * vector(d->kv.dtype, dim) * per_layer;
    }
    if (n.block) {
        n.block += d->kv.block_overhead;
        n.wanted = n.sequence_blocks * batch;
        n.floor = n.sequence_blocks * (d->limits.full_sequences < batch ? d->limits.full_sequences : batch);
    }
    for (int part = 0; part < TN_PART_ROUNDING; part++)
        n.fixed += part == TN_PART_CHARGE ? n.parts[part] : up(n.parts[part], g);
    n.least = n.fixed + up(n.floor * n.block, g);
    return n;
}

/* The levers by how their texts begin. False where the demand has nothing to change there. */
static const char *const lever_names[] = {"limits.max_seq_len ", "limits.max_batch ", "kv.dtype ", "without ", "features.vision.",
                                          "features.speculation."};
enum { LEVERS = sizeof(lever_names) / sizeof(lever_names[0]) };

static bool pull(int lever, const tn_demand *d, tn_demand *c)
{
    *c = *d;
    switch (lever) {
    case 0:
        c->limits.max_seq_len /= 2;
        return c->limits.max_seq_len > 0;
    case 1:
        c->limits.max_batch = c->limits.max_batch * 3 / 4;
        if (c->limits.full_sequences != TN_DEMAND_UNSET && c->limits.full_sequences > c->limits.max_batch)
            c->limits.full_sequences = c->limits.max_batch;
        return c->limits.max_batch > 0;
    case 2:
        c->kv.dtype = tn_dtype_half(c->kv.dtype);
        return c->kv.dtype < TN_DTYPES;
    case 3:
        c->item_count = 0;
        for (size_t k = 0; k < d->item_count; k++)
            if (!d->items[k].optional)
                c->items[c->item_count++] = d->items[k];
        return c->item_count < d->item_count;
    case 4:
        c->vision.enabled = false;
        return d->vision.enabled;
    default:
        c->speculation.enabled = false;
        return d->speculation.enabled;
    }
}

static const char *check_levers(const tn_demand *d, uint64_t budget, const tn_memory_plan *p, const memory_need *n)
{
    size_t expected = 0;
    for (int lever = 0; lever < LEVERS; lever++) {
        tn_demand c;
        wide then = pull(lever, d, &c) ? memory_need_of(&c).least : n->least;
        if (then >= n->least)
            continue;
        expected++;
        const tn_memory_lever *l = NULL;
        for (size_t i = 0; i < p->lever_count; i++)
            if (strncmp(p->levers[i].what, lever_names[lever], strlen(lever_names[lever])) == 0)
                l = &p->levers[i];
        if (!l)
            return "a lever is missing";
        if (n->least - then != l->frees)
            return "a lever frees another amount";
        if (l->over != (then > budget ? then - budget : 0))
            return "a lever leaves another amount short";
    }
    for (size_t i = 1; i < p->lever_count; i++)
        if (p->levers[i - 1].frees < p->levers[i].frees)
            return "levers are not in order";
    return p->lever_count == expected ? NULL : "there is a lever too many";
}

static const char *check_what_fits(const tn_demand *d, uint64_t budget, const tn_memory_plan *p)
{
    for (int i = 0; i < 2; i++) {
        uint64_t asked = i ? d->limits.max_batch : d->limits.max_seq_len, fits = i ? p->fitting_batch : p->fitting_seq_len;
        if (fits >= asked)
            return "what is asked for is said to fit";
        for (uint64_t value = fits; value <= fits + 1; value++) {
            tn_demand c = *d;
            if (i) {
                c.limits.max_batch = value;
                if (c.limits.full_sequences != TN_DEMAND_UNSET && c.limits.full_sequences > value)
                    c.limits.full_sequences = value;
            } else {
                c.limits.max_seq_len = value;
            }
            if (value > 0 && (memory_need_of(&c).least <= budget) != (value == fits))
                return "another limit is the largest that fits";
        }
    }
    return NULL;
}

static const char *check_lines(const tn_memory_plan *p, const memory_need *n)
{
    wide parts[TN_PARTS] = {0}, sum = 0;
    for (size_t i = 0; i < p->line_count; i++) {
        if (i > 0 && p->lines[i].part < p->lines[i - 1].part)
            return "lines are not in the order of parts";
        if (p->lines[i].bytes == 0 || !*p->lines[i].name)
            return "a line says nothing";
        parts[p->lines[i].part] += p->lines[i].bytes;
        sum += p->lines[i].bytes;
    }
    if (sum != p->total)
        return "the lines do not add up to the total";
    for (int part = 0; part < TN_PART_ROUNDING; part++)
        if (parts[part] != n->parts[part])
            return "a part has another amount";
    if (parts[TN_PART_KV] != n->block * p->kv.blocks)
        return "the pool's line is not its blocks";
    return NULL;
}

const char *memory_check(const tn_demand *d, uint64_t budget, const tn_memory_plan *p)
{
    memory_need n = memory_need_of(d);
    wide g = d->device.granularity, limit = INT64_MAX;
    if (p->result == TN_MEMORY_TOO_LARGE)
        return n.fixed + up(n.wanted * n.block, g) > limit / 2 ? NULL : "figures that have room are called too large";
    const char *wrong = check_lines(p, &n);
    if (wrong)
        return wrong;
    if (p->kv.block_bytes != n.block || p->wanted_blocks != n.wanted || p->budget != budget)
        return "the pool is another one";
    bool fits = p->result == TN_MEMORY_FITS;
    if (budget == TN_MEMORY_NO_BUDGET)
        return !fits || p->kv.blocks != n.wanted || p->over || p->left ? "without a budget not everything is granted" : NULL;
    if (fits != (n.least <= budget))
        return fits ? "it is said to fit and does not" : "it fits and is refused";
    if (p->over != (fits ? 0 : n.least - budget) || p->left != (fits ? budget - p->total : 0))
        return "over or left is another amount";
    if (!fits) {
        if ((p->result == TN_MEMORY_OVER) != (n.fixed > budget))
            return "another reason is given";
        if (p->kv.blocks != n.floor || p->total != n.least)
            return "a refused plan asks for more than the least";
        wrong = check_levers(d, budget, p, &n);
        return wrong ? wrong : check_what_fits(d, budget, p);
    }
    if (p->total > budget)
        return "the budget is exceeded";
    if (p->kv.blocks > n.wanted || p->kv.blocks < n.floor)
        return "the pool has more than can be reached, or less than must fit";
    if (p->kv.blocks < n.wanted && n.fixed + up((p->kv.blocks + 1) * n.block, g) <= budget)
        return "a block more would fit";
    if (p->total != n.fixed + up(p->kv.blocks * n.block, g) || p->lever_count)
        return "the total is another";
    return NULL;
}
