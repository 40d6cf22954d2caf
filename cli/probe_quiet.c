/* How many calls that allocate a run has made, from the counters of its journals: read as they are, without indexing the events. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/trigger.h"
#include "ledger/journal_format.h"

#define RECORD_CHUNKS 8

struct tn_quiet_journal {
    char name[256];
    int fd;
    uint64_t next_chunk;      /* the first one not looked at yet */
    off_t *counters;          /* where counter chunks stand */
    size_t counter_count;
    off_t records[RECORD_CHUNKS]; /* the first chunks of records, looked through until all rows of the API table are known */
    size_t record_count;
    uint32_t api_count, api_known;
    uint8_t known[TN_API_MAX], allocates[TN_API_MAX];
};

static void take_records(struct tn_quiet_journal *j, off_t at)
{
    unsigned char *chunk = malloc(TN_CHUNK_BYTES);
    ssize_t n = chunk ? pread(j->fd, chunk, TN_CHUNK_BYTES, at) : -1;
    for (size_t i = sizeof(tn_chunk_header); n > 0 && i + sizeof(tn_record) <= (size_t)n;) {
        tn_record record;
        tn_rec_api api;
        memcpy(&record, chunk + i, sizeof(record));
        if (record.type == 0 || record.bytes > TN_CHUNK_BYTES)
            break;
        if (record.type == TN_REC_API && record.bytes >= sizeof(api) && i + sizeof(record) + sizeof(api) <= (size_t)n) {
            memcpy(&api, chunk + i + sizeof(record), sizeof(api));
            if (api.id < TN_API_MAX) {
                j->api_known += !j->known[api.id];
                j->known[api.id] = 1;
                j->allocates[api.id] = api.klass == TN_CLASS_ALLOC;
            }
        }
        i += sizeof(record) + ((record.bytes + 7u) & ~7u);
    }
    free(chunk);
}

/* Chunks that came since the last look. */
static void look_on(struct tn_quiet_journal *j)
{
    tn_chunk_header head;
    for (;; j->next_chunk++) {
        off_t at = (off_t)(TN_HEADER_BYTES + j->next_chunk * TN_CHUNK_BYTES);
        if (pread(j->fd, &head, sizeof(head), at) != (ssize_t)sizeof(head) || head.magic != TN_CHUNK_MAGIC)
            break;
        if (head.type == TN_CHUNK_RECORDS && j->record_count < RECORD_CHUNKS)
            j->records[j->record_count++] = at;
        if (head.type == TN_CHUNK_COUNTERS) {
            off_t *grown = realloc(j->counters, (j->counter_count + 1) * sizeof(*grown));
            if (!grown)
                return;
            j->counters = grown;
            grown[j->counter_count++] = at;
        }
    }
    /* The process may be writing them just now. */
    for (size_t i = 0; i < j->record_count && j->api_known + 1 < j->api_count; i++)
        take_records(j, j->records[i]);
}

static unsigned long long calls_of(struct tn_quiet_journal *j)
{
    unsigned long long sum = 0;
    uint64_t block[TN_COUNTERS];
    look_on(j);
    for (size_t i = 0; i < j->counter_count; i++)
        for (unsigned slot = 0; slot < TN_COUNTER_SLOTS; slot++) {
            off_t at = j->counters[i] + (off_t)sizeof(tn_chunk_header) + (off_t)(slot * sizeof(block));
            if (pread(j->fd, block, sizeof(block), at) != (ssize_t)sizeof(block))
                continue;
            for (unsigned api = 1; api < TN_API_MAX; api++)
                sum += j->allocates[api] ? block[api] : 0;
        }
    return sum;
}

static void add_journal(tn_quiet *q, const char *run, const char *name)
{
    char path[4600];
    for (size_t i = 0; i < q->count; i++)
        if (strcmp(q->journals[i].name, name) == 0)
            return;
    struct tn_quiet_journal *grown = realloc(q->journals, (q->count + 1) * sizeof(*grown));
    if (!grown)
        return;
    q->journals = grown;
    struct tn_quiet_journal *j = &grown[q->count];
    memset(j, 0, sizeof(*j));
    snprintf(path, sizeof(path), "%s/%s", run, name);
    snprintf(j->name, sizeof(j->name), "%s", name);
    j->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    tn_journal_header header;
    if (j->fd >= 0 && pread(j->fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) && memcmp(header.magic, TN_JOURNAL_MAGIC, sizeof(header.magic)) == 0) {
        j->api_count = header.api_count;
        q->count++;
    } else if (j->fd >= 0) {
        close(j->fd); /* it is being made: next time */
    }
}

unsigned long long tn_quiet_calls(tn_quiet *q, const char *run)
{
    unsigned long long sum = 0;
    struct dirent *entry;
    DIR *dir = opendir(run);
    while (dir && (entry = readdir(dir))) {
        size_t n = strlen(entry->d_name), suffix = strlen(TN_JOURNAL_SUFFIX);
        if (n > suffix && strcmp(entry->d_name + n - suffix, TN_JOURNAL_SUFFIX) == 0)
            add_journal(q, run, entry->d_name);
    }
    if (dir)
        closedir(dir);
    for (size_t i = 0; i < q->count; i++)
        sum += calls_of(&q->journals[i]);
    return sum;
}

void tn_quiet_free(tn_quiet *q)
{
    for (size_t i = 0; i < q->count; i++) {
        close(q->journals[i].fd);
        free(q->journals[i].counters);
    }
    free(q->journals);
    *q = (tn_quiet){0};
}
