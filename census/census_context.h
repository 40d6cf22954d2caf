/* Is NAME( a call or a declaration? A lexer does not know types, but what stands in front of the name within its statement tells:
 * two adjacent names that are no operators, or a type and a * at the start of a statement, are no expression. The statement's
 * tokens up to here are kept in a small window. Plain data, owned by the scan of one file. */
#ifndef TENURE_CENSUS_CONTEXT_H
#define TENURE_CENSUS_CONTEXT_H

#include "census/census_lex.h"

#define TN_CONTEXT_WINDOW 96

typedef struct tn_context_item {
    short mark;         /* of punctuation; 0 else */
    unsigned char kind; /* tn_token_kind */
    unsigned char word; /* what sort of name; private */
} tn_context_item;

typedef struct tn_context {
    size_t count;
    int cut; /* the statement began before the window */
    tn_context_item items[TN_CONTEXT_WINDOW];
} tn_context;

typedef struct tn_placed {
    int declared;      /* if a parenthesis follows, it is a declaration's or definition's */
    int member;        /* behind . or -> */
    int parenthesised; /* alone behind a parenthesis that is no call's: (name)(...) is a call */
} tn_placed;

/* Starts a new statement. */
void tn_context_reset(tn_context *context);
/* Takes note of a token; ; { and } start a new statement. */
void tn_context_push(tn_context *context, const tn_token *token);
/* What a name that comes next would be. */
tn_placed tn_context_place(const tn_context *context);

#endif
