/* The report for programs: one JSON document with the keys in a fixed order. What is not measured is null. */
#include <stdio_ext.h>

#include "report/report_json_put.h"

json_t *tn_json_routing(tn_report *r)
{
    static const char *const keys[] = {"planned_sites", "served_calls", "native_calls", "spilled_calls", "unplanned_calls", NULL};
    (void)r;
    json_t *object = json_object();
    tn_json_put_nulls(object, keys);
    return object;
}

static json_t *dropped_events(tn_report *r)
{
    return json_integer((json_int_t)r->dropped_events);
}

static const struct part { const char *key; json_t *(*make)(tn_report *report); } parts[] = {
    {"run", tn_json_run},
    {"devices", tn_json_devices},
    {"host", tn_json_host},
    {"phases", tn_json_phases},
    {"marks", tn_json_marks},
    {"ranges", tn_json_ranges},
    {"serving", tn_json_serving},
    {"routing", tn_json_routing},
    {"sites", tn_json_sites},
    {"growth", tn_json_growth},
    {"refusals", tn_json_refusals},
    {"coverage", tn_json_coverage},
    {"coverage_notes", tn_json_coverage_notes},
    {"dropped_events", dropped_events},
    {"processes", tn_json_processes},
};

int tn_report_json(tn_report *r, FILE *out)
{
    tn_json_start();
    __fsetlocking(out, FSETLOCKING_BYCALLER); /* jansson writes in small pieces */
    json_t *document = json_object();
    tn_json_put_text(document, "schema", "tenure-report/1");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        tn_json_put(document, parts[i].key, parts[i].make(r));
    int failed = tn_json_failed() || json_dumpf(document, out, JSON_INDENT(1)) != 0 || fputc('\n', out) == EOF || fflush(out) != 0;
    json_decref(document);
    return failed ? -1 : 0;
}
