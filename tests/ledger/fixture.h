/* What the journal's tests share: a private folder for each test, journals opened in it, events with a
 * running number, and reading back. The folder and its files are removed by fixture_end. One thread at a time, but for
 * write_numbered, which any thread may call on its own writer. */
#ifndef TENURE_TESTS_LEDGER_FIXTURE_H
#define TENURE_TESTS_LEDGER_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal.h"
#include "ledger/journal_reader.h"

extern char fixture_dir[256];

void fixture_begin(void);
void fixture_end(void);

/* Opens a journal in the folder; fails the test if that fails. */
tn_journal *open_journal(const tn_journal_os *os, uint64_t max_bytes);
tn_reader *open_reader(const char *path);
uint32_t this_tid(void);

/* Writes events numbered from `first` on (addr = number, bytes = mark); returns how many were not dropped. */
uint32_t write_numbered(tn_journal *j, tn_journal_thread *t, uint64_t mark, uint64_t first, uint32_t count);
/* The number of events with this mark, after checking that their numbers rise by one from 0. */
uint64_t count_in_order(tn_reader *r, uint64_t mark);
/* Files in the folder whose names end in .tnj. */
int count_journals(void);
void write_api_record(tn_journal *j, uint16_t id, const char *name);
/* Reads a whole file; *bytes gets its size. The caller frees it. */
unsigned char *read_file(const char *path, size_t *bytes);
void write_file(const char *path, const void *p, size_t bytes);

#endif
