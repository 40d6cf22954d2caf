/* A document into a demand, by the tables of demand_fields.c, and then what several keys must agree on. */
#include "planner/demand.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/demand_fields.h"
#include "planner/nearest.h"
#include "planner/size_text.h"

typedef struct reading {
    const tn_document *document;
    tn_demand *demand;
    char *message;
    tn_demand_error error;
} reading;

static bool fail(reading *r, tn_demand_error error, const tn_node *node, const char *format, ...) __attribute__((format(printf, 4, 5)));

static bool fail(reading *r, tn_demand_error error, const tn_node *node, const char *format, ...)
{
    char sentence[TN_DOCUMENT_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    tn_document_say(tn_document_name(r->document), node, r->message, "%s", sentence);
    r->error = error;
    return false;
}

static bool read_count(reading *r, const tn_field *field, const tn_node *node, uint64_t *out)
{
    uint64_t value = 0;
    bool is_count = *node->text != 0;
    for (const char *p = node->text; *p && is_count; p++)
        is_count = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(value, (uint64_t)10, &value) &&
                   !__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    if (!is_count || value < field->min || value > field->max)
        return fail(r, TN_DEMAND_VALUE, node, "%s is \"%.40s\", not a whole number from %" PRIu64 " to %" PRIu64 "%s", node->key, node->text,
                    field->min, field->max, field->kind == TN_FIELD_SEQUENCES ? " or all" : "");
    *out = value;
    return true;
}

static bool read_size(reading *r, const char *key, const tn_node *node, uint64_t *out)
{
    size_t at = 0, length = strlen(node->text);
    tn_size_error error = tn_size_read(node->text, length, out, &at);
    if (error == TN_SIZE_OK)
        return true;
    char sentence[200];
    tn_size_explain(node->text, length, error, at, sentence, sizeof(sentence));
    return fail(r, TN_DEMAND_VALUE, node, "%s: %s", key, sentence);
}

static bool read_bool(reading *r, const tn_node *node, bool *out)
{
    *out = strcmp(node->text, "true") == 0;
    return *out || strcmp(node->text, "false") == 0 ||
           fail(r, TN_DEMAND_VALUE, node, "%s is \"%.40s\", neither true nor false", node->key, node->text);
}

static bool read_name(reading *r, const tn_node *node, char out[TN_DEMAND_NAME])
{
    size_t length = strlen(node->text);
    if (length == 0 || length >= TN_DEMAND_NAME)
        return fail(r, TN_DEMAND_VALUE, node, "%s must be a text of 1 to %d bytes", node->key, TN_DEMAND_NAME - 1);
    memcpy(out, node->text, length + 1);
    return true;
}

static bool read_dtype(reading *r, const tn_node *node, tn_dtype *out)
{
    const char *names[TN_DTYPES];
    char list[160] = "";
    size_t used = 0;
    for (int i = 0; i < TN_DTYPES; i++) {
        names[i] = tn_dtype_name((tn_dtype)i);
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    }
    *out = tn_dtype_find(node->text);
    if (*out < TN_DTYPES)
        return true;
    const char *near = tn_nearest(node->text, names, TN_DTYPES);
    return fail(r, TN_DEMAND_VALUE, node, "%s is \"%.40s\"%s%s%s, none of %s", node->key, node->text, near ? " (did you mean " : "",
                near ? near : "", near ? "?)" : "", list);
}

/* A name like it in the same section, else the section that has just this key, else what there is. */
static bool unknown_key(reading *r, const tn_field_section *section, const char *where, const tn_node *node)
{
    const char *names[32];
    char known[240] = "";
    size_t used = 0;
    for (size_t i = 0; i < section->count; i++) {
        names[i] = section->fields[i].key;
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = tn_nearest(node->key, names, section->count);
    if (near)
        return fail(r, TN_DEMAND_UNKNOWN, node, "there is no key \"%.60s\" in %s (did you mean %s?)", node->key, where, near);
    for (size_t s = 0; s < tn_demand_section_count; s++)
        for (size_t i = 0; i < tn_demand_sections[s].count; i++)
            if (strcmp(tn_demand_sections[s].fields[i].key, node->key) == 0)
                return fail(r, TN_DEMAND_UNKNOWN, node, "there is no key \"%.60s\" in %s; it belongs %s%s", node->key, where,
                            *tn_demand_sections[s].path ? "in " : "to the file's first level", tn_demand_sections[s].path);
    return fail(r, TN_DEMAND_UNKNOWN, node, "there is no key \"%.60s\" in %s, which has %s", node->key, where, known);
}

static bool read_section(reading *r, const tn_field_section *section, const char *where, const tn_node *map, char *base);

static tn_demand_item *add_item(reading *r, const tn_field *field, const tn_node *node)
{
    if (r->demand->item_count == TN_DEMAND_ITEMS) {
        fail(r, TN_DEMAND_VALUE, node, "more than %d items in caches, engine, pools and scratch together", TN_DEMAND_ITEMS);
        return NULL;
    }
    tn_demand_item *item = &r->demand->items[r->demand->item_count++];
    memset(item, 0, sizeof(*item));
    item->tier = (tn_item_tier)field->min;
    return item;
}

/* What an item counts by must be known. */
static bool check_item(reading *r, const tn_demand_item *item, const tn_node *node)
{
    if (item->hidden_states && !r->demand->model.hidden_size)
        return fail(r, TN_DEMAND_MISSING, node, "\"%s\" counts hidden_states, and model.hidden_size is not given", item->name);
    if (item->logits && !r->demand->model.vocab_size)
        return fail(r, TN_DEMAND_MISSING, node, "\"%s\" counts logits, and model.vocab_size is not given", item->name);
    return true;
}

static bool read_items(reading *r, const tn_field *field, const tn_node *node)
{
    if (node->kind == TN_NODE_SCALAR) {
        tn_demand_item *item = add_item(r, field, node);
        if (!item)
            return false;
        snprintf(item->name, sizeof(item->name), "%s", field->what);
        return read_size(r, field->key, node, &item->bytes);
    }
    if (node->kind != TN_NODE_LIST)
        return fail(r, TN_DEMAND_VALUE, node, "%s is a size, or a list of items such as \"- name: ...\"", field->key);
    for (const tn_node *child = node->first; child; child = child->next) {
        if (child->kind != TN_NODE_MAP)
            return fail(r, TN_DEMAND_VALUE, child, "an item of %s has keys, such as \"- name: ...\"", field->key);
        tn_demand_item *item = add_item(r, field, child);
        if (!item || !read_section(r, &tn_demand_item_section, field->key, child, (char *)item))
            return false;
    }
    return true;
}

static bool read_field(reading *r, const tn_field_section *section, const tn_field *field, const tn_node *node, char *base)
{
    char *at = base + field->offset;
    if (field->kind == TN_FIELD_SECTION) {
        char path[64];
        snprintf(path, sizeof(path), "%s%s%s", section->path, *section->path ? "." : "", field->key);
        if (node->kind != TN_NODE_MAP)
            return fail(r, TN_DEMAND_VALUE, node, "%s has keys of its own, and no value", path);
        return read_section(r, tn_demand_section(path), path, node, base);
    }
    if (field->kind == TN_FIELD_ITEMS)
        return read_items(r, field, node);
    if (node->kind != TN_NODE_SCALAR)
        return fail(r, TN_DEMAND_VALUE, node, "%s is one value, not a %s", field->key, node->kind == TN_NODE_MAP ? "map" : "list");
    switch (field->kind) {
    case TN_FIELD_SIZE:
        return read_size(r, field->key, node, (uint64_t *)(void *)at);
    case TN_FIELD_BOOL:
        return read_bool(r, node, (bool *)at);
    case TN_FIELD_NAME:
        return read_name(r, node, at);
    case TN_FIELD_DTYPE:
        return read_dtype(r, node, (tn_dtype *)(void *)at);
    case TN_FIELD_SEQUENCES:
        if (strcmp(node->text, "all") == 0) {
            *(uint64_t *)(void *)at = TN_DEMAND_UNSET;
            return true;
        }
        return read_count(r, field, node, (uint64_t *)(void *)at);
    default:
        return read_count(r, field, node, (uint64_t *)(void *)at);
    }
}

static bool read_section(reading *r, const tn_field_section *section, const char *where, const tn_node *map, char *base)
{
    if (section->enabled != TN_NO_FLAG)
        *(bool *)(base + section->enabled) = true;
    for (const tn_node *child = map->first; child; child = child->next) {
        size_t i = 0;
        while (i < section->count && strcmp(section->fields[i].key, child->key) != 0)
            i++;
        if (i == section->count)
            return unknown_key(r, section, *where ? where : "the file", child);
        if (!read_field(r, section, &section->fields[i], child, base))
            return false;
    }
    for (size_t i = 0; i < section->count; i++)
        if (section->fields[i].required && !tn_node_find(map, section->fields[i].key))
            return fail(r, TN_DEMAND_MISSING, map, "%s has no %s", where, section->fields[i].key);
    return true;
}

/* Sections that every demand has: where one is not there, its first required key says so. */
static bool check_sections(reading *r)
{
    const tn_node *root = tn_document_root(r->document);
    for (size_t s = 0; s < tn_demand_section_count; s++) {
        const tn_field_section *section = &tn_demand_sections[s];
        if (section->always && *section->path && !tn_node_find(root, section->path))
            return fail(r, TN_DEMAND_MISSING, NULL, "there is no section %s, which says %s and more", section->path, section->fields[0].key);
    }
    return true;
}

static bool check_items(reading *r)
{
    static const char *const lists[TN_ITEM_TIERS] = {"caches", "engine", "pools", "scratch"};
    for (size_t i = 0; i < r->demand->item_count; i++)
        if (!check_item(r, &r->demand->items[i], tn_node_find(tn_document_root(r->document), lists[r->demand->items[i].tier])))
            return false;
    return true;
}

/* By tier, within one as they stand: then the order of the file's sections tells nothing. */
static void sort_items(tn_demand *d)
{
    for (size_t i = 1; i < d->item_count; i++)
        for (size_t k = i; k > 0 && d->items[k - 1].tier > d->items[k].tier; k--) {
            tn_demand_item moved = d->items[k];
            d->items[k] = d->items[k - 1];
            d->items[k - 1] = moved;
        }
}

/* What several keys say together. */
static bool check_together(reading *r)
{
    const tn_demand *d = r->demand;
    const tn_node *root = tn_document_root(r->document), *model = tn_node_find(root, "model"), *limits = tn_node_find(root, "limits"),
                  *features = tn_node_find(root, "features");
    uint64_t windowed = d->sliding_window.enabled ? d->sliding_window.layers : 0;
    if (windowed > d->model.layers)
        return fail(r, TN_DEMAND_VALUE, tn_node_find(features, "sliding_window"), "sliding_window.layers is %" PRIu64 " of %" PRIu64 " layers",
                    windowed, d->model.layers);
    if (d->model.kv_layers != TN_DEMAND_UNSET && d->model.kv_layers > d->model.layers - windowed)
        return fail(r, TN_DEMAND_VALUE, tn_node_find(model, "kv_layers"), "kv_layers is %" PRIu64 ", and %" PRIu64 " layers have no window",
                    d->model.kv_layers, d->model.layers - windowed);
    if (d->limits.full_sequences != TN_DEMAND_UNSET && d->limits.full_sequences > d->limits.max_batch)
        return fail(r, TN_DEMAND_VALUE, tn_node_find(limits, "full_sequences"), "full_sequences is %" PRIu64 ", more than max_batch, %" PRIu64,
                    d->limits.full_sequences, d->limits.max_batch);
    if (d->vision.enabled && d->vision.image_tokens && !d->model.hidden_size)
        return fail(r, TN_DEMAND_MISSING, tn_node_find(features, "vision"), "vision.image_tokens is given, and model.hidden_size is not");
    if (d->device.granularity == 0)
        return fail(r, TN_DEMAND_VALUE, tn_node_find(root, "device"), "device.granularity is 0");
    return check_items(r);
}

tn_demand_error tn_demand_read(const tn_document *document, tn_demand *out, char message[TN_DOCUMENT_MESSAGE])
{
    tn_demand demand;
    memset(&demand, 0, sizeof(demand));
    demand.budget = TN_DEMAND_UNSET;
    demand.device.granularity = 1;
    demand.model.kv_layers = TN_DEMAND_UNSET;
    demand.model.kv_tensors = 2;
    demand.limits.step_tokens = TN_DEMAND_UNSET;
    demand.limits.full_sequences = 1;
    demand.speculation.kv_heads = demand.speculation.head_dim = TN_DEMAND_UNSET;
    demand.sliding_window.kv_heads = demand.sliding_window.head_dim = TN_DEMAND_UNSET;
    demand.sliding_window.step_tokens = 1;
    reading r = {.document = document, .demand = &demand, .message = message};
    if (!read_section(&r, &tn_demand_sections[0], "", tn_document_root(document), (char *)&demand) || !check_sections(&r) ||
        !check_together(&r))
        return r.error;
    sort_items(&demand);
    *out = demand;
    return TN_DEMAND_OK;
}

tn_demand_error tn_demand_parse(const char *name, const void *bytes, size_t length, tn_demand *out, char message[TN_DOCUMENT_MESSAGE])
{
    tn_document *document;
    if (tn_document_parse(name, bytes, length, &document, message) != TN_DOCUMENT_OK)
        return TN_DEMAND_FILE;
    tn_demand_error error = tn_demand_read(document, out, message);
    tn_document_free(document);
    return error;
}

tn_demand_error tn_demand_load(const char *path, tn_demand *out, char message[TN_DOCUMENT_MESSAGE])
{
    tn_document *document;
    if (tn_document_load(path, &document, message) != TN_DOCUMENT_OK)
        return TN_DEMAND_FILE;
    tn_demand_error error = tn_demand_read(document, out, message);
    tn_document_free(document);
    return error;
}
