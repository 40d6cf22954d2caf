/* The one API table: every function the shim stands in front of is one row of one api_*.def file, and what
 * needs to know the functions (numbers, names, pointers to the real ones, wrappers, resolver, coverage,
 * tests) is made from those rows by including them with other macros. The numbers are good within one build
 * only; a journal carries the names. Constant data: any thread may read it at any time.
 *
 * A row says: TN_DRIVER(class, variant, name, parameters, arguments, before, after). `variant` is PTDS for
 * the per-thread-default-stream twin of a function. `before` and `after` run around the real call in the
 * record mode, with TN_F the hook's frame and, after it, `r` the result; the functions they call are
 * declared in shim/record.h. A runtime row's wrapper names the site and records only what no driver row
 * under it recorded. */
#ifndef TENURE_SHIM_API_H
#define TENURE_SHIM_API_H

#include <stdint.h>

#include "ledger/journal_format.h"

enum tn_api {
    TN_API_NONE = 0,
#define TN_DRIVER(klass, variant, name, ...) TN_API_##name,
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) TN_API_##name,
#include "shim/api_all.def"
    TN_API_COUNT
};
_Static_assert(TN_API_COUNT <= TN_API_MAX, "a journal can count every row");

typedef struct tn_api_row {
    const char *name;
    uint8_t level;  /* TN_LEVEL_* */
    uint8_t klass;  /* TN_CLASS_* */
    uint8_t ptds;   /* its default stream is the per-thread one */
    void *hook;     /* our exported function; for runtime rows the one that finds the caller's cudart */
} tn_api_row;

/* TN_API_COUNT rows; row 0 is empty. */
extern const tn_api_row tn_api_rows[];

/* The row with exactly this name, or TN_API_NONE. No lock, no allocation. */
int tn_api_find(const char *name);

#endif
