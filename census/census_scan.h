/* The uses of the looked-for names in one source file: calls, declarations and definitions, and mentions that are neither.
 * Comments, literals and code that the text alone shows to be dead (#if 0) are left out; every other branch of a conditional counts.
 * Nothing is kept between files; several threads may scan with one tn_apis. */
#ifndef TENURE_CENSUS_SCAN_H
#define TENURE_CENSUS_SCAN_H

#include "census/census_apis.h"
#include "census/census_lex.h"

typedef enum tn_use_kind {
    TN_USE_IS_CALL,
    TN_USE_IS_DECLARATION, /* a declaration, a definition, or a macro of that name */
    TN_USE_IS_MENTION,     /* an address taken, an argument, #ifdef NAME ... */
} tn_use_kind;

typedef struct tn_code_use {
    uint64_t line;        /* of the name */
    uint64_t first, last; /* of the outermost parentheses around the call in its statement, with the word before them: where a
                             compiler's line table may place it. Both equal `line` where it is no call */
    size_t api;
    tn_use_kind kind;
    int in_macro;         /* in the body of a #define */
    int member;           /* behind . or -> */
} tn_code_use;

typedef struct tn_code_uses {
    tn_code_use *items; /* in the order of the source */
    size_t count, room;
} tn_code_uses;

/* Reads `fd` to its end. NULL, or why the file could not be counted (constant text, or strerror's); then *uses is empty.
 * The caller frees uses->items. */
const char *tn_census_scan(int fd, const tn_apis *apis, tn_code_uses *uses);

#endif
