/* Which calls wait for work that has nothing to do with them. The state of a
 * stream with one long kernel tells: idle after a call that waited, busy after
 * one that did not. */
#include "test_cudart_common.h"

static cudaStream_t slow;

/* Everything a test needs is made before the long kernel starts. */
static void start_kernel(void)
{
    OK(launch_idle(slow));
    IS(cudaStreamQuery(slow), cudaErrorNotReady);
    (void)cudaGetLastError();
}

static void begin(void)
{
    environment("FAKEGPU_DELAY_US", LONG_US);
    slow = new_stream();
}

static void it_waited(void) { IS(cudaStreamQuery(slow), cudaSuccess); }

static void it_did_not_wait(void)
{
    IS(cudaStreamQuery(slow), cudaErrorNotReady);
    (void)cudaGetLastError();
}

static void free_of_size_waits(size_t size)
{
    void *p;

    begin();
    OK(cudaMalloc(&p, size));
    start_kernel();
    OK(cudaFree(p));
    it_waited();
}

START_TEST(free_of_one_byte_waits)
{
    free_of_size_waits(1);
}
END_TEST

START_TEST(free_of_64_mib_waits)
{
    free_of_size_waits(64 * MIB);
}
END_TEST

START_TEST(driver_free_waits)
{
    CUdeviceptr d;

    begin();
    OK(DRIVER(cuMemAlloc, 3020)(&d, 4096));
    start_kernel();
    OK(DRIVER(cuMemFree, 3020)(d));
    it_waited();
}
END_TEST

START_TEST(free_of_pinned_memory_waits)
{
    void *p;

    begin();
    OK(cudaMallocHost(&p, 4096));
    start_kernel();
    OK(cudaFreeHost(p));
    it_waited();
}
END_TEST

START_TEST(unregistering_waits)
{
    void *p = aligned_alloc(4096, 8192);

    begin();
    OK(cudaHostRegister(p, 8192, cudaHostRegisterDefault));
    start_kernel();
    OK(cudaHostUnregister(p));
    it_waited();
    free(p);
}
END_TEST

START_TEST(free_of_an_array_waits)
{
    struct cudaChannelFormatDesc f = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t a;

    begin();
    OK(cudaMallocArray(&a, &f, 64, 64, 0));
    start_kernel();
    OK(cudaFreeArray(a));
    it_waited();
}
END_TEST

START_TEST(free_of_managed_memory_waits)
{
    void *p;

    begin();
    OK(cudaMallocManaged(&p, 4096, cudaMemAttachGlobal));
    start_kernel();
    OK(cudaFree(p));
    it_waited();
}
END_TEST

START_TEST(a_malloc_that_fails_does_not_wait)
{
    void *p;

    begin();
    start_kernel();
    IS(cudaMalloc(&p, (size_t)512 << 30), cudaErrorMemoryAllocation);
    it_did_not_wait();
}
END_TEST

START_TEST(frees_of_null_do_not_wait)
{
    begin();
    start_kernel();
    OK(cudaFree(NULL));
    it_did_not_wait();
    OK(cudaFreeHost(NULL));
    it_did_not_wait();
}
END_TEST

START_TEST(bad_frees_do_not_wait)
{
    int local;

    begin();
    start_kernel();
    IS(cudaFree(&local), cudaErrorInvalidValue);
    it_did_not_wait();
    IS(cudaFreeHost(&local), cudaErrorInvalidValue);
    it_did_not_wait();
}
END_TEST

START_TEST(allocations_and_registration_do_not_wait)
{
    void *p, *h, *own = aligned_alloc(4096, 8192);

    begin();
    start_kernel();
    OK(cudaMalloc(&p, 64 * MIB));
    it_did_not_wait();
    OK(cudaMallocHost(&h, 4096));
    it_did_not_wait();
    OK(cudaHostRegister(own, 8192, cudaHostRegisterDefault));
    it_did_not_wait();
    OK(cudaMallocAsync(&p, 4096, slow));
    it_did_not_wait();
}
END_TEST

START_TEST(questions_do_not_wait)
{
    size_t free_bytes, total;
    struct cudaPointerAttributes a;
    void *p;

    begin();
    OK(cudaMalloc(&p, 64));
    start_kernel();
    OK(cudaMemGetInfo(&free_bytes, &total));
    it_did_not_wait();
    OK(cudaPointerGetAttributes(&a, p));
    it_did_not_wait();
}
END_TEST

START_TEST(the_vmm_cycle_does_not_wait)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    begin();
    start_kernel();
    OK(DRIVER(cuMemAddressReserve, 10020)(&at, 2 * MIB, 0, 0, 0));
    OK(DRIVER(cuMemCreate, 10020)(&handle, 2 * MIB, &prop, 0));
    OK(DRIVER(cuMemMap, 10020)(at, 2 * MIB, 0, handle, 0));
    OK(DRIVER(cuMemSetAccess, 10020)(at, 2 * MIB, &access, 1));
    OK(DRIVER(cuMemUnmap, 10020)(at, 2 * MIB));
    OK(DRIVER(cuMemRelease, 10020)(handle));
    OK(DRIVER(cuMemAddressFree, 10020)(at, 2 * MIB));
    it_did_not_wait();
}
END_TEST

START_TEST(a_pool_trim_does_not_wait)
{
    cudaMemPool_t pool;

    begin();
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    start_kernel();
    OK(cudaMemPoolTrimTo(pool, 0));
    it_did_not_wait();
}
END_TEST

/* In flight and freed by the plain call: the work that uses it faults. */
START_TEST(free_of_a_stream_ordered_block_in_flight_is_error_700)
{
    void *p;

    begin();
    OK(cudaMallocAsync(&p, MIB, slow));
    OK(cudaStreamSynchronize(slow));
    OK(cudaMemsetAsync(p, 1, MIB, slow));
    OK(cudaFree(p));
    IS(cudaStreamSynchronize(slow), cudaErrorIllegalAddress);
}
END_TEST

START_TEST(free_of_an_idle_stream_ordered_block_does_not_wait)
{
    void *p;
    cudaStream_t other;

    begin();
    other = new_stream();
    OK(cudaMallocAsync(&p, MIB, other));
    OK(cudaStreamSynchronize(other));
    start_kernel();
    OK(cudaFree(p));
    it_did_not_wait();
}
END_TEST

RUN_TESTS("waiting", free_of_one_byte_waits, free_of_64_mib_waits, driver_free_waits,
          free_of_pinned_memory_waits, unregistering_waits, free_of_an_array_waits,
          free_of_managed_memory_waits, a_malloc_that_fails_does_not_wait, frees_of_null_do_not_wait,
          bad_frees_do_not_wait, allocations_and_registration_do_not_wait, questions_do_not_wait,
          the_vmm_cycle_does_not_wait, a_pool_trim_does_not_wait,
          free_of_a_stream_ordered_block_in_flight_is_error_700,
          free_of_an_idle_stream_ordered_block_does_not_wait)
