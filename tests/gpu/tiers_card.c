#define _GNU_SOURCE
#include "tiers_card.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tiers/backend_cuda_load.h"

#define STAGING ((size_t)32 << 20)

struct card_driver drv;
static tn_cuda table;
static CUstream stream;
static CUfunction add_kernel;
static CUmemoryPool pool;
static uint32_t *staging;

/* Its name is one that the fake GPU knows the meaning of: it reads no code. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry fake_add(.param .u64 at, .param .u32 value, .param .u64 words)\n"
    "{\n"
    "  .reg .u64 %base, %words, %i, %step, %place;\n"
    "  .reg .u32 %value, %word, %thread, %block, %threads, %blocks;\n"
    "  .reg .pred %over;\n"
    "  ld.param.u64 %base, [at];\n"
    "  ld.param.u32 %value, [value];\n"
    "  ld.param.u64 %words, [words];\n"
    "  cvta.to.global.u64 %base, %base;\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %threads, %ntid.x;\n"
    "  mov.u32 %blocks, %nctaid.x;\n"
    "  mul.wide.u32 %i, %block, %threads;\n"
    "  cvt.u64.u32 %place, %thread;\n"
    "  add.u64 %i, %i, %place;\n"
    "  mul.wide.u32 %step, %blocks, %threads;\n"
    "again:\n"
    "  setp.ge.u64 %over, %i, %words;\n"
    "  @%over bra done;\n"
    "  shl.b64 %place, %i, 2;\n"
    "  add.u64 %place, %place, %base;\n"
    "  ld.global.u32 %word, [%place];\n"
    "  add.u32 %word, %word, %value;\n"
    "  st.global.u32 [%place], %word;\n"
    "  add.u64 %i, %i, %step;\n"
    "  bra again;\n"
    "done:\n"
    "  ret;\n"
    "}\n";

void card_must(int code, const char *what)
{
    if (code == 0)
        return;
    printf("not ok card: %s gave %d\n", what, code);
    fflush(stdout);
    exit(1);
}

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;
    if (library == NULL)
        card_must(-1, "dlopen libcuda.so.1");
#define CARD_TEXT(name) #name
#define CARD_FIND(name)                              \
    found = dlsym(library, CARD_TEXT(name));         \
    card_must(found == NULL ? -1 : 0, CARD_TEXT(name)); \
    memcpy(&drv.p_##name, &found, sizeof found);
    CARD_DRIVER(CARD_FIND)
    const char *missing;
    card_must((int)tn_cuda_load(&table, &missing), "tn_cuda_load");
    card_must(missing == NULL ? 0 : -1, missing);
}

CUfunction card_load_add_kernel(void)
{
    CUmodule module;
    CUfunction kernel;
    CARD(cuModuleLoadData(&module, ptx));
    CARD(cuModuleGetFunction(&kernel, module, "fake_add"));
    return kernel;
}

void card_start(void)
{
    CUcontext context;
    char name[128];
    int version = 0;
    size_t unused, total;
    find_driver();
    CARD(cuInit(0));
    CARD(cuDevicePrimaryCtxRetain(&context, 0));
    CARD(cuCtxSetCurrent(context));
    CARD(cuDeviceGetName(name, (int)sizeof name, 0));
    CARD(cuDriverGetVersion(&version));
    CARD(cuMemGetInfo(&unused, &total));
    printf("# %s, driver API %d, %zu MiB\n", name, version, total >> 20);
    CARD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CARD(cuDeviceGetDefaultMemPool(&pool, 0));
    add_kernel = card_load_add_kernel();
    CARD(cuMemHostAlloc((void **)&staging, STAGING, 0));
    /* What is loaded at its first use is loaded now, and not in the middle of a measurement. */
    tn_cuda_address at;
    uint32_t value = 0;
    uint64_t words = 1024;
    void *arguments[] = {&at, &value, &words};
    card_must(table.alloc(&at, 4096), "cuMemAlloc");
    card_fill(NULL, (void *)(uintptr_t)at, 1, 4096);
    CARD(cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    CARD(cuStreamSynchronize(stream));
    card_must((int)card_wrong(NULL, (void *)(uintptr_t)at, 1, 4096), "the first words written");
    card_must(table.free(at), "cuMemFree");
    card_used();
}

const tn_cuda *card_cuda(void)
{
    return &table;
}

size_t card_used(void)
{
    size_t unused, total;
    CARD(cuCtxSynchronize());
    CARD(cuMemGetInfo(&unused, &total));
    return total - unused;
}

size_t card_pool_used(void)
{
    cuuint64_t used;
    CARD(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

void card_fill(void *self, void *at, uint32_t word, size_t bytes)
{
    (void)self;
    CARD(cuCtxSynchronize()); /* memory of one stream is written in another */
    CARD(cuMemsetD32((CUdeviceptr)(uintptr_t)at, word, bytes / 4));
    CARD(cuCtxSynchronize());
}

size_t card_wrong(void *self, const void *at, uint32_t word, size_t bytes)
{
    size_t wrong = 0;
    (void)self;
    for (size_t from = 0; from < bytes / 4 * 4; from += STAGING) {
        size_t part = bytes / 4 * 4 - from < STAGING ? bytes / 4 * 4 - from : STAGING;
        CARD(cuMemcpyDtoH(staging, (CUdeviceptr)(uintptr_t)at + from, part));
        for (size_t i = 0; i < part / 4; i++)
            wrong += staging[i] != word;
    }
    return wrong;
}

CUstream card_stream(void)
{
    return stream;
}

CUfunction card_add_kernel(void)
{
    return add_kernel;
}

double card_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
