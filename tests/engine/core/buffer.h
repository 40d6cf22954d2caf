/* Single-purpose buffers: one owner, one size, freed by the owner.
 *
 * A buffer is a plain value; whoever made it releases it. Nothing here is
 * shared, so different threads may use different buffers. */
#ifndef ENGINE_CORE_BUFFER_H
#define ENGINE_CORE_BUFFER_H

#include <stddef.h>

struct device_buffer {
    void *data;
    size_t bytes;
};

struct pinned_buffer {
    void *data;
    size_t bytes;
};

/* Mandatory device buffer; ends the process if the device is full. */
struct device_buffer device_buffer_create(const char *name, size_t bytes);
void device_buffer_release(struct device_buffer *buf);

/* Mandatory pinned host buffer. The digest ring is one, and it is not watched itself. */
struct pinned_buffer pinned_buffer_create(const char *name, size_t bytes);

#endif
