#define _GNU_SOURCE
#include "tests/planner/demand_maker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "planner/size_text.h"

uint64_t maker_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dull;
}

static uint64_t from(uint64_t *s, uint64_t low, uint64_t high) { return low + maker_below(s, high - low + 1); }

/* Of every order of size alike, often whole MiB, sometimes 0. */
static uint64_t size(uint64_t *s)
{
    uint64_t bytes = maker_next(s) >> from(s, 30, 63);
    switch (maker_below(s, 4)) {
    case 0:
        return 0;
    case 1:
        return bytes;
    default:
        return bytes >> 20 << 20;
    }
}

static void add_item(uint64_t *s, tn_demand *d, tn_item_tier tier)
{
    static const char *const names[] = {"cache", "buffers", "pool \"x\"", "it's scratch", "a: b", "ünïcode", "- dash", "#hash"};
    tn_demand_item *item = &d->items[d->item_count++];
    memset(item, 0, sizeof(*item));
    snprintf(item->name, sizeof(item->name), "%s %zu", names[maker_below(s, 8)], d->item_count);
    item->tier = tier;
    item->optional = maker_below(s, 3) == 0;
    item->bytes = size(s);
    if (maker_below(s, 3) == 0)
        item->per_sequence = maker_below(s, 64 << 20);
    if (maker_below(s, 4) == 0)
        item->per_token = maker_below(s, 65536);
    if (maker_below(s, 5) == 0)
        item->per_context_token = maker_below(s, 65536);
    if (maker_below(s, 5) == 0)
        item->hidden_states = maker_below(s, 8);
    if (maker_below(s, 6) == 0)
        item->logits = maker_below(s, 3);
}

void maker_demand(uint64_t *s, tn_demand *d)
{
    memset(d, 0, sizeof(*d));
    d->budget = TN_DEMAND_UNSET;
    if (maker_below(s, 2))
        snprintf(d->name, sizeof(d->name), "model %" PRIu64, maker_below(s, 100));
    d->device.granularity = maker_below(s, 3) ? 1 : from(s, 1, 4) << from(s, 0, 21);
    d->model.layers = from(s, 1, 96);
    d->model.hidden_size = from(s, 64, 8192);
    d->model.vocab_size = from(s, 1000, 200000);
    d->model.kv_heads = from(s, 1, 32);
    d->model.head_dim = from(s, 1, 16) * from(s, 1, 32);
    d->model.kv_tensors = maker_below(s, 4) ? 2 : 1;
    d->model.weights = size(s);
    d->limits.max_batch = maker_below(s, 5) ? from(s, 1, 64) : 1;
    d->limits.max_seq_len = maker_below(s, 8) ? 1ull << maker_below(s, 18) : from(s, 1, 100000);
    d->limits.step_tokens = maker_below(s, 2) ? TN_DEMAND_UNSET : from(s, 1, 8192);
    d->limits.full_sequences = maker_below(s, 3) ? 1 : maker_below(s, 2) ? TN_DEMAND_UNSET : from(s, 1, d->limits.max_batch);
    d->kv.dtype = (tn_dtype)maker_below(s, TN_DTYPES);
    d->kv.block_size = maker_below(s, 6) ? 1ull << maker_below(s, 8) : from(s, 1, 200);
    d->kv.block_overhead = maker_below(s, 3) ? 0 : maker_below(s, 10000);
    for (int tier = 0; tier < TN_ITEM_TIERS; tier++)
        for (uint64_t n = maker_below(s, 4); n > 0; n--)
            add_item(s, d, (tn_item_tier)tier);
    for (int i = 0; i < TN_CHARGES; i++)
        d->charges.bytes[i] = maker_below(s, 2) ? size(s) >> 3 : 0;
    if (maker_below(s, 3) == 0) {
        d->graphs.execs = maker_below(s, 2000);
        d->graphs.bytes_per_exec = maker_below(s, 4 << 20);
    }
    if (maker_below(s, 3) == 0) {
        d->vision.enabled = maker_below(s, 4) != 0;
        d->vision.weights = size(s);
        d->vision.buffers = size(s) >> 6;
        d->vision.image_tokens = maker_below(s, 4096);
    }
    d->speculation.kv_heads = d->speculation.head_dim = TN_DEMAND_UNSET;
    if (maker_below(s, 3) == 0) {
        d->speculation.enabled = maker_below(s, 4) != 0;
        d->speculation.draft_tokens = from(s, 1, 16);
        d->speculation.weights = size(s) >> 3;
        d->speculation.buffers = size(s) >> 6;
        d->speculation.kv_layers = maker_below(s, 4);
        if (maker_below(s, 2))
            d->speculation.kv_heads = from(s, 1, 16);
        if (maker_below(s, 2))
            d->speculation.head_dim = from(s, 1, 256);
    }
    d->sliding_window.kv_heads = d->sliding_window.head_dim = TN_DEMAND_UNSET;
    d->sliding_window.step_tokens = 1;
    if (maker_below(s, 3) == 0) {
        d->sliding_window.enabled = maker_below(s, 4) != 0;
        d->sliding_window.window = 1ull << maker_below(s, 14);
        d->sliding_window.layers = from(s, 1, d->model.layers);
        d->sliding_window.step_tokens = maker_below(s, 2) ? 1 : from(s, 1, 4096);
        if (maker_below(s, 2))
            d->sliding_window.kv_heads = from(s, 1, 16);
        if (maker_below(s, 2))
            d->sliding_window.head_dim = from(s, 1, 256);
    }
    uint64_t free_layers = d->model.layers - (d->sliding_window.enabled ? d->sliding_window.layers : 0);
    d->model.kv_layers = maker_below(s, 2) ? TN_DEMAND_UNSET : from(s, 0, free_layers);
}

/* A file is a list of sections, each a list of pieces of text, written in shuffled order. */
enum { PIECES = 24 };
typedef struct pieces {
    char *text[PIECES];
    size_t count;
} pieces;

static void piece(pieces *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void piece(pieces *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vasprintf(&p->text[p->count++], format, args) < 0)
        abort();
    va_end(args);
}

/* Ends in a text that the caller frees. */
static char *shuffled(pieces *p, uint64_t *s)
{
    size_t length = 1;
    for (size_t i = 0; i < p->count; i++)
        length += strlen(p->text[i]);
    char *all = calloc(1, length);
    for (; p->count > 0; p->count--) {
        size_t i = maker_below(s, p->count);
        strcat(all, p->text[i]);
        free(p->text[i]);
        p->text[i] = p->text[p->count - 1];
    }
    return all;
}

static void put_size(pieces *p, uint64_t *s, const char *indent, const char *key, uint64_t bytes)
{
    char text[TN_SIZE_TEXT];
    switch (maker_below(s, 3)) {
    case 0:
        piece(p, "%s%s: %" PRIu64 "\n", indent, key, bytes);
        break;
    case 1:
        piece(p, "%s\"%s\": \"%s\"\n", indent, key, tn_size_write(bytes, text));
        break;
    default:
        piece(p, "%s%s: %s # as written\n", indent, key, tn_size_write(bytes, text));
        break;
    }
}

static void put(pieces *p, const char *indent, const char *key, uint64_t value) { piece(p, "%s%s: %" PRIu64 "\n", indent, key, value); }

static void section(pieces *file, uint64_t *s, const char *head, pieces *p)
{
    char *body = shuffled(p, s);
    if (*body)
        piece(file, "%s%s", head, body);
    free(body);
}

static void items(pieces *file, const tn_demand *d, uint64_t *s, tn_item_tier tier, const char *key)
{
    char *body = NULL;
    size_t length;
    FILE *list = open_memstream(&body, &length);
    for (size_t i = 0; i < d->item_count; i++) {
        const tn_demand_item *item = &d->items[i];
        if (item->tier != tier)
            continue;
        pieces p = {.count = 0};
        char quoted[160], *to = quoted;
        for (const char *c = item->name; *c; c++) {
            if (*c == '\'')
                *to++ = '\'';
            *to++ = *c;
        }
        *to = 0;
        piece(&p, "  name: '%s'\n", quoted);
        if (item->optional || maker_below(s, 2))
            piece(&p, "  optional: %s\n", item->optional ? "true" : "false");
        put_size(&p, s, "  ", "bytes", item->bytes);
        put_size(&p, s, "  ", "per_sequence", item->per_sequence);
        put_size(&p, s, "  ", "per_token", item->per_token);
        put_size(&p, s, "  ", "per_context_token", item->per_context_token);
        put(&p, "  ", "hidden_states", item->hidden_states);
        put(&p, "  ", "logits", item->logits);
        char *one = shuffled(&p, s);
        one[0] = '-';
        fputs(one, list);
        free(one);
    }
    fclose(list);
    if (*body)
        piece(file, "%s:\n%s", key, body);
    free(body);
}

static void features(pieces *file, const tn_demand *d, uint64_t *s)
{
    pieces all = {.count = 0}, p = {.count = 0};
    const char *in = "    ";
    if (d->vision.enabled || d->vision.weights || d->vision.buffers || d->vision.image_tokens) {
        put_size(&p, s, in, "weights", d->vision.weights);
        put_size(&p, s, in, "buffers", d->vision.buffers);
        put(&p, in, "image_tokens", d->vision.image_tokens);
        piece(&p, "%senabled: %s\n", in, d->vision.enabled ? "true" : "false");
        section(&all, s, "  vision:\n", &p);
    }
    if (d->speculation.draft_tokens) {
        put(&p, in, "draft_tokens", d->speculation.draft_tokens);
        put_size(&p, s, in, "weights", d->speculation.weights);
        put_size(&p, s, in, "buffers", d->speculation.buffers);
        put(&p, in, "kv_layers", d->speculation.kv_layers);
        if (d->speculation.kv_heads != TN_DEMAND_UNSET)
            put(&p, in, "kv_heads", d->speculation.kv_heads);
        if (d->speculation.head_dim != TN_DEMAND_UNSET)
            put(&p, in, "head_dim", d->speculation.head_dim);
        piece(&p, "%senabled: %s\n", in, d->speculation.enabled ? "true" : "false");
        section(&all, s, "  speculation:\n", &p);
    }
    if (d->sliding_window.window) {
        put(&p, in, "window", d->sliding_window.window);
        put(&p, in, "layers", d->sliding_window.layers);
        put(&p, in, "step_tokens", d->sliding_window.step_tokens);
        if (d->sliding_window.kv_heads != TN_DEMAND_UNSET)
            put(&p, in, "kv_heads", d->sliding_window.kv_heads);
        if (d->sliding_window.head_dim != TN_DEMAND_UNSET)
            put(&p, in, "head_dim", d->sliding_window.head_dim);
        piece(&p, "%senabled: %s\n", in, d->sliding_window.enabled ? "true" : "false");
        section(&all, s, "  sliding_window:\n", &p);
    }
    section(file, s, "features:\n", &all);
}

void maker_write(const tn_demand *d, uint64_t *s, FILE *out)
{
    pieces file = {.count = 0}, p = {.count = 0};
    const char *in = "  ";
    if (*d->name)
        piece(&file, "name: %s\n", d->name);
    if (d->budget != TN_DEMAND_UNSET)
        put_size(&file, s, "", "budget", d->budget);
    put_size(&p, s, in, "granularity", d->device.granularity);
    section(&file, s, "device:\n", &p);

    put(&p, in, "layers", d->model.layers);
    put(&p, in, "hidden_size", d->model.hidden_size);
    put(&p, in, "vocab_size", d->model.vocab_size);
    if (d->model.kv_layers != TN_DEMAND_UNSET)
        put(&p, in, "kv_layers", d->model.kv_layers);
    put(&p, in, "kv_heads", d->model.kv_heads);
    put(&p, in, "head_dim", d->model.head_dim);
    put(&p, in, "kv_tensors", d->model.kv_tensors);
    put_size(&p, s, in, "weights", d->model.weights);
    section(&file, s, "model:\n", &p);

    put(&p, in, "max_batch", d->limits.max_batch);
    put(&p, in, "max_seq_len", d->limits.max_seq_len);
    if (d->limits.step_tokens != TN_DEMAND_UNSET)
        put(&p, in, "step_tokens", d->limits.step_tokens);
    if (d->limits.full_sequences == TN_DEMAND_UNSET)
        piece(&p, "  full_sequences: all\n");
    else
        put(&p, in, "full_sequences", d->limits.full_sequences);
    section(&file, s, "limits:\n", &p);

    piece(&p, "  dtype: %s\n", tn_dtype_name(d->kv.dtype));
    put(&p, in, "block_size", d->kv.block_size);
    put_size(&p, s, in, "block_overhead", d->kv.block_overhead);
    section(&file, s, "kv:\n", &p);

    for (int i = 0; i < TN_CHARGES; i++)
        put_size(&p, s, in, tn_charge_key((tn_charge)i), d->charges.bytes[i]);
    section(&file, s, "charges:\n", &p);
    put(&p, in, "execs", d->graphs.execs);
    put_size(&p, s, in, "bytes_per_exec", d->graphs.bytes_per_exec);
    section(&file, s, "graphs:\n", &p);

    static const char *const lists[TN_ITEM_TIERS] = {"caches", "engine", "pools", "scratch"};
    for (int tier = 0; tier < TN_ITEM_TIERS; tier++)
        items(&file, d, s, (tn_item_tier)tier, lists[tier]);
    features(&file, d, s);
    char *text = shuffled(&file, s);
    fputs(text, out);
    free(text);
}
