/* Prints one line of KEY=VALUE pairs for each journal of a run folder (or for one file) and a line of totals, for the shell tests; with
 * --sites before that "BYTES KEY" for each allocation, where KEY is its site's. Exit code 1 where a journal cannot be read. */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ledger/journal_reader.h"

typedef struct sums {
    uint64_t journals, ended, stopped, buffered, damaged, dropped, records, events, allocs, refused, frees, alloc_bytes, free_bytes, no_stack,
        no_site, sites, threads, alloc_calls, free_calls;
} sums;

static void print(const char *head, const sums *s)
{
    printf("%s journals=%" PRIu64 " ended=%" PRIu64 " stopped=%" PRIu64 " buffered=%" PRIu64 " damaged=%" PRIu64 " dropped=%" PRIu64
           " dropped_records=%" PRIu64 " events=%" PRIu64 " allocs=%" PRIu64 " refused=%" PRIu64 " frees=%" PRIu64 " alloc_bytes=%" PRIu64
           " live_bytes=%" PRId64 " no_stack=%" PRIu64 " no_site=%" PRIu64 " sites=%" PRIu64 " threads=%" PRIu64 " alloc_calls=%" PRIu64
           " free_calls=%" PRIu64 "\n",
           head, s->journals, s->ended, s->stopped, s->buffered, s->damaged, s->dropped, s->records, s->events, s->allocs, s->refused,
           s->frees, s->alloc_bytes, (int64_t)(s->alloc_bytes - s->free_bytes), s->no_stack, s->no_site, s->sites, s->threads,
           s->alloc_calls, s->free_calls);
}

static void add(sums *to, const sums *s)
{
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)s;
    for (size_t i = 0; i < sizeof *s / sizeof *a; i++)
        a[i] += b[i];
}

static int print_sites;

static void print_site(tn_reader *r, const tn_event *e)
{
    const tn_rec_site *site = tn_reader_site(r, e->site);
    if (site != NULL)
        printf("%" PRIu64 " %016" PRIx64 "\n", e->bytes, site->key);
    else
        printf("%" PRIu64 " %s\n", e->bytes, e->site == TN_SITE_NO_STACK ? "no_stack" : "none");
}

static void read_events(tn_reader *r, sums *s)
{
    const tn_event *e;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        s->events++;
        if (print_sites && e->type == TN_EV_ALLOC)
            print_site(r, e);
        if (e->type != TN_EV_ALLOC && e->type != TN_EV_FREE)
            continue;
        s->no_stack += e->site == TN_SITE_NO_STACK;
        s->no_site += e->site == TN_SITE_NONE;
        if (e->result != 0) {
            s->refused++;
        } else if (e->type == TN_EV_ALLOC) {
            s->allocs++;
            s->alloc_bytes += e->bytes;
        } else {
            s->frees++;
            s->free_bytes += e->bytes;
        }
    }
    for (uint32_t id = TN_SITE_FIRST; id < tn_reader_site_end(r); id++)
        s->sites += tn_reader_site(r, id) != NULL;
    for (uint32_t id = 1; id < tn_reader_api_end(r); id++) {
        const char *name;
        const tn_rec_api *api = tn_reader_api(r, id, &name);
        if (api == NULL || api->level != TN_LEVEL_DRIVER)
            continue;
        if (api->klass == TN_CLASS_ALLOC)
            s->alloc_calls += tn_reader_calls(r, id);
        if (api->klass == TN_CLASS_FREE)
            s->free_calls += tn_reader_calls(r, id);
    }
}

static int one(const char *path, sums *all)
{
    tn_reader *r;
    tn_error error = tn_reader_open(path, &r);
    if (error != TN_OK) {
        printf("unreadable %s: %s\n", path, tn_error_text(error));
        return 1;
    }
    const tn_journal_header *h = tn_reader_header(r);
    sums s = {.journals = 1,
              .ended = (h->flags & TN_HF_ENDED) != 0,
              .stopped = (h->flags & TN_HF_STOPPED) != 0,
              .buffered = (h->flags & TN_HF_BUFFERED) != 0,
              .damaged = tn_reader_damage(r) != NULL,
              .dropped = h->dropped_events,
              .records = h->dropped_records,
              .threads = tn_reader_thread_count(r)};
    char head[64];
    snprintf(head, sizeof head, "journal pid=%u ppid=%u", h->pid, h->ppid);
    read_events(r, &s);
    print(head, &s);
    add(all, &s);
    tn_reader_close(r);
    return 0;
}

int main(int argc, char **argv)
{
    struct stat st;
    sums all = {0};
    int failed = 0;
    if (argc == 3 && strcmp(argv[1], "--sites") == 0) {
        print_sites = 1;
        argv++, argc--;
    }
    if (argc != 2 || stat(argv[1], &st) != 0) {
        fprintf(stderr, "usage: journal_info [--sites] RUN|FILE\n");
        return 2;
    }
    if (!S_ISDIR(st.st_mode)) {
        failed = one(argv[1], &all);
    } else {
        DIR *dir = opendir(argv[1]);
        struct dirent *entry;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            char path[4096];
            size_t n = strlen(entry->d_name);
            if (n <= strlen(TN_JOURNAL_SUFFIX) || strcmp(entry->d_name + n - strlen(TN_JOURNAL_SUFFIX), TN_JOURNAL_SUFFIX) != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
            failed |= one(path, &all);
        }
        if (dir != NULL)
            closedir(dir);
    }
    print("total", &all);
    return failed;
}
