/* Prints what the journal of prog_copies says of work, waits and first writers, without stamps and in numbers that do not depend on where
 * memory lies, and how often each of the rows was called; the two ways of running that program must give the same. Exits 1 where an event's
 * stamps are not in order. With a second argument says instead how many events of work begin with a copy that had no frame of a hook, and exits
 * 1 where that is none. */
#include <stdio.h>
#include <string.h>

#include "ledger/journal_reader.h"

#define ADDRESSES 64

static uint64_t address[ADDRESSES];

static unsigned number_of(uint64_t a)
{
    unsigned i = 0;
    while (i < ADDRESSES && address[i] && address[i] != a) i++;
    if (i < ADDRESSES) address[i] = a;
    return i;
}

static int is_managed(const tn_event *e) { return (e->type == TN_EV_ALLOC || e->type == TN_EV_FREE) && e->kind == TN_KIND_MANAGED; }

/* Calls that stand in one line: those of one stream with nothing of the journal between, or the same wait again. */
static uint64_t calls_of(const tn_event *e) { return e->type == TN_EV_WORK ? e->bytes : 1 + e->bytes; }

static int is_one(const tn_event *a, const tn_event *b)
{
    if (a->type != b->type || a->stream != b->stream || a->ctx != b->ctx) return 0;
    return a->type == TN_EV_WORK ? a->aux2 == b->aux2 : a->type == TN_EV_WAIT && a->kind == b->kind && a->addr == b->addr;
}

static void print(const tn_event *e, uint64_t calls)
{
    if (e->type == TN_EV_WORK) printf("work stream=%u ctx=%u device=%u captured=%d calls=%lu\n", e->stream, e->ctx, e->device, (int)e->aux2, (unsigned long)calls);
    else if (e->type == TN_EV_WAIT) printf("wait kind=%u stream=%u ctx=%u event=%u outer=%u calls=%lu\n", e->kind, e->stream, e->ctx, number_of(e->addr), e->outer_api, (unsigned long)calls);
    else if (e->type == TN_EV_FIRST_WRITE) printf("write kind=%u block=%u\n", e->kind, number_of(e->addr));
    else printf("event type=%u kind=%u stream=%u\n", e->type, e->kind, e->stream);
}

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    tn_event last = {0};
    uint64_t calls = 0, bare = 0, disorder = 0;
    if (argc < 2 || tn_reader_open(argv[1], &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        if (e->type == TN_EV_CHARGE || e->type == TN_EV_THREAD || e->type == TN_EV_FIRST_LAUNCH || is_managed(e)) continue;
        if (e->type == TN_EV_WAIT) disorder += e->aux > e->tsc || !e->aux;
        if (e->type == TN_EV_WORK) {
            disorder += e->tsc > e->aux;
            const char *name = "";
            int is_copy = tn_reader_api(r, e->api, &name) && strncmp(name, "cuMem", 5) == 0;
            bare += is_copy && (uint32_t)e->addr; /* counted in the event */
        }
        if (is_one(&last, e)) {
            calls += calls_of(e);
            continue;
        }
        if (last.type && argc == 2) print(&last, calls);
        last = *e;
        calls = calls_of(e);
    }
    if (argc == 2) print(&last, calls);
    for (uint32_t api = 1; argc == 2 && api < tn_reader_api_end(r); api++) {
        const char *name = "";
        if (tn_reader_api(r, api, &name) && !strstr(name, "Managed") && tn_reader_calls(r, api)) printf("%s %lu\n", name, (unsigned long)tn_reader_calls(r, api));
    }
    if (argc > 2) printf("%lu events of work begun by a copy the short way\n", (unsigned long)bare);
    if (argc > 2) return bare == 0;
    if (disorder) printf("stamps out of order: %lu\n", (unsigned long)disorder);
    tn_reader_close(r);
    return disorder != 0;
}
