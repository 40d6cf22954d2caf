/*
 * Shared by the driver-level tests. Each Check test runs in a process of its own and starts CUDA itself, so that
 * environment variables set in a test take effect. Helpers fail the running test; they belong to no thread.
 */
#ifndef FAKEGPU_TEST_DRIVER_H
#define FAKEGPU_TEST_DRIVER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <check.h>
#include <semaphore.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)
#define GIVES(code, call) ck_assert_int_eq((call), (code))

/** Starts CUDA with the primary context of device 0 current. */
static inline CUcontext start(void)
{
    CUcontext c;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    return c;
}

static inline CUstream new_stream(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static inline CUfunction kernel(const char *name)
{
    static CUmodule m;
    CUfunction f;
    if (m == NULL)
        OK(cuModuleLoadData(&m, "image"));
    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

static inline CUresult launch(CUstream s, const char *name, void **args)
{
    return cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

/** A kernel that touches nothing and runs for `ms`. */
static inline void spin(CUstream s, unsigned ms)
{
    void *args[] = {&ms};
    OK(launch(s, "fake_spin", args));
}

/** A kernel that runs for `ms` and then fills. */
static inline void slow_fill(CUstream s, CUdeviceptr p, unsigned char v, size_t n, unsigned ms)
{
    void *args[] = {&p, &v, &n, &ms};
    OK(launch(s, "fake_slow_fill", args));
}

/** Holds the stream until release(): what must be seen while work is in flight then depends on no clock. One per test. */
static sem_t held_work; /* zero: whoever waits, waits */
static inline void held(void *unused)
{
    (void)unused;
    while (sem_wait(&held_work) != 0)
        ;
}
static inline void hold(CUstream s) { OK(cuLaunchHostFunc(s, held, NULL)); }
static inline void release(void) { ck_assert_int_eq(sem_post(&held_work), 0); }

static inline bool busy(CUstream s)
{
    CUresult r = cuStreamQuery(s);
    ck_assert(r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY);
    return r == CUDA_ERROR_NOT_READY;
}

static inline unsigned char first_byte(CUdeviceptr p)
{
    unsigned char v;
    OK(cuMemcpyDtoH(&v, p, 1));
    return v;
}

static inline size_t free_bytes(void)
{
    size_t f, t;
    OK(cuMemGetInfo(&f, &t));
    return f;
}

/** Memory type of an address; 0 where the driver knows none. */
static inline unsigned type_of(CUdeviceptr p)
{
    unsigned t = 0;
    return cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_SUCCESS ? t : 0;
}

static inline CUmemAllocationProp device_prop(int device)
{
    CUmemAllocationProp p;
    memset(&p, 0, sizeof p);
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device;
    return p;
}

static inline int run_tests(const char *name, void (*fill)(TCase *))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 30);
    fill(t);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}

#endif
