/* The reader. A line is looked at by itself; what is wrong with it is said with its number. */
#define _GNU_SOURCE
#include "planner/import_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "planner/trace_index.h"

#define LINE_MAX_BYTES 256
#define SITE_MAX 16777216u
#define BYTES_MAX ((uint64_t)1 << 48)

typedef struct import {
    const char *path;
    gzFile file;
    uint32_t line;
    char *message;
    tn_trace *trace;
    tn_trace_process *p;
    tn_index live;
    tn_index sites; /* number in the file -> index in trace->sites, for now in order of appearance */
} import;

static tn_error fail(import *in, tn_error error, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(in->message, TN_TRACE_MESSAGE, "%s:%" PRIu32 ": %s", in->path, in->line, what);
    return error;
}

/* The next field as a number up to `most`; its end is a comma, or the line's for the last. NULL: it is none. */
static const char *number(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t n = 0;
    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (n > (most - digit) / 10)
            return NULL;
        n = n * 10 + digit;
    }
    *out = n;
    return *text == ',' ? text + 1 : *text == 0 ? text : NULL;
}

static tn_error site_of(import *in, uint64_t number, uint32_t *out)
{
    *out = tn_index_find(&in->sites, number);
    if (*out != TN_INDEX_NONE)
        return TN_OK;
    *out = (uint32_t)in->trace->site_count;
    tn_trace_site *s = TN_TRACE_PUSH(in->trace->sites, in->trace->site_count);
    tn_trace_first *f = s ? TN_TRACE_PUSH(in->p->firsts, in->p->first_count) : NULL;
    if (!f)
        return TN_E_NOMEM;
    *s = (tn_trace_site){.key = number, .native = *out};
    *f = (tn_trace_first){.site = *out, .at = in->line};
    return tn_index_set(&in->sites, number, *out);
}

static tn_error take_alloc(import *in, const char *text)
{
    uint64_t block, bytes, site;
    uint32_t index;
    if (!(text = number(text, UINT64_MAX - 10, &block)))
        return fail(in, TN_E_FORMAT, "the block is no number");
    if (!(text = number(text, BYTES_MAX, &bytes)) || bytes == 0)
        return fail(in, TN_E_FORMAT, "the bytes are no number from 1 to 2^48");
    if (!(text = number(text, SITE_MAX, &site)) || *text)
        return fail(in, TN_E_FORMAT, "the site is no number up to %u at the line's end", SITE_MAX);
    if (tn_index_find(&in->live, block) != TN_INDEX_NONE)
        return fail(in, TN_E_FORMAT, "block %" PRIu64 " is alive already", block);
    if (site_of(in, site, &index) != TN_OK)
        return TN_E_NOMEM;
    tn_life *l = TN_TRACE_PUSH(in->p->lives, in->p->life_count);
    if (!l)
        return TN_E_NOMEM;
    *l = (tn_life){.bytes = bytes, .backed = (uint32_t)((bytes + TN_LIFE_UNIT - 1) / TN_LIFE_UNIT), .site = index, .begin = in->line,
                   .freed = TN_LIFE_OPEN, .clean = TN_LIFE_OPEN, .ctx = 1, .kind = TN_KIND_DEVICE};
    return tn_index_set(&in->live, block, (uint32_t)in->p->life_count - 1);
}

static tn_error take_free(import *in, const char *text)
{
    uint64_t block;
    if (!(text = number(text, UINT64_MAX - 10, &block)) || text[strspn(text, ",")])
        return fail(in, TN_E_FORMAT, "the block is no number, or something follows it");
    uint32_t index = tn_index_take(&in->live, block);
    if (index == TN_INDEX_NONE)
        return fail(in, TN_E_FORMAT, "block %" PRIu64 " is freed and is not alive", block);
    in->p->lives[index].freed = in->p->lives[index].clean = in->line;
    return TN_OK;
}

static tn_error take_line(import *in, const char *text)
{
    uint64_t seq;
    if (in->line == 1)
        return strcmp(text, "seq,op,block,bytes,site") == 0 ? TN_OK : fail(in, TN_E_FORMAT, "the first line is not seq,op,block,bytes,site");
    if (!(text = number(text, UINT64_MAX - 10, &seq)))
        return fail(in, TN_E_FORMAT, "the line does not begin with a number");
    if (strncmp(text, "alloc,", 6) == 0)
        return take_alloc(in, text + 6);
    if (strncmp(text, "free,", 5) == 0)
        return take_free(in, text + 5);
    return fail(in, TN_E_FORMAT, "the second field is neither alloc nor free");
}

static tn_error read_lines(import *in)
{
    char text[LINE_MAX_BYTES];
    tn_error error = TN_OK;
    while (error == TN_OK && gzgets(in->file, text, sizeof(text))) {
        size_t length = strlen(text);
        if (++in->line == TN_LIFE_OPEN)
            return fail(in, TN_E_LIMIT, "there are too many lines");
        if (length && text[length - 1] == '\n')
            text[--length] = 0;
        else if (!gzeof(in->file))
            return fail(in, TN_E_FORMAT, "the line is longer than %d characters, or holds a NUL", LINE_MAX_BYTES - 2);
        if (length && text[length - 1] == '\r')
            text[--length] = 0;
        error = take_line(in, text);
    }
    int code = Z_OK;
    const char *what = gzerror(in->file, &code);
    if (error == TN_OK && code != Z_OK && code != Z_STREAM_END)
        return fail(in, code == Z_MEM_ERROR ? TN_E_NOMEM : TN_E_IO, "it cannot be read further: %s", code == Z_ERRNO ? strerror(errno) : what);
    if (error == TN_OK && in->line == 0)
        return fail(in, TN_E_FORMAT, "the file is empty");
    return error;
}

static int by_key(const void *a, const void *b)
{
    const tn_trace_site *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* A trace's sites are in the order of their keys. */
static tn_error order_sites(import *in)
{
    tn_trace *t = in->trace;
    uint32_t *to = malloc((t->site_count + 1) * sizeof *to);
    if (!to)
        return TN_E_NOMEM;
    if (t->site_count)
        qsort(t->sites, t->site_count, sizeof *t->sites, by_key);
    for (uint32_t i = 0; i < t->site_count; i++) {
        to[t->sites[i].native] = i;
        t->sites[i].native = i;
    }
    for (size_t i = 0; i < in->p->life_count; i++)
        in->p->lives[i].site = to[in->p->lives[i].site];
    for (size_t i = 0; i < in->p->first_count; i++)
        in->p->firsts[i].site = to[in->p->firsts[i].site];
    free(to);
    return TN_OK;
}

tn_error tn_import_csv(const char *path, tn_trace **out, char message[TN_TRACE_MESSAGE])
{
    import in = {.path = path, .message = message};
    *out = NULL;
    message[0] = 0;
    in.file = gzopen(path, "rbe");
    if (!in.file) {
        snprintf(message, TN_TRACE_MESSAGE, "%s: %s", path, strerror(errno ? errno : ENOMEM));
        return TN_E_OPEN;
    }
    tn_error error = TN_E_NOMEM;
    in.trace = calloc(1, sizeof *in.trace);
    in.p = in.trace ? TN_TRACE_PUSH(in.trace->processes, in.trace->process_count) : NULL;
    if (in.p) {
        const char *slash = strrchr(path, '/');
        *in.p = (tn_trace_process){.name = strdup(slash ? slash + 1 : path), .stream_end = 1};
        error = in.p->name ? read_lines(&in) : TN_E_NOMEM;
        in.p->events = in.line;
    }
    if (error == TN_OK)
        error = order_sites(&in);
    gzclose(in.file);
    tn_index_free(&in.live);
    tn_index_free(&in.sites);
    if (error == TN_OK) {
        *out = in.trace;
        return TN_OK;
    }
    if (message[0] == 0)
        snprintf(message, TN_TRACE_MESSAGE, "%s: no memory left to read it", path);
    tn_trace_free(in.trace);
    return error;
}

int tn_import_is_csv(const char *path)
{
    size_t length = strlen(path);
    return (length >= 4 && strcmp(path + length - 4, ".csv") == 0) || (length >= 7 && strcmp(path + length - 7, ".csv.gz") == 0);
}
