/* Whose a line is: the innermost module of its stack that is neither CUDA's runtime or driver nor this shim nor a mere bridge
 * for foreign calls. Every table that adds up by library asks here, so that it adds up to the same as the table by
 * site. Names point into the report or are constant; any thread may ask. */
#ifndef TENURE_REPORT_REPORT_OWNER_H
#define TENURE_REPORT_REPORT_OWNER_H

#include "report/report_model.h"

#define TN_OWNER_JIT "jit"         /* code made at run time, in no file */
#define TN_OWNER_ARENAS "tenure arenas" /* memory of a plan's tiers */
#define TN_OWNER_UNKNOWN "unknown" /* no stack was recorded, or its module's record was dropped */

typedef struct tn_owner {
    const char *name;  /* file name of the module (libcublas.so.13), or one of those above; never NULL */
    const char *path;  /* NULL where there is no file */
    uint32_t frame;    /* index of the frame in the record; 0 where there is none */
} tn_owner;

/* The owner of a stack in the numbering of one process's journal. `record` may be NULL. A stack that holds nothing but
 * runtime, driver, shim and bridges is its innermost frame's. */
tn_owner tn_owner_of_record(const tn_report *report, uint32_t process, const tn_rec_site *record);
/* The same for report->sites[site]. */
tn_owner tn_owner_of_site(const tn_report *report, uint32_t site);
/* 1 where a module of that path is passed over: the runtime, the driver, the shim, a bridge. */
int tn_owner_is_passed(const char *path);

#endif
