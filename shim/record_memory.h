/* What the rows of the runtime (record_runtime.c) share with those of the driver (record_memory.c): the one place where an allocation
 * enters ledger and journal, and the one where a free does. On the calling thread inside its hook, as all of record.h. */
#ifndef TENURE_SHIM_RECORD_MEMORY_H
#define TENURE_SHIM_RECORD_MEMORY_H

#include "shim/identity.h"
#include "shim/record.h"

#define TN_STREAM_OF_MAPPING UINT32_MAX /* in the ledger's entry of a mapping of virtual memory, which tells it from its handle's */

void tn_record_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, tn_context c, void *stream);
/* After f->begun, freed_addr, freed_space, freed_known and freed are set. */
void tn_record_free(tn_hook_frame *f, int r, void *stream);
/* Whether the driver says so; only a stream that the program made, or a thread's own, can be. */
int tn_record_is_captured(const tn_hook_frame *f, void *stream);
/* Whether a driver row below a runtime row has ever recorded in this process. */
int tn_record_level(void);

#endif
