/* What `tenure plan` prints of a section over its budget, and `tenure run` of one that does not fit. */
#include "cli/plan_arithmetic.h"

#include "cli/cli.h"
#include "planner/memory_section.h"
#include "planner/memory_text.h"

void tn_plan_arithmetic(const char *command, const tn_plan_section *section, uint64_t budget, FILE *out)
{
    static tn_memory_input input; /* too large for a stack */
    static tn_memory_plan memory;
    char where[TN_MEMORY_NAME];
    if (!tn_memory_of_section(section, false, &input, where)) {
        cli_warn(command, "device %u: %s", section->device, where);
        return;
    }
    input.budget = budget;
    tn_memory_fit(&input, &memory);
    if (tn_memory_text(&memory, out) != 0)
        cli_warn(command, "the arithmetic cannot be written");
}
