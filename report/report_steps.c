/* Keeps the steps while the journals are replayed. */
#define _GNU_SOURCE
#include "report/report_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/control_client.h"
#include "phaseguard/phase.h"

struct tn_steps_process {
    int64_t *live;            /* [places], backed bytes */
    size_t place_room, place_count;
    tn_step_change *changes;  /* [rows], since the last step */
    size_t row_room;
    uint32_t *touched;
    size_t touched_count, touched_room;
    tn_phase_state phase;
    size_t last;              /* index of its last step */
    int begun, ended;
    uint64_t ns;              /* of its last event */
    int64_t clock_offset;     /* moment.ns less the reader's own time */
};

static tn_error grow(void **array, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room)
        return TN_OK;
    size_t more = *room ? *room : 16;
    while (more < wanted)
        more *= 2;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return TN_E_NOMEM;
    memset((char *)grown + *room * size, 0, (more - *room) * size);
    *array = grown;
    *room = more;
    return TN_OK;
}

static tn_error begin(tn_report *report)
{
    report->steps = calloc(1, sizeof(*report->steps));
    if (!report->steps)
        return TN_E_NOMEM;
    report->steps->processes = calloc(report->process_count + 1, sizeof(*report->steps->processes));
    return report->steps->processes ? TN_OK : TN_E_NOMEM;
}

/* ---- a step */

static int by_row(const void *a, const void *b)
{
    uint32_t x = ((const tn_step_change *)a)->row, y = ((const tn_step_change *)b)->row;
    return (x > y) - (x < y);
}

static tn_error take_changes(struct tn_steps_process *p, tn_step *s)
{
    if (p->touched_count) {
        s->changes = calloc(p->touched_count, sizeof(*s->changes));
        if (!s->changes)
            return TN_E_NOMEM;
    }
    for (size_t i = 0; i < p->touched_count; i++) {
        uint32_t row = p->touched[i];
        s->changes[i] = p->changes[row];
        s->changes[i].row = row;
        p->changes[row] = (tn_step_change){0};
    }
    s->change_count = p->touched_count;
    p->touched_count = 0;
    if (s->change_count)
        qsort(s->changes, s->change_count, sizeof(*s->changes), by_row);
    return TN_OK;
}

/* Makes the step's list of places reach `count`. */
static tn_error reach_places(tn_step *s, size_t count)
{
    if (count <= s->place_count)
        return TN_OK;
    tn_step_place *grown = realloc(s->places, count * sizeof(*grown));
    if (!grown)
        return TN_E_NOMEM;
    s->places = grown;
    for (; s->place_count < count; s->place_count++)
        grown[s->place_count] = (tn_step_place){.place = (uint32_t)s->place_count};
    return TN_OK;
}

static tn_error take_places(const struct tn_steps_process *p, tn_step *s)
{
    tn_error error = reach_places(s, p->place_count);
    for (size_t i = 0; error == TN_OK && i < p->place_count; i++)
        s->places[i].live = (uint64_t)p->live[i];
    return error;
}

static tn_error add_step(tn_report *report, uint32_t process, tn_step step)
{
    tn_steps *all = report->steps;
    struct tn_steps_process *p = &all->processes[process];
    tn_error error = grow((void **)&all->steps, &all->capacity, all->count + 1, sizeof(*all->steps));
    if (error != TN_OK)
        return error;
    step.process = process;
    step.phase = (uint8_t)tn_phase_of(&p->phase);
    error = take_changes(p, &step);
    if (error == TN_OK)
        error = take_places(p, &step);
    p->last = all->count;
    all->steps[all->count++] = step;
    return error;
}

static tn_error ensure_begun(tn_report *report, uint32_t process, uint64_t ns)
{
    struct tn_steps_process *p = &report->steps->processes[process];
    if (p->begun)
        return TN_OK;
    p->begun = 1;
    return add_step(report, process, (tn_step){.type = TN_STEP_BEGIN, .at_ns = ns});
}

static tn_error phase_step(tn_report *report, uint32_t process, uint32_t phase, uint64_t cause, uint64_t ns, int untaken)
{
    struct tn_steps_process *p = &report->steps->processes[process];
    tn_phase_moved m = tn_phase_set(&p->phase, phase);
    if (m.move == TN_MOVE_NONE || m.move >= TN_MOVE_BACKWARD)
        return TN_OK; /* no process of ours writes these */
    return add_step(report, process, (tn_step){.type = TN_STEP_PHASE, .cause = cause, .swap = m.swap, .at_ns = ns, .untaken = (uint8_t)untaken});
}

/* ---- what a process was told and never took: it made no CUDA call any more */

static char *keep_text(tn_report *report, const char *text)
{
    char **grown = realloc(report->texts, (report->text_count + 1) * sizeof(char *));
    if (!grown)
        return NULL;
    report->texts = grown;
    grown[report->text_count] = strdup(text);
    return grown[report->text_count] ? grown[report->text_count++] : NULL;
}

static tn_error untaken_steps(tn_report *report, uint32_t process)
{
    struct tn_steps_process *p = &report->steps->processes[process];
    const tn_process *q = &report->processes[process];
    const char *slash = strrchr(report->path, '/');
    size_t name = strlen(q->journal), suffix = strlen(TN_JOURNAL_SUFFIX);
    char *path = NULL;
    /* Of a single journal the path is the file itself. */
    int is_file = slash && strcmp(slash + 1, q->journal) == 0;
    if (name <= suffix || asprintf(&path, "%.*s%s%.*s" TN_CONTROL_SUFFIX, is_file ? (int)(slash - report->path) : (int)strlen(report->path), report->path,
                                   "/", (int)(name - suffix), q->journal) < 0)
        return name <= suffix ? TN_OK : TN_E_NOMEM;
    tn_control_client client;
    tn_control_slot slot;
    tn_error error = TN_OK;
    int opened = tn_control_open(path, 0, &client) == TN_OK;
    free(path);
    if (!opened)
        return TN_OK; /* an older journal, or one without a block */
    for (uint64_t i = 0; error == TN_OK && client.block->random_id == tn_reader_header(q->reader)->random_id && tn_control_untaken(&client, i, &slot); i++) {
        int64_t at = (int64_t)tn_reader_ns(q->reader, slot.tsc) + p->clock_offset;
        uint64_t ns = at > (int64_t)p->ns ? (uint64_t)at : p->ns;
        if (slot.kind == TN_COMMAND_PHASE) {
            error = phase_step(report, process, slot.value, slot.cause, ns, 1);
        } else if (slot.kind == TN_COMMAND_MARK) {
            char *text = keep_text(report, slot.text);
            error = text ? add_step(report, process, (tn_step){.type = TN_STEP_MARK, .cause = slot.cause, .name = text, .at_ns = ns, .untaken = 1}) : TN_E_NOMEM;
        }
    }
    tn_control_close(&client);
    return error;
}

static tn_error end_process(tn_report *report, uint32_t process)
{
    struct tn_steps_process *p = &report->steps->processes[process];
    if (p->ended)
        return TN_OK;
    p->ended = 1;
    tn_error error = ensure_begun(report, process, p->ns);
    if (error == TN_OK)
        error = untaken_steps(report, process);
    return error == TN_OK ? add_step(report, process, (tn_step){.type = TN_STEP_END, .at_ns = p->ns}) : error;
}

/* ---- the watcher's calls */

static tn_error change(const tn_moment *now, const tn_change *c)
{
    tn_report *report = now->report;
    struct tn_steps_process *p = &report->steps->processes[now->process];
    if (c->cause == TN_CHANGE_PROCESS_END)
        return end_process(report, now->process);
    p->ns = now->ns;
    tn_error error = ensure_begun(report, now->process, now->ns);
    if (error == TN_OK)
        error = grow((void **)&p->live, &p->place_room, c->place + 1, sizeof(*p->live));
    if (error != TN_OK)
        return error;
    if (p->place_count <= c->place)
        p->place_count = c->place + 1;
    int counts = tn_kind_is_host(c->kind) ? c->kind == TN_KIND_PINNED : tn_kind_is_summed(c->kind);
    if (counts)
        p->live[c->place] += c->sign * (int64_t)c->backed;
    if (c->row == TN_NO_INDEX)
        return TN_OK;
    error = grow((void **)&p->changes, &p->row_room, c->row + 1, sizeof(*p->changes));
    if (error != TN_OK)
        return error;
    tn_step_change *r = &p->changes[c->row];
    if (r->came + r->went == 0) {
        error = grow((void **)&p->touched, &p->touched_room, p->touched_count + 1, sizeof(*p->touched));
        if (error != TN_OK)
            return error;
        p->touched[p->touched_count++] = c->row;
    }
    r->backed += c->sign * (int64_t)c->backed;
    r->blocks += c->sign;
    r->came += c->sign > 0;
    r->went += c->sign < 0;
    return TN_OK;
}

/* A reading of the whole device belongs to the step that asked for it, and to those right before at which the same was there. */
static tn_error reading(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_report *report = now->report;
    struct tn_steps_process *p = &report->steps->processes[now->process];
    if (e->kind != TN_CHARGE_READING || (e->addr != TN_READ_PHASE && e->addr != TN_READ_MARK) || !p->begun)
        return TN_OK;
    uint32_t place = report->processes[now->process].place_of[e->device];
    for (size_t i = p->last; place != TN_NO_INDEX; i--) {
        tn_step *s = &report->steps->steps[i];
        if (s->process == now->process) {
            tn_error error = reach_places(s, place + 1);
            if (error != TN_OK)
                return error;
            if (s->places[place].has_used || s->type == TN_STEP_BEGIN)
                break;
            s->places[place].used = e->aux;
            s->places[place].has_used = 1;
            if (s->change_count)
                break;
        }
        if (i == 0)
            break;
    }
    return TN_OK;
}

static tn_error event(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_report *report = now->report;
    struct tn_steps_process *p = &report->steps->processes[now->process];
    if (e->type == TN_EV_NONE)
        return end_process(report, now->process);
    p->ns = now->ns;
    tn_reader *reader = report->processes[now->process].reader;
    if (!p->begun)
        p->clock_offset = (int64_t)now->ns - (int64_t)tn_reader_ns(reader, e->tsc);
    tn_error error = ensure_begun(report, now->process, now->ns);
    if (error != TN_OK)
        return error;
    if (e->type == TN_EV_PHASE)
        return phase_step(report, now->process, e->kind, e->aux2, now->ns, 0);
    if (e->type == TN_EV_MARK && e->kind == TN_MARK_POINT)
        return add_step(report, now->process, (tn_step){.type = TN_STEP_MARK, .cause = e->aux2, .name = tn_reader_string(reader, (uint32_t)e->addr), .at_ns = now->ns});
    return e->type == TN_EV_CHARGE ? reading(now) : TN_OK;
}

static tn_error end(tn_report *report)
{
    tn_error error = TN_OK;
    for (uint32_t i = 0; i < report->process_count && error == TN_OK; i++)
        error = end_process(report, i);
    return error;
}

static void drop(tn_report *report)
{
    tn_steps *all = report->steps;
    for (size_t i = 0; all && i < all->count; i++) {
        free(all->steps[i].places);
        free(all->steps[i].changes);
    }
    for (size_t i = 0; all && all->processes && i < report->process_count; i++) {
        free(all->processes[i].live);
        free(all->processes[i].changes);
        free(all->processes[i].touched);
    }
    if (all) {
        free(all->processes);
        free(all->steps);
    }
    free(all);
    report->steps = NULL;
    for (size_t i = 0; i < report->text_count; i++)
        free(report->texts[i]);
    free(report->texts);
    report->texts = NULL;
    report->text_count = 0;
}

const tn_watcher tn_steps_watcher = {
    .types = TN_WATCH(TN_EV_NONE) | TN_WATCH(TN_EV_PHASE) | TN_WATCH(TN_EV_MARK) | TN_WATCH(TN_EV_CHARGE) | TN_WATCH(TN_EV_THREAD),
    .begin = begin,
    .event = event,
    .change = change,
    .end = end,
    .drop = drop,
};
