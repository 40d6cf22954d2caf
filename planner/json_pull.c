/* One pass over the bytes. Strings that hold nothing special, which nearly all do, are looked at eight bytes at a time and never copied. */
#include "planner/json_pull.h"

#include <string.h>

static int stop_at(tn_pull *j, const unsigned char *at, const char *problem)
{
    if (!j->problem) {
        j->problem = problem;
        j->problem_at = at;
    }
    return 0;
}

static int stop(tn_pull *j, const char *problem)
{
    return stop_at(j, j->at, j->at == j->end ? "the text ends too early" : problem);
}

void tn_pull_begin(tn_pull *j, const char *text, size_t bytes, const tn_metadata *memory)
{
    const unsigned char *at = (const unsigned char *)text;
    *j = (tn_pull){.memory = memory, .text = at, .at = at, .end = at + bytes};
}

void tn_pull_end_use(tn_pull *j)
{
    if (j->buffer)
        (void)j->memory->resize(j->memory->self, j->buffer, j->room, 0);
    j->buffer = NULL;
    j->room = 0;
}

static void skip_space(tn_pull *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
        j->at++;
}

/* ---- texts ---- */

/* 1 where one of the eight bytes is a quote, a backslash, a control character or no ASCII. */
static int is_special(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = eight ^ ones * '"', slash = eight ^ ones * '\\';
    return ((eight | (eight - ones * 0x20) | (quote - ones) | (slash - ones)) & tops) != 0;
}

/* The length of the well-formed UTF-8 sequence at `at`, which is no ASCII; 0: it is none. */
static size_t utf8_length(const unsigned char *at, const unsigned char *end)
{
    size_t left = (size_t)(end - at), length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || left < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Too long a form, half a surrogate pair, beyond the last character. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00u >> length & 0xf0) | c);
    return length;
}

static int hex_four(const unsigned char *at, const unsigned char *end, uint32_t *out)
{
    *out = 0;
    if (end - at < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = at[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f')
            *out = *out << 4 | (low - 'a' + 10);
        else
            return 0;
    }
    return 1;
}

/* Takes what follows a backslash; the bytes written to `to`, 0: a problem. */
static size_t take_escape(tn_pull *j, char *to)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const unsigned char *begin = j->at - 1;
    uint32_t c, second;
    if (j->at == j->end)
        return (size_t)stop(j, "");
    const char *name = *j->at ? strchr(names, *j->at) : NULL;
    if (name) {
        j->at++;
        *to = meant[name - names];
        return 1;
    }
    if (*j->at != 'u' || !hex_four(j->at + 1, j->end, &c))
        return (size_t)stop_at(j, begin, "there is no such escape");
    j->at += 5;
    if (c == 0)
        return (size_t)stop_at(j, begin, "a text may not hold a character 0");
    if (c >= 0xd800 && c < 0xe000) {
        if (c >= 0xdc00 || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u' || !hex_four(j->at + 2, j->end, &second) || second < 0xdc00 ||
            second > 0xdfff)
            return (size_t)stop_at(j, begin, "half of a surrogate pair is no character");
        j->at += 6;
        c = 0x10000 + ((c - 0xd800) << 10 | (second - 0xdc00));
    }
    return put_utf8(to, c);
}

/* Room for `bytes` more behind the `used`. */
static int make_room(tn_pull *j, size_t used, size_t bytes)
{
    if (j->room - used >= bytes)
        return 1;
    size_t wanted = (used + bytes) * 2 < 256 ? 256 : (used + bytes) * 2;
    char *grown = j->memory->resize(j->memory->self, j->buffer, j->room, wanted);
    if (!grown) {
        j->no_memory = 1;
        return stop_at(j, j->at, "does not fit into memory");
    }
    j->buffer = grown;
    j->room = wanted;
    return 1;
}

/* Goes on to the next byte that ends a text or must be decoded. */
static int take_plain(tn_pull *j)
{
    uint64_t eight;
    for (;;) {
        while (j->end - j->at >= 8 && (memcpy(&eight, j->at, 8), !is_special(eight)))
            j->at += 8;
        if (j->at == j->end)
            return stop(j, "");
        if (*j->at == '"' || *j->at == '\\')
            return 1;
        if (*j->at < 0x20)
            return stop(j, "a control character in a text must be written as an escape");
        size_t length = *j->at < 0x80 ? 1 : utf8_length(j->at, j->end);
        if (length == 0)
            return stop_at(j, j->at, "these bytes are no UTF-8");
        j->at += length;
    }
}

int tn_pull_text(tn_pull *j, const char **text, size_t *bytes)
{
    size_t used = 0;
    if (tn_pull_peek(j) != TN_PULL_TEXT)
        return stop(j, "a text must stand here");
    const unsigned char *begin = ++j->at;
    if (!take_plain(j))
        return 0;
    if (*j->at == '"') {
        *text = (const char *)begin;
        *bytes = (size_t)(j->at++ - begin);
        return 1;
    }
    for (;;) {
        size_t plain = (size_t)(j->at - begin), decoded;
        if (!make_room(j, used, plain + 4))
            return 0;
        memcpy(j->buffer + used, begin, plain);
        used += plain;
        if (*j->at++ == '"')
            break;
        decoded = take_escape(j, j->buffer + used);
        begin = j->at;
        used += decoded;
        if (decoded == 0 || !take_plain(j))
            return 0;
    }
    *text = j->buffer;
    *bytes = used;
    return 1;
}

/* ---- values ---- */

tn_pull_type tn_pull_peek(tn_pull *j)
{
    skip_space(j);
    if (j->problem || j->at == j->end)
        return stop(j, ""), TN_PULL_NOTHING;
    switch (*j->at) {
    case '{': return TN_PULL_OBJECT;
    case '[': return TN_PULL_ARRAY;
    case '"': return TN_PULL_TEXT;
    case 't': return TN_PULL_TRUE;
    case 'f': return TN_PULL_FALSE;
    case 'n': return TN_PULL_NULL;
    default:
        if (*j->at == '-' || (*j->at >= '0' && *j->at <= '9'))
            return TN_PULL_NUMBER;
        return stop(j, "a value must stand here"), TN_PULL_NOTHING;
    }
}

int tn_pull_enter(tn_pull *j, tn_pull_type type)
{
    if (tn_pull_peek(j) != type || (type != TN_PULL_OBJECT && type != TN_PULL_ARRAY))
        return stop(j, type == TN_PULL_OBJECT ? "an object must stand here" : "a list must stand here");
    if (j->depth == TN_PULL_DEPTH)
        return stop(j, "it is nested too deeply");
    j->depth++;
    j->first = 1;
    j->at++;
    return 1;
}

/* Past the comma, if one is due; 0: `end` stood there, -1: a problem. */
static int next(tn_pull *j, unsigned char end, const char *problem)
{
    skip_space(j);
    if (j->problem || j->at == j->end)
        return stop(j, ""), -1;
    if (*j->at == end) {
        j->at++;
        j->depth--;
        j->first = 0;
        return 0;
    }
    if (!j->first) {
        if (*j->at != ',')
            return stop(j, problem), -1;
        j->at++;
    }
    j->first = 0;
    return 1;
}

int tn_pull_member(tn_pull *j, const char **key, size_t *bytes)
{
    int more = next(j, '}', "a comma or the end of the object must stand here");
    if (more <= 0)
        return more;
    skip_space(j);
    if (j->at == j->end || *j->at != '"')
        return stop(j, "a key must stand here"), -1;
    if (!tn_pull_text(j, key, bytes))
        return -1;
    skip_space(j);
    if (j->at == j->end || *j->at != ':')
        return stop(j, "a colon must stand here"), -1;
    j->at++;
    return 1;
}

int tn_pull_element(tn_pull *j)
{
    return next(j, ']', "a comma or the end of the list must stand here");
}

static int take_digits(tn_pull *j)
{
    const unsigned char *begin = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
        j->at++;
    return j->at > begin ? 1 : stop(j, "a digit must stand here");
}

int tn_pull_number(tn_pull *j, uint64_t *number)
{
    int whole = 1;
    if (tn_pull_peek(j) != TN_PULL_NUMBER)
        return stop(j, "a number must stand here"), -1;
    if (*j->at == '-') {
        whole = 0;
        j->at++;
    }
    const unsigned char *begin = j->at;
    if (!take_digits(j))
        return -1;
    if (*begin == '0' && j->at - begin > 1)
        return stop_at(j, begin, "a number does not begin with a 0"), -1;
    *number = 0;
    for (const unsigned char *c = begin; c < j->at; c++)
        if (__builtin_mul_overflow(*number, 10u, number) || __builtin_add_overflow(*number, (unsigned)(*c - '0'), number))
            whole = 0;
    if (j->at < j->end && *j->at == '.') {
        whole = 0;
        j->at++;
        if (!take_digits(j))
            return -1;
    }
    if (j->at < j->end && (*j->at | 0x20) == 'e') {
        whole = 0;
        j->at++;
        if (j->at < j->end && (*j->at == '+' || *j->at == '-'))
            j->at++;
        if (!take_digits(j))
            return -1;
    }
    return whole;
}

int tn_pull_word(tn_pull *j)
{
    tn_pull_type type = tn_pull_peek(j);
    const char *word = type == TN_PULL_TRUE ? "true" : type == TN_PULL_FALSE ? "false" : "null";
    size_t length = strlen(word), left = (size_t)(j->end - j->at);
    if (type < TN_PULL_TRUE || memcmp(j->at, word, left < length ? left : length) != 0)
        return stop(j, "a value must stand here");
    j->at += left < length ? left : length;
    return left < length ? stop(j, "") : 1;
}

int tn_pull_skip(tn_pull *j)
{
    uint8_t object[TN_PULL_DEPTH]; /* of the levels that were entered here */
    unsigned level = 0;
    const char *text;
    size_t bytes;
    uint64_t number;
    for (;;) {
        tn_pull_type type = tn_pull_peek(j);
        switch (type) {
        case TN_PULL_NOTHING: return 0;
        case TN_PULL_OBJECT:
        case TN_PULL_ARRAY:
            if (!tn_pull_enter(j, type))
                return 0;
            object[level++] = type == TN_PULL_OBJECT;
            break;
        case TN_PULL_TEXT:
            if (!tn_pull_text(j, &text, &bytes))
                return 0;
            break;
        case TN_PULL_NUMBER:
            if (tn_pull_number(j, &number) < 0)
                return 0;
            break;
        default:
            if (!tn_pull_word(j))
                return 0;
        }
        int more = 0;
        while (level && more == 0) {
            more = object[level - 1] ? tn_pull_member(j, &text, &bytes) : tn_pull_element(j);
            if (more == 0)
                level--;
        }
        if (more < 0)
            return 0;
        if (more == 0)
            return 1;
    }
}

int tn_pull_finish(tn_pull *j)
{
    skip_space(j);
    return j->problem ? 0 : j->at == j->end ? 1 : stop(j, "there is more behind the end of the document");
}

void tn_pull_place(const tn_pull *j, size_t *line, size_t *column)
{
    const unsigned char *at = j->problem ? j->problem_at : j->at, *begin = j->text;
    *line = 1;
    for (const unsigned char *c = j->text; c < at; c++)
        if (*c == '\n') {
            ++*line;
            begin = c + 1;
        }
    *column = (size_t)(at - begin) + 1;
}
