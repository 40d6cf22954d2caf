/* What a plan says beside its tiers: phases, what stays with the driver, the sizing query. */
#define _GNU_SOURCE
#include "planner/plan_parts.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/journal_format.h"

/* ---- hashes and names ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u; /* so that "ab","c" is not "a","bc" */
}

uint64_t tn_plan_coarse_key(const tn_plan_row *row)
{
    uint64_t hash = 0xcbf29ce484222325u;
    int named = 0;
    for (size_t i = 0; i < row->frame_count; i++) {
        const tn_plan_frame *f = &row->frames[i];
        if (f->inlined)
            continue;
        hash = hash_text(hash, f->module ? f->module : "");
        hash = hash_text(hash, f->function ? f->function : "");
        named |= f->function != NULL;
    }
    return !named ? 0 : hash ? hash : 1;
}

const char *tn_plan_build_id(tn_plan *plan, const tn_rec_module *module)
{
    static const char digits[] = "0123456789abcdef";
    char text[8 + 2 * sizeof(module->build_id)] = "";
    if (!module)
        return NULL;
    if (module->jit)
        return tn_plan_text(plan, "jit");
    size_t bytes = module->hashed ? 8 : module->build_id_bytes, at = 0;
    if (bytes > sizeof(module->build_id))
        bytes = sizeof(module->build_id);
    if (module->hashed)
        at = (size_t)(stpcpy(text, "hash:") - text);
    for (size_t i = 0; i < bytes; i++) {
        text[at++] = digits[module->build_id[i] >> 4];
        text[at++] = digits[module->build_id[i] & 15];
    }
    text[at] = 0;
    return tn_plan_text(plan, text);
}

/* ---- the driver's memory ---- */

static int is_on_device(uint8_t kind)
{
    return kind != TN_KIND_PINNED && kind != TN_KIND_REGISTERED && kind != TN_KIND_IMPORTED && kind != TN_KIND_NONE;
}

static int is_placed(const tn_section *s, const tn_life *l)
{
    int whenever = l->kind == TN_KIND_VMM_HANDLE; /* a capture does not mind */
    return l->ctx != 0 && (whenever || !(l->flags & TN_LF_IN_CAPTURE)) && s->units[s->unit_of[l->site]].discipline != TN_D_NATIVE;
}

typedef struct change { uint32_t at; uint8_t comes; uint64_t bytes; } change;

static int by_position(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (int)x->comes - (int)y->comes; /* what goes goes first */
}

static tn_error read_native(const tn_section *s, uint32_t process, change **out, size_t *count)
{
    const tn_trace_process *p = &s->trace->processes[process];
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < p->life_count; i++) {
        const tn_life *l = &p->lives[i];
        if (l->device != s->device || !is_on_device(l->kind) || is_placed(s, l))
            continue;
        for (int comes = 1; comes >= 0; comes--) {
            uint32_t at = comes ? l->begin : l->freed;
            change *c = at == TN_LIFE_OPEN ? NULL : TN_TRACE_PUSH(*out, *count);
            if (!c && at != TN_LIFE_OPEN) {
                free(*out);
                *out = NULL;
                return TN_E_NOMEM;
            }
            if (c)
                *c = (change){.at = at, .comes = (uint8_t)comes, .bytes = (uint64_t)l->backed * TN_LIFE_UNIT};
        }
    }
    if (*count)
        qsort(*out, *count, sizeof **out, by_position);
    return TN_OK;
}

/* ---- phases ---- */

enum { PHASES = TN_PHASE_SERVING + 1 };
typedef struct phase_peaks { uint64_t device[PHASES], native[PHASES], pinned[PHASES]; uint8_t seen[PHASES]; } phase_peaks;

typedef struct clock { const tn_trace_process *p; size_t next; uint8_t phase; } clock;

static void highest(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

/* On to the next phase that began up to a position: 1 with it in c->phase. */
static int clock_to(clock *c, uint32_t at)
{
    if (c->next == c->p->phase_count || c->p->phases[c->next].at > at)
        return 0;
    c->phase = c->p->phases[c->next++].phase % PHASES;
    return 1;
}

static tn_error native_peaks(const tn_section *s, uint32_t process, phase_peaks *peaks, uint64_t *most)
{
    change *changes;
    size_t count;
    tn_error error = read_native(s, process, &changes, &count);
    clock c = {.p = &s->trace->processes[process]};
    uint64_t live = 0;
    for (size_t i = 0; i <= count && error == TN_OK; i++) { /* behind the last change phases may begin still */
        while (clock_to(&c, i < count ? changes[i].at : TN_LIFE_OPEN))
            highest(&peaks->native[c.phase], live);
        if (i == count)
            break;
        live = changes[i].comes ? live + changes[i].bytes : live - changes[i].bytes;
        highest(&peaks->native[c.phase], live);
        highest(most, live);
    }
    free(changes);
    return error;
}

static void note_placed(phase_peaks *peaks, uint8_t phase, uint64_t device, uint64_t pinned)
{
    peaks->seen[phase] = 1;
    highest(&peaks->device[phase], device);
    highest(&peaks->pinned[phase], pinned);
}

static void placed_peaks(const tn_section *s, const tn_instance *in, phase_peaks *peaks)
{
    clock c = {.p = &s->trace->processes[in->process]};
    tn_walk w = tn_walk_begin(s, in, 0);
    uint64_t device = 0, pinned = 0;
    uint32_t i;
    peaks->seen[c.phase] = 1;
    for (int what = 1; what;) {
        what = tn_walk_next(&w, &i);
        const tn_life *l = what ? &w.lives[i] : NULL;
        while (clock_to(&c, what > 0 ? l->begin : what < 0 ? l->freed : TN_LIFE_OPEN))
            note_placed(peaks, c.phase, device, pinned);
        const tn_unit *u = what ? &s->units[s->unit_of[l->site]] : NULL;
        if (!u || u->discipline == TN_D_NATIVE)
            continue;
        uint64_t bytes = tn_unit_bytes(u, l->bytes), *live = u->family == TN_FAMILY_PINNED ? &pinned : &device;
        *live = what > 0 ? *live + bytes : *live - bytes;
        note_placed(peaks, c.phase, device, pinned);
    }
}

tn_error tn_plan_read_phases(tn_plan *plan, const tn_section *s, tn_plan_section *out)
{
    phase_peaks peaks = {0};
    for (size_t i = 0; i < s->process_count; i++) {
        tn_error error = native_peaks(s, s->processes[i], &peaks, &out->native_bytes);
        if (error != TN_OK)
            return error;
        highest(&out->graph_execs, s->trace->processes[s->processes[i]].graph_execs[s->device]);
    }
    for (size_t i = 0; i < s->instance_count; i++) {
        uint64_t of_process = 0;
        placed_peaks(s, &s->instances[i], &peaks);
        for (size_t k = 0; k < s->instance_count; k++)
            of_process += s->instances[k].process == s->instances[i].process;
        highest(&out->instances, of_process);
    }
    out->phases = tn_plan_memory(plan, PHASES, sizeof(tn_plan_phase));
    for (uint8_t p = 0; out->phases && p < PHASES; p++)
        if (peaks.seen[p])
            out->phases[out->phase_count++] =
                (tn_plan_phase){.phase = p, .device_bytes = peaks.device[p], .native_bytes = peaks.native[p], .pinned_bytes = peaks.pinned[p]};
    return out->phases ? TN_OK : TN_E_NOMEM;
}

/* ---- the sizing query ---- */

/* When serving first began, or the end. */
static uint32_t first_serving(const tn_trace_process *p)
{
    for (size_t i = 0; i < p->phase_count; i++)
        if (p->phases[i].phase == TN_PHASE_SERVING)
            return p->phases[i].at;
    return p->events + 1;
}

/* The unit with the most live bytes then. */
static tn_error largest_unit(const tn_section *s, uint32_t process, uint32_t at, uint32_t *unit, uint64_t *bytes)
{
    const tn_trace_process *p = &s->trace->processes[process];
    uint64_t *live = calloc(s->unit_count + 1, sizeof *live);
    if (!live)
        return TN_E_NOMEM;
    *bytes = 0;
    for (size_t i = 0; i < p->life_count && p->lives[i].begin < at; i++) {
        const tn_life *l = &p->lives[i];
        if (l->device == s->device && is_on_device(l->kind) && l->freed >= at)
            live[s->unit_of[l->site]] += l->bytes;
    }
    for (uint32_t i = 0; i < s->unit_count; i++) {
        if (live[i] <= *bytes)
            continue;
        *bytes = live[i];
        *unit = i;
    }
    free(live);
    return TN_OK;
}

static const tn_trace_first *first_request(const tn_section *s, const tn_trace_process *p, uint32_t unit)
{
    for (size_t i = 0; i < p->first_count; i++)
        if (s->unit_of[p->firsts[i].site] == unit)
            return &p->firsts[i];
    return NULL;
}

static tn_error sized_keys(tn_plan *plan, const tn_section *s, uint32_t unit, tn_plan_sizing *out)
{
    const tn_unit *pool = &s->units[unit];
    out->sized = tn_plan_memory(plan, s->unit_count, sizeof(uint64_t));
    if (!out->sized)
        return TN_E_NOMEM;
    for (size_t i = 0; i < s->unit_count; i++) {
        const tn_unit *u = &s->units[i];
        int same_size = pool->smallest == pool->largest && u->blocks && u->smallest == pool->smallest && u->largest == pool->largest;
        uint64_t key = s->trace->sites[u->site].key;
        if ((i == unit || same_size) && (out->sized_count == 0 || out->sized[out->sized_count - 1] != key))
            out->sized[out->sized_count++] = key;
    }
    return TN_OK;
}

/* The last before the pool's first request, on the same thread, if the pool took a quarter of what it said was free. */
static const tn_trace_query *query_before(const tn_section *s, const tn_trace_process *p, uint32_t unit, uint64_t bytes)
{
    const tn_trace_first *first = bytes ? first_request(s, p, unit) : NULL;
    const tn_trace_query *last = NULL;
    for (size_t k = 0; first && k < p->query_count; k++)
        if (p->queries[k].device == s->device && p->queries[k].thread == first->thread && p->queries[k].at < first->at)
            last = &p->queries[k];
    return last && bytes >= last->free_bytes / 4 ? last : NULL;
}

static const tn_trace_query *query_given(const tn_section *s, const tn_trace_process *p, const tn_plan_sizing_option *option)
{
    for (size_t k = 0; k < p->query_count; k++) {
        const tn_trace_query *q = &p->queries[k];
        if (q->device == s->device && q->ordinal == option->ordinal && s->trace->sites[q->site].key == option->key)
            return q;
    }
    return NULL;
}

tn_error tn_plan_find_sizing(tn_plan *plan, const tn_section *s, const tn_plan_sizing_option *option, tn_plan_section *out)
{
    for (size_t i = 0; i < s->process_count && !out->sizing.known && option->choice != TN_SIZING_NONE; i++) {
        const tn_trace_process *p = &s->trace->processes[s->processes[i]];
        uint32_t unit = 0;
        uint64_t bytes = 0;
        tn_error error = p->query_count ? largest_unit(s, s->processes[i], first_serving(p), &unit, &bytes) : TN_OK;
        if (error != TN_OK)
            return error;
        const tn_trace_query *last = option->choice == TN_SIZING_GIVEN ? query_given(s, p, option) : query_before(s, p, unit, bytes);
        if (!last || !bytes)
            continue;
        const tn_trace_site *x = &s->trace->sites[last->site];
        out->sizing = (tn_plan_sizing){.known = 1, .key = x->key, .python = 0, .ordinal = last->ordinal, .free_bytes = last->free_bytes};
        error = sized_keys(plan, s, unit, &out->sizing);
        if (error != TN_OK)
            return error;
    }
    return TN_OK;
}
