/* Reads the journal of prog_poll: every poll is counted, in few events, whose times stay close to their polls. */
#include <stdio.h>
#include <stdlib.h>

#include "ledger/journal_reader.h"

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    unsigned long long polls = 0, events = 0;
    int ordered = 1;
    if (argc != 2 || tn_reader_open(argv[1], &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        if (e->type != TN_EV_WAIT || e->kind != TN_WAIT_STREAM_QUERY) continue;
        events++;
        polls += e->bytes ? e->bytes : 1;
        ordered &= e->aux <= e->tsc && (!e->bytes || e->aux2 <= e->tsc);
    }
    tn_reader_close(r);
    int counted = polls == 1000000, few = events < 20000;
    printf("%s poll: every poll is counted (%llu)\n", counted ? "ok" : "not ok", polls);
    printf("%s poll: few events (%llu)\n", few ? "ok" : "not ok", events);
    printf("%s poll: a wait ends after it began\n", ordered ? "ok" : "not ok");
    return !(counted && few && ordered);
}
