/* Which discipline each site gets, and why. Correct ones only; of these the one that takes the least, of equals the simplest. */
#ifndef TENURE_PLANNER_CLASSIFY_H
#define TENURE_PLANNER_CLASSIFY_H

#include "planner/section.h"

/* The reason of a site that is not packed because of how many blocks there are, not because of its history. */
#define TN_REASON_TOO_MANY "too many blocks are alive at once to lay them all out together"

/* What a rule says of a site: TN_D_COUNT nothing, else the discipline; *rule receives the rule's text for the plan, borrowed. */
typedef tn_discipline (*tn_rule_of)(void *user, const tn_trace *trace, uint32_t site, const char **rule);

/* Joins the room that rules give a site to `room`. */
typedef void (*tn_room_of)(void *user, const tn_trace *trace, uint32_t site, tn_room *room);

typedef struct tn_classify_options {
    tn_rule_of rule_of; /* NULL: no rules */
    tn_room_of room_of; /* likewise */
    void *user;
    int for_threads;    /* tn_room_for_threads beside what rules give */
} tn_classify_options;

/* Simulates the section's units and decides each. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_classify(tn_section *s, const tn_classify_options *options);

/* Sections with every unit decided. Python callers of one native site are units of their own only where they differ in discipline. */
TN_MUST_USE tn_error tn_classify_trace(const tn_trace *trace, const tn_classify_options *options, tn_sections *out);

#endif
