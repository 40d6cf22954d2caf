/* Arrays and mipmapped arrays: opaque images in plain memory. Only deferred ones answer memory requirements. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct fk_mipmap {
    struct fk_mipmap *next;
    struct fk_ctx *ctx;
    unsigned levels;
    struct fk_array *level[32];
    bool deferred;
};
static struct fk_array *arrays;
static struct fk_mipmap *mipmaps;

static size_t element_bytes(CUarray_format f, unsigned channels)
{
    switch ((int)f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2 * (size_t)channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4 * (size_t)channels;
    default: return 0;
    }
}

/* The card's largest textures, as it reports them; layers and faces have limits of their own, which are not checked. */
static bool too_wide(const CUDA_ARRAY3D_DESCRIPTOR *p)
{
    if (p->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
        return false;
    if (p->Depth == 0)
        return p->Width > 131072 || p->Height > 65536;
    bool deep = p->Width <= 8192 && p->Height <= 8192 && p->Depth <= 32768;
    return !deep && (p->Width > 16384 || p->Height > 16384 || p->Depth > 16384);
}

static CUresult new_array(struct fk_array **out, const CUDA_ARRAY3D_DESCRIPTOR *p, struct fk_ctx *c, bool level)
{
    size_t el = element_bytes(p->Format, p->NumChannels);
    if (el == 0 || (p->NumChannels != 1 && p->NumChannels != 2 && p->NumChannels != 4) || p->Width == 0 || too_wide(p))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_dev *d = &fk_devs[c->device];
    bool deferred = p->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING;
    struct fk_array *a = calloc(1, sizeof *a);
    if (a == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->desc = *p;
    a->rows = p->Height != 0 ? p->Height : 1;
    a->slices = p->Depth != 0 ? p->Depth : 1;
    a->pitch = p->Width * el;
    a->device = c->device;
    a->ctx = c;
    a->level = level;
    a->deferred = deferred;
    if (__builtin_mul_overflow(a->pitch, a->rows, &a->bytes) || __builtin_mul_overflow(a->bytes, a->slices, &a->bytes)) {
        free(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!deferred) {
        a->mem = fk_plain_take(d, a->bytes);
        if (a->mem == 0 && fk_pool_trim_idle(d))
            a->mem = fk_plain_take(d, a->bytes);
        if (a->mem == 0) {
            free(a);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        fk_stat_add(&d->st, a->bytes, fk_plain_backed(a->bytes));
    }
    a->next = arrays;
    arrays = a;
    fk_handle_add(a, FK_T_ARRAY);
    *out = a;
    return CUDA_SUCCESS;
}

static void drop_array(struct fk_array *a)
{
    struct fk_dev *d = &fk_devs[a->device];
    for (struct fk_array **at = &arrays; *at != NULL; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    fk_handle_del(a);
    if (a->mem != 0) {
        fk_stat_sub(&d->st, a->bytes, fk_plain_backed(a->bytes));
        fk_plain_give(d, a->mem, a->bytes);
    }
    free(a);
}

static CUresult create3(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *p)
{
    struct fk_ctx *c;
    struct fk_array *a;
    if (out == NULL || p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    FK_TRY(new_array(&a, p, c, false));
    *out = (CUarray)a;
    return CUDA_SUCCESS;
}

static CUresult create2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *p)
{
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR q = {p->Width, p->Height, 0, p->Format, p->NumChannels, 0};
    return create3(out, &q);
}
FK_API(cuArrayCreate_v2, (CUarray *out, const CUDA_ARRAY_DESCRIPTOR *p), create2(out, p))
FK_API(cuArray3DCreate_v2, (CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *p), create3(out, p))

static CUresult array_of(CUarray h, struct fk_array **out)
{
    *out = (struct fk_array *)h;
    return fk_handle_is(h, FK_T_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult destroy(CUarray h)
{
    struct fk_array *a;
    FK_TRY(fk_ctx_error());
    FK_TRY(array_of(h, &a));
    FK_TRY(fk_capture_unsafe());
    if (a->level)
        return CUDA_ERROR_INVALID_HANDLE; /* goes with its mipmapped array */
    fk_handle_del(a); /* a second destroy during the wait is refused */
    fk_wait_device(a->device);
    drop_array(a);
    return fk_ctx_error();
}
FK_API(cuArrayDestroy, (CUarray h), destroy(h))

static CUresult get3(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray h)
{
    struct fk_array *a;
    FK_TRY(array_of(h, &a));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = a->desc;
    return CUDA_SUCCESS;
}
static CUresult get2(CUDA_ARRAY_DESCRIPTOR *out, CUarray h)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(get3(&d, h));
    *out = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
    return CUDA_SUCCESS;
}
FK_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *out, CUarray h), get3(out, h))
FK_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *out, CUarray h), get2(out, h))

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, size_t bytes, bool deferred)
{
    if (out == NULL || !deferred)
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    out->size = fk_up(bytes, 65536);
    out->alignment = 65536;
    return CUDA_SUCCESS;
}

static CUresult array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray h, CUdevice dev)
{
    struct fk_array *a;
    struct fk_dev *d;
    FK_TRY(array_of(h, &a));
    FK_TRY(fk_need_device(dev, &d));
    return requirements(out, a->bytes, a->deferred);
}
FK_API(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray h, CUdevice dev),
       array_requirements(out, h, dev))
FK_API(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray h),
       ((void)out, (void)h, CUDA_ERROR_INVALID_VALUE))
FK_API(cuArrayGetPlane, (CUarray *out, CUarray h, unsigned plane), ((void)out, (void)h, (void)plane, CUDA_ERROR_INVALID_VALUE))

/* ---- mipmapped arrays: one array per level ---- */

static void drop_mipmap(struct fk_mipmap *m)
{
    for (struct fk_mipmap **at = &mipmaps; *at != NULL; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    fk_handle_del(m);
    for (unsigned i = 0; i < m->levels; i++)
        drop_array(m->level[i]);
    free(m);
}

static CUresult create_mipmap(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *p, unsigned levels)
{
    struct fk_ctx *c;
    if (out == NULL || p == NULL || levels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_capture_unsafe());
    struct fk_mipmap *m = calloc(1, sizeof *m);
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->ctx = c;
    m->deferred = p->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING;
    m->next = mipmaps;
    mipmaps = m;
    CUDA_ARRAY3D_DESCRIPTOR d = *p;
    for (unsigned i = 0; i < levels && i < 32; i++) {
        CUresult r = new_array(&m->level[i], &d, c, true);
        if (r != CUDA_SUCCESS) {
            drop_mipmap(m);
            return r;
        }
        m->levels++;
        if (d.Width <= 1 && d.Height <= 1 && d.Depth <= 1)
            break;
        d.Width = d.Width > 1 ? d.Width / 2 : 1;
        d.Height = d.Height > 1 ? d.Height / 2 : d.Height;
        d.Depth = d.Depth > 1 && !(d.Flags & CUDA_ARRAY3D_LAYERED) ? d.Depth / 2 : d.Depth;
    }
    fk_handle_add(m, FK_T_MIPMAP);
    *out = (CUmipmappedArray)m;
    return CUDA_SUCCESS;
}
FK_API(cuMipmappedArrayCreate, (CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *p, unsigned levels),
       create_mipmap(out, p, levels))

static CUresult get_level(CUarray *out, CUmipmappedArray h, unsigned level)
{
    struct fk_mipmap *m = (struct fk_mipmap *)h;
    if (!fk_handle_is(m, FK_T_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    if (out == NULL || level >= m->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUarray)m->level[level];
    return CUDA_SUCCESS;
}
FK_API(cuMipmappedArrayGetLevel, (CUarray *out, CUmipmappedArray h, unsigned level), get_level(out, h, level))

static CUresult destroy_mipmap(CUmipmappedArray h)
{
    struct fk_mipmap *m = (struct fk_mipmap *)h;
    FK_TRY(fk_ctx_error());
    if (!fk_handle_is(m, FK_T_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_capture_unsafe());
    fk_handle_del(m);
    fk_wait_device(m->ctx->device);
    drop_mipmap(m);
    return fk_ctx_error();
}
FK_API(cuMipmappedArrayDestroy, (CUmipmappedArray h), destroy_mipmap(h))

static CUresult mipmap_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray h, CUdevice dev)
{
    struct fk_mipmap *m = (struct fk_mipmap *)h;
    struct fk_dev *d;
    size_t bytes = 0;
    if (!fk_handle_is(m, FK_T_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_device(dev, &d));
    for (unsigned i = 0; i < m->levels; i++)
        bytes += m->level[i]->bytes;
    return requirements(out, bytes, m->deferred);
}
FK_API(cuMipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray h, CUdevice dev),
       mipmap_requirements(out, h, dev))
FK_API(cuMipmappedArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray h),
       ((void)out, (void)h, CUDA_ERROR_INVALID_VALUE))

void fk_arrays_destroy(struct fk_ctx *c)
{
    for (struct fk_mipmap *m = mipmaps, *next; m != NULL; m = next) {
        next = m->next;
        if (m->ctx == c)
            drop_mipmap(m);
    }
    for (struct fk_array *a = arrays, *next; a != NULL; a = next) {
        next = a->next;
        if (a->ctx == c)
            drop_array(a);
    }
}
