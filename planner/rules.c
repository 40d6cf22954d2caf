/* Lines to globs and room, and frames against them. */
#define _GNU_SOURCE
#include "planner/rules.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/size_text.h"
#include "planner/text_file.h"
#include "planner/trace.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define ROOM_BYTES_MAX ((uint64_t)1 << 40)

typedef struct rule {
    tn_discipline discipline;      /* TN_D_COUNT: it gives room */
    tn_room room;
    char *text;                    /* as written, blanks as one */
    char *symbol, *module, *file;  /* NULL: any */
    uint64_t key;
    int has_key, used;
} rule;

struct tn_rules {
    rule *at;
    size_t count;
};

void tn_rules_free(tn_rules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->at[i].text);
        free(r->at[i].symbol);
        free(r->at[i].module);
        free(r->at[i].file);
    }
    free(r->at);
    free(r);
}

static tn_error fail(char *message, const char *name, size_t line, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tn_text_mask(what);
    snprintf(message, TN_PLAN_MESSAGE, "%s:%zu: %s", name, line, what);
    return TN_E_FORMAT;
}

static int read_key(const char *text, uint64_t *out)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789abcdef")] || strlen(text) > 16)
        return 0;
    *out = strtoull(text, &end, 16);
    return *end == 0;
}

static tn_error take_glob(rule *r, const char *word, const char *name, size_t line, char *message)
{
    struct { const char *key; char **at; } globs[] = {{"symbol=", &r->symbol}, {"module=", &r->module}, {"file=", &r->file}};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(globs[i].key);
        if (strncmp(word, globs[i].key, length) != 0)
            continue;
        if (*globs[i].at)
            return fail(message, name, line, "%.*s stands twice", (int)length - 1, word);
        if (!word[length])
            return fail(message, name, line, "%.*s has no glob", (int)length - 1, word);
        *globs[i].at = strdup(word + length);
        return *globs[i].at ? TN_OK : TN_E_NOMEM;
    }
    if (strncmp(word, "key=", 4) == 0) {
        if (r->has_key)
            return fail(message, name, line, "key stands twice");
        r->has_key = read_key(word + 4, &r->key);
        return r->has_key ? TN_OK : fail(message, name, line, "%.60s is no key of up to 16 hexadecimal digits", word + 4);
    }
    return fail(message, name, line, "%.60s is none of symbol=, module=, file= and key=%s", word, r->discipline == TN_D_COUNT ? ", size=, blocks=, bytes= and apart" : "");
}

/* 1: the word says how much room; 0: it is another. */
static int take_room(rule *r, const char *word, const char *name, size_t line, char *message, tn_error *error)
{
    const struct { const char *key; uint64_t *at, most; } sizes[] = {
        {"size=", &r->room.size, ROOM_BYTES_MAX}, {"blocks=", &r->room.blocks, TN_ROOM_BLOCKS_MAX}, {"bytes=", &r->room.bytes, ROOM_BYTES_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t length = strlen(sizes[i].key);
        if (strncmp(word, sizes[i].key, length) != 0)
            continue;
        uint64_t value = 0;
        r->room.given = 1;
        if (*sizes[i].at)
            *error = fail(message, name, line, "%.*s stands twice", (int)length - 1, word);
        else if (tn_size_read(word + length, strlen(word + length), &value, NULL) != TN_SIZE_OK || value == 0 || value > sizes[i].most)
            *error = fail(message, name, line, "%.60s: no %s from 1 to %llu", word, sizes[i].most == TN_ROOM_BLOCKS_MAX ? "number" : "size", (unsigned long long)sizes[i].most);
        else
            *sizes[i].at = value;
        return 1;
    }
    if (strcmp(word, "apart") != 0)
        return 0;
    r->room.given = r->room.apart = 1;
    return 1;
}

static tn_error take_line(tn_rules *rules, char *text, const char *name, size_t line, char *message)
{
    char *save = NULL, *word;
    char *hash = strchr(text, '#');
    if (hash)
        *hash = 0;
    word = strtok_r(text, " \t\r", &save);
    if (!word)
        return TN_OK;
    tn_discipline d = tn_discipline_find(word);
    if (d == TN_D_COUNT && strcmp(word, "room") != 0)
        return fail(message, name, line, "%.60s is none of native, T1, T2, T3, T4, packed, T5a, T5b and room", word);
    rule *r = TN_TRACE_PUSH(rules->at, rules->count);
    if (!r)
        return TN_E_NOMEM;
    *r = (rule){.discipline = d, .text = strdup(word)};
    tn_error error = r->text ? TN_OK : TN_E_NOMEM;
    int globs = 0;
    while (error == TN_OK && (word = strtok_r(NULL, " \t\r", &save))) {
        char *longer = NULL;
        if (d != TN_D_COUNT || !take_room(r, word, name, line, message, &error)) {
            error = take_glob(r, word, name, line, message);
            globs++;
        }
        if (error == TN_OK && asprintf(&longer, "%s %s", r->text, word) < 0)
            error = TN_E_NOMEM;
        if (error == TN_OK) {
            free(r->text);
            r->text = longer;
        }
    }
    if (error == TN_OK && d == TN_D_COUNT && !r->room.given)
        return fail(message, name, line, "the line gives no room: size=, blocks=, bytes= or apart is needed");
    return error == TN_OK && globs == 0 ? fail(message, name, line, "the rule names no site: symbol=, module=, file= or key= is needed") : error;
}

tn_error tn_rules_parse(const char *text, size_t bytes, const char *name, tn_rules **out, char message[TN_PLAN_MESSAGE])
{
    tn_rules *rules = calloc(1, sizeof *rules);
    char *copy = malloc(bytes + 1);
    tn_error error = rules && copy ? TN_OK : TN_E_NOMEM;
    *out = NULL;
    message[0] = 0;
    if (copy) {
        memcpy(copy, text, bytes);
        copy[bytes] = 0;
    }
    size_t line = 0;
    for (char *at = copy, *end = copy ? copy + bytes : NULL; error == TN_OK && at < end;) {
        char *next = memchr(at, '\n', (size_t)(end - at));
        line++;
        if (next)
            *next = 0;
        if (strlen(at) != (size_t)((next ? next : end) - at))
            error = fail(message, name, line, "the line holds a NUL");
        else
            error = take_line(rules, at, name, line, message);
        at = next ? next + 1 : end;
    }
    free(copy);
    if (error == TN_E_NOMEM)
        snprintf(message, TN_PLAN_MESSAGE, "%s: no memory left to read it", name);
    if (error == TN_OK)
        *out = rules;
    else
        tn_rules_free(rules);
    return error;
}

tn_error tn_rules_read(const char *path, tn_rules **out, char message[TN_PLAN_MESSAGE])
{
    char *text = NULL;
    size_t bytes = 0;
    int code = tn_text_file_read(path, FILE_BYTES_MAX, &text, &bytes);
    *out = NULL;
    if (code) {
        snprintf(message, TN_PLAN_MESSAGE, "%s: %s", path, strerror(code));
        return TN_E_OPEN;
    }
    tn_error error = tn_rules_parse(text, bytes, path, out, message);
    free(text);
    return error;
}

static int glob_fits(const char *glob, const char *text)
{
    return !glob || (text && fnmatch(glob, text, 0) == 0);
}

static int rule_fits(const rule *r, const tn_plan_row *row)
{
    if (r->has_key && r->key != row->key)
        return 0;
    if (!r->symbol && !r->module && !r->file)
        return 1;
    for (size_t i = 0; i < row->frame_count; i++) {
        const tn_plan_frame *f = &row->frames[i];
        if (glob_fits(r->symbol, f->function) && glob_fits(r->module, f->module) && glob_fits(r->file, f->file))
            return 1;
    }
    return 0;
}

tn_discipline tn_rules_find(const tn_rules *rules, const tn_plan_row *row, const char **rule)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->at[i].discipline == TN_D_COUNT || !rule_fits(&rules->at[i], row))
            continue;
        rules->at[i].used = 1;
        *rule = rules->at[i].text;
        return rules->at[i].discipline;
    }
    return TN_D_COUNT;
}

void tn_rules_room(const tn_rules *rules, const tn_plan_row *row, tn_room *room)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->at[i].discipline != TN_D_COUNT || !rule_fits(&rules->at[i], row))
            continue;
        rules->at[i].used = 1;
        tn_room_join(room, &rules->at[i].room);
    }
}

size_t tn_rules_unused(const tn_rules *rules)
{
    size_t count = 0;
    for (size_t i = 0; i < rules->count; i++)
        count += !rules->at[i].used;
    return count;
}

const char *tn_rules_unused_text(const tn_rules *rules, size_t n)
{
    for (size_t i = 0; i < rules->count; i++)
        if (!rules->at[i].used && n-- == 0)
            return rules->at[i].text;
    return NULL;
}
