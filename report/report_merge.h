/* What the processes of a run have in common gets one number: calls by name, devices by uuid, sites by key.
 * Fills a tn_report that already holds its open journals; used by loading and replay, on one thread. */
#ifndef TENURE_REPORT_REPORT_MERGE_H
#define TENURE_REPORT_REPORT_MERGE_H

#include "report/report_model.h"

/* Numbers everything that the journals' records name, and sets the clocks. Once, before the replay. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_merge(tn_report *report);

/* The place of a process's device; one that no DEVICE record describes gets a line of its own. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_merge_place(tn_report *report, uint32_t process, uint32_t ordinal, uint32_t *out);

#endif
