/* Prints for each allocation in the journals of a run folder its size and the Python frames of its site, as probe.c does. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ledger/journal_reader.h"

static void print_chain(const tn_reader *r, const tn_event *e)
{
    const tn_rec_python_site *site = tn_reader_site_python(r, e->site);
    printf("%" PRIu64 "\t", e->bytes);
    for (uint32_t i = 0; site && i < site->frame_count; i++) {
        const char *file, *name;
        const tn_rec_python *p = tn_reader_python(r, site->frames[i].function, &file, &name);
        if (p) printf("%s|%s|%" PRIu32 "|%" PRIu32 ";", file, name, p->first_line, site->frames[i].line);
        else printf("unknown;");
    }
    puts(site ? "" : "-");
}

static int print_journal(const char *path)
{
    tn_reader *r;
    const tn_event *e;
    if (tn_reader_open(path, &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)))
        if (e->type == TN_EV_ALLOC) print_chain(r, e);
    int bad = tn_reader_damage(r) != NULL || tn_reader_header(r)->dropped_events || tn_reader_header(r)->dropped_records;
    tn_reader_close(r);
    return bad;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *entry;
    char path[4096];
    int bad = folder == NULL;
    while (folder && (entry = readdir(folder))) {
        size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 4, TN_JOURNAL_SUFFIX) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        bad |= print_journal(path);
    }
    if (folder) closedir(folder);
    return bad;
}
