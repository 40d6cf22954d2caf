#include "shim/python_chain.h"

#include "shim/python_lines.h"

#define VISITS 64 /* frames of the interpreter's own among them */

typedef struct walked {
    tn_py_frame frames[TN_PYTHON_FRAMES_MAX];
    uint32_t n, cut;
} walked;

static inline uint64_t load64(uint64_t at)
{
    uint64_t word;
    memcpy(&word, (const void *)at, sizeof word);
    return word;
}

static inline uint32_t load32(uint64_t at)
{
    uint32_t word;
    memcpy(&word, (const void *)at, sizeof word);
    return word;
}

/* ---- the chain */

/* 1: a frame that runs code; 0: one of the interpreter's own; -1: unreadable. */
static int read_frame(tn_py_call *c, uint64_t at, tn_py_frame *out)
{
    const tn_py_layout *l = &c->py->at;
    uint8_t owner = 0;
    uint64_t code;
    int32_t index;
    if (l->frame_owner && !tn_py_read(&c->reader, at + l->frame_owner, &owner, 1)) return -1;
    out->owner = owner;
    if (owner >= TN_PY_OWNER_FOREIGN) return 0;
    if (!tn_py_word(&c->reader, at + l->frame_code, &code)) return -1;
    out->code = code & ~(uint64_t)7; /* 3.14 keeps a tag in the lowest bits */
    if (l->instr_unit == 0) return tn_py_word(&c->reader, at + l->frame_instr, &out->instr) ? 1 : -1;
    if (!tn_py_read(&c->reader, at + l->frame_instr, &index, sizeof index)) return -1;
    out->instr = (uint64_t)(int64_t)index;
    return 1;
}

int tn_py_innermost(tn_py_call *c, uint64_t state)
{
    const tn_py_layout *l = &c->py->at;
    uint64_t interpreter, main_interpreter;
    if (!tn_py_word(&c->reader, state + l->state_interp, &interpreter) || !tn_py_word(&c->reader, c->py->runtime + l->runtime_main, &main_interpreter) ||
        !tn_py_word(&c->reader, state + l->state_frame, &c->frame))
        return 0;
    c->is_main = interpreter == main_interpreter;
    return !l->has_cframe || tn_py_word(&c->reader, c->frame + l->cframe_current, &c->frame);
}

/* The same as walk() for frames that are known to be there. */
static int walk_directly(const tn_py_layout *l, uint64_t at, walked *w)
{
    uint32_t n = 0;
    w->cut = 0;
    for (int visits = 0; at; at = load64(at + l->frame_previous)) {
        uint8_t owner = l->frame_owner ? *(const uint8_t *)(at + l->frame_owner) : 0;
        if (++visits > VISITS) return -1;
        if (owner >= TN_PY_OWNER_FOREIGN) continue;
        if (n == TN_PYTHON_FRAMES_MAX) {
            w->cut = 1;
            break;
        }
        uint64_t instr = load64(at + l->frame_instr);
        w->frames[n++] = (tn_py_frame){load64(at + l->frame_code) & ~(uint64_t)7, l->instr_unit ? (uint64_t)(int64_t)(int32_t)instr : instr, owner};
    }
    w->n = n;
    return 1;
}

static int walk(tn_py_call *c, walked *w)
{
    const tn_py_layout *l = &c->py->at;
    uint64_t at = c->frame;
    if (!c->reader.pages) return walk_directly(l, at, w);
    w->n = w->cut = 0;
    for (int visits = 0; at; visits++) {
        tn_py_frame f;
        int kind = visits < VISITS ? read_frame(c, at, &f) : -1;
        if (kind < 0) return -1;
        if (kind == 1 && w->n == TN_PYTHON_FRAMES_MAX) {
            w->cut = 1;
            return 1;
        }
        if (kind == 1) w->frames[w->n++] = f;
        if (!tn_py_word(&c->reader, at + l->frame_previous, &at)) return -1;
    }
    return 1;
}

static uint64_t sign(uint32_t native, const walked *w)
{
    uint64_t h = (uint64_t)native << 8 | w->cut << 4 | w->n;
    for (uint32_t i = 0; i < w->n; i++) {
        h = (h ^ w->frames[i].code) * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 32 ^ w->frames[i].instr ^ w->frames[i].owner) * 0xd6e8feb86659fd93u;
    }
    return h ^ h >> 29;
}

/* ---- code objects */

/* Where a string's characters are; 0: stored in a way that is not read (older than 3.12, made by old C interfaces). */
static uint64_t characters(const tn_py_layout *l, uint64_t string, uint32_t state, uint32_t *width)
{
    uint32_t kind = tn_py_string_kind(state);
    *width = kind & 7;
    if (!(kind & 8) || (*width != 1 && *width != 2 && *width != 4)) return 0;
    return string + (kind & 16 ? l->ascii_bytes : l->compact_bytes);
}

static int is_type(tn_py_call *c, uint64_t object, uint64_t type)
{
    uint64_t found;
    return tn_py_word(&c->reader, object + TN_PY_OB_TYPE, &found) && found == type;
}

static int read_text(tn_py_call *c, uint64_t string, tn_py_text *out)
{
    uint32_t width;
    if (!is_type(c, string, c->py->string_type) || !tn_py_word(&c->reader, string + TN_PY_STRING_LENGTH, &out->length) ||
        !tn_py_read(&c->reader, string + TN_PY_STRING_STATE, &out->state, sizeof out->state))
        return 0;
    uint64_t from = characters(&c->py->at, string, out->state, &width);
    if (!from || out->length >> 32) return 0;
    uint64_t bytes = out->length * width;
    out->bytes = (uint16_t)(bytes < TN_PY_TEXT_MAX ? bytes : TN_PY_TEXT_MAX);
    return tn_py_read(&c->reader, from, out->raw, out->bytes);
}

static int same_bytes(tn_py_call *c, uint64_t at, const uint8_t *expected, uint64_t bytes)
{
    uint8_t part[256];
    if (!c->reader.pages) return memcmp((const void *)at, expected, bytes) == 0;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t n = bytes - done < sizeof part ? bytes - done : sizeof part;
        if (!tn_py_read(&c->reader, at + done, part, n) || memcmp(part, expected + done, n) != 0) return 0;
        done += n;
    }
    return 1;
}

static int same_string(tn_py_call *c, uint64_t string, const tn_py_string *kept)
{
    uint64_t length;
    uint32_t state, width;
    if (!tn_py_word(&c->reader, string + TN_PY_STRING_LENGTH, &length) || length != kept->length ||
        !tn_py_read(&c->reader, string + TN_PY_STRING_STATE, &state, sizeof state) || tn_py_string_kind(state) != tn_py_string_kind(kept->state))
        return 0;
    uint64_t from = characters(&c->py->at, string, state, &width);
    return from && same_bytes(c, from, kept->raw, kept->bytes);
}

static int read_code(tn_py_call *c, uint64_t code, tn_py_code *out)
{
    const tn_py_layout *l = &c->py->at;
    tn_py_reader *r = &c->reader;
    out->version = 0;
    return tn_py_word(r, code + l->code_file, &out->file) && tn_py_word(r, code + l->code_name, &out->name) &&
           tn_py_word(r, code + l->code_table, &out->table) && tn_py_read(r, code + l->code_first_line, &out->first_line, 4) &&
           (!l->has_version || tn_py_read(r, code + l->code_version, &out->version, 4));
}

/* Whether the parts of the code object at this address are those of then, as objects. */
static inline int same_parts(tn_py_call *c, uint64_t code, const tn_py_code *was)
{
    const tn_py_layout *l = &c->py->at;
    tn_py_code is;
    if (!c->reader.pages)
        return load64(code + l->code_file) == was->file && load64(code + l->code_name) == was->name && load64(code + l->code_table) == was->table &&
               load32(code + l->code_first_line) == was->first_line && (!l->has_version || load32(code + l->code_version) == was->version);
    c->reader.count = 0;
    return read_code(c, code, &is) && is.file == was->file && is.name == was->name && is.table == was->table && is.first_line == was->first_line &&
           is.version == was->version;
}

/* The file's name that was compared last: most frames of a chain have that of the frame before. */
typedef struct compared {
    uint64_t string;
    const tn_py_string *kept;
} compared;

/* Whether the code object at this address, which is running, is the one that was read then. */
static inline int same_code(tn_py_call *c, uint64_t code, const tn_py_code *was, compared *file)
{
    uint64_t length;
    if (!same_parts(c, code, was)) return 0;
    if (!was->is_strict) return 1;
    const tn_py_place *p = was->place;
    if ((file->string != was->file || file->kept != p->function->file) && !same_string(c, was->file, p->function->file)) return 0;
    *file = (compared){was->file, p->function->file};
    return same_string(c, was->name, p->function->name) && tn_py_word(&c->reader, was->table + TN_PY_BYTES_LENGTH, &length) &&
           length == p->table_length && same_bytes(c, was->table + TN_PY_BYTES_TEXT, p->table, p->used);
}

/* Instructions up to a certain one set a frame up; a traceback does not show it before. */
static int is_complete(tn_py_call *c, const tn_py_frame *f, int *complete)
{
    const tn_py_layout *l = &c->py->at;
    int32_t first = 0;
    *complete = 1;
    if (!l->code_start || f->owner == TN_PY_OWNER_GENERATOR) return 1;
    if (!tn_py_read(&c->reader, f->code + l->code_traceable, &first, sizeof first)) return 0;
    *complete = (int64_t)(f->instr - (f->code + l->code_start)) >= (int64_t)first * 2;
    return 1;
}

/* 1: *out is filled; 0: no room to keep it; -1: this is no code object. */
static int learn(tn_py_call *c, tn_journal *j, const tn_py_frame *f, tn_py_code *out)
{
    const tn_py_layout *l = &c->py->at;
    tn_py_cache *cache = c->cache;
    uint64_t length;
    int complete;
    c->reader.count = 0;
    if (!is_type(c, f->code, c->py->code_type) || !read_code(c, f->code, out) || !is_complete(c, f, &complete)) return -1;
    out->counts = (uint8_t)complete;
    out->is_strict = out->version == 0 || !c->is_main;
    if (!read_text(c, out->file, &cache->file) || !read_text(c, out->name, &cache->name) || !is_type(c, out->table, c->py->bytes_type) ||
        !tn_py_word(&c->reader, out->table + TN_PY_BYTES_LENGTH, &length))
        return -1;
    uint64_t bytes = length < TN_PY_TABLE_MAX ? length : TN_PY_TABLE_MAX;
    if (!tn_py_read(&c->reader, out->table + TN_PY_BYTES_TEXT, cache->table, bytes)) return -1;
    int64_t at = l->code_start ? (int64_t)(f->instr - (f->code + l->code_start)) : (int64_t)f->instr * l->instr_unit;
    size_t used;
    uint32_t line = tn_py_line(l->lines, cache->table, bytes, out->first_line, at, &used);
    if (used >= bytes && bytes < length) line = 0; /* it is told beyond what was looked at */
    const tn_py_function *function = tn_py_function_of(j, &cache->file, &cache->name, out->first_line);
    out->place = function ? tn_py_place_of(function, line, length, cache->table, (uint32_t)used) : NULL;
    return out->place != NULL;
}

/* ---- both together */

static int is_seen(tn_py_call *c, const tn_py_seen *s, uint32_t native, uint64_t signature, const walked *w)
{
    if (s->signature != signature || s->native != native || s->n != w->n || s->cut != w->cut) return 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (s->frames[i].code != w->frames[i].code || s->frames[i].instr != w->frames[i].instr || s->frames[i].owner != w->frames[i].owner) return 0;
    compared file = {0, NULL};
    for (uint32_t i = 0; i < w->n; i++)
        if (!same_code(c, w->frames[i].code, &s->codes[i], &file)) return 0;
    return 1;
}

int tn_py_chain_site(tn_py_call *c, tn_journal *j, uint32_t native, uint32_t *site)
{
    walked w;
    const tn_py_place *places[TN_PYTHON_FRAMES_MAX];
    uint32_t n = 0;
    if (walk(c, &w) < 0) return -1;
    if (w.n == 0) return 0;
    uint64_t signature = sign(native, &w);
    uint32_t set = (uint32_t)signature & (TN_PY_SETS - 1);
    tn_py_seen *s = c->cache->seen[set];
    for (uint32_t way = 0; way < TN_PY_WAYS; way++)
        if (s[way].signature == signature && is_seen(c, &s[way], native, signature, &w)) {
            *site = s[way].site;
            return 1;
        }
    s += c->cache->next[set]++ % TN_PY_WAYS;
    s->native = 0; /* no native site has this number: what is half written is never found */
    for (uint32_t i = 0; i < w.n; i++) {
        int known = learn(c, j, &w.frames[i], &s->codes[i]);
        if (known <= 0) return known;
        if (s->codes[i].counts) places[n++] = s->codes[i].place;
    }
    if (n == 0) return 0;
    *site = tn_py_site_of(j, native, places, n, (int)w.cut);
    s->signature = signature;
    s->site = *site;
    s->n = w.n;
    s->cut = w.cut;
    memcpy(s->frames, w.frames, w.n * sizeof w.frames[0]);
    s->native = native;
    return 1;
}
