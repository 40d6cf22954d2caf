/*
 * What a PTX text says of its kernels: that they exist, and how their parameters lie. Bodies are not read. A module
 * keeps its own copy of the text; other images (fatbins, cubins, plain words in tests) have none.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PTX_MAX ((size_t)64 << 20)

/* PTX begins with its version, after blanks and comments that generators put there. */
char *fk_ptx_copy(const void *image)
{
    const char *s = image;
    while (isspace((unsigned char)*s) || (s[0] == '/' && s[1] == '/')) {
        if (*s != '/') {
            s++;
            continue;
        }
        while (*s != '\n' && *s != '\0')
            s++;
    }
    if (strncmp(s, ".version", 8) != 0 || strnlen(s, PTX_MAX) == PTX_MAX)
        return NULL;
    return strdup(s);
}

static const char *blanks(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

static bool word_end(char c) { return !isalnum((unsigned char)c) && c != '_' && c != '$'; }

/* The text right after the name of the entry, or NULL. */
static const char *find_entry(const char *s, const char *name)
{
    size_t len = strlen(name);
    while ((s = strstr(s, ".entry")) != NULL) {
        s = blanks(s + 6);
        if (strncmp(s, name, len) == 0 && word_end(s[len]))
            return s + len;
    }
    return NULL;
}

static size_t type_bytes(const char *type, size_t len)
{
    static const struct { const char *name; size_t bytes; } known[] = {
        {".b8", 1}, {".u8", 1}, {".s8", 1}, {".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2}, {".b32", 4}, {".u32", 4},
        {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == len && strncmp(known[i].name, type, len) == 0)
            return known[i].bytes;
    return 0;
}

/* One parameter, ".param [.align N] .TYPE name[COUNT]", up to its comma or the closing bracket. */
static const char *one_param(const char *s, size_t *bytes, size_t *align)
{
    *bytes = *align = 0;
    for (s = blanks(s); *s != '\0' && *s != ',' && *s != ')'; s = blanks(s)) {
        size_t len = 1;
        if (*s == '[') {
            *bytes *= strtoul(s + 1, NULL, 0);
            s = strchr(s, ']');
            if (s == NULL)
                return NULL;
            s++;
            continue;
        }
        while (!word_end(s[len]))
            len++;
        if (len == 6 && strncmp(s, ".align", 6) == 0) {
            char *end;
            *align = strtoul(s + 6, &end, 0);
            s = end;
            continue;
        }
        size_t n = type_bytes(s, len);
        if (n != 0)
            *bytes = n;
        s += len;
    }
    if (*align == 0)
        *align = *bytes;
    return *bytes != 0 && *s != '\0' ? s : NULL;
}

bool fk_ptx_params(const char *text, const char *name, struct fk_params *out)
{
    size_t at = 0, bytes, align;
    const char *s = find_entry(text, name);
    out->count = 0;
    if (s == NULL)
        return false;
    s = blanks(s);
    if (*s != '(' || *blanks(s + 1) == ')')
        return true;
    do {
        s = one_param(s + 1, &bytes, &align);
        if (s == NULL || out->count == FK_MAX_PARAMS) {
            out->count = 0; /* not understood: as good as no parameters known */
            return true;
        }
        at = fk_up(at, align);
        out->offset[out->count] = at;
        out->size[out->count++] = bytes;
        at += bytes;
    } while (*s == ',');
    return true;
}
