/* Outputs, error codes and the last error at runtime level, size zero, which
 * calls create a context, and calls where there is none to be had. */
#include "test_cudart_common.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *const mark = (void *)(size_t)0x5151;
#define HUGE_SIZE ((size_t)512 << 30)

START_TEST(failed_allocations_write_null)
{
    void *p = mark;
    size_t pitch = 7;
    struct cudaPitchedPtr pp = {mark, 0, 0, 0};
    cudaStream_t s = new_stream();

    IS(cudaMalloc(&p, HUGE_SIZE), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(p);
    p = mark;
    IS(cudaMallocPitch(&p, &pitch, MIB, HUGE_SIZE / MIB), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(p);
    IS(cudaMalloc3D(&pp, (struct cudaExtent){MIB, HUGE_SIZE / MIB, 1}),
       cudaErrorMemoryAllocation);
    ck_assert_ptr_null(pp.ptr);
    p = mark;
    IS(cudaMallocAsync(&p, HUGE_SIZE, s), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(p);
    p = mark;
    IS(cudaMallocHost(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(p);
    p = mark;
    IS(cudaHostAlloc(&p, (size_t)1 << 60, cudaHostAllocMapped), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(missing_output_is_an_invalid_value)
{
    IS(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
    IS(cudaMallocHost(NULL, 16), cudaErrorInvalidValue);
    IS(cudaMallocAsync(NULL, 16, NULL), cudaErrorInvalidValue);
    IS(cudaMallocManaged(NULL, 16, cudaMemAttachGlobal), cudaErrorInvalidValue);
    IS(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(size_zero_at_runtime_level)
{
    void *p = mark;
    size_t pitch = 0;

    OK(cudaMalloc(&p, 0));
    ck_assert_ptr_null(p);
    p = mark;
    OK(cudaMallocPitch(&p, &pitch, 0, 4));
    ck_assert_ptr_null(p);
    p = mark;
    OK(cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
    ck_assert_ptr_null(p);
    p = mark;
    OK(cudaMallocHost(&p, 0));
    ck_assert_ptr_null(p);
    p = mark;
    OK(cudaHostAlloc(&p, 0, 0));
    ck_assert_ptr_null(p);
    p = mark;
    OK(cudaMallocAsync(&p, 0, NULL));
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(size_zero_at_driver_level)
{
    CUdeviceptr d = 0;
    size_t pitch = 0;
    void *h = NULL;

    OK(cudaFree(NULL));
    IS(DRIVER(cuMemAlloc, 3020)(&d, 0), CUDA_ERROR_INVALID_VALUE);
    IS(DRIVER(cuMemAllocPitch, 3020)(&d, &pitch, 0, 1, 4), CUDA_ERROR_INVALID_VALUE);
    IS(DRIVER(cuMemAllocManaged, 6000)(&d, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    IS(DRIVER(cuMemAllocAsync, 11020)(&d, 0, NULL), CUDA_SUCCESS);
    IS(DRIVER(cuMemAllocHost, 3020)(&h, 0), CUDA_SUCCESS);
    IS(DRIVER(cuMemHostAlloc, 2020)(&h, 0, 0), CUDA_SUCCESS);
}
END_TEST

START_TEST(success_launches_and_frees_keep_an_old_error)
{
    void *p;

    OK(cudaMalloc(&p, 64));
    IS(cudaMalloc(&(void *){NULL}, HUGE_SIZE), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&(void *){NULL}, 64));
    OK(launch_idle(NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(p));
    IS(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    IS(cudaGetLastError(), cudaErrorMemoryAllocation);
    IS(cudaGetLastError(), cudaSuccess);
}
END_TEST

START_TEST(a_newer_error_replaces_an_older)
{
    IS(cudaMalloc(&(void *){NULL}, HUGE_SIZE), cudaErrorMemoryAllocation);
    IS(cudaFree(mark), cudaErrorInvalidValue);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
}
END_TEST

START_TEST(driver_failures_leave_the_runtime_error_alone)
{
    CUdeviceptr d = 1;

    OK(cudaFree(NULL));
    IS(DRIVER(cuMemAlloc, 3020)(&d, HUGE_SIZE), CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(d, 0);
    IS(cudaPeekAtLastError(), cudaSuccess);
    IS(cudaFree(mark), cudaErrorInvalidValue);
    IS(DRIVER(cuMemAlloc, 3020)(&d, HUGE_SIZE), CUDA_ERROR_OUT_OF_MEMORY);
    IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
}
END_TEST

static void *sees_no_error(void *unused)
{
    IS(cudaPeekAtLastError(), cudaSuccess);
    return unused;
}

START_TEST(the_last_error_belongs_to_a_thread)
{
    IS(cudaFree(mark), cudaErrorInvalidValue);
    on_thread(sees_no_error, NULL);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
}
END_TEST

START_TEST(bad_frees)
{
    int local;
    void *p, *h;

    OK(cudaMalloc(&p, 4096));
    OK(cudaMallocHost(&h, 4096));
    IS(cudaFree((char *)p + 256), cudaErrorInvalidValue);
    IS(cudaFree(&local), cudaErrorInvalidValue);
    IS(cudaFree(h), cudaErrorInvalidValue);
    IS(cudaFreeHost(p), cudaErrorInvalidValue);
    OK(cudaFree(p));
    IS(cudaFree(p), cudaErrorInvalidValue);
    OK(cudaFreeHost(h));
    IS(cudaFreeHost(h), cudaErrorInvalidValue);
}
END_TEST

#define CREATES(name, call)                                                                   \
    START_TEST(name)                                                                          \
    {                                                                                         \
        ck_assert_int_eq(context_exists(), 0);                                                \
        (void)(call);                                                                         \
        ck_assert_int_eq(context_exists(), 1);                                                \
    }                                                                                         \
    END_TEST
#define CREATES_NOT(name, call)                                                               \
    START_TEST(name)                                                                          \
    {                                                                                         \
        ck_assert_int_eq(context_exists(), 0);                                                \
        (void)(call);                                                                         \
        ck_assert_int_eq(context_exists(), 0);                                                \
    }                                                                                         \
    END_TEST

static struct cudaPointerAttributes attributes;
static struct cudaDeviceProp properties;
static void *out;
static int number;

CREATES(free_null_creates_a_context, cudaFree(NULL))
CREATES(free_host_null_creates_a_context, cudaFreeHost(NULL))
CREATES(malloc_zero_creates_a_context, cudaMalloc(&out, 0))
CREATES(bad_free_creates_a_context, cudaFree(mark))
CREATES(set_device_creates_a_context, cudaSetDevice(0))
CREATES(memory_info_creates_a_context, cudaMemGetInfo(NULL, NULL))
CREATES_NOT(pointer_attributes_create_none, cudaPointerGetAttributes(&attributes, &out))
CREATES_NOT(device_properties_create_none, cudaGetDeviceProperties(&properties, 0))
CREATES_NOT(last_error_creates_none, cudaGetLastError())
CREATES_NOT(device_count_creates_none, cudaGetDeviceCount(&number))
CREATES_NOT(get_device_creates_none, cudaGetDevice(&number))

START_TEST(memory_queries_agree_and_take_null)
{
    size_t free_bytes = 0, total = 0, driver_total = 0, device_total = 0;

    OK(cudaMemGetInfo(NULL, NULL));
    OK(cudaMemGetInfo(&free_bytes, NULL));
    OK(cudaMemGetInfo(NULL, &total));
    ck_assert_uint_gt(free_bytes, 0);
    ck_assert_uint_lt(free_bytes, total);
    OK(DRIVER(cuMemGetInfo, 3020)(NULL, &driver_total));
    OK(DRIVER(cuDeviceTotalMem, 3020)(&device_total, 0));
    OK(cudaGetDeviceProperties(&properties, 0));
    ck_assert_uint_eq(total, driver_total);
    ck_assert_uint_eq(total, device_total);
    ck_assert_uint_eq(total, properties.totalGlobalMem);
}
END_TEST

static void *free_at_driver_level(void *p)
{
    CUcontext none = (CUcontext)mark;
    CUdeviceptr d = 0;

    OK(DRIVER(cuCtxGetCurrent, 4000)(&none));
    ck_assert_ptr_null(none);
    IS(DRIVER(cuMemAlloc, 3020)(&d, 64), CUDA_ERROR_INVALID_CONTEXT);
    IS(DRIVER(cuMemFree, 3020)((CUdeviceptr)(size_t)p), CUDA_SUCCESS);
    return NULL;
}

START_TEST(a_thread_without_context_frees_but_does_not_allocate)
{
    void *p;

    OK(cudaMalloc(&p, 64));
    on_thread(free_at_driver_level, p);
    IS(cudaFree(p), cudaErrorInvalidValue);
}
END_TEST

static void *launch_after_malloc(void *unused)
{
    CUcontext c = NULL;
    CUdeviceptr d = 0;

    OK(cudaMalloc(&out, 64));
    OK(DRIVER(cuCtxGetCurrent, 4000)(&c));
    ck_assert_ptr_nonnull(c);
    OK(DRIVER(cuMemAlloc, 3020)(&d, 64));
    return unused;
}

START_TEST(the_first_malloc_of_a_thread_binds_the_primary_context)
{
    OK(cudaFree(NULL));
    on_thread(launch_after_malloc, NULL);
}
END_TEST

START_TEST(a_forked_child_gets_3_and_keeps_the_output)
{
    int status;
    pid_t child;

    OK(cudaFree(NULL));
    child = fork();
    if (child == 0) {
        void *p = mark;
        int good = cudaMalloc(&p, 64) == cudaErrorInitializationError && p == mark
                   && cudaGetLastError() == cudaErrorInitializationError;

        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static int late_pipe[2];

static void late(void)
{
    int code = cudaFree(out);

    ck_assert_int_eq(write(late_pipe[1], &code, sizeof code), (int)sizeof code);
}

START_TEST(a_late_handler_gets_4)
{
    int code = -1;
    pid_t child;

    ck_assert_int_eq(pipe(late_pipe), 0);
    child = fork();
    if (child == 0) {
        atexit(late);
        exit(cudaMalloc(&out, 64) == cudaSuccess ? 0 : 1);
    }
    ck_assert_int_eq(read(late_pipe[0], &code, sizeof code), (int)sizeof code);
    waitpid(child, NULL, 0);
    ck_assert_int_eq(code, cudaErrorCudartUnloading);
}
END_TEST

START_TEST(names_and_versions)
{
    int version = 0;

    ck_assert_str_eq(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    ck_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
    OK(cudaRuntimeGetVersion(&version));
    ck_assert_int_eq(version, CUDART_VERSION);
    OK(cudaDriverGetVersion(&version));
    ck_assert_int_ge(version, CUDART_VERSION);
}
END_TEST

RUN_TESTS("outputs", failed_allocations_write_null, missing_output_is_an_invalid_value,
          size_zero_at_runtime_level, size_zero_at_driver_level,
          success_launches_and_frees_keep_an_old_error, a_newer_error_replaces_an_older,
          driver_failures_leave_the_runtime_error_alone, the_last_error_belongs_to_a_thread,
          bad_frees, free_null_creates_a_context, free_host_null_creates_a_context,
          malloc_zero_creates_a_context, bad_free_creates_a_context, set_device_creates_a_context,
          memory_info_creates_a_context, pointer_attributes_create_none,
          device_properties_create_none, last_error_creates_none, device_count_creates_none,
          get_device_creates_none, memory_queries_agree_and_take_null,
          a_thread_without_context_frees_but_does_not_allocate,
          the_first_malloc_of_a_thread_binds_the_primary_context,
          a_forked_child_gets_3_and_keeps_the_output, a_late_handler_gets_4, names_and_versions)
