/* Devices: count, names, sizes, attributes. Values are those of an H200 where a program could care. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

CUresult fk_need_device(CUdevice dev, struct fk_dev **out)
{
    if (dev < 0 || dev >= fk_cfg.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = &fk_devs[dev];
    return CUDA_SUCCESS;
}

static CUresult do_get(CUdevice *out, int ordinal)
{
    struct fk_dev *d;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(ordinal, &d));
    *out = ordinal;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGet, (CUdevice *out, int ordinal), do_get(out, ordinal))

static CUresult do_count(int *n)
{
    if (n == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *n = fk_cfg.devices;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetCount, (int *n), do_count(n))

static CUresult do_name(char *name, int len, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (name == NULL || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "%s", fk_cfg.mode == FK_MIG ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200");
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetName, (char *name, int len, CUdevice dev), do_name(name, len, dev))

static CUresult do_uuid(CUuuid *uuid, CUdevice dev, bool v2)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0xFA ^ (i * 17) ^ dev);
    /* A MIG instance has a key of its own, seen only by the newer call. */
    if (v2 && fk_cfg.mode == FK_MIG)
        uuid->bytes[0] ^= 0x55;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetUuid, (CUuuid *uuid, CUdevice dev), do_uuid(uuid, dev, false))
FK_API(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev), do_uuid(uuid, dev, true))

static CUresult do_luid(char *luid, unsigned *mask, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    (void)luid;
    (void)mask;
    return CUDA_ERROR_NOT_SUPPORTED; /* a Windows notion */
}
FK_API(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice dev), do_luid(luid, mask, dev))

static CUresult do_total(size_t *bytes, CUdevice dev)
{
    struct fk_dev *d;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    *bytes = d->capacity;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), do_total(bytes, dev))

static CUresult do_bus_id(char *out, int len, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (out == NULL || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)len, "0000:%02X:00.0", 0x1B + dev);
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetPCIBusId, (char *out, int len, CUdevice dev), do_bus_id(out, len, dev))

static CUresult do_by_bus_id(CUdevice *dev, const char *id)
{
    unsigned domain, bus;
    if (dev == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < 0x1B || bus >= 0x1B + (unsigned)fk_cfg.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *dev = (CUdevice)bus - 0x1B;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetByPCIBusId, (CUdevice *dev, const char *id), do_by_bus_id(dev, id))

static const struct { short id; int value; } attributes[] = {
    {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {9, 65536},
    {10, 32}, {11, 2147483647}, {12, 65536}, {13, 1980000}, {14, 512}, {15, 1}, {16, 132}, {19, 1}, {21, 131072},
    {22, 131072}, {23, 65536}, {24, 16384}, {25, 16384}, {26, 16384}, {27, 32768}, {28, 32768}, {29, 2048},
    {30, 512}, {31, 1}, {32, 1}, {36, 3201000}, {37, 6144}, {38, 62914560}, {39, 2048}, {40, 3}, {41, 1},
    {42, 32768}, {43, 2048}, {44, 1}, {45, 32768}, {46, 32768}, {47, 8192}, {48, 8192}, {49, 32768}, {51, 32},
    {52, 32768}, {53, 32768}, {54, 2046}, {55, 32768}, {56, 131072}, {57, 65536}, {58, 16384}, {59, 16384},
    {60, 16384}, {61, 32768}, {62, 2048}, {63, 32768}, {64, 32768}, {65, 2048}, {66, 32768}, {67, 32768},
    {68, 2046}, {69, 268435456}, {70, 131072}, {71, 65000}, {72, 2097120}, {73, 32768}, {74, 32768}, {75, 9},
    {77, 32768}, {78, 1}, {79, 1}, {80, 1}, {81, 233472}, {82, 65536}, {83, 1}, {87, 2}, {89, 1}, {90, 1},
    {91, 1}, {92, 1}, {93, 1}, {94, 1}, {95, 1}, {97, 232448}, {98, 1}, {99, 1}, {102, 1}, {103, 1}, {106, 32},
    {107, 1}, {108, 39321600}, {109, 134213632}, {111, 1024}, {112, 1}, {114, 1}, {115, 1}, {116, 1}, {117, 1},
    {118, 100}, {119, 1}, {120, 1}, {121, 1}, {122, 1}, {123, 1}, {125, 1}, {126, 4}, {127, 1}, {129, 1},
    {131, -1}, {134, 0}, {139, 590286046}, {140, 408621278},
};

static CUresult do_attribute(int *v, CUdevice_attribute attr, CUdevice dev)
{
    struct fk_dev *d;
    if (v == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    if (attr <= 0 || attr >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (fk_cfg.mode == FK_OLDDRIVER && attr > CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
        return CUDA_ERROR_INVALID_VALUE;
    *v = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].id == (int)attr)
            *v = attributes[i].value;
    switch ((int)attr) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *v = 0x1B + dev; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *v = fk_cfg.mode == FK_UMA; break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: *v = fk_cfg.mode == FK_UMA; break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *v = fk_cfg.mode != FK_WDDM; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = fk_cfg.mode == FK_MIG ? 16 : 132; break;
    default: break;
    }
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetAttribute, (int *v, CUdevice_attribute attr, CUdevice dev), do_attribute(v, attr, dev))

static CUresult do_capability(int *major, int *minor, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev), do_capability(major, minor, dev))

static CUresult do_properties(CUdevprop *p, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUdevprop){1024, {1024, 1024, 64}, {2147483647, 65535, 65535}, 49152, 65536, 32, 2147483647, 65536, 1980000, 512};
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetProperties, (CUdevprop *p, CUdevice dev), do_properties(p, dev))

static CUresult do_can_access(int *can, CUdevice dev, CUdevice peer)
{
    struct fk_dev *d;
    if (can == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    FK_TRY(fk_need_device(peer, &d));
    *can = dev != peer && fk_cfg.mode != FK_MIG;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceCanAccessPeer, (int *can, CUdevice dev, CUdevice peer), do_can_access(can, dev, peer))

static CUresult do_p2p(int *v, CUdevice_P2PAttribute attr, CUdevice a, CUdevice b)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(a, &d));
    FK_TRY(fk_need_device(b, &d));
    if (v == NULL || a == b || attr < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
        return CUDA_ERROR_INVALID_VALUE;
    *v = attr == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : fk_cfg.mode != FK_MIG;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetP2PAttribute, (int *v, CUdevice_P2PAttribute attr, CUdevice a, CUdevice b), do_p2p(v, attr, a, b))

static CUresult do_affinity(int *v, CUexecAffinityType type, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (v == NULL || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    *v = 0;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetExecAffinitySupport, (int *v, CUexecAffinityType type, CUdevice dev), do_affinity(v, type, dev))

static CUresult do_linear_width(size_t *max, CUarray_format format, unsigned channels, CUdevice dev)
{
    struct fk_dev *d;
    (void)format;
    FK_TRY(fk_need_device(dev, &d));
    if (max == NULL || channels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *max = 268435456;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetTexture1DLinearMaxWidth, (size_t *max, CUarray_format format, unsigned channels, CUdevice dev),
       do_linear_width(max, format, channels, dev))
