/* Device memory that grows in place: addresses are reserved once and never change, physical chunks come and go behind them. The caller owns the
 * backend. Any thread may call, with a context of the device current; the driver's calls wait for nothing and harm no capture, so memory
 * that is decommitted or released must be out of use by then: by work in flight, and by graphs that will run. */
#ifndef TENURE_TIERS_BACKEND_VMM_H
#define TENURE_TIERS_BACKEND_VMM_H

#include <stdbool.h>

#include "tiers/backend.h"
#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_VMM_CHUNK_DEFAULT ((size_t)256 << 20)
#define TN_VMM_PATIENCE_DEFAULT 16u
#define TN_VMM_PEERS_MAX ((size_t)31)

typedef struct tn_vmm_options {
    const tn_cuda *cuda;
    int device;
    size_t chunk; /* bytes committed at a time, a multiple of the device's granularity; 0: TN_VMM_CHUNK_DEFAULT */
    /* Hysteresis: that many calls of decommit in a row, with no growth between them, before memory goes, and then down to the largest size that
     * any of them asked for. 1: at once. 0: TN_VMM_PATIENCE_DEFAULT. Decommitting costs more than committing, so a pool may say each step
     * what it needs, and only a lasting surplus is given back. Until then decommit succeeds and committed stays as it is;
     * a commit within that says what is needed like the others, so memory that swings in and out of use stays. */
    unsigned patience;
    const int *peers; /* devices that may reach all of it, without cuCtxEnablePeerAccess */
    size_t peer_count;
    const tn_metadata *metadata; /* NULL: malloc */
} tn_vmm_options;

/* Where the driver refuses virtual memory management (no such entry point, the device says it has none, or a call is not supported or not
 * permitted) acquire falls back to plain allocations, and acquire_growable and commit are NOT_GROWABLE: a plain allocation of all that was reserved
 * would be memory that no guard was asked about. Who can do with that asks for it (a block pool by whole_if_fixed). None of it is silent: */
typedef struct tn_vmm_figures {
    size_t granularity, chunk;  /* 0 where refused from the start */
    bool refused;               /* every acquisition is a plain one */
    tn_cuda_failure refusal;    /* the latest: its call, and its code; 0: the entry is missing, or (ATTRIBUTE) the device has none */
    uint64_t fallbacks;         /* acquisitions that were served by plain allocations */
    uint64_t growths_refused;   /* growable ones that were refused for it */
    size_t held;                /* physical bytes that no region has: the driver did not take them back; tried again at each call */
} tn_vmm_figures;

typedef struct tn_vmm tn_vmm;

/* ARGUMENT: a chunk that is no multiple of the granularity, too many peers. HOST_MEMORY. NO_CONTEXT or DRIVER: the device could not be asked. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_create(const tn_vmm_options *options, tn_vmm **vmm);

/* As tn_driver_destroy. */
size_t tn_vmm_destroy(tn_vmm *vmm);

tn_backend *tn_vmm_backend(tn_vmm *vmm);

/* Mirrors what a program does with cuCtxEnablePeerAccess: `device` may reach what is committed and what will be, or no longer. All regions or
 * none. No other call may run on this backend meanwhile. Enabling twice and disabling what is not enabled are ARGUMENT; plain regions
 * are not touched: for these the driver's own peer access counts. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_enable_peer(tn_vmm *vmm, int device);
TN_MEM_MUST_USE tn_mem_error tn_vmm_disable_peer(tn_vmm *vmm, int device);

tn_cuda_failure tn_vmm_failure(const tn_vmm *vmm);
void tn_vmm_read_figures(const tn_vmm *vmm, tn_vmm_figures *figures);

#ifdef __cplusplus
}
#endif

#endif
