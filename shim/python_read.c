#include "shim/python_read.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int tn_py_copy_guarded(uint64_t addr, void *to, uint64_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)addr, bytes};
    return (uint64_t)syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1ul, &remote, 1ul, 0ul) == bytes;
}

int tn_py_can_guard(void)
{
    static _Atomic int answer; /* 1 no, 2 yes */
    int a = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!a) {
        uint64_t here = 1, there = 0;
        a = tn_py_copy_guarded((uint64_t)&here, &there, sizeof here) && there == 1 ? 2 : 1;
        atomic_store_explicit(&answer, a, memory_order_relaxed);
    }
    return a == 2;
}

static const uint8_t *page(tn_py_reader *r, uint64_t at)
{
    tn_py_pages *p = r->pages;
    for (int i = 0; i < r->count; i++)
        if (p->at[i] == at) return p->copy[i];
    if (r->count == TN_PY_PAGES || !tn_py_copy_guarded(at, p->copy[r->count], TN_PY_PAGE)) return NULL;
    p->at[r->count] = at;
    return p->copy[r->count++];
}

int tn_py_read_paged(tn_py_reader *r, uint64_t addr, void *to, uint64_t bytes)
{
    uint8_t *out = to;
    while (bytes > 0) {
        uint64_t in = addr & (TN_PY_PAGE - 1), part = TN_PY_PAGE - in < bytes ? TN_PY_PAGE - in : bytes;
        const uint8_t *copy = page(r, addr - in);
        if (!copy) return 0;
        memcpy(out, copy + in, part);
        out += part;
        addr += part;
        bytes -= part;
    }
    return 1;
}
