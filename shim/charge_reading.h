/* How much of a device is in use, as the driver says now, and where to ask: a context known to be alive for each device, the pools that
 * stream-ordered memory came from. Process-wide, atomic words and no locks; any thread but signal handlers inside a hook. Asking makes no
 * context, harms no capture, and leaves the current context as it was. */
#ifndef TENURE_SHIM_CHARGE_READING_H
#define TENURE_SHIM_CHARGE_READING_H

#include "shim/hook.h"

typedef struct tn_reading {
    uint64_t used;   /* total - free, bytes; 0: could not be had */
    uint64_t others; /* calls of other threads that had begun */
    uint64_t tsc;    /* after the driver answered; whoever begins to move memory after a quiet reading does so after this */
    uint8_t device;
    uint8_t quiet;   /* no other thread was in a call that moves device memory */
} tn_reading;

#define TN_READING_DEVICES 64u

/* Reads the device that `device` names, by the current context or by one of ours pushed and popped again. Returns 0 where there is none to
 * ask by. Also journals what pools and graphs hold, where what they have reserved changed (CHARGE events of kind POOL and GRAPH_MEMORY). */
int tn_reading_take(tn_hook_frame *f, uint8_t device, tn_reading *out);
/* For a reading that is going to be journalled: the same where only what is used of it changed. */
void tn_reading_held(tn_hook_frame *f, const tn_reading *of);

/* Contexts to ask by. */
void tn_reading_context(uint8_t device, void *handle);      /* alive from now on */
void tn_reading_context_ends(void *handle);                 /* before the driver ends it; waits for a reading under way by it */
int tn_reading_has_context(uint8_t device);
void *tn_reading_context_of(uint8_t device);                /* NULL: none */

/* Pools: asked from the first allocation on that was granted from one, until it ends. A pool that is named must have been seen made: whose
 * making came past us may end past us, and the driver faults on a pool that has ended (seen on an H200). `pool` 0: the one that
 * `addr` says it is from, for an allocation that names none; a device's own never ends. */
void tn_reading_pool_made(uint64_t pool);
void tn_reading_pool(uint8_t device, uint64_t pool, uint64_t addr, int is_default);
int tn_reading_pool_ends(uint64_t pool); /* before the driver ends it; waits for a question under way. Returns whether it was known */
/* What a device's default pool, which never ends, has now, as the driver counts it; 0: it cannot be asked, a capture is active or begins. */
int tn_reading_default_pool(uint64_t handle, uint64_t *reserved, uint64_t *used);
/* A graph's memory node was seen on the device. */
void tn_reading_graph_memory(uint8_t device);

/* The gate between our questions that harm a capture (pool attributes) and a capture's begin: begin announces itself, then waits for a
 * question under way, some hundred nanoseconds. */
void tn_capture_gate_begin(void);
void tn_capture_gate_end(void);
/* The same gate for a wait of ours for a whole context, which would end a capture: 0 while one is active or begins. Else no capture begins until
 * tn_capture_gate_waited(). */
int tn_capture_gate_wait(void);
void tn_capture_gate_waited(void);

/* When the last reading was taken, by anybody (a stamp). */
uint64_t tn_reading_last(void);

#endif
