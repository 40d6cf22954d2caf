/* A plan file, read where it is served from: with memory from the caller's hook, by system calls of our own, and refused whole where anything
 * in it is wrong. The command reads plans by the same code (plan_json.h). No state; any thread. */
#ifndef TENURE_PLANNER_PLAN_LOAD_H
#define TENURE_PLANNER_PLAN_LOAD_H

#include "planner/plan.h"

enum { TN_PLAN_WITHOUT_NAMES = 1 /* frames and Python frames are read, and not kept */ };

/* A file larger than this is no plan. */
#define TN_PLAN_FILE_MAX ((size_t)1 << 30)

/* Reads a plan file, or its text, and has it checked (plan_check.h). `hook` as for tn_plan_new_in. On failure *out is NULL and `message` holds
 * one sentence that names the file and the place in it: TN_E_OPEN, TN_E_FORMAT, TN_E_VERSION, TN_E_NOMEM. `name` stands for the file in messages. */
TN_MUST_USE tn_error tn_plan_load(const char *path, unsigned flags, const tn_metadata *hook, tn_plan **out, char message[TN_PLAN_MESSAGE]);
TN_MUST_USE tn_error tn_plan_load_text(const char *text, size_t bytes, const char *name, unsigned flags, const tn_metadata *hook, tn_plan **out,
                                       char message[TN_PLAN_MESSAGE]);

#endif
