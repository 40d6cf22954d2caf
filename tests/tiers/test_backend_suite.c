/* The invariants of every backend, over host memory and over the real backends on a stand-in driver. */
#include <stdio.h>
#include <stdlib.h>

#include "backend_suite.h"
#include "fault_cuda.h"
#include "stand_in_cuda.h"
#include "tiers/backend_async.h"
#include "tiers/backend_driver.h"
#include "tiers/backend_host.h"
#include "tiers/backend_pinned.h"
#include "tiers/backend_vmm.h"

#define MIB ((size_t)1 << 20)

static int failed;

static size_t physical(void *self)
{
    (void)self;
    return stand_in_physical() + stand_in_pinned();
}

static void must(tn_mem_error error)
{
    if (error != TN_MEM_OK) {
        printf("not ok create: %s\n", tn_mem_error_text(error));
        exit(1);
    }
}

static void must_be_clean(const char *name, size_t left)
{
    bool clean = left == 0 && stand_in_physical() == 0 && stand_in_reserved() == 0 && stand_in_pinned() == 0;
    printf("%s %s.ends_with_nothing_left\n", clean ? "ok" : "not ok", name);
    failed += !clean;
}

static uint64_t seed(void)
{
    const char *text = getenv("TENURE_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 20261130;
}

static suite_subject subject_of(const char *name, tn_backend *backend, size_t max_alignment)
{
    return (suite_subject){
        .name = name,
        .backend = backend,
        .unit = 2 * MIB,
        .max_alignment = max_alignment,
        .operations = 500,
        .seed = seed(),
        .fill = suite_host_fill,
        .wrong = suite_host_wrong,
        .physical = physical,
        .fail = fault_out_of_memory,
        .failed = fault_has_struck,
    };
}

static const tn_cuda *start(void)
{
    stand_in_start((size_t)8 << 30);
    return fault_cuda(stand_in_cuda());
}

static void run_host(void)
{
    tn_host *host = NULL;
    stand_in_start(0);
    must(tn_host_create(&(tn_host_options){.capacity = 1024 * MIB}, &host));
    suite_subject subject = subject_of("host", tn_host_backend(host), TN_ALIGNMENT_MAX);
    subject.grows = true;
    subject.physical = NULL;
    subject.fail = NULL;
    failed += suite_run(&subject);
    must_be_clean("host", tn_host_destroy(host));
}

static void run_driver(void)
{
    tn_driver *driver = NULL;
    must(tn_driver_create(&(tn_driver_options){.cuda = start()}, &driver));
    suite_subject subject = subject_of("driver", tn_driver_backend(driver), TN_ALIGNMENT_MAX);
    failed += suite_run(&subject);
    must_be_clean("driver", tn_driver_destroy(driver));
}

static void run_async(bool wait, bool current_pool, const char *name)
{
    tn_async *async = NULL;
    tn_async_options options = {.cuda = start(), .stream = &async, .wait = wait, .current_pool = current_pool};
    must(tn_async_create(&options, &async));
    suite_subject subject = subject_of(name, tn_async_backend(async), TN_ALIGNMENT_MAX);
    failed += suite_run(&subject);
    must_be_clean(name, tn_async_destroy(async));
}

static void run_vmm(size_t chunk, const char *name)
{
    tn_vmm *vmm = NULL;
    tn_vmm_options options = {.cuda = start(), .chunk = chunk, .patience = 1, .peers = (const int[]){1}, .peer_count = 1};
    must(tn_vmm_create(&options, &vmm));
    suite_subject subject = subject_of(name, tn_vmm_backend(vmm), TN_ALIGNMENT_MAX);
    subject.grows = true;
    subject.unit = chunk;
    failed += suite_run(&subject);
    must_be_clean(name, tn_vmm_destroy(vmm));
}

/* Served by plain allocations throughout. */
static void run_vmm_refused(void)
{
    tn_vmm *vmm = NULL;
    stand_in_start((size_t)8 << 30);
    stand_in_has_vmm(false);
    must(tn_vmm_create(&(tn_vmm_options){.cuda = fault_cuda(stand_in_cuda())}, &vmm));
    suite_subject subject = subject_of("vmm_refused", tn_vmm_backend(vmm), TN_ALIGNMENT_MAX);
    failed += suite_run(&subject);
    must_be_clean("vmm_refused", tn_vmm_destroy(vmm));
}

static void run_pinned(void)
{
    tn_pinned *pinned = NULL;
    must(tn_pinned_create(&(tn_pinned_options){.cuda = start(), .flags = TN_PINNED_PORTABLE}, &pinned));
    suite_subject subject = subject_of("pinned", tn_pinned_backend(pinned), TN_ALIGNMENT_MAX);
    failed += suite_run(&subject);
    must_be_clean("pinned", tn_pinned_destroy(pinned));
}

int main(void)
{
    run_host();
    run_driver();
    run_async(false, false, "async");
    run_async(true, true, "async_current_pool");
    run_vmm(2 * MIB, "vmm");
    run_vmm(6 * MIB, "vmm_of_large_chunks");
    run_vmm_refused();
    run_pinned();
    return failed == 0 ? 0 : 1;
}
