/* The names to look for, and a hash table from each spelling of a name to its row. */
#define _GNU_SOURCE
#include "census/census_apis.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/journal_format.h"

static const struct {
    const char *name;
    int klass;
} table[] = {
#define TN_DRIVER(klass, variant, name, ...) {#name, TN_CLASS_##klass},
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) {#name, TN_CLASS_##klass},
#include "shim/api_all.def"
};

typedef struct row {
    char *name;
    tn_api_use use;
    int wrapper;
} row;

typedef struct spelling {
    char *name;
    size_t length, api;
} spelling;

struct tn_apis {
    row *rows;
    size_t count, room;
    spelling *slots; /* open addressing, at most half full */
    size_t slot_count, used;
};

static size_t hash(const char *name, size_t length)
{
    size_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)name[i]) * 1099511628211u;
    return h;
}

static spelling *slot_of(const tn_apis *apis, const char *name, size_t length)
{
    size_t i = hash(name, length) & (apis->slot_count - 1);
    while (apis->slots[i].name && (apis->slots[i].length != length || memcmp(apis->slots[i].name, name, length) != 0))
        i = (i + 1) & (apis->slot_count - 1);
    return &apis->slots[i];
}

static int grow_slots(tn_apis *apis)
{
    tn_apis next = {.slot_count = apis->slot_count ? apis->slot_count * 2 : 512};
    next.slots = calloc(next.slot_count, sizeof(*next.slots));
    if (!next.slots)
        return -1;
    for (size_t i = 0; i < apis->slot_count; i++)
        if (apis->slots[i].name)
            *slot_of(&next, apis->slots[i].name, apis->slots[i].length) = apis->slots[i];
    free(apis->slots);
    apis->slots = next.slots;
    apis->slot_count = next.slot_count;
    return 0;
}

static int add_spelling(tn_apis *apis, const char *name, size_t length, size_t api)
{
    if (2 * (apis->used + 1) > apis->slot_count && grow_slots(apis) != 0)
        return -1;
    spelling *slot = slot_of(apis, name, length);
    if (slot->name)
        return 0;
    char *copy = strndup(name, length);
    if (!copy)
        return -1;
    *slot = (spelling){copy, length, api};
    apis->used++;
    return 0;
}

/* A new row with its first spelling; TN_API_MISSING when no memory is left. */
static size_t add_row(tn_apis *apis, const char *name, size_t length, tn_api_use use, int wrapper)
{
    if (apis->count == apis->room) {
        size_t room = apis->room ? apis->room * 2 : 128;
        row *rows = realloc(apis->rows, room * sizeof(*rows));
        if (!rows)
            return TN_API_MISSING;
        apis->rows = rows;
        apis->room = room;
    }
    char *copy = strndup(name, length);
    if (!copy || add_spelling(apis, name, length, apis->count) != 0) {
        free(copy);
        return TN_API_MISSING;
    }
    apis->rows[apis->count] = (row){copy, use, wrapper};
    return apis->count++;
}

/* Length of the name as a source writes it: without what cuda.h's macros append. */
static size_t base_length(const char *name)
{
    static const char *const tails[] = {"_ptsz", "_ptds", "_v2", "_v3", "_v4"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        size_t n = strlen(tails[i]);
        if (length > n && memcmp(name + length - n, tails[i], n) == 0) {
            length -= n;
            i = (size_t)-1; /* from the first again: _v2_ptsz */
        }
    }
    return length;
}

tn_apis *tn_apis_new(void)
{
    tn_apis *apis = calloc(1, sizeof(*apis));
    if (!apis || grow_slots(apis) != 0)
        goto failed;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].klass != TN_CLASS_ALLOC && table[i].klass != TN_CLASS_FREE)
            continue;
        size_t length = base_length(table[i].name);
        size_t api = tn_apis_find(apis, table[i].name, length);
        if (api == TN_API_MISSING)
            api = add_row(apis, table[i].name, length, table[i].klass == TN_CLASS_ALLOC ? TN_USE_ALLOC : TN_USE_FREE, 0);
        if (api == TN_API_MISSING || add_spelling(apis, table[i].name, strlen(table[i].name), api) != 0)
            goto failed;
    }
    return apis;
failed:
    tn_apis_free(apis);
    return NULL;
}

void tn_apis_free(tn_apis *apis)
{
    if (!apis)
        return;
    for (size_t i = 0; i < apis->count; i++)
        free(apis->rows[i].name);
    for (size_t i = 0; i < apis->slot_count; i++)
        free(apis->slots[i].name);
    free(apis->rows);
    free(apis->slots);
    free(apis);
}

int tn_apis_add(tn_apis *apis, const char *name, tn_api_use use)
{
    size_t length = strlen(name);
    if (!length || (name[0] >= '0' && name[0] <= '9'))
        return 1;
    for (const char *p = name; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c >= 0x80))
            return 1;
    }
    if (tn_apis_find(apis, name, length) != TN_API_MISSING)
        return 0;
    return add_row(apis, name, length, use, 1) == TN_API_MISSING ? -1 : 0;
}

size_t tn_apis_find(const tn_apis *apis, const char *name, size_t length)
{
    const spelling *slot = slot_of(apis, name, length);
    return slot->name ? slot->api : TN_API_MISSING;
}

size_t tn_apis_count(const tn_apis *apis) { return apis->count; }
const char *tn_apis_name(const tn_apis *apis, size_t api) { return apis->rows[api].name; }
tn_api_use tn_apis_use(const tn_apis *apis, size_t api) { return apis->rows[api].use; }
int tn_apis_is_wrapper(const tn_apis *apis, size_t api) { return apis->rows[api].wrapper; }
