/* The report's account of each device. Rounding that small blocks share, and what a pool holds in reserve, go where a plan places the blocks,
 * so they are not charged. */
#define _GNU_SOURCE
#include "cli/plan_charges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/trace.h"
#include "report/report_device.h"
#include "report/report_names.h"
#include "report/report_run.h"

typedef struct figure { uint64_t bytes; char *source, *date; } figure;
typedef struct device { uint32_t ordinal; figure kinds[TN_LINE_KINDS]; } device;

struct plan_charges {
    device *devices;
    size_t count;
};

static int is_charge(int kind)
{
    return kind != TN_LINE_BLOCKS && kind != TN_LINE_ARENAS && kind != TN_LINE_SHARED && kind != TN_LINE_POOL_SLACK;
}

static int note(figure *f, int64_t bytes, const char *source, const char *date)
{
    if (bytes <= 0 || (uint64_t)bytes < f->bytes)
        return 1;
    /* Of equals the one whose name comes first, then the earlier one, so that the order of the runs does not show. */
    if ((uint64_t)bytes == f->bytes) {
        int order = strcmp(source, f->source);
        if (order > 0 || (order == 0 && strcmp(date, f->date) >= 0))
            return 1;
    }
    char *s = strdup(source), *d = strdup(date);
    if (!s || !d) {
        free(s);
        free(d);
        return 0;
    }
    free(f->source);
    free(f->date);
    *f = (figure){.bytes = (uint64_t)bytes, .source = s, .date = d};
    return 1;
}

static int take_account(plan_charges *c, uint32_t ordinal, const tn_device_account *a, const char *source, const char *date)
{
    size_t i = 0;
    while (i < c->count && c->devices[i].ordinal != ordinal)
        i++;
    if (i == c->count) {
        device *d = TN_TRACE_PUSH(c->devices, c->count);
        if (!d)
            return 0;
        *d = (device){.ordinal = ordinal};
    }
    for (int k = 0; k < TN_LINE_KINDS; k++) {
        if (!is_charge(k))
            continue;
        int made = note(&c->devices[i].kinds[k], a->last.kinds[k], source, date);
        for (size_t m = 0; m < a->mark_count && made; m++)
            made = note(&c->devices[i].kinds[k], a->marks[m].kinds[k], source, date);
        if (!made)
            return 0;
    }
    return 1;
}

static tn_error read_run(plan_charges *c, const char *path, char message[TN_PLAN_MESSAGE])
{
    tn_report *report;
    tn_symbol_options none = {0};
    tn_report_load_options options = {.symbols = &none};
    tn_error error = tn_report_load_with(path, &options, &report, message);
    if (error != TN_OK)
        return error;
    tn_run run;
    char date[16] = "", source[256];
    tn_run_collect(report, &run);
    time_t seconds = (time_t)(run.start_ns / 1000000000u);
    struct tm tm;
    if (gmtime_r(&seconds, &tm))
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *name = strndup(path, length);
    snprintf(source, sizeof source, "measured in %.200s", name ? tn_base_name(name) : path);
    free(name);
    for (uint32_t i = TN_PLACE_HOST + 1; i < report->place_count && error == TN_OK; i++) {
        const tn_device_account *a = tn_device_account_of(report, i);
        if (a && a->has_readings && !take_account(c, report->places[i].ordinal, a, source, date))
            error = TN_E_NOMEM;
    }
    tn_report_free(report);
    return error;
}

tn_error plan_charges_read(const char *const *runs, size_t count, plan_charges **out, char message[TN_PLAN_MESSAGE])
{
    plan_charges *c = calloc(1, sizeof *c);
    tn_error error = c ? TN_OK : TN_E_NOMEM;
    *out = NULL;
    for (size_t i = 0; i < count && error == TN_OK; i++)
        error = read_run(c, runs[i], message);
    if (error == TN_OK)
        *out = c;
    else
        plan_charges_free(c);
    if (error == TN_E_NOMEM)
        snprintf(message, TN_PLAN_MESSAGE, "no memory left to read the charges of the runs");
    return error;
}

void plan_charges_free(plan_charges *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        for (int k = 0; k < TN_LINE_KINDS; k++) {
            free(c->devices[i].kinds[k].source);
            free(c->devices[i].kinds[k].date);
        }
    free(c->devices);
    free(c);
}

void plan_charges_fill(const plan_charges *c, tn_plan *plan, tn_plan_section *section)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->devices[i].ordinal != section->device)
            continue;
        for (int k = 0; k < TN_LINE_KINDS; k++) {
            const figure *f = &c->devices[i].kinds[k];
            tn_plan_charge *charge = f->bytes ? tn_plan_add_charge(plan, section) : NULL;
            if (charge)
                *charge = (tn_plan_charge){.name = tn_line_kind_name((tn_line_kind)k), .source = tn_plan_text(plan, f->source),
                                           .date = tn_plan_text(plan, f->date), .bytes = f->bytes};
        }
    }
}
