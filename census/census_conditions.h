/* Which lines a preprocessor would skip whatever the macros: those of #if 0, of the #else of #if 1, and what lies inside them.
 * A condition that is more than a literal is not judged: all its branches are live. Plain data of one file's scan. */
#ifndef TENURE_CENSUS_CONDITIONS_H
#define TENURE_CENSUS_CONDITIONS_H

#include <stddef.h>

typedef enum tn_condition { TN_CONDITION_UNKNOWN, TN_CONDITION_FALSE, TN_CONDITION_TRUE } tn_condition;

typedef struct tn_condition_level {
    size_t brackets; /* how many were open where the #if stands */
    unsigned char around_dead, dead, taken;
} tn_condition_level;

typedef struct tn_conditions {
    tn_condition_level *levels;
    size_t count, room;
} tn_conditions;

#define TN_CONDITIONS_DEEPEST (1u << 20)

static inline int tn_conditions_dead(const tn_conditions *c)
{
    return c->count && (c->levels[c->count - 1].around_dead || c->levels[c->count - 1].dead);
}

/* 0, or -1 when no memory is left or the nesting is deeper than TN_CONDITIONS_DEEPEST. */
int tn_conditions_if(tn_conditions *c, tn_condition value, size_t brackets);
/* #elif with its value; #else is #elif with TN_CONDITION_TRUE. The level it belongs to, or NULL where there is no #if. */
const tn_condition_level *tn_conditions_elif(tn_conditions *c, tn_condition value);
void tn_conditions_endif(tn_conditions *c);

#endif
