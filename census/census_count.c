/* Counting: walks the sources, scans each file, adds up. */
#define _GNU_SOURCE
#include "census/census.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "census/census_walk.h"

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const tn_census_file *)a)->path, ((const tn_census_file *)b)->path);
}

static int found(void *context, const char *path, int fd, const char *why)
{
    tn_census *census = context;
    if (census->file_count == census->file_room) {
        size_t room = census->file_room ? census->file_room * 2 : 256;
        tn_census_file *files = realloc(census->files, room * sizeof(*files));
        if (!files)
            return -1;
        census->files = files;
        census->file_room = room;
    }
    tn_census_file file = {.path = strdup(path), .folder = TN_API_MISSING};
    if (!file.path)
        return -1;
    if (fd >= 0)
        why = tn_census_scan(fd, census->apis, &file.uses);
    if (why && !(file.unread = strdup(why))) {
        free(file.path);
        return -1;
    }
    census->files[census->file_count++] = file;
    return 0;
}

static void free_file(tn_census_file *file)
{
    free(file->path);
    free((void *)file->unread);
    free(file->uses.items);
}

/* Sources may overlap: a file that was met twice counts once. */
static void drop_doubles(tn_census *census)
{
    if (census->file_count)
        qsort(census->files, census->file_count, sizeof(census->files[0]), compare_files);
    size_t kept = 0;
    for (size_t i = 0; i < census->file_count; i++) {
        if (kept && strcmp(census->files[kept - 1].path, census->files[i].path) == 0)
            free_file(&census->files[i]);
        else
            census->files[kept++] = census->files[i];
    }
    census->file_count = kept;
}

static void add_tally(tn_census_tally *to, const tn_census_tally *from)
{
    for (size_t use = 0; use < TN_USE_COUNT; use++) {
        to->calls[use] += from->calls[use];
        to->lines[use] += from->lines[use];
        to->in_macros[use] += from->in_macros[use];
    }
    to->declarations += from->declarations;
    to->mentions += from->mentions;
}

static void count_use(tn_census_tally *tally, const tn_code_use *use, tn_api_use kind, uint64_t *last_line)
{
    tally->declarations += use->kind == TN_USE_IS_DECLARATION;
    tally->mentions += use->kind == TN_USE_IS_MENTION;
    if (use->kind != TN_USE_IS_CALL)
        return;
    tally->calls[kind]++;
    tally->in_macros[kind] += use->in_macro != 0;
    tally->lines[kind] += *last_line != use->line; /* uses come in the order of their lines */
    *last_line = use->line;
}

/* Adds one file to the totals; `last_lines` is room for one line an API. */
static void add_file(tn_census *census, tn_census_file *file, uint64_t *last_lines)
{
    size_t apis = tn_apis_count(census->apis);
    uint64_t last[TN_USE_COUNT] = {0};
    memset(last_lines, 0, apis * sizeof(*last_lines));
    for (size_t i = 0; i < file->uses.count; i++) {
        const tn_code_use *use = &file->uses.items[i];
        tn_api_use kind = tn_apis_use(census->apis, use->api);
        tn_census_line *api = &census->by_api[use->api];
        api->files += use->kind == TN_USE_IS_CALL && last_lines[use->api] == 0;
        count_use(&api->tally, use, kind, &last_lines[use->api]);
        count_use(&file->tally, use, kind, &last[kind]);
    }
    census->read++;
    census->with_calls += file->tally.calls[TN_USE_ALLOC] + file->tally.calls[TN_USE_FREE] > 0;
    add_tally(&census->total, &file->tally);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(((const tn_census_line *)a)->name, ((const tn_census_line *)b)->name);
}

/* Length of the folder's part of a path; 0 in the root. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* The folders' table. Files are sorted by path, which does not bring those of one folder together: a/b.c, a/b/c.c, a/c.c. */
static int add_folders(tn_census *census)
{
    tn_census_line *lines = calloc(census->file_count + 1, sizeof(*lines));
    if (!lines)
        return -1;
    census->folders = lines;
    for (size_t i = 0; i < census->file_count; i++) {
        if (census->files[i].unread)
            continue;
        size_t length = folder_length(census->files[i].path);
        lines[census->folder_count].name = length ? strndup(census->files[i].path, length) : strdup(".");
        if (!lines[census->folder_count].name)
            return -1;
        census->folder_count++;
    }
    if (census->folder_count)
        qsort(lines, census->folder_count, sizeof(*lines), compare_lines);
    size_t kept = 0;
    for (size_t i = 0; i < census->folder_count; i++) {
        if (kept && strcmp(lines[kept - 1].name, lines[i].name) == 0)
            free((void *)lines[i].name);
        else
            lines[kept++] = lines[i];
    }
    census->folder_count = kept;
    for (size_t i = 0; i < census->file_count; i++) {
        tn_census_file *file = &census->files[i];
        if (file->unread)
            continue;
        size_t length = folder_length(file->path);
        char *name = length ? strndup(file->path, length) : strdup(".");
        if (!name)
            return -1;
        tn_census_line key = {.name = name};
        tn_census_line *line = bsearch(&key, lines, kept, sizeof(*lines), compare_lines);
        free(name);
        file->folder = (size_t)(line - lines);
        line->files += file->tally.calls[TN_USE_ALLOC] + file->tally.calls[TN_USE_FREE] > 0;
        add_tally(&line->tally, &file->tally);
    }
    return 0;
}

static int add_up(tn_census *census)
{
    size_t apis = tn_apis_count(census->apis);
    uint64_t *last_lines = calloc(apis + 1, sizeof(*last_lines));
    census->by_api = calloc(apis + 1, sizeof(*census->by_api));
    if (!last_lines || !census->by_api) {
        free(last_lines);
        return -1;
    }
    for (size_t i = 0; i < apis; i++)
        census->by_api[i].name = tn_apis_name(census->apis, i);
    for (size_t i = 0; i < census->file_count; i++) {
        if (census->files[i].unread)
            census->unread++;
        else
            add_file(census, &census->files[i], last_lines);
    }
    free(last_lines);
    return add_folders(census);
}

/* Shortens `root` to the deepest folder that holds it and `folder`. */
static void widen(char *root, const char *folder)
{
    size_t i = 0, common = 0;
    for (;; i++) {
        if ((root[i] == 0 || root[i] == '/') && (folder[i] == 0 || folder[i] == '/'))
            common = i;
        if (root[i] == 0 || root[i] != folder[i])
            break;
    }
    root[common ? common : 1] = 0;
}

/* The sources' real paths and their common folder. The starts are freed by the caller, also on failure. */
static int resolve(tn_census *census, char *const *sources, size_t count, char **starts, char message[TN_TOKEN_TEXT])
{
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        starts[i] = realpath(sources[i], NULL);
        if (!starts[i] || stat(starts[i], &st) != 0)
            return snprintf(message, TN_TOKEN_TEXT, "%.150s cannot be counted: %.80s", sources[i], strerror(errno)), -1;
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
            return snprintf(message, TN_TOKEN_TEXT, "%.150s is neither a folder nor a file", sources[i]), -1;
        char *folder = strdup(starts[i]);
        if (!folder)
            return snprintf(message, TN_TOKEN_TEXT, "no memory is left"), -1;
        char *slash = S_ISDIR(st.st_mode) ? NULL : strrchr(folder, '/');
        if (slash)
            slash[slash == folder] = 0;
        if (census->root)
            widen(census->root, folder);
        else {
            census->root = folder;
            continue;
        }
        free(folder);
    }
    return 0;
}

int tn_census_count(const tn_apis *apis, char *const *sources, size_t source_count, char *const *excludes, size_t exclude_count,
                    tn_census **out, char message[TN_TOKEN_TEXT])
{
    *out = NULL;
    tn_census *census = calloc(1, sizeof(*census));
    char **starts = calloc(source_count + 1, sizeof(*starts));
    int failed = -1;
    snprintf(message, TN_TOKEN_TEXT, "no memory is left");
    if (census && starts) {
        census->apis = apis;
        failed = resolve(census, sources, source_count, starts, message);
    }
    tn_walk walk = {.excludes = excludes, .exclude_count = exclude_count, .context = census, .found = found};
    for (size_t i = 0; !failed && i < source_count; i++)
        failed = tn_walk_source(&walk, starts[i], strcmp(census->root, "/") == 0 ? 1 : strlen(census->root) + 1);
    for (size_t i = 0; starts && i < source_count; i++)
        free(starts[i]);
    free(starts);
    if (!failed) {
        census->links = walk.links;
        drop_doubles(census);
        failed = add_up(census);
    }
    if (failed) {
        tn_census_free(census);
        return -1;
    }
    *out = census;
    return 0;
}

void tn_census_free(tn_census *census)
{
    if (!census)
        return;
    for (size_t i = 0; i < census->file_count; i++)
        free_file(&census->files[i]);
    for (size_t i = 0; i < census->folder_count; i++)
        free((void *)census->folders[i].name);
    free(census->files);
    free(census->folders);
    free(census->by_api);
    free(census->root);
    free(census);
}

size_t tn_census_file_at(const tn_census *census, const char *path)
{
    tn_census_file key = {.path = (char *)path};
    const tn_census_file *file =
        census->file_count ? bsearch(&key, census->files, census->file_count, sizeof(key), compare_files) : NULL;
    return file ? (size_t)(file - census->files) : TN_API_MISSING;
}
