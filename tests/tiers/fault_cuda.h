/* A table of driver calls in front of another: counts them, and lets the n-th fail without the call being made, as a driver refuses. One at a
 * time in a process. Calls come from any thread, one after the other as in a driver; what is set here is for when none runs. */
#ifndef TENURE_TESTS_TIERS_FAULT_CUDA_H
#define TENURE_TESTS_TIERS_FAULT_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/cuda_calls.h"

/* The table in front of `under`, with its holes. */
const tn_cuda *fault_cuda(const tn_cuda *under);

/* The `nth` call from now (1: the next) fails with `code`, and with `lasting` all behind it too. 0 takes it back. */
void fault_set(uint64_t nth, int code, bool lasting);

/* The same, as a backend suite's `fail` and `failed` (backend_suite.h): the card has no memory left. */
void fault_out_of_memory(void *self, uint64_t nth, bool lasting);
bool fault_has_struck(void *self);

/* Every call of one function fails with `code`; 0 takes it back. */
void fault_call(tn_cuda_call call, int code);

/* Whether the failure that was set has come, and the call that failed first. */
bool fault_struck(void);
tn_cuda_call fault_first(void);

/* Calls of one function so far, failed ones too. */
uint64_t fault_count(tn_cuda_call call);

/* Work of the test's own: as before, it does not count and does not fail. */
void fault_pause(bool paused);

#endif
