/* One walk an instance. A slot is busy from its block's birth; a plain or pinned block's until it is clean; a stream-ordered one's until its
 * free for the stream that freed it, until a join for another, and until clean at the latest. */
#include "planner/slots.h"

#include <stdlib.h>
#include <string.h>

#include "planner/trace_index.h"

typedef struct class { uint32_t unit, key; uint64_t bytes; uint32_t *slots; size_t count; size_t hint; } class;

typedef struct slot_state {
    uint32_t life;       /* that has it, or had it last */
    uint32_t freed;      /* position; TN_LIFE_OPEN: it is alive */
    uint32_t stream;     /* that freed it */
    uint32_t busy_at;    /* index in `busy`; TN_TRACE_NONE: clean */
    uint64_t begin;
} slot_state;

typedef struct make {
    const tn_section *s;
    const uint8_t *chosen;
    tn_slots *out;
    uint32_t per_octave, headroom;
    int clean, streams;  /* streams: more than one frees or takes */
    class *classes; size_t class_count;
    tn_index class_of;   /* unit and key */
    slot_state *states; size_t state_count;
    uint32_t *class_of_slot; size_t class_of_slot_count;
    uint32_t *busy; size_t busy_count, busy_room;
    uint32_t *slot_of_life;
    tn_index joins;      /* to and from -> upto */
    tn_index known_pairs;
    uint64_t base;       /* of the instance's clock */
    const tn_life *lives; /* the instance's process's */
    uint64_t live, exact;
} make;

static uint32_t class_key(const make *m, uint64_t bytes)
{
    uint64_t units = (bytes + 511) / 512;
    if (m->per_octave == TN_CLASSES_EACH)
        return units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
    if (units == 1 || m->per_octave == TN_CLASSES_ONE)
        return 0;
    /* From one power of two, exclusive, to the next, inclusive. A class never spans the size at which the alignment changes, since that
     * is a power of two. */
    uint64_t x = units - 1;
    unsigned octave = 63u - (unsigned)__builtin_clzll(x);
    uint64_t part = ((x - ((uint64_t)1 << octave)) * m->per_octave) >> octave;
    return 1 + octave * 64 + (uint32_t)part;
}

/* What comes and goes with requests: another mix of them may ask for other sizes. */
static int needs_headroom(const tn_unit *u)
{
    return u->varies || u->family == TN_FAMILY_ASYNC || u->phases & 1u << TN_PHASE_SERVING;
}

/* Seen a few times only, it says little of what it may meet. */
#define SEEN_ENOUGH 8u

static int stands_alone(const make *m, uint32_t unit)
{
    const tn_unit *u = &m->s->units[unit];
    return u->room.apart || (m->headroom && m->headroom != TN_HEADROOM_ONE_SIZE && needs_headroom(u) && u->blocks < SEEN_ENOUGH);
}

static class *class_for(make *m, uint32_t unit, uint64_t bytes)
{
    const tn_unit *u = &m->s->units[unit];
    int with_requests = m->headroom && needs_headroom(u), one = with_requests || u->room.given; /* of one size, so that a slot is for any request */
    uint32_t key = one ? 0 : class_key(m, bytes);
    if (one)
        bytes = u->largest;
    if (with_requests && m->headroom != TN_HEADROOM_ONE_SIZE)
        bytes += u->largest / 100 * m->headroom + u->largest % 100 * m->headroom / 100;
    if (bytes < u->room.size)
        bytes = u->room.size;
    uint64_t both = (uint64_t)unit << 32 | key;
    uint32_t i = tn_index_find(&m->class_of, both);
    if (i == TN_INDEX_NONE) {
        class *c = TN_TRACE_PUSH(m->classes, m->class_count);
        if (!c)
            return NULL;
        *c = (class){.unit = unit, .key = key};
        i = (uint32_t)m->class_count - 1;
        if (tn_index_set(&m->class_of, both, i) != TN_OK)
            return NULL;
    }
    class *c = &m->classes[i];
    bytes = tn_round_up(bytes, 512);
    if (bytes > c->bytes)
        c->bytes = bytes;
    return c;
}

/* ---- who may share with whom ---- */

static int joined(const make *m, uint32_t to, uint32_t from, uint32_t freed)
{
    uint32_t upto = tn_index_find(&m->joins, (uint64_t)to << 32 | from);
    return upto != TN_INDEX_NONE && upto > freed;
}

/* 1: a block on `stream` may not have the slot's memory. */
static int is_busy(const make *m, uint32_t slot, uint32_t stream)
{
    const slot_state *st = &m->states[slot];
    if (st->busy_at == TN_TRACE_NONE)
        return 0;
    return st->freed == TN_LIFE_OPEN || !st->stream || (st->stream != stream && !joined(m, stream, st->stream, st->freed));
}

static tn_error add_pair(make *m, uint32_t a, uint32_t b)
{
    uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    if (tn_index_find(&m->known_pairs, key) != TN_INDEX_NONE)
        return TN_OK;
    tn_slot_pair *p = TN_TRACE_PUSH(m->out->pairs, m->out->pair_count);
    if (!p)
        return TN_E_NOMEM;
    *p = (tn_slot_pair){.a = a, .b = b};
    return tn_index_set(&m->known_pairs, key, 1);
}

static void note_peak(tn_slots *out, uint64_t live, uint64_t exact)
{
    if (live > out->live_peak)
        out->live_peak = live;
    if (exact > out->live_exact)
        out->live_exact = exact;
}

/* What a stream may not have is what is alive to it. */
static tn_error note_pairs(make *m, uint32_t slot, uint32_t stream)
{
    tn_error error = TN_OK;
    uint64_t live = 0, exact = 0;
    for (size_t i = 0; i < m->busy_count && error == TN_OK; i++) {
        if (m->busy[i] != slot && !is_busy(m, m->busy[i], stream))
            continue;
        const tn_life *l = &m->lives[m->states[m->busy[i]].life];
        live += tn_unit_bytes(&m->s->units[m->s->unit_of[l->site]], l->bytes);
        exact += tn_round_up(l->bytes, 512);
        if (m->busy[i] != slot)
            error = add_pair(m, slot, m->busy[i]);
    }
    note_peak(m->out, live, exact);
    return error;
}

/* ---- births and ends ---- */

static tn_error begin_use(make *m, uint32_t slot, const tn_life *l, uint32_t life)
{
    slot_state *st = &m->states[slot];
    if (st->busy_at == TN_TRACE_NONE) {
        if (m->busy_count == m->busy_room) {
            size_t room = m->busy_room ? m->busy_room * 2 : 64;
            uint32_t *grown = realloc(m->busy, room * sizeof *grown);
            if (!grown)
                return TN_E_NOMEM;
            m->busy = grown;
            m->busy_room = room;
        }
        st->busy_at = (uint32_t)m->busy_count;
        m->busy[m->busy_count++] = slot;
    } else { /* taken over on the same stream, or behind a join: its last use ends here */
        tn_use *u = TN_TRACE_PUSH(m->out->uses, m->out->use_count);
        if (!u)
            return TN_E_NOMEM;
        *u = (tn_use){.slot = slot, .begin = st->begin, .end = m->base + l->begin};
    }
    st->life = life;
    st->freed = TN_LIFE_OPEN;
    st->stream = 0;
    st->begin = m->base + l->begin;
    m->slot_of_life[life] = slot;
    return m->streams ? note_pairs(m, slot, l->stream) : TN_OK;
}

/* One more of its class: the last of out->at. */
static tn_error add_slot(make *m, class *c)
{
    if (m->out->count == TN_LAYOUT_SLOTS_MAX)
        return TN_E_LIMIT;
    uint32_t slot = (uint32_t)m->out->count;
    tn_slot *made = TN_TRACE_PUSH(m->out->at, m->out->count);
    slot_state *st = made ? TN_TRACE_PUSH(m->states, m->state_count) : NULL;
    uint32_t *of = st ? TN_TRACE_PUSH(m->class_of_slot, m->class_of_slot_count) : NULL;
    uint32_t *in = of ? TN_TRACE_PUSH(c->slots, c->count) : NULL;
    if (!in)
        return TN_E_NOMEM;
    *made = (tn_slot){.unit = c->unit, .ordinal = (uint32_t)(c->count - 1)};
    *st = (slot_state){.busy_at = TN_TRACE_NONE};
    *of = (uint32_t)(c - m->classes);
    *in = slot;
    return TN_OK;
}

static tn_error take(make *m, uint32_t life, const tn_life *l)
{
    class *c = class_for(m, m->s->unit_of[l->site], l->bytes);
    if (!c)
        return TN_E_NOMEM;
    size_t i = c->hint;
    while (i < c->count && is_busy(m, c->slots[i], l->stream))
        i++;
    if (!m->streams)
        c->hint = i + 1;
    tn_error error = i < c->count ? TN_OK : add_slot(m, c);
    return error == TN_OK ? begin_use(m, c->slots[i], l, life) : error;
}

static tn_error end_use(make *m, uint32_t slot, uint64_t at)
{
    slot_state *st = &m->states[slot];
    tn_use *u = TN_TRACE_PUSH(m->out->uses, m->out->use_count);
    if (!u)
        return TN_E_NOMEM;
    *u = (tn_use){.slot = slot, .begin = st->begin, .end = at};
    uint32_t last = m->busy[--m->busy_count];
    m->busy[st->busy_at] = last;
    m->states[last].busy_at = st->busy_at;
    st->busy_at = TN_TRACE_NONE;
    class *c = &m->classes[m->class_of_slot[slot]];
    if (m->out->at[slot].ordinal < c->hint)
        c->hint = m->out->at[slot].ordinal;
    return TN_OK;
}

/* ---- an instance ---- */

static tn_error walk_instance(make *m, const tn_instance *in)
{
    const tn_trace_process *p = &m->s->trace->processes[in->process];
    const tn_life *lives = m->lives = p->lives;
    size_t birth = 0, freed = 0, clean = 0, join = 0;
    const uint32_t *ends = m->clean ? in->cleans : in->frees;
    size_t end_count = m->clean ? in->clean_count : in->free_count;
    tn_error error = TN_OK;
    tn_index_free(&m->joins);
    m->live = m->exact = 0;
    while (error == TN_OK && birth < in->birth_count) {
        const tn_life *l = &lives[in->births[birth]];
        for (; clean < end_count && (m->clean ? lives[ends[clean]].clean : lives[ends[clean]].freed) <= l->begin && error == TN_OK; clean++) {
            uint32_t life = ends[clean];
            uint32_t slot = m->slot_of_life[life];
            if (slot == TN_TRACE_NONE)
                continue;
            m->live -= tn_unit_bytes(&m->s->units[m->s->unit_of[lives[life].site]], lives[life].bytes);
            m->exact -= tn_round_up(lives[life].bytes, 512);
            if (m->states[slot].life == life && m->states[slot].busy_at != TN_TRACE_NONE)
                error = end_use(m, slot, m->base + (m->clean ? lives[life].clean : lives[life].freed));
        }
        for (; m->streams && freed < in->free_count && lives[in->frees[freed]].freed <= l->begin; freed++) {
            uint32_t life = in->frees[freed], slot = m->slot_of_life[life];
            if (slot != TN_TRACE_NONE && m->states[slot].life == life && m->states[slot].busy_at != TN_TRACE_NONE) {
                m->states[slot].freed = lives[life].freed;
                m->states[slot].stream = lives[life].free_stream;
            }
        }
        for (; m->streams && join < p->join_count && p->joins[join].at <= l->begin && error == TN_OK; join++)
            error = tn_index_set(&m->joins, (uint64_t)p->joins[join].to << 32 | p->joins[join].from, p->joins[join].upto);
        m->slot_of_life[in->births[birth]] = TN_TRACE_NONE;
        if (error == TN_OK && m->chosen[m->s->unit_of[l->site]]) {
            m->live += tn_unit_bytes(&m->s->units[m->s->unit_of[l->site]], l->bytes);
            m->exact += tn_round_up(l->bytes, 512);
            if (!m->streams)
                note_peak(m->out, m->live, m->exact);
            error = take(m, in->births[birth], l);
        }
        birth++;
    }
    /* What is left ends when nothing of the instance can come any more. */
    while (error == TN_OK && m->busy_count)
        error = end_use(m, m->busy[m->busy_count - 1], m->base + p->events + 1);
    m->base += (uint64_t)p->events + 2;
    return error;
}

/* Slots that share with no other are in use all the time: those of sites that stand alone, and those from `seen` on. */
static tn_error set_apart(make *m, uint32_t seen)
{
    tn_slots *out = m->out;
    tn_error error = TN_OK;
    size_t kept = 0;
    for (size_t i = 0; i < out->use_count; i++)
        if (!stands_alone(m, out->at[out->uses[i].slot].unit))
            out->uses[kept++] = out->uses[i];
    out->use_count = kept;
    for (uint32_t i = 0; i < out->count && error == TN_OK; i++) {
        if (i < seen && !stands_alone(m, out->at[i].unit))
            continue;
        tn_use *u = TN_TRACE_PUSH(out->uses, out->use_count);
        if (!u)
            return TN_E_NOMEM;
        *u = (tn_use){.slot = i, .begin = 0, .end = m->base};
        for (uint32_t k = 0; k < out->count && out->by_pairs && error == TN_OK; k++)
            if (k != i)
                error = add_pair(m, i, k);
    }
    return error;
}

/* What rules give beyond what was seen. */
static tn_error add_room(make *m)
{
    tn_error error = TN_OK;
    for (size_t i = 0; i < m->class_count && error == TN_OK; i++)
        while (error == TN_OK && m->classes[i].count < m->s->units[m->classes[i].unit].room.blocks)
            error = add_slot(m, &m->classes[i]);
    return error;
}

static int is_async(const tn_section *s, const uint8_t *chosen)
{
    for (size_t i = 0; i < s->unit_count; i++)
        if (chosen[i])
            return s->units[i].family == TN_FAMILY_ASYNC;
    return 0;
}

static int several_streams(const tn_section *s, const uint8_t *chosen)
{
    for (size_t k = 0; k < s->instance_count; k++) {
        const tn_instance *in = &s->instances[k];
        const tn_life *lives = s->trace->processes[in->process].lives;
        uint32_t only = 0;
        for (size_t i = 0; i < in->birth_count; i++) {
            const tn_life *l = &lives[in->births[i]];
            if (!chosen[s->unit_of[l->site]] || l->kind != TN_KIND_ASYNC)
                continue;
            if (only == 0)
                only = l->stream;
            if (l->stream != only || (l->freed != TN_LIFE_OPEN && l->free_stream != only))
                return 1;
        }
    }
    return 0;
}

/* ---- putting in order ---- */

typedef struct place { uint32_t unit, key, ordinal, slot; } place;

static int by_class(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static int by_slot(const void *a, const void *b)
{
    const tn_use *x = a, *y = b;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static tn_error put_in_order(make *m)
{
    tn_slots *out = m->out;
    place *order = malloc((out->count + 1) * sizeof *order);
    uint32_t *to = malloc((out->count + 1) * sizeof *to);
    tn_slot *slots = malloc((out->count + 1) * sizeof *slots);
    if (!order || !to || !slots) {
        free(order);
        free(to);
        free(slots);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < out->count; i++)
        order[i] = (place){.unit = out->at[i].unit, .key = m->classes[m->class_of_slot[i]].key, .ordinal = out->at[i].ordinal, .slot = i};
    if (out->count)
        qsort(order, out->count, sizeof *order, by_class);
    for (uint32_t i = 0; i < out->count; i++) {
        const class *c = &m->classes[m->class_of_slot[order[i].slot]];
        slots[i] = out->at[order[i].slot];
        slots[i].bytes = c->bytes;
        slots[i].alignment = tn_native_alignment(m->s->units[c->unit].family, c->bytes);
        slots[i].size_class = i == 0 || order[i - 1].unit != order[i].unit ? 0 : slots[i - 1].size_class + (order[i - 1].key != order[i].key);
        to[order[i].slot] = i;
    }
    free(out->at);
    out->at = slots;
    for (size_t i = 0; i < out->use_count; i++)
        out->uses[i].slot = to[out->uses[i].slot];
    for (size_t i = 0; i < out->pair_count; i++)
        out->pairs[i] = (tn_slot_pair){.a = to[out->pairs[i].a], .b = to[out->pairs[i].b]};
    if (out->use_count)
        qsort(out->uses, out->use_count, sizeof *out->uses, by_slot);
    free(order);
    free(to);
    return TN_OK;
}

tn_error tn_slots_make(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint32_t headroom, int clean, tn_slots *out)
{
    make m = {.s = s, .chosen = chosen, .out = out, .per_octave = per_octave, .headroom = headroom, .clean = clean};
    tn_error error = TN_OK;
    *out = (tn_slots){0};
    m.streams = clean && is_async(s, chosen) && several_streams(s, chosen);
    /* On one stream a freed block can be used again at once. */
    m.clean = clean && (m.streams || !is_async(s, chosen));
    out->by_pairs = m.streams;
    for (size_t k = 0; k < s->instance_count && error == TN_OK; k++) {
        size_t lives = s->trace->processes[s->instances[k].process].life_count;
        uint32_t *grown = realloc(m.slot_of_life, (lives + 1) * sizeof *grown);
        if (!grown) {
            error = TN_E_NOMEM;
            break;
        }
        m.slot_of_life = grown;
        for (size_t i = 0; i < m.class_count; i++)
            m.classes[i].hint = 0;
        error = walk_instance(&m, &s->instances[k]);
    }
    uint32_t seen = (uint32_t)out->count;
    if (error == TN_OK)
        error = add_room(&m);
    if (error == TN_OK)
        error = set_apart(&m, seen);
    if (error == TN_OK)
        error = put_in_order(&m);
    for (size_t i = 0; i < m.class_count; i++)
        free(m.classes[i].slots);
    free(m.classes);
    free(m.states);
    free(m.class_of_slot);
    free(m.busy);
    free(m.slot_of_life);
    tn_index_free(&m.class_of);
    tn_index_free(&m.joins);
    tn_index_free(&m.known_pairs);
    if (error != TN_OK)
        tn_slots_free(out);
    return error;
}

void tn_slots_free(tn_slots *s)
{
    free(s->at);
    free(s->uses);
    free(s->pairs);
    *s = (tn_slots){0};
}
