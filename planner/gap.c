/* See gap.h. */
#include "planner/gap.h"

#include "planner/section.h"

void tn_trace_add_gap(tn_trace *trace, uint64_t gap)
{
    for (size_t i = 0; i < trace->process_count; i++)
        for (size_t k = 0; k < trace->processes[i].life_count; k++) {
            tn_life *l = &trace->processes[i].lives[k];
            if (tn_may_be_placed(l) && l->kind != TN_KIND_VMM_HANDLE && l->bytes <= UINT64_MAX - gap)
                l->bytes += gap;
        }
}
