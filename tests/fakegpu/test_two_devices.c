/* Two devices: frees across them, peer access, and VMM access of its own. */
#include "test_driver.h"

static CUcontext ctx[2];

static void start_two(void)
{
    setenv("FAKEGPU_DEVICES", "2", 1);
    OK(cuInit(0));
    for (int i = 0; i < 2; i++)
        OK(cuDevicePrimaryCtxRetain(&ctx[i], i));
    OK(cuCtxSetCurrent(ctx[0]));
}

static CUdeviceptr on_device_1(size_t n)
{
    CUdeviceptr p;
    OK(cuCtxSetCurrent(ctx[1]));
    OK(cuMemAlloc(&p, n));
    OK(cuCtxSetCurrent(ctx[0]));
    return p;
}

/* A fill by a kernel of device 0; the error of the stream. Modules belong to a context, so each call loads its own. */
static CUresult fill_from_0(CUdeviceptr p)
{
    CUmodule m;
    CUfunction f;
    CUstream s = new_stream();
    unsigned char v = 0x77;
    size_t n = 16;
    void *args[] = {&p, &v, &n};
    OK(cuModuleLoadData(&m, "image"));
    OK(cuModuleGetFunction(&f, m, "fake_fill"));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
    return cuStreamSynchronize(s);
}

START_TEST(a_block_of_device_1_is_freed_while_0_is_current)
{
    CUdevice dev;
    CUcontext now;
    start_two();
    CUdeviceptr p = on_device_1(4096);
    OK(cuMemFree(p));
    OK(cuCtxGetCurrent(&now));
    ck_assert_ptr_eq(now, ctx[0]);
    OK(cuCtxGetDevice(&dev));
    ck_assert_int_eq(dev, 0);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(peer_access_enabled_twice_gives_704)
{
    int can;
    start_two();
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 1);
    OK(cuCtxEnablePeerAccess(ctx[1], 0));
    GIVES(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(ctx[1], 0));
    OK(cuCtxDisablePeerAccess(ctx[1]));
    GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(ctx[1]));
}
END_TEST

START_TEST(memory_from_after_enabling_is_reachable)
{
    start_two();
    OK(cuCtxEnablePeerAccess(ctx[1], 0));
    CUdeviceptr p = on_device_1(4096);
    OK(fill_from_0(p));
    ck_assert_uint_eq(first_byte(p), 0x77);
}
END_TEST

START_TEST(without_peer_access_a_kernel_faults)
{
    start_two();
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, fill_from_0(on_device_1(4096)));
}
END_TEST

START_TEST(copies_between_devices_need_no_peer_access)
{
    CUdeviceptr a, b;
    start_two();
    OK(cuMemAlloc(&a, 4096));
    b = on_device_1(4096);
    OK(cuMemsetD8(a, 0x31, 4096));
    OK(cuMemcpyPeer(b, ctx[1], a, ctx[0], 4096));
    ck_assert_uint_eq(first_byte(b), 0x31);
}
END_TEST

/* A mapping of device 1's memory with access for the devices in the mask. */
static CUdeviceptr mapped_on_1(unsigned mask)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = device_prop(1);
    OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    for (int i = 0; i < 2; i++) {
        CUmemAccessDesc d = {device_prop(i).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        if (mask >> i & 1)
            OK(cuMemSetAccess(p, 2 * MIB, &d, 1));
    }
    return p;
}

START_TEST(vmm_memory_is_reachable_only_by_its_own_access)
{
    unsigned long long flags;
    CUmemLocation zero = device_prop(0).location;
    start_two();
    OK(cuCtxEnablePeerAccess(ctx[1], 0)); /* does not help */
    CUdeviceptr both = mapped_on_1(3), own = mapped_on_1(2);
    OK(cuMemGetAccess(&flags, &zero, both));
    ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemGetAccess(&flags, &zero, own));
    ck_assert_uint_eq(flags, 0);
    OK(fill_from_0(both));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, fill_from_0(own));
}
END_TEST

START_TEST(a_free_waits_for_the_blocks_own_device)
{
    CUdeviceptr p;
    start_two();
    CUstream s = new_stream();
    p = on_device_1(4096);
    hold(s);
    OK(cuMemFree(p)); /* device 1 is idle */
    ck_assert(busy(s));
}
END_TEST

START_TEST(each_device_has_a_figure_of_its_own)
{
    size_t f, t;
    start_two();
    size_t before = free_bytes();
    on_device_1(64 * MIB);
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuCtxSetCurrent(ctx[1]));
    OK(cuMemGetInfo(&f, &t));
    ck_assert_uint_eq(before - f, 64 * MIB);
}
END_TEST

START_TEST(a_librarys_code_is_charged_on_each_device_once)
{
    CUlibrary lib;
    CUkernel k;
    CUfunction f;
    unsigned ms = 0;
    void *args[] = {&ms};
    start_two();
    OK(cuLibraryLoadData(&lib, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, lib, "fake_spin"));
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(ctx[i]));
        size_t before = free_bytes();
        OK(cuKernelGetFunction(&f, k));
        for (int twice = 0; twice < 2; twice++)
            OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
        ck_assert_uint_eq(before - free_bytes(), 2 * MIB);
    }
    size_t before = free_bytes();
    OK(cuLibraryUnload(lib));
    ck_assert_uint_eq(free_bytes() - before, 2 * MIB);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, a_librarys_code_is_charged_on_each_device_once);
    tcase_add_test(t, a_block_of_device_1_is_freed_while_0_is_current);
    tcase_add_test(t, peer_access_enabled_twice_gives_704);
    tcase_add_test(t, memory_from_after_enabling_is_reachable);
    tcase_add_test(t, without_peer_access_a_kernel_faults);
    tcase_add_test(t, copies_between_devices_need_no_peer_access);
    tcase_add_test(t, vmm_memory_is_reachable_only_by_its_own_access);
    tcase_add_test(t, a_free_waits_for_the_blocks_own_device);
    tcase_add_test(t, each_device_has_a_figure_of_its_own);
}

int main(void) { return run_tests("two_devices", fill); }
