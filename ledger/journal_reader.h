/* Reads a journal: the command's side. A tn_reader owns its mapping of the file and everything it hands out; pointers stay valid until
 * tn_reader_close. Not thread-safe: one thread a reader. Damaged input is an error by value, never a crash: every offset and length is
 * checked against the file. */
#ifndef TENURE_LEDGER_JOURNAL_READER_H
#define TENURE_LEDGER_JOURNAL_READER_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal_format.h"
#include "ledger/tn_error.h"

typedef struct tn_reader tn_reader;

/* TN_E_OPEN, TN_E_FORMAT (foreign file), TN_E_VERSION, TN_E_TRUNCATED (shorter than its header), TN_E_NOMEM. A file that ends inside a chunk
 * (killed while it grew) is read up to the last whole chunk, and tn_reader_damage() says so. */
TN_MUST_USE tn_error tn_reader_open(const char *path, tn_reader **out);
void tn_reader_close(tn_reader *r);

const tn_journal_header *tn_reader_header(const tn_reader *r);
/* All committed events in order (tsc, thread, position). *thread (may be NULL) receives the journal's thread number. NULL at the end. */
const tn_event *tn_reader_next(tn_reader *r, uint32_t *thread);
void tn_reader_rewind(tn_reader *r);
size_t tn_reader_event_count(const tn_reader *r);
size_t tn_reader_thread_count(const tn_reader *r);

/* Tables; NULL when there is no such id. */
const tn_rec_module *tn_reader_module(const tn_reader *r, uint32_t id);
const char *tn_reader_module_path(const tn_reader *r, uint32_t id);
const tn_rec_site *tn_reader_site(const tn_reader *r, uint32_t id); /* of a site with a Python part: its native site's */
const tn_rec_python_site *tn_reader_site_python(const tn_reader *r, uint32_t id); /* NULL: no Python part */
const tn_rec_python *tn_reader_python(const tn_reader *r, uint32_t id, const char **file, const char **name);
uint32_t tn_reader_site_end(const tn_reader *r); /* one past the largest site id */
const tn_rec_api *tn_reader_api(const tn_reader *r, uint32_t id, const char **name);
uint32_t tn_reader_api_end(const tn_reader *r);
const tn_rec_device *tn_reader_device(const tn_reader *r, uint32_t ordinal, const char **name);
const char *tn_reader_string(const tn_reader *r, uint32_t id);
/* The i-th coverage record, from 0; NULL past the end. */
const tn_rec_coverage *tn_reader_coverage(const tn_reader *r, size_t i, const char **text);
/* Sum over all threads' counter blocks: calls of an API, and how often a resolver handed its address out. */
uint64_t tn_reader_calls(const tn_reader *r, uint32_t api);
uint64_t tn_reader_resolved(const tn_reader *r, uint32_t api);
/* Stamp to nanoseconds since the journal's creation. */
uint64_t tn_reader_ns(const tn_reader *r, uint64_t tsc);
/* NULL, or one sentence about what of the file could not be read. */
const char *tn_reader_damage(const tn_reader *r);

#endif
