/* What the tests of traces and plans share: a scratch folder, journals written a call at a time, a trace of what was put there. Each test runs
 * in its own process, so nothing is shared between tests. */
#ifndef TENURE_TESTS_PLANNER_PLAN_TEST_H
#define TENURE_TESTS_PLANNER_PLAN_TEST_H

#include "planner/plan_make.h"
#include "planner/trace.h"
#include "tests/report/journal_maker.h"

/* Check fixtures. */
void scratch_make(void);
void scratch_remove(void);
/* A path in the folder; the last eight answers stay valid. */
const char *scratch_file(const char *name);

/* A program that is being recorded: each call is an event, a tick after the one before. Contexts 1 and 2 are on device 0; site n (from 1) has the key
 * 0x1000 + n and one frame in the module "program". */
typedef struct program { jm *journal; uint64_t at, mark; uint8_t phase; uint32_t thread, ctx; uint8_t device; } program;

program program_begin(uint32_t pid);
/* Writes it as NAME.tnj into the scratch folder. */
void program_end(program *p, const char *name);
/* Into RUN/NAME.tnj, the folder RUN being made where it is not there. */
void program_end_in(program *p, const char *run, const char *name);

void take(program *p, uint8_t kind, uint32_t site, uint64_t addr, uint64_t bytes);
void take_on(program *p, uint32_t site, uint64_t addr, uint64_t bytes, uint32_t stream); /* stream-ordered */
void give(program *p, uint8_t kind, uint64_t addr);
void give_on(program *p, uint8_t kind, uint64_t addr, uint32_t stream);
void work(program *p, uint32_t stream);
void wait_context(program *p);            /* begun now */
void wait_stream(program *p, uint32_t stream);
void record_event(program *p, uint64_t event, uint32_t stream);
void wait_event(program *p, uint64_t event);
void join(program *p, uint64_t event, uint32_t stream); /* the stream waits for the event */
void written(program *p, uint64_t addr, uint8_t how);
void phase(program *p, uint8_t now);
/* Any other event, its stamp, thread, context, device and phase filled in. */
void other(program *p, tn_event e);

/* The trace of the scratch folder, or of the paths in it; the test fails where that fails. */
tn_trace *open_scratch(void);
tn_trace *open_runs(const char *const *names, size_t count);
/* A plan that holds by its validator; the test fails where there is none. 0 steps: a million. */
tn_plan *plan_with(const tn_trace *trace, tn_plan_options options);
/* How many requests of the trace find no room in the plan, and how many have to wait (may be NULL). */
uint64_t excesses(const tn_plan *plan, const tn_trace *trace, uint64_t *waits);

#define MIB ((uint64_t)1 << 20)
/* Places for blocks, 64 MiB apart. */
uint64_t address(unsigned n);
/* Runs, made in the folder RUN: one site that has so many blocks at once, now of `bytes` and now of 512 more; and two sites in turn, with a wait
 * behind each block or behind each pair. */
tn_trace *scratch_run(const char *run, uint32_t pid, uint64_t bytes, unsigned at_once);
tn_trace *two_in_turn(const char *run, int waits);

/* The n-th block of the first process. */
const tn_life *life(const tn_trace *trace, size_t n);

#endif
