/* Stream capture at runtime level: which calls end a capture, in which mode,
 * from which thread. */
#include "test_cudart_common.h"

#include <stdint.h>

static cudaStream_t stream, other;
static void *plain, *pinned_block;
static cudaEvent_t event;
static cudaMemPool_t pool;
static void *registered;

/* Made before any capture begins. */
static void prepare(void)
{
    stream = new_stream();
    other = new_stream();
    OK(cudaMalloc(&plain, 4096));
    OK(cudaMallocHost(&pinned_block, 4096));
    OK(cudaEventCreate(&event));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    registered = aligned_alloc(4096, 8192);
}

/* ---- calls that no capture but a relaxed one survives ---- */

static cudaError_t do_malloc(void) { return cudaMalloc(&(void *){NULL}, 64); }
static cudaError_t do_pitch(void) { return cudaMallocPitch(&(void *){NULL}, &(size_t){0}, 64, 4); }
static cudaError_t do_managed(void)
{
    return cudaMallocManaged(&(void *){NULL}, 64, cudaMemAttachGlobal);
}
static cudaError_t do_free(void) { return cudaFree(plain); }
static cudaError_t do_free_null(void) { return cudaFree(NULL); }
static cudaError_t do_malloc_host(void) { return cudaMallocHost(&(void *){NULL}, 64); }
static cudaError_t do_free_host(void) { return cudaFreeHost(pinned_block); }
static cudaError_t do_register(void) { return cudaHostRegister(registered, 8192, 0); }
static cudaError_t do_pool_get(void)
{
    return cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &(uint64_t){0});
}
static cudaError_t do_pool_trim(void) { return cudaMemPoolTrimTo(pool, 0); }
static cudaError_t do_event_query(void) { return cudaEventQuery(event); }
static cudaError_t do_stream_query(void) { return cudaStreamQuery(other); }

typedef cudaError_t (*call_t)(void);

static const call_t unsafe_calls[] = {
    do_malloc,   do_pitch,    do_managed,   do_free,        do_free_null,    do_malloc_host,
    do_free_host, do_register, do_pool_get, do_pool_trim,   do_event_query,  do_stream_query,
};
#define UNSAFE ((int)(sizeof unsafe_calls / sizeof unsafe_calls[0]))

static void begin(enum cudaStreamCaptureMode mode) { OK(cudaStreamBeginCapture(stream, mode)); }

static void it_died(void)
{
    cudaGraph_t graph = (cudaGraph_t)(size_t)1;

    IS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ck_assert_ptr_null(graph);
}

static void it_lived(void)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    ck_assert_ptr_nonnull(graph);
    OK(cudaGraphDestroy(graph));
}

struct thread_call {
    call_t call;
    cudaError_t result;
};

static void *from_thread(void *p)
{
    struct thread_call *t = p;

    t->result = t->call();
    return NULL;
}

static cudaError_t elsewhere(call_t call)
{
    struct thread_call t = {call, cudaSuccess};

    on_thread(from_thread, &t);
    return t.result;
}

START_TEST(unsafe_calls_kill_a_global_capture)
{
    prepare();
    begin(cudaStreamCaptureModeGlobal);
    IS(unsafe_calls[_i](), cudaErrorStreamCaptureUnsupported);
    it_died();
}
END_TEST

START_TEST(unsafe_calls_kill_a_global_capture_from_any_thread)
{
    prepare();
    begin(cudaStreamCaptureModeGlobal);
    IS(elsewhere(unsafe_calls[_i]), cudaErrorStreamCaptureUnsupported);
    it_died();
}
END_TEST

START_TEST(unsafe_calls_kill_a_thread_local_capture_from_its_thread)
{
    prepare();
    begin(cudaStreamCaptureModeThreadLocal);
    IS(unsafe_calls[_i](), cudaErrorStreamCaptureUnsupported);
    it_died();
}
END_TEST

START_TEST(unsafe_calls_of_other_threads_spare_a_thread_local_capture)
{
    prepare();
    begin(cudaStreamCaptureModeThreadLocal);
    OK(elsewhere(unsafe_calls[_i]));
    it_lived();
}
END_TEST

START_TEST(unsafe_calls_are_fine_in_a_relaxed_capture)
{
    prepare();
    begin(cudaStreamCaptureModeRelaxed);
    OK(unsafe_calls[_i]());
    it_lived();
}
END_TEST

START_TEST(unsafe_calls_are_fine_inside_a_relaxed_exchange)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    prepare();
    begin(cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    IS(mode, cudaStreamCaptureModeGlobal);
    OK(unsafe_calls[_i]());
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    IS(mode, cudaStreamCaptureModeRelaxed);
    it_lived();
}
END_TEST

/* ---- synchronising the device ---- */

static const enum cudaStreamCaptureMode modes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

static cudaError_t do_synchronize(void) { return cudaDeviceSynchronize(); }
static cudaError_t do_driver_synchronize(void)
{
    return (cudaError_t)DRIVER(cuCtxSynchronize, 2000)();
}

START_TEST(synchronising_kills_every_capture)
{
    prepare();
    begin(modes[_i]);
    IS(do_synchronize(), cudaErrorStreamCaptureUnsupported);
    it_died();
    begin(modes[_i]);
    IS(do_driver_synchronize(), cudaErrorStreamCaptureUnsupported);
    it_died();
    begin(modes[_i]);
    IS(elsewhere(do_synchronize), cudaErrorStreamCaptureUnsupported);
    it_died();
}
END_TEST

START_TEST(synchronising_kills_inside_a_relaxed_exchange_too)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    prepare();
    begin(cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    IS(do_synchronize(), cudaErrorStreamCaptureUnsupported);
    it_died();
}
END_TEST

/* ---- the legacy stream ---- */

START_TEST(legacy_calls_kill_the_capture_of_a_blocking_stream)
{
    prepare();
    OK(cudaStreamCreate(&stream));
    begin(modes[_i]);
    IS(cudaMemset(plain, 0, 64), cudaErrorStreamCaptureImplicit);
    it_died();
}
END_TEST

START_TEST(legacy_calls_spare_the_capture_of_a_non_blocking_stream)
{
    prepare();
    begin(cudaStreamCaptureModeRelaxed);
    OK(cudaMemsetAsync(plain, 0, 64, NULL));
    it_lived();
}
END_TEST

/* ---- calls that are safe in every mode and thread ---- */

static cudaError_t safe_mem_info(void) { return cudaMemGetInfo(&(size_t){0}, &(size_t){0}); }
static cudaError_t safe_attributes(void)
{
    return cudaPointerGetAttributes(&(struct cudaPointerAttributes){0}, plain);
}
static cudaError_t safe_range(void)
{
    return (cudaError_t)DRIVER(cuMemGetAddressRange, 3020)(&(CUdeviceptr){0}, &(size_t){0},
                                                           (CUdeviceptr)(size_t)plain);
}
static cudaError_t safe_graph_memory(void)
{
    return cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &(uint64_t){0});
}
static cudaError_t safe_event(void)
{
    cudaEvent_t e;
    cudaError_t r = cudaEventCreate(&e);

    return r != cudaSuccess ? r : cudaEventRecord(e, other);
}
static cudaError_t safe_stream(void)
{
    return cudaStreamCreateWithFlags(&(cudaStream_t){NULL}, cudaStreamNonBlocking);
}
static cudaError_t safe_malloc_zero(void) { return cudaMalloc(&(void *){NULL}, 0); }
static cudaError_t safe_vmm(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    CUresult r = DRIVER(cuMemAddressReserve, 10020)(&at, 2 * MIB, 0, 0, 0);

    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemCreate, 10020)(&handle, 2 * MIB, &prop, 0);
    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemMap, 10020)(at, 2 * MIB, 0, handle, 0);
    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemSetAccess, 10020)(at, 2 * MIB, &access, 1);
    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemUnmap, 10020)(at, 2 * MIB);
    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemRelease, 10020)(handle);
    if (r == CUDA_SUCCESS)
        r = DRIVER(cuMemAddressFree, 10020)(at, 2 * MIB);
    return (cudaError_t)r;
}

static const call_t safe_calls[] = {
    safe_mem_info, safe_attributes, safe_range,       safe_graph_memory,
    safe_event,    safe_stream,     safe_malloc_zero, safe_vmm,
};
#define SAFE ((int)(sizeof safe_calls / sizeof safe_calls[0]))

/* Thread without a context of its own: bind one as its first runtime call would. */
static call_t bound_call;
static cudaError_t bind_then_call(void)
{
    cudaError_t e = cudaSetDevice(0);

    return e != cudaSuccess ? e : bound_call();
}

START_TEST(safe_calls_spare_every_capture)
{
    prepare();
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        begin(modes[m]);
        OK(safe_calls[_i]());
        bound_call = safe_calls[_i];
        OK(elsewhere(bind_then_call));
        it_lived();
    }
}
END_TEST

/* ---- stream-ordered memory inside a capture ---- */

START_TEST(an_allocation_inside_a_capture_belongs_to_the_graph)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    uint64_t reserved = 0;
    void *p = NULL;

    prepare();
    begin(cudaStreamCaptureModeGlobal);
    OK(cudaMallocAsync(&p, 4096, stream));
    OK(cudaMemsetAsync(p, 7, 4096, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(type_of(p), cudaMemoryTypeUnregistered);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    ck_assert_int_eq(type_of(p), cudaMemoryTypeDevice);
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved));
    ck_assert_uint_eq(reserved, 32 * MIB);
    OK(cudaFree(p));
}
END_TEST

START_TEST(freeing_an_older_block_inside_a_capture_is_refused_and_survived)
{
    void *p;

    prepare();
    OK(cudaMallocAsync(&p, 4096, stream));
    OK(cudaStreamSynchronize(stream));
    begin(cudaStreamCaptureModeGlobal);
    IS(cudaFreeAsync(p, stream), cudaErrorInvalidValue);
    it_lived();
    OK(cudaFree(p));
}
END_TEST

START_TEST(capture_state_can_be_asked)
{
    enum cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    cudaGraph_t graph = NULL;

    prepare();
    OK(cudaStreamIsCapturing(stream, &status));
    IS(status, cudaStreamCaptureStatusNone);
    begin(cudaStreamCaptureModeGlobal);
    OK(cudaStreamIsCapturing(stream, &status));
    IS(status, cudaStreamCaptureStatusActive);
    OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, NULL, NULL, NULL));
    ck_assert_uint_ne(id, 0);
    ck_assert_ptr_nonnull(graph);
    IS(cudaMalloc(&(void *){NULL}, 64), cudaErrorStreamCaptureUnsupported);
    OK(cudaStreamIsCapturing(stream, &status));
    IS(status, cudaStreamCaptureStatusInvalidated);
    it_died();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("capture");
    TCase *all = tcase_create("capture");
    SRunner *runner;
    int failed;

    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, unsafe_calls_kill_a_global_capture, 0, UNSAFE);
    tcase_add_loop_test(all, unsafe_calls_kill_a_global_capture_from_any_thread, 0, UNSAFE);
    tcase_add_loop_test(all, unsafe_calls_kill_a_thread_local_capture_from_its_thread, 0, UNSAFE);
    tcase_add_loop_test(all, unsafe_calls_of_other_threads_spare_a_thread_local_capture, 0,
                        UNSAFE);
    tcase_add_loop_test(all, unsafe_calls_are_fine_in_a_relaxed_capture, 0, UNSAFE);
    tcase_add_loop_test(all, unsafe_calls_are_fine_inside_a_relaxed_exchange, 0, UNSAFE);
    tcase_add_loop_test(all, synchronising_kills_every_capture, 0, 3);
    tcase_add_test(all, synchronising_kills_inside_a_relaxed_exchange_too);
    tcase_add_loop_test(all, legacy_calls_kill_the_capture_of_a_blocking_stream, 0, 3);
    tcase_add_test(all, legacy_calls_spare_the_capture_of_a_non_blocking_stream);
    tcase_add_loop_test(all, safe_calls_spare_every_capture, 0, SAFE);
    tcase_add_test(all, an_allocation_inside_a_capture_belongs_to_the_graph);
    tcase_add_test(all, freeing_an_older_block_inside_a_capture_is_refused_and_survived);
    tcase_add_test(all, capture_state_can_be_asked);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
