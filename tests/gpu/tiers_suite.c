/*
 * The invariants of every backend (tests/tiers/backend_suite.c) over the real ones and whatever libcuda there is: plain, stream-ordered, growing
 * in place, pinned. Every driver call within a step is let fail once, and from each on all. Prints "ok NAME" or "not ok NAME: why".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tiers/backend_suite.h"
#include "tests/tiers/fault_cuda.h"
#include "tiers/backend_async.h"
#include "tiers/backend_driver.h"
#include "tiers/backend_pinned.h"
#include "tiers/backend_vmm.h"
#include "tiers_card.h"

#define MIB ((size_t)1 << 20)

static int failed;

static size_t used(void *self)
{
    (void)self;
    return card_used();
}

static size_t pool_used(void *self)
{
    (void)self;
    return card_pool_used();
}

static suite_subject subject_of(const char *name, tn_backend *backend)
{
    const char *seed = getenv("TENURE_SEED");
    return (suite_subject){
        .name = name,
        .backend = backend,
        .unit = 2 * MIB,
        .max_alignment = 256 * MIB,
        .operations = 300,
        .seed = seed != NULL ? strtoull(seed, NULL, 0) : 20261130,
        .fill = card_fill,
        .wrong = card_wrong,
        .physical = used,
        /* Blocks below 2 MiB share pages, also with what the context itself allocated. */
        .slack = 16 * MIB,
        .fail = fault_out_of_memory,
        .failed = fault_has_struck,
    };
}

static void end(const char *name, size_t left, size_t before, size_t after)
{
    if (left == 0 && after == before) {
        printf("ok %s.ends_with_nothing_left\n", name);
        return;
    }
    printf("not ok %s.ends_with_nothing_left: %zu regions, %lld bytes\n", name, left, (long long)(after - before));
    failed++;
}

static void run_driver(void)
{
    tn_driver *driver = NULL;
    size_t before = card_used();
    card_must((int)tn_driver_create(&(tn_driver_options){.cuda = fault_cuda(card_cuda())}, &driver), "tn_driver_create");
    suite_subject subject = subject_of("driver", tn_driver_backend(driver));
    failed += suite_run(&subject);
    end("driver", tn_driver_destroy(driver), before, card_used());
}

static void run_async(const char *name, bool wait, bool current_pool)
{
    tn_async *async = NULL;
    size_t before = card_pool_used();
    tn_async_options options = {.cuda = fault_cuda(card_cuda()), .stream = card_stream(), .wait = wait, .current_pool = current_pool};
    card_must((int)tn_async_create(&options, &async), "tn_async_create");
    suite_subject subject = subject_of(name, tn_async_backend(async));
    subject.physical = pool_used;
    subject.slack = 0;
    failed += suite_run(&subject);
    end(name, tn_async_destroy(async), before, card_pool_used());
}

static void run_vmm(const char *name, size_t chunk)
{
    tn_vmm *vmm = NULL;
    size_t before = card_used();
    card_must((int)tn_vmm_create(&(tn_vmm_options){.cuda = fault_cuda(card_cuda()), .chunk = chunk, .patience = 1}, &vmm),
              "tn_vmm_create");
    suite_subject subject = subject_of(name, tn_vmm_backend(vmm));
    subject.grows = true;
    subject.unit = chunk;
    subject.slack = 0;
    failed += suite_run(&subject);
    tn_vmm_figures figures;
    tn_vmm_read_figures(vmm, &figures);
    printf("# %s: granularity %zu bytes, chunk %zu bytes, %llu fallbacks\n", name, figures.granularity, figures.chunk,
           (unsigned long long)figures.fallbacks);
    if (figures.refused || figures.fallbacks != 0 || figures.held != 0) {
        printf("not ok %s.is_served_by_virtual_memory_management\n", name);
        failed++;
    } else {
        printf("ok %s.is_served_by_virtual_memory_management\n", name);
    }
    end(name, tn_vmm_destroy(vmm), before, card_used());
}

static void run_pinned(const char *name, unsigned flags)
{
    tn_pinned *pinned = NULL;
    card_must((int)tn_pinned_create(&(tn_pinned_options){.cuda = fault_cuda(card_cuda()), .flags = flags}, &pinned),
              "tn_pinned_create");
    suite_subject subject = subject_of(name, tn_pinned_backend(pinned));
    subject.max_alignment = 2 * MIB; /* half a millisecond a call, and more for large ones */
    subject.operations = 60;
    subject.fill = suite_host_fill;
    subject.wrong = suite_host_wrong;
    subject.physical = NULL;
    failed += suite_run(&subject);
    end(name, tn_pinned_destroy(pinned), 0, 0);
}

int main(int argc, char **argv)
{
    /* With arguments, those alone. */
    const char *all[] = {"driver", "async", "vmm", "pinned"};
    const char *const *names = argc > 1 ? (const char *const *)argv + 1 : all;
    int count = argc > 1 ? argc - 1 : 4;
    setvbuf(stdout, NULL, _IOLBF, 0);
    card_start();
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], "driver") == 0) {
            run_driver();
        } else if (strcmp(names[i], "async") == 0) {
            run_async("async", false, false);
            run_async("async_current_pool", true, true);
        } else if (strcmp(names[i], "vmm") == 0) {
            run_vmm("vmm", 2 * MIB);
            run_vmm("vmm_of_large_chunks", 6 * MIB);
        } else if (strcmp(names[i], "pinned") == 0) {
            run_pinned("pinned", TN_PINNED_PORTABLE | TN_PINNED_MAPPED);
            run_pinned("pinned_write_combined", TN_PINNED_WRITE_COMBINED);
        } else {
            fprintf(stderr, "usage: tiers_suite [driver|async|vmm|pinned]...\n");
            return 2;
        }
    }
    printf("# %d passed, %d failed\n", suite_passed(), failed);
    return failed == 0 ? 0 : 1;
}
