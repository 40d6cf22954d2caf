/* The census as one JSON document, schema tenure-census/1 (docs/CENSUS.md). */
#define _GNU_SOURCE
#include "census/census_print.h"

#include <inttypes.h>

#include "report/report_json_put.h"

static void put_tally(json_t *object, const tn_census_tally *t)
{
    static const char *const uses[TN_USE_COUNT] = {"alloc", "free"};
    for (size_t use = 0; use < TN_USE_COUNT; use++) {
        json_t *part = json_object();
        tn_json_put_integer(part, "lines", t->lines[use]);
        tn_json_put_integer(part, "calls", t->calls[use]);
        tn_json_put_integer(part, "in_macros", t->in_macros[use]);
        tn_json_put(object, uses[use], part);
    }
    tn_json_put_integer(object, "declarations", t->declarations);
    tn_json_put_integer(object, "mentions", t->mentions);
}

static json_t *totals(const tn_census *c)
{
    json_t *object = json_object();
    tn_json_put_integer(object, "files", c->read);
    tn_json_put_integer(object, "files_with_calls", c->with_calls);
    put_tally(object, &c->total);
    return object;
}

/* APIs with any use, or folders with any file. */
static json_t *table(const tn_census *c, const tn_census_line *lines, size_t count, const char *key)
{
    json_t *array = json_array();
    int apis = lines == c->by_api;
    for (size_t i = 0; i < count; i++) {
        const tn_census_tally *t = &lines[i].tally;
        int wrapper = apis && tn_apis_is_wrapper(c->apis, i);
        if (apis && !wrapper && t->calls[TN_USE_ALLOC] + t->calls[TN_USE_FREE] + t->declarations + t->mentions == 0)
            continue;
        json_t *object = json_object();
        tn_json_put_text(object, key, lines[i].name);
        if (apis) {
            tn_json_put_text(object, "use", tn_apis_use(c->apis, i) == TN_USE_ALLOC ? "alloc" : "free");
            tn_json_put(object, "wrapper", json_boolean(wrapper));
        }
        tn_json_put_integer(object, "files_with_calls", lines[i].files);
        put_tally(object, t);
        tn_json_append(array, object);
    }
    return array;
}

static json_t *use_object(const tn_census *c, const tn_code_use *use)
{
    static const char *const kinds[] = {"call", "declaration", "mention"};
    json_t *object = json_object();
    tn_json_put_integer(object, "line", use->line);
    tn_json_put_integer(object, "first_line", use->first);
    tn_json_put_integer(object, "last_line", use->last);
    tn_json_put_text(object, "api", tn_apis_name(c->apis, use->api));
    tn_json_put_text(object, "kind", kinds[use->kind]);
    tn_json_put(object, "in_macro", json_boolean(use->in_macro));
    tn_json_put(object, "member", json_boolean(use->member));
    return object;
}

/* Files with any use of a name; `unread` apart. */
static json_t *files(const tn_census *c)
{
    json_t *array = json_array();
    for (size_t i = 0; i < c->file_count; i++) {
        const tn_census_file *file = &c->files[i];
        if (file->unread || !file->uses.count)
            continue;
        json_t *object = json_object(), *uses = json_array();
        tn_json_put_text(object, "path", file->path);
        put_tally(object, &file->tally);
        for (size_t k = 0; k < file->uses.count; k++)
            tn_json_append(uses, use_object(c, &file->uses.items[k]));
        tn_json_put(object, "uses", uses);
        tn_json_append(array, object);
    }
    return array;
}

static json_t *unread(const tn_census *c)
{
    json_t *array = json_array();
    for (size_t i = 0; i < c->file_count; i++) {
        if (!c->files[i].unread)
            continue;
        json_t *object = json_object();
        tn_json_put_text(object, "path", c->files[i].path);
        tn_json_put_text(object, "why", c->files[i].unread);
        tn_json_append(array, object);
    }
    return array;
}

static json_t *allowlist(const tn_census_view *v)
{
    json_t *object = json_object(), *findings = json_array();
    tn_json_put_text(object, "path", v->allowlist);
    tn_json_put(object, "holds", json_boolean(v->finding_count == 0));
    for (size_t i = 0; i < v->finding_count; i++) {
        const tn_finding *f = &v->findings[i];
        int one = f->kind == TN_FINDING_OVER || f->kind == TN_FINDING_UNDER;
        json_t *finding = json_object();
        tn_json_put_text(finding, "finding", tn_finding_name(f->kind));
        tn_json_put_text(finding, "path", f->path);
        tn_json_put_text(finding, "use", !one ? NULL : f->use == TN_USE_ALLOC ? "alloc" : "free");
        tn_json_put_integer(finding, "allowed_allocs", f->allowed[TN_USE_ALLOC]);
        tn_json_put_integer(finding, "allowed_frees", f->allowed[TN_USE_FREE]);
        tn_json_put_integer(finding, "allocs", f->found[TN_USE_ALLOC]);
        tn_json_put_integer(finding, "frees", f->found[TN_USE_FREE]);
        tn_json_put(finding, "list_line", f->line ? json_integer((json_int_t)f->line) : json_null());
        tn_json_put_text(finding, "advice", tn_finding_advice(f));
        tn_json_append(findings, finding);
    }
    tn_json_put(object, "findings", findings);
    return object;
}

static void put_figures(json_t *object, uint64_t allocs, uint64_t refused, uint64_t peak)
{
    tn_json_put_integer(object, "allocs", allocs);
    tn_json_put_integer(object, "refused", refused);
    tn_json_put_integer(object, "peak_requested_bytes", peak);
}

static json_t *run_lines(const tn_runs *r)
{
    static const char *const states[TN_LINE_STATES] = {"never", "reached", "possibly", "macro"};
    json_t *array = json_array();
    for (size_t i = 0; i < r->line_count; i++) {
        const tn_run_line *line = &r->lines[i];
        const tn_code_use *uses = r->census->files[line->file].uses.items + line->first_use;
        json_t *object = json_object(), *apis = json_array();
        tn_json_put_text(object, "path", r->census->files[line->file].path);
        tn_json_put_integer(object, "line", line->line);
        for (size_t k = 0; k < line->uses; k++)
            if (uses[k].kind == TN_USE_IS_CALL && tn_apis_use(r->census->apis, uses[k].api) == TN_USE_ALLOC)
                tn_json_append(apis, tn_json_text(tn_apis_name(r->census->apis, uses[k].api)));
        tn_json_put(object, "apis", apis);
        tn_json_put_text(object, "state", states[line->state]);
        tn_json_put_integer(object, "call_paths", line->paths);
        put_figures(object, line->allocs, line->refused, line->peak_bytes);
        tn_json_append(array, object);
    }
    return array;
}

static json_t *call_paths(const tn_runs *r)
{
    static const char *const states[TN_CALL_PATH_STATES] = {"joined", "no_call", "outside", "ambiguous"};
    json_t *array = json_array();
    for (size_t i = 0; i < r->path_count; i++) {
        const tn_call_path *path = &r->paths[i];
        json_t *object = json_object();
        tn_json_put_hex(object, "key", path->key, 16, "");
        tn_json_put_text(object, "state", states[path->state]);
        tn_json_put_text(object, "api", path->api);
        tn_json_put_text(object, "where", path->where);
        tn_json_put(object, "has_line", json_boolean(path->has_line));
        tn_json_put_text(object, path->state == TN_CALL_PATH_AMBIGUOUS ? "could_be" : "through", path->through);
        put_figures(object, path->allocs, path->refused, path->peak_bytes);
        tn_json_append(array, object);
    }
    return array;
}

static json_t *runs(const tn_runs *r)
{
    json_t *object = json_object(), *lines = json_object(), *paths = json_object();
    tn_json_put(object, "complete", json_boolean(!r->incomplete));
    tn_json_put_integer(lines, "total", r->line_count);
    tn_json_put_integer(lines, "reached", r->states[TN_LINE_REACHED]);
    tn_json_put_integer(lines, "possibly", r->states[TN_LINE_POSSIBLY]);
    tn_json_put_integer(lines, "never", r->states[TN_LINE_NEVER]);
    tn_json_put_integer(lines, "macro", r->states[TN_LINE_MACRO]);
    tn_json_put(object, "line_counts", lines);
    tn_json_put_integer(paths, "joined", r->path_states[TN_CALL_PATH_JOINED]);
    tn_json_put_integer(paths, "no_call", r->path_states[TN_CALL_PATH_NO_CALL]);
    tn_json_put_integer(paths, "ambiguous", r->path_states[TN_CALL_PATH_AMBIGUOUS]);
    tn_json_put_integer(paths, "outside", r->path_states[TN_CALL_PATH_OUTSIDE]);
    tn_json_put_integer(paths, "without_line", r->no_line);
    tn_json_put(object, "call_path_counts", paths);
    tn_json_put(object, "lines", run_lines(r));
    tn_json_put(object, "call_paths", call_paths(r));
    return object;
}

int tn_census_json(const tn_census_view *v, FILE *out)
{
    const tn_census *c = v->census;
    tn_json_start();
    json_t *document = json_object();
    tn_json_put_text(document, "schema", "tenure-census/1");
    tn_json_put_text(document, "root", c->root);
    tn_json_put(document, "totals", totals(c));
    tn_json_put(document, "apis", table(c, c->by_api, tn_apis_count(c->apis), "api"));
    tn_json_put(document, "folders", table(c, c->folders, c->folder_count, "folder"));
    tn_json_put(document, "files", files(c));
    tn_json_put(document, "unread", unread(c));
    tn_json_put_integer(document, "links_not_followed", c->links);
    tn_json_put(document, "allowlist", v->allowlist ? allowlist(v) : json_null());
    tn_json_put(document, "runs", v->runs ? runs(v->runs) : json_null());
    int bad = tn_json_failed() || json_dumpf(document, out, JSON_INDENT(1)) != 0 || putc('\n', out) == EOF || fflush(out) != 0;
    json_decref(document);
    return bad ? -1 : 0;
}
