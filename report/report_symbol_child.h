/* The process that reads modules' files: a fork that can crash, run out of memory or hang over one module without harm to
 * the report or to the next module. Jobs and their arrays belong to the caller and stay as they are meanwhile; one thread. */
#ifndef TENURE_REPORT_REPORT_SYMBOL_CHILD_H
#define TENURE_REPORT_REPORT_SYMBOL_CHILD_H

#include "report/report_symbol_job.h"

/* What the caller is told, in the order in which the reader found it. Strings are NULL where unknown and live until
 * the function returns; everything has been checked against the jobs. */
typedef struct tn_symbol_answers {
    void (*name)(void *arg, size_t job, size_t i, const char *name, const char *function, const char *source, uint64_t delta);
    void (*frames)(void *arg, size_t job, size_t i, const tn_symbol_frame *frames, uint32_t count);
    /* Of every address of the job without an answer: of names (lines = 0) or of files and lines (1). */
    void (*missing)(void *arg, size_t job, int lines, tn_symbol_state state);
    void *arg;
} tn_symbol_answers;

/* Runs one round over all jobs: names (lines = 0) or lines. A job may take half of the time that is left, the last one all of it.
 * *seconds_left is what is left of the time for all look-ups and is brought up to date. Every job ends with an answer to
 * `missing`: TN_SYMBOL_TIME, TN_SYMBOL_FAILED and TN_SYMBOL_NO_READER come from here. */
void tn_symbol_round(const tn_symbol_job *jobs, size_t count, int lines, double *seconds_left, const tn_symbol_answers *answers);

#endif
