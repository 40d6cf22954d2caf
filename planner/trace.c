/* From paths to a trace: finds the journals, brings them and their sites into an order that does not depend on how they were given, and
 * has each replayed. */
#define _GNU_SOURCE
#include "planner/trace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *tn_trace_grow(void *array, size_t *count, size_t size)
{
    void **at = array;
    size_t n = *count;
    if (n == 0 || (n >= 64 && (n & (n - 1)) == 0)) { /* full: 64, then powers of two */
        void *grown = realloc(*at, (n == 0 ? 64 : n * 2) * size);
        if (!grown)
            return NULL;
        *at = grown;
    }
    ++*count;
    return (char *)*at + n * size;
}

void tn_trace_free(tn_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; i < trace->process_count; i++) {
        tn_trace_process *p = &trace->processes[i];
        tn_reader_close(p->reader);
        free(p->name);
        free(p->lives);
        free(p->joins);
        free(p->phases);
        free(p->queries);
        free(p->firsts);
    }
    for (size_t i = 0; i < trace->skipped_count; i++)
        free(trace->skipped[i]);
    free(trace->processes);
    free(trace->skipped);
    free(trace->sites);
    free(trace);
}

int tn_trace_incomplete(const tn_trace *trace)
{
    int incomplete = trace->skipped_count > 0;
    for (size_t i = 0; i < trace->process_count; i++)
        incomplete |= trace->processes[i].dropped > 0 || trace->processes[i].damage != NULL;
    return incomplete;
}

/* ---- files ---- */

static tn_error open_one(tn_trace *trace, const char *path)
{
    tn_reader *reader = NULL;
    tn_error error = tn_reader_open(path, &reader);
    if (error != TN_OK)
        return error;
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    tn_trace_process *p = name ? TN_TRACE_PUSH(trace->processes, trace->process_count) : NULL;
    if (!p) {
        free(name);
        tn_reader_close(reader);
        return TN_E_NOMEM;
    }
    const tn_journal_header *h = tn_reader_header(reader);
    *p = (tn_trace_process){.reader = reader, .header = h, .name = name, .dropped = h->dropped_events + h->dropped_records,
                            .damage = tn_reader_damage(reader)};
    if (h->flags & TN_HF_STOPPED && p->dropped == 0)
        p->dropped = 1;
    return TN_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_journal(const char *name)
{
    size_t length = strlen(name), suffix = strlen(TN_JOURNAL_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, TN_JOURNAL_SUFFIX) == 0;
}

static tn_error list_folder(const char *folder, char ***names, size_t *count)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return TN_E_OPEN;
    struct dirent *entry;
    tn_error error = TN_OK;
    while (error == TN_OK && (entry = readdir(dir))) {
        char *path = NULL, **at = NULL;
        if (!is_journal(entry->d_name))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            path = NULL;
        at = path ? TN_TRACE_PUSH(*names, *count) : NULL;
        if (at) {
            *at = path;
        } else {
            free(path);
            error = TN_E_NOMEM;
        }
    }
    closedir(dir);
    if (*count)
        qsort(*names, *count, sizeof(char *), by_text);
    return error;
}

static tn_error open_folder(tn_trace *trace, const char *folder, char message[TN_TRACE_MESSAGE])
{
    char **names = NULL;
    size_t count = 0, opened = 0;
    tn_error error = list_folder(folder, &names, &count), first = TN_OK;
    if (error == TN_E_OPEN)
        snprintf(message, TN_TRACE_MESSAGE, "%s: %s", folder, strerror(errno));
    if (error == TN_OK && count == 0) {
        snprintf(message, TN_TRACE_MESSAGE, "%s: no journal (*%s) in this folder", folder, TN_JOURNAL_SUFFIX);
        error = TN_E_EMPTY;
    }
    for (size_t i = 0; i < count && error == TN_OK; i++) {
        tn_error e = open_one(trace, names[i]);
        char **skipped = NULL;
        if (e == TN_OK) {
            opened++;
        } else if (e == TN_E_NOMEM || !(skipped = TN_TRACE_PUSH(trace->skipped, trace->skipped_count))) {
            error = TN_E_NOMEM;
        } else if (asprintf(skipped, "%s: %s", names[i], tn_error_text(e)) < 0) {
            trace->skipped_count--;
            error = TN_E_NOMEM;
        } else if (first == TN_OK) {
            first = e;
            snprintf(message, TN_TRACE_MESSAGE, "%s", *skipped);
        }
    }
    if (error == TN_OK && opened == 0)
        error = first;
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return error;
}

/* By what each journal says of itself. Two of the same are the same file. */
static int by_identity(const void *a, const void *b)
{
    const tn_trace_process *x = a, *y = b;
    int c = strcmp(x->header->exe_build_id, y->header->exe_build_id);
    if (c == 0)
        c = strcmp(x->header->host, y->header->host);
    if (c == 0)
        c = (x->header->real_start_ns > y->header->real_start_ns) - (x->header->real_start_ns < y->header->real_start_ns);
    if (c == 0)
        c = (x->header->pid > y->header->pid) - (x->header->pid < y->header->pid);
    if (c == 0)
        c = (x->header->random_id > y->header->random_id) - (x->header->random_id < y->header->random_id);
    return c;
}

/* A file given twice counts once. */
static void order_processes(tn_trace *trace)
{
    if (trace->process_count)
        qsort(trace->processes, trace->process_count, sizeof(tn_trace_process), by_identity);
    size_t kept = 0;
    for (size_t i = 0; i < trace->process_count; i++) {
        if (kept && by_identity(&trace->processes[kept - 1], &trace->processes[i]) == 0) {
            tn_reader_close(trace->processes[i].reader);
            free(trace->processes[i].name);
        } else {
            trace->processes[kept++] = trace->processes[i];
        }
    }
    trace->process_count = kept;
}

/* ---- sites ---- */

static int by_key(const void *a, const void *b)
{
    const tn_trace_site *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->python != y->python)
        return x->python < y->python ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static tn_error add_site(tn_trace *trace, uint64_t key, uint64_t python, uint32_t process, uint32_t id)
{
    tn_trace_site *s = TN_TRACE_PUSH(trace->sites, trace->site_count);
    if (!s)
        return TN_E_NOMEM;
    *s = (tn_trace_site){.key = key, .python = python, .process = process, .id = id};
    const tn_reader *reader = trace->processes[process].reader;
    if (id >= TN_SITE_FIRST) {
        s->record = tn_reader_site(reader, id);
        s->python_record = python ? tn_reader_site_python(reader, id) : NULL;
    }
    return TN_OK;
}

/* Every site of every journal, each pair of keys once; of a site with a Python part also the one without. */
static tn_error collect_sites(tn_trace *trace)
{
    tn_error error = TN_OK;
    for (uint32_t i = 0; i < trace->process_count && error == TN_OK; i++) {
        const tn_reader *reader = trace->processes[i].reader;
        for (uint32_t id = 0; id < TN_SITE_FIRST && error == TN_OK; id++)
            error = add_site(trace, id, 0, i, id);
        for (uint32_t id = TN_SITE_FIRST; id < tn_reader_site_end(reader) && error == TN_OK; id++) {
            const tn_rec_site *record = tn_reader_site(reader, id);
            const tn_rec_python_site *python = tn_reader_site_python(reader, id);
            if (record)
                error = add_site(trace, record->key, python ? python->key : 0, i, python ? id : record->id);
            if (record && python && error == TN_OK)
                error = add_site(trace, record->key, 0, i, record->id);
        }
    }
    if (error != TN_OK)
        return error;
    if (trace->site_count)
        qsort(trace->sites, trace->site_count, sizeof(tn_trace_site), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < trace->site_count; i++)
        if (!kept || trace->sites[kept - 1].key != trace->sites[i].key || trace->sites[kept - 1].python != trace->sites[i].python)
            trace->sites[kept++] = trace->sites[i];
    trace->site_count = kept;
    for (size_t i = 0; i < kept; i++)
        trace->sites[i].native = trace->sites[i].python && i ? trace->sites[i - 1].native : (uint32_t)i;
    return TN_OK;
}

static uint32_t find_site(const tn_trace *trace, uint64_t key, uint64_t python)
{
    size_t low = 0, high = trace->site_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const tn_trace_site *s = &trace->sites[middle];
        if (s->key < key || (s->key == key && s->python < python))
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->site_count && trace->sites[low].key == key && trace->sites[low].python == python ? (uint32_t)low : TN_TRACE_NONE;
}

static tn_error replay_one(tn_trace *trace, tn_trace_process *p)
{
    uint32_t end = tn_reader_site_end(p->reader);
    if (end < TN_SITE_FIRST)
        end = TN_SITE_FIRST;
    uint32_t *site_of = malloc(end * sizeof *site_of);
    if (!site_of)
        return TN_E_NOMEM;
    for (uint32_t id = 0; id < end; id++) {
        const tn_rec_site *record = id < TN_SITE_FIRST ? NULL : tn_reader_site(p->reader, id);
        const tn_rec_python_site *python = record ? tn_reader_site_python(p->reader, id) : NULL;
        site_of[id] = id < TN_SITE_FIRST ? find_site(trace, id, 0) : record ? find_site(trace, record->key, python ? python->key : 0) : TN_TRACE_NONE;
    }
    tn_error error = tn_trace_replay(trace, p, site_of, end);
    free(site_of);
    return error;
}

tn_error tn_trace_open(const char *const *paths, size_t count, tn_trace **out, char message[TN_TRACE_MESSAGE])
{
    *out = NULL;
    message[0] = 0;
    tn_trace *trace = calloc(1, sizeof *trace);
    tn_error error = trace ? TN_OK : TN_E_NOMEM;
    for (size_t i = 0; i < count && error == TN_OK; i++) {
        struct stat st;
        if (stat(paths[i], &st) != 0) {
            error = TN_E_OPEN;
            snprintf(message, TN_TRACE_MESSAGE, "%s: %s", paths[i], strerror(errno));
        } else if (S_ISDIR(st.st_mode)) {
            error = open_folder(trace, paths[i], message);
        } else {
            error = open_one(trace, paths[i]);
            if (error != TN_OK && error != TN_E_NOMEM)
                snprintf(message, TN_TRACE_MESSAGE, "%s: %s", paths[i], tn_error_text(error));
        }
    }
    if (error == TN_OK) {
        order_processes(trace);
        error = collect_sites(trace);
    }
    for (size_t i = 0; error == TN_OK && i < trace->process_count; i++) {
        error = replay_one(trace, &trace->processes[i]);
        if (error == TN_E_LIMIT)
            snprintf(message, TN_TRACE_MESSAGE, "%s: it names more events, contexts or streams than there can be", trace->processes[i].name);
    }
    if (error == TN_OK) {
        *out = trace;
        return TN_OK;
    }
    if (error == TN_E_NOMEM)
        snprintf(message, TN_TRACE_MESSAGE, "%s: no memory left to read it", count ? paths[0] : "the runs");
    tn_trace_free(trace);
    return error;
}
