/* Handles of physical memory (cuMemCreate) from pools of handles that were made beforehand, one pool for each size and set of properties that the
 * plan lists. Pools belong to the process and outlive contexts, as handles do; they are made once for each device. What the program holds of a
 * handle (its reference, its mappings) is counted here, since the driver's own count includes ours. Any thread, inside its hook. */
#ifndef TENURE_SHIM_SERVE_HANDLES_H
#define TENURE_SHIM_SERVE_HANDLES_H

#include "shim/cuda_abi.h"
#include "shim/serve.h"

/* Makes the section's pools where they are not there yet; those of other threads are waited for. OK where the plan lists none. All or nothing;
 * after a failure there are none for good, and the answer is the same each time. */
TN_MEM_MUST_USE tn_mem_error tn_serve_handles_make(tn_hook_frame *f, const tn_serve_section *s);

/* Whether a device's pools are there. */
int tn_serve_handles_ready(uint8_t device);

typedef struct tn_serve_handle {
    uint64_t handle;     /* 0: none */
    uint32_t cause;      /* TN_ROUTE_*: why not */
    int waited;          /* a wait was made for it */
} tn_serve_handle;
/* A handle from the pool of `bytes` and `detail` (TN_VMM_*). */
void tn_serve_handles_take(tn_hook_frame *f, const tn_serve_section *s, uint32_t detail, uint64_t bytes, tn_serve_handle *out);

/* Bytes of the pools of a device, and how many of them the program has, until it has released and unmapped them. */
void tn_serve_handles_held(uint8_t device, uint64_t *held, uint64_t *taken);

/* The memory at these addresses is about to be reachable otherwise than by the program's own references and mappings: handles leave their pools. */
void tn_serve_handles_exposed(const tn_hook_frame *f, uint64_t address, uint64_t bytes);

/* What the program asked for, as a plan's rows say it (TN_VMM_*). */
uint32_t tn_handle_detail(const CUmemAllocationProp *prop, uint64_t flags);

#endif
