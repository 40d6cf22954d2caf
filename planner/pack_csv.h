/* The public MiniMalloc file format: a header that names the columns, then one buffer a line. Columns: id, lower, upper,
 * size, and optionally alignment, gaps ("3-5 9-12", half-open as the lifetimes are), hint, offset; for some there are
 * other names (buffer; start, begin; end; align). The reader owns what it fills until tn_pack_csv_free(). */
#ifndef TENURE_PLANNER_PACK_CSV_H
#define TENURE_PLANNER_PACK_CSV_H

#include <stdio.h>

#include "planner/pack.h"

typedef struct tn_pack_csv {
    size_t count;
    tn_pack_buffer *buffers; /* id: the rank of its name among all names */
    const char **names;      /* the id column's text */
    size_t *lines;           /* where each stood, from 1 */
    uint64_t *offsets;       /* the offset column; NULL where there is none. Without a hint column it gives the hints */
    bool has_alignment, has_gaps, has_hint;
    char *text;              /* what names point into */
    tn_pack_gap *gaps;       /* what buffers point into */
} tn_pack_csv;

enum { TN_PACK_CSV_MESSAGE = 512 };

/* Parses length bytes. On failure nothing is kept and message holds one sentence, "NAME:LINE: what is wrong". */
bool tn_pack_csv_parse(const char *bytes, size_t length, const char *name, tn_pack_csv *csv,
                       char message[TN_PACK_CSV_MESSAGE]) __attribute__((warn_unused_result));
/* The same of a file. */
bool tn_pack_csv_read(const char *path, tn_pack_csv *csv, char message[TN_PACK_CSV_MESSAGE])
    __attribute__((warn_unused_result));
void tn_pack_csv_free(tn_pack_csv *csv);

/* Writes the columns that were read, by their first names, and the offsets. False where the stream has an error. */
bool tn_pack_csv_write(FILE *out, const tn_pack_csv *csv, const uint64_t *offsets) __attribute__((warn_unused_result));

#endif
