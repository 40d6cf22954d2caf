/* Reading memory of the interpreter. A reader belongs to one look-up on one thread. Two ways: directly, for what the calling thread itself keeps
 * alive; or by page-wise copies that the kernel makes and that fail where nothing is mapped, until a layout has proved right. No lock, no malloc; errno is changed. */
#ifndef TENURE_SHIM_PYTHON_READ_H
#define TENURE_SHIM_PYTHON_READ_H

#include <stdint.h>
#include <string.h>

#define TN_PY_PAGE 4096u
#define TN_PY_PAGES 24

typedef struct tn_py_pages { /* copies made for one look-up */
    uint64_t at[TN_PY_PAGES];
    uint8_t copy[TN_PY_PAGES][TN_PY_PAGE];
} tn_py_pages;

typedef struct tn_py_reader {
    tn_py_pages *pages; /* NULL: direct */
    int count;          /* pages copied */
} tn_py_reader;

/* 1: copied by the kernel; 0: something there is not mapped, or the kernel does not do it here. */
int tn_py_copy_guarded(uint64_t addr, void *to, uint64_t bytes);
/* Whether it does: 0 under a filter of system calls that leaves process_vm_readv out. */
int tn_py_can_guard(void);

int tn_py_read_paged(tn_py_reader *r, uint64_t addr, void *to, uint64_t bytes);

/* 1: `to` holds the bytes. 0: they cannot be there. */
static inline int tn_py_read(tn_py_reader *r, uint64_t addr, void *to, uint64_t bytes)
{
    if (addr < TN_PY_PAGE || addr >> 56) return 0;
    if (r->pages) return tn_py_read_paged(r, addr, to, bytes);
    memcpy(to, (const void *)addr, bytes);
    return 1;
}

static inline int tn_py_word(tn_py_reader *r, uint64_t addr, uint64_t *out)
{
    return (addr & 7) == 0 && tn_py_read(r, addr, out, 8);
}

#endif
