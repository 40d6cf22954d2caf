/* A recorded run beside a plan: after it has ended, the file `shadow.txt` of its folder says where plan and reality differ. One thread. */
#ifndef TENURE_CLI_RECORD_SHADOW_H
#define TENURE_CLI_RECORD_SHADOW_H

#include "planner/plan.h"

/* Compares the run in `folder` with the plan. `quiet`: no line about it. What cannot be done is a warning of `tenure record`. */
void tn_record_shadow(const tn_plan *plan, const char *folder, int quiet);

#endif
