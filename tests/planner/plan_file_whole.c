/* Refers to all of the plan file's library, for a look at what it needs. */
#include "planner/plan_check.h"
#include "planner/plan_load.h"
#include "planner/program_script.h"

const void *const plan_file_whole[] = {
    (const void *)tn_plan_load, (const void *)tn_plan_check_in, (const void *)tn_plan_free, (const void *)tn_plan_row_of,
    (const void *)tn_plan_section_for, (const void *)tn_program_script, (const void *)tn_plan_add_frame,
};
