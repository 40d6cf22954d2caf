/* Holds the journal of prog_handles against what it did: nothing is given out twice at a time, nothing ended that was not there, no
 * capture counted for ever. Prints one line a check; exit 1 if one failed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger/journal_reader.h"

#define LIVE_MAX 4096
typedef struct live {
    uint64_t key[LIVE_MAX];
    size_t count;
    uint64_t twice, unknown, begun;
} live;

static live streams, execs, ranges;

static void begin(live *l, uint64_t key)
{
    l->begun++;
    for (size_t i = 0; i < l->count; i++)
        if (l->key[i] == key) {
            l->twice++;
            return;
        }
    if (l->count < LIVE_MAX) l->key[l->count++] = key;
}

static void end(live *l, uint64_t key)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->key[i] == key) {
            l->key[i] = l->key[--l->count];
            return;
        }
    l->unknown++;
}

static int failed;

static void check(const char *what, int holds)
{
    printf("%s %s\n", holds ? "ok" : "not ok", what);
    failed |= !holds;
}

static void check_live(const char *what, const live *l, size_t left)
{
    char text[128];
    snprintf(text, sizeof text, "%s: none twice (%llu), none unknown (%llu), %zu left (%zu)", what, (unsigned long long)l->twice,
             (unsigned long long)l->unknown, left, l->count);
    check(text, l->begun > 1000 && l->twice == 0 && l->unknown == 0 && l->count == left);
}

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    uint64_t graph_owned = 0, last_capturing = 1, own = 0, copies = 0;
    if (argc != 2 || tn_reader_open(argv[1], &r) != TN_OK) {
        puts("not ok the journal opens");
        return 1;
    }
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        if (e->type == TN_EV_STREAM && e->kind == TN_STREAM_CREATE) begin(&streams, e->addr);
        if (e->type == TN_EV_STREAM && e->kind == TN_STREAM_DESTROY) end(&streams, e->addr);
        if (e->type == TN_EV_STREAM && e->kind == TN_STREAM_PER_THREAD) own++;
        if (e->type == TN_EV_GRAPH && e->kind == TN_GRAPH_INSTANTIATE) begin(&execs, e->addr);
        if (e->type == TN_EV_GRAPH && e->kind == TN_GRAPH_EXEC_DESTROY) end(&execs, e->addr);
        if (e->type == TN_EV_VMM_RESERVE) begin(&ranges, e->addr);
        if (e->type == TN_EV_VMM_UNRESERVE) end(&ranges, e->addr);
        if (e->type == TN_EV_ALLOC && e->bytes == 34567) graph_owned += e->kind == TN_KIND_GRAPH;
        if (e->type == TN_EV_WAIT && e->kind == TN_WAIT_COPY) copies++;
        if (e->type == TN_EV_WORK) last_capturing = e->aux2;
    }
    check_live("streams", &streams, 0);
    check_live("executable graphs", &execs, 0);
    check_live("reserved ranges", &ranges, 0);
    check("a captured allocation on a thread's own stream is the graph's", graph_owned == 3);
    check("each thread's own stream is a stream", own == 3);
    check("a capture ends with its stream", last_capturing == 0);
    check("a copy of bytes to the host waits, a copy of nothing and one within the device do not", copies == 1);
    tn_reader_close(r);
    return failed;
}
