/* One pass over a demangled name: brackets are counted, what is in them is left out, and what stands before the
 * last blank outside of them is a return type. */
#include "report/report_short_name.h"

#include <ctype.h>
#include <string.h>

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '~';
}

/* Length of an operator's name at `at`, its symbol included: "operator<<", "operator()", "operator new"; else 0. */
static size_t operator_name(const char *begin, const char *at)
{
    static const char *const symbols[] = {
        "()", "[]", "<=>", "->*", "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=",
        "&=", "|=", "^=", " new[]", " delete[]", " new", " delete", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", ",",
    };
    if ((at > begin && is_word(at[-1])) || strncmp(at, "operator", 8) != 0 || is_word(at[8]))
        return 0;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strncmp(at + 8, symbols[i], strlen(symbols[i])) == 0)
            return 8 + strlen(symbols[i]);
    return at[8] == ' ' ? 9 : 0; /* a conversion: its type follows */
}

/* The end of the bracket that opens at `at`, past its closing one; NULL where it never closes. */
static const char *bracket_end(const char *begin, const char *at)
{
    char open = *at, close = open == '<' ? '>' : open == '(' ? ')' : open == '[' ? ']' : '}';
    size_t depth = 0;
    while (*at) {
        size_t skip = operator_name(begin, at);
        if (skip) {
            at += skip;
            continue;
        }
        if (*at == open && !(open == '<' && at > begin && at[-1] == '-'))
            depth++;
        else if (*at == close && !(close == '>' && at > begin && at[-1] == '-') && --depth == 0)
            return at + 1;
        at++;
    }
    return NULL;
}

/* What compilers add to the name of a part or a copy of a function: "main.cold", "f.constprop.0". */
static int is_clone_suffix(const char *at)
{
    static const char *const suffixes[] = {".cold", ".isra.", ".part.", ".constprop.", ".lto_priv.", ".llvm."};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (strncmp(at, suffixes[i], strlen(suffixes[i])) == 0)
            return 1;
    return 0;
}

typedef struct text {
    char *at;
    size_t used, size;
} text;

static void put(text *t, const char *from, size_t length)
{
    for (size_t i = 0; i < length && t->used + 1 < t->size; i++)
        t->at[t->used++] = from[i];
}

char *tn_short_name(const char *function, char *out, size_t size)
{
    static const char anonymous[] = "(anonymous namespace)";
    text t = {.at = out, .size = size};
    const char *at = function;
    size_t conversion = 0; /* inside the type of a conversion operator blanks belong to the name */
    int after_parameters = 0;
    if (*function == '<') /* <Type as Trait>::method */
        put(&t, function, strlen(function));
    while (*at && *function != '<') {
        size_t skip = operator_name(function, at);
        if ((after_parameters && strncmp(at, "::", 2) != 0) || is_clone_suffix(at))
            break; /* const, &&, [clone ...] */
        after_parameters = 0;
        if (skip) {
            conversion = at[8] == ' ';
            put(&t, at, skip);
            at += skip;
            if (at[0] == ' ' && at[1] == '<') /* "operator< <int>" */
                at++;
        } else if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
            put(&t, "(anonymous)", 11); /* no blank: those end return types */
            at += sizeof(anonymous) - 1;
        } else if (*at == '<' || *at == '(' || *at == '{') {
            const char *end = bracket_end(function, at);
            if (!end) {
                t.used = 0;
                put(&t, function, strlen(function));
                break;
            }
            if (*at == '{') { /* {lambda(int)#1}: its parameters go */
                const char *open = memchr(at, '(', (size_t)(end - at));
                const char *number = open ? memchr(open, '#', (size_t)(end - open)) : NULL;
                put(&t, at, (size_t)((open ? open : end) - at));
                if (open)
                    put(&t, number ? number : end - 1, (size_t)(end - (number ? number : end - 1)));
            }
            after_parameters = *at == '(';
            if (after_parameters && t.used >= 8 && strncmp(t.at + t.used - 8, "decltype", 8) == 0)
                after_parameters = 0; /* a return type */
            at = end;
        } else if (*at == ' ' && !conversion) {
            t.used = 0;
            at++;
        } else {
            put(&t, at++, 1);
        }
        if (*at == '(')
            conversion = 0;
    }
    out[t.used] = 0;
    if (t.used == 0) {
        put(&t, function, strlen(function));
        out[t.used] = 0;
    }
    return out;
}
