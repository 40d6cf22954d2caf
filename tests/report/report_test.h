/* What the report's tests share: a scratch folder that goes when the test ends, and loading what was made in it.
 * Each test runs in its own process (Check forks), so nothing here is shared between tests. */
#ifndef TENURE_TESTS_REPORT_REPORT_TEST_H
#define TENURE_TESTS_REPORT_REPORT_TEST_H

#include <limits.h>
#include <stdint.h>

#include "report/report_model.h"
#include "tests/report/journal_maker.h"

/* Makes the scratch folder; Check fixtures. */
void scratch_make(void);
void scratch_remove(void);
const char *scratch_path(void);
/* A path in it; the last eight answers stay valid. */
const char *scratch_file(const char *name);

/* Writes the journal as NAME.tnj into the scratch folder and frees it. */
void put_journal(jm *j, const char *name);
/* Loads the scratch folder; the test fails where that fails. */
tn_report *load_scratch(void);

/* What most tests look at: one report, loaded from a journal put into the scratch folder. */
extern tn_report *report;
void load_journal(jm *j);
/* Frees the report and removes the scratch folder; a Check fixture. */
void drop_report(void);
const tn_place *device(uint32_t i);   /* the i-th device, from 0 */
const tn_stat *kind(uint8_t k);       /* a line of device 0 */

#define CHECK_CALLS(s, a, f, r)               \
    do {                                      \
        ck_assert_uint_eq((s)->allocs, (a));  \
        ck_assert_uint_eq((s)->frees, (f));   \
        ck_assert_uint_eq((s)->refused, (r)); \
    } while (0)

/* Events as a test writes them. API 1 allocates, API 2 frees, site 2. */
tn_event ev_alloc(uint8_t kind, uint64_t addr, uint64_t bytes);
tn_event ev_free(uint8_t kind, uint64_t addr);
tn_event ev(uint8_t type, uint8_t kind, uint64_t addr, uint64_t bytes);
/* A journal with those two APIs, device 0 (uuid 0x11...) and site 2 (key 0x2222). */
jm *plain_journal(uint32_t pid);

#endif
