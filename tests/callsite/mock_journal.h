/* Stands in for the journal's writer: keeps every record in memory. Owned by the test process; records may come from any thread, the
 * mock's own arrays are read when the writers are done. */
#ifndef TENURE_TESTS_MOCK_JOURNAL_H
#define TENURE_TESTS_MOCK_JOURNAL_H

#include "ledger/journal.h"

#define MOCK_SITES 65536
#define MOCK_MODULES 256

typedef struct mock_site {
    tn_rec_site head;
    struct tn_frame frames[TN_FRAMES_MAX];
} mock_site;

typedef struct mock_module {
    tn_rec_module head;
    char path[1024];
} mock_module;

extern mock_site mock_sites[MOCK_SITES];
extern mock_module mock_modules[MOCK_MODULES];
extern int mock_site_count, mock_module_count;

/* Any non-NULL journal does. */
tn_journal *mock_journal(void);
/* The first SITE record with this id, the module with this id; NULL if there is none. */
const mock_site *mock_site_of(uint32_t id);
const mock_module *mock_module_of(uint32_t id);
/* How many SITE records have this id. */
int mock_sites_with_id(uint32_t id);

#endif
