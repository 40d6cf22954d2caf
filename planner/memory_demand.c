/* A demand's lines, and its levers: the demand with one thing changed, planned again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/memory.h"

enum { ACTIVATION_BYTES = 2, LOGIT_BYTES = 4 };

static bool add(uint64_t *sum, uint64_t bytes) { return !__builtin_add_overflow(*sum, bytes, sum); }

/* sum += a * b * c * d */
static bool add_product(uint64_t *sum, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t factors[] = {a, b, c, d}, product = 1;
    if (!a || !b || !c || !d)
        return true;
    for (size_t i = 0; i < 4; i++)
        if (__builtin_mul_overflow(product, factors[i], &product))
            return false;
    return add(sum, product);
}

static uint64_t divide_up(uint64_t n, uint64_t by) { return n / by + (n % by != 0); }

static uint64_t step_tokens(const tn_demand *d)
{
    return d->limits.step_tokens == TN_DEMAND_UNSET ? d->limits.max_seq_len : d->limits.step_tokens;
}

static uint64_t or_model(uint64_t value, uint64_t model) { return value == TN_DEMAND_UNSET ? model : value; }

/* Tokens that a sequence of full length may have in the cache: a draft is written before it is accepted. */
static uint64_t cached_tokens(const tn_demand *d)
{
    return d->limits.max_seq_len + (d->speculation.enabled ? d->speculation.draft_tokens : 0);
}

static bool item_bytes(const tn_demand *d, const tn_demand_item *item, uint64_t *bytes)
{
    *bytes = item->bytes;
    return add_product(bytes, item->per_sequence, d->limits.max_batch, 1, 1) && add_product(bytes, item->per_token, step_tokens(d), 1, 1) &&
           add_product(bytes, item->per_context_token, d->limits.max_seq_len, 1, 1) &&
           add_product(bytes, item->hidden_states, step_tokens(d), d->model.hidden_size, ACTIVATION_BYTES) &&
           add_product(bytes, item->logits, step_tokens(d), d->model.vocab_size, LOGIT_BYTES);
}

/* bytes += one block of `layers` layers. */
static bool add_block(const tn_demand *d, uint64_t layers, uint64_t heads, uint64_t head_dim, uint64_t *bytes)
{
    uint64_t vector = 0, row = 0;
    return tn_dtype_vector_bytes(d->kv.dtype, head_dim, &vector) && add_product(&row, vector, heads, d->model.kv_tensors, 1) &&
           add_product(bytes, row, layers, d->kv.block_size, 1);
}

/* Layers with a window keep the tokens that the next step still looks at: the window's without the new ones, and those of the step. They
 * may begin anywhere in a block. */
static uint64_t window_blocks(const tn_demand *d)
{
    uint64_t step = d->sliding_window.step_tokens, draft = d->speculation.enabled ? d->speculation.draft_tokens + 1 : 1;
    uint64_t span = d->sliding_window.window - 1 + (step > draft ? step : draft);
    uint64_t blocks = divide_up(span - 1, d->kv.block_size) + 1, all = divide_up(cached_tokens(d), d->kv.block_size);
    return blocks < all ? blocks : all;
}

static bool add_window(const tn_demand *d, tn_memory_input *in, char where[TN_MEMORY_NAME])
{
    if (!d->sliding_window.enabled)
        return true;
    uint64_t block = 0, bytes = 0;
    snprintf(where, TN_MEMORY_NAME, "sliding-window KV (batch %" PRIu64 " x %" PRIu64 " blocks)", d->limits.max_batch, window_blocks(d));
    return add_block(d, d->sliding_window.layers, or_model(d->sliding_window.kv_heads, d->model.kv_heads),
                     or_model(d->sliding_window.head_dim, d->model.head_dim), &block) &&
           add_product(&bytes, block, window_blocks(d), d->limits.max_batch, 1) && tn_memory_add(in, TN_PART_T3, where, bytes);
}

static bool set_pool(const tn_demand *d, tn_memory_kv *kv, char where[TN_MEMORY_NAME])
{
    uint64_t windowed = d->sliding_window.enabled ? d->sliding_window.layers : 0, block = 0;
    uint64_t layers = d->model.kv_layers == TN_DEMAND_UNSET ? d->model.layers - windowed : d->model.kv_layers;
    snprintf(where, TN_MEMORY_NAME, "KV block");
    if (!add_block(d, layers, d->model.kv_heads, d->model.head_dim, &block))
        return false;
    if (d->speculation.enabled && !add_block(d, d->speculation.kv_layers, or_model(d->speculation.kv_heads, d->model.kv_heads),
                                             or_model(d->speculation.head_dim, d->model.head_dim), &block))
        return false;
    if (block == 0)
        return true;
    if (!add(&block, d->kv.block_overhead))
        return false;
    kv->block_bytes = block;
    kv->block_tokens = d->kv.block_size;
    kv->sequence_blocks = divide_up(cached_tokens(d), d->kv.block_size);
    kv->sequence_tokens = d->limits.max_seq_len;
    kv->sequences = d->limits.max_batch;
    /* Also "all", which is more than any batch. */
    kv->full_sequences = d->limits.full_sequences < d->limits.max_batch ? d->limits.full_sequences : d->limits.max_batch;
    return true;
}

static bool add_named(tn_memory_input *in, tn_memory_part part, const char *name, uint64_t bytes, char where[TN_MEMORY_NAME])
{
    snprintf(where, TN_MEMORY_NAME, "%s", name);
    return tn_memory_add(in, part, name, bytes);
}

static bool add_items(const tn_demand *d, tn_item_tier tier, tn_memory_part part, tn_memory_input *in, char where[TN_MEMORY_NAME])
{
    for (size_t i = 0; i < d->item_count; i++) {
        uint64_t bytes;
        if (d->items[i].tier != tier)
            continue;
        snprintf(where, TN_MEMORY_NAME, "%s", d->items[i].name);
        if (!item_bytes(d, &d->items[i], &bytes) || !add_named(in, part, d->items[i].name, bytes, where))
            return false;
    }
    return true;
}

static bool add_charges(const tn_demand *d, const tn_charges *measured, tn_memory_input *in, char where[TN_MEMORY_NAME])
{
    const tn_charges *charges = measured ? measured : &d->charges;
    for (int i = 0; i < TN_CHARGES; i++) {
        char name[TN_MEMORY_NAME];
        snprintf(name, sizeof(name), "%s%s", tn_charge_label((tn_charge)i), measured ? " (measured)" : "");
        if (!add_named(in, TN_PART_CHARGE, name, charges->bytes[i], where))
            return false;
    }
    uint64_t bytes = 0;
    char name[TN_MEMORY_NAME];
    snprintf(name, sizeof(name), "graph execs (at most %" PRIu64 ")", d->graphs.execs);
    snprintf(where, TN_MEMORY_NAME, "%s", name);
    return add_product(&bytes, d->graphs.execs, d->graphs.bytes_per_exec, 1, 1) && add_named(in, TN_PART_CHARGE, name, bytes, where);
}

static bool add_vision_buffers(const tn_demand *d, tn_memory_input *in, char where[TN_MEMORY_NAME])
{
    uint64_t bytes = d->vision.buffers;
    snprintf(where, TN_MEMORY_NAME, "vision buffers");
    return !d->vision.enabled || (add_product(&bytes, d->vision.image_tokens, d->model.hidden_size, ACTIVATION_BYTES, 1) &&
                                  add_named(in, TN_PART_T2, "vision buffers", bytes, where));
}

bool tn_memory_of_demand(const tn_demand *d, const tn_charges *measured, tn_memory_input *out, char where[TN_MEMORY_NAME])
{
    memset(out, 0, sizeof(*out));
    where[0] = 0;
    out->budget = d->budget;
    out->granularity = d->device.granularity;
    return add_charges(d, measured, out, where) && add_items(d, TN_ITEM_ENGINE, TN_PART_T2, out, where) && add_vision_buffers(d, out, where) &&
           (!d->speculation.enabled || add_named(out, TN_PART_T2, "speculation buffers", d->speculation.buffers, where)) &&
           add_named(out, TN_PART_T1, "model weights", d->model.weights, where) &&
           (!d->vision.enabled || add_named(out, TN_PART_T1, "vision weights", d->vision.weights, where)) &&
           (!d->speculation.enabled || add_named(out, TN_PART_T1, "draft model weights", d->speculation.weights, where)) &&
           add_items(d, TN_ITEM_CACHE, TN_PART_T1, out, where) && add_window(d, out, where) &&
           add_items(d, TN_ITEM_POOL, TN_PART_T3, out, where) && add_items(d, TN_ITEM_SCRATCH, TN_PART_T4, out, where) &&
           set_pool(d, &out->kv, where);
}

/* Levers. Each changes a copy of the demand and says what it did, or says that there is nothing for it to change. */

static void set_seq_len(tn_demand *d, uint64_t tokens) { d->limits.max_seq_len = tokens; }

static void set_batch(tn_demand *d, uint64_t batch)
{
    d->limits.max_batch = batch;
    if (d->limits.full_sequences != TN_DEMAND_UNSET && d->limits.full_sequences > batch)
        d->limits.full_sequences = batch;
}

static bool halve_seq_len(tn_demand *d, char what[TN_MEMORY_NAME])
{
    uint64_t half = d->limits.max_seq_len / 2;
    snprintf(what, TN_MEMORY_NAME, "limits.max_seq_len %" PRIu64 " -> %" PRIu64, d->limits.max_seq_len, half);
    set_seq_len(d, half);
    return half > 0;
}

static bool halve_dtype(tn_demand *d, char what[TN_MEMORY_NAME])
{
    tn_dtype half = tn_dtype_half(d->kv.dtype);
    snprintf(what, TN_MEMORY_NAME, "kv.dtype %s -> %s", tn_dtype_name(d->kv.dtype), tn_dtype_name(half));
    d->kv.dtype = half;
    return half < TN_DTYPES;
}

/* By a quarter, and by one at least. */
static bool lower_batch(tn_demand *d, char what[TN_MEMORY_NAME])
{
    uint64_t batch = d->limits.max_batch, lower = batch - divide_up(batch, 4);
    snprintf(what, TN_MEMORY_NAME, "limits.max_batch %" PRIu64 " -> %" PRIu64, batch, lower);
    set_batch(d, lower);
    return lower > 0;
}

static bool drop_optional(tn_demand *d, char what[TN_MEMORY_NAME])
{
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < d->item_count; i++) {
        if (!d->items[i].optional)
            d->items[kept++] = d->items[i];
        else if (dropped++ == 0)
            snprintf(what, TN_MEMORY_NAME, "without %s", d->items[i].name);
    }
    d->item_count = kept;
    if (dropped > 1)
        snprintf(what, TN_MEMORY_NAME, "without the %zu optional items", dropped);
    return dropped > 0;
}

static bool vision_off(tn_demand *d, char what[TN_MEMORY_NAME])
{
    bool was = d->vision.enabled;
    snprintf(what, TN_MEMORY_NAME, "features.vision.enabled true -> false");
    d->vision.enabled = false;
    return was;
}

static bool speculation_off(tn_demand *d, char what[TN_MEMORY_NAME])
{
    bool was = d->speculation.enabled;
    snprintf(what, TN_MEMORY_NAME, "features.speculation.enabled true -> false");
    d->speculation.enabled = false;
    return was;
}

static bool (*const levers[])(tn_demand *d, char what[TN_MEMORY_NAME]) = {halve_seq_len, halve_dtype, lower_batch, drop_optional, vision_off,
                                                                           speculation_off};
_Static_assert(sizeof(levers) / sizeof(levers[0]) <= TN_MEMORY_LEVERS, "room for every lever");

/* What a demand is planned in. */
typedef struct around {
    const tn_charges *measured;  /* NULL: the demand's own */
    const tn_memory_input *base; /* NULL: the demand's own lines */
    uint64_t budget;
} around;

static bool input_of(const tn_demand *demand, const around *a, tn_memory_input *out, char where[TN_MEMORY_NAME])
{
    if (!a->base)
        return tn_memory_of_demand(demand, a->measured, out, where);
    *out = *a->base;
    memset(&out->kv, 0, sizeof(out->kv));
    return set_pool(demand, &out->kv, where);
}

static void fit_demand(const tn_demand *demand, const around *a, uint64_t budget, tn_memory_plan *out)
{
    tn_memory_input input;
    char where[TN_MEMORY_NAME];
    if (input_of(demand, a, &input, where)) {
        input.budget = budget;
        tn_memory_fit(&input, out);
        return;
    }
    memset(out, 0, sizeof(*out));
    out->result = TN_MEMORY_TOO_LARGE;
    memcpy(out->where, where, sizeof(out->where));
}

/* The least that a demand needs: against a budget of nothing a plan asks for its lines and the floor of its pool, no more. False where the
 * figures leave 64 bits. */
static bool least(const tn_demand *demand, const around *a, uint64_t *bytes)
{
    tn_memory_plan plan;
    fit_demand(demand, a, 0, &plan);
    *bytes = plan.total;
    return plan.result != TN_MEMORY_TOO_LARGE;
}

static void add_lever(const tn_demand *changed, const around *a, const char *what, tn_memory_plan *out)
{
    uint64_t need;
    if (!least(changed, a, &need) || need >= out->total)
        return;
    tn_memory_lever lever = {.frees = out->total - need, .over = need > out->budget ? need - out->budget : 0};
    snprintf(lever.what, sizeof(lever.what), "%s", what);
    size_t at = out->lever_count++;
    for (; at > 0 && out->levers[at - 1].frees < lever.frees; at--)
        out->levers[at] = out->levers[at - 1];
    out->levers[at] = lever;
}

/* The largest value from 1 to below `upper` with which the demand fits; 0: none. More of either never needs less. */
static uint64_t largest_fitting(const tn_demand *demand, const around *a, uint64_t upper,
                                void (*set)(tn_demand *d, uint64_t value))
{
    uint64_t fits = 0, not = upper;
    while (not - fits > 1) {
        uint64_t middle = fits + (not - fits) / 2;
        tn_demand changed = *demand;
        tn_memory_plan plan;
        set(&changed, middle);
        fit_demand(&changed, a, a->budget, &plan);
        if (plan.result == TN_MEMORY_FITS)
            fits = middle;
        else
            not = middle;
    }
    return fits;
}

static void plan_with_levers(const tn_demand *demand, const around *a, tn_memory_plan *out)
{
    fit_demand(demand, a, a->budget, out);
    if (out->result != TN_MEMORY_OVER && out->result != TN_MEMORY_KV_FLOOR)
        return;
    for (size_t i = 0; i < sizeof(levers) / sizeof(levers[0]); i++) {
        tn_demand changed = *demand;
        char what[TN_MEMORY_NAME];
        if (levers[i](&changed, what))
            add_lever(&changed, a, what, out);
    }
    tn_demand single = *demand;
    tn_memory_plan plan;
    single.limits.full_sequences = 1;
    fit_demand(&single, a, a->budget, &plan);
    out->single_fits = plan.result == TN_MEMORY_FITS;
    out->fitting_seq_len = largest_fitting(demand, a, demand->limits.max_seq_len, set_seq_len);
    out->fitting_batch = largest_fitting(demand, a, demand->limits.max_batch, set_batch);
}

void tn_memory_plan_demand(const tn_demand *demand, const tn_charges *measured, uint64_t budget, tn_memory_plan *out)
{
    const around a = {.measured = measured, .budget = budget};
    plan_with_levers(demand, &a, out);
}

void tn_memory_plan_around(const tn_demand *demand, const tn_memory_input *base, uint64_t budget, tn_memory_plan *out)
{
    const around a = {.base = base, .budget = budget};
    plan_with_levers(demand, &a, out);
}
