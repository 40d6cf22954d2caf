/* A driver of a few hundred lines for tests that run under sanitizers, without the fake GPU: strict about what a backend calls, over host
 * memory, so that the bytes behind a mapping can be looked at. One in a process; one thread. */
#ifndef TENURE_TESTS_TIERS_STAND_IN_CUDA_H
#define TENURE_TESTS_TIERS_STAND_IN_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "tiers/cuda_calls.h"

#define STAND_IN_PAGE ((size_t)2 << 20) /* its granularity */
#define STAND_IN_DEVICES 3

/* Starts afresh with `capacity` bytes of device memory. All must have been given back before. */
void stand_in_start(size_t capacity);

/* The whole table. Tests that want holes copy it. */
const tn_cuda *stand_in_cuda(void);

/* What is held now: physical device bytes, reserved addresses, pinned bytes; registrations. */
size_t stand_in_physical(void);
size_t stand_in_reserved(void);
size_t stand_in_pinned(void);
size_t stand_in_registered(void);

/* Whether a device may use the mapping at `address`. */
bool stand_in_reaches(int device, tn_cuda_address address);

/* What a stream capture status query says from now on, and whether the device has virtual memory management at all. */
void stand_in_capture(bool running);
void stand_in_has_vmm(bool has);

/* Added to each plain address from now on, in bytes: a driver that aligns worse than expected. */
void stand_in_misalign(size_t offset);

/* The flags that the last pinned allocation asked for. */
unsigned stand_in_last_flags(void);

#endif
