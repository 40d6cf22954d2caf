/* What the tests of a place share: a plan section made by hand, and checked as one from a file is; a device of work that proceeds by hand, with
 * its waits counted; metadata that can fail; a host backend for each kind of memory. One of each a process, made anew by fixture_begin;
 * one thread but where a test says otherwise. */
#ifndef TENURE_TESTS_SERVE_PLACE_FIXTURE_H
#define TENURE_TESTS_SERVE_PLACE_FIXTURE_H

#include "serve/place.h"
#include "tests/tiers/fixture.h"
#include "tests/tiers/tick_device.h"

enum { KEYS = 100 }; /* row r has key KEYS + r */

/* ---- the plan */
extern tn_plan_section section;

/* The functions number rows from 0. `capacity` counts for T3 alone. */
uint32_t plan_row(tn_discipline discipline, tn_family family, uint64_t largest, uint64_t capacity);
uint32_t plan_pinned_row(uint32_t flags, uint64_t largest);
/* A class more of the last row that was made, aligned natively; the offsets are its slots. */
void plan_class(uint64_t bytes, size_t count, const uint64_t *offsets);
/* Rows of the family that have slots need a tier PACKED or T5b; T3 gets the sum of its rows. */
void plan_tier(tn_discipline discipline, tn_family family, uint32_t detail, uint64_t capacity, uint64_t streams);
void plan_region(uint32_t row, uint64_t first_bytes, uint64_t capacity, uint64_t count, uint32_t times);
/* Fails the test where the section is none that a plan file could have. */
void plan_done(void);

/* ---- memory */
extern tn_host *device_host, *async_host, *pinned_hosts[TN_PLACE_PINNED_SETS];
extern tn_metadata metadata;

/* The nth call for memory from now on fails (0: none does); how many there were that asked for some; bytes that are held. */
void metadata_fail(size_t nth);
size_t metadata_calls(void);
size_t metadata_held(void);

/* ---- the place */
extern tn_place *place;
extern tn_work work; /* of tick_device.h, with its waits counted */

/* An empty plan and all else anew. */
void fixture_begin(void);
tn_place_options place_options(void);
void place_begin(void); /* of the section, which is done */
/* Destroys the place, if there is one; wants nothing left of memory and metadata. */
void fixture_end(void);

uint64_t device_waited_for(void); /* the queue of the last wait's mark */
size_t device_waits(void);
void device_let_waits_fail(bool fail);
/* The device finishes all up to the mark. */
void device_finish_up_to(tn_work_mark mark);

/* Served: its address, aligned as natively. */
void *take(uint32_t row, size_t bytes, uint32_t stream);
/* Not served, for this reason, without a wait; answers the key that was in the way. */
uint64_t spill(uint32_t row, size_t bytes, uint32_t stream, tn_place_spill why);
tn_place_answer ask(uint32_t row, size_t bytes, uint32_t stream, int may_wait);
/* Freed, and clean at once, or used by what is enqueued in `queue` up to now. */
void give(uint32_t row, void *address, uint32_t stream);
void give_used(uint32_t row, void *address, uint32_t stream, uint64_t queue);
uint8_t *phase(void); /* of the takes from now on */

#endif
