/* The recorded process's side of its control block: makes it and takes commands out of it. The block belongs to the process until it
 * ends and is not mapped in forked children. For use inside a host's hooks: no malloc, no stdio, no lock. errno is left alone. */
#ifndef TENURE_LEDGER_CONTROL_H
#define TENURE_LEDGER_CONTROL_H

#include "ledger/control_format.h"
#include "ledger/journal.h"

/* Creates the block beside the journal, under its name with another suffix, exclusively and private (0600), preallocated before it
 * is mapped. NULL where that fails: then nothing can be said to this process from outside. Once a process, by one thread. */
tn_control *tn_control_make(const tn_journal *journal);

/* Copies the next command that was not taken yet into *out (its text always ends) and counts it as taken: 1; 0 where there is none.
 * One thread at a time. Whatever a writer left in the block, nothing beyond it is read. */
int tn_control_next(tn_control *c, tn_control_slot *out);

#endif
