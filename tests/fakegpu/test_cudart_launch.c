/* Kernels by registered symbol, streams, events, host functions, and graphs
 * built by hand, with kernels that the fake driver executes. */
#include "test_cudart_common.h"

#include <string.h>
#include <time.h>

static const char fill_stub = 0;

static void register_fill(void)
{
    static const unsigned image[4] = {0xba55ed50u, 0x00100001u, 0, 0};
    static struct {
        int magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image, NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);

    __cudaRegisterFunction(handle, &fill_stub, NULL, "fake_fill", -1, NULL, NULL, NULL, NULL,
                           NULL);
}

static cudaError_t fill(void *dst, unsigned char value, unsigned long long bytes, cudaStream_t s)
{
    void *args[] = {&dst, &value, &bytes};

    return cudaLaunchKernel(&fill_stub, (dim3){1, 1, 1}, (dim3){32, 1, 1}, args, 0, s);
}

static unsigned char first_byte(const void *p)
{
    unsigned char b = 0;

    OK(cudaMemcpy(&b, p, 1, cudaMemcpyDeviceToHost));
    return b;
}

START_TEST(a_registered_kernel_runs)
{
    void *p;

    register_fill();
    OK(cudaMalloc(&p, 4096));
    OK(cudaMemset(p, 0, 4096));
    OK(fill(p, 0x5a, 4096, NULL));
    ck_assert_uint_eq(first_byte(p), 0x5a);
    ck_assert_uint_eq(first_byte((char *)p + 4095), 0x5a);
}
END_TEST

START_TEST(an_unregistered_symbol_is_no_kernel)
{
    static const char stranger = 0;
    void *none[] = {NULL};

    ck_assert_int_ne(cudaLaunchKernel(&stranger, (dim3){1, 1, 1}, (dim3){1, 1, 1}, none, 0, NULL),
                     cudaSuccess);
    IS(cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, none, 0, NULL),
       cudaErrorInvalidDeviceFunction);
}
END_TEST

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);

/* What a stub made by nvcc does for <<<grid, block, shared, stream>>>. */
START_TEST(the_launch_syntax_works)
{
    unsigned long long bytes = 64;
    unsigned char value = 0x11;
    cudaStream_t s, stream = NULL;
    cudaKernel_t kernel = NULL;
    dim3 grid, block;
    size_t shared = 0;
    void *p;

    register_fill();
    s = new_stream();
    OK(cudaMalloc(&p, 64));
    OK(__cudaPushCallConfiguration((dim3){2, 3, 4}, (dim3){32, 2, 1}, 16, s));
    OK(__cudaGetKernel(&kernel, &fill_stub));
    OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    ck_assert_uint_eq(grid.z, 4);
    ck_assert_uint_eq(block.y, 2);
    ck_assert_uint_eq(shared, 16);
    ck_assert_ptr_eq(stream, s);
    OK(__cudaLaunchKernel(kernel, grid, block, (void *[]){&p, &value, &bytes}, shared, stream));
    OK(cudaStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 0x11);
    IS(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
       cudaErrorMissingConfiguration);
}
END_TEST

START_TEST(the_first_launch_claims_code_memory)
{
    size_t before = 0, after = 0;
    void *p;

    register_fill();
    OK(cudaMalloc(&p, 64));
    OK(cudaMemGetInfo(&before, NULL));
    OK(fill(p, 1, 64, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemGetInfo(&after, NULL));
    ck_assert_uint_lt(after, before);
    before = after;
    OK(fill(p, 1, 64, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemGetInfo(&after, NULL));
    ck_assert_uint_eq(after, before);
}
END_TEST

START_TEST(attributes_and_occupancy_of_a_kernel)
{
    struct cudaFuncAttributes a;
    const char *name = NULL;
    int blocks = 0;

    register_fill();
    OK(cudaFuncGetAttributes(&a, &fill_stub));
    ck_assert_int_gt(a.maxThreadsPerBlock, 0);
    OK(cudaFuncGetName(&name, &fill_stub));
    ck_assert_str_eq(name, "fake_fill");
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill_stub, 128, 0));
    ck_assert_int_gt(blocks, 0);
    OK(cudaFuncSetAttribute(&fill_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
}
END_TEST

START_TEST(streams_keep_their_order_and_events_join_them)
{
    cudaStream_t a, b;
    cudaEvent_t e;
    void *p;

    environment("FAKEGPU_DELAY_US", "50000");
    register_fill();
    a = new_stream();
    b = new_stream();
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMalloc(&p, 64));
    OK(cudaMemsetAsync(p, 1, 64, a));
    OK(fill(p, 2, 64, a));
    OK(cudaEventRecord(e, a));
    OK(cudaStreamWaitEvent(b, e, 0));
    OK(fill(p, 3, 64, b));
    IS(cudaEventQuery(e), cudaErrorNotReady);
    OK(cudaStreamSynchronize(b));
    OK(cudaEventQuery(e));
    ck_assert_uint_eq(first_byte(p), 3);
    OK(cudaEventDestroy(e));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    IS(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(elapsed_time_is_measured)
{
    cudaEvent_t start, end;
    cudaStream_t s;
    float ms = 0;

    environment("FAKEGPU_DELAY_US", "20000");
    s = new_stream();
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, s));
    OK(launch_idle(s));
    OK(cudaEventRecord(end, s));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    ck_assert(ms >= 15.0f && ms < 5000.0f);
}
END_TEST

static volatile int called;
static void CUDART_CB host_function(void *data) { called = *(int *)data; }
static void CUDART_CB callback(cudaStream_t s, cudaError_t status, void *data)
{
    if (status == cudaSuccess && s != NULL)
        called += *(int *)data;
}

START_TEST(host_functions_and_callbacks_run_in_order)
{
    cudaStream_t s = new_stream();
    int seven = 7, five = 5;

    OK(cudaLaunchHostFunc(s, host_function, &seven));
    OK(cudaStreamAddCallback(s, callback, &five, 0));
    OK(cudaStreamSynchronize(s));
    ck_assert_int_eq(called, 12);
}
END_TEST

START_TEST(what_a_stream_says_of_itself)
{
    unsigned long long a = 0, b = 0;
    int priority = 99, least, greatest, device = -1;
    unsigned flags = 0;
    cudaStream_t s, t;

    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest));
    OK(cudaStreamCreate(&t));
    OK(cudaStreamGetPriority(s, &priority));
    ck_assert_int_eq(priority, greatest);
    OK(cudaStreamGetFlags(s, &flags));
    ck_assert_uint_eq(flags, cudaStreamNonBlocking);
    OK(cudaStreamGetId(s, &a));
    OK(cudaStreamGetId(t, &b));
    ck_assert_uint_ne(a, b);
    OK(cudaStreamGetDevice(s, &device));
    ck_assert_int_eq(device, 0);
}
END_TEST

/* memset -> kernel -> copy to the host, with memory from an allocation node. */
START_TEST(a_graph_built_by_hand)
{
    struct cudaMemAllocNodeParams alloc = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 0}},
        .bytesize = 4096};
    struct cudaMemsetParams set = {.elementSize = 1, .width = 4096, .height = 1, .value = 9};
    struct cudaKernelNodeParams kernel = {.gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}}, back;
    cudaGraphNode_t a, s, k, c, f, nodes[8];
    unsigned long long bytes = 8;
    enum cudaGraphNodeType type;
    unsigned char value = 0x77, out[16];
    size_t count = 8;
    cudaStream_t stream = new_stream();
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *args[3];

    register_fill();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemAllocNode(&a, graph, NULL, 0, &alloc));
    ck_assert_ptr_nonnull(alloc.dptr);
    set.dst = alloc.dptr;
    OK(cudaGraphAddMemsetNode(&s, graph, &a, 1, &set));
    args[0] = &alloc.dptr;
    args[1] = &value;
    args[2] = &bytes;
    kernel.func = (void *)(size_t)&fill_stub;
    kernel.kernelParams = args;
    OK(cudaGraphAddKernelNode(&k, graph, &s, 1, &kernel));
    OK(cudaGraphAddMemcpyNode1D(&c, graph, &k, 1, out, alloc.dptr, sizeof out,
                                cudaMemcpyDeviceToHost));
    OK(cudaGraphAddMemFreeNode(&f, graph, &c, 1, alloc.dptr));
    OK(cudaGraphGetNodes(graph, nodes, &count));
    ck_assert_uint_eq(count, 5);
    OK(cudaGraphNodeGetType(k, &type));
    IS(type, cudaGraphNodeTypeKernel);
    OK(cudaGraphKernelNodeGetParams(k, &back));
    ck_assert_ptr_eq(back.func, &fill_stub);
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphUpload(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    ck_assert_uint_eq(out[7], 0x77);
    ck_assert_uint_eq(out[8], 9);
    value = 0x66;
    OK(cudaGraphExecKernelNodeSetParams(exec, k, &kernel));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    ck_assert_uint_eq(out[7], 0x66);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaDeviceGraphMemTrim(0));
}
END_TEST

START_TEST(an_update_of_equal_shape_is_taken_and_another_refused)
{
    cudaGraphExecUpdateResultInfo info;
    struct cudaMemsetParams set = {.elementSize = 1, .width = 64, .height = 1, .value = 1};
    cudaStream_t stream = new_stream();
    cudaGraphNode_t n;
    cudaGraphExec_t exec;
    cudaGraph_t first, same, different;
    void *p;

    OK(cudaMalloc(&p, 64));
    set.dst = p;
    OK(cudaGraphCreate(&first, 0));
    OK(cudaGraphAddMemsetNode(&n, first, NULL, 0, &set));
    OK(cudaGraphInstantiate(&exec, first, 0));
    set.value = 2;
    OK(cudaGraphCreate(&same, 0));
    OK(cudaGraphAddMemsetNode(&n, same, NULL, 0, &set));
    OK(cudaGraphExecUpdate(exec, same, &info));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    ck_assert_uint_eq(first_byte(p), 2);
    OK(cudaGraphCreate(&different, 0));
    OK(cudaGraphAddEmptyNode(&n, different, NULL, 0));
    IS(cudaGraphExecUpdate(exec, different, &info), cudaErrorGraphExecUpdateFailure);
}
END_TEST

static size_t free_memory(void)
{
    size_t bytes = 0;

    OK(cudaMemGetInfo(&bytes, NULL));
    return bytes;
}

/* The driver's functions are of one context each; symbols and kernel handles are of none. */
START_TEST(a_symbol_runs_in_whichever_context_is_current)
{
    CUcontext primary, own;
    struct cudaKernelNodeParams kernel = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}}, back;
    unsigned long long bytes = 8;
    unsigned char value = 0x21;
    cudaGraphNode_t node;
    cudaFunction_t function[2];
    cudaGraph_t graph;
    size_t before;
    void *p[2], *args[] = {&p[0], &value, &bytes};

    register_fill();
    OK(cudaMalloc(&p[0], 64));
    OK(DRIVER(cuCtxGetCurrent, 4000)(&primary));
    OK(fill(p[0], 0x11, 64, NULL));
    kernel.func = (void *)(size_t)&fill_stub;
    kernel.kernelParams = args;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
    OK(cudaGetFuncBySymbol(&function[0], &fill_stub));
    OK(DRIVER(cuCtxCreate, 3020)(&own, 0, 0));
    OK(cudaMalloc(&p[1], 64));
    before = free_memory();
    OK(cudaGraphKernelNodeGetParams(node, &back)); /* and loads nothing here */
    ck_assert_ptr_eq(back.func, &fill_stub);
    ck_assert_uint_eq(free_memory(), before);
    OK(fill(p[1], 0x12, 64, NULL));
    ck_assert_uint_eq(first_byte(p[1]), 0x12);
    ck_assert_uint_lt(free_memory(), before);
    OK(cudaGetFuncBySymbol(&function[1], &fill_stub));
    ck_assert_ptr_ne(function[0], function[1]);
    OK(DRIVER(cuCtxSetCurrent, 4000)(primary));
    before = free_memory();
    OK(fill(p[0], 0x13, 64, NULL));
    ck_assert_uint_eq(first_byte(p[0]), 0x13);
    ck_assert_uint_eq(free_memory(), before);
    OK(DRIVER(cuCtxDestroy, 4000)(own));
    OK(fill(p[0], 0x14, 64, NULL));
    ck_assert_uint_eq(first_byte(p[0]), 0x14);
}
END_TEST

RUN_TESTS("launch", a_registered_kernel_runs, an_unregistered_symbol_is_no_kernel,
          the_launch_syntax_works, the_first_launch_claims_code_memory,
          attributes_and_occupancy_of_a_kernel, streams_keep_their_order_and_events_join_them,
          elapsed_time_is_measured, host_functions_and_callbacks_run_in_order,
          what_a_stream_says_of_itself, a_graph_built_by_hand,
          a_symbol_runs_in_whichever_context_is_current,
          an_update_of_equal_shape_is_taken_and_another_refused)
