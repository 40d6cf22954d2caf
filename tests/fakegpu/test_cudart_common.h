/* What the tests of the fake runtime share. Check runs each test in a process of
 * its own, forked before CUDA starts, so a test may set the fake GPU's
 * environment first and need not clean up. */
#ifndef FAKEGPU_TEST_CUDART_COMMON_H
#define FAKEGPU_TEST_CUDART_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <check.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define OK(call) ck_assert_int_eq((int)(call), (int)cudaSuccess)
#define IS(call, code) ck_assert_int_eq((int)(call), (int)(code))

/* How long one operation takes on a stream where a test claims waiting: long
 * against everything else that happens in between, on a loaded machine too. */
#define LONG_US "300000"

static inline void environment(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

/* A driver function by the runtime's own entry-point query: creates no context. */
static inline void *driver_function(const char *name, unsigned version)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult status;

    OK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &status));
    ck_assert_msg(function != NULL, "%s is not in the driver", name);
    return function;
}

/* ISO C converts no object pointer to a function pointer; POSIX needs it. */
#define DRIVER(name, version)                                                                 \
    (*(PFN_##name##_v##version *)(void *)&(void *){driver_function(#name, version)})

static inline int context_exists(void)
{
    unsigned flags = 0;
    int active = -1;

    OK(DRIVER(cuDevicePrimaryCtxGetState, 7000)(0, &flags, &active));
    return active;
}

/* A kernel that touches nothing, registered as nvcc's host code would. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFunction(void **handle, const char *host, char *device_fun, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp);

static const char idle_kernel = 0;

static inline void register_idle_kernel(void)
{
    static const unsigned image[4] = {0xba55ed50u, 0x00100001u, 0, 0};
    static struct {
        int magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243b1, 1, image, NULL};
    static void **handle;

    if (handle)
        return;
    handle = __cudaRegisterFatBinary(&wrapper);
    ck_assert_ptr_nonnull(handle);
    __cudaRegisterFunction(handle, &idle_kernel, NULL, "idle_kernel", -1, NULL, NULL, NULL, NULL,
                           NULL);
}

static inline cudaError_t launch_idle(cudaStream_t stream)
{
    void *none[] = {NULL};

    register_idle_kernel();
    return cudaLaunchKernel(&idle_kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, none, 0, stream);
}

/* A non-blocking stream, so that the legacy stream's own order stays out of it. */
static inline cudaStream_t new_stream(void)
{
    cudaStream_t s;

    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static inline enum cudaMemoryType type_of(const void *p)
{
    struct cudaPointerAttributes a;

    OK(cudaPointerGetAttributes(&a, p));
    return a.type;
}

/* Runs a function on a thread of its own and waits for it. */
static inline void on_thread(void *(*function)(void *), void *argument)
{
    pthread_t t;

    ck_assert_int_eq(pthread_create(&t, NULL, function, argument), 0);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
}

#define RUN_TESTS(title, ...)                                                                 \
    int main(void)                                                                            \
    {                                                                                         \
        const TTest *const tests[] = {__VA_ARGS__};                                    \
        Suite *suite = suite_create(title);                                                    \
        SRunner *runner;                                                                      \
        int failed;                                                                           \
                                                                                              \
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {                         \
            TCase *one = tcase_create(tests[i]->name);                                        \
                                                                                              \
            tcase_set_timeout(one, 60);                                                       \
            tcase_add_test(one, tests[i]);                                                    \
            suite_add_tcase(suite, one);                                                      \
        }                                                                                     \
        runner = srunner_create(suite);                                                       \
        srunner_run_all(runner, CK_NORMAL);                                                   \
        failed = srunner_ntests_failed(runner);                                               \
        srunner_free(runner);                                                                 \
        return failed ? 1 : 0;                                                                \
    }

#endif
