/* Limits, preferences and peer access of the current context. */
#include "fake.h"

/* ---- limits: memory of stacks follows at once, also when they shrink (seen on a card), the heap's at the next launch ---- */

static CUresult do_set_limit(CUlimit limit, size_t value)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_STACK_SIZE) {
        if (value > 512 * 1024)
            return CUDA_ERROR_INVALID_VALUE;
        value = fk_up(value, 16);
        FK_TRY(fk_stack_charge(c, value));
    }
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && value > fk_devs[c->device].capacity)
        return CUDA_ERROR_INVALID_VALUE;
    c->limits[limit] = value;
    c->limits_dirty = true;
    return CUDA_SUCCESS;
}
FK_API(cuCtxSetLimit, (CUlimit limit, size_t value), do_set_limit(limit, value))

static CUresult do_get_limit(size_t *value, CUlimit limit)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = c->limits[limit];
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetLimit, (size_t *value, CUlimit limit), do_get_limit(value, limit))

static CUresult do_priorities(int *least, int *greatest)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest), do_priorities(least, greatest))

static CUresult do_config_get(int *out, int value)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}
static CUresult do_config_set(int value)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    return value >= 0 && value <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
FK_API(cuCtxGetCacheConfig, (CUfunc_cache *out), do_config_get((int *)out, CU_FUNC_CACHE_PREFER_NONE))
FK_API(cuCtxSetCacheConfig, (CUfunc_cache config), do_config_set((int)config))
FK_API(cuCtxGetSharedMemConfig, (CUsharedconfig *out), do_config_get((int *)out, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE))
FK_API(cuCtxSetSharedMemConfig, (CUsharedconfig config), do_config_set((int)config))
FK_API(cuCtxResetPersistingL2Cache, (void), do_config_set(0))
FK_API(cuCtxGetExecAffinity, (CUexecAffinityParam *out, CUexecAffinityType type),
       ((void)out, (void)type, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY))

/* ---- peers ---- */

static CUresult do_enable_peer(CUcontext h, unsigned flags)
{
    struct fk_ctx *c, *peer = (struct fk_ctx *)h;
    FK_TRY(fk_need_ctx(&c));
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(peer, FK_T_CTX) || !peer->active || peer->device == c->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (fk_cfg.mode == FK_MIG)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (c->peers >> peer->device & 1)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    c->peers |= 1u << peer->device;
    return CUDA_SUCCESS;
}
FK_API(cuCtxEnablePeerAccess, (CUcontext h, unsigned flags), do_enable_peer(h, flags))

static CUresult do_disable_peer(CUcontext h)
{
    struct fk_ctx *c, *peer = (struct fk_ctx *)h;
    FK_TRY(fk_need_ctx(&c));
    if (!fk_handle_is(peer, FK_T_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == c->device || !(c->peers >> peer->device & 1))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    c->peers &= ~(1u << peer->device);
    return CUDA_SUCCESS;
}
FK_API(cuCtxDisablePeerAccess, (CUcontext h), do_disable_peer(h))
