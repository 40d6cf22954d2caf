/* The report's account of each device as charges, and the set-up that it was measured in. */
#define _GNU_SOURCE
#include "cli/remember.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "ledger/journal_reader.h"
#include "report/report_device.h"
#include "report/report_names.h"
#include "report/report_owner.h"
#include "report/report_run.h"

enum { LIBRARIES = 64 };

typedef struct set_up {
    char gpu[TN_RESERVE_TEXT], driver[TN_RESERVE_TEXT], loading[TN_RESERVE_TEXT];
    char texts[LIBRARIES][TN_RESERVE_TEXT];
    const char *libraries[LIBRARIES];
    size_t count;
} set_up;

/* NVIDIA's libraries, which claim memory of their own. An engine's libraries are the program's. */
static bool is_cuda_library(const char *name)
{
    static const char *const beginnings[] = {"libcublas",     "libcudnn", "libcufft",  "libcusolver", "libcusparse", "libcurand", "libcutensor",
                                             "libnvJitLink", "libnccl",  "libnvrtc", "libnvshmem",  "libnvinfer"};
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static tn_charge charge_of(tn_line_kind kind)
{
    switch (kind) {
    case TN_LINE_CONTEXT:
        return TN_CLAIM_CONTEXT;
    case TN_LINE_MODULE:
    case TN_LINE_LAUNCH:
        return TN_CLAIM_MODULES;
    case TN_LINE_STREAM:
    case TN_LINE_EVENT:
        return TN_CLAIM_STREAMS;
    case TN_LINE_GRAPH:
    case TN_LINE_GRAPH_MEMORY:
        return TN_CLAIM_GRAPHS;
    case TN_LINE_LIMIT:
        return TN_CLAIM_LIMITS;
    case TN_LINE_SHARED:
    case TN_LINE_POOL_SLACK:
        return TN_CLAIM_POOLS;
    default:
        return TN_CLAIM_OTHER;
    }
}

/* One reading's kinds summed to charges; what is left over is a charge, too, where it is not negative. */
static void most_of(const tn_reading_view *view, tn_charges *out)
{
    int64_t sums[TN_CHARGES] = {0};
    for (int kind = TN_LINE_ARENAS + 1; kind < TN_LINE_KINDS; kind++)
        sums[charge_of((tn_line_kind)kind)] += view->kinds[kind];
    if (view->unattributed > 0)
        sums[TN_CLAIM_OTHER] += view->unattributed;
    for (int i = 0; i < TN_CHARGES; i++)
        if (sums[i] > 0 && (uint64_t)sums[i] > out->bytes[i])
            out->bytes[i] = (uint64_t)sums[i];
}

static tn_charges charges_of(const tn_report *report, const tn_device_account *account)
{
    tn_charges charges = {.bytes = {0}};
    most_of(&account->last, &charges);
    for (size_t i = 0; i < account->mark_count; i++)
        most_of(&account->marks[i], &charges);
    int64_t claimed = 0;
    for (size_t i = 0; i < account->line_count; i++) {
        const tn_line *line = &account->lines[i];
        if (line->kind == TN_LINE_BLOCKS && line->site != TN_NO_INDEX && is_cuda_library(tn_owner_of_site(report, line->site).name))
            claimed += tn_line_bytes(line);
    }
    charges.bytes[TN_CLAIM_LIBRARIES] = claimed > 0 ? (uint64_t)claimed : 0;
    return charges;
}

static void add_library(set_up *s, const char *text)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->texts[i], text) == 0)
            return;
    if (s->count == LIBRARIES)
        return;
    snprintf(s->texts[s->count], TN_RESERVE_TEXT, "%s", text);
    s->libraries[s->count] = s->texts[s->count];
    s->count++;
}

static void add_module(set_up *s, const tn_rec_module *module, const char *path)
{
    const char *name = path ? tn_base_name(path) : "";
    if (!module || (!is_cuda_library(name) && strncmp(name, "libcuda.", 8) != 0 && strncmp(name, "libcudart.", 10) != 0))
        return;
    char text[TN_RESERVE_TEXT], id[2 * sizeof(module->build_id) + 1] = "";
    size_t bytes = module->build_id_bytes ? module->build_id_bytes : 8;
    for (size_t i = 0; i < bytes && i < sizeof(module->build_id); i++)
        snprintf(id + 2 * i, 3, "%02x", module->build_id[i]);
    snprintf(text, sizeof(text), "%.56s %.64s", name, id);
    add_library(s, text);
}

/* The modules that stand in a stack of the run: what was called into memory calls. */
static void add_modules(set_up *s, const tn_reader *reader)
{
    for (uint32_t id = 0; id < tn_reader_site_end(reader); id++) {
        const tn_rec_site *site = tn_reader_site(reader, id);
        for (uint32_t i = 0; site && i < site->frame_count; i++)
            add_module(s, tn_reader_module(reader, site->frames[i].module), tn_reader_module_path(reader, site->frames[i].module));
    }
}

static void set_up_of(const tn_report *report, const tn_run *run, set_up *s)
{
    char text[TN_RESERVE_TEXT];
    memset(s, 0, sizeof(*s));
    snprintf(s->driver, sizeof(s->driver), "%u", run->driver_version);
    const char *loading = report->run ? json_string_value(json_object_get(report->run, "module_loading")) : NULL;
    snprintf(s->loading, sizeof(s->loading), "%.100s", loading ? loading : "unknown");
    snprintf(text, sizeof(text), "cudart %u", run->runtime_version);
    add_library(s, text);
    for (size_t p = 0; p < report->process_count; p++)
        add_modules(s, report->processes[p].reader);
}

/* Whether it got as far as an engine that serves, or ended well. */
static bool got_there(const tn_report *report, const tn_run *run)
{
    if (!tn_report_complete(report))
        return false;
    if (run->has_status && run->status == 0)
        return true;
    for (uint32_t i = 0; i < report->place_count; i++) {
        const tn_device_account *a = tn_device_account_of(report, i);
        for (size_t m = 0; a && m < a->mark_count; m++)
            if (a->marks[m].cause == TN_READ_PHASE && a->marks[m].label && strcmp(a->marks[m].label, "serving") == 0)
                return true;
    }
    return false;
}

static int remember_device(const char *command, const tn_report *report, const tn_run *run, uint32_t place, const set_up *s, const char *path)
{
    const tn_place *device = &report->places[place];
    char message[TN_RESERVE_MESSAGE], name[TN_RESERVE_TEXT], date[16] = "";
    time_t seconds = (time_t)(run->start_ns / 1000000000u);
    struct tm tm;
    if (gmtime_r(&seconds, &tm))
        strftime(date, sizeof(date), "%Y-%m-%d", &tm);
    snprintf(name, sizeof(name), "%.60s %" PRIu64 " gpu%u", run->host ? run->host : "", run->start_ns, device->ordinal);
    tn_measurement measurement = {.run = name, .date = date, .complete = got_there(report, run)};
    measurement.charges = charges_of(report, tn_device_account_of(report, place));
    tn_reserve_key key = {device->name ? device->name : "unknown", s->driver, s->loading, s->libraries, s->count};
    tn_reserve_error error = tn_reserve_remember(path, &key, &measurement, message);
    if (error == TN_RESERVE_REFUSED) {
        cli_warn(command, "%s is not remembered: it dropped events, failed before it served, or measured nothing", report->path);
        return TN_EXIT_INCONCLUSIVE;
    }
    if (error != TN_RESERVE_OK)
        return cli_fail(command, "%s", message);
    uint64_t all = 0;
    char figure[TN_FIGURE];
    for (int i = 0; i < TN_CHARGES; i++)
        all += measurement.charges.bytes[i];
    printf("%s, driver %s, loading %s: %s of charges remembered in %s\n", key.gpu, key.driver, key.loading, tn_format_bytes(all, figure), path);
    return TN_EXIT_HOLDS;
}

int cli_remember(const char *command, const char *run_path, const char *path)
{
    char message[TN_REPORT_MESSAGE];
    tn_report *report;
    struct tn_symbol_options none = {.seconds = 0};
    tn_report_load_options options = {.symbols = &none};
    tn_error error = tn_report_load_with(run_path, &options, &report, message);
    if (error != TN_OK) {
        cli_fail(command, "%s", message);
        return error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
    }
    tn_run run;
    static set_up s;
    tn_run_collect(report, &run);
    set_up_of(report, &run, &s);
    int code = TN_EXIT_HOLDS, devices = 0;
    for (uint32_t i = TN_PLACE_HOST + 1; i < report->place_count && code == TN_EXIT_HOLDS; i++) {
        const tn_device_account *a = tn_device_account_of(report, i);
        if (!a || !a->has_readings)
            continue;
        devices++;
        code = remember_device(command, report, &run, i, &s, path);
    }
    if (!devices) {
        cli_warn(command, "%s is not remembered: no device's memory was read in it", report->path);
        code = TN_EXIT_INCONCLUSIVE;
    }
    tn_report_free(report);
    return code;
}
