/* The allowlist: how many allocation and free calls each file may hold. A text file with one line a file, `ALLOCS FREES PATH`, and
 * comments; a census holds it when every file has exactly what its line says and every file with calls has a line. A
 * tn_allowlist owns what it holds until it is freed; one thread. */
#ifndef TENURE_CENSUS_ALLOWLIST_H
#define TENURE_CENSUS_ALLOWLIST_H

#include "census/census.h"

#define TN_ALLOWLIST_MESSAGE 1024

typedef struct tn_allowlist tn_allowlist;

/* 0; -1 and a sentence in `message` where the file cannot be read, a line has another form, or a file stands in it twice.
 * Where it is not there: 1, *out an empty list, and the sentence as well. */
int tn_allowlist_read(const char *path, tn_allowlist **out, char message[TN_ALLOWLIST_MESSAGE]);
void tn_allowlist_free(tn_allowlist *list);

typedef enum tn_finding_kind {
    TN_FINDING_OVER,     /* more calls than its budget */
    TN_FINDING_UNDER,    /* fewer: the budget must follow, or the list could grow again unseen */
    TN_FINDING_UNLISTED, /* calls, but no line */
    TN_FINDING_STALE,    /* a line, but no such file */
    TN_FINDING_EXCLUDED, /* a line, and a file that is there but is not counted */
    TN_FINDING_KINDS
} tn_finding_kind;

typedef struct tn_finding {
    tn_finding_kind kind;
    tn_api_use use;      /* of OVER and UNDER */
    const char *path;
    size_t allowed[TN_USE_COUNT], found[TN_USE_COUNT];
    size_t line;         /* of the list, from 1; 0 = none */
} tn_finding;

/* "over", "under", "unlisted", "stale", "excluded". */
const char *tn_finding_name(tn_finding_kind kind);
/* What to do, without a full stop: "raise ..."; constant. */
const char *tn_finding_advice(const tn_finding *finding);

/* What does not hold, by path. The caller frees *findings; the paths belong to list and census. -1 when no memory is left. */
int tn_allowlist_check(const tn_allowlist *list, const tn_census *census, tn_finding **findings, size_t *count);

typedef struct tn_allowlist_change { size_t added, changed, removed, kept; } tn_allowlist_change;

/* Rewrites the file at `path` so that the census holds it: budgets change in place, lines of files without calls go, new ones
 * come where they belong by name, comments and blank lines stay. The new file replaces the old one in one step; a second update
 * changes nothing. -1 and a sentence in `message` where it cannot be written; then the old one is as it was. */
int tn_allowlist_update(tn_allowlist *list, const tn_census *census, const char *path, tn_allowlist_change *change,
                        char message[TN_ALLOWLIST_MESSAGE]);

#endif
