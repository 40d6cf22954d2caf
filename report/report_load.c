/* Opens the journals of a run folder, or one journal, and makes a report of them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report_alive.h"
#include "report/report_merge.h"
#include "report/report_names.h"
#include "report/report_watch.h"

void tn_report_warn(tn_report *report, const char *format, ...)
{
    char **grown = realloc(report->warnings, (report->warning_count + 1) * sizeof(char *));
    if (!grown)
        return;
    report->warnings = grown;
    va_list args;
    va_start(args, format);
    if (vasprintf(&grown[report->warning_count], format, args) >= 0)
        report->warning_count++;
    va_end(args);
}

const char *tn_report_warning(const tn_report *report, size_t i)
{
    return i < report->warning_count ? report->warnings[i] : NULL;
}

int tn_report_complete(const tn_report *report)
{
    return !report->unread && !report->unwritten;
}

int tn_report_unread(const tn_report *report)
{
    return report->unread;
}

void tn_report_free(tn_report *report)
{
    if (!report)
        return;
    tn_watch_drop(report);
    for (size_t i = 0; i < report->process_count; i++) {
        tn_process *p = &report->processes[i];
        tn_reader_close(p->reader);
        free(p->journal);
        free(p->api_of);
        free(p->site_of);
        free(p->place_of);
    }
    for (size_t i = 0; i < report->place_count; i++) {
        free(report->places[i].apis);
        free(report->places[i].owners);
    }
    for (size_t i = 0; i < report->warning_count; i++)
        free(report->warnings[i]);
    free(report->processes);
    free(report->places);
    free(report->apis);
    free(report->sites);
    free((void *)report->owners);
    free(report->rows);
    free(report->row_order);
    free(report->warnings);
    tn_symbols_free(report->symbols);
    json_decref(report->run);
    free(report->path);
    free(report);
}

/* ---- finding the files ---- */

static int is_journal_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(TN_JOURNAL_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, TN_JOURNAL_SUFFIX) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The *.tnj names of a folder in byte order. TN_OK also for none of them. */
static tn_error list_journals(const char *folder, char ***names, size_t *count)
{
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return TN_E_OPEN;
    tn_error error = TN_OK;
    struct dirent *entry;
    while (error == TN_OK && (entry = readdir(dir))) {
        if (!is_journal_name(entry->d_name))
            continue;
        char **grown = realloc(*names, (*count + 1) * sizeof(char *));
        if (grown)
            *names = grown;
        if (!grown || !(grown[*count] = strdup(entry->d_name)))
            error = TN_E_NOMEM;
        else
            ++*count;
    }
    closedir(dir);
    if (*count)
        qsort(*names, *count, sizeof(char *), by_name);
    return error;
}

/* run.json is written by `tenure record`; a run under LD_PRELOAD alone has none. */
static void load_run_file(tn_report *report)
{
    char *path = NULL;
    if (asprintf(&path, "%s/run.json", report->path) < 0)
        return;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        json_error_t error;
        report->run = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
        if (!report->run || !json_is_object(report->run)) {
            tn_report_warn(report, "run.json of the run folder cannot be read; command and times are taken from the journals");
            json_decref(report->run);
            report->run = NULL;
        }
    }
    free(path);
}

static void warn_about_processes(tn_report *report)
{
    for (size_t i = 0; i < report->process_count; i++) {
        const tn_process *p = &report->processes[i];
        const tn_journal_header *h = tn_reader_header(p->reader);
        report->dropped_events += h->dropped_events;
        if (h->dropped_events || h->dropped_records)
            tn_report_warn(report, "process %u dropped %llu event%s and %llu record%s: the figures below are too low", h->pid,
                           (unsigned long long)h->dropped_events, TN_PLURAL(h->dropped_events),
                           (unsigned long long)h->dropped_records, TN_PLURAL(h->dropped_records));
        if (h->dropped_events || h->dropped_records || (h->flags & TN_HF_STOPPED))
            report->unwritten = 1;
        if (h->flags & TN_HF_STOPPED)
            tn_report_warn(report, "process %u stopped recording: %s", h->pid, tn_error_text((tn_error)h->stop_error));
        if (tn_reader_damage(p->reader)) {
            tn_report_warn(report, "%s: %s", p->journal, tn_reader_damage(p->reader));
            report->unread = 1;
        }
    }
}

/* ---- opening ---- */

static tn_error open_journal(tn_report *report, const char *path)
{
    tn_reader *reader = NULL;
    tn_error error = tn_reader_open(path, &reader);
    if (error != TN_OK)
        return error;
    tn_process *grown = realloc(report->processes, (report->process_count + 1) * sizeof(*grown));
    char *name = strdup(tn_base_name(path));
    if (grown)
        report->processes = grown;
    if (!grown || !name) {
        free(name);
        tn_reader_close(reader);
        return TN_E_NOMEM;
    }
    grown[report->process_count++] = (tn_process){.reader = reader, .journal = name};
    return TN_OK;
}

static tn_error open_folder(tn_report *report, char message[TN_REPORT_MESSAGE])
{
    char **names;
    size_t count, bad = 0;
    tn_error error = list_journals(report->path, &names, &count), first = TN_OK;
    if (error == TN_E_OPEN)
        snprintf(message, TN_REPORT_MESSAGE, "%s: %s", report->path, strerror(errno));
    else if (error == TN_OK && count == 0) {
        snprintf(message, TN_REPORT_MESSAGE, "%s: no journal (*%s) in this folder", report->path, TN_JOURNAL_SUFFIX);
        error = TN_E_EMPTY;
    }
    for (size_t i = 0; i < count && error == TN_OK; i++) {
        char *path = NULL;
        tn_error opened = asprintf(&path, "%s/%s", report->path, names[i]) < 0 ? TN_E_NOMEM : open_journal(report, path);
        if (opened == TN_E_NOMEM)
            error = opened;
        else if (opened != TN_OK) {
            tn_report_warn(report, "%s cannot be read and is left out: %s", names[i], tn_error_text(opened));
            report->unread = 1;
            if (bad++ == 0) {
                first = opened;
                snprintf(message, TN_REPORT_MESSAGE, "%s: %s", path, tn_error_text(opened));
            }
        }
        free(path);
    }
    if (error == TN_OK && bad == count)
        error = first;
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return error;
}

/* A mark that never came, and which did. */
static void describe_stop(const tn_report *report, char message[TN_REPORT_MESSAGE])
{
    const tn_stop *stop = &report->stop;
    if (stop->marks)
        snprintf(message, TN_REPORT_MESSAGE, "%s: there is no mark or phase %s in this run, whose marks are %s", report->path, stop->wanted, stop->seen);
    else
        snprintf(message, TN_REPORT_MESSAGE, "%s: there is no mark or phase %s in this run, which has no marks", report->path, stop->wanted);
    for (char *c = message; *c; c++) /* marks are the program's own text: none of its control characters reaches a terminal */
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
}

tn_error tn_report_load(const char *path, tn_report **out, char message[TN_REPORT_MESSAGE])
{
    return tn_report_load_with(path, &(tn_report_load_options){0}, out, message);
}

tn_error tn_report_load_with(const char *path, const tn_report_load_options *options, tn_report **out, char message[TN_REPORT_MESSAGE])
{
    *out = NULL;
    message[0] = 0;
    tn_error error = TN_E_NOMEM;
    tn_report *report = calloc(1, sizeof(*report));
    if (!report)
        goto fail;
    report->path = strdup(path);
    report->symbols = tn_symbols_new(options->symbols);
    report->stop.wanted = options->at;
    if (!report->path || !report->symbols)
        goto fail;
    struct stat st;
    if (stat(path, &st) != 0) {
        error = TN_E_OPEN;
        snprintf(message, TN_REPORT_MESSAGE, "%s: %s", path, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        load_run_file(report);
        error = open_folder(report, message);
    } else {
        error = open_journal(report, path);
        if (error != TN_OK)
            snprintf(message, TN_REPORT_MESSAGE, "%s: %s", path, tn_error_text(error));
    }
    if (error == TN_OK)
        error = tn_merge(report);
    if (error == TN_OK) {
        warn_about_processes(report);
        tn_alive_mark(report);
        error = tn_replay(report);
        if (error == TN_E_NOTFOUND)
            describe_stop(report, message);
    }
    if (error == TN_OK) {
        *out = report;
        return TN_OK;
    }
fail:
    if (error == TN_E_NOMEM)
        snprintf(message, TN_REPORT_MESSAGE, "%s: no memory left to read it", path);
    tn_report_free(report);
    return error;
}
