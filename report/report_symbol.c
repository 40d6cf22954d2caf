/* What is wanted, by module, and the answers. */
#define _GNU_SOURCE
#include "report/report_symbol.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_symbol_child.h"

#define NONE UINT32_MAX

typedef struct entry { /* one address of one module */
    uint64_t offset;
    uint32_t module;
    int done;
    tn_symbol symbol;
} entry;

typedef struct module {
    uint8_t build_id[32];
    uint8_t build_id_bytes;
    char *path;
} module;

typedef struct table { /* open addressing over indices */
    uint32_t *slots;
    size_t mask, used;
} table;

typedef struct chunk { /* strings and frames, given back together */
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} chunk;

struct tn_symbols {
    tn_symbol_options options;
    double seconds_left;
    module *modules; size_t module_count, module_capacity;
    entry **entries; size_t entry_count, entry_capacity, done_count; /* pointers: answers stay where they are */
    char **strings; size_t string_count, string_capacity;
    table by_address, by_module, by_text;
    chunk *chunks;
};

static const tn_symbol no_memory = {.state = TN_SYMBOL_FAILED, .line_state = TN_SYMBOL_FAILED};

tn_symbols *tn_symbols_new(const tn_symbol_options *options)
{
    static const tn_symbol_options usual = {.seconds = TN_SYMBOL_SECONDS, .debug_bytes = TN_SYMBOL_DEBUG_BYTES};
    tn_symbols *s = calloc(1, sizeof(*s));
    if (s) {
        s->options = options ? *options : usual;
        s->seconds_left = s->options.seconds;
    }
    return s;
}

void tn_symbols_free(tn_symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->module_count; i++)
        free(s->modules[i].path);
    while (s->chunks) {
        chunk *c = s->chunks;
        s->chunks = c->next;
        free(c);
    }
    free(s->modules);
    free(s->entries);
    free(s->strings);
    free(s->by_address.slots);
    free(s->by_module.slots);
    free(s->by_text.slots);
    free(s);
}

/* ---- memory and tables ---- */

static void *take(tn_symbols *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!s->chunks || s->chunks->size - s->chunks->used < bytes) {
        size_t size = bytes > 65536 ? bytes : 65536;
        chunk *c = malloc(sizeof(*c) + size);
        if (!c)
            return NULL;
        *c = (chunk){.next = s->chunks, .size = size};
        s->chunks = c;
    }
    void *at = s->chunks->bytes + s->chunks->used;
    s->chunks->used += bytes;
    return at;
}

/* Room for one more element of an array. */
static int grow(void *array, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return 1;
    size_t more = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*(void **)array, more * size);
    if (!grown)
        return 0;
    *(void **)array = grown;
    *capacity = more;
    return 1;
}

static uint64_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t text_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return mix(h);
}

static uint64_t module_hash(const module *m)
{
    uint64_t id = 0;
    memcpy(&id, m->build_id, sizeof(id));
    return mix(id) ^ text_hash(m->path);
}

static uint64_t hash_of(const tn_symbols *s, const table *t, uint32_t i)
{
    if (t == &s->by_address)
        return mix(s->entries[i]->offset ^ (uint64_t)s->entries[i]->module << 40);
    return t == &s->by_module ? module_hash(&s->modules[i]) : text_hash(s->strings[i]);
}

/* Room for one more; 0 without memory. */
static int grow_table(const tn_symbols *s, table *t)
{
    if (t->slots && t->used * 2 <= t->mask)
        return 1;
    size_t size = t->slots ? (t->mask + 1) * 2 : 1024;
    uint32_t *slots = malloc(size * sizeof(*slots));
    if (!slots)
        return 0;
    memset(slots, 0xff, size * sizeof(*slots));
    for (size_t i = 0; t->slots && i <= t->mask; i++) {
        if (t->slots[i] == NONE)
            continue;
        size_t at = hash_of(s, t, t->slots[i]) & (size - 1);
        while (slots[at] != NONE)
            at = (at + 1) & (size - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->mask = size - 1;
    return 1;
}

/* ---- what is wanted ---- */

static uint32_t module_of(tn_symbols *s, const tn_rec_module *record, const char *path)
{
    if (!grow_table(s, &s->by_module) || !grow(&s->modules, &s->module_capacity, s->module_count, sizeof(module)))
        return NONE;
    module m = {.build_id_bytes = record->build_id_bytes, .path = (char *)(uintptr_t)path};
    memcpy(m.build_id, record->build_id, sizeof(m.build_id));
    size_t at = module_hash(&m) & s->by_module.mask;
    for (; s->by_module.slots[at] != NONE; at = (at + 1) & s->by_module.mask) {
        const module *old = &s->modules[s->by_module.slots[at]];
        if (old->build_id_bytes == m.build_id_bytes && memcmp(old->build_id, m.build_id, sizeof(m.build_id)) == 0 &&
            strcmp(old->path, path) == 0)
            return s->by_module.slots[at];
    }
    m.path = strdup(path);
    if (!m.path)
        return NONE;
    s->modules[s->module_count] = m;
    s->by_module.used++;
    return s->by_module.slots[at] = (uint32_t)s->module_count++;
}

/* Why nothing needs to be read to know that there is no name. */
static tn_symbol_state known_state(const tn_rec_module *record, const char *path)
{
    if (!record)
        return TN_SYMBOL_NO_FILE;
    if (record->jit)
        return TN_SYMBOL_JIT;
    if (!path || !path[0])
        return TN_SYMBOL_NO_FILE;
    if (record->hashed || record->build_id_bytes == 0 || record->build_id_bytes > sizeof(record->build_id))
        return TN_SYMBOL_NO_ID;
    return TN_SYMBOL_FOUND;
}

static entry *entry_of(tn_symbols *s, const tn_rec_module *record, const char *path, uint64_t offset)
{
    uint32_t of = module_of(s, record, path);
    if (of == NONE || !grow_table(s, &s->by_address) || !grow(&s->entries, &s->entry_capacity, s->entry_count, sizeof(entry *)))
        return NULL;
    size_t at = mix(offset ^ (uint64_t)of << 40) & s->by_address.mask;
    for (; s->by_address.slots[at] != NONE; at = (at + 1) & s->by_address.mask) {
        entry *old = s->entries[s->by_address.slots[at]];
        if (old->offset == offset && old->module == of)
            return old;
    }
    entry *e = take(s, sizeof(*e));
    if (!e)
        return NULL;
    *e = (entry){.offset = offset, .module = of, .symbol = {.state = TN_SYMBOL_TIME, .line_state = TN_SYMBOL_TIME}};
    s->entries[s->entry_count] = e;
    s->by_address.used++;
    s->by_address.slots[at] = (uint32_t)s->entry_count++;
    return e;
}

void tn_symbols_want(tn_symbols *s, const tn_rec_module *record, const char *path, uint64_t offset)
{
    if (known_state(record, path) == TN_SYMBOL_FOUND)
        (void)entry_of(s, record, path, offset);
}

/* ---- answers ---- */

/* The text among the report's own, each kept once: files and functions come again and again. */
static const char *keep(tn_symbols *s, const char *text)
{
    if (!text || !grow_table(s, &s->by_text) || !grow(&s->strings, &s->string_capacity, s->string_count, sizeof(char *)))
        return NULL;
    size_t at = text_hash(text) & s->by_text.mask;
    for (; s->by_text.slots[at] != NONE; at = (at + 1) & s->by_text.mask)
        if (strcmp(s->strings[s->by_text.slots[at]], text) == 0)
            return s->strings[s->by_text.slots[at]];
    size_t bytes = strlen(text) + 1;
    char *copy = take(s, bytes);
    if (!copy)
        return NULL;
    memcpy(copy, text, bytes);
    s->strings[s->string_count] = copy;
    s->by_text.used++;
    s->by_text.slots[at] = (uint32_t)s->string_count++;
    return copy;
}

typedef struct look_up { /* of the addresses that have no answer */
    tn_symbols *symbols;
    tn_symbol_job *jobs;
    entry **sorted; /* by module and offset */
    size_t *first;  /* of each job, in sorted */
} look_up;

static void take_name(void *arg, size_t job, size_t i, const char *name, const char *function, const char *source, uint64_t delta)
{
    look_up *l = arg;
    tn_symbol *symbol = &l->sorted[l->first[job] + i]->symbol;
    if (symbol->name) /* a symbol table's name comes first */
        return;
    symbol->name = keep(l->symbols, name);
    symbol->function = function ? keep(l->symbols, function) : symbol->name;
    symbol->source = keep(l->symbols, source);
    symbol->delta = delta;
    if (symbol->name && symbol->function && symbol->source) {
        symbol->state = TN_SYMBOL_FOUND;
    } else { /* no memory */
        symbol->name = symbol->function = symbol->source = NULL;
        symbol->state = TN_SYMBOL_FAILED;
    }
}

static void take_frames(void *arg, size_t job, size_t i, const tn_symbol_frame *frames, uint32_t count)
{
    look_up *l = arg;
    tn_symbol *symbol = &l->sorted[l->first[job] + i]->symbol;
    tn_symbol_frame *copy = take(l->symbols, count * sizeof(*copy));
    if (!copy || symbol->frame_count)
        return;
    for (uint32_t k = 0; k < count; k++)
        copy[k] = (tn_symbol_frame){keep(l->symbols, frames[k].function), keep(l->symbols, frames[k].file), frames[k].line};
    symbol->frames = copy;
    symbol->frame_count = count;
    symbol->line_state = TN_SYMBOL_FOUND;
}

static void take_missing(void *arg, size_t job, int lines, tn_symbol_state state)
{
    look_up *l = arg;
    for (size_t i = 0; i < l->jobs[job].count; i++) {
        tn_symbol *symbol = &l->sorted[l->first[job] + i]->symbol;
        if (lines && symbol->line_state != TN_SYMBOL_FOUND)
            symbol->line_state = state;
        else if (!lines && symbol->state != TN_SYMBOL_FOUND)
            symbol->state = state;
    }
}

static int by_module_and_offset(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void look_up_all(tn_symbols *s)
{
    size_t count = s->entry_count - s->done_count, jobs = 0;
    look_up l = {.symbols = s};
    l.sorted = malloc((count + 1) * sizeof(*l.sorted));
    l.jobs = calloc(s->module_count + 1, sizeof(*l.jobs));
    l.first = calloc(s->module_count + 1, sizeof(*l.first));
    uint64_t *offsets = malloc((count + 1) * sizeof(*offsets));
    if (l.sorted && l.jobs && l.first && offsets && count) {
        memcpy(l.sorted, s->entries + s->done_count, count * sizeof(*l.sorted));
        qsort(l.sorted, count, sizeof(*l.sorted), by_module_and_offset);
        for (size_t i = 0; i < count; i++) {
            const module *m = &s->modules[l.sorted[i]->module];
            offsets[i] = l.sorted[i]->offset;
            if (i == 0 || l.sorted[i - 1]->module != l.sorted[i]->module) {
                l.first[jobs] = i;
                l.jobs[jobs++] = (tn_symbol_job){.path = m->path, .build_id = m->build_id, .build_id_bytes = m->build_id_bytes,
                                                 .offsets = offsets + i, .options = &s->options};
            }
            l.jobs[jobs - 1].count++;
        }
        const tn_symbol_answers answers = {.name = take_name, .frames = take_frames, .missing = take_missing, .arg = &l};
        tn_symbol_round(l.jobs, jobs, 0, &s->seconds_left, &answers);
        tn_symbol_round(l.jobs, jobs, 1, &s->seconds_left, &answers);
    }
    for (size_t i = s->done_count; i < s->entry_count; i++)
        s->entries[i]->done = 1;
    s->done_count = s->entry_count;
    free(l.sorted);
    free(l.jobs);
    free(l.first);
    free(offsets);
}

const tn_symbol *tn_symbols_get(tn_symbols *s, const tn_rec_module *record, const char *path, uint64_t offset)
{
    static const tn_symbol known[] = {
        [TN_SYMBOL_JIT] = {.state = TN_SYMBOL_JIT, .line_state = TN_SYMBOL_JIT},
        [TN_SYMBOL_NO_FILE] = {.state = TN_SYMBOL_NO_FILE, .line_state = TN_SYMBOL_NO_FILE},
        [TN_SYMBOL_NO_ID] = {.state = TN_SYMBOL_NO_ID, .line_state = TN_SYMBOL_NO_ID},
    };
    tn_symbol_state state = known_state(record, path);
    if (state != TN_SYMBOL_FOUND)
        return &known[state];
    entry *e = entry_of(s, record, path, offset);
    if (!e)
        return &no_memory;
    if (!e->done)
        look_up_all(s);
    return &e->symbol;
}

const char *tn_symbol_state_text(tn_symbol_state state)
{
    static const char *const texts[TN_SYMBOL_STATE_COUNT] = {
        [TN_SYMBOL_JIT] = "code made at run time, in no file",
        [TN_SYMBOL_NO_FILE] = "the module's file cannot be read here",
        [TN_SYMBOL_NOT_ELF] = "the file at its path is not an ELF file",
        [TN_SYMBOL_NO_ID] = "the module has no build-id to know its file by",
        [TN_SYMBOL_OTHER_FILE] = "the file at its path has another build-id",
        [TN_SYMBOL_STRIPPED] = "stripped: only exported functions have names, and there is no debug file",
        [TN_SYMBOL_NOT_IN_TABLE] = "no function of the file's symbol tables holds it",
        [TN_SYMBOL_TIME] = "the time for symbols was over",
        [TN_SYMBOL_FAILED] = "reading the file took too long, too much memory, or crashed the reader",
        [TN_SYMBOL_NO_READER] = "no process could be started to read the file",
        [TN_SYMBOL_NO_DEBUG] = "no debug information, and no separate file with it",
        [TN_SYMBOL_DEBUG_LARGE] = "the debug information is larger than allowed",
        [TN_SYMBOL_DEBUG_BAD] = "the debug information cannot be read",
        [TN_SYMBOL_NOT_COVERED] = "the debug information does not cover it",
    };
    return state > TN_SYMBOL_FOUND && state < TN_SYMBOL_STATE_COUNT ? texts[state] : NULL;
}
