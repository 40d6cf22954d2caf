/* What the driver says about an address: cuPointerGetAttribute and its relatives. */
#include "pool.h"

#include <string.h>

#define PUT(type, value)                      \
    do {                                      \
        type v_ = (type)(value);              \
        memcpy(out, &v_, sizeof v_);          \
        return CUDA_SUCCESS;                  \
    } while (0)

/* Size of an attribute's value, for the zero that the list query writes where there is no answer. */
static size_t value_size(CUpointer_attribute a)
{
    switch ((int)a) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return sizeof(int);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
        return 8;
    }
}

static int access_flags(const struct fk_block *b)
{
    struct fk_ctx *c = fk_current();
    int device = c != NULL ? c->device : b->device;
    if (b->kind == FK_VMM)
        return b->access[device];
    return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static CUresult one(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    struct fk_block *b = fk_block_at(p);
    if (a < CU_POINTER_ATTRIBUTE_CONTEXT || a > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (b == NULL || !b->live)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = !fk_is_device_kind(b->kind);
    CUdeviceptr mapped = b->kind == FK_REGISTERED ? b->base : b->base / FK_PAGE * FK_PAGE;
    size_t mapping = fk_up(b->size, FK_PAGE); /* of pinned memory as of the card's own */
    if (b->kind == FK_ASYNC) { /* a pool is mapped by its steps */
        mapped = b->base - (b->base - b->piece->chunk->p) % FK_POOL_STEP;
        mapping = fk_up((size_t)(b->base - mapped) + b->size, FK_POOL_STEP);
    }
    switch ((int)a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        /* Memory that outlives contexts has none. */
        if (b->kind == FK_ASYNC || b->kind == FK_VMM || b->kind == FK_GRAPH)
            PUT(CUcontext, NULL);
        PUT(CUcontext, b->ctx);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: PUT(unsigned, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: PUT(CUdeviceptr, p);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && b->kind != FK_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(void *, (uintptr_t)p);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: PUT(unsigned, b->sync_memops || b->kind == FK_MANAGED);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: PUT(unsigned long long, b->buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: PUT(unsigned, b->kind == FK_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: PUT(int, b->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: PUT(unsigned, b->kind == FK_DEVICE || b->kind == FK_PITCH);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: PUT(CUdeviceptr, b->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: PUT(size_t, b->size);
    case CU_POINTER_ATTRIBUTE_MAPPED: PUT(unsigned, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        PUT(unsigned long long, b->vmm != NULL ? b->vmm->prop.requestedHandleTypes : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: PUT(unsigned, !host && b->kind != FK_MANAGED && b->kind != FK_ASYNC);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: PUT(unsigned, access_flags(b));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: PUT(CUmemoryPool, b->pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: PUT(size_t, mapping);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: PUT(CUdeviceptr, mapped);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: /* blocks that share a mapping share it; one that is alone in its mapping has a new one */
        PUT(unsigned long long, b->size > FK_PAGE / 2 ? ((unsigned long long)1 << 40) + b->buffer_id : b->base / FK_PAGE);
    default: PUT(unsigned, 0);
    }
}

static CUresult do_one(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_ctx_error());
    return one(out, a, p);
}
FK_API(cuPointerGetAttribute, (void *out, CUpointer_attribute a, CUdeviceptr p), do_one(out, a, p))

/* The list form never fails for an unknown address: its answers are zero, but for the device ordinal (-2) and the host's pointer, which is the
 * address that was asked for. */
static CUresult do_list(unsigned n, CUpointer_attribute *attrs, void **out, CUdeviceptr p)
{
    if (n == 0 || attrs == NULL || out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_ctx_error());
    for (unsigned i = 0; i < n; i++) {
        if (attrs[i] < CU_POINTER_ATTRIBUTE_CONTEXT || attrs[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
            return CUDA_ERROR_INVALID_VALUE;
        if (one(out[i], attrs[i], p) == CUDA_SUCCESS)
            continue;
        if (attrs[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
            continue; /* the one that keeps what it held */
        memset(out[i], 0, value_size(attrs[i]));
        if (attrs[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)out[i] = -2;
        if (attrs[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && fk_block_at(p) == NULL)
            memcpy(out[i], &p, sizeof p);
    }
    return CUDA_SUCCESS;
}
FK_API(cuPointerGetAttributes, (unsigned n, CUpointer_attribute *attrs, void **out, CUdeviceptr p),
       do_list(n, attrs, out, p))

static CUresult do_set(const void *value, CUpointer_attribute a, CUdeviceptr p)
{
    struct fk_block *b = fk_block_at(p);
    FK_TRY(fk_ctx_error());
    if (value == NULL || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || b == NULL || b->base != p)
        return CUDA_ERROR_INVALID_VALUE;
    b->sync_memops = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}
FK_API(cuPointerSetAttribute, (const void *value, CUpointer_attribute a, CUdeviceptr p), do_set(value, a, p))
