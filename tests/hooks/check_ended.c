/* Reads the journal of prog_ended: each thing began and ended, once, whichever level saw it. */
#include <stdio.h>
#include <string.h>

#include "ledger/journal_reader.h"

#define ROUNDS 5u /* as in prog_ended.c */

static int failed;

static void check(const char *what, unsigned seen, unsigned wanted)
{
    printf("%s ended: %s (%u)\n", seen == wanted ? "ok" : "not ok", what, seen);
    failed |= seen != wanted;
}

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    unsigned pools[2] = {0}, streams[2] = {0}, resets = 0, frees_of_dead = 0, captures = 0, begun = 0, after_capture = 0, own[64] = {0}, kinds = 0;
    if (argc != 2 || tn_reader_open(argv[1], &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        switch (e->type) {
        case TN_EV_POOL:
            if (e->kind == TN_POOL_CREATE) pools[0]++;
            if (e->kind == TN_POOL_DESTROY) pools[1]++;
            break;
        case TN_EV_STREAM:
            if (e->kind == TN_STREAM_CREATE) streams[0]++;
            if (e->kind == TN_STREAM_DESTROY) streams[1]++;
            if (e->kind == TN_STREAM_SEEN) kinds++;
            break;
        case TN_EV_CONTEXT:
            resets += e->kind == TN_CTX_RESET;
            break;
        case TN_EV_CAPTURE:
            begun += e->kind == TN_CAPTURE_BEGIN;
            captures += e->kind == TN_CAPTURE_END;
            break;
        case TN_EV_WORK:
            after_capture += captures && !e->aux2 && e->kind == TN_WORK_MEMSET;
            break;
        case TN_EV_ALLOC:
            if (e->kind == TN_KIND_ASYNC && e->stream && e->stream < 64) own[e->stream] = 1;
            break;
        case TN_EV_FREE:
            frees_of_dead += e->result != 0;
            break;
        default:
            break;
        }
    }
    unsigned different = 0;
    for (unsigned i = 0; i < 64; i++) different += own[i];
    check("pools made", pools[0], ROUNDS);
    check("pools destroyed", pools[1], ROUNDS);
    check("streams made", streams[0], ROUNDS + 2);
    check("streams destroyed", streams[1], ROUNDS + 2);
    check("none is met whose making was not seen", kinds, 0);
    check("no two streams are one", different, ROUNDS + 1);
    check("captures begun", begun, 1);
    check("and ended, by the other level", captures, 1);
    check("work behind a capture is no captured work", after_capture, 1);
    check("resets", resets, ROUNDS);
    check("no free is refused", frees_of_dead, 0);
    tn_reader_close(r);
    return failed;
}
