/* Rules by which a person overrides the planner: a line each, the first that fits a site decides.
 *
 *   # the loader's staging stays with the driver
 *   native   symbol=load_*  module=libengine*
 *   T3       file=*kv_pool.c
 *   packed   key=9026103713f2965a
 *   room     size=5MiB blocks=5 apart  key=9026103713f2965a
 *
 * A word before the globs names the discipline, or is "room": then what the site gets beyond its own history stands before them, any of size=,
 * blocks=, bytes= and apart, and every such line that fits counts, not the first alone (planner/room.h). All globs of a line must fit one frame of the site, inlined functions included. `key` is the
 * site's own. A tn_rules owns its text; one thread. */
#ifndef TENURE_PLANNER_RULES_H
#define TENURE_PLANNER_RULES_H

#include "planner/plan.h"

typedef struct tn_rules tn_rules;

/* On failure *out is NULL and `message` holds one sentence that names file and line: TN_E_OPEN, TN_E_FORMAT, TN_E_NOMEM. */
TN_MUST_USE tn_error tn_rules_read(const char *path, tn_rules **out, char message[TN_PLAN_MESSAGE]);
TN_MUST_USE tn_error tn_rules_parse(const char *text, size_t bytes, const char *name, tn_rules **out, char message[TN_PLAN_MESSAGE]);
void tn_rules_free(tn_rules *rules);

/* The discipline for a site with the row's key and frames; TN_D_COUNT where no rule fits. *rule receives the line, which the rules own. */
tn_discipline tn_rules_find(const tn_rules *rules, const tn_plan_row *row, const char **rule);
/* Joins the room that rules give such a site to *room. */
void tn_rules_room(const tn_rules *rules, const tn_plan_row *row, tn_room *room);
/* How many lines never decided anything since the rules were read, and the i-th of them (NULL past the end). */
size_t tn_rules_unused(const tn_rules *rules);
const char *tn_rules_unused_text(const tn_rules *rules, size_t i);

#endif
