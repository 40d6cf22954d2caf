/* A device's lines summed by library: one figure an owner, the largest first; they add up to the account's `accounted`, as the lines do.
 * The caller frees the array; names point into the report. */
#ifndef TENURE_REPORT_REPORT_DEVICE_OWNERS_H
#define TENURE_REPORT_REPORT_DEVICE_OWNERS_H

#include "report/report_device.h"

typedef struct tn_owner_sum {
    const char *name;
    int64_t bytes;                /* all of its lines */
    int64_t kinds[TN_LINE_KINDS]; /* the same by kind */
} tn_owner_sum;

/* NULL with *count 0 where there is nothing, or no memory. */
tn_owner_sum *tn_device_owners(const tn_report *report, const tn_device_account *account, size_t *count);

#endif
