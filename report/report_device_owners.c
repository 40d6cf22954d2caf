/* Lines by library. */
#include "report/report_device_owners.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_owner.h"

static int by_bytes(const void *a, const void *b)
{
    const tn_owner_sum *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

tn_owner_sum *tn_device_owners(const tn_report *report, const tn_device_account *account, size_t *count)
{
    tn_owner_sum *sums = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i < account->line_count; i++) {
        const tn_line *l = &account->lines[i];
        int64_t bytes = tn_line_bytes(l);
        if (bytes == 0)
            continue;
        const char *name = l->site == TN_NO_INDEX ? TN_OWNER_UNKNOWN : tn_owner_of_site(report, l->site).name;
        size_t k = 0;
        while (k < *count && strcmp(sums[k].name, name) != 0)
            k++;
        if (k == *count) {
            if (*count == capacity) {
                capacity = capacity ? capacity * 2 : 32;
                tn_owner_sum *grown = realloc(sums, capacity * sizeof(*grown));
                if (!grown) {
                    free(sums);
                    *count = 0;
                    return NULL;
                }
                sums = grown;
            }
            sums[k] = (tn_owner_sum){.name = name};
            ++*count;
        }
        sums[k].bytes += bytes;
        sums[k].kinds[l->kind] += bytes;
    }
    if (sums)
        qsort(sums, *count, sizeof(*sums), by_bytes);
    return sums;
}
