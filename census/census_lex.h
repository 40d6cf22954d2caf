/* Splits C, C++ and CUDA source into tokens without preprocessing it: comments, literals and spliced lines are dealt with as a
 * compiler's first three phases do; macros, headers and dialects are not known here. The text is read from a file descriptor
 * through one buffer of fixed size, so a file may be of any length. A tn_lexer is owned by its caller and used by one thread. */
#ifndef TENURE_CENSUS_LEX_H
#define TENURE_CENSUS_LEX_H

#include <stddef.h>
#include <stdint.h>

typedef enum tn_token_kind {
    TN_TOK_END,       /* of the file, or of what could be read of it: see tn_lexer.error */
    TN_TOK_NAME,      /* an identifier or a keyword */
    TN_TOK_NUMBER,
    TN_TOK_TEXT,      /* a string or character literal with its prefix; its content is not kept */
    TN_TOK_PUNCT,     /* `mark` is its character, one of the TN_MARK_* values below, or its only one */
    TN_TOK_DIRECTIVE, /* the # that begins a preprocessor line */
    TN_TOK_LINE_END,  /* the end of a preprocessor line, spliced lines included */
} tn_token_kind;

/* Two-character marks that matter to the reader of the tokens; every other operator comes as its single characters. */
enum { TN_MARK_SCOPE = 256, /* :: */ TN_MARK_ARROW /* -> */ };

#define TN_TOKEN_TEXT 256 /* a longer name or number is cut to no text at all: no API is that long */

typedef struct tn_token {
    tn_token_kind kind;
    int mark;
    int glued;        /* no blank and no comment stands before it */
    uint64_t line;    /* physical line on which it begins, from 1 */
    uint64_t offset;  /* byte at which it begins, from 0 */
    size_t length;    /* of text */
    char text[TN_TOKEN_TEXT]; /* of a name or number, without line splices, NUL at the end; empty where too long */
} tn_token;

typedef struct tn_lexer {
    int fd;
    int error;          /* errno of a failed read; 0 = none */
    unsigned char *buffer;
    size_t at, end;     /* what of the buffer is to be read */
    uint64_t base;      /* offset of buffer[0] in the file */
    uint64_t line;
    int last_read;      /* the file has no more */
    int line_start;     /* only blanks and comments since the line began */
    int directive;      /* inside a preprocessor line: 1 before its first word, 2 after it */
    int header_next;    /* after #include: <...> is one token */
} tn_lexer;

/* Reads from `fd`, which stays the caller's, from where it stands. 0, or -1 when no memory is left. */
int tn_lexer_open(tn_lexer *lexer, int fd);
void tn_lexer_close(tn_lexer *lexer);
/* Fills *token; TN_TOK_END again and again at the end. */
void tn_lexer_next(tn_lexer *lexer, tn_token *token);

#endif
