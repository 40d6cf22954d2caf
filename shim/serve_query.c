/* What a program asks about an address: a block of a tier answers as if the driver had made it, and no answer tells of the arena around it. */
#include <stdio.h>
#include <string.h>

#include "shim/map.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_handles.h"
#include "shim/serve_pending.h"
#include "tiers/backend_pinned.h"

/* What the driver maps is a multiple of this, by the family of memory: 2 MiB, of pinned memory too (tests/diff/golden/mappings.txt), a pool's steps
 * (tests/gpu/golden: mapping_size). */
static uint64_t mapping_bytes(unsigned kind)
{
    return (uint64_t)(kind == TN_KIND_ASYNC ? 32 : 2) << 20;
}

static tn_map synchronous = TN_MAP_INIT; /* (address, stamp of the allocation): SYNC_MEMOPS was set on the block */
static const char nowhere = 0;           /* host memory that the driver knows nothing of, as it knows nothing of a freed block */

enum { NOT_OURS = 0, LIVE, DEAD /* in an arena, and in no live block */ };

static int look(tn_hook_frame *f, uint64_t address, tn_entry *block)
{
    int was = f->thread->busy; /* a signal handler inside a hook may ask, too: looking takes no lock */
    f->thread->busy = 1;
    int known = tn_ledger_find(TN_SPACE_ADDRESS, address, block);
    int owned = !known && tn_serve_owns(address);
    if (owned) known = tn_serve_pending_find(address, block);
    int found = known && tn_is_served(block) ? LIVE : !known && owned ? DEAD : NOT_OURS;
    if (!known) memset(block, 0, sizeof *block);
    *f->thread->error = f->errno_in;
    f->thread->busy = was;
    return found;
}

CUresult tn_serve_cuMemGetAddressRange_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t *, CUdeviceptr), CUdeviceptr *base, size_t *bytes,
                                          CUdeviceptr address)
{
    tn_entry block;
    int found = look(f, address, &block);
    if (found == NOT_OURS) return call(base, bytes, address);
    /* The driver's own checks of context and end first, at an address that it knows; asked for nothing it checks nothing. */
    CUdeviceptr arena;
    size_t arena_bytes;
    CUresult r = call(&arena, &arena_bytes, address);
    if (r != 0 || found == DEAD) return r != 0 ? r : CUDA_ERROR_NOT_FOUND;
    if (base) *base = block.addr;
    if (bytes) *bytes = block.bytes;
    return CUDA_SUCCESS;
}

/* Whether the block's own answer differs from the arena's, and what it is. */
static int own_answer(const tn_entry *block, int served, CUpointer_attribute attribute, void *data)
{
    uint64_t step = mapping_bytes(block->kind), first = block->addr & ~(step - 1), end = (block->addr + block->bytes + step - 1) & ~(step - 1);
    if (block->kind != TN_KIND_ASYNC && end - first > step && block->bytes <= step) { /* a small block that lies across two: the driver has none of these */
        first = block->addr & ~(uint64_t)511;
        end = first + step;
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: /* one counter for all blocks: the stamp of their allocation, which rises */
        *(unsigned long long *)data = block->tsc;
        return block->tsc != 0;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        if (served) *(unsigned *)data = (unsigned)tn_map_get(&synchronous, block->addr, block->tsc, NULL);
        return served;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        if (served) *(CUdeviceptr *)data = block->addr;
        return served;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (served) *(size_t *)data = block->bytes;
        return served;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        if (served) *(CUdeviceptr *)data = first;
        return served;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        if (served) *(size_t *)data = end - first;
        return served;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: /* smaller ones share the memory of others natively, too; above 1 MiB a block is alone, and its number new */
        if (!served || block->kind == TN_KIND_ASYNC || block->bytes <= (uint64_t)1 << 20) return 0;
        *(unsigned long long *)data = block->tsc;
        return block->tsc != 0;
    default:
        return 0;
    }
}

/* A mapping has a number of its own, of the same counter: the memory of a pooled handle comes again, and who knows what it did with it
 * before must not take the new mapping for the old one. */
static void mapping_answer(tn_hook_frame *f, uint64_t address, void *data)
{
    tn_entry m = {0};
    int was = f->thread->busy;
    f->thread->busy = 1;
    if (tn_ledger_find(TN_SPACE_MAPPING, address, &m) && m.tsc) *(unsigned long long *)data = m.tsc;
    *f->thread->error = f->errno_in;
    f->thread->busy = was;
}

CUresult tn_serve_cuPointerGetAttribute(tn_hook_frame *f, CUresult (*call)(void *, CUpointer_attribute, CUdeviceptr), void *data,
                                        CUpointer_attribute attribute, CUdeviceptr address)
{
    tn_entry block;
    int found = look(f, address, &block);
    CUresult r = call(data, attribute, found == DEAD ? (CUdeviceptr)(uintptr_t)&nowhere : address);
    if (r == 0 && data && block.addr) (void)own_answer(&block, found == LIVE, attribute, data);
    if (r == 0 && data && !block.addr && attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID) mapping_answer(f, address, data);
    return r;
}

/* Of memory that it does not know a driver says that it is the host's, at the address that it was asked for (seen on an H200). */
static void as_asked(CUpointer_attribute attribute, void *data, uint64_t address)
{
    const char *said;
    if (attribute != CU_POINTER_ATTRIBUTE_HOST_POINTER && attribute != CU_POINTER_ATTRIBUTE_DEVICE_POINTER) return;
    memcpy(&said, data, sizeof said);
    if (said == &nowhere) memcpy(data, &address, sizeof address);
}

CUresult tn_serve_cuPointerGetAttributes(tn_hook_frame *f, CUresult (*call)(unsigned, CUpointer_attribute *, void **, CUdeviceptr), unsigned count,
                                         CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    tn_entry block;
    int found = look(f, address, &block);
    CUresult r = call(count, attributes, data, found == DEAD ? (CUdeviceptr)(uintptr_t)&nowhere : address);
    for (unsigned i = 0; r == 0 && attributes && data && i < count; i++) {
        if (data[i] && found == DEAD) as_asked(attributes[i], data[i], address);
        if (data[i] && block.addr) (void)own_answer(&block, found == LIVE, attributes[i], data[i]);
        if (data[i] && !block.addr && attributes[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID) mapping_answer(f, address, data[i]);
    }
    return r;
}

CUresult tn_serve_cuPointerSetAttribute(tn_hook_frame *f, CUresult (*call)(const void *, CUpointer_attribute, CUdeviceptr), const void *value,
                                        CUpointer_attribute attribute, CUdeviceptr address)
{
    tn_entry block;
    int found = look(f, address, &block);
    /* The whole arena becomes synchronous: right for this block, only slower for the others. */
    CUresult r = call(value, attribute, found == DEAD ? (CUdeviceptr)(uintptr_t)&nowhere : address);
    if (r != 0 || f->nested || found != LIVE || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !value) return r;
    f->thread->busy = 1;
    uint64_t one = 1;
    if (*(const unsigned *)value) (void)tn_map_add(&synchronous, block.addr, block.tsc, &one);
    else (void)tn_map_remove(&synchronous, block.addr, block.tsc, NULL);
    char text[200];
    snprintf(text, sizeof text, "SYNC_MEMOPS was set on a served block of site %u: copies in its whole arena are synchronous; give the site the "
             "rule native", block.site);
    tn_coverage(TN_COV_NOTE, text);
    *f->thread->error = f->errno_in;
    f->thread->busy = 0;
    return r;
}

/* An address of an arena in which no block is: the driver is asked of one that it does not know, as it knows none that was freed. */
static void *as_known(tn_hook_frame *f, void *address)
{
    tn_entry block;
    return look(f, (uint64_t)(uintptr_t)address, &block) == DEAD ? (void *)(uintptr_t)&nowhere : address;
}

/* The hook has taken a live block out of the ledger before this; it is none that was registered, and the driver refuses it. */
CUresult tn_serve_cuMemHostUnregister(tn_hook_frame *f, CUresult (*call)(void *), void *address)
{
    return call(f->freed_known ? address : as_known(f, address));
}

/* Seen on an H200: of a place within pinned memory the driver does not say that it is portable. */
CUresult tn_serve_cuMemHostGetFlags(tn_hook_frame *f, CUresult (*call)(unsigned *, void *), unsigned *flags, void *address)
{
    tn_entry block;
    CUresult r = call(flags, as_known(f, address));
    if (r == 0 && flags && look(f, (uint64_t)(uintptr_t)address, &block) == LIVE) *flags |= (uint32_t)block.extra & TN_PINNED_FLAGS;
    return r;
}

CUresult tn_serve_cuMemHostGetDevicePointer_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, void *, unsigned), CUdeviceptr *out, void *address,
                                               unsigned flags)
{
    return call(out, as_known(f, address), flags);
}

/* An export of a block would export the arena: refused, and said by name. What the driver itself refuses stays its answer. */
static int is_export_of_ours(tn_hook_frame *f, uint64_t address, const char *what)
{
    tn_entry block;
    if (look(f, address, &block) != LIVE || block.kind != TN_KIND_DEVICE) return 0;
    if (f->nested) return 1;
    f->thread->busy = 1;
    char text[200];
    snprintf(text, sizeof text, "%s of a block that the plan places (site %u): refused; the record that the plan is made of saw no export here. "
             "Record again, or give the site the rule native", what, block.site);
    tn_serve_say(text);
    *f->thread->error = f->errno_in;
    f->thread->busy = 0;
    return 1;
}

CUresult tn_serve_cuIpcGetMemHandle(tn_hook_frame *f, CUresult (*call)(CUipcMemHandle *, CUdeviceptr), CUipcMemHandle *handle, CUdeviceptr address)
{
    return is_export_of_ours(f, address, "cuIpcGetMemHandle") ? CUDA_ERROR_NOT_SUPPORTED : call(handle, address);
}

CUresult tn_serve_cuMemGetHandleForAddressRange(tn_hook_frame *f, CUresult (*call)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long),
                                                void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type, unsigned long long flags)
{
    if (is_export_of_ours(f, address, "cuMemGetHandleForAddressRange")) return CUDA_ERROR_NOT_SUPPORTED;
    if (!f->nested) {
        f->thread->busy = 1;
        tn_serve_handles_exposed(f, address, bytes);
        f->thread->busy = 0;
    }
    return call(handle, address, bytes, type, flags);
}
