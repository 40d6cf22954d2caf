/* The lexer: phases one to three of translation, by hand (docs/CENSUS.md says why no library does it). */
#define _GNU_SOURCE
#include "census/census_lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER = 256 * 1024,
    LONGEST_SPLICE = 4096, /* blanks between a backslash and the end of its line; compilers ignore them */
    RAW_DELIMITER = 16,    /* the language's limit */
    END = -1,
};

int tn_lexer_open(tn_lexer *lexer, int fd)
{
    *lexer = (tn_lexer){.fd = fd, .line = 1, .line_start = 1, .buffer = malloc(BUFFER)};
    return lexer->buffer ? 0 : -1;
}

void tn_lexer_close(tn_lexer *lexer)
{
    free(lexer->buffer);
    lexer->buffer = NULL;
}

/* Makes `want` bytes (far fewer than BUFFER) readable; how many there are, fewer only at the file's end. */
static size_t need(tn_lexer *x, size_t want)
{
    if (x->end - x->at >= want || x->last_read)
        return x->end - x->at;
    memmove(x->buffer, x->buffer + x->at, x->end - x->at);
    x->base += x->at;
    x->end -= x->at;
    x->at = 0;
    while (x->end < BUFFER && !x->last_read) {
        ssize_t n = read(x->fd, x->buffer + x->end, BUFFER - x->end);
        if (n > 0)
            x->end += (size_t)n;
        else if (n == 0)
            x->last_read = 1;
        else if (errno != EINTR) {
            x->error = errno;
            x->last_read = 1;
        }
    }
    return x->end - x->at;
}

/* The byte `ahead` of the current one, splices not regarded; END past the file. */
static int raw(tn_lexer *x, size_t ahead)
{
    if (x->end - x->at <= ahead && need(x, ahead + 1) <= ahead)
        return END;
    return x->buffer[x->at + ahead];
}

/* Length of the line end `ahead` of the current byte: \n, \r\n or a lone \r; 0 if there is none. */
static size_t line_end(tn_lexer *x, size_t ahead)
{
    int c = raw(x, ahead);
    if (c == '\n')
        return 1;
    if (c != '\r')
        return 0;
    return raw(x, ahead + 1) == '\n' ? 2 : 1;
}

/* Length of the splice that begins with the backslash `ahead` of the current byte; 0 if it is no splice. */
static size_t splice(tn_lexer *x, size_t ahead)
{
    size_t i = ahead + 1;
    for (int c; i < ahead + LONGEST_SPLICE; i++) {
        c = raw(x, i);
        if (c != ' ' && c != '\t' && c != '\f' && c != '\v')
            break;
    }
    size_t n = line_end(x, i);
    return n ? i + n - ahead : 0;
}

/* The current byte once splices before it are stepped over. */
static int at(tn_lexer *x)
{
    for (;;) {
        int c = raw(x, 0);
        if (c != '\\')
            return c;
        size_t n = splice(x, 0);
        if (!n)
            return c;
        x->at += n;
        x->line++;
    }
}

/* The byte after the current one, splices between them stepped over; nothing is consumed. */
static int after(tn_lexer *x)
{
    size_t ahead = 1, n;
    while (raw(x, ahead) == '\\' && ahead < LONGEST_SPLICE && (n = splice(x, ahead)) != 0)
        ahead += n;
    return raw(x, ahead);
}

/* Steps over a line end, which must be here. */
static void newline(tn_lexer *x)
{
    x->at += line_end(x, 0);
    x->line++;
}

static int is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 0x80;
}

static int is_digit(int c) { return c >= '0' && c <= '9'; }
static int is_name(int c) { return is_name_start(c) || is_digit(c); }

static int is_hex(int c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* A \uXXXX or \UXXXXXXXX in a name; at a backslash. Its length or 0. */
static size_t universal(tn_lexer *x)
{
    int kind = raw(x, 1);
    size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    for (size_t i = 0; i < digits; i++)
        if (!is_hex(raw(x, 2 + i)))
            return 0;
    return digits ? digits + 2 : 0;
}

static void keep(tn_token *t, int c)
{
    if (t->length + 1 < TN_TOKEN_TEXT)
        t->text[t->length] = (char)c;
    t->length++;
}

static void end_text(tn_token *t)
{
    if (t->length >= TN_TOKEN_TEXT)
        t->length = 0;
    t->text[t->length] = 0;
}

static void block_comment(tn_lexer *x)
{
    int c, star = 0;
    while ((c = at(x)) != END) {
        if (c == '\n' || c == '\r') {
            newline(x);
            star = 0;
            continue;
        }
        x->at++;
        if (star && c == '/')
            return;
        star = c == '*';
    }
}

static void line_comment(tn_lexer *x)
{
    int c;
    while ((c = at(x)) != END && c != '\n' && c != '\r')
        x->at++;
}

/* A user's literal suffix, which begins with an underscore, right behind a closing quote. */
static void suffix(tn_lexer *x)
{
    if (at(x) != '_')
        return;
    for (int c; (c = at(x)) != END && is_name(c) && c != '$';)
        x->at++;
}

/* The rest of a literal after its opening quote; one that is not closed ends with its line. */
static void quoted(tn_lexer *x, int quote)
{
    int c;
    while ((c = at(x)) != END && c != '\n' && c != '\r') {
        x->at++;
        if (c == quote) {
            suffix(x);
            return;
        }
        if (c == '\\' && (c = at(x)) != END && c != '\n' && c != '\r')
            x->at++;
    }
}

/* R"DELIMITER( ... )DELIMITER", after the opening quote, where no splice counts. 0 if it is no raw string after all. */
static int raw_quoted(tn_lexer *x)
{
    char close[RAW_DELIMITER + 3] = ")";
    size_t n = 1;
    for (int c; (c = raw(x, n - 1)) != '('; n++) {
        if (c == END || n > RAW_DELIMITER || c == ')' || c == '\\' || c == '"' || c <= ' ')
            return 0;
        close[n] = (char)c;
    }
    x->at += n; /* delimiter and parenthesis */
    close[n++] = '"';
    for (int c; (c = raw(x, 0)) != END;) {
        if (c == '\n' || c == '\r')
            newline(x);
        else if (c == ')' && need(x, n) >= n && memcmp(x->buffer + x->at, close, n) == 0) {
            x->at += n;
            suffix(x);
            return 1;
        } else
            x->at++;
    }
    return 1;
}

/* A name, or the literal that the name turns out to be the prefix of. */
static void name(tn_lexer *x, tn_token *t)
{
    t->kind = TN_TOK_NAME;
    for (int c; (c = at(x)) != END;) {
        size_t n = c == '\\' ? universal(x) : (size_t)is_name(c);
        if (!n)
            break;
        for (; n; n--)
            keep(t, x->buffer[x->at++]);
    }
    end_text(t);
    int quote = at(x);
    if (quote != '"' && quote != '\'')
        return;
    static const char *const prefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strcmp(t->text, prefixes[i]) != 0)
            continue;
        if (i >= 4 && quote != '"')
            return;
        t->kind = TN_TOK_TEXT;
        x->at++;
        if (i < 4 || !raw_quoted(x))
            quoted(x, quote);
        return;
    }
}

static void number(tn_lexer *x, tn_token *t)
{
    t->kind = TN_TOK_NUMBER;
    int before = 0, c;
    while ((c = at(x)) != END) {
        int sign = (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
        int separator = c == '\'' && is_name(raw(x, 1));
        if ((!is_name(c) || c == '$') && c != '.' && !sign && !separator)
            break;
        keep(t, c);
        x->at++;
        before = c;
    }
    end_text(t);
}

/* Blanks, comments and, outside a preprocessor line, line ends. 1 if there was any. */
static int blanks(tn_lexer *x)
{
    int any = 0;
    for (int c; (c = at(x)) != END; any = 1) {
        if (c == '\n' || c == '\r') {
            if (x->directive)
                break;
            newline(x);
            x->line_start = 1;
        } else if (c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == 0) {
            x->at++;
        } else if (c == '/') {
            int next = after(x);
            if (next != '*' && next != '/')
                break;
            x->at++;
            at(x);
            x->at++;
            if (next == '*')
                block_comment(x);
            else
                line_comment(x);
        } else {
            break;
        }
    }
    return any;
}

/* <...> of an #include, whose characters are no tokens. 0 if the line has another form. */
static int header(tn_lexer *x)
{
    x->header_next = 0;
    if (at(x) != '<')
        return 0;
    for (int c; (c = at(x)) != END && c != '\n' && c != '\r';) {
        x->at++;
        if (c == '>')
            break;
    }
    return 1;
}

static void punctuation(tn_lexer *x, tn_token *t, int c)
{
    t->kind = TN_TOK_PUNCT;
    t->mark = c;
    x->at++;
    if (c == ':' && at(x) == ':') {
        x->at++;
        t->mark = TN_MARK_SCOPE;
    } else if (c == '-' && at(x) == '>') {
        x->at++;
        t->mark = TN_MARK_ARROW;
    }
}

void tn_lexer_next(tn_lexer *x, tn_token *t)
{
    if (x->base + x->at == 0 && raw(x, 0) == 0xEF && raw(x, 1) == 0xBB && raw(x, 2) == 0xBF)
        x->at = 3; /* a byte order mark */
    t->glued = !blanks(x);
    t->mark = 0;
    t->length = 0;
    t->text[0] = 0;
    int c = at(x);
    t->line = x->line;
    t->offset = x->base + x->at;
    if (x->directive && (c == END || c == '\n' || c == '\r')) {
        x->directive = x->header_next = 0;
        x->line_start = 1;
        t->kind = TN_TOK_LINE_END;
        if (c != END)
            newline(x);
        return;
    }
    if (c == END) {
        t->kind = TN_TOK_END;
        return;
    }
    int first = x->line_start;
    x->line_start = 0;
    if (x->header_next && header(x)) {
        t->kind = TN_TOK_TEXT;
    } else if (c == '#' && first) {
        x->at++;
        x->directive = 1;
        t->kind = TN_TOK_DIRECTIVE;
    } else if (is_name_start(c) || (c == '\\' && universal(x))) {
        name(x, t);
        x->header_next = x->directive == 1 &&
                         (strcmp(t->text, "include") == 0 || strcmp(t->text, "include_next") == 0 || strcmp(t->text, "import") == 0);
    } else if (is_digit(c) || (c == '.' && is_digit(raw(x, 1)))) {
        number(x, t);
    } else if (c == '"' || c == '\'') {
        x->at++;
        t->kind = TN_TOK_TEXT;
        quoted(x, c);
    } else {
        punctuation(x, t, c);
    }
    if (x->directive && t->kind != TN_TOK_DIRECTIVE)
        x->directive = 2;
}
