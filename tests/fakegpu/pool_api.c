/* Pools as objects: default and current pools, attributes, access, trimming. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

static CUresult device_pool(CUmemoryPool *out, CUdevice dev, bool current)
{
    struct fk_dev *d;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    if (fk_pool_default(d) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemoryPool)(current ? d->pool : d->default_pool);
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetDefaultMemPool, (CUmemoryPool *out, CUdevice dev), device_pool(out, dev, false))
FK_API(cuDeviceGetMemPool, (CUmemoryPool *out, CUdevice dev), device_pool(out, dev, true))

static CUresult get(CUmemoryPool h, struct fk_pool **out)
{
    *out = (struct fk_pool *)h;
    fk_handle_stale(h, "a memory pool");
    return fk_handle_is(h, FK_T_POOL) && !(*out)->destroyed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_set_pool(CUdevice dev, CUmemoryPool h)
{
    struct fk_dev *d;
    struct fk_pool *p;
    FK_TRY(fk_need_device(dev, &d));
    FK_TRY(get(h, &p));
    if (p->device != dev)
        return CUDA_ERROR_INVALID_DEVICE;
    fk_pool_default(d);
    d->pool = p;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool h), do_set_pool(dev, h))

/* The same three by location: only devices have pools here. */
static CUresult located(const CUmemLocation *where, CUmemAllocationType type)
{
    if (where == NULL || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    return where->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
static CUresult located_get(CUmemoryPool *out, const CUmemLocation *where, CUmemAllocationType type, bool current)
{
    FK_TRY(located(where, type));
    return device_pool(out, where->id, current);
}
static CUresult located_set(const CUmemLocation *where, CUmemAllocationType type, CUmemoryPool h)
{
    FK_TRY(located(where, type));
    return do_set_pool(where->id, h);
}
FK_API(cuMemGetDefaultMemPool, (CUmemoryPool *out, CUmemLocation *w, CUmemAllocationType t), located_get(out, w, t, false))
FK_API(cuMemGetMemPool, (CUmemoryPool *out, CUmemLocation *w, CUmemAllocationType t), located_get(out, w, t, true))
FK_API(cuMemSetMemPool, (CUmemLocation *w, CUmemAllocationType t, CUmemoryPool h), located_set(w, t, h))

static CUresult do_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
    struct fk_dev *d;
    if (out == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fk_need_device(props->location.id, &d) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE; /* not 101, as elsewhere */
    struct fk_pool *p = fk_pool_new(props->location.id);
    if (p == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->props = *props;
    *out = (CUmemoryPool)p;
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolCreate, (CUmemoryPool *out, const CUmemPoolProps *props), do_create(out, props))

static CUresult do_destroy(CUmemoryPool h)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (p->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_dev *d = &fk_devs[p->device];
    if (d->pool == p)
        d->pool = d->default_pool;
    p->destroyed = true; /* what it holds returns when the last block is freed */
    fk_handle_del(p);
    fk_pool_settle();
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolDestroy, (CUmemoryPool h), do_destroy(h))

static CUresult do_trim(CUmemoryPool h, size_t keep)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    FK_TRY(fk_capture_unsafe());
    fk_pool_trim(p, keep, true);
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolTrimTo, (CUmemoryPool h, size_t keep), do_trim(h, keep))

static CUresult do_get(CUmemoryPool h, CUmemPool_attribute a, void *out)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_capture_unsafe());
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: *(int *)out = p->reuse[0]; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: *(int *)out = p->reuse[1]; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)out = p->reuse[2]; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)out = p->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)out = p->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)out = p->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)out = p->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)out = p->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolGetAttribute, (CUmemoryPool h, CUmemPool_attribute a, void *out), do_get(h, a, out))

static CUresult do_set(CUmemoryPool h, CUmemPool_attribute a, const void *in)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (in == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: p->reuse[0] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: p->reuse[1] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: p->reuse[2] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: p->threshold = *(const cuuint64_t *)in; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const cuuint64_t *)in != 0) /* high marks can only be reset */
            return CUDA_ERROR_INVALID_VALUE;
        if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            p->used_high = p->used;
        else
            p->reserved_high = p->reserved;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolSetAttribute, (CUmemoryPool h, CUmemPool_attribute a, void *in), do_set(h, a, in))

static CUresult do_set_access(CUmemoryPool h, const CUmemAccessDesc *map, size_t n)
{
    struct fk_pool *p;
    struct fk_dev *d;
    FK_TRY(get(h, &p));
    if (map == NULL || n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        FK_TRY(fk_need_device(map[i].location.id, &d));
        if (map[i].location.id == p->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE; /* the owner cannot lose access */
    }
    for (size_t i = 0; i < n; i++)
        p->access[map[i].location.id] = (int)map[i].flags;
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolSetAccess, (CUmemoryPool h, const CUmemAccessDesc *map, size_t n), do_set_access(h, map, n))

static CUresult do_get_access(CUmemAccess_flags *out, CUmemoryPool h, CUmemLocation *where)
{
    struct fk_pool *p;
    struct fk_dev *d;
    FK_TRY(get(h, &p));
    if (out == NULL || where == NULL || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(where->id, &d));
    *out = (CUmemAccess_flags)p->access[where->id];
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolGetAccess, (CUmemAccess_flags *out, CUmemoryPool h, CUmemLocation *where), do_get_access(out, h, where))

/* Pools are not shared between processes here: refused as on a card whose pool has no handle type. */
static CUresult not_exportable(CUmemoryPool h)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    return p->props.handleTypes == CU_MEM_HANDLE_TYPE_NONE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}
FK_API(cuMemPoolExportToShareableHandle, (void *out, CUmemoryPool h, CUmemAllocationHandleType type, unsigned long long flags),
       ((void)out, (void)type, (void)flags, not_exportable(h)))
FK_API(cuMemPoolImportFromShareableHandle, (CUmemoryPool *out, void *handle, CUmemAllocationHandleType type, unsigned long long flags),
       ((void)out, (void)handle, (void)type, (void)flags, CUDA_ERROR_NOT_SUPPORTED))
FK_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *out, CUdeviceptr p),
       ((void)out, (void)p, CUDA_ERROR_INVALID_VALUE))
FK_API(cuMemPoolImportPointer, (CUdeviceptr *out, CUmemoryPool h, CUmemPoolPtrExportData *data),
       ((void)out, (void)data, not_exportable(h)))
