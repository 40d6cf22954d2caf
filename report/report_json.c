/* The report for programs: one JSON document with the keys in a fixed order. What is not measured is null. */
#include <stdio_ext.h>

#include "report/report_json_put.h"

static json_t *dropped_events(tn_report *r)
{
    return json_integer((json_int_t)r->dropped_events);
}

/* Sites are many: each is made, written and given back before the next. */
static const struct part {
    const char *key;
    json_t *(*make)(tn_report *report);
    int (*write)(tn_report *report, FILE *out);
} parts[] = {
    {"run", tn_json_run, NULL},
    {"devices", tn_json_devices, NULL},
    {"host", tn_json_host, NULL},
    {"phases", tn_json_phases, NULL},
    {"marks", tn_json_marks, NULL},
    {"ranges", tn_json_ranges, NULL},
    {"serving", tn_json_serving, NULL},
    {"routing", tn_json_routing, NULL},
    {"checks", tn_json_checks, NULL},
    {"sites", NULL, tn_json_write_sites},
    {"growth", tn_json_growth, NULL},
    {"refusals", tn_json_refusals, NULL},
    {"coverage", tn_json_coverage, NULL},
    {"coverage_notes", tn_json_coverage_notes, NULL},
    {"dropped_events", dropped_events, NULL},
    {"processes", tn_json_processes, NULL},
};

int tn_json_write(json_t *value, FILE *out)
{
    int failed = tn_json_failed() || !value || json_dumpf(value, out, JSON_INDENT(1) | JSON_ENCODE_ANY) != 0;
    json_decref(value);
    return failed ? -1 : 0;
}

int tn_report_json(tn_report *r, FILE *out)
{
    tn_json_start();
    __fsetlocking(out, FSETLOCKING_BYCALLER); /* jansson writes in small pieces */
    int failed = fputs("{\n\"schema\": \"tenure-report/1\"", out) == EOF;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !failed; i++) {
        fprintf(out, ",\n\"%s\": ", parts[i].key);
        failed = (parts[i].write ? parts[i].write(r, out) : tn_json_write(parts[i].make(r), out)) != 0;
    }
    return failed || fputs("\n}\n", out) == EOF || fflush(out) != 0 ? -1 : 0;
}
