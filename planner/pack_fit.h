/* Places buffers one after the other in a given order, each at the lowest or the tightest hole that its placed neighbours
 * leave. A fitter keeps its memory between runs; one thread at a time. */
#ifndef TENURE_PLANNER_PACK_FIT_H
#define TENURE_PLANNER_PACK_FIT_H

#include "planner/pack_problem.h"

typedef struct pack_fitter pack_fitter;

typedef enum pack_fit_mode {
    PACK_LOWEST,  /* the lowest hole that is large enough */
    PACK_TIGHTEST, /* the smallest such hole, the lowest of several */
    PACK_HINTED   /* at its hint if nothing is there, else the lowest hole */
} pack_fit_mode;

/* NULL without memory. The problem must outlive it. */
pack_fitter *pack_fitter_new(const pack_problem *p);
void pack_fitter_free(pack_fitter *f);

/* Returns the height in units, or UINT64_MAX as soon as it would be `ceiling` or more, or without memory (then
 * pack_fitter_failed()). With `by_birth` the order is by first section, and what has died is forgotten on the way.
 * Adds to *steps one for every placed piece that was looked at. */
uint64_t pack_fit(pack_fitter *f, const uint32_t *order, pack_fit_mode mode, bool by_birth, uint64_t ceiling,
                  uint64_t *offsets, uint64_t *steps);
/* Where in the order the last run reached its ceiling. */
uint32_t pack_fitter_stuck(const pack_fitter *f);
bool pack_fitter_failed(const pack_fitter *f);

#endif
