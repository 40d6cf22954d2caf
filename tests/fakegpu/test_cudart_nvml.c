/* The NVML stand-in: alone in a process, and beside the driver. */
#include "test_cudart_common.h"

#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static nvmlDevice_t device(unsigned index)
{
    nvmlDevice_t d = NULL;

    IS(nvmlInit_v2(), NVML_SUCCESS);
    IS(nvmlDeviceGetHandleByIndex_v2(index, &d), NVML_SUCCESS);
    return d;
}

START_TEST(nothing_works_before_init_or_after_shutdown)
{
    unsigned n;

    IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
    IS(nvmlInit_v2(), NVML_SUCCESS);
    IS(nvmlInit_v2(), NVML_SUCCESS);
    IS(nvmlShutdown(), NVML_SUCCESS);
    IS(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
    IS(nvmlShutdown(), NVML_SUCCESS);
    IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
    IS(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}
END_TEST

START_TEST(without_a_driver_nothing_is_used_and_none_is_loaded)
{
    nvmlMemory_t m;
    unsigned n = 4;

    environment("FAKEGPU_MEM_MIB", "1000");
    IS(nvmlDeviceGetMemoryInfo(device(0), &m), NVML_SUCCESS);
    ck_assert_uint_eq(m.total, 1000 * MIB);
    ck_assert_uint_eq(m.used, 0);
    ck_assert_uint_eq(m.free, m.total);
    IS(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &n, NULL), NVML_SUCCESS);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
}
END_TEST

START_TEST(beside_a_driver_the_figures_are_the_drivers)
{
    nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
    nvmlProcessInfo_t process[2];
    size_t free_bytes = 0, total = 0;
    unsigned n = 2;
    void *p;

    OK(cudaMalloc(&p, 100 * MIB));
    OK(cudaMemGetInfo(&free_bytes, &total));
    IS(nvmlDeviceGetMemoryInfo_v2(device(0), &m), NVML_SUCCESS);
    ck_assert_uint_eq(m.total, total);
    ck_assert_uint_eq(m.free, free_bytes);
    ck_assert_uint_eq(m.used + m.reserved + m.free, m.total);
    IS(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &n, process), NVML_SUCCESS);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(process[0].pid, (unsigned)getpid());
    ck_assert_uint_eq(process[0].usedGpuMemory, m.used);
    n = 0;
    IS(nvmlDeviceGetComputeRunningProcesses_v3(device(0), &n, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(the_newer_struct_is_asked_for_its_version)
{
    nvmlMemory_v2_t m = {.version = 1};

    IS(nvmlDeviceGetMemoryInfo_v2(device(0), &m), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}
END_TEST

START_TEST(identity_is_the_drivers)
{
    struct cudaDeviceProp prop;
    const unsigned char *b = (const unsigned char *)prop.uuid.bytes;
    char uuid[64], name[96], bus[32], text[64];
    nvmlDevice_t d;
    unsigned n = 0;

    environment("FAKEGPU_DEVICES", "2");
    for (unsigned i = 0; i < 2; i++) {
        OK(cudaGetDeviceProperties(&prop, (int)i));
        IS(nvmlDeviceGetUUID(device(i), uuid, sizeof uuid), NVML_SUCCESS);
        snprintf(text, sizeof text,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                 b[14], b[15]);
        ck_assert_str_eq(uuid, text);
        IS(nvmlDeviceGetName(device(i), name, sizeof name), NVML_SUCCESS);
        ck_assert_str_eq(name, prop.name);
        OK(cudaDeviceGetPCIBusId(bus, sizeof bus, (int)i));
        IS(nvmlDeviceGetHandleByPciBusId_v2(bus, &d), NVML_SUCCESS);
        ck_assert_ptr_eq(d, device(i));
        IS(nvmlDeviceGetHandleByUUID(uuid, &d), NVML_SUCCESS);
        ck_assert_ptr_eq(d, device(i));
    }
    IS(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
    ck_assert_uint_eq(n, 2);
    IS(nvmlDeviceGetHandleByUUID("GPU-none", &d), NVML_ERROR_NOT_FOUND);
    IS(nvmlDeviceGetHandleByIndex_v2(2, &d), NVML_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(an_instance_has_a_key_of_its_own_and_no_permission)
{
    nvmlMemory_t m;
    char uuid[64];

    environment("FAKEGPU_MODE", "mig");
    environment("FAKEGPU_NVML", "noperm");
    IS(nvmlDeviceGetUUID(device(0), uuid, sizeof uuid), NVML_SUCCESS);
    ck_assert_int_eq(strncmp(uuid, "MIG-", 4), 0);
    IS(nvmlDeviceGetMemoryInfo(device(0), &m), NVML_ERROR_NO_PERMISSION);
    ck_assert_str_eq(nvmlErrorString(NVML_ERROR_NO_PERMISSION), "Insufficient Permissions");
}
END_TEST

START_TEST(absent)
{
    environment("FAKEGPU_NVML", "absent");
    IS(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
}
END_TEST

RUN_TESTS("nvml", nothing_works_before_init_or_after_shutdown,
          without_a_driver_nothing_is_used_and_none_is_loaded,
          beside_a_driver_the_figures_are_the_drivers, the_newer_struct_is_asked_for_its_version,
          identity_is_the_drivers, an_instance_has_a_key_of_its_own_and_no_permission, absent)
