/* Prints "BYTES EVENTS" of a run folder's only journal: the file's length and the events that can be read from it. usage: journal_size RUN */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ledger/journal_reader.h"

int main(int argc, char **argv)
{
    char path[4096];
    struct dirent *entry;
    struct stat st;
    tn_reader *r;
    int found = 0;
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (!dir) {
        fprintf(stderr, "usage: journal_size RUN\n");
        return 2;
    }
    while ((entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name), suffix = strlen(TN_JOURNAL_SUFFIX);
        if (n <= suffix || strcmp(entry->d_name + n - suffix, TN_JOURNAL_SUFFIX) != 0)
            continue;
        found++;
        if (snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name) >= (int)sizeof path)
            found++;
    }
    closedir(dir);
    if (found != 1) {
        fprintf(stderr, "journal_size: %s does not hold one journal\n", argv[1]);
        return 1;
    }
    if (stat(path, &st) != 0 || tn_reader_open(path, &r) != TN_OK) {
        fprintf(stderr, "journal_size: %s cannot be read\n", path);
        return 1;
    }
    if (tn_reader_header(r)->dropped_events != 0) {
        fprintf(stderr, "journal_size: %s has dropped events\n", path);
        return 1;
    }
    printf("%lld %zu\n", (long long)st.st_size, tn_reader_event_count(r));
    tn_reader_close(r);
    return 0;
}
