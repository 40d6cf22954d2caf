/* The rules by which a call is told from a declaration. Each looks backward from the name. */
#include "census/census_context.h"

#include <string.h>

enum word {
    WORD_OTHER,
    WORD_TYPE,       /* a built-in type: never an operand */
    WORD_QUALIFIER,  /* const, volatile, restrict */
    WORD_EXPRESSION, /* an expression follows */
    WORD_OF,         /* sizeof and its like: an expression may follow, but (name)( after it is none */
    WORD_TEMPLATE,
};

static const struct {
    const char *text;
    enum word word;
} words[] = {
    {"void", WORD_TYPE},          {"char", WORD_TYPE},          {"short", WORD_TYPE},          {"int", WORD_TYPE},
    {"long", WORD_TYPE},          {"float", WORD_TYPE},         {"double", WORD_TYPE},         {"signed", WORD_TYPE},
    {"unsigned", WORD_TYPE},      {"bool", WORD_TYPE},          {"_Bool", WORD_TYPE},          {"auto", WORD_TYPE},
    {"wchar_t", WORD_TYPE},       {"size_t", WORD_TYPE},        {"uint8_t", WORD_TYPE},        {"cudaError_t", WORD_TYPE},
    {"CUresult", WORD_TYPE},      {"const", WORD_QUALIFIER},    {"volatile", WORD_QUALIFIER},  {"restrict", WORD_QUALIFIER},
    {"__restrict", WORD_QUALIFIER}, {"__restrict__", WORD_QUALIFIER}, {"return", WORD_EXPRESSION}, {"else", WORD_EXPRESSION},
    {"do", WORD_EXPRESSION},      {"throw", WORD_EXPRESSION},   {"case", WORD_EXPRESSION},     {"goto", WORD_EXPRESSION},
    {"co_await", WORD_EXPRESSION}, {"co_return", WORD_EXPRESSION}, {"co_yield", WORD_EXPRESSION}, {"and", WORD_EXPRESSION},
    {"or", WORD_EXPRESSION},      {"not", WORD_EXPRESSION},     {"xor", WORD_EXPRESSION},      {"bitand", WORD_EXPRESSION},
    {"bitor", WORD_EXPRESSION},   {"compl", WORD_EXPRESSION},   {"not_eq", WORD_EXPRESSION},   {"and_eq", WORD_EXPRESSION},
    {"or_eq", WORD_EXPRESSION},   {"xor_eq", WORD_EXPRESSION},  {"new", WORD_EXPRESSION},      {"delete", WORD_EXPRESSION},
    {"__extension__", WORD_EXPRESSION}, {"sizeof", WORD_OF},    {"alignof", WORD_OF},          {"_Alignof", WORD_OF},
    {"decltype", WORD_OF},        {"typeid", WORD_OF},          {"noexcept", WORD_OF},         {"typeof", WORD_OF},
    {"__typeof__", WORD_OF},      {"template", WORD_TEMPLATE},
};

void tn_context_reset(tn_context *c)
{
    c->count = 0;
    c->cut = 0;
}

void tn_context_push(tn_context *c, const tn_token *t)
{
    if (t->kind == TN_TOK_PUNCT && (t->mark == ';' || t->mark == '{' || t->mark == '}')) {
        tn_context_reset(c);
        return;
    }
    if (c->count == TN_CONTEXT_WINDOW) {
        size_t drop = TN_CONTEXT_WINDOW / 2;
        memmove(c->items, c->items + drop, (TN_CONTEXT_WINDOW - drop) * sizeof(c->items[0]));
        c->count -= drop;
        c->cut = 1;
    }
    tn_context_item *item = &c->items[c->count++];
    *item = (tn_context_item){.mark = (short)t->mark, .kind = (unsigned char)t->kind, .word = WORD_OTHER};
    if (t->kind != TN_TOK_NAME)
        return;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].text, t->text) == 0)
            item->word = (unsigned char)words[i].word;
}

/* Item `at` - 1; where the statement begins, a token of no kind. */
static tn_context_item before(const tn_context *c, size_t at)
{
    return at ? c->items[at - 1] : (tn_context_item){.kind = TN_TOK_END};
}

static int is_mark(tn_context_item item, int mark) { return item.kind == TN_TOK_PUNCT && item.mark == mark; }

/* A name that can be, or end, a type or a specifier. */
static int is_noun(tn_context_item item)
{
    return item.kind == TN_TOK_NAME && item.word != WORD_EXPRESSION && item.word != WORD_OF;
}

/* `at` is behind a >: the position of its <, or 0. */
static size_t open_angle(const tn_context *c, size_t at)
{
    for (int depth = 0; at; at--) {
        tn_context_item item = before(c, at);
        depth += is_mark(item, '>');
        depth -= is_mark(item, '<');
        if (depth == 0)
            return at - 1;
    }
    return 0;
}

/* `at` is behind a name or a template's >: the position before it and before the a::b:: in front of it; `at` if there is no name. */
static size_t skip_qualified(const tn_context *c, size_t at)
{
    size_t start = at;
    for (;;) {
        if (is_mark(before(c, at), '>'))
            at = open_angle(c, at);
        if (!at || !is_noun(before(c, at)))
            return start;
        start = --at;
        if (!is_mark(before(c, at), TN_MARK_SCOPE))
            return start;
        start = --at;
    }
}

/* Can a declaration's first type begin at `at`? */
static int is_start(const tn_context *c, size_t at)
{
    if (at == 0)
        return !c->cut;
    tn_context_item item = before(c, at);
    if (item.kind == TN_TOK_NAME)
        return is_noun(item);
    if (item.kind == TN_TOK_TEXT || is_mark(item, ']')) /* extern "C", [[nodiscard]] */
        return 1;
    if (is_mark(item, '>')) {
        size_t open = open_angle(c, at);
        return open && before(c, open).word == WORD_TEMPLATE;
    }
    if (!is_mark(item, ':'))
        return 0;
    for (size_t i = 0; i < at; i++) /* a label's or an access specifier's, but not a conditional's */
        if (is_mark(c->items[i], '?'))
            return 0;
    return 1;
}

static int is_declared(const tn_context *c, size_t at)
{
    int pointer = 0, qualifier = 0;
    for (;; at--) {
        tn_context_item item = before(c, at);
        if (is_mark(item, '&') && is_mark(before(c, at - 1), '&'))
            return before(c, at - 2).word == WORD_TYPE; /* found && name() is common, a function that returns T && is not */
        if (is_mark(item, '*') || is_mark(item, '&'))
            pointer = 1;
        else if (item.kind == TN_TOK_NAME && item.word == WORD_QUALIFIER)
            qualifier = 1;
        else
            break;
    }
    tn_context_item item = before(c, at);
    int angle = is_mark(item, '>');
    if (!angle && !is_noun(item))
        return qualifier;
    if (qualifier || (!angle && (!pointer || item.word == WORD_TYPE)))
        return 1; /* two adjacent names, or a type that no operator can follow */
    size_t start = skip_qualified(c, at);
    return start != at && is_start(c, start);
}

tn_placed tn_context_place(const tn_context *c)
{
    tn_placed placed = {0, 0, 0};
    size_t at = c->count;
    if (at && before(c, at).word == WORD_TEMPLATE && before(c, at).kind == TN_TOK_NAME)
        at--; /* a.template name<T>( */
    if (is_mark(before(c, at), TN_MARK_SCOPE)) {
        size_t start = skip_qualified(c, at - 1);
        at = start; /* of a::b::name; where nothing stands before the ::, of ::name */
    }
    tn_context_item item = before(c, at);
    if (is_mark(item, '.') || is_mark(item, TN_MARK_ARROW)) {
        placed.member = 1;
    } else if (is_mark(item, '~')) {
        placed.declared = 1;
    } else if (is_mark(item, '(')) {
        tn_context_item outer = before(c, at - 1);
        placed.parenthesised = outer.kind != TN_TOK_NAME ? !is_mark(outer, ')') && !is_mark(outer, ']') && !is_mark(outer, '>')
                                                         : outer.word == WORD_EXPRESSION;
    } else {
        placed.declared = is_declared(c, at);
    }
    return placed;
}
