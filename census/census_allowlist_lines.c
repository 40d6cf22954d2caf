/* Reading and writing the lines of an allowlist. */
#define _GNU_SOURCE
#include "census/census_allowlist_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_blank(char c) { return c == ' ' || c == '\t'; }

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t"); }

/* A decimal number followed by a blank. */
static const char *number(const char *p, size_t *out)
{
    if (!isdigit((unsigned char)*p))
        return NULL;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(p, &end, 10);
    *out = (size_t)value;
    return errno || *out != value || !is_blank(*end) ? NULL : skip_blanks(end);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A path in quotes; `to` has room for it. NULL where it is malformed. */
static const char *quoted(const char *p, char *to)
{
    for (p++; *p && *p != '"'; p++) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        p++;
        if (*p == '\\' || *p == '"') {
            *to++ = *p;
        } else {
            int high = p[0] == 'x' ? hex_digit(p[1]) : -1, low = high < 0 ? -1 : hex_digit(p[2]);
            if (low < 0 || high + low == 0)
                return NULL;
            *to++ = (char)(high * 16 + low);
            p += 2;
        }
    }
    *to = 0;
    return *p == '"' ? p + 1 : NULL;
}

/* A path to the end of the line or to its comment. */
static const char *plain(const char *p, char *to)
{
    size_t end = strlen(p);
    for (size_t i = 0; p[i]; i++)
        if (is_blank(p[i]) && p[i + 1] == '#') {
            end = i;
            break;
        }
    while (end && is_blank(p[end - 1]))
        end--;
    memcpy(to, p, end);
    to[end] = 0;
    return p + end;
}

int tn_allowed_parse(const char *text, tn_allowed *out)
{
    *out = (tn_allowed){.path = NULL};
    const char *p = skip_blanks(text);
    if (*p == 0 || *p == '#')
        return (out->rest = strdup(text)) ? 0 : -1;
    p = number(p, &out->budget[TN_USE_ALLOC]);
    if (p)
        p = number(p, &out->budget[TN_USE_FREE]);
    if (!p)
        return 1;
    char *path = malloc(strlen(p) + 1);
    if (!path)
        return -1;
    p = *p == '"' ? quoted(p, path) : plain(p, path);
    const char *comment = p ? skip_blanks(p) : "?";
    if (!path[0] || (*comment && *comment != '#')) {
        free(path);
        return 1;
    }
    out->path = path;
    out->rest = strdup(*comment ? p : "");
    if (out->rest)
        return 0;
    free(path);
    return -1;
}

static int needs_quotes(const char *path)
{
    if (path[0] == '"' || is_blank(path[0]) || is_blank(path[strlen(path) - 1]) || strstr(path, " #"))
        return 1;
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            return 1;
    return 0;
}

void tn_allowed_write(const tn_allowed *line, FILE *out)
{
    if (!line->path) {
        fprintf(out, "%s\n", line->rest);
        return;
    }
    fprintf(out, "%zu %zu ", line->budget[TN_USE_ALLOC], line->budget[TN_USE_FREE]);
    if (!needs_quotes(line->path)) {
        fputs(line->path, out);
    } else {
        putc('"', out);
        for (const char *p = line->path; *p; p++) {
            if (*p == '"' || *p == '\\')
                fprintf(out, "\\%c", *p);
            else if ((unsigned char)*p < ' ' || *p == 0x7F)
                fprintf(out, "\\x%02x", (unsigned char)*p);
            else
                putc(*p, out);
        }
        putc('"', out);
    }
    fprintf(out, "%s\n", line->rest);
}

int tn_allowlist_insert(tn_allowlist *list, size_t at, tn_allowed line)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        tn_allowed *lines = realloc(list->lines, room * sizeof(*lines));
        if (!lines)
            return -1;
        list->lines = lines;
        list->room = room;
    }
    memmove(list->lines + at + 1, list->lines + at, (list->count - at) * sizeof(list->lines[0]));
    list->lines[at] = line;
    list->count++;
    return 0;
}
