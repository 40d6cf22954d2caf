/* Anonymous memory for the shim's own tables: never the host's malloc. */
#ifndef TENURE_SHIM_PAGES_H
#define TENURE_SHIM_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed and private, or NULL. Any thread. */
static inline void *tn_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static inline void tn_pages_free(void *p, size_t bytes) { munmap(p, bytes); }

#endif
