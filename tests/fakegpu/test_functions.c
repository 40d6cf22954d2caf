/* What a card was seen to do with functions and kernels: a function is of one context, a kernel of none and loads its library in each. */
#include "test_driver.h"

#include <pthread.h>

#define MODULE (2 * MIB)

static CUlibrary library;
static CUkernel fill_kernel;

static CUcontext another(void)
{
    CUcontext c;
    OK(cuCtxCreate(&c, NULL, 0, 0));
    return c;
}

static void load(void)
{
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&fill_kernel, library, "fake_fill"));
}

static CUfunction function_here(void)
{
    CUfunction f;
    OK(cuKernelGetFunction(&f, fill_kernel));
    return f;
}

static CUresult fill_by(CUfunction f, CUstream s, CUdeviceptr p, unsigned char v)
{
    size_t n = 16;
    void *args[] = {&p, &v, &n};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

START_TEST(a_library_takes_memory_at_its_first_look_up_in_a_context)
{
    start();
    size_t before = free_bytes();
    load();
    ck_assert_uint_eq(free_bytes(), before);
    CUfunction f = function_here();
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    ck_assert_ptr_eq(function_here(), f);
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 16)); /* shares the page of what the next lines read */
    before = free_bytes();
    OK(fill_by(f, NULL, p, 5));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p), 5);
    OK(fill_by((CUfunction)fill_kernel, NULL, p, 6));
    ck_assert_uint_eq(first_byte(p), 6);
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuLibraryUnload(library));
    ck_assert_uint_eq(free_bytes() - before, MODULE);
}
END_TEST

START_TEST(a_second_kernel_of_a_loaded_library_takes_nothing)
{
    CUkernel k;
    CUfunction f;
    start();
    load();
    function_here();
    size_t before = free_bytes();
    OK(cuLibraryGetKernel(&k, library, "fake_spin"));
    OK(cuKernelGetFunction(&f, k));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

START_TEST(each_context_has_a_module_and_a_function_of_its_own)
{
    CUcontext first = start();
    load();
    CUfunction f = function_here(), g;
    CUcontext second = another();
    size_t before = free_bytes();
    g = function_here();
    ck_assert_ptr_ne(f, g);
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    OK(cuCtxSetCurrent(first));
    ck_assert_ptr_eq(function_here(), f);
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    OK(cuCtxDestroy(second));
    second = another();
    ck_assert_uint_eq(free_bytes(), before); /* as far as a context of the same size goes */
    CUfunction h = function_here();
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    ck_assert_ptr_ne(h, f);
    OK(cuLibraryUnload(library));
    ck_assert_uint_eq(free_bytes() - before, MODULE); /* the first context's, too */
}
END_TEST

START_TEST(a_launch_of_a_kernel_loads_it_in_its_streams_context)
{
    CUcontext first = start();
    CUdeviceptr p;
    load();
    OK(cuMemAlloc(&p, 16));
    another();
    CUstream s = new_stream();
    OK(cuCtxSetCurrent(first));
    size_t before = free_bytes();
    OK(fill_by((CUfunction)fill_kernel, s, p, 9));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 9);
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    function_here(); /* in the first context it is not loaded yet */
    ck_assert_uint_eq(before - free_bytes(), 2 * MODULE);
}
END_TEST

START_TEST(look_ups_that_are_refused)
{
    CUfunction f = NULL;
    CUcontext c = start();
    load();
    GIVES(CUDA_ERROR_INVALID_VALUE, cuKernelGetFunction(NULL, fill_kernel));
    OK(cuCtxSetCurrent(NULL));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuKernelGetFunction(&f, fill_kernel));
    ck_assert_ptr_null(f);
    OK(cuCtxSetCurrent(c));
    f = function_here();
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&f, (CUkernel)f));
}
END_TEST

START_TEST(a_function_tells_its_module_and_a_kernel_its_library)
{
    CUmodule m, same;
    CUlibrary l;
    start();
    load();
    CUfunction f = function_here(), again, plain = kernel("fake_fill");
    OK(cuFuncGetModule(&m, f));
    OK(cuLibraryGetModule(&same, library));
    ck_assert_ptr_eq(m, same);
    OK(cuModuleGetFunction(&again, m, "fake_fill"));
    ck_assert_ptr_eq(again, f);
    OK(cuFuncGetModule(&m, plain));
    ck_assert_ptr_ne(m, same);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuFuncGetModule(&m, (CUfunction)fill_kernel));
    OK(cuKernelGetLibrary(&l, fill_kernel));
    ck_assert_ptr_eq(l, library);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetLibrary(&l, (CUkernel)f));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelGetLibrary(&l, (CUkernel)plain));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(same)); /* the library's to unload */
}
END_TEST

START_TEST(a_function_is_refused_in_the_default_stream_of_another_context)
{
    CUdeviceptr p;
    CUcontext first = start();
    load();
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD8(p, 1, 16));
    CUfunction of_kernel = function_here(), of_module = kernel("fake_fill");
    CUstream s = new_stream();
    CUcontext second = another();
    size_t before = free_bytes();
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(of_kernel, NULL, p, 2));
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(of_module, NULL, p, 2));
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(of_kernel, CU_STREAM_PER_THREAD, p, 2));
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(of_module, CU_STREAM_PER_THREAD, p, 2));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p), 1);
    ck_assert_uint_eq(free_bytes(), before);
    OK(fill_by(of_kernel, s, p, 3)); /* the stream is of the function's context */
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 3);
    OK(fill_by((CUfunction)fill_kernel, NULL, p, 4));
    ck_assert_uint_eq(first_byte(p), 4);
    OK(cuCtxSetCurrent(first));
    OK(fill_by(of_kernel, NULL, p, 5));
    ck_assert_uint_eq(first_byte(p), 5);
    OK(fill_by((CUfunction)fill_kernel, CU_STREAM_PER_THREAD, p, 6));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(first_byte(p), 6);
    OK(cuCtxDestroy(second));
}
END_TEST

START_TEST(a_function_ends_with_its_context_and_a_kernel_does_not)
{
    CUdeviceptr p;
    CUcontext first = start();
    load();
    OK(cuMemAlloc(&p, 16));
    CUcontext second = another();
    CUfunction f = function_here();
    OK(cuCtxDestroy(second));
    OK(cuCtxSetCurrent(first));
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(f, NULL, p, 7));
    another();
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(f, NULL, p, 7));
    OK(fill_by((CUfunction)fill_kernel, NULL, p, 8));
    ck_assert_uint_eq(first_byte(p), 8);
    OK(fill_by(function_here(), NULL, p, 9));
    ck_assert_uint_eq(first_byte(p), 9);
}
END_TEST

static int attribute(CUfunction f)
{
    int v = -2;
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    return v;
}

START_TEST(what_is_set_for_a_kernel_is_set_for_its_functions_on_that_device)
{
    const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUcontext other;
    int v;
    setenv("FAKEGPU_DEVICES", "2", 1);
    start();
    load();
    CUfunction f = function_here();
    OK(cuKernelSetAttribute(shared, 70000, fill_kernel, 0));
    ck_assert_int_eq(attribute(f), 70000);
    another();
    CUfunction g = function_here();
    ck_assert_int_eq(attribute(g), 70000); /* a later one begins with it */
    OK(cuFuncSetAttribute(g, shared, 80000));
    ck_assert_int_eq(attribute(g), 80000);
    ck_assert_int_eq(attribute(f), 70000); /* a function's own */
    OK(cuKernelGetAttribute(&v, shared, fill_kernel, 0));
    ck_assert_int_eq(v, 70000);
    OK(cuKernelGetAttribute(&v, shared, fill_kernel, 1));
    ck_assert_int_eq(v, 49152);
    OK(cuCtxCreate(&other, NULL, 0, 1));
    ck_assert_int_eq(attribute(function_here()), 49152);
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuKernelSetAttribute(shared, 1, fill_kernel, 2));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuKernelSetAttribute(shared, 1, (CUkernel)f, 0));
}
END_TEST

START_TEST(a_larger_frame_of_a_kernel_is_charged_in_the_context_that_launches_it)
{
    CUdeviceptr p;
    CUcontext first = start();
    load();
    OK(cuMemAlloc(&p, 16));
    function_here();
    another();
    function_here();
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 8192, fill_kernel, 0));
    size_t before = free_bytes();
    OK(fill_by((CUfunction)fill_kernel, NULL, p, 1));
    size_t taken = before - free_bytes();
    ck_assert_uint_gt(taken, GIB);
    OK(fill_by(function_here(), NULL, p, 1));
    ck_assert_uint_eq(before - free_bytes(), taken);
    OK(cuCtxSetCurrent(first));
    OK(fill_by(function_here(), NULL, p, 1));
    ck_assert_uint_eq(before - free_bytes(), 2 * taken);
}
END_TEST

/* A graph of one kernel node, launched in the current context's default stream. */
static void run_graph(const CUDA_KERNEL_NODE_PARAMS *k)
{
    CUgraph g;
    CUgraphNode node;
    CUgraphExec x;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode(&node, g, NULL, 0, k));
    OK(cuGraphInstantiate(&x, g, 0));
    OK(cuGraphLaunch(x, NULL));
    OK(cuCtxSynchronize());
}

START_TEST(a_kernel_node_takes_a_function_or_a_kernel_in_its_context)
{
    CUdeviceptr p;
    unsigned char v = 1;
    size_t n = 16;
    void *args[] = {&p, &v, &n};
    CUcontext first = start();
    load();
    OK(cuMemAlloc(&p, 16));
    CUDA_KERNEL_NODE_PARAMS k = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
                                 .kernelParams = args};
    size_t before = free_bytes();
    k.kern = fill_kernel;
    run_graph(&k);
    ck_assert_uint_eq(first_byte(p), 1);
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    CUcontext second = another();
    before = free_bytes();
    k.ctx = first;
    v = 2;
    run_graph(&k);
    ck_assert_uint_eq(first_byte(p), 2);
    ck_assert_uint_eq(free_bytes(), before);
    k.ctx = second;
    v = 3;
    run_graph(&k);
    ck_assert_uint_eq(first_byte(p), 3);
    ck_assert_uint_eq(before - free_bytes(), MODULE);
    k.func = function_here();
    v = 4;
    run_graph(&k);
    ck_assert_uint_eq(first_byte(p), 4);
    CUgraph g;
    CUgraphNode node;
    OK(cuGraphCreate(&g, 0));
    k.func = NULL;
    k.ctx = NULL;
    OK(cuCtxSetCurrent(NULL));
    while (cuCtxPopCurrent(&second) == CUDA_SUCCESS)
        ;
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGraphAddKernelNode(&node, g, NULL, 0, &k));
}
END_TEST

START_TEST(a_captured_kernel_is_of_the_streams_context)
{
    CUdeviceptr p;
    CUgraph g;
    CUgraphExec x;
    start();
    load();
    OK(cuMemAlloc(&p, 16));
    CUfunction f = function_here();
    another();
    CUstream s = new_stream();
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill_by(f, s, p, 6));
    OK(fill_by((CUfunction)fill_kernel, s, p, 6));
    OK(cuStreamEndCapture(s, &g));
    CUgraphNode node;
    size_t count = 1;
    CUDA_KERNEL_NODE_PARAMS k;
    OK(cuGraphGetNodes(g, &node, &count));
    ck_assert_uint_eq(count, 1);
    OK(cuGraphKernelNodeGetParams(node, &k));
    ck_assert_ptr_eq(k.func, function_here());
    OK(cuGraphInstantiate(&x, g, 0));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 6);
}
END_TEST

static CUcontext both[2];
static CUdeviceptr targets[2];

static void *alternate(void *arg)
{
    size_t me = (size_t)arg;
    for (int i = 0; i < 200; i++) {
        size_t c = (me + (size_t)i) % 2;
        OK(cuCtxSetCurrent(both[c]));
        OK(fill_by(i % 3 != 0 ? function_here() : (CUfunction)fill_kernel, i % 2 ? CU_STREAM_PER_THREAD : NULL, targets[me], (unsigned char)i));
        OK(cuCtxSynchronize());
    }
    return NULL;
}

START_TEST(two_threads_look_up_and_launch_in_two_contexts)
{
    pthread_t t[2];
    both[0] = start();
    load();
    both[1] = another();
    for (size_t i = 0; i < 2; i++)
        OK(cuMemAlloc(&targets[i], 16));
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, alternate, (void *)i), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(first_byte(targets[i]), 199);
    size_t loaded = free_bytes();
    OK(cuLibraryUnload(library));
    ck_assert_uint_eq(free_bytes() - loaded, 2 * MODULE); /* one in each context, whoever came first */
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, a_library_takes_memory_at_its_first_look_up_in_a_context);
    tcase_add_test(t, a_second_kernel_of_a_loaded_library_takes_nothing);
    tcase_add_test(t, each_context_has_a_module_and_a_function_of_its_own);
    tcase_add_test(t, a_launch_of_a_kernel_loads_it_in_its_streams_context);
    tcase_add_test(t, look_ups_that_are_refused);
    tcase_add_test(t, a_function_tells_its_module_and_a_kernel_its_library);
    tcase_add_test(t, a_function_is_refused_in_the_default_stream_of_another_context);
    tcase_add_test(t, a_function_ends_with_its_context_and_a_kernel_does_not);
    tcase_add_test(t, what_is_set_for_a_kernel_is_set_for_its_functions_on_that_device);
    tcase_add_test(t, a_larger_frame_of_a_kernel_is_charged_in_the_context_that_launches_it);
    tcase_add_test(t, a_kernel_node_takes_a_function_or_a_kernel_in_its_context);
    tcase_add_test(t, a_captured_kernel_is_of_the_streams_context);
    tcase_add_test(t, two_threads_look_up_and_launch_in_two_contexts);
}

int main(void) { return run_tests("functions", fill); }
