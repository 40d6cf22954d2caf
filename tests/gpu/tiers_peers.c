/*
 * Growing memory that a second card reaches: who has access to each chunk, as it is committed, as peers come and go, and what a kernel of the
 * other card reads and writes there. Prints "ok NAME" or "not ok NAME: why", or one line "skip" where there is no second card, or none that
 * can reach the first.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tiers/backend_vmm.h"
#include "tiers_card.h"

#define MIB ((size_t)1 << 20)
#define CHUNK (2 * MIB)

static int failed;
static tn_vmm *vmm;
static tn_backend *backend;
static CUcontext contexts[2];
static CUfunction kernels[2];
static CUstream streams[2];

__attribute__((format(printf, 3, 4))) static void check(bool holds, const char *name, const char *why, ...)
{
    if (holds) {
        printf("ok peers.%s\n", name);
        return;
    }
    va_list arguments;
    va_start(arguments, why);
    printf("not ok peers.%s: ", name);
    vprintf(why, arguments);
    printf("\n");
    va_end(arguments);
    failed++;
}

static void must(tn_mem_error error, const char *what)
{
    if (error != TN_MEM_OK)
        printf("not ok peers: %s: %s\n", what, tn_mem_error_text(error));
    card_must((int)error, what);
}

/* How many of the committed chunks the device reaches, reading and writing. */
static size_t reached(const tn_region *region, int device)
{
    size_t count = 0;
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    for (size_t at = 0; at < region->committed; at += CHUNK) {
        unsigned long long flags = 0;
        CARD(cuMemGetAccess(&flags, &location, (CUdeviceptr)(uintptr_t)region->base + at));
        count += flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return count;
}

static void check_reach(const char *name, const tn_region *region, bool peer)
{
    size_t chunks = region->committed / CHUNK, own = reached(region, 0), other = reached(region, 1);
    check(own == chunks && other == (peer ? chunks : 0), name, "of %zu chunks the card itself reaches %zu, the other %zu", chunks, own, other);
}

/* Adds to every committed word, by the device's own kernel; the driver's code. */
static int add(int device, const tn_region *region, uint32_t value)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)region->base;
    uint64_t words = region->committed / 4;
    void *arguments[] = {&at, &value, &words};
    CARD(cuCtxSetCurrent(contexts[device]));
    int code = (int)drv.p_cuLaunchKernel(kernels[device], 16, 1, 1, 128, 1, 1, 0, streams[device], arguments, NULL);
    if (code == 0)
        code = (int)drv.p_cuStreamSynchronize(streams[device]);
    CARD(cuCtxSetCurrent(contexts[0]));
    return code;
}

static void check_words(const char *name, const tn_region *region, uint32_t wanted)
{
    size_t wrong = card_wrong(NULL, region->base, wanted, region->committed);
    check(wrong == 0, name, "%zu words are another than %u", wrong, (unsigned)wanted);
}

static void start_second(void)
{
    for (int device = 0; device < 2; device++) {
        CARD(cuDevicePrimaryCtxRetain(&contexts[device], device));
        CARD(cuCtxSetCurrent(contexts[device]));
        CARD(cuStreamCreate(&streams[device], CU_STREAM_NON_BLOCKING));
        kernels[device] = card_load_add_kernel();
    }
    CARD(cuCtxSetCurrent(contexts[0]));
}

static void run(void)
{
    int peer = 1;
    tn_region region, fixed;
    must(tn_vmm_create(&(tn_vmm_options){.cuda = card_cuda(), .chunk = CHUNK, .patience = 1, .peers = &peer, .peer_count = 1}, &vmm), "create");
    backend = tn_vmm_backend(vmm);
    must(tn_backend_acquire_growable(backend, 64 * MIB, 2 * CHUNK, 0, "peers", &region), "acquire_growable");
    must(tn_backend_acquire(backend, 3 * CHUNK, 0, "peers", &fixed), "acquire");
    check_reach("reach_what_is_there_from_the_start", &region, true);
    check_reach("reach_what_does_not_grow", &fixed, true);
    must(tn_backend_commit(backend, &region, 5 * CHUNK), "commit");
    check_reach("reach_what_is_committed_later", &region, true);
    card_fill(NULL, region.base, 40, region.committed);
    int code = add(1, &region, 2);
    check(code == 0, "run_a_kernel_on_it", "the other card's kernel gave %d", code);
    check_words("write_what_the_card_itself_reads", &region, 42);
    must(tn_vmm_disable_peer(vmm, 1), "disable");
    check_reach("reach_nothing_once_they_are_gone", &region, false);
    check_reach("reach_nothing_of_what_does_not_grow_either", &fixed, false);
    must(tn_backend_commit(backend, &region, 7 * CHUNK), "commit without the peer");
    check_reach("reach_nothing_that_comes_then", &region, false);
    code = add(0, &region, 0);
    check(code == 0, "leave_the_card_itself_its_access", "its kernel gave %d", code);
    must(tn_vmm_enable_peer(vmm, 1), "enable");
    check_reach("reach_all_when_they_are_back", &region, true);
    card_fill(NULL, region.base, 7, region.committed);
    code = add(1, &region, 1);
    check(code == 0, "run_a_kernel_again", "the other card's kernel gave %d", code);
    check_words("write_again", &region, 8);
    must(tn_backend_decommit(backend, &region, 2 * CHUNK), "decommit");
    check_reach("keep_what_is_left", &region, true);
    must(tn_backend_release(backend, &fixed), "release");
    must(tn_backend_release(backend, &region), "release the growing one");
    check(tn_vmm_destroy(vmm) == 0, "leave_nothing", "regions were left");
}

/* The last, for a fault stays with its context: without access the other card's kernel fails. */
static void fault(void)
{
    tn_region region;
    must(tn_vmm_create(&(tn_vmm_options){.cuda = card_cuda(), .chunk = CHUNK}, &vmm), "create without peers");
    must(tn_backend_acquire(tn_vmm_backend(vmm), CHUNK, 0, "peers", &region), "acquire without peers");
    check(add(1, &region, 1) != 0, "fault_without_access", "the other card's kernel ran");
}

int main(void)
{
    int devices = 0, reaches = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    card_start();
    CARD(cuDeviceGetCount(&devices));
    if (devices < 2) {
        printf("skip peers: one card\n");
        return 0;
    }
    CARD(cuDeviceCanAccessPeer(&reaches, 1, 0));
    if (!reaches) {
        printf("skip peers: the second card cannot reach the first\n");
        return 0;
    }
    start_second();
    run();
    fault();
    return failed == 0 ? 0 : 1;
}
