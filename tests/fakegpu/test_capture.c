/* What a stream capture forbids, what it survives, and what becomes of captured memory. */
#include "test_driver.h"

#include <pthread.h>

enum { GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL, LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED };

static CUstream s;
static CUdeviceptr plain, spare;
static void *host;
static char mine[4096];
static CUevent event;
static CUmemoryPool pool;
static CUgraph graph;

static void begin(int mode)
{
    OK(cuStreamBeginCapture(s, (CUstreamCaptureMode)mode));
}

/* Ends the capture; true if it was still alive. */
static bool alive(void)
{
    CUresult r = cuStreamEndCapture(s, &graph);
    ck_assert(r == CUDA_SUCCESS || r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (r == CUDA_SUCCESS)
        OK(cuGraphDestroy(graph));
    return r == CUDA_SUCCESS;
}

static void set_up(unsigned flags)
{
    start();
    OK(cuStreamCreate(&s, flags));
    OK(cuMemAlloc(&plain, 4096));
    OK(cuMemAllocHost(&host, 4096));
    OK(cuEventCreate(&event, 0));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
}

/* ---- the calls in question ---- */

static CUresult call_alloc(void) { return cuMemAlloc(&spare, 4096); }
static CUresult call_free(void) { return cuMemFree(plain); }
static CUresult call_free_null(void) { return cuMemFree(0); }
static CUresult call_alloc_host(void) { void *p; return cuMemAllocHost(&p, 4096); }
static CUresult call_free_host(void) { return cuMemFreeHost(host); }
static CUresult call_register(void) { return cuMemHostRegister(mine, sizeof mine, 0); }
static CUresult call_pool_get(void) { cuuint64_t v; return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v); }
static CUresult call_pool_trim(void) { return cuMemPoolTrimTo(pool, 0); }
static CUresult call_event_query(void) { return cuEventQuery(event); }
static CUresult call_stream_query(void) { static CUstream o; return o == NULL && cuStreamCreate(&o, 1) != 0 ? CUDA_ERROR_UNKNOWN : cuStreamQuery(o); }
static CUresult call_sync(void) { return cuCtxSynchronize(); }

static CUresult (*const unsafe[])(void) = {call_alloc, call_free, call_free_null, call_alloc_host, call_free_host,
                                           call_register, call_pool_get, call_pool_trim, call_event_query, call_stream_query};
#define NUNSAFE ((int)(sizeof unsafe / sizeof unsafe[0]))

struct job { CUresult (*call)(void); CUresult result; CUcontext ctx; int exchange; };

static void *other_thread(void *arg)
{
    struct job *j = arg;
    CUstreamCaptureMode mode = (CUstreamCaptureMode)j->exchange;
    cuCtxSetCurrent(j->ctx);
    cuThreadExchangeStreamCaptureMode(&mode);
    j->result = j->call();
    return NULL;
}

static CUresult elsewhere(CUresult (*call)(void), int exchange)
{
    struct job j = {call, CUDA_ERROR_UNKNOWN, NULL, exchange};
    pthread_t t;
    OK(cuCtxGetCurrent(&j.ctx));
    ck_assert_int_eq(pthread_create(&t, NULL, other_thread, &j), 0);
    pthread_join(t, NULL);
    return j.result;
}

START_TEST(global_mode_is_killed_from_the_capturing_thread)
{
    set_up(CU_STREAM_NON_BLOCKING);
    begin(GLOBAL);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, unsafe[_i]());
    ck_assert(!alive());
}
END_TEST

START_TEST(global_mode_is_killed_from_any_thread)
{
    set_up(CU_STREAM_NON_BLOCKING);
    begin(GLOBAL);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, elsewhere(unsafe[_i], GLOBAL));
    ck_assert(!alive());
}
END_TEST

START_TEST(thread_local_mode_is_killed_only_from_the_capturing_thread)
{
    set_up(CU_STREAM_NON_BLOCKING);
    begin(LOCAL);
    OK(elsewhere(unsafe[_i], GLOBAL));
    ck_assert(alive());
    begin(LOCAL);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, unsafe[_i]());
    ck_assert(!alive());
}
END_TEST

START_TEST(relaxed_mode_allows_it)
{
    set_up(CU_STREAM_NON_BLOCKING);
    begin(RELAXED);
    OK(unsafe[_i]());
    ck_assert(alive());
}
END_TEST

START_TEST(a_relaxed_exchange_allows_it)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    set_up(CU_STREAM_NON_BLOCKING);
    begin(GLOBAL);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(unsafe[_i]());
    ck_assert(alive());
    begin(GLOBAL);
    OK(cuMemAlloc(&plain, 4096));
    ck_assert(alive());
}
END_TEST

START_TEST(a_context_synchronisation_kills_in_every_mode)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    set_up(CU_STREAM_NON_BLOCKING);
    begin(_i);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call_sync());
    ck_assert(!alive());
    begin(_i);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, elsewhere(call_sync, RELAXED));
    ck_assert(!alive());
    begin(_i);
    OK(cuThreadExchangeStreamCaptureMode(&relaxed));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call_sync());
    ck_assert(!alive());
}
END_TEST

START_TEST(legacy_stream_calls_kill_a_blocking_capture_only)
{
    set_up(CU_STREAM_DEFAULT);
    begin(RELAXED);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(plain, 0, 16, NULL));
    ck_assert(!alive());
    begin(RELAXED);
    GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamSynchronize(CU_STREAM_LEGACY));
    ck_assert(!alive());
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    begin(RELAXED);
    OK(cuMemsetD8Async(plain, 0, 16, NULL));
    ck_assert(alive());
}
END_TEST

static void safe_calls(void)
{
    size_t f, t, n;
    unsigned type;
    CUdeviceptr base, p;
    cuuint64_t v = 0;
    CUevent e;
    CUstream o;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = device_prop(0);
    CUmemAccessDesc d = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemGetInfo(&f, &t));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain));
    OK(cuMemGetAddressRange(&base, &n, plain));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &v));
    OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &(cuuint64_t){0}));
    OK(cuEventCreate(&e, 0));
    OK(cuStreamCreate(&o, CU_STREAM_NON_BLOCKING));
    OK(cuEventRecord(e, o));
    OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(p, 2 * MIB, &d, 1));
    OK(cuMemUnmap(p, 2 * MIB));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(p, 2 * MIB));
}

static CUresult safe_elsewhere(void)
{
    safe_calls();
    return CUDA_SUCCESS;
}

START_TEST(these_are_safe_in_every_mode_and_thread)
{
    set_up(CU_STREAM_NON_BLOCKING);
    begin(_i);
    safe_calls();
    OK(elsewhere(safe_elsewhere, GLOBAL));
    ck_assert(alive());
}
END_TEST

START_TEST(a_block_from_before_cannot_be_freed_in_the_capture)
{
    CUdeviceptr before;
    set_up(CU_STREAM_NON_BLOCKING);
    OK(cuMemAllocAsync(&before, 4096, s));
    OK(cuStreamSynchronize(s));
    begin(GLOBAL);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(before, s));
    ck_assert(alive());
    OK(cuMemFreeAsync(before, s));
}
END_TEST

START_TEST(a_captured_allocation_is_unknown_before_launch_and_reserves_32_mib)
{
    CUdeviceptr p;
    CUgraphExec x;
    cuuint64_t v;
    set_up(CU_STREAM_NON_BLOCKING);
    OK(cuStreamSynchronize(s));
    size_t before = free_bytes();
    begin(GLOBAL);
    OK(cuMemAllocAsync(&p, 512, s));
    OK(cuMemsetD8Async(p, 7, 512, s));
    OK(cuStreamEndCapture(s, &graph));
    ck_assert_uint_ne(p, 0);
    ck_assert_uint_eq(type_of(p), 0);
    OK(cuGraphInstantiate(&x, graph, 0));
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuGraphUpload(x, s));
    ck_assert_uint_eq(before - free_bytes(), 32 * MIB);
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(type_of(p), CU_MEMORYTYPE_DEVICE);
    ck_assert_uint_eq(first_byte(p), 7);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(x, s)); /* what it allocated is not freed yet */
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(type_of(p), 0);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(graph));
    ck_assert_uint_eq(before - free_bytes(), 32 * MIB); /* kept after the exec */
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &v));
    ck_assert_uint_eq(v, 32 * MIB);
    OK(cuDeviceGraphMemTrim(0));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

START_TEST(a_fork_must_be_joined)
{
    CUstream o;
    set_up(CU_STREAM_NON_BLOCKING);
    o = new_stream();
    begin(GLOBAL);
    OK(cuEventRecord(event, s));
    OK(cuStreamWaitEvent(o, event, 0));
    OK(cuMemsetD8Async(plain, 1, 16, o));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &graph));
    begin(GLOBAL);
    OK(cuEventRecord(event, s));
    OK(cuStreamWaitEvent(o, event, 0));
    OK(cuMemsetD8Async(plain, 1, 16, o));
    OK(cuEventRecord(event, o));
    OK(cuStreamWaitEvent(s, event, 0));
    size_t n = 0;
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphGetNodes(graph, NULL, &n));
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(a_joined_stream_may_go_and_the_dependencies_be_dropped)
{
    CUstream o;
    set_up(CU_STREAM_NON_BLOCKING);
    for (int drop = 0; drop < 2; drop++) {
        o = new_stream();
        begin(GLOBAL);
        OK(cuEventRecord(event, s));
        OK(cuStreamWaitEvent(o, event, 0));
        OK(cuMemsetD8Async(plain, 1, 16, o));
        OK(cuEventRecord(event, o));
        OK(cuStreamWaitEvent(s, event, 0));
        if (drop)
            OK(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
        else
            OK(cuStreamDestroy(o));
        OK(cuStreamEndCapture(s, &graph));
        ck_assert_ptr_nonnull(graph);
    }
    GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &graph)); /* of nothing */
    ck_assert_ptr_null(graph);
}
END_TEST

START_TEST(a_queued_launch_keeps_the_parameters_it_was_launched_with)
{
    CUdeviceptr p;
    CUgraphNode node;
    CUgraphExec x;
    size_t one = 1;
    set_up(CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc(&p, 2));
    begin(GLOBAL);
    OK(cuMemsetD8Async(p, 1, 1, s));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphGetNodes(graph, &node, &one));
    OK(cuGraphInstantiate(&x, graph, 0));
    hold(s);
    OK(cuGraphLaunch(x, s));
    CUDA_MEMSET_NODE_PARAMS m;
    CUcontext c;
    OK(cuCtxGetCurrent(&c));
    OK(cuGraphMemsetNodeGetParams(node, &m));
    ck_assert_uint_eq(m.dst, p);
    m.dst = p + 1;
    m.value = 2;
    OK(cuGraphExecMemsetNodeSetParams(x, node, &m, c));
    OK(cuGraphLaunch(x, s));
    release();
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 1);
    ck_assert_uint_eq(first_byte(p + 1), 2);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_loop_test(t, global_mode_is_killed_from_the_capturing_thread, 0, NUNSAFE);
    tcase_add_loop_test(t, global_mode_is_killed_from_any_thread, 0, NUNSAFE);
    tcase_add_loop_test(t, thread_local_mode_is_killed_only_from_the_capturing_thread, 0, NUNSAFE);
    tcase_add_loop_test(t, relaxed_mode_allows_it, 0, NUNSAFE);
    tcase_add_loop_test(t, a_relaxed_exchange_allows_it, 0, NUNSAFE);
    tcase_add_loop_test(t, a_context_synchronisation_kills_in_every_mode, 0, 3);
    tcase_add_test(t, legacy_stream_calls_kill_a_blocking_capture_only);
    tcase_add_loop_test(t, these_are_safe_in_every_mode_and_thread, 0, 3);
    tcase_add_test(t, a_block_from_before_cannot_be_freed_in_the_capture);
    tcase_add_test(t, a_captured_allocation_is_unknown_before_launch_and_reserves_32_mib);
    tcase_add_test(t, a_fork_must_be_joined);
    tcase_add_test(t, a_joined_stream_may_go_and_the_dependencies_be_dropped);
    tcase_add_test(t, a_queued_launch_keeps_the_parameters_it_was_launched_with);
}

int main(void) { return run_tests("capture", fill); }
