/* tenure census: where a source tree allocates, held against an allowlist or joined with what runs did. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census/census_print.h"
#include "cli/cli.h"

const char cmd_census_help[] =
    "tenure census SRC... [--api NAME]... [--free NAME]... [--exclude GLOB]... [--stats] [--list] [--json]\n"
    "                     [--allowlist FILE [--update]] [--runs RUN...]\n"
    "\n"
    "Counts the calls of CUDA's allocation and free functions in C, C++ and CUDA source, by API, folder and file. SRC is a\n"
    "folder (its files .c .cc .cpp .cxx .cu .cuh .h .hpp .hxx .inl .ipp, at any depth) or a file. Comments, strings and\n"
    "#if 0 do not count; declarations and mentions are told apart from calls. Symbolic links are not followed, .git, .hg\n"
    "and .svn not entered.\n"
    "\n"
    "  --api NAME        count calls of NAME, an allocating function or macro of the code itself, as well; repeatable\n"
    "  --free NAME       the same for one that frees\n"
    "  --exclude GLOB    leave out what GLOB matches, folders with all below them: without a slash a file's or folder's\n"
    "                    name, with one the path below the common folder of all SRC; repeatable\n"
    "  --stats           also tables by folder and by file\n"
    "  --list            also each call, declaration and mention on a line of its own; with --runs the reached lines\n"
    "  --json            one JSON document instead of text\n"
    "  --allowlist FILE  hold each file against its budget in FILE\n"
    "  --update          rewrite FILE so that it holds, keeping its comments\n"
    "  --runs RUN...     join with recorded runs (up to the next option): which lines were reached, which were not, and\n"
    "                    which allocations came from elsewhere\n"
    "\n"
    "Exit codes: 0 counted, and the allowlist holds; 1 it does not; 2 wrong arguments, or a file or run that cannot be\n"
    "read; 3 where a RUN holds no journal or a journal of it cannot be read. See docs/CENSUS.md.\n";

typedef struct strings {
    char **items;
    size_t count, room;
} strings;

typedef struct census_options {
    strings sources, excludes, runs;
    tn_apis *apis;
    const char *allowlist;
    int update, stats, list, json;
} census_options;

static int out_of_memory(void) { return cli_fail("census", "no memory is left"); }

static int add(strings *to, char *text)
{
    if (to->count == to->room) {
        char **items = realloc(to->items, (to->room * 2 + 8) * sizeof(*items));
        if (!items)
            return -1;
        to->items = items;
        to->room = to->room * 2 + 8;
    }
    to->items[to->count++] = text;
    return 0;
}

static int add_api(tn_apis *apis, const char *name, tn_api_use use)
{
    int bad = tn_apis_add(apis, name, use);
    if (bad < 0)
        return out_of_memory();
    return bad ? cli_fail("census", "--%s needs the bare name of a function or macro, not %s", use == TN_USE_FREE ? "free" : "api", name) : -1;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, census_options *o)
{
    enum { WORD = 1, API = 256, FREE, EXCLUDE, ALLOWLIST, UPDATE, STATS, LIST, JSON, RUNS }; /* no letters of their own */
    static const struct option options[] = {
        {"api", required_argument, NULL, API},     {"free", required_argument, NULL, FREE},
        {"exclude", required_argument, NULL, EXCLUDE}, {"allowlist", required_argument, NULL, ALLOWLIST},
        {"update", no_argument, NULL, UPDATE},     {"stats", no_argument, NULL, STATS},
        {"list", no_argument, NULL, LIST},         {"json", no_argument, NULL, JSON},
        {"runs", required_argument, NULL, RUNS},   {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    int c, code = -1, in_runs = 0;
    while (code < 0 && (c = getopt_long(argc, argv, "-:h", options, NULL)) != -1) {
        int failed = 0;
        in_runs = c == RUNS || (c == WORD && in_runs);
        switch (c) {
        case WORD:
            failed = add(in_runs ? &o->runs : &o->sources, optarg);
            break;
        case RUNS:
            failed = add(&o->runs, optarg);
            break;
        case EXCLUDE:
            failed = add(&o->excludes, optarg);
            break;
        case API:
            code = add_api(o->apis, optarg, TN_USE_ALLOC);
            break;
        case FREE:
            code = add_api(o->apis, optarg, TN_USE_FREE);
            break;
        case ALLOWLIST:
            o->allowlist = optarg;
            break;
        case UPDATE:
            o->update = 1;
            break;
        case STATS:
            o->stats = 1;
            break;
        case LIST:
            o->list = 1;
            break;
        case JSON:
            o->json = 1;
            break;
        case 'h':
            fputs(cmd_census_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("census", argc, argv, c);
        }
        if (failed)
            return out_of_memory();
    }
    if (code >= 0)
        return code;
    for (; optind < argc; optind++) /* after -- */
        if (add(&o->sources, argv[optind]) != 0)
            return out_of_memory();
    if (!o->sources.count)
        return cli_fail("census", "no source given (see tenure help census)");
    if (o->update && !o->allowlist)
        return cli_fail("census", "--update needs --allowlist FILE");
    return -1;
}

/* Adds the runs; -1 to go on, else the exit code. */
static int join(const census_options *o, tn_runs *runs)
{
    char message[TN_REPORT_MESSAGE];
    for (size_t i = 0; i < o->runs.count; i++) {
        tn_error error = tn_runs_add(runs, o->runs.items[i], message);
        if (error != TN_OK) {
            cli_fail("census", "%s", message);
            return error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
        }
    }
    tn_runs_finish(runs);
    return -1;
}

/* Holds the census against the list, or the list against the census; -1 to go on, else the exit code. */
static int hold(const census_options *o, const tn_census *census, tn_allowlist **list, tn_finding **findings, size_t *count)
{
    char message[TN_ALLOWLIST_MESSAGE];
    int found = tn_allowlist_read(o->allowlist, list, message);
    if (found < 0 || (found > 0 && !o->update))
        return cli_fail("census", found > 0 ? "%s (make it with --update)" : "%s", message);
    if (o->update) {
        if (census->unread)
            return cli_fail("census", "%s is not updated, because not every file could be read", o->allowlist);
        tn_allowlist_change change;
        if (tn_allowlist_update(*list, census, o->allowlist, &change, message) != 0)
            return cli_fail("census", "%s", message);
        fprintf(stderr, "tenure census: %s: %zu added, %zu changed, %zu removed, %zu as they were\n", o->allowlist, change.added,
                change.changed, change.removed, change.kept);
    }
    return tn_allowlist_check(*list, census, findings, count) == 0 ? -1 : out_of_memory();
}

static int print(const census_options *o, const tn_census_view *view)
{
    int failed = o->json ? tn_census_json(view, stdout) : tn_census_text(view, stdout);
    if (failed)
        return cli_fail("census", "standard output cannot be written");
    const tn_census *census = view->census;
    for (size_t i = 0; i < census->file_count; i++)
        if (census->files[i].unread)
            cli_warn("census", "%s/%s is not counted: %s", census->root, census->files[i].path, census->files[i].unread);
    if (census->unread)
        return TN_EXIT_USAGE;
    if (view->runs && view->runs->unread) {
        cli_warn("census", "not every journal of the runs could be read (tenure report names them)");
        return TN_EXIT_INCONCLUSIVE;
    }
    return view->finding_count ? TN_EXIT_FALLS_SHORT : TN_EXIT_HOLDS;
}

static int count(const census_options *o)
{
    char message[TN_TOKEN_TEXT];
    tn_census *census;
    if (tn_census_count(o->apis, o->sources.items, o->sources.count, o->excludes.items, o->excludes.count, &census, message) != 0)
        return cli_fail("census", "%s", message);
    tn_census_view view = {.census = census, .allowlist = o->allowlist, .stats = o->stats, .list = o->list};
    tn_allowlist *list = NULL;
    tn_finding *findings = NULL;
    tn_runs *runs = NULL;
    int code = -1;
    if (o->runs.count) {
        view.runs = runs = tn_runs_new(census);
        code = runs ? join(o, runs) : out_of_memory();
    }
    if (code < 0 && o->allowlist)
        code = hold(o, census, &list, &findings, &view.finding_count);
    view.findings = findings;
    if (code < 0)
        code = print(o, &view);
    tn_runs_free(runs);
    tn_allowlist_free(list);
    free(findings);
    tn_census_free(census);
    return code;
}

int cmd_census(int argc, char **argv)
{
    census_options o = {.apis = tn_apis_new()};
    int code = o.apis ? parse(argc, argv, &o) : out_of_memory();
    if (code < 0)
        code = count(&o);
    free(o.sources.items);
    free(o.excludes.items);
    free(o.runs.items);
    tn_apis_free(o.apis);
    return code;
}
