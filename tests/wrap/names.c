/* Functions and variables of the program's own that are named like the shim's: the archive must not meet them. */
#include "tests/wrap/names.h"

int tn_real = 1, tn_real_nvml = 2, tn_cudarts = 3, tn_api_rows = 4, tn_unwind = 5;
int tn_enter(void) { return tn_real; }
int tn_leave(void) { return tn_real_nvml; }
int tn_ledger_insert(void) { return tn_cudarts; }
int tn_journal_open(void) { return tn_api_rows; }
int tn_callsite(void) { return tn_unwind; }
int tn_map_add(void) { return 6; }
int tn_dlsym_route(void) { return 7; }
int tn_error_text(void) { return 8; }

int names_sum(void)
{
    return tn_enter() + tn_leave() + tn_ledger_insert() + tn_journal_open() + tn_callsite() + tn_map_add() + tn_dlsym_route() + tn_error_text();
}
