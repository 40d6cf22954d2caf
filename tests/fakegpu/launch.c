/* Kernel launches: arguments copied at the call, code and limit charges at the first launch, the built-in kernels. */
#define _GNU_SOURCE
#include "fake.h"

#include <string.h>
#include <time.h>

#define RESIDENT_THREADS ((size_t)132 * 2048) /* local memory is provisioned for every thread the card can hold */
#define CONTEXT_STACK 1024u                   /* of which the context has so much a thread already */

CUresult fk_kernel_prepare(struct fk_kernel *k, struct fk_func *f, void **params, void **extra)
{
    k->f = f;
    const struct fk_builtin *b = f->builtin;
    if (b == NULL)
        return CUDA_SUCCESS;
    if (params != NULL) {
        for (int i = 0; i < b->nargs; i++) {
            memcpy(k->args + b->offset[i], params[i], b->size[i]);
            k->ptrs[i] = NULL;
        }
    } else if (extra != NULL) {
        const void *buffer = NULL;
        size_t size = 0;
        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = extra[1];
            else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
                size = *(size_t *)extra[1];
        }
        size_t need = (size_t)b->offset[b->nargs - 1] + b->size[b->nargs - 1];
        if (buffer == NULL || size < need)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(k->args, buffer, need);
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    k->known = true;
    return CUDA_SUCCESS;
}

/* Local memory for frames of `stack` bytes: the context has that much from now on. */
CUresult fk_stack_charge(struct fk_ctx *c, size_t stack)
{
    size_t want = stack > CONTEXT_STACK ? fk_up((stack - CONTEXT_STACK) * RESIDENT_THREADS, FK_PAGE) : 0;
    if (want > c->stack_charge && !fk_charge(&fk_devs[c->device], want - c->stack_charge))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (want < c->stack_charge)
        fk_uncharge(&fk_devs[c->device], c->stack_charge - want);
    c->stack_charge = want;
    return CUDA_SUCCESS;
}

CUresult fk_kernel_charge(struct fk_func *f, struct fk_ctx *c)
{
    if (f->module != NULL) {
        c = f->module->ctx;
        FK_TRY(fk_module_charge(f->module));
    }
    struct fk_dev *d = &fk_devs[c->device];
    size_t frame = (size_t)f->attrs[c->device][CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES], stack = c->limits[CU_LIMIT_STACK_SIZE];
    if (frame > stack && (frame - CONTEXT_STACK) * RESIDENT_THREADS > c->stack_charge)
        FK_TRY(fk_stack_charge(c, frame));
    if (!c->limits_dirty)
        return CUDA_SUCCESS;
    size_t heap = c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    size_t want = heap != 8 * FK_MIB ? fk_up(heap, FK_PAGE) + FK_PAGE : 0;
    if (want > c->limit_charge) {
        if (!fk_charge(d, want - c->limit_charge))
            return CUDA_ERROR_OUT_OF_MEMORY;
        c->limit_charge = want;
    }
    c->limits_dirty = false;
    return CUDA_SUCCESS;
}

struct args { CUdeviceptr dst, src; size_t n; unsigned value, ms; uint64_t ns; };

static struct args unpack(const struct fk_kernel *k)
{
    struct args a = {0};
    if (!k->known)
        return a;
    const char *name = k->f->builtin->name;
    if (strcmp(name, "fake_spin") == 0) {
        memcpy(&a.ms, k->args, 4);
        return a;
    }
    if (strcmp(name, "spin") == 0) {
        memcpy(&a.ns, k->args, 8);
        return a;
    }
    if (strcmp(name, "poke") == 0) {
        memcpy(&a.dst, k->args, 8);
        a.n = 4;
        return a;
    }
    memcpy(&a.dst, k->args, 8);
    memcpy(&a.n, k->args + 16, 8);
    if (strstr(name, "copy") != NULL)
        memcpy(&a.src, k->args + 8, 8);
    else if (strcmp(name, "fake_add") == 0)
        memcpy(&a.value, k->args + 8, 4);
    else
        a.value = k->args[8];
    if (strncmp(name, "fake_slow", 9) == 0)
        memcpy(&a.ms, k->args + 24, 4);
    return a;
}

int fk_kernel_ranges(const struct fk_kernel *k, struct fk_range *out)
{
    struct args a = unpack(k);
    int n = 0;
    if (a.n == 0)
        return 0;
    size_t len = strcmp(k->f->builtin->name, "fake_add") == 0 ? a.n * 4 : a.n;
    out[n++] = (struct fk_range){a.dst, len, true};
    if (a.src != 0)
        out[n++] = (struct fk_range){a.src, len, false};
    return n;
}

/* A kernel reaches memory of its own device, of enabled peers, pinned memory, and what VMM access allows. */
static bool reachable(const struct fk_range *r, struct fk_ctx *c)
{
    pthread_mutex_lock(&fk_lock);
    struct fk_block *b = fk_block_at(r->p);
    bool ok = true;
    if (b != NULL && b->kind == FK_VMM)
        ok = b->access[c->device] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
             (!r->write && b->access[c->device] == CU_MEM_ACCESS_FLAGS_PROT_READ);
    else if (b != NULL && b->kind == FK_ASYNC && b->device != c->device)
        ok = fk_pool_accessible(b->pool, c->device);
    else if (b != NULL && (b->kind == FK_DEVICE || b->kind == FK_PITCH) && b->device != c->device)
        ok = c->peers >> b->device & 1;
    pthread_mutex_unlock(&fk_lock);
    return ok;
}

CUresult fk_kernel_run(struct fk_kernel *k, struct fk_op *op)
{
    struct args a = unpack(k);
    struct fk_range r[2];
    if (!k->known)
        return CUDA_SUCCESS;
    int n = fk_kernel_ranges(k, r);
    for (int i = 0; i < n; i++)
        if (!reachable(&r[i], op->ctx))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint64_t until = fk_now_ns() + a.ns + (uint64_t)a.ms * 1000000u, now; (now = fk_now_ns()) < until;) {
        uint64_t left = until - now;
        struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        nanosleep(&t, NULL);
    }
    if (a.n == 0 || op->fault)
        return CUDA_SUCCESS;
    if (strcmp(k->f->builtin->name, "poke") == 0)
        memcpy((void *)(uintptr_t)a.dst, &(uint32_t){7}, 4);
    else if (a.src != 0)
        memmove((void *)(uintptr_t)a.dst, (void *)(uintptr_t)a.src, a.n);
    else if (strcmp(k->f->builtin->name, "fake_add") == 0)
        for (size_t i = 0; i < a.n; i++)
            ((uint32_t *)(uintptr_t)a.dst)[i] += a.value;
    else
        memset((void *)(uintptr_t)a.dst, (int)a.value, a.n);
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, const unsigned dim[6], unsigned shared, CUstream h, void **params, void **extra, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    struct fk_func *function;
    struct fk_work w = {.type = FK_W_KERNEL};
    struct fk_kernel *k = &w.u.kernel;
    for (int i = 0; i < 6; i++)
        if (dim[i] == 0)
            return CUDA_ERROR_INVALID_VALUE;
    if (dim[3] > 1024 || dim[4] > 1024 || dim[5] > 64 || (size_t)dim[3] * dim[4] * dim[5] > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    if (params != NULL && extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_function_in(&function, f, s->ctx)); /* a default stream is the current context's */
    FK_TRY(fk_kernel_prepare(k, function, params, extra));
    memcpy(k->grid, dim, sizeof k->grid);
    memcpy(k->block, dim + 3, sizeof k->block);
    k->shared = shared;
    FK_TRY(fk_kernel_charge(k->f, s->ctx));
    return fk_submit(s, &w, NULL);
}

#define DIMS(gx, gy, gz, bx, by, bz) ((const unsigned[6]){gx, gy, gz, bx, by, bz})
FK_API_PT(cuLaunchKernel, cuLaunchKernel_ptsz,
          (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
           CUstream h, void **params, void **extra),
          launch(f, DIMS(gx, gy, gz, bx, by, bz), shared, h, params, extra, PT))
FK_API_PT(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
          (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
           CUstream h, void **params),
          launch(f, DIMS(gx, gy, gz, bx, by, bz), shared, h, params, NULL, PT))
FK_API_PT(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra),
          (c == NULL ? CUDA_ERROR_INVALID_VALUE
                     : launch(f, DIMS(c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ),
                              c->sharedMemBytes, c->hStream, params, extra, PT)))
