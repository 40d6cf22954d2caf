/* Rows by bisection, sections one after the other: there are few. */
#include <string.h>

#include "planner/plan.h"

const tn_plan_row *tn_plan_row_of(const tn_plan_section *section, uint64_t key, uint64_t python)
{
    const tn_plan_row *native = NULL;
    size_t low = 0, high = section->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (section->rows[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < section->row_count && section->rows[low].key == key; low++) {
        if (section->rows[low].python == python)
            return &section->rows[low];
        if (section->rows[low].python == 0)
            native = &section->rows[low];
    }
    return native;
}

static int is_of(const tn_plan_section *section, const char *script, uint32_t device)
{
    return section->device == device && (script && section->script ? strcmp(script, section->script) == 0 : script == section->script);
}

const tn_plan_section *tn_plan_section_for(const tn_plan *plan, const char *build_id, const char *script, uint32_t device)
{
    for (size_t i = 0; build_id && build_id[0] && i < plan->section_count; i++)
        if (is_of(&plan->sections[i], script, device) && strcmp(plan->sections[i].exe_build_id, build_id) == 0)
            return &plan->sections[i];
    return NULL;
}

const tn_plan_section *tn_plan_section_named(const tn_plan *plan, const char *exe, const char *script, uint32_t device)
{
    const char *slash = strrchr(exe, '/'), *name = slash ? slash + 1 : exe;
    for (size_t i = 0; i < plan->section_count; i++)
        if (is_of(&plan->sections[i], script, device) && !plan->sections[i].exe_build_id[0] && strcmp(plan->sections[i].exe, name) == 0)
            return &plan->sections[i];
    return NULL;
}
