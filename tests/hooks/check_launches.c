/* Reads the journal of prog_launches: a launch that was refused is nobody's first, and of the others one is. */
#include <stdio.h>

#include "ledger/journal_reader.h"

int main(int argc, char **argv)
{
    tn_reader *r;
    const tn_event *e;
    unsigned firsts = 0, work = 0, named = 0;
    if (argc != 2 || tn_reader_open(argv[1], &r) != TN_OK) return 1;
    while ((e = tn_reader_next(r, NULL)) != NULL) {
        if (e->type == TN_EV_WORK && e->kind == TN_WORK_KERNEL) work += (unsigned)e->bytes;
        if (e->type != TN_EV_FIRST_LAUNCH) continue;
        firsts++;
        named += e->addr != 0 && e->site >= TN_SITE_FIRST;
    }
    tn_reader_close(r);
    printf("%s launches: one is the first, with its site (%u, %u)\n", firsts == 1 && named == 1 ? "ok" : "not ok", firsts, named);
    printf("%s launches: every one that was granted is work (%u)\n", work == 3 ? "ok" : "not ok", work);
    return !(firsts == 1 && named == 1 && work == 3);
}
