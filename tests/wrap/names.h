/* See names.c. */
#ifndef TENURE_TESTS_WRAP_NAMES_H
#define TENURE_TESTS_WRAP_NAMES_H

extern int tn_real, tn_real_nvml, tn_cudarts, tn_api_rows, tn_unwind;
int tn_enter(void);
int tn_leave(void);
int tn_ledger_insert(void);
int tn_journal_open(void);
int tn_callsite(void);
int tn_map_add(void);
int tn_dlsym_route(void);
int tn_error_text(void);

/* The sum of what the functions return: 36 while nobody else's are called. */
int names_sum(void);

#endif
