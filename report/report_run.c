/* Facts about the run as a whole. */
#define _GNU_SOURCE
#include "report/report_run.h"

#include <stdlib.h>
#include <string.h>

static uint64_t run_integer(const tn_report *report, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(report->run, key));
    return value > 0 ? (uint64_t)value : 0;
}

void tn_run_collect(const tn_report *report, tn_run *out)
{
    *out = (tn_run){.host = json_string_value(json_object_get(report->run, "host")),
                    .cwd = json_string_value(json_object_get(report->run, "cwd"))};
    uint64_t first = UINT64_MAX, last = 0, first_real = UINT64_MAX;
    for (size_t i = 0; i < report->process_count; i++) {
        const tn_process *p = &report->processes[i];
        const tn_journal_header *h = tn_reader_header(p->reader);
        if (p->start_ns < first)
            first = p->start_ns;
        if (p->start_ns + p->ran_ns > last)
            last = p->start_ns + p->ran_ns;
        if (h->real_start_ns < first_real)
            first_real = h->real_start_ns;
        if (!out->host)
            out->host = h->host;
        if (out->driver_version < h->driver_version)
            out->driver_version = h->driver_version;
        if (out->runtime_version < h->runtime_version)
            out->runtime_version = h->runtime_version;
    }
    out->start_ns = run_integer(report, "start_ns");
    uint64_t end_ns = run_integer(report, "end_ns");
    if (out->start_ns && end_ns > out->start_ns) {
        out->duration_ns = end_ns - out->start_ns;
    } else {
        if (!out->start_ns)
            out->start_ns = first_real;
        out->duration_ns = last > first ? last - first : 0;
    }
    const json_t *status = json_object_get(report->run, "exit_status"), *signal = json_object_get(report->run, "signal");
    out->has_status = json_is_integer(status);
    out->status = (int)json_integer_value(status);
    out->has_signal = json_is_integer(signal);
    out->signal = (int)json_integer_value(signal);
}

json_t *tn_run_command_json(const tn_report *report, const tn_journal_header *header)
{
    json_t *array = json_array();
    if (!header) {
        json_t *command = json_object_get(report->run, "command");
        if (json_is_array(command)) {
            json_decref(array);
            return json_incref(command);
        }
        header = tn_reader_header(report->processes[0].reader);
    }
    char text[sizeof(header->cmdline) + 1];
    memcpy(text, header->cmdline, sizeof(header->cmdline));
    text[sizeof(header->cmdline)] = 0;
    /* Arguments may be empty; what ends the list is that nothing but NULs follows. */
    size_t end = sizeof(header->cmdline);
    while (end > 0 && text[end - 1] == 0)
        end--;
    for (size_t at = 0; at < end; at += strlen(text + at) + 1)
        if (json_array_append_new(array, tn_json_text(text + at)) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

char *tn_run_command_text(const tn_report *report)
{
    json_t *command = tn_run_command_json(report, NULL);
    if (!command)
        return NULL;
    char *line = NULL;
    size_t length = 0, i;
    json_t *argument;
    FILE *out = open_memstream(&line, &length);
    if (out) {
        json_array_foreach(command, i, argument) {
            const char *text = json_is_string(argument) ? json_string_value(argument) : "?";
            int quote = *text == 0 || strpbrk(text, " \t\n\"'\\$&|;<>*?") != NULL;
            fprintf(out, quote ? "%s'%s'" : "%s%s", i ? " " : "", text);
        }
        if (fclose(out) != 0) {
            free(line);
            line = NULL;
        }
    }
    json_decref(command);
    return line;
}
