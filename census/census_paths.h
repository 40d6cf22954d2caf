/* Which counted file a compiler's path means. Builds record other prefixes than the tree has here, or none, so whole components are
 * compared from the end. A tn_paths points into its census and remembers answers; one thread. */
#ifndef TENURE_CENSUS_PATHS_H
#define TENURE_CENSUS_PATHS_H

#include "census/census.h"

typedef struct tn_paths tn_paths;

typedef enum tn_path_match { TN_PATH_NONE, TN_PATH_ONE, TN_PATH_SEVERAL } tn_path_match;

/* NULL when no memory is left. */
tn_paths *tn_paths_new(const tn_census *census);
void tn_paths_free(tn_paths *paths);

/* The file that shares most components with `path`, provided that those are all of the shorter one of the two (of the file: below
 * the root), or two at least. Where several files share equally many, *first and *second are two of them, else *first alone is set.
 * Indices of census->files. */
tn_path_match tn_paths_find(tn_paths *paths, const char *path, size_t *first, size_t *second);

#endif
