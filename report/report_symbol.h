/* Names for return addresses from the symbol tables of the modules on this machine: the dynamic one, and for what that
 * does not export the full one, where it was not stripped. A tn_symbols
 * owns every table it has read, and every name it returns, until it is freed; one thread uses it. No file,
 * however damaged, does more than leave a name out. */
#ifndef TENURE_REPORT_REPORT_SYMBOL_H
#define TENURE_REPORT_REPORT_SYMBOL_H

#include <stdint.h>

#include "ledger/journal_format.h"

typedef struct tn_symbols tn_symbols;

/* Why a frame has no name; TN_SYMBOL_FOUND when it has. */
typedef enum tn_symbol_state {
    TN_SYMBOL_FOUND = 0,
    TN_SYMBOL_JIT,        /* code in no file */
    TN_SYMBOL_NO_FILE,    /* the module's file is not on this machine, or cannot be read */
    TN_SYMBOL_NOT_ELF,    /* the file at its path is no ELF file, or a damaged one */
    TN_SYMBOL_NO_ID,      /* the module had no build-id, so the file cannot be known to be the same */
    TN_SYMBOL_OTHER_FILE, /* the file at its path has another build-id */
    TN_SYMBOL_NOT_IN_TABLE, /* no function of either table holds the address */
    TN_SYMBOL_STATE_COUNT
} tn_symbol_state;

/* NULL when no memory is left. */
tn_symbols *tn_symbols_new(void);
void tn_symbols_free(tn_symbols *symbols);

typedef struct tn_symbol {
    const char *name;
    uint64_t delta;     /* distance of the return address from the function's start */
    const char *source; /* "dynsym" or "symtab" */
} tn_symbol;

/* The function that holds the call which returns to `offset` (an address of the module less its load base).
 * Fills *out on TN_SYMBOL_FOUND only. */
tn_symbol_state tn_symbols_find(tn_symbols *symbols, const tn_rec_module *module, const char *path, uint64_t offset,
                                tn_symbol *out);
/* A short phrase; NULL for TN_SYMBOL_FOUND. */
const char *tn_symbol_state_text(tn_symbol_state state);

#endif
