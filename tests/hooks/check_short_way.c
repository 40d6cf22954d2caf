/* Reads the journal of prog_short_way: what was launched into each stream, by the work events and by the counters. */
#include <stdio.h>
#include <string.h>

#include "ledger/journal_reader.h"

#define STREAMS 32
#define REST_US 20000 /* as in prog_short_way.c */

static int failed;

static void check(const char *what, int held, unsigned long seen)
{
    printf("%s short way: %s (%lu)\n", held ? "ok" : "not ok", what, seen);
    failed |= !held;
}

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    unsigned order[STREAMS] = {0}, sum[STREAMS] = {0}, ctx[STREAMS] = {0}, seen = 0, firsts = 0, captured = 0, mixed = 0;
    unsigned shortly = 0, while_managed = 0, managed = 0;
    uint64_t longest = 0;
    if (argc != 2 || tn_reader_open(argv[1], &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        firsts += e->type == TN_EV_FIRST_LAUNCH;
        if (e->kind == TN_KIND_MANAGED && e->type == TN_EV_ALLOC) managed = 1;
        if (e->kind == TN_KIND_MANAGED && e->type == TN_EV_FREE) managed = 0;
        if (e->type != TN_EV_WORK || e->kind != TN_WORK_KERNEL) continue;
        unsigned i = 0;
        while (i < seen && order[i] != e->stream) i++;
        if (i == STREAMS) return 1;
        if (i == seen) {
            order[seen] = e->stream;
            ctx[seen++] = e->ctx;
        }
        uint64_t ns = tn_reader_ns(r, e->aux) - tn_reader_ns(r, e->tsc);
        if (ns > longest) longest = ns;
        unsigned counted = (unsigned)(uint32_t)e->addr + (unsigned)(e->addr >> 32); /* in the event, and so without a hook's frame */
        shortly += counted;
        while_managed += managed ? counted : 0;
        sum[i] += (unsigned)e->bytes;
        mixed += ctx[i] != e->ctx;
        captured += e->aux2 ? (unsigned)e->bytes : 0;
    }
    static const unsigned expected[] = {33, 27, 6, 6, 11};
    check("as many streams as were launched into", seen == 5, seen);
    for (unsigned i = 0; i < 5; i++) check("every launch is its stream's", sum[i] == expected[i], sum[i]);
    check("a stream's work is of one context", mixed == 0, mixed);
    check("what was launched while a capture was active says so", captured == 9, captured);
    check("first launches: two functions, and one of the module loaded again", firsts == 3, firsts);
    check("most launches went it", shortly >= 40, shortly);
    check("none did while managed memory lived", while_managed == 0, while_managed);
    check("an event's last stamp is not before its last launch, in us", longest / 1000 >= REST_US, longest / 1000);
    unsigned long calls = 0;
    for (uint32_t api = 1; api < tn_reader_api_end(r); api++) {
        const char *name = "";
        if (tn_reader_api(r, api, &name) && strncmp(name, "cuLaunchKernel", 14) == 0) calls += tn_reader_calls(r, api);
    }
    check("every call is counted, refused ones too", calls == 33 + 27 + 6 + 6 + 11 + 2, calls);
    tn_reader_close(r);
    return failed;
}
