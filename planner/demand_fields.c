/* One row a key. */
#include "planner/demand_fields.h"

#include <stdio.h>
#include <string.h>

/* No machine has more; far below where products of a few of them leave 64 bits for sizes of memory that exists. */
enum { MANY = 1000000 };
#define TOKENS 1000000000u

#define AT(member) offsetof(tn_demand, member)
#define COUNT(key, member, min, max, required) {key, TN_FIELD_COUNT, AT(member), min, max, required, NULL}
#define SIZE(key, member, required) {key, TN_FIELD_SIZE, AT(member), 0, 0, required, NULL}
#define FLAG(key, member) {key, TN_FIELD_BOOL, AT(member), 0, 0, false, NULL}
#define NAME(key, member) {key, TN_FIELD_NAME, AT(member), 0, 0, false, NULL}
#define SECTION(key) {key, TN_FIELD_SECTION, 0, 0, 0, false, NULL}
#define ITEMS(key, tier, what) {key, TN_FIELD_ITEMS, 0, tier, 0, false, what}
#define CHARGE(key, charge) SIZE(key, charges.bytes[charge], false)

static const tn_field file_fields[] = {
    NAME("name", name),
    SIZE("budget", budget, false),
    SECTION("device"),
    SECTION("model"),
    SECTION("limits"),
    SECTION("kv"),
    ITEMS("caches", TN_ITEM_CACHE, "weight caches"),
    ITEMS("engine", TN_ITEM_ENGINE, "engine-persistent"),
    ITEMS("pools", TN_ITEM_POOL, "pools"),
    ITEMS("scratch", TN_ITEM_SCRATCH, "forward scratch"),
    SECTION("charges"),
    SECTION("graphs"),
    SECTION("features"),
};

static const tn_field device_fields[] = {
    NAME("gpu", device.gpu),
    NAME("driver", device.driver),
    NAME("loading", device.loading),
    SIZE("granularity", device.granularity, false),
};

static const tn_field model_fields[] = {
    COUNT("layers", model.layers, 1, MANY, true),
    COUNT("hidden_size", model.hidden_size, 1, TOKENS, false),
    COUNT("vocab_size", model.vocab_size, 1, TOKENS, false),
    COUNT("kv_layers", model.kv_layers, 0, MANY, false),
    COUNT("kv_heads", model.kv_heads, 1, MANY, true),
    COUNT("head_dim", model.head_dim, 1, MANY, true),
    COUNT("kv_tensors", model.kv_tensors, 1, 2, false),
    SIZE("weights", model.weights, true),
};

static const tn_field limits_fields[] = {
    COUNT("max_batch", limits.max_batch, 1, MANY, true),
    COUNT("max_seq_len", limits.max_seq_len, 1, TOKENS, true),
    COUNT("step_tokens", limits.step_tokens, 1, TOKENS, false),
    {"full_sequences", TN_FIELD_SEQUENCES, AT(limits.full_sequences), 1, MANY, false, NULL},
};

static const tn_field kv_fields[] = {
    {"dtype", TN_FIELD_DTYPE, AT(kv.dtype), 0, 0, true, NULL},
    COUNT("block_size", kv.block_size, 1, MANY, true),
    SIZE("block_overhead", kv.block_overhead, false),
};

static const tn_field charges_fields[] = {
    CHARGE("context", TN_CLAIM_CONTEXT), CHARGE("modules", TN_CLAIM_MODULES), CHARGE("libraries", TN_CLAIM_LIBRARIES),
    CHARGE("streams", TN_CLAIM_STREAMS), CHARGE("graphs", TN_CLAIM_GRAPHS),   CHARGE("limits", TN_CLAIM_LIMITS),
    CHARGE("pools", TN_CLAIM_POOLS),     CHARGE("other", TN_CLAIM_OTHER),
};

static const tn_field graphs_fields[] = {
    COUNT("execs", graphs.execs, 0, MANY, true),
    SIZE("bytes_per_exec", graphs.bytes_per_exec, true),
};

static const tn_field features_fields[] = {
    SECTION("vision"),
    SECTION("speculation"),
    SECTION("sliding_window"),
};

static const tn_field vision_fields[] = {
    FLAG("enabled", vision.enabled),
    SIZE("weights", vision.weights, true),
    SIZE("buffers", vision.buffers, false),
    COUNT("image_tokens", vision.image_tokens, 0, TOKENS, false),
};

static const tn_field speculation_fields[] = {
    FLAG("enabled", speculation.enabled),
    COUNT("draft_tokens", speculation.draft_tokens, 1, MANY, true),
    SIZE("weights", speculation.weights, false),
    SIZE("buffers", speculation.buffers, false),
    COUNT("kv_layers", speculation.kv_layers, 0, MANY, false),
    COUNT("kv_heads", speculation.kv_heads, 1, MANY, false),
    COUNT("head_dim", speculation.head_dim, 1, MANY, false),
};

static const tn_field sliding_window_fields[] = {
    FLAG("enabled", sliding_window.enabled),
    COUNT("window", sliding_window.window, 1, TOKENS, true),
    COUNT("layers", sliding_window.layers, 1, MANY, true),
    COUNT("step_tokens", sliding_window.step_tokens, 1, TOKENS, false),
    COUNT("kv_heads", sliding_window.kv_heads, 1, MANY, false),
    COUNT("head_dim", sliding_window.head_dim, 1, MANY, false),
};

#undef AT
#define AT(member) offsetof(tn_demand_item, member)
static const tn_field item_fields[] = {
    {"name", TN_FIELD_NAME, AT(name), 0, 0, true, NULL},
    FLAG("optional", optional),
    SIZE("bytes", bytes, false),
    SIZE("per_sequence", per_sequence, false),
    SIZE("per_token", per_token, false),
    SIZE("per_context_token", per_context_token, false),
    COUNT("hidden_states", hidden_states, 0, MANY, false),
    COUNT("logits", logits, 0, MANY, false),
};

#define FIELDS(table) table, sizeof(table) / sizeof(table[0])
const tn_field_section tn_demand_sections[] = {
    {"", FIELDS(file_fields), true, TN_NO_FLAG},
    {"device", FIELDS(device_fields), false, TN_NO_FLAG},
    {"model", FIELDS(model_fields), true, TN_NO_FLAG},
    {"limits", FIELDS(limits_fields), true, TN_NO_FLAG},
    {"kv", FIELDS(kv_fields), true, TN_NO_FLAG},
    {"charges", FIELDS(charges_fields), false, TN_NO_FLAG},
    {"graphs", FIELDS(graphs_fields), false, TN_NO_FLAG},
    {"features", FIELDS(features_fields), false, TN_NO_FLAG},
    {"features.vision", FIELDS(vision_fields), false, offsetof(tn_demand, vision.enabled)},
    {"features.speculation", FIELDS(speculation_fields), false, offsetof(tn_demand, speculation.enabled)},
    {"features.sliding_window", FIELDS(sliding_window_fields), false, offsetof(tn_demand, sliding_window.enabled)},
};
const size_t tn_demand_section_count = sizeof(tn_demand_sections) / sizeof(tn_demand_sections[0]);
const tn_field_section tn_demand_item_section = {"", FIELDS(item_fields), false, TN_NO_FLAG};

const tn_field_section *tn_demand_section(const char *path)
{
    for (size_t i = 0; i < tn_demand_section_count; i++)
        if (strcmp(tn_demand_sections[i].path, path) == 0)
            return &tn_demand_sections[i];
    return NULL;
}

/* Paths are made into one buffer: a caller has done with one when it asks for the next. */
const char *tn_demand_key(size_t i)
{
    static _Thread_local char path[80];
    for (size_t s = 0; s < tn_demand_section_count; s++) {
        const tn_field_section *section = &tn_demand_sections[s];
        if (i < section->count) {
            snprintf(path, sizeof(path), "%s%s%s", section->path, *section->path ? "." : "", section->fields[i].key);
            return path;
        }
        i -= section->count;
    }
    if (i >= tn_demand_item_section.count)
        return NULL;
    snprintf(path, sizeof(path), "item.%s", tn_demand_item_section.fields[i].key);
    return path;
}
