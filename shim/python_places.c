#include "shim/callsite_keys.h"
#include "shim/python_places.h"

#include <stdatomic.h>
#include <string.h>

#include "ledger/tn_lock.h"
#include "shim/callsite_memory.h"
#include "shim/callsite_tables.h"

/* Sites take their numbers under the lock of native sites, records are written under the journal's. */
#define RANK_PYTHON 180
#define BUCKETS (1u << 14)
/* A program that makes functions by exec all day with new names goes on without a Python part after that many. */
#define FUNCTIONS_MAX (1u << 16)
#define PLACES_MAX (1u << 18)
#define SITES_MAX (1u << 18)

typedef struct site {
    struct site *next;
    uint64_t hash;
    uint32_t id, native, n, cut;
    struct tn_python_frame frames[];
} site;

static tn_lock lock = TN_LOCK_INIT(RANK_PYTHON);
static tn_pool pool;
static tn_py_function **functions;
static tn_py_place **places;
static site **sites;
static uint32_t function_count, place_count, site_count;
static _Atomic int full;

int tn_py_full(void) { return atomic_load_explicit(&full, memory_order_relaxed); }

/* The Python part of a key is made of these two; it stands in journals and plans and must never change. */
static uint64_t mix(uint64_t key, uint64_t x)
{
    key = (key ^ x) * 0x9e3779b97f4a7c15u;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    return key ^ (key >> 29);
}

static uint64_t hash_bytes(uint64_t h, const void *p, size_t bytes)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return mix(h, bytes);
}

/* Two bits of `interned` come first, or 16 in later versions; whichever it is, the width of a character (1, 2 or 4) and two more bits follow. */
uint32_t tn_py_string_kind(uint32_t state)
{
    uint32_t narrow = (state >> 2) & 31, wide = (state >> 16) & 31;
    return (narrow & 8) && (narrow & 7) ? narrow : wide;
}

static void *table(size_t bytes) { return tn_pages(bytes); }

static int have_tables(void)
{
    if (!functions) functions = table(BUCKETS * sizeof *functions);
    if (!places) places = table(BUCKETS * sizeof *places);
    if (!sites) sites = table(BUCKETS * sizeof *sites);
    return functions && places && sites;
}

static int has_room(uint32_t count, uint32_t max)
{
    if (count < max && have_tables()) return 1;
    atomic_store_explicit(&full, 1, memory_order_relaxed);
    return 0;
}

/* ---- text as UTF-8, for the record and the key */

static size_t put_character(uint8_t *out, uint32_t c)
{
    if (c >= 0xdc80 && c <= 0xdcff) { /* how the interpreter keeps a byte of a file name that is no UTF-8 */
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c == 0 || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff) c = '?';
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 63));
    out[0] = (uint8_t)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

/* At most 2 * TN_PY_TEXT_MAX bytes: one-byte characters take two at most, wider ones no more than they took before plus half. */
static size_t as_utf8(const tn_py_text *t, uint8_t *out)
{
    uint32_t width = tn_py_string_kind(t->state) & 7;
    size_t n = 0;
    for (size_t i = 0; i + width <= t->bytes && n + 4 <= 2 * TN_PY_TEXT_MAX; i += width) {
        uint32_t c = t->raw[i];
        if (width == 2) c |= (uint32_t)t->raw[i + 1] << 8;
        else if (width == 4) memcpy(&c, t->raw + i, 4);
        n += put_character(out + n, c);
    }
    if (t->bytes < t->length * width && n + 3 <= 2 * TN_PY_TEXT_MAX) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    return n;
}

/* The last two parts of a path: enough to tell __init__.py of one package from that of another, and the same in every place of installation. */
static size_t tail(const uint8_t *path, size_t n)
{
    int slashes = 0;
    for (size_t i = n; i > 0; i--)
        if (path[i - 1] == '/' && ++slashes == 2) return i;
    return 0;
}

/* ---- functions */

static int is_text(const tn_py_string *s, const tn_py_text *t)
{
    return s->length == t->length && s->bytes == t->bytes && tn_py_string_kind(s->state) == tn_py_string_kind(t->state) &&
           memcmp(s->raw, t->raw, t->bytes) == 0;
}

static const tn_py_string *keep_text(const tn_py_text *t)
{
    tn_py_string *s = tn_pool_take(&pool, sizeof *s + t->bytes);
    if (!s) return NULL;
    s->length = t->length;
    s->state = t->state;
    s->bytes = t->bytes;
    memcpy(s->raw, t->raw, t->bytes);
    return s;
}

/* Functions of one file mostly come one after the other, and share its name. */
static const tn_py_string *keep_file(const tn_py_text *file)
{
    static const tn_py_string *last;
    if (!last || !is_text(last, file)) last = keep_text(file);
    return last;
}

static tn_py_function *new_function(tn_journal *j, const tn_py_text *file, const tn_py_text *name, uint32_t first_line)
{
    uint8_t text[4 * TN_PY_TEXT_MAX + 2];
    if (!has_room(function_count, FUNCTIONS_MAX)) return NULL;
    tn_py_function *f = tn_pool_take(&pool, sizeof *f);
    if (!f || !(f->file = keep_file(file)) || !(f->name = keep_text(name))) return NULL;
    size_t n = as_utf8(file, text), from = tail(text, n);
    text[n] = 0;
    size_t m = as_utf8(name, text + n + 1);
    text[n + 1 + m] = 0;
    f->key = hash_bytes(hash_bytes(mix(0x707974686f6e0001u, first_line), text + from, n - from), text + n + 1, m);
    f->id = ++function_count;
    f->first_line = first_line;
    tn_rec_python rec = {f->id, first_line};
    (void)tn_journal_record(j, TN_REC_PYTHON, &rec, sizeof rec, text, n + m + 2);
    return f;
}

const tn_py_function *tn_py_function_of(tn_journal *j, const tn_py_text *file, const tn_py_text *name, uint32_t first_line)
{
    uint64_t hash = hash_bytes(hash_bytes(first_line, file->raw, file->bytes), name->raw, name->bytes);
    tn_py_function *f = NULL;
    tn_lock_take(&lock);
    if (have_tables()) {
        tn_py_function **bucket = &functions[hash & (BUCKETS - 1)];
        for (f = *bucket; f; f = f->next)
            if (f->hash == hash && f->first_line == first_line && is_text(f->file, file) && is_text(f->name, name)) break;
        if (!f && (f = new_function(j, file, name, first_line))) {
            f->hash = hash;
            f->next = *bucket;
            *bucket = f;
        }
    }
    tn_lock_release(&lock);
    return f;
}

/* ---- places */

const tn_py_place *tn_py_place_of(const tn_py_function *f, uint32_t line, uint64_t table_length, const uint8_t *bytes, uint32_t used)
{
    uint64_t hash = hash_bytes(mix(mix(f->id, line), table_length), bytes, used);
    tn_py_place *p = NULL;
    tn_lock_take(&lock);
    if (have_tables()) {
        tn_py_place **bucket = &places[hash & (BUCKETS - 1)];
        for (p = *bucket; p; p = p->next)
            if (p->hash == hash && p->function == f && p->line == line && p->table_length == table_length && p->used == used &&
                memcmp(p->table, bytes, used) == 0)
                break;
        if (!p && has_room(place_count, PLACES_MAX) && (p = tn_pool_take(&pool, sizeof *p + used))) {
            place_count++;
            p->hash = hash;
            p->function = f;
            p->line = line;
            p->table_length = table_length;
            p->used = used;
            memcpy(p->table, bytes, used);
            p->next = *bucket;
            *bucket = p;
        }
    }
    tn_lock_release(&lock);
    return p;
}

/* ---- sites */

static int is_site(const site *s, uint64_t hash, uint32_t native, const tn_py_place *const *chain, uint32_t n, uint32_t cut)
{
    if (s->hash != hash || s->native != native || s->n != n || s->cut != cut) return 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->frames[i].function != chain[i]->function->id || s->frames[i].line != chain[i]->line) return 0;
    return 1;
}

static site *new_site(tn_journal *j, uint32_t native, const tn_py_place *const *chain, uint32_t n, uint32_t cut)
{
    if (!has_room(site_count, SITES_MAX)) return NULL;
    site *s = tn_pool_take(&pool, sizeof *s + n * sizeof s->frames[0]);
    if (!s) return NULL;
    tn_rec_python_site rec = {.native = native, .frame_count = n, .flags = cut ? TN_PF_CUT : 0, .key = 0x707974686f6e0002u};
    for (uint32_t i = 0; i < n; i++) {
        s->frames[i] = (struct tn_python_frame){chain[i]->function->id, chain[i]->line};
        rec.key = mix(mix(rec.key, chain[i]->function->key), chain[i]->line);
    }
    s->id = rec.id = tn_site_new_id();
    s->native = native;
    s->n = n;
    s->cut = cut;
    site_count++;
    if (tn_site_keys && native < TN_SITE_KEYS_MAX) tn_site_key_note(s->id, tn_site_keys[native].key, rec.key);
    (void)tn_journal_record(j, TN_REC_PYTHON_SITE, &rec, sizeof rec, s->frames, n * sizeof s->frames[0]);
    return s;
}

uint32_t tn_py_site_of(tn_journal *j, uint32_t native, const tn_py_place *const *chain, uint32_t n, int cut)
{
    uint64_t hash = native;
    site *s = NULL;
    for (uint32_t i = 0; i < n; i++) hash = mix(mix(hash, chain[i]->function->id), chain[i]->line);
    tn_lock_take(&lock);
    if (have_tables()) {
        site **bucket = &sites[hash & (BUCKETS - 1)];
        for (s = *bucket; s; s = s->next)
            if (is_site(s, hash, native, chain, n, cut != 0)) break;
        if (!s && (s = new_site(j, native, chain, n, cut != 0))) {
            s->hash = hash;
            s->next = *bucket;
            *bucket = s;
        }
    }
    tn_lock_release(&lock);
    return s ? s->id : native;
}
