/* Lifetimes from a CSV file of allocations and frees, as other tools write them: a header line `seq,op,block,bytes,site`, then a line an
 * event: `op` is alloc or free, `block` a number that no other block has, `bytes` and `site` of an alloc alone. Plain or gzip. What comes
 * out is a trace of one process without waits: its lifetimes end at the free. */
#ifndef TENURE_PLANNER_IMPORT_CSV_H
#define TENURE_PLANNER_IMPORT_CSV_H

#include "planner/trace.h"

/* On failure *out is NULL and `message` holds one sentence that names file and line: TN_E_OPEN, TN_E_FORMAT, TN_E_IO, TN_E_NOMEM. */
TN_MUST_USE tn_error tn_import_csv(const char *path, tn_trace **out, char message[TN_TRACE_MESSAGE]);

/* 1 where the name ends in .csv or .csv.gz. */
int tn_import_is_csv(const char *path);

#endif
