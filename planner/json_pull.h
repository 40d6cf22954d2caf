/* A strict reader of JSON that builds nothing: the caller asks for the next member, element or value and gets it out of the text. Nothing but
 * libc's string functions, so it also runs inside a host program; memory is taken for texts with escapes alone, from the caller's hook. A
 * tn_pull borrows the text; after its first problem every call fails, and the problem keeps its place. One thread a tn_pull. */
#ifndef TENURE_PLANNER_JSON_PULL_H
#define TENURE_PLANNER_JSON_PULL_H

#include <stddef.h>
#include <stdint.h>

#include "tiers/metadata.h"

#define TN_PULL_DEPTH 64u /* deeper than this is refused */

typedef enum tn_pull_type {
    TN_PULL_NOTHING = 0, /* no value begins here: a problem */
    TN_PULL_OBJECT, TN_PULL_ARRAY, TN_PULL_TEXT, TN_PULL_NUMBER, TN_PULL_TRUE, TN_PULL_FALSE, TN_PULL_NULL
} tn_pull_type;

typedef struct tn_pull {
    const tn_metadata *memory;
    const unsigned char *text, *at, *end;
    const char *problem;              /* NULL: none yet; a phrase without a full stop */
    const unsigned char *problem_at;
    char *buffer; size_t room;        /* a text with escapes, decoded */
    unsigned depth;
    uint8_t first;                    /* nothing of the innermost object or list was read yet */
    uint8_t no_memory;                /* the problem is that */
} tn_pull;

/* `memory` must outlive it. tn_pull_end_use gives back the buffer. */
void tn_pull_begin(tn_pull *j, const char *text, size_t bytes, const tn_metadata *memory);
void tn_pull_end_use(tn_pull *j);

/* What kind of value begins here; nothing is taken yet. */
tn_pull_type tn_pull_peek(tn_pull *j);

/* Each takes one thing: 1 done, 0 a problem. Texts are UTF-8 without a 0 inside, not ended by one, and good until the next call. */
int tn_pull_enter(tn_pull *j, tn_pull_type object_or_array);
int tn_pull_text(tn_pull *j, const char **text, size_t *bytes);
int tn_pull_word(tn_pull *j);  /* true, false, null, as peeked */
int tn_pull_skip(tn_pull *j);  /* any value */
int tn_pull_finish(tn_pull *j); /* there is nothing more behind the document's value */

/* 1: a whole number from 0 to UINT64_MAX without fraction or exponent; 0: another number; -1: a problem. */
int tn_pull_number(tn_pull *j, uint64_t *number);

/* 1: the next member, whose value is to be taken next, or the next element; 0: the object or list has ended and been left; -1: a problem. */
int tn_pull_member(tn_pull *j, const char **key, size_t *bytes);
int tn_pull_element(tn_pull *j);

/* Where the problem is, lines and columns in bytes, both from 1. */
void tn_pull_place(const tn_pull *j, size_t *line, size_t *column);

#endif
