/* Aligned to a large page and advised; small arrays are not worth one. */
#define _GNU_SOURCE
#include "report/report_big.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

void *tn_big_alloc(size_t bytes)
{
    void *memory = NULL;
    if (bytes < LARGE_PAGE / 2)
        return malloc(bytes ? bytes : 1);
    size_t whole = (bytes + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    if (whole < bytes || posix_memalign(&memory, LARGE_PAGE, whole) != 0)
        return NULL;
    (void)madvise(memory, whole, MADV_HUGEPAGE); /* a wish: without it the memory is as good, and slower */
    return memory;
}

void *tn_big_grow(void *old, size_t kept_bytes, size_t bytes)
{
    void *memory = tn_big_alloc(bytes);
    if (!memory)
        return NULL;
    if (kept_bytes)
        memcpy(memory, old, kept_bytes);
    free(old);
    return memory;
}
