/* The walk over a source tree: files by extension, no symbolic links, no version control folders. */
#define _GNU_SOURCE
#include "census/census_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct path {
    char *text;
    size_t length, room;
} path;

/* Appends /name; the length before, or -1. */
static ssize_t push(path *p, const char *name)
{
    size_t n = strlen(name), before = p->length, slash = before && p->text[before - 1] != '/';
    if (before + slash + n + 1 > p->room) {
        size_t room = (before + n + 2) * 2;
        char *text = realloc(p->text, room);
        if (!text)
            return -1;
        p->text = text;
        p->room = room;
    }
    if (slash)
        p->text[p->length++] = '/';
    memcpy(p->text + p->length, name, n + 1);
    p->length += n;
    return (ssize_t)before;
}

static void pop(path *p, size_t length)
{
    p->length = length;
    p->text[length] = 0;
}

static int is_source(const char *name)
{
    static const char *const extensions[] = {"c", "cc", "cpp", "cxx", "cu", "cuh", "h", "hpp", "hxx", "inl", "ipp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcasecmp(dot + 1, extensions[i]) == 0)
            return 1;
    return 0;
}

static int is_version_control(const char *name)
{
    return strcmp(name, ".git") == 0 || strcmp(name, ".hg") == 0 || strcmp(name, ".svn") == 0;
}

static int is_excluded(const tn_walk *walk, const char *relative)
{
    const char *slash = strrchr(relative, '/'), *name = slash ? slash + 1 : relative;
    for (size_t i = 0; i < walk->exclude_count; i++)
        if (fnmatch(walk->excludes[i], strchr(walk->excludes[i], '/') ? relative : name, 0) == 0)
            return 1;
    return 0;
}

/* The path as found() gets it. */
static const char *shown(const path *p, size_t skip) { return p->length > skip ? p->text + skip : "."; }

static int open_file(tn_walk *walk, int folder, const char *name, const path *p, size_t skip)
{
    /* Without O_NONBLOCK a pipe put there meanwhile would be waited for. */
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    int result = walk->found(walk->context, shown(p, skip), fd, fd < 0 ? strerror(errno) : NULL);
    if (fd >= 0)
        close(fd);
    return result;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* All names of a folder, sorted; the caller frees them. `fd` is closed. NULL with errno. */
static char **read_names(int fd, size_t *count)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return NULL;
    }
    char **names = malloc(sizeof(*names));
    size_t room = 1, n = 0;
    int failed = names ? 0 : ENOMEM;
    while (!failed) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            failed = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n == room) {
            char **more = realloc(names, 2 * room * sizeof(*names));
            if (!more) {
                failed = ENOMEM;
                break;
            }
            names = more;
            room *= 2;
        }
        if (!(names[n] = strdup(entry->d_name)))
            failed = ENOMEM;
        else
            n++;
    }
    closedir(dir);
    if (failed) {
        while (n)
            free(names[--n]);
        free(names);
        errno = failed;
        return NULL;
    }
    qsort(names, n, sizeof(*names), compare_names);
    *count = n;
    return names;
}

static int walk_folder(tn_walk *walk, int parent, const char *name, path *p, size_t skip);

static int walk_entry(tn_walk *walk, int folder, const char *name, path *p, size_t skip)
{
    struct stat st;
    if (is_version_control(name) || is_excluded(walk, shown(p, skip)))
        return 0;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : walk->found(walk->context, shown(p, skip), -1, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return walk_folder(walk, folder, name, p, skip);
    if (S_ISLNK(st.st_mode)) {
        if (fstatat(folder, name, &st, 0) == 0 && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && is_source(name))))
            walk->links++;
        return 0;
    }
    return S_ISREG(st.st_mode) && is_source(name) ? open_file(walk, folder, name, p, skip) : 0;
}

/* The folder `name` of `parent`, whose path *p is. */
static int walk_folder(tn_walk *walk, int parent, const char *name, path *p, size_t skip)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int listed = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    size_t count = 0;
    char **names = listed < 0 ? NULL : read_names(listed, &count);
    int result = 0;
    if (!names) {
        result = walk->found(walk->context, shown(p, skip), -1, strerror(errno));
    } else {
        for (size_t i = 0; i < count; i++) {
            ssize_t before = result ? -1 : push(p, names[i]);
            if (before < 0)
                result = -1;
            else {
                result = walk_entry(walk, fd, names[i], p, skip);
                pop(p, (size_t)before);
            }
            free(names[i]);
        }
        free(names);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

int tn_walk_source(tn_walk *walk, const char *start, size_t skip)
{
    path p = {NULL, 0, 0};
    struct stat st;
    int result = push(&p, start) < 0 ? -1 : 0;
    if (result == 0 && stat(start, &st) == 0 && S_ISDIR(st.st_mode))
        result = walk_folder(walk, AT_FDCWD, start, &p, skip);
    else if (result == 0)
        result = open_file(walk, AT_FDCWD, start, &p, skip);
    free(p.text);
    return result;
}
