/* The lines of an allowlist, one by one. Internal to census/. */
#ifndef TENURE_CENSUS_ALLOWLIST_LINES_H
#define TENURE_CENSUS_ALLOWLIST_LINES_H

#include "census/census_allowlist.h"

typedef struct tn_allowed {
    char *path;    /* NULL: a comment or a blank line, whose text is `rest` */
    size_t budget[TN_USE_COUNT];
    char *rest;    /* of an entry: blanks and comment behind the path, or "" */
} tn_allowed;

struct tn_allowlist {
    tn_allowed *lines; /* in the order of the file */
    size_t count, room;
};

/* Takes one line, without its end. 0; 1 where it has another form; -1 when no memory is left. */
int tn_allowed_parse(const char *text, tn_allowed *out);
/* Writes a line with its end; a path that could be misread in quotes. */
void tn_allowed_write(const tn_allowed *line, FILE *out);
/* Puts a line before line `at` and takes its strings over. -1 when no memory is left. */
int tn_allowlist_insert(tn_allowlist *list, size_t at, tn_allowed line);

#endif
