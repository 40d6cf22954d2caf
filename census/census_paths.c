/* Matching a line table's paths with the tree's. */
#define _GNU_SOURCE
#include "census/census_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
    char *path; /* NULL = free slot */
    tn_path_match match;
    size_t first, second;
} answer;

struct tn_paths {
    const tn_census *census;
    size_t *by_name; /* counted files, by the part behind the last slash */
    size_t count;
    answer *answers; /* open addressing, at most half full */
    size_t slots, used;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int compare_by_name(const void *a, const void *b, void *context)
{
    const tn_census_file *files = context;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    int order = strcmp(last_part(files[i].path), last_part(files[k].path));
    return order ? order : (i > k) - (i < k);
}

tn_paths *tn_paths_new(const tn_census *census)
{
    tn_paths *paths = calloc(1, sizeof(*paths));
    if (!paths)
        return NULL;
    *paths = (tn_paths){.census = census, .slots = 1024};
    paths->by_name = malloc((census->file_count + 1) * sizeof(*paths->by_name));
    paths->answers = calloc(paths->slots, sizeof(*paths->answers));
    if (!paths->by_name || !paths->answers) {
        tn_paths_free(paths);
        return NULL;
    }
    for (size_t i = 0; i < census->file_count; i++)
        if (!census->files[i].unread)
            paths->by_name[paths->count++] = i;
    if (paths->count)
        qsort_r(paths->by_name, paths->count, sizeof(*paths->by_name), compare_by_name, census->files);
    return paths;
}

void tn_paths_free(tn_paths *paths)
{
    if (!paths)
        return;
    for (size_t i = 0; paths->answers && i < paths->slots; i++)
        free(paths->answers[i].path);
    free(paths->answers);
    free(paths->by_name);
    free(paths);
}

/* The component that ends at `end`: its start. Empty ones (//) and "." ones are stepped over by moving *end. NULL at the front. */
static const char *component(const char *path, const char **end)
{
    for (;;) {
        while (*end > path && (*end)[-1] == '/')
            --*end;
        const char *start = *end;
        while (start > path && start[-1] != '/')
            start--;
        if (start == *end)
            return NULL;
        if (*end - start != 1 || *start != '.')
            return start;
        *end = start;
    }
}

static size_t components(const char *path)
{
    size_t n = 0;
    const char *end = path + strlen(path);
    for (const char *start; (start = component(path, &end)) != NULL; end = start)
        n++;
    return n;
}

static size_t shared(const char *a, const char *b)
{
    const char *end_a = a + strlen(a), *end_b = b + strlen(b);
    for (size_t n = 0;; n++) {
        const char *x = component(a, &end_a), *y = component(b, &end_b);
        if (!x || !y || end_a - x != end_b - y || memcmp(x, y, (size_t)(end_a - x)) != 0)
            return n;
        end_a = x;
        end_b = y;
    }
}

/* Components that a file, its root's included, shares with the path; 0 where they are too few. */
static size_t score(const tn_census *census, const char *file, const char *path)
{
    char *whole;
    if (asprintf(&whole, "%s/%s", census->root, file) < 0)
        return 0;
    size_t n = shared(whole, path);
    free(whole);
    return n >= 2 || n == components(file) || n == components(path) ? n : 0;
}

static void search(const tn_paths *paths, const char *path, answer *out)
{
    const tn_census_file *files = paths->census->files;
    const char *name = last_part(path);
    size_t low = 0, high = paths->count, best = 0;
    out->match = TN_PATH_NONE;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(last_part(files[paths->by_name[middle]].path), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < paths->count && strcmp(last_part(files[paths->by_name[low]].path), name) == 0; low++) {
        size_t n = score(paths->census, files[paths->by_name[low]].path, path);
        if (n && n == best && out->match == TN_PATH_ONE) {
            out->match = TN_PATH_SEVERAL;
            out->second = paths->by_name[low];
        } else if (n > best) {
            out->match = TN_PATH_ONE;
            out->first = paths->by_name[low];
            best = n;
        }
    }
}

static answer *slot_of(answer *answers, size_t slots, const char *path)
{
    size_t h = 14695981039346656037u;
    for (const char *p = path; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    size_t i = h & (slots - 1);
    while (answers[i].path && strcmp(answers[i].path, path) != 0)
        i = (i + 1) & (slots - 1);
    return &answers[i];
}

static void make_room(tn_paths *paths)
{
    answer *more = calloc(paths->slots * 2, sizeof(*more));
    if (!more)
        return; /* fuller, until it is full; then nothing more is remembered */
    for (size_t i = 0; i < paths->slots; i++)
        if (paths->answers[i].path)
            *slot_of(more, paths->slots * 2, paths->answers[i].path) = paths->answers[i];
    free(paths->answers);
    paths->answers = more;
    paths->slots *= 2;
}

tn_path_match tn_paths_find(tn_paths *paths, const char *path, size_t *first, size_t *second)
{
    if (2 * paths->used >= paths->slots)
        make_room(paths);
    answer found, *slot = slot_of(paths->answers, paths->slots, path);
    if (!slot->path) {
        search(paths, path, &found);
        found.path = 2 * paths->used < paths->slots ? strdup(path) : NULL;
        if (found.path) {
            *slot = found;
            paths->used++;
        }
    } else {
        found = *slot;
    }
    if (found.match != TN_PATH_NONE)
        *first = found.first;
    if (found.match == TN_PATH_SEVERAL)
        *second = found.second;
    return found.match;
}
