/* What serving tells the account of memory that programs are answered from. Any thread, inside its hook. */
#ifndef TENURE_SHIM_SERVE_INFO_H
#define TENURE_SHIM_SERVE_INFO_H

#include <stdint.h>

/* A stream-ordered block was served, or freed: for the figures of the pool that it would have come from. */
void tn_serve_pooled(uint8_t device, uint64_t bytes, int freed);

#endif
