/* The census as text, at most 100 columns but for long paths. */
#define _GNU_SOURCE
#include "census/census_print.h"

#include <inttypes.h>
#include <string.h>

#include "report/report_names.h"

static size_t all_calls(const tn_census_tally *t) { return t->calls[TN_USE_ALLOC] + t->calls[TN_USE_FREE]; }

static void print_name(FILE *out, const char *name)
{
    for (; *name; name++) /* a path may hold anything; a terminal must not obey it */
        putc((unsigned char)*name < ' ' || *name == 0x7F ? '?' : *name, out);
}

static void print_head(const tn_census *c, FILE *out)
{
    const tn_census_tally *t = &c->total;
    print_name(out, c->root);
    fprintf(out, "\n  %zu file%s read, %zu with calls", c->read, TN_PLURAL(c->read), c->with_calls);
    if (c->links)
        fprintf(out, "; %zu symbolic link%s not followed", c->links, TN_PLURAL(c->links));
    fprintf(out, "\n  allocation %6zu line%s  %6zu call%s", t->lines[TN_USE_ALLOC], TN_PLURAL(t->lines[TN_USE_ALLOC]),
            t->calls[TN_USE_ALLOC], TN_PLURAL(t->calls[TN_USE_ALLOC]));
    fprintf(out, "\n  free       %6zu line%s  %6zu call%s\n", t->lines[TN_USE_FREE], TN_PLURAL(t->lines[TN_USE_FREE]),
            t->calls[TN_USE_FREE], TN_PLURAL(t->calls[TN_USE_FREE]));
    if (t->in_macros[TN_USE_ALLOC] + t->in_macros[TN_USE_FREE])
        fprintf(out, "  of these calls, %zu stand in the body of a macro\n", t->in_macros[TN_USE_ALLOC] + t->in_macros[TN_USE_FREE]);
    fprintf(out, "  not calls: %zu declaration%s, %zu other mention%s\n", t->declarations, TN_PLURAL(t->declarations), t->mentions,
            TN_PLURAL(t->mentions));
}

static void print_apis(const tn_census *c, FILE *out)
{
    if (!all_calls(&c->total))
        return;
    fprintf(out, "\n%8s %8s %8s  %s\n", "lines", "calls", "files", "API");
    for (int use = TN_USE_ALLOC; use <= TN_USE_FREE; use++)
        for (size_t i = 0; i < tn_apis_count(c->apis); i++) {
            const tn_census_line *line = &c->by_api[i];
            if ((int)tn_apis_use(c->apis, i) != use || !line->tally.calls[use])
                continue;
            fprintf(out, "%8zu %8zu %8zu  %s%s\n", line->tally.lines[use], line->tally.calls[use], line->files, line->name,
                    use == TN_USE_FREE ? "  (free)" : "");
        }
}

static void print_tally(const tn_census_tally *t, const char *name, FILE *out)
{
    fprintf(out, "%8zu %8zu %8zu %8zu  ", t->lines[TN_USE_ALLOC], t->calls[TN_USE_ALLOC], t->lines[TN_USE_FREE], t->calls[TN_USE_FREE]);
    print_name(out, name);
    putc('\n', out);
}

static void print_stats(const tn_census *c, FILE *out)
{
    if (!all_calls(&c->total))
        return;
    fprintf(out, "\n%17s %17s\n%8s %8s %8s %8s  %s\n", "allocation", "free", "lines", "calls", "lines", "calls", "folder");
    for (size_t i = 0; i < c->folder_count; i++)
        if (all_calls(&c->folders[i].tally))
            print_tally(&c->folders[i].tally, c->folders[i].name, out);
    fprintf(out, "\n%8s %8s %8s %8s  %s\n", "lines", "calls", "lines", "calls", "file");
    for (size_t i = 0; i < c->file_count; i++)
        if (all_calls(&c->files[i].tally))
            print_tally(&c->files[i].tally, c->files[i].path, out);
}

static void print_list(const tn_census *c, FILE *out)
{
    static const char *const kinds[] = {"", " (declaration)", " (mention)"};
    putc('\n', out);
    for (size_t i = 0; i < c->file_count; i++)
        for (size_t k = 0; k < c->files[i].uses.count; k++) {
            const tn_code_use *use = &c->files[i].uses.items[k];
            print_name(out, c->files[i].path);
            fprintf(out, ":%" PRIu64 ": %s%s%s\n", use->line, tn_apis_name(c->apis, use->api), kinds[use->kind],
                    use->kind == TN_USE_IS_CALL && use->in_macro ? " (in a macro)" : "");
        }
}

static void print_unread(const tn_census *c, FILE *out)
{
    if (c->unread)
        fprintf(out, "\nNot read (%zu)\n", c->unread);
    for (size_t i = 0; i < c->file_count; i++)
        if (c->files[i].unread) {
            fputs("  ", out);
            print_name(out, c->files[i].path);
            fprintf(out, ": %s\n", c->files[i].unread);
        }
}

static void print_finding(const tn_finding *f, FILE *out)
{
    static const char *const uses[] = {"allocation", "free"};
    fprintf(out, "%s: ", tn_finding_name(f->kind));
    print_name(out, f->path);
    switch (f->kind) {
    case TN_FINDING_OVER:
    case TN_FINDING_UNDER:
        fprintf(out, " has %zu %s call%s, its budget is %zu", f->found[f->use], uses[f->use], TN_PLURAL(f->found[f->use]), f->allowed[f->use]);
        break;
    case TN_FINDING_UNLISTED:
        fprintf(out, " has %zu allocation and %zu free call%s, and is not listed", f->found[TN_USE_ALLOC], f->found[TN_USE_FREE],
                TN_PLURAL(f->found[TN_USE_FREE]));
        break;
    case TN_FINDING_STALE:
        fprintf(out, " is listed on line %zu, and is not there", f->line);
        break;
    default:
        fprintf(out, " is listed on line %zu, and is not among the files that are counted", f->line);
    }
    fprintf(out, ": %s\n", tn_finding_advice(f));
}

static void print_allowlist(const tn_census_view *v, FILE *out)
{
    putc('\n', out);
    for (size_t i = 0; i < v->finding_count; i++)
        print_finding(&v->findings[i], out);
    print_name(out, v->allowlist);
    if (v->finding_count)
        fprintf(out, " does not hold: %zu finding%s\n", v->finding_count, TN_PLURAL(v->finding_count));
    else
        fputs(" holds\n", out);
}

static void print_figures(uint64_t allocs, uint64_t refused, uint64_t peak, FILE *out)
{
    char bytes[TN_FIGURE];
    fprintf(out, "  %" PRIu64 " alloc%s", allocs, TN_PLURAL(allocs));
    if (refused)
        fprintf(out, ", %" PRIu64 " refused", refused);
    fprintf(out, ", peak %s", tn_format_bytes(peak, bytes));
}

/* Lines of one state, each with its calls. */
static void print_lines(const tn_runs *r, tn_line_state state, const char *title, FILE *out)
{
    if (!r->states[state])
        return;
    fprintf(out, "\n%s (%zu)\n", title, r->states[state]);
    for (size_t i = 0; i < r->line_count; i++) {
        const tn_run_line *line = &r->lines[i];
        if (line->state != state)
            continue;
        fputs("  ", out);
        print_name(out, r->census->files[line->file].path);
        fprintf(out, ":%" PRIu64 " ", line->line);
        const tn_code_use *uses = r->census->files[line->file].uses.items + line->first_use;
        for (size_t k = 0; k < line->uses; k++)
            if (uses[k].kind == TN_USE_IS_CALL && tn_apis_use(r->census->apis, uses[k].api) == TN_USE_ALLOC)
                fprintf(out, " %s", tn_apis_name(r->census->apis, uses[k].api));
        if (state == TN_LINE_REACHED)
            print_figures(line->allocs, line->refused, line->peak_bytes, out);
        putc('\n', out);
    }
}

static void print_paths(const tn_runs *r, tn_path_state state, const char *title, FILE *out)
{
    if (!r->path_states[state])
        return;
    fprintf(out, "\n%s (%" PRIu64 ")\n", title, r->path_states[state]);
    for (size_t i = 0; i < r->path_count; i++) {
        const tn_call_path *path = &r->paths[i];
        if (path->state != state)
            continue;
        fputs("  ", out);
        print_name(out, path->where);
        fprintf(out, "  %s", path->api);
        print_figures(path->allocs, path->refused, path->peak_bytes, out);
        putc('\n', out);
        if (path->through) {
            fprintf(out, "      %s ", state == TN_CALL_PATH_AMBIGUOUS ? "could be" : "called through");
            print_name(out, path->through);
            putc('\n', out);
        }
    }
}

static void print_runs(const tn_census_view *v, FILE *out)
{
    const tn_runs *r = v->runs;
    fprintf(out, "\nRuns\n  %zu allocation line%s: %zu reached, %zu possibly, %zu never", r->line_count, TN_PLURAL(r->line_count),
            r->states[TN_LINE_REACHED], r->states[TN_LINE_POSSIBLY], r->states[TN_LINE_NEVER]);
    if (r->states[TN_LINE_MACRO])
        fprintf(out, ", %zu not judged (in the body of a macro: name the macro with --api)", r->states[TN_LINE_MACRO]);
    fprintf(out, "\n  call paths: %" PRIu64 " at a counted line, %" PRIu64 " elsewhere in the source, %" PRIu64 " ambiguous, %" PRIu64
                 " not in the source\n",
            r->path_states[TN_CALL_PATH_JOINED], r->path_states[TN_CALL_PATH_NO_CALL], r->path_states[TN_CALL_PATH_AMBIGUOUS],
            r->path_states[TN_CALL_PATH_OUTSIDE]);
    if (r->no_line)
        fprintf(out, "  %" PRIu64 " call path%s without a line: what %s reached shows as never reached\n", r->no_line, TN_PLURAL(r->no_line),
                r->no_line == 1 ? "it" : "they");
    if (r->incomplete)
        fprintf(out, "  the runs are not complete: more may have been reached\n");
    if (v->list)
        print_lines(r, TN_LINE_REACHED, "Reached", out);
    print_lines(r, TN_LINE_POSSIBLY, "Possibly reached", out);
    print_lines(r, TN_LINE_NEVER, "Never reached", out);
    print_paths(r, TN_CALL_PATH_NO_CALL, "In the source, but at no counted call", out);
    print_paths(r, TN_CALL_PATH_AMBIGUOUS, "Ambiguous", out);
    print_paths(r, TN_CALL_PATH_OUTSIDE, "Not in the source", out);
}

int tn_census_text(const tn_census_view *v, FILE *out)
{
    print_head(v->census, out);
    print_apis(v->census, out);
    if (v->stats)
        print_stats(v->census, out);
    if (v->list)
        print_list(v->census, out);
    print_unread(v->census, out);
    if (v->runs)
        print_runs(v, out);
    if (v->allowlist)
        print_allowlist(v, out);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
