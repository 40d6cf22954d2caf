/* See mock_journal.h. */
#include "tests/callsite/mock_journal.h"

#include <pthread.h>
#include <string.h>

mock_site mock_sites[MOCK_SITES];
mock_module mock_modules[MOCK_MODULES];
int mock_site_count, mock_module_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

tn_journal *mock_journal(void)
{
    static char journal;
    return (tn_journal *)&journal;
}

tn_error tn_journal_record(tn_journal *j, uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    tn_error e = TN_OK;
    pthread_mutex_lock(&mutex);
    if (j != mock_journal()) {
        e = TN_E_ARGUMENT;
    } else if (type == TN_REC_SITE && mock_site_count < MOCK_SITES && b_bytes <= sizeof mock_sites[0].frames) {
        mock_site *s = &mock_sites[mock_site_count++];
        memcpy(&s->head, a, a_bytes);
        memcpy(s->frames, b, b_bytes);
    } else if (type == TN_REC_MODULE && mock_module_count < MOCK_MODULES && b_bytes <= sizeof mock_modules[0].path) {
        mock_module *m = &mock_modules[mock_module_count++];
        memcpy(&m->head, a, a_bytes);
        memcpy(m->path, b, b_bytes);
    } else {
        e = TN_E_LIMIT;
    }
    pthread_mutex_unlock(&mutex);
    return e;
}

const mock_site *mock_site_of(uint32_t id)
{
    for (int i = 0; i < mock_site_count; i++)
        if (mock_sites[i].head.id == id)
            return &mock_sites[i];
    return NULL;
}

const mock_module *mock_module_of(uint32_t id)
{
    for (int i = 0; i < mock_module_count; i++)
        if (mock_modules[i].head.id == id)
            return &mock_modules[i];
    return NULL;
}

int mock_sites_with_id(uint32_t id)
{
    int n = 0;
    for (int i = 0; i < mock_site_count; i++)
        n += mock_sites[i].head.id == id;
    return n;
}
