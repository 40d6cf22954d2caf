/* The report for programs: one JSON document with the keys in a fixed order. What is not measured is null. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "report/report_model.h"
#include "report/report_names.h"
#include "report/report_run.h"

/* Set where a value could not be made; jansson takes NULL for a value as a failure, so it is enough to look
 * once at the end. */
static _Thread_local int short_of_memory;

static void put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        short_of_memory = 1;
}

static void put_integer(json_t *object, const char *key, uint64_t value)
{
    put(object, key, json_integer((json_int_t)value));
}

static void put_text(json_t *object, const char *key, const char *text)
{
    put(object, key, tn_json_text(text));
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        short_of_memory = 1;
}

static void put_hex(json_t *object, const char *key, uint64_t value, int digits, const char *prefix)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%0*" PRIx64, prefix, digits, value);
    put_text(object, key, text);
}

/* ---- counts ---- */

static void put_stat(json_t *object, const tn_stat *s)
{
    put_integer(object, "live_requested_bytes", s->live_requested);
    put_integer(object, "peak_requested_bytes", s->peak_requested);
    put_integer(object, "live_backed_bytes", s->live_backed);
    put_integer(object, "peak_backed_bytes", s->peak_backed);
    put_integer(object, "allocs", s->allocs);
    put_integer(object, "frees", s->frees);
    put_integer(object, "refused", s->refused);
}

static json_t *stat_object(const tn_stat *s)
{
    json_t *object = json_object();
    put_stat(object, s);
    return object;
}

static json_t *api_stats(const tn_report *r, const tn_place *place)
{
    json_t *array = json_array();
    for (size_t i = 0; place->apis && i < r->api_count * TN_KIND_COUNT; i++) {
        const tn_stat *s = &place->apis[i];
        if (!s->allocs && !s->frees && !s->refused)
            continue;
        json_t *object = json_object();
        put_text(object, "api", r->apis[i / TN_KIND_COUNT].name);
        put_text(object, "kind", tn_kind_name(i % TN_KIND_COUNT));
        put_stat(object, s);
        append(array, object);
    }
    return array;
}

static void put_nulls(json_t *object, const char *const *keys)
{
    for (; *keys; keys++)
        put(object, *keys, json_null());
}

static json_t *device_object(const tn_report *r, const tn_place *p)
{
    static const char *const unmeasured[] = {"own_used_bytes", "baseline_bytes", "neighbour_bytes", "accounted_bytes",
                                             "accounted_ratio", "unattributed_bytes", "charges", "tiers", NULL};
    char uuid[TN_UUID_TEXT];
    json_t *object = json_object();
    put_text(object, "uuid", p->has_uuid ? tn_format_uuid(p->uuid, uuid) : NULL);
    put_text(object, "name", p->name);
    put(object, "ordinal", p->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(p->ordinal));
    put(object, "total_bytes", p->total_bytes ? json_integer((json_int_t)p->total_bytes) : json_null());
    put_nulls(object, unmeasured);
    put_stat(object, &p->total);
    put_integer(object, "ended_with_context", p->ended_with_context);
    json_t *kinds = json_object();
    for (unsigned k = TN_KIND_NONE + 1; k < TN_KIND_COUNT; k++)
        if (!tn_kind_is_host((uint8_t)k))
            put(kinds, tn_kind_name(k), stat_object(&p->kinds[k]));
    put(object, "kinds", kinds);
    put(object, "apis", api_stats(r, p));
    return object;
}

static json_t *host_object(const tn_report *r)
{
    const tn_place *host = &r->places[TN_PLACE_HOST];
    json_t *object = json_object(), *ranges = json_object();
    put(object, "pinned", stat_object(&host->kinds[TN_KIND_PINNED]));
    put(object, "registered", stat_object(&host->kinds[TN_KIND_REGISTERED]));
    put_integer(object, "ended_with_context", host->ended_with_context);
    put(object, "apis", api_stats(r, host));
    put(ranges, "reserved", stat_object(&r->reserved));
    put(ranges, "mapped", stat_object(&r->mapped));
    put(object, "address_ranges", ranges);
    return object;
}

/* ---- sites ---- */

static json_t *build_id_text(const tn_rec_module *module)
{
    char text[2 * sizeof(module->build_id) + 1];
    size_t bytes = module->build_id_bytes <= sizeof(module->build_id) ? module->build_id_bytes : sizeof(module->build_id);
    for (size_t i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
    return bytes ? json_string(text) : json_null();
}

static json_t *frame_object(tn_report *r, const tn_site *site, uint32_t i)
{
    const struct tn_frame *frame = &site->record->frames[i];
    tn_reader *reader = r->processes[site->process].reader;
    const tn_rec_module *module = tn_reader_module(reader, frame->module);
    const char *path = tn_reader_module_path(reader, frame->module);
    json_t *object = json_object();
    if (!module || module->jit) {
        put_text(object, "module", module ? "jit" : NULL);
        put(object, "path", json_null());
        put(object, "build_id", json_null());
    } else {
        put_text(object, "module", path ? tn_base_name(path) : NULL);
        put_text(object, "path", path);
        put(object, "build_id", build_id_text(module));
    }
    put_hex(object, "offset", frame->offset, 1, "0x");
    tn_symbol symbol = {0};
    tn_symbol_state state = TN_SYMBOL_NO_FILE;
    if (module)
        state = tn_symbols_find(r->symbols, module, path, frame->offset, &symbol);
    put_text(object, "symbol", symbol.name);
    put(object, "symbol_offset", symbol.name ? json_integer((json_int_t)symbol.delta) : json_null());
    put_text(object, "symbol_source", symbol.source);
    put_text(object, "symbol_missing", tn_symbol_state_text(state));
    return object;
}

static json_t *site_object(tn_report *r, const tn_row *row)
{
    const tn_site *site = &r->sites[row->site];
    json_t *object = json_object(), *names = json_array(), *frames = json_array();
    put_hex(object, "key", site->key, 16, "");
    for (unsigned i = 0; i < row->api_count; i++)
        append(names, tn_json_text(r->apis[row->apis[i]].name));
    put(object, "apis", names);
    put_text(object, "kind", tn_kind_name(row->kind));
    const tn_place *place = &r->places[row->place];
    put(object, "device", row->place == TN_PLACE_HOST || place->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(place->ordinal));
    put_stat(object, &row->stat);
    const char *owner = NULL;
    if (site->record && site->record->frame_count) {
        tn_reader *reader = r->processes[site->process].reader;
        uint32_t id = site->record->frames[0].module;
        const tn_rec_module *module = tn_reader_module(reader, id);
        const char *path = tn_reader_module_path(reader, id);
        owner = module && module->jit ? "jit" : path ? tn_base_name(path) : NULL;
        for (uint32_t i = 0; i < site->record->frame_count; i++)
            append(frames, frame_object(r, site, i));
    }
    put_text(object, "owner", owner);
    put(object, "cut", json_boolean(site->record && site->record->flags & TN_SF_CUT));
    put(object, "frames", frames);
    return object;
}

/* ---- coverage, processes, run ---- */

static json_t *coverage_array(const tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->api_count; i++) {
        const tn_api *a = &r->apis[i];
        json_t *object = json_object();
        put_text(object, "api", a->name);
        put_text(object, "level", tn_level_name(a->level));
        put_text(object, "class", tn_class_name(a->klass));
        put(object, "hooked", json_true());
        put_integer(object, "resolved", a->resolved);
        put_integer(object, "calls", a->calls);
        append(array, object);
    }
    return array;
}

static json_t *notes_array(const tn_report *r)
{
    json_t *array = json_array();
    for (size_t p = 0; p < r->process_count; p++) {
        const char *text = NULL;
        const tn_rec_coverage *record;
        for (size_t i = 0; (record = tn_reader_coverage(r->processes[p].reader, i, &text)); i++) {
            json_t *object = json_object();
            put_integer(object, "pid", tn_reader_header(r->processes[p].reader)->pid);
            put_text(object, "what", tn_coverage_name(record->what));
            put_text(object, "text", text);
            append(array, object);
        }
    }
    return array;
}

static void put_field(json_t *object, const char *key, const char *field, size_t size)
{
    char text[1025];
    size_t length = strnlen(field, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
    memcpy(text, field, length);
    text[length] = 0;
    put_text(object, key, length ? text : NULL);
}

static void put_version(json_t *object, const char *key, uint32_t version)
{
    put(object, key, version ? json_integer(version) : json_null());
}

static json_t *process_object(const tn_report *r, const tn_process *p)
{
    const tn_journal_header *h = tn_reader_header(p->reader);
    json_t *object = json_object();
    put_integer(object, "pid", h->pid);
    put_integer(object, "ppid", h->ppid);
    put_field(object, "host", h->host, sizeof(h->host));
    put_field(object, "exe", h->exe, sizeof(h->exe));
    put_field(object, "exe_build_id", h->exe_build_id, sizeof(h->exe_build_id));
    put(object, "cmdline", tn_run_command_json(r, h));
    put_text(object, "journal", p->journal);
    put_text(object, "mode", h->flags & TN_HF_BUFFERED ? "buffered" : "mapped");
    put_text(object, "linkage", h->flags & TN_HF_WRAP ? "wrap" : "preload");
    put_field(object, "libtenure", h->libtenure_path, sizeof(h->libtenure_path));
    put_text(object, "unwinder", h->flags & TN_HF_UNWIND_OWN ? "own" : "libunwind");
    put(object, "ended", json_boolean(h->flags & TN_HF_ENDED));
    put(object, "running", json_boolean(!p->ended));
    put_text(object, "stopped", h->flags & TN_HF_STOPPED ? tn_error_text((tn_error)h->stop_error) : NULL);
    put_integer(object, "dropped_events", h->dropped_events);
    put_integer(object, "dropped_records", h->dropped_records);
    put_text(object, "damage", tn_reader_damage(p->reader));
    put_integer(object, "events", tn_reader_event_count(p->reader));
    put_integer(object, "threads", tn_reader_thread_count(p->reader));
    put_integer(object, "duration_ns", p->ran_ns);
    put_version(object, "driver_version", h->driver_version);
    put_version(object, "runtime_version", h->runtime_version);
    put_integer(object, "frees_unknown", p->frees_unknown);
    put_integer(object, "frees_failed", p->frees_failed);
    put_integer(object, "replaced", p->replaced);
    return object;
}

static json_t *run_object(const tn_report *r)
{
    tn_run run;
    char time[TN_FIGURE];
    tn_run_collect(r, &run);
    json_t *object = json_object(), *warnings = json_array();
    put(object, "command", tn_run_command_json(r, NULL));
    put_text(object, "cwd", run.cwd);
    put_field(object, "host", run.host, strnlen(run.host, sizeof(((tn_journal_header *)0)->host)));
    put_text(object, "start", tn_format_time(run.start_ns, time));
    put_integer(object, "start_ns", run.start_ns);
    put_integer(object, "duration_ns", run.duration_ns);
    put(object, "exit_status", run.has_status ? json_integer(run.status) : json_null());
    put(object, "signal", run.has_signal ? json_integer(run.signal) : json_null());
    put_version(object, "driver_version", run.driver_version);
    put_version(object, "runtime_version", run.runtime_version);
    for (size_t i = 0; i < r->warning_count; i++)
        append(warnings, tn_json_text(r->warnings[i]));
    put(object, "warnings", warnings);
    put(object, "complete", json_boolean(tn_report_complete(r)));
    return object;
}

static json_t *phases_array(const tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->phase_count; i++) {
        json_t *object = json_object();
        put_integer(object, "pid", tn_reader_header(r->processes[r->phases[i].process].reader)->pid);
        put_text(object, "phase", tn_phase_name(r->phases[i].phase));
        put_integer(object, "cause", r->phases[i].cause);
        put_integer(object, "at_ns", r->phases[i].at_ns);
        append(array, object);
    }
    return array;
}

int tn_report_json(tn_report *r, FILE *out)
{
    static const char *const serving_keys[] = {"driver_allocations", "served_allocations", "pool_growths", "graph_growths",
                                               "charge_growths", "by_site", NULL};
    static const char *const routing_keys[] = {"planned_sites", "served_calls", "native_calls", "spilled_calls", "unplanned_calls", NULL};
    short_of_memory = 0;
    json_t *document = json_object(), *devices = json_array(), *sites = json_array(), *processes = json_array();
    json_t *serving = json_object(), *routing = json_object();
    put_text(document, "schema", "tenure-report/1");
    put(document, "run", run_object(r));
    for (size_t i = TN_PLACE_HOST + 1; i < r->place_count; i++)
        append(devices, device_object(r, &r->places[i]));
    put(document, "devices", devices);
    put(document, "host", host_object(r));
    put(document, "phases", phases_array(r));
    put_nulls(serving, serving_keys);
    put(document, "serving", serving);
    put_nulls(routing, routing_keys);
    put(document, "routing", routing);
    for (size_t i = 0; i < r->row_count; i++)
        append(sites, site_object(r, &r->rows[i]));
    put(document, "sites", sites);
    put(document, "coverage", coverage_array(r));
    put(document, "coverage_notes", notes_array(r));
    put_integer(document, "dropped_events", r->dropped_events);
    for (size_t i = 0; i < r->process_count; i++)
        append(processes, process_object(r, &r->processes[i]));
    put(document, "processes", processes);
    int failed = short_of_memory || json_dumpf(document, out, JSON_INDENT(1)) != 0 || fputc('\n', out) == EOF || fflush(out) != 0;
    json_decref(document);
    return failed ? -1 : 0;
}
