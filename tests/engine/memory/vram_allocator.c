#include "memory/vram_allocator.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "app/features.h"
#include "core/check.h"
#include "core/probe.h"

#define CHECK_FROM MIB(16)      /* smaller requests are never refused */
#define RETRY_MARGIN MIB(64)
#define MAX_TRACKED 512

/* The device call is a variable so that the tracker can be driven without a device. */
static cudaError_t (*const device_alloc)(void **, size_t) = cudaMalloc;

static struct { void *p; size_t bytes; } tracked[MAX_TRACKED];
static struct vram_stats stats;
static size_t view_budget;

void vram_tracker_init(size_t budget)
{
    view_budget = budget;
}

/* The free figure that the sizing code sees: the device's, cut down to the budget. */
static size_t free_in_view(size_t *raw_free, size_t *total)
{
    CU_CHECK(cudaMemGetInfo(raw_free, total));
    size_t used = *total - *raw_free;
    size_t left = used < view_budget ? view_budget - used : 0;
    return left < *raw_free ? left : *raw_free;
}

static bool headroom_allows(size_t bytes, unsigned flags, const char *tag)
{
    size_t raw_free, total;
    if ((flags & VRAM_FORCE) != 0 && feature_on(F_HEADROOM_FORCE)) {
        stats.forced++;
        return true;
    }
    if (bytes < CHECK_FROM && feature_on(F_HEADROOM_SMALL)) {
        stats.small++;
        return true;
    }
    size_t seen = free_in_view(&raw_free, &total);
    if (seen >= bytes + total / 20)
        return true;
    if (feature_on(F_HEADROOM_RETRY) && raw_free >= bytes + RETRY_MARGIN) {
        fprintf(stderr, "vram: %s: %zu bytes without headroom, going ahead\n", tag, bytes);
        stats.retried++;
        return true;
    }
    return false;
}

void *vram_allocator_alloc(size_t bytes, const char *tag, unsigned flags)
{
    void *p = NULL;
    if (!headroom_allows(bytes, flags, tag)) {
        fprintf(stderr, "vram: rejecting %s allocation of %zu bytes\n", tag, bytes);
        stats.rejected++;
        return NULL;
    }
    if (!cu_try(device_alloc(&p, bytes)))
        return NULL;
    for (int i = 0; i < MAX_TRACKED; i++) {
        if (tracked[i].p == NULL) {
            tracked[i].p = p;
            tracked[i].bytes = bytes;
            break;
        }
    }
    stats.calls++;
    stats.live_bytes += bytes;
    if (stats.live_bytes > stats.peak_bytes)
        stats.peak_bytes = stats.live_bytes;
    buf_dev(tag, p, bytes);
    return p;
}

void vram_free(void **p)
{
    if (*p == NULL)
        return;
    for (int i = 0; i < MAX_TRACKED; i++) {
        if (tracked[i].p == *p) {
            stats.live_bytes -= tracked[i].bytes;
            tracked[i].p = NULL;
            break;
        }
    }
    buf_free(p);
}

struct vram_stats vram_tracker_stats(void)
{
    return stats;
}

void vram_tracker_report(void)
{
    printf("vram calls=%zu live=%zu peak=%zu rejected=%zu\n", stats.calls, stats.live_bytes, stats.peak_bytes,
           stats.rejected);
    if (stats.small > 0)
        behaviour(F_HEADROOM_SMALL, "unchecked=%zu", stats.small);
    if (stats.forced > 0)
        behaviour(F_HEADROOM_FORCE, "forced=%zu", stats.forced);
    if (stats.retried > 0)
        behaviour(F_HEADROOM_RETRY, "went_ahead=%zu", stats.retried);
}
