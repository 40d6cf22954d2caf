/* Which processes belong together, and the blocks of each context in three orders. */
#define _GNU_SOURCE
#include "planner/section.h"

#include <stdlib.h>
#include <string.h>

#include "planner/program_script.h"
#include "planner/text_mask.h"

/* ---- the script ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *tn_section_script(const char *exe, const char *cmdline, size_t bytes)
{
    char script[TN_PROGRAM_SCRIPT];
    return tn_program_script(exe, cmdline, bytes, script, sizeof script) ? strdup(script) : NULL;
}

/* ---- orders ---- */

typedef struct end { uint32_t at, life; } end;

static int by_end(const void *a, const void *b)
{
    const end *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->life < y->life ? -1 : x->life > y->life;
}

/* By position, then by life, the order in which they stand at first: two passes of a counting sort. */
static int sort_ends(end *ends, size_t count)
{
    if (count < 4096) {
        if (count)
            qsort(ends, count, sizeof *ends, by_end);
        return 1;
    }
    enum { BITS = 16, WAYS = 1 << BITS };
    end *other = malloc(count * sizeof *other);
    size_t *starts = malloc(WAYS * sizeof *starts);
    int made = other && starts;
    for (unsigned shift = 0; made && shift < 32; shift += BITS) {
        memset(starts, 0, WAYS * sizeof *starts);
        for (size_t i = 0; i < count; i++)
            starts[ends[i].at >> shift & (WAYS - 1)]++;
        size_t sum = 0;
        for (size_t i = 0; i < WAYS; i++) {
            size_t n = starts[i];
            starts[i] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            other[starts[ends[i].at >> shift & (WAYS - 1)]++] = ends[i];
        memcpy(ends, other, count * sizeof *ends);
    }
    free(other);
    free(starts);
    return made;
}

static tn_error order_ends(const tn_life *lives, const uint32_t *births, size_t count, int clean, uint32_t **out, size_t *out_count)
{
    end *ends = malloc((count + 1) * sizeof *ends);
    size_t n = 0;
    if (!ends)
        return TN_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = clean ? lives[births[i]].clean : lives[births[i]].freed;
        if (at != TN_LIFE_OPEN)
            ends[n++] = (end){.at = at, .life = births[i]};
    }
    *out = sort_ends(ends, n) ? malloc((n + 1) * sizeof **out) : NULL;
    if (*out)
        for (size_t i = 0; i < n; i++)
            (*out)[i] = ends[i].life;
    *out_count = n;
    free(ends);
    return *out ? TN_OK : TN_E_NOMEM;
}

/* ---- making ---- */

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* As it stands in plans, so that it is found there again. */
static char *plain_copy(const char *text)
{
    char *copy = strdup(text);
    if (copy)
        tn_text_mask(copy);
    return copy;
}

static tn_section *section_of(tn_sections *all, const tn_trace *trace, uint32_t process, uint8_t device)
{
    const tn_journal_header *h = trace->processes[process].header;
    char *exe = plain_copy(h ? base_name(h->exe) : trace->processes[process].name), *id = plain_copy(h ? h->exe_build_id : "");
    char *script = h ? tn_section_script(h->exe, h->cmdline, sizeof(h->cmdline)) : NULL;
    tn_section *s = NULL;
    for (size_t i = 0; exe && id && i < all->count && !s; i++) {
        tn_section *x = &all->at[i];
        /* Without a build-id the name is all there is. */
        if (x->device == device && strcmp(x->exe_build_id, id) == 0 && (id[0] || strcmp(x->exe, exe) == 0) && same_text(x->script, script))
            s = x;
    }
    int known = s != NULL;
    if (!known && exe && id)
        s = TN_TRACE_PUSH(all->at, all->count);
    if (known || !s) {
        free(exe);
        free(id);
        free(script);
        return s;
    }
    *s = (tn_section){.trace = trace, .exe_build_id = id, .exe = exe, .script = script, .device = device};
    s->unit_of = malloc((trace->site_count + 1) * sizeof *s->unit_of);
    if (!s->unit_of)
        return NULL;
    memset(s->unit_of, 0xff, (trace->site_count + 1) * sizeof *s->unit_of);
    return s;
}

static tn_instance *instance_of(tn_section *s, uint32_t process, uint32_t ctx)
{
    for (size_t i = s->instance_count; i-- > 0 && s->instances[i].process == process;)
        if (s->instances[i].ctx == ctx)
            return &s->instances[i];
    tn_instance *in = TN_TRACE_PUSH(s->instances, s->instance_count);
    if (in)
        *in = (tn_instance){.process = process, .ctx = ctx};
    return in;
}

/* Under which context a handle is counted. */
static uint32_t first_context(const tn_section *s, uint32_t process, uint32_t otherwise)
{
    for (size_t i = s->instance_count; i-- > 0 && s->instances[i].process == process;)
        otherwise = s->instances[i].ctx;
    return otherwise;
}

static tn_error add_process(tn_sections *all, const tn_trace *trace, uint32_t process)
{
    const tn_trace_process *p = &trace->processes[process];
    uint32_t last_device = UINT32_MAX, last_ctx = 0;
    size_t section = 0, instance = 0;
    for (uint32_t i = 0; i < p->life_count; i++) {
        const tn_life *l = &p->lives[i];
        if (l->device != last_device) {
            tn_section *s = section_of(all, trace, process, l->device);
            if (!s)
                return TN_E_NOMEM;
            section = (size_t)(s - all->at);
            last_device = l->device;
            last_ctx = 0;
            if (s->process_count == 0 || s->processes[s->process_count - 1] != process) {
                uint32_t *at = TN_TRACE_PUSH(s->processes, s->process_count);
                if (!at)
                    return TN_E_NOMEM;
                *at = process;
            }
        }
        tn_section *s = &all->at[section];
        s->unit_of[l->site] = 0; /* seen; numbered below */
        if (!tn_may_be_placed(l))
            continue;
        uint32_t ctx = l->kind == TN_KIND_VMM_HANDLE ? first_context(s, process, l->ctx) : l->ctx;
        if (ctx != last_ctx) {
            tn_instance *in = instance_of(s, process, ctx);
            if (!in)
                return TN_E_NOMEM;
            instance = (size_t)(in - s->instances);
            last_ctx = ctx;
        }
        tn_instance *in = &s->instances[instance];
        uint32_t *at = TN_TRACE_PUSH(in->births, in->birth_count);
        if (!at)
            return TN_E_NOMEM;
        *at = i;
    }
    return TN_OK;
}

static tn_error make_units(tn_section *s, const uint8_t *apart)
{
    const tn_trace *t = s->trace;
    /* A native site is a unit where one of its callers was seen, unless they stand apart. */
    for (uint32_t i = 0; i < t->site_count; i++) {
        uint32_t native = t->sites[i].native;
        if (s->unit_of[i] != TN_TRACE_NONE && !(apart && apart[native]) && native != i && s->unit_of[native] == TN_TRACE_NONE)
            s->unit_of[native] = 0;
    }
    for (uint32_t i = 0; i < t->site_count; i++) {
        uint32_t native = t->sites[i].native;
        if (s->unit_of[i] == TN_TRACE_NONE)
            continue;
        if (native != i && !(apart && apart[native])) {
            s->unit_of[i] = s->unit_of[native];
            continue;
        }
        tn_unit *u = TN_TRACE_PUSH(s->units, s->unit_count);
        if (!u)
            return TN_E_NOMEM;
        *u = (tn_unit){.site = i, .family = TN_FAMILY_COUNT};
        s->unit_of[i] = (uint32_t)s->unit_count - 1;
    }
    return TN_OK;
}

static uint32_t *pick(const tn_section *s, const tn_life *lives, const uint32_t *from, size_t count, const uint8_t *chosen, size_t *kept)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += chosen[s->unit_of[lives[from[i]].site]] != 0;
    uint32_t *to = malloc((n + 1) * sizeof *to);
    *kept = 0;
    for (size_t i = 0; to && i < count; i++)
        if (chosen[s->unit_of[lives[from[i]].site]])
            to[(*kept)++] = from[i];
    return to;
}

tn_error tn_section_pick(const tn_section *s, const uint8_t *chosen, tn_section *out)
{
    *out = *s;
    out->instance_count = 0;
    out->instances = calloc(s->instance_count + 1, sizeof *out->instances);
    for (size_t k = 0; out->instances && k < s->instance_count; k++) {
        const tn_instance *in = &s->instances[k];
        const tn_life *lives = s->trace->processes[in->process].lives;
        tn_instance *to = &out->instances[out->instance_count++];
        *to = (tn_instance){.process = in->process, .ctx = in->ctx};
        to->births = pick(s, lives, in->births, in->birth_count, chosen, &to->birth_count);
        to->frees = pick(s, lives, in->frees, in->free_count, chosen, &to->free_count);
        to->cleans = pick(s, lives, in->cleans, in->clean_count, chosen, &to->clean_count);
        if (!to->births || !to->frees || !to->cleans) {
            tn_section_unpick(out);
            return TN_E_NOMEM;
        }
    }
    return out->instances ? TN_OK : TN_E_NOMEM;
}

void tn_section_unpick(tn_section *picked)
{
    for (size_t k = 0; k < picked->instance_count; k++) {
        free(picked->instances[k].births);
        free(picked->instances[k].frees);
        free(picked->instances[k].cleans);
    }
    free(picked->instances);
    *picked = (tn_section){0};
}

static int by_name(const void *a, const void *b)
{
    const tn_section *x = a, *y = b;
    int c = strcmp(x->exe_build_id, y->exe_build_id);
    if (c == 0)
        c = strcmp(x->exe, y->exe);
    if (c == 0)
        c = strcmp(x->script ? x->script : "", y->script ? y->script : "");
    return c ? c : (int)x->device - (int)y->device;
}

tn_error tn_sections_make(const tn_trace *trace, const uint8_t *apart, tn_sections *out)
{
    tn_error error = TN_OK;
    *out = (tn_sections){0};
    for (uint32_t i = 0; i < trace->process_count && error == TN_OK; i++)
        error = add_process(out, trace, i);
    for (size_t i = 0; i < out->count && error == TN_OK; i++) {
        tn_section *s = &out->at[i];
        error = make_units(s, apart);
        for (size_t k = 0; k < s->instance_count && error == TN_OK; k++) {
            tn_instance *in = &s->instances[k];
            const tn_life *lives = trace->processes[in->process].lives;
            error = order_ends(lives, in->births, in->birth_count, 0, &in->frees, &in->free_count);
            if (error == TN_OK)
                error = order_ends(lives, in->births, in->birth_count, 1, &in->cleans, &in->clean_count);
        }
    }
    if (error != TN_OK)
        tn_sections_free(out);
    else if (out->count)
        qsort(out->at, out->count, sizeof *out->at, by_name);
    return error;
}

void tn_sections_free(tn_sections *all)
{
    for (size_t i = 0; i < all->count; i++) {
        tn_section *s = &all->at[i];
        for (size_t k = 0; k < s->instance_count; k++) {
            free(s->instances[k].births);
            free(s->instances[k].frees);
            free(s->instances[k].cleans);
        }
        free(s->instances);
        free(s->processes);
        free(s->units);
        free(s->unit_of);
        free(s->exe_build_id);
        free(s->exe);
        free(s->script);
    }
    free(all->at);
    *all = (tn_sections){0};
}
