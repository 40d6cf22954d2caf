/* Makes journals for tests, byte by byte after ledger/journal_format.h and without the writer, so that reader and report
 * are held against the format itself. A jm owns its memory until jm_free; one thread uses it. Every failure ends
 * the test program. Stamps are nanoseconds: the header says one tick a nanosecond, beginning at 1000. */
#ifndef TENURE_TESTS_REPORT_JOURNAL_MAKER_H
#define TENURE_TESTS_REPORT_JOURNAL_MAKER_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal_format.h"

typedef struct jm jm;

#define JM_START 1000u

jm *jm_new(uint32_t pid);
void jm_free(jm *j);
tn_journal_header *jm_header(jm *j); /* valid until the next call on j */

void jm_api(jm *j, uint16_t id, uint8_t level, uint8_t klass, const char *name);
/* All bytes of the uuid are `uuid`; 0 means none. */
void jm_device(jm *j, uint32_t ordinal, uint8_t uuid, uint64_t total_bytes, const char *name);
/* The build-id is given in hex; NULL makes the module a hashed one, "jit" anonymous code. */
void jm_module(jm *j, uint32_t id, const char *build_id, const char *path);
/* `frames`: pairs of module and offset. */
void jm_site(jm *j, uint32_t id, uint64_t key, uint32_t frame_count, const uint64_t (*frames)[2]);
/* A Python function, and a site of `native` called from it: `frames`: pairs of function and line, innermost first. */
void jm_python(jm *j, uint32_t id, const char *file, const char *name, uint32_t first_line);
void jm_python_site(jm *j, uint32_t id, uint32_t native, uint64_t key, uint32_t frame_count, const uint32_t (*frames)[2], uint32_t flags);
void jm_string(jm *j, uint32_t id, const char *text); /* named by MARK events */
void jm_coverage(jm *j, uint32_t what, const char *text);
void jm_count(jm *j, uint16_t api, uint64_t calls, uint64_t resolved);

/* Appends to the event chunk of a thread (from 1). `at` is added to JM_START. */
void jm_event(jm *j, uint32_t thread, uint64_t at, tn_event event);

/* Writes the journal; `bytes` cuts it off (0: whole). */
void jm_write(jm *j, const char *path, size_t bytes);

/* A small run that the golden files and shape tests share: two devices, a graph, pinned memory, refusals. */
jm *jm_example(uint32_t pid);

#endif
