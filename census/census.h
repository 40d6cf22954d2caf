/* A census of a source tree: which files use which allocation calls, where. A tn_census owns everything it holds until
 * tn_census_free; it is filled by one thread and constant afterwards. Paths are relative to `root`, the deepest folder that holds
 * all sources, so that they are the same wherever the tree lies and from wherever it is counted. */
#ifndef TENURE_CENSUS_CENSUS_H
#define TENURE_CENSUS_CENSUS_H

#include <stdio.h>

#include "census/census_apis.h"
#include "census/census_scan.h"

typedef struct tn_census_tally {
    size_t calls[TN_USE_COUNT]; /* by tn_api_use; those in macro bodies included */
    size_t lines[TN_USE_COUNT]; /* source lines that hold at least one such call */
    size_t in_macros[TN_USE_COUNT];
    size_t declarations, mentions; /* of any name; no calls */
} tn_census_tally;

typedef struct tn_census_file {
    char *path;
    const char *unread; /* why it could not be counted; NULL = counted */
    tn_code_uses uses;
    tn_census_tally tally;
    size_t folder;      /* in folders; TN_API_MISSING where it was not counted */
} tn_census_file;

typedef struct tn_census_line { /* of the tables by API and by folder */
    const char *name;           /* a folder without a slash at its end; "." is the root */
    size_t files;               /* with at least one call */
    tn_census_tally tally;
} tn_census_line;

typedef struct tn_census {
    char *root;                 /* absolute, without a slash at its end but for "/" */
    const tn_apis *apis;        /* the caller's */
    tn_census_file *files;      /* all that were looked at, by path; folders that could not be read as well */
    size_t file_count, file_room;
    tn_census_line *by_api;     /* one an API, by index */
    tn_census_line *folders;    /* those with a counted file, by path */
    size_t folder_count;
    tn_census_tally total;
    size_t read, with_calls, unread, links; /* links: symbolic links, to a folder or a source file, that were not followed */
} tn_census;

/* Counts `sources`, files (whatever their names) and folders (their files with an extension of C, C++ or CUDA, below them at any
 * depth). A path is left out with all below it where a glob of `excludes` matches it: one without a slash its last part, one with
 * a slash the whole, * any slash included. Symbolic links below a source are not followed, .git, .hg and .svn not entered.
 * `apis` must outlive the census. 0 and *out, or -1 and a sentence in `message` (a source that is not there, no memory). What cannot
 * be read below a source is no failure here: its file has `unread`. */
int tn_census_count(const tn_apis *apis, char *const *sources, size_t source_count, char *const *excludes, size_t exclude_count,
                    tn_census **out, char message[TN_TOKEN_TEXT]);
void tn_census_free(tn_census *census);

/* Index of the file of that path, or TN_API_MISSING. */
size_t tn_census_file_at(const tn_census *census, const char *path);

#endif
