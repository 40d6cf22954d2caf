/* Joining: for each site of a run, the frame that called CUDA, and the lines of the census that it stands for. */
#define _GNU_SOURCE
#include "census/census_runs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "census/census_paths.h"
#include "report/report_short_name.h"
#include "report/report_stack.h"

/* Names and lines are the point here, unlike in a report. */
#define LOOK_UP_SECONDS 120.0

enum { MOST_CANDIDATES = 64 }; /* lines that one frame may stand for; more are no longer told apart */

static int is_counted(const tn_census *census, const tn_code_use *use)
{
    return use->kind == TN_USE_IS_CALL && tn_apis_use(census->apis, use->api) == TN_USE_ALLOC;
}

/* The lines of all files with calls; -1 when no memory is left. */
static int collect_lines(tn_runs *runs)
{
    const tn_census *census = runs->census;
    size_t total = 0;
    for (size_t i = 0; i < census->file_count; i++)
        total += census->files[i].tally.lines[TN_USE_ALLOC];
    runs->lines = calloc(total + 1, sizeof(*runs->lines));
    if (!runs->lines)
        return -1;
    for (size_t i = 0; i < census->file_count; i++) {
        const tn_code_uses *uses = &census->files[i].uses;
        tn_run_line *line = NULL;
        for (size_t k = 0; k < uses->count; k++) {
            const tn_code_use *use = &uses->items[k];
            if (!is_counted(census, use))
                continue;
            if (!line || line->line != use->line) {
                line = &runs->lines[runs->line_count++];
                *line = (tn_run_line){.file = i, .first_use = k, .line = use->line, .state = TN_LINE_MACRO};
            }
            line->uses = k + 1 - line->first_use;
            if (!use->in_macro)
                line->state = TN_LINE_NEVER;
        }
    }
    return 0;
}

tn_runs *tn_runs_new(const tn_census *census)
{
    tn_runs *runs = calloc(1, sizeof(*runs));
    if (!runs)
        return NULL;
    runs->census = census;
    if (collect_lines(runs) == 0)
        return runs;
    tn_runs_free(runs);
    return NULL;
}

static void free_path(tn_call_path *path)
{
    free(path->api);
    free(path->where);
    free(path->through);
}

void tn_runs_free(tn_runs *runs)
{
    if (!runs)
        return;
    for (size_t i = 0; i < runs->path_count; i++)
        free_path(&runs->paths[i]);
    free(runs->paths);
    free(runs->lines);
    free(runs);
}

/* The first line of a file at or behind `number`. */
static size_t line_from(const tn_runs *runs, size_t file, uint64_t number)
{
    size_t low = 0, high = runs->line_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const tn_run_line *line = &runs->lines[middle];
        if (line->file < file || (line->file == file && line->line < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Does one of the line's calls, a wrapper's only if `wrappers`, stand on source line `number` or around it? Its extent, 0 if not. */
static uint64_t extent_at(const tn_runs *runs, const tn_run_line *line, uint64_t number, int wrappers)
{
    const tn_census *census = runs->census;
    const tn_code_use *uses = census->files[line->file].uses.items + line->first_use;
    uint64_t best = 0;
    for (size_t i = 0; i < line->uses; i++) {
        const tn_code_use *use = &uses[i];
        if (!is_counted(census, use) || use->in_macro || (wrappers && !tn_apis_is_wrapper(census->apis, use->api)))
            continue;
        uint64_t extent = number == use->line ? 1 : number >= use->first && number <= use->last ? use->last - use->first + 2 : 0;
        if (extent && (!best || extent < best))
            best = extent;
    }
    return best;
}

/* The lines that hold a call on `number`, else those whose call's parentheses lie around it most closely. */
static size_t lines_at(const tn_runs *runs, size_t file, uint64_t number, int wrappers, size_t out[MOST_CANDIDATES])
{
    const tn_code_uses *uses = &runs->census->files[file].uses;
    uint64_t best = 0;
    size_t count = 0;
    if (!uses->count)
        return 0;
    for (size_t i = line_from(runs, file, 0); i < runs->line_count && runs->lines[i].file == file; i++) {
        uint64_t extent = extent_at(runs, &runs->lines[i], number, wrappers);
        if (!extent || (best && extent > best))
            continue;
        if (extent < best || !best)
            count = 0;
        best = extent;
        if (count < MOST_CANDIDATES)
            out[count++] = i;
    }
    return count;
}

/* One site's figures over its rows. */
typedef struct totals { uint64_t allocs, refused, peak; const char *api; } totals;

static totals totals_of(const tn_report *report, const tn_site *site)
{
    totals t = {0, 0, 0, NULL};
    for (uint32_t i = site->first_row; i != TN_NO_INDEX; i = report->rows[i].next) {
        const tn_row *row = &report->rows[i];
        t.allocs += row->stat.allocs;
        t.refused += row->stat.refused;
        t.peak += row->stat.peak_requested;
        if (!t.api && row->api_count)
            t.api = report->apis[row->apis[0]].name;
    }
    return t;
}

static void reach(tn_runs *runs, size_t at, const totals *t, tn_line_state state)
{
    tn_run_line *line = &runs->lines[at];
    if (state == TN_LINE_POSSIBLY) {
        if (line->state == TN_LINE_NEVER)
            line->state = TN_LINE_POSSIBLY;
        return;
    }
    line->state = TN_LINE_REACHED;
    if (line->last_path == runs->sequence)
        return; /* a recursion */
    line->last_path = runs->sequence;
    line->paths++;
    line->allocs += t->allocs;
    line->refused += t->refused;
    line->run_bytes += t->peak;
}

static char *place_text(const tn_runs *runs, size_t file, uint64_t line)
{
    char *text;
    return asprintf(&text, "%s:%" PRIu64, runs->census->files[file].path, line) < 0 ? NULL : text;
}

static char *frame_text(const tn_stack_line *frame)
{
    char *text;
    int n;
    if (!frame)
        n = asprintf(&text, "no stack");
    else if (frame->file)
        n = asprintf(&text, "%s:%" PRIu32, frame->file, frame->line);
    else
        n = asprintf(&text, "%s+0x%" PRIx64 " (%s)", frame->module ? frame->module : frame->jit ? "jit" : "unknown", frame->offset,
                     frame->line_state ? tn_symbol_state_text(frame->line_state) : "no line");
    return n < 0 ? NULL : text;
}

/* Takes `through` over. */
static int add_path(tn_runs *runs, tn_path_state state, const tn_site *site, const totals *t, const tn_stack_line *frame, char *through)
{
    if (runs->path_count == runs->path_room) {
        size_t room = runs->path_room ? runs->path_room * 2 : 64;
        tn_call_path *paths = realloc(runs->paths, room * sizeof(*paths));
        if (!paths) {
            free(through);
            return -1;
        }
        runs->paths = paths;
        runs->path_room = room;
    }
    tn_call_path path = {.state = state, .has_stack = frame != NULL, .has_line = frame && frame->file, .key = site->key,
                         .api = strdup(t->api ? t->api : "unknown"), .where = state == TN_CALL_PATH_JOINED ? strdup("") : frame_text(frame),
                         .through = through, .allocs = t->allocs, .refused = t->refused, .peak_bytes = t->peak};
    runs->paths[runs->path_count++] = path;
    return path.api && path.where ? 0 : -1;
}

/* CUDA's headers have C++ forms of its functions, cudaMalloc<T>(T **, size_t) and others: a frame of such a function, if it is none
 * of the source's own, belongs to the call. */
static int is_header_form(const tn_runs *runs, tn_paths *paths, const tn_stack_line *line)
{
    char name[64];
    size_t first, second;
    if (!line->function)
        return 0;
    tn_short_name(line->function, name, sizeof(name));
    size_t api = tn_apis_find(runs->census->apis, name, strlen(name));
    return api != TN_API_MISSING && !tn_apis_is_wrapper(runs->census->apis, api) &&
           (!line->file || tn_paths_find(paths, line->file, &first, &second) == TN_PATH_NONE);
}

/* The frame that called CUDA: the innermost one that is no header's. Frames without a line in front of the first one that has a
 * line, and in its module, are taken for a CUDA runtime that is linked into it. */
static const tn_stack_line *caller_of(const tn_runs *runs, tn_paths *paths, const tn_stack *stack)
{
    const tn_stack_line *start = stack->lines, *end = stack->lines + stack->count;
    while (start + 1 < end && is_header_form(runs, paths, start))
        start++;
    for (const tn_stack_line *line = start; line < end; line++) {
        if (line->file && !is_header_form(runs, paths, line))
            return line;
        if (line + 1 == end || !line->path || !line[1].path || strcmp(line->path, line[1].path) != 0)
            break;
    }
    return start < end ? start : NULL;
}

typedef struct joined { /* what the frames of one site came to */
    int direct, wrapper;  /* lines reached by the caller itself; by a frame further out */
    int counted, several; /* the caller lies in a counted file; in one of several, or at one of several lines */
    char *text;           /* for a person: what it could be, or through where it came */
} joined;

/* The caller itself. */
static void join_caller(tn_runs *runs, tn_paths *paths, const tn_stack_line *caller, const totals *t, joined *out)
{
    size_t file, other, lines[MOST_CANDIDATES];
    tn_path_match match = caller->file ? tn_paths_find(paths, caller->file, &file, &other) : TN_PATH_NONE;
    if (match == TN_PATH_SEVERAL) {
        out->several = 1;
        if (asprintf(&out->text, "%s or %s", runs->census->files[file].path, runs->census->files[other].path) < 0)
            out->text = NULL;
    }
    if (match != TN_PATH_ONE)
        return;
    out->counted = 1;
    size_t count = lines_at(runs, file, caller->line, 0, lines);
    for (size_t i = 0; i < count; i++)
        reach(runs, lines[i], t, count == 1 ? TN_LINE_REACHED : TN_LINE_POSSIBLY);
    out->direct = count == 1;
    out->several = count > 1;
    if (count > 1 && asprintf(&out->text, "%s:%" PRIu64 " or line %" PRIu64, runs->census->files[file].path, runs->lines[lines[0]].line,
                              runs->lines[lines[1]].line) < 0)
        out->text = NULL;
}

/* The frames around it: calls of the codebase's own wrappers, and where the program's own source begins. */
static void join_outer(tn_runs *runs, tn_paths *paths, const tn_stack *stack, const tn_stack_line *caller, const totals *t, joined *out)
{
    for (const tn_stack_line *frame = caller + 1; frame < stack->lines + stack->count; frame++) {
        size_t file, other, lines[MOST_CANDIDATES];
        if (!frame->file || tn_paths_find(paths, frame->file, &file, &other) != TN_PATH_ONE)
            continue;
        if (!out->text)
            out->text = place_text(runs, file, frame->line);
        size_t count = lines_at(runs, file, frame->line, 1, lines);
        for (size_t i = 0; i < count; i++)
            reach(runs, lines[i], t, count == 1 ? TN_LINE_REACHED : TN_LINE_POSSIBLY);
        out->wrapper |= count == 1;
    }
}

static int join_site(tn_runs *runs, tn_paths *paths, tn_report *report, uint32_t index)
{
    const tn_site *site = &report->sites[index];
    totals t = totals_of(report, site);
    if (t.allocs + t.refused == 0)
        return 0;
    runs->sequence++;
    tn_stack stack;
    tn_stack_of(report, index, 0, &stack);
    const tn_stack_line *caller = caller_of(runs, paths, &stack);
    joined j = {0, 0, 0, 0, NULL};
    if (caller) {
        join_caller(runs, paths, caller, &t, &j);
        join_outer(runs, paths, &stack, caller, &t, &j);
    }
    tn_path_state state = j.direct || j.wrapper ? TN_CALL_PATH_JOINED
                          : j.several           ? TN_CALL_PATH_AMBIGUOUS
                          : j.counted           ? TN_CALL_PATH_NO_CALL
                                                : TN_CALL_PATH_OUTSIDE;
    if (state == TN_CALL_PATH_JOINED || state == TN_CALL_PATH_NO_CALL) {
        free(j.text);
        j.text = NULL;
    }
    return add_path(runs, state, site, &t, caller, j.text);
}

tn_error tn_runs_add(tn_runs *runs, const char *path, char message[TN_REPORT_MESSAGE])
{
    const tn_symbol_options symbols = {.seconds = LOOK_UP_SECONDS, .debug_bytes = TN_SYMBOL_DEBUG_BYTES};
    const tn_report_load_options options = {.symbols = &symbols};
    tn_report *report;
    tn_error error = tn_report_load_with(path, &options, &report, message);
    if (error != TN_OK)
        return error;
    tn_paths *paths = tn_paths_new(runs->census);
    int failed = !paths;
    for (uint32_t i = 0; !failed && i < report->site_count; i++)
        tn_stack_want(report, i);
    for (uint32_t i = 0; !failed && i < report->site_count; i++)
        failed = join_site(runs, paths, report, i);
    for (size_t i = 0; i < runs->line_count; i++) {
        tn_run_line *line = &runs->lines[i];
        if (line->run_bytes > line->peak_bytes)
            line->peak_bytes = line->run_bytes;
        line->run_bytes = 0;
    }
    runs->unread |= tn_report_unread(report);
    runs->incomplete |= !tn_report_complete(report);
    tn_paths_free(paths);
    tn_report_free(report);
    if (failed)
        snprintf(message, TN_REPORT_MESSAGE, "no memory is left");
    return failed ? TN_E_NOMEM : TN_OK;
}

/* The same site comes together, of several runs. */
static int compare_sites(const void *a, const void *b)
{
    const tn_call_path *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return strcmp(x->where, y->where);
}

static int compare_peaks(const void *a, const void *b)
{
    const tn_call_path *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? 1 : -1;
    int order = strcmp(x->where, y->where);
    return order ? order : compare_sites(a, b);
}

/* One path for what several runs have in common; counts them, and keeps those that are not joined. */
static void merge_paths(tn_runs *runs)
{
    size_t kept = 0;
    for (size_t i = 0; i < runs->path_count; i++) {
        tn_call_path *path = &runs->paths[i], *last = kept ? &runs->paths[kept - 1] : NULL;
        if (last && compare_sites(last, path) == 0) {
            last->allocs += path->allocs;
            last->refused += path->refused;
            if (path->peak_bytes > last->peak_bytes)
                last->peak_bytes = path->peak_bytes;
            free_path(path);
        } else {
            runs->paths[kept++] = *path;
        }
    }
    runs->path_count = 0;
    for (size_t i = 0; i < kept; i++) {
        tn_call_path *path = &runs->paths[i];
        runs->path_states[path->state]++;
        runs->no_line += path->state == TN_CALL_PATH_OUTSIDE && !path->has_line;
        if (path->state == TN_CALL_PATH_JOINED)
            free_path(path);
        else
            runs->paths[runs->path_count++] = *path;
    }
}

void tn_runs_finish(tn_runs *runs)
{
    for (size_t i = 0; i < runs->line_count; i++)
        runs->states[runs->lines[i].state]++;
    if (!runs->path_count)
        return;
    qsort(runs->paths, runs->path_count, sizeof(runs->paths[0]), compare_sites);
    merge_paths(runs);
    if (runs->path_count)
        qsort(runs->paths, runs->path_count, sizeof(runs->paths[0]), compare_peaks);
}
