/* The checksum over every buffer, and the frees that feed it.
 *
 * Each buffer gets a pattern made from its name, size and ordinal, in its
 * first 4 KiB, its last bytes and a few places between; large buffers are
 * never touched whole. When it goes, what those places hold is added to the
 * checksum. The sum is commutative, so loader threads may call everything
 * here; the table of live buffers has one lock. */
#ifndef ENGINE_CORE_PROBE_H
#define ENGINE_CORE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "app/engine.h"

/* Creates the probe's stream and the pinned ring for digests that are still in flight. */
void probe_init(const struct engine *eng);

/* Adds what is still alive to the checksum, in no particular order; returns how many there are. */
int probe_sweep(void);

/* Releases the probe's own stream. The pinned ring stays, as the process ends anyway. */
void probe_shutdown(void);

uint64_t probe_checksum(void);

/* Writes the pattern and starts watching. A NULL pointer is ignored. */
void buf_dev(const char *name, void *p, size_t bytes);
void buf_host(const char *name, void *p, size_t bytes);

/* The same for a stream-ordered block: the pattern is written on its stream. */
void buf_dev_async(const char *name, void *p, size_t bytes, cudaStream_t stream);

/* Waits for the engine's streams, reads the block back and forgets it. */
void buf_retire(void *p);

/* Reads the block back on `stream`, without waiting, and forgets it. */
void buf_retire_on(void *p, cudaStream_t stream);

/* Adds the digests that were read back without waiting; waits for the engine's streams. */
void probe_collect(void);

/* Retire and free by the family's own call; *p becomes NULL; NULL is ignored. */
void buf_free(void **p);
void buf_free_host(void **p);
void buf_free_async(void **p, cudaStream_t stream);

/* cudaFree of a block whose last use is still running on `stream`. */
void buf_free_inflight(void **p, cudaStream_t stream);

#endif
