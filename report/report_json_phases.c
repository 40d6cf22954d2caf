/* Phases, marks and what was counted while serving, as JSON. */
#include <stdlib.h>

#include "phaseguard/phase.h"
#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_owner.h"
#include "report/report_ranges.h"
#include "report/report_serving.h"
#include "report/report_steps.h"

/* The steps of one process, and what lies between the last one that was written and the next. */
typedef struct span {
    tn_report *report;
    uint32_t process;
    const tn_step *from; /* where it begins */
    const tn_step *used; /* the last step at which the span's other end had a reading */
    tn_step_sum sum;
} span;

static json_t *place_object(const span *s, const tn_step *to, const tn_step_place *at)
{
    const tn_place *place = &s->report->places[at->place];
    const tn_step_place *before = tn_step_place_of(s->from, at->place), *read = s->used ? tn_step_place_of(s->used, at->place) : NULL;
    json_t *object = json_object();
    (void)to;
    tn_json_put(object, "device", place->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(place->ordinal));
    tn_json_put_integer(object, "live_backed_bytes", at->live);
    tn_json_put(object, "delta_backed_bytes", json_integer((json_int_t)(at->live - (before ? before->live : 0))));
    tn_json_put(object, "used_bytes", at->has_used ? json_integer((json_int_t)at->used) : json_null());
    tn_json_put(object, "delta_used_bytes", at->has_used && read && read->has_used ? json_integer((json_int_t)(at->used - read->used)) : json_null());
    return object;
}

static json_t *lines_array(const span *s, int by_owner)
{
    json_t *array = json_array();
    tn_step_line *lines;
    size_t count;
    if (tn_step_lines(s->report, &s->sum, by_owner, 0, &lines, &count) != TN_OK) {
        json_decref(array);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        if (!by_owner)
            tn_json_put_site(object, &s->report->sites[lines[i].site]);
        tn_json_put_text(object, "owner", lines[i].owner);
        tn_json_put(object, "delta_backed_bytes", json_integer(lines[i].backed));
        tn_json_put(object, "delta_blocks", json_integer(lines[i].blocks));
        tn_json_put_integer(object, "allocs", lines[i].came);
        tn_json_append(array, object);
    }
    free(lines);
    return array;
}

/* What a span that ends at `to` has in common, whether a phase or the time between two marks. */
static void put_span(json_t *object, const span *s, const tn_step *to, int by_site)
{
    json_t *devices = json_array();
    const tn_step_place *host = tn_step_place_of(to, TN_PLACE_HOST), *host_before = tn_step_place_of(s->from, TN_PLACE_HOST);
    for (uint32_t i = TN_PLACE_HOST + 1; i < to->place_count; i++)
        tn_json_append(devices, place_object(s, to, &to->places[i]));
    tn_json_put(object, "devices", devices);
    tn_json_put_integer(object, "pinned_live_backed_bytes", host ? host->live : 0);
    tn_json_put(object, "pinned_delta_backed_bytes", json_integer((json_int_t)((host ? host->live : 0) - (host_before ? host_before->live : 0))));
    tn_json_put(object, "by_owner", lines_array(s, 1));
    if (by_site)
        tn_json_put(object, "by_site", lines_array(s, 0));
}

static json_t *phase_object(const span *s, const tn_step *to)
{
    json_t *object = json_object();
    tn_json_put_integer(object, "pid", tn_reader_header(s->report->processes[s->process].reader)->pid);
    tn_json_put_text(object, "phase", tn_phase_name(s->from->phase));
    tn_json_put_text(object, "cause", s->from->type == TN_STEP_PHASE ? tn_cause_word(s->from->cause) : NULL);
    tn_json_put(object, "swap", s->from->swap ? json_integer((json_int_t)s->from->swap) : json_null());
    tn_json_put_integer(object, "at_ns", s->from->at_ns);
    tn_json_put_integer(object, "duration_ns", to->at_ns - s->from->at_ns);
    put_span(object, s, to, 1);
    return object;
}

static json_t *mark_object(const span *s, const tn_step *to)
{
    json_t *object = json_object();
    tn_json_put_integer(object, "pid", tn_reader_header(s->report->processes[s->process].reader)->pid);
    tn_json_put_text(object, "mark", to->name);
    tn_json_put_text(object, "cause", tn_cause_word(to->cause));
    tn_json_put_text(object, "phase", tn_phase_name(to->phase));
    tn_json_put_integer(object, "at_ns", to->at_ns);
    put_span(object, s, to, 1);
    return object;
}

/* All spans of one process between steps of type `type` (and its begin; of phases also its end). */
static void put_process(json_t *array, tn_report *r, uint32_t process, tn_step_type type)
{
    span s = {.report = r, .process = process};
    if (tn_step_sum_begin(&s.sum, r) != TN_OK) {
        tn_json_append(array, NULL);
        return;
    }
    for (size_t i = 0; i < r->steps->count; i++) {
        const tn_step *step = &r->steps->steps[i];
        if (step->process != process)
            continue;
        if (!s.from) {
            s.from = step;
            continue;
        }
        tn_step_sum_add(&s.sum, step);
        if (step->type != type && !(type == TN_STEP_PHASE && step->type == TN_STEP_END))
            continue;
        tn_json_append(array, type == TN_STEP_PHASE ? phase_object(&s, step) : mark_object(&s, step));
        tn_step_sum_clear(&s.sum);
        s.from = s.used = step;
    }
    tn_step_sum_free(&s.sum);
}

json_t *tn_json_phases(tn_report *r)
{
    json_t *array = json_array();
    for (uint32_t p = 0; p < r->process_count; p++)
        put_process(array, r, p, TN_STEP_PHASE);
    return array;
}

json_t *tn_json_marks(tn_report *r)
{
    json_t *array = json_array();
    for (uint32_t p = 0; p < r->process_count; p++)
        put_process(array, r, p, TN_STEP_MARK);
    return array;
}

json_t *tn_json_ranges(tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->ranges->count; i++) {
        const tn_range *range = &r->ranges->each[i];
        json_t *object = json_object();
        tn_json_put_text(object, "range", range->name);
        tn_json_put_integer(object, "count", range->count);
        tn_json_put_integer(object, "open", range->open);
        tn_json_put_integer(object, "total_ns", range->total_ns);
        tn_json_put_integer(object, "allocs", range->allocs);
        tn_json_put_integer(object, "requested_bytes", range->requested_bytes);
        tn_json_append(array, object);
    }
    return array;
}

/* ---- serving */

static void put_counts(json_t *object, const tn_serving *s, const tn_serving_counts *c)
{
    tn_json_put_integer(object, "driver_allocations", c->driver_allocations);
    tn_json_put_integer(object, "first_uses", c->first_uses);
    tn_json_put_integer(object, "repeated", tn_serving_repeated(c));
    tn_json_put_integer(object, "retries", c->retries);
    tn_json_put_integer(object, "refused", c->refused);
    tn_json_put_integer(object, "requested_bytes", c->requested_bytes);
    tn_json_put_integer(object, "served_allocations", c->served_allocations);
    tn_json_put(object, "pool_growths", s->charges_read ? json_integer((json_int_t)c->pool_growths) : json_null());
    tn_json_put(object, "graph_growths", s->charges_read ? json_integer((json_int_t)c->graph_growths) : json_null());
    tn_json_put(object, "charge_growths", s->charges_read ? json_integer((json_int_t)c->charge_growths) : json_null());
}

json_t *tn_json_serving(tn_report *r)
{
    static const char *const keys[] = {"driver_allocations", "first_uses", "repeated", "retries", "refused", "requested_bytes",
                                       "served_allocations", "pool_growths", "graph_growths", "charge_growths", "by_site", NULL};
    const tn_serving *s = r->serving;
    json_t *object = json_object(), *by_site = json_array();
    uint32_t *order;
    size_t count;
    if (!s->processes_served) { /* not known, which is another thing than nothing */
        tn_json_put_nulls(object, keys);
        json_decref(by_site);
        return object;
    }
    put_counts(object, s, &s->total);
    if (tn_serving_order(r, &order, &count) != TN_OK)
        tn_json_append(by_site, NULL);
    for (size_t i = 0; order && i < count; i++) {
        json_t *line = json_object();
        tn_json_put_site(line, &r->sites[order[i]]);
        tn_json_put_text(line, "owner", tn_owner_of_site(r, order[i]).name);
        put_counts(line, s, &s->sites[order[i]]);
        tn_json_append(by_site, line);
    }
    free(order);
    tn_json_put(object, "by_site", by_site);
    return object;
}
