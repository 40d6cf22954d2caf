/* The run, its processes and what its hooks covered as JSON. */
#define _GNU_SOURCE
#include <string.h>

#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_run.h"

json_t *tn_json_coverage(tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->api_count; i++) {
        const tn_api *a = &r->apis[i];
        json_t *object = json_object();
        tn_json_put_text(object, "api", a->name);
        tn_json_put_text(object, "level", tn_level_name(a->level));
        tn_json_put_text(object, "class", tn_class_name(a->klass));
        tn_json_put(object, "hooked", json_true());
        tn_json_put_integer(object, "resolved", a->resolved);
        tn_json_put_integer(object, "calls", a->calls);
        tn_json_append(array, object);
    }
    return array;
}

json_t *tn_json_coverage_notes(tn_report *r)
{
    json_t *array = json_array();
    for (size_t p = 0; p < r->process_count; p++) {
        const char *text = NULL;
        const tn_rec_coverage *record;
        for (size_t i = 0; (record = tn_reader_coverage(r->processes[p].reader, i, &text)); i++) {
            json_t *object = json_object();
            tn_json_put_integer(object, "pid", tn_reader_header(r->processes[p].reader)->pid);
            tn_json_put_text(object, "what", tn_coverage_name(record->what));
            tn_json_put_text(object, "text", text);
            tn_json_append(array, object);
        }
    }
    return array;
}

static json_t *process_object(const tn_report *r, const tn_process *p)
{
    const tn_journal_header *h = tn_reader_header(p->reader);
    json_t *object = json_object();
    tn_json_put_integer(object, "pid", h->pid);
    tn_json_put_integer(object, "ppid", h->ppid);
    tn_json_put_field(object, "host", h->host, sizeof(h->host));
    tn_json_put_field(object, "exe", h->exe, sizeof(h->exe));
    tn_json_put_field(object, "exe_build_id", h->exe_build_id, sizeof(h->exe_build_id));
    tn_json_put(object, "cmdline", tn_run_command_json(r, h));
    tn_json_put_text(object, "journal", p->journal);
    tn_json_put_text(object, "mode", h->flags & TN_HF_BUFFERED ? "buffered" : "mapped");
    tn_json_put_text(object, "linkage", h->flags & TN_HF_WRAP ? "wrap" : "preload");
    tn_json_put_field(object, "libtenure", h->libtenure_path, sizeof(h->libtenure_path));
    tn_json_put_text(object, "unwinder", h->flags & TN_HF_UNWIND_OWN ? "own" : "libunwind");
    tn_json_put(object, "ended", json_boolean(h->flags & TN_HF_ENDED));
    tn_json_put(object, "running", json_boolean(!p->ended));
    tn_json_put_text(object, "stopped", h->flags & TN_HF_STOPPED ? tn_error_text((tn_error)h->stop_error) : NULL);
    tn_json_put_integer(object, "dropped_events", h->dropped_events);
    tn_json_put_integer(object, "dropped_records", h->dropped_records);
    tn_json_put_text(object, "damage", tn_reader_damage(p->reader));
    tn_json_put_integer(object, "events", tn_reader_event_count(p->reader));
    tn_json_put_integer(object, "threads", tn_reader_thread_count(p->reader));
    tn_json_put_integer(object, "duration_ns", p->ran_ns);
    tn_json_put_version(object, "driver_version", h->driver_version);
    tn_json_put_version(object, "runtime_version", h->runtime_version);
    tn_json_put_integer(object, "frees_unknown", p->frees_unknown);
    tn_json_put_integer(object, "frees_failed", p->frees_failed);
    tn_json_put_integer(object, "replaced", p->replaced);
    return object;
}

json_t *tn_json_run(tn_report *r)
{
    tn_run run;
    char time[TN_FIGURE];
    tn_run_collect(r, &run);
    json_t *object = json_object(), *warnings = json_array();
    tn_json_put(object, "command", tn_run_command_json(r, NULL));
    tn_json_put_text(object, "cwd", run.cwd);
    tn_json_put_field(object, "host", run.host, strnlen(run.host, sizeof(((tn_journal_header *)0)->host)));
    tn_json_put_text(object, "start", tn_format_time(run.start_ns, time));
    tn_json_put_integer(object, "start_ns", run.start_ns);
    tn_json_put_integer(object, "duration_ns", run.duration_ns);
    tn_json_put(object, "exit_status", run.has_status ? json_integer(run.status) : json_null());
    tn_json_put(object, "signal", run.has_signal ? json_integer(run.signal) : json_null());
    tn_json_put_version(object, "driver_version", run.driver_version);
    tn_json_put_version(object, "runtime_version", run.runtime_version);
    for (size_t i = 0; i < r->warning_count; i++)
        tn_json_append(warnings, tn_json_text(r->warnings[i]));
    tn_json_put(object, "warnings", warnings);
    json_t *at = r->stop.reached ? json_object() : json_null();
    if (r->stop.reached) {
        tn_json_put(at, "mark", r->stop.number ? json_integer(r->stop.number) : json_null());
        tn_json_put_text(at, r->stop.number ? "text" : "phase", r->stop.text);
        tn_json_put_integer(at, "at_ns", r->stop.ns);
    }
    tn_json_put(object, "at", at);
    tn_json_put(object, "complete", json_boolean(tn_report_complete(r)));
    return object;
}

json_t *tn_json_processes(tn_report *r)
{
    json_t *processes = json_array();
    for (size_t i = 0; i < r->process_count; i++)
        tn_json_append(processes, process_object(r, &r->processes[i]));
    return processes;
}
