/* Finds the source files. Internal to census/. */
#ifndef TENURE_CENSUS_WALK_H
#define TENURE_CENSUS_WALK_H

#include <stddef.h>

typedef struct tn_walk {
    char *const *excludes;
    size_t exclude_count;
    size_t links; /* out: symbolic links that were not followed */
    void *context;
    /* A source file, open for reading and closed by the caller, or with fd -1 what could not be opened, and why (strerror's text).
     * `path` is the walk's. 0, or -1 to stop. */
    int (*found)(void *context, const char *path, int fd, const char *why);
} tn_walk;

/* Everything below the folder or file `start`, an absolute path without symbolic links; found() gets the part of each path behind
 * its first `skip` bytes. 0; -1 where found() said so or no memory is left. */
int tn_walk_source(tn_walk *walk, const char *start, size_t skip);

#endif
