/* For backends whose memory is one driver call to take and one to give back: what they share, which is all but those two calls. It keeps the
 * book of regions, takes more where the driver's own alignment does not do, and gives everything back that did not become a region.
 * It lives within its backend, which owns it; any thread may call. */
#ifndef TENURE_TIERS_BACKEND_PLAIN_H
#define TENURE_TIERS_BACKEND_PLAIN_H

#include "tiers/cuda_error.h"
#include "tiers/region_book.h"

typedef struct tn_plain tn_plain;

/* The two calls, with `owner` the backend; `address` is what take gave. They log their failures in plain->log. A take that fails leaves
 * *address 0, but for memory that it got and could not give back. */
typedef struct tn_plain_source {
    tn_mem_error (*take)(void *owner, size_t bytes, unsigned long long *address);
    tn_mem_error (*give)(void *owner, unsigned long long address);
    size_t (*alignment)(size_t bytes); /* what take of so many bytes is expected to give */
} tn_plain_source;

struct tn_plain {
    tn_backend backend;
    const tn_cuda *cuda;
    tn_cuda_log log;
    tn_book book;
    const tn_plain_source *source;
    void *owner;
    size_t capacity, strays; /* strays: entries of the book that are in no region, see padding */
    size_t padding; /* bytes held and in no region: for the sake of alignment, or since the driver would not take them back */
};

/* Fills *plain and its backend, whose table cannot grow. `capacity` as of a backend table. */
void tn_plain_init(tn_plain *plain, const tn_plain_source *source, void *owner, const tn_cuda *cuda, tn_metadata metadata,
                   size_t capacity);

/* Gives back the regions still live, as far as the driver lets it, and returns how many those were. */
size_t tn_plain_end(tn_plain *plain);

/* Bytes of the current context's device in all, SIZE_MAX where the driver does not say. */
size_t tn_plain_device_bytes(const tn_cuda *cuda, tn_cuda_log *log);

#endif
