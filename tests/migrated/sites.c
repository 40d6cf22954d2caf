#define MIGRATED_GLUE
#include "tests/migrated/sites.h"

#include <stdio.h>
#include <stdlib.h>

#include "tiers/backend_cuda_load.h"
#include "tiers/tenure_tiers.h"

enum { DEVICE, PINNED, PINNED_MAPPED, ARENAS };
#define REGION ((size_t)256 << 20)
#define REGIONS 8
#define HOST_REGION ((size_t)32 << 20)

static tn_cuda cuda;
static tn_arena *arenas[ARENAS];

static void need(tn_mem_error error, const char *what)
{
    if (error == TN_MEM_OK)
        return;
    fprintf(stderr, "engine: %s: %s\n", what, tn_mem_error_text(error));
    exit(4);
}

static tn_arena *arena_of(int which)
{
    static tn_driver *driver;
    static tn_pinned *pinned[ARENAS];
    static int looked;
    tn_arena_options o = {.tag = "migrated", .discipline = TN_ARENA_ENGINE, .first_bytes = which == DEVICE ? REGION : HOST_REGION, .max_regions = REGIONS};

    if (arenas[which] != NULL)
        return arenas[which];
    if (!looked) {
        looked = 1;
        if (tn_seam_find() == TN_SEAM_REFUSED)
            fputs("engine: somebody listens at the tiers who cannot be understood\n", stderr);
        need(tn_cuda_load(&cuda, NULL), "the driver's functions");
    }
    if (which == DEVICE) {
        need(tn_driver_create(&(tn_driver_options){.cuda = &cuda}, &driver), "device memory for an arena");
        o.backend = tn_driver_backend(driver);
    } else {
        unsigned flags = which == PINNED_MAPPED ? cudaHostAllocMapped : cudaHostAllocDefault;
        need(tn_pinned_create(&(tn_pinned_options){.cuda = &cuda, .flags = flags}, &pinned[which]), "pinned memory for an arena");
        o.backend = tn_pinned_backend(pinned[which]);
    }
    need(tn_arena_create(&o, &arenas[which]), "an arena");
    return arenas[which];
}

static cudaError_t take(int which, void **p, size_t bytes)
{
    tn_stable_span span;
    tn_mem_error error = tn_arena_take(arena_of(which), bytes, 0, &span);

    *p = error == TN_MEM_OK ? tn_stable_data(span) : NULL;
    return error == TN_MEM_OK ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t site_take(void **p, size_t bytes)
{
    return take(DEVICE, p, bytes);
}

cudaError_t site_take_host(void **p, size_t bytes, unsigned flags)
{
    return take(flags == cudaHostAllocMapped ? PINNED_MAPPED : PINNED, p, bytes);
}

static int give(int which, void *p)
{
    return arenas[which] != NULL && tn_arena_find(arenas[which], p, NULL, NULL) == TN_MEM_OK && tn_arena_free(arenas[which], p) == TN_MEM_OK;
}

cudaError_t site_give(void *p)
{
    return p != NULL && give(DEVICE, p) ? cudaSuccess : cudaFree(p);
}

cudaError_t site_give_host(void *p)
{
    return p != NULL && (give(PINNED, p) || give(PINNED_MAPPED, p)) ? cudaSuccess : cudaFreeHost(p);
}
