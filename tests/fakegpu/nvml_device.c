/* A stand-in for libnvidia-ml.so.1: device identity and memory figures.
 *
 * Works in processes that have no CUDA driver loaded, as the real one does, and
 * never loads one. Where the fake driver is loaded its own count is the used
 * figure, with those of the processes that share the card (FAKEGPU_SHARED);
 * elsewhere nothing is used. Identity follows the fake driver's (device.c) and a test compares.
 *
 * FAKEGPU_DEVICES, FAKEGPU_MEM_MIB, FAKEGPU_MODE mean what they mean there;
 * FAKEGPU_NVML=noperm refuses memory figures, as inside a MIG instance, and
 * FAKEGPU_NVML=absent fails nvmlInit. */
#define _GNU_SOURCE
#include "fakegpu.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define MAX_DEVICES 8u /* as many as the fake driver has */
#define PCI_BASE 0x1B

struct nvmlDevice_st {
    unsigned int index;
};

static struct nvmlDevice_st devices[MAX_DEVICES];
static atomic_int initialised;

static int is(const char *variable, const char *value)
{
    const char *have = getenv(variable);

    return have && strcmp(have, value) == 0;
}

static unsigned long long number(const char *variable, unsigned long long otherwise)
{
    const char *text = getenv(variable);
    char *end;
    unsigned long long value;

    if (!text || !*text)
        return otherwise;
    value = strtoull(text, &end, 10);
    return *end ? otherwise : value;
}

static int is_mig(void) { return is("FAKEGPU_MODE", "mig"); }

static unsigned int device_count(void)
{
    unsigned long long n = number("FAKEGPU_DEVICES", 1);

    return n > MAX_DEVICES ? MAX_DEVICES : (unsigned int)n;
}

/* Bytes used and in all, by the fake driver where this process has it. */
static void figures(unsigned int index, unsigned long long *used, unsigned long long *total)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*ask)(int, unsigned long long *, unsigned long long *) = NULL;

    *used = 0;
    *total = number("FAKEGPU_MEM_MIB", is_mig() ? 17920 : 143771) * MIB;
    if (!driver)
        return;
    *(void **)(void *)&ask = dlsym(driver, "fakegpu_device_used");
    if (ask)
        (void)ask((int)index, used, total);
    dlclose(driver);
}

/* What other processes use of it, of whom that driver knows. */
static unsigned long long others(unsigned int index)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    unsigned long long (*ask)(int) = NULL, used = 0;

    if (!driver)
        return 0;
    *(void **)(void *)&ask = dlsym(driver, "fakegpu_device_others");
    if (ask)
        used = ask((int)index);
    dlclose(driver);
    return used;
}

static nvmlReturn_t check(nvmlDevice_t device)
{
    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (device < devices || device >= devices + device_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    if (is("FAKEGPU_NVML", "absent"))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    for (unsigned int i = 0; i < MAX_DEVICES; i++)
        devices[i].index = i;
    atomic_fetch_add(&initialised, 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

/* One shutdown for each init, as documented. */
nvmlReturn_t nvmlShutdown(void)
{
    if (atomic_load(&initialised) <= 0)
        return NVML_ERROR_UNINITIALIZED;
    atomic_fetch_sub(&initialised, 1);
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument Version Mismatch";
    default:
        return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    static const char text[] = "580.159.04";

    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (length < sizeof text)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(version, text, sizeof text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = device_count();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= device_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Text form of the driver's 16 bytes; a MIG instance has a key of its own. */
static void uuid_text(unsigned int index, char *out, size_t length)
{
    unsigned char b[16];

    for (unsigned int i = 0; i < 16; i++)
        b[i] = (unsigned char)(0xFA ^ (i * 17) ^ index);
    if (is_mig())
        b[0] ^= 0x55;
    snprintf(out, length,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             is_mig() ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9],
             b[10], b[11], b[12], b[13], b[14], b[15]);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    char have[48];

    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < device_count(); i++) {
        uuid_text(i, have, sizeof have);
        if (strcmp(have, uuid) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* The domain may have four digits or eight; both are in use. */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    unsigned int domain, bus, slot;

    if (!atomic_load(&initialised))
        return NVML_ERROR_UNINITIALIZED;
    if (!bus_id || !device || sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (domain || slot || bus < PCI_BASE || bus - PCI_BASE >= device_count())
        return NVML_ERROR_NOT_FOUND;
    *device = &devices[bus - PCI_BASE];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t r = check(device);

    if (r == NVML_SUCCESS && !index)
        r = NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS)
        *index = device->index;
    return r;
}

static nvmlReturn_t copy_text(const char *text, char *out, unsigned int length)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    nvmlReturn_t r = check(device);

    if (r != NVML_SUCCESS)
        return r;
    return copy_text(is_mig() ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200", name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    char text[48];
    nvmlReturn_t r = check(device);

    if (r != NVML_SUCCESS)
        return r;
    uuid_text(device->index, text, sizeof text);
    return copy_text(text, uuid, length);
}

static nvmlReturn_t memory_allowed(nvmlDevice_t device, const void *out)
{
    nvmlReturn_t r = check(device);

    if (r == NVML_SUCCESS && !out)
        r = NVML_ERROR_INVALID_ARGUMENT;
    if (r == NVML_SUCCESS && is("FAKEGPU_NVML", "noperm"))
        r = NVML_ERROR_NO_PERMISSION;
    return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t r = memory_allowed(device, memory);

    if (r != NVML_SUCCESS)
        return r;
    figures(device->index, &memory->used, &memory->total);
    memory->used += others(device->index);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t r = memory_allowed(device, memory);

    if (r != NVML_SUCCESS)
        return r;
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    figures(device->index, &memory->used, &memory->total);
    memory->used += others(device->index);
    memory->reserved = 0;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

/* This process, if it uses the card; `count` is room on the way in, need on the way out. */
static nvmlReturn_t running(nvmlDevice_t device, unsigned int *count, unsigned long long *used)
{
    unsigned long long total;
    unsigned int room;
    nvmlReturn_t r = memory_allowed(device, count);

    if (r != NVML_SUCCESS)
        return r;
    figures(device->index, used, &total);
    room = *count;
    *count = *used ? 1 : 0;
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *infos)
{
    unsigned long long used = 0;
    nvmlReturn_t r = running(device, count, &used);

    if (r == NVML_SUCCESS && *count)
        infos[0] = (nvmlProcessInfo_v1_t){(unsigned int)getpid(), used};
    return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    unsigned long long used = 0;
    nvmlReturn_t r = running(device, count, &used);

    /* All ones: not inside an instance. */
    if (r == NVML_SUCCESS && *count)
        infos[0] = (nvmlProcessInfo_t){(unsigned int)getpid(), used, ~0u, ~0u};
    return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}
