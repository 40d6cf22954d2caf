/* Instances for the packer's tests: random ones, ones that fit exactly, hostile shapes; and what every placement is held to. */
#ifndef TENURE_TESTS_PACK_FIXTURE_H
#define TENURE_TESTS_PACK_FIXTURE_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "planner/pack.h"
#include "planner/pack_check.h"

typedef struct instance {
    tn_pack_buffer *buffers;
    uint64_t *offsets;
    size_t count, room;
    tn_pack_result result;
} instance;

typedef struct random_state {
    uint64_t state;
} random_state;

uint64_t random_next(random_state *random);
uint64_t random_below(random_state *random, uint64_t limit);

/* The given seed, or the one that TENURE_SEED names; printed where the test fails. */
uint64_t fixture_seed(uint64_t given);

void instance_add(instance *it, uint64_t lower, uint64_t upper, uint64_t size);
/* Lifetimes of mean length `length` in [0, time); sizes from 1 to `size`, small ones more often. */
void instance_random(instance *it, random_state *random, size_t count, uint64_t time, uint64_t length, uint64_t size);
/* Cuts the rectangle time by height by straight cuts from side to side: what results fits in the height, and in no less. */
void instance_cut(instance *it, random_state *random, size_t count, uint64_t time, uint64_t height);
void instance_shuffle(instance *it, random_state *random);
void instance_free(instance *it);

/* Packs and holds the result against the validator, the bounds and the members' table. */
void instance_pack(instance *it, const tn_pack_options *options);
/* The most bytes alive at one time, by looking at every birth. */
uint64_t instance_live_peak(const instance *it);

int fixture_run(const char *name, TCase *tests);

#endif
