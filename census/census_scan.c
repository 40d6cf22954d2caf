/* From tokens to uses: brackets, macro bodies, and the few tokens after a name that make it a call. */
#define _GNU_SOURCE
#include "census/census_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "census/census_conditions.h"
#include "census/census_context.h"

enum {
    DEEPEST = 1 << 20,    /* brackets open at one time; a file with more is no program */
    LONGEST_ANGLE = 1024, /* tokens between name< and >( */
};

typedef enum pending_state { NOTHING, AFTER_NAME, IN_ANGLE, AFTER_ANGLE, AFTER_PAREN } pending_state;

typedef struct bracket {
    uint64_t head; /* line of the word before it */
    int mark;      /* ( or { */
} bracket;

typedef struct scan {
    tn_lexer lexer;
    const tn_apis *apis;
    tn_code_uses *uses;
    tn_context context;
    tn_conditions conditions;
    bracket *brackets;
    size_t count, room, base; /* of brackets; those below base belong to the text around a macro */
    struct open_call { size_t use, level; } *open; /* calls whose outermost parenthesis is not closed yet, by rising level */
    size_t open_count, open_room;
    int in_macro;
    uint64_t word_line; /* of the token before, if it is a name */
    pending_state state;
    struct { size_t api; uint64_t line; tn_placed placed; int angles, angle_tokens; } pending;
    const char *failed;
} scan;

static const char no_memory[] = "no memory is left";
static const char too_deep[] = "its brackets or conditionals are nested too deep";

/* Makes room for one more element; NULL, and s->failed, when there is none. */
static void *room_for(scan *s, void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room ? *room * 2 : 64;
    void *grown = realloc(items, more * size);
    if (grown)
        *room = more;
    else
        s->failed = no_memory;
    return grown;
}

static tn_code_use *add_use(scan *s, size_t api, tn_use_kind kind, uint64_t line)
{
    void *grown = room_for(s, s->uses->items, s->uses->count, &s->uses->room, sizeof(tn_code_use));
    if (!grown)
        return NULL;
    s->uses->items = grown;
    tn_code_use *use = &s->uses->items[s->uses->count++];
    *use = (tn_code_use){.line = line, .first = line, .last = line, .api = api, .kind = kind, .in_macro = s->in_macro};
    return use;
}

/* Brackets are gone down to `count`: calls inside them end on `line`. */
static void close_to(scan *s, size_t count, uint64_t line)
{
    if (count < s->base)
        count = s->base;
    if (count < s->count)
        s->count = count;
    while (s->open_count && s->open[s->open_count - 1].level >= s->count)
        s->uses->items[s->open[--s->open_count].use].last = line;
}

static void open_bracket(scan *s, int mark, uint64_t line)
{
    if (s->count >= DEEPEST) {
        s->failed = too_deep;
        return;
    }
    void *grown = room_for(s, s->brackets, s->count, &s->room, sizeof(bracket));
    if (!grown)
        return;
    s->brackets = grown;
    s->brackets[s->count++] = (bracket){mark == '(' && s->word_line ? s->word_line : line, mark};
}

static void close_bracket(scan *s, int mark, uint64_t line)
{
    size_t i = s->count;
    if (mark == ')') {
        if (i > s->base && s->brackets[i - 1].mark == '(')
            close_to(s, i - 1, line);
        return;
    }
    while (i > s->base && s->brackets[i - 1].mark != '{')
        i--;
    if (i > s->base) /* parentheses that a conditional left open go with their block */
        close_to(s, i - 1, line);
}

/* The pending name is followed by its parenthesis, which is not open yet. */
static void add_call(scan *s)
{
    tn_code_use *use = add_use(s, s->pending.api, s->pending.placed.declared ? TN_USE_IS_DECLARATION : TN_USE_IS_CALL, s->pending.line);
    if (!use)
        return;
    use->member = s->pending.placed.member;
    if (use->kind != TN_USE_IS_CALL)
        return;
    size_t level = s->count;
    while (level > s->base && s->brackets[level - 1].mark == '(')
        level--;
    if (level < s->count)
        use->first = s->brackets[level].head;
    void *grown = room_for(s, s->open, s->open_count, &s->open_room, sizeof(*s->open));
    if (!grown)
        return;
    s->open = grown;
    s->open[s->open_count++] = (struct open_call){s->uses->count - 1, level};
}

static void add_mention(scan *s)
{
    if (s->state != NOTHING)
        add_use(s, s->pending.api, TN_USE_IS_MENTION, s->pending.line);
    s->state = NOTHING;
}

/* What the token after the pending name, or after its template arguments, makes of it. */
static void decide(scan *s, const tn_token *t)
{
    int mark = t->kind == TN_TOK_PUNCT ? t->mark : 0;
    if (s->state == IN_ANGLE) {
        s->pending.angles += (mark == '<') - (mark == '>');
        if (s->pending.angles == 0)
            s->state = AFTER_ANGLE;
        else if (mark == ';' || mark == '{' || mark == '}' || ++s->pending.angle_tokens > LONGEST_ANGLE)
            add_mention(s);
    } else if (mark == '(') {
        s->state = NOTHING;
        add_call(s);
    } else if (mark == '<' && s->state == AFTER_NAME) {
        s->state = IN_ANGLE;
        s->pending.angles = 1;
        s->pending.angle_tokens = 0;
    } else if (mark == ')' && s->state == AFTER_NAME && s->pending.placed.parenthesised) {
        s->state = AFTER_PAREN;
    } else {
        add_mention(s);
    }
}

static size_t api_of(const scan *s, const tn_token *t)
{
    return t->kind == TN_TOK_NAME && t->length ? tn_apis_find(s->apis, t->text, t->length) : TN_API_MISSING;
}

/* One token of live code. */
static void feed(scan *s, const tn_token *t)
{
    if (s->state != NOTHING)
        decide(s, t);
    size_t api = api_of(s, t);
    if (api != TN_API_MISSING) {
        add_mention(s); /* of a name inside whose template arguments this one stands */
        s->state = AFTER_NAME;
        s->pending.api = api;
        s->pending.line = t->line;
        s->pending.placed = tn_context_place(&s->context);
    } else if (t->kind == TN_TOK_PUNCT) {
        if (t->mark == '(' || t->mark == '{')
            open_bracket(s, t->mark, t->line);
        else if (t->mark == ')' || t->mark == '}')
            close_bracket(s, t->mark, t->line);
    }
    s->word_line = t->kind == TN_TOK_NAME ? t->line : 0;
    tn_context_push(&s->context, t);
}

static void skip_line(scan *s, tn_token *t)
{
    while (t->kind != TN_TOK_LINE_END)
        tn_lexer_next(&s->lexer, t);
}

/* The same to the end of the line, but names count as mentioned. */
static void mention_line(scan *s, tn_token *t)
{
    for (; t->kind != TN_TOK_LINE_END && !s->failed; tn_lexer_next(&s->lexer, t)) {
        size_t api = api_of(s, t);
        if (api != TN_API_MISSING)
            add_use(s, api, TN_USE_IS_MENTION, t->line);
    }
}

/* *t is the word define. */
static void define(scan *s, tn_token *t)
{
    add_mention(s);
    tn_lexer_next(&s->lexer, t);
    size_t api = api_of(s, t);
    if (api != TN_API_MISSING)
        add_use(s, api, TN_USE_IS_DECLARATION, t->line);
    if (t->kind != TN_TOK_NAME)
        return;
    tn_lexer_next(&s->lexer, t);
    if (t->kind == TN_TOK_PUNCT && t->mark == '(' && t->glued)
        while (t->kind != TN_TOK_LINE_END && !(t->kind == TN_TOK_PUNCT && t->mark == ')'))
            tn_lexer_next(&s->lexer, t);
    tn_context around = s->context;
    size_t base = s->base, count = s->count;
    uint64_t word_line = s->word_line;
    s->base = s->count;
    s->in_macro = 1;
    s->word_line = 0;
    tn_context_reset(&s->context);
    if (t->kind == TN_TOK_PUNCT && t->mark == ')')
        tn_lexer_next(&s->lexer, t);
    for (; t->kind != TN_TOK_LINE_END && !s->failed; tn_lexer_next(&s->lexer, t))
        feed(s, t);
    add_mention(s);
    close_to(s, count, t->line);
    s->in_macro = 0;
    s->base = base;
    s->context = around;
    s->word_line = word_line;
}

/* The condition on the rest of the line, if a literal alone, in parentheses or not. */
static tn_condition condition(scan *s, tn_token *t)
{
    tn_condition value = TN_CONDITION_UNKNOWN;
    int words = 0;
    for (; t->kind != TN_TOK_LINE_END; tn_lexer_next(&s->lexer, t)) {
        if (t->kind == TN_TOK_PUNCT && (t->mark == '(' || t->mark == ')'))
            continue;
        char *end = t->text;
        unsigned long long n = t->kind == TN_TOK_NUMBER && t->length ? strtoull(t->text, &end, 0) : 0;
        if (end != t->text && end[strspn(end, "uUlL")] == 0)
            value = n ? TN_CONDITION_TRUE : TN_CONDITION_FALSE;
        else if (t->kind == TN_TOK_NAME && strcmp(t->text, "false") == 0)
            value = TN_CONDITION_FALSE;
        else if (t->kind == TN_TOK_NAME && strcmp(t->text, "true") == 0)
            value = TN_CONDITION_TRUE;
        else {
            size_t api = tn_conditions_dead(&s->conditions) ? TN_API_MISSING : api_of(s, t);
            if (api != TN_API_MISSING)
                add_use(s, api, TN_USE_IS_MENTION, t->line);
            words++;
        }
        words++;
    }
    return words == 1 ? value : TN_CONDITION_UNKNOWN;
}

/* One preprocessor line; *t is its #, and becomes its end. */
static void directive(scan *s, tn_token *t)
{
    tn_lexer_next(&s->lexer, t);
    char word[16] = "";
    if (t->kind == TN_TOK_NAME && t->length < sizeof(word))
        memcpy(word, t->text, t->length + 1);
    int dead = tn_conditions_dead(&s->conditions);
    if (strcmp(word, "if") == 0 || strcmp(word, "ifdef") == 0 || strcmp(word, "ifndef") == 0) {
        tn_condition value = TN_CONDITION_UNKNOWN;
        tn_lexer_next(&s->lexer, t);
        if (word[2] == 0)
            value = condition(s, t);
        else if (!dead)
            mention_line(s, t);
        if (tn_conditions_if(&s->conditions, value, s->count) != 0)
            s->failed = s->conditions.count * 2 > TN_CONDITIONS_DEEPEST ? too_deep : no_memory;
    } else if (strcmp(word, "else") == 0 || strncmp(word, "elif", 4) == 0) {
        int other = strcmp(word, "else") == 0;
        tn_lexer_next(&s->lexer, t);
        tn_condition value = other ? TN_CONDITION_TRUE : TN_CONDITION_UNKNOWN;
        if (strcmp(word, "elif") == 0)
            value = condition(s, t);
        const tn_condition_level *level = tn_conditions_elif(&s->conditions, value);
        if (level) /* what the branch before left open is closed in this one too */
            close_to(s, level->brackets, t->line);
    } else if (strcmp(word, "endif") == 0) {
        tn_conditions_endif(&s->conditions);
    } else if (!dead && strcmp(word, "define") == 0) {
        define(s, t);
    } else if (!dead && strcmp(word, "undef") == 0) {
        mention_line(s, t);
    }
    skip_line(s, t);
}

const char *tn_census_scan(int fd, const tn_apis *apis, tn_code_uses *uses)
{
    *uses = (tn_code_uses){NULL, 0, 0};
    unsigned char mark[2];
    if (pread(fd, mark, 2, 0) == 2 && ((mark[0] == 0xFF && mark[1] == 0xFE) || (mark[0] == 0xFE && mark[1] == 0xFF)))
        return "it is UTF-16 text, which is not read";
    scan s = {.apis = apis, .uses = uses};
    if (tn_lexer_open(&s.lexer, fd) != 0)
        return no_memory;
    tn_token token;
    for (tn_lexer_next(&s.lexer, &token); token.kind != TN_TOK_END && !s.failed; tn_lexer_next(&s.lexer, &token)) {
        if (token.kind == TN_TOK_DIRECTIVE)
            directive(&s, &token);
        else if (!tn_conditions_dead(&s.conditions))
            feed(&s, &token);
    }
    add_mention(&s);
    if (s.lexer.error && !s.failed)
        s.failed = strerror(s.lexer.error);
    tn_lexer_close(&s.lexer);
    free(s.brackets);
    free(s.open);
    free(s.conditions.levels);
    if (s.failed) {
        free(uses->items);
        *uses = (tn_code_uses){NULL, 0, 0};
    }
    return s.failed;
}
