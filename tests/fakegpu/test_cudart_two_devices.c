/* Two devices: whose memory is freed, what is current afterwards, peers. */
#include "test_cudart_common.h"

static void two(void) { environment("FAKEGPU_DEVICES", "2"); }

static int current(void)
{
    int d = -1;

    OK(cudaGetDevice(&d));
    return d;
}

START_TEST(devices_are_counted_and_told_apart)
{
    struct cudaDeviceProp a, b;
    char id[32];
    int n = 0, d = -1;

    two();
    OK(cudaGetDeviceCount(&n));
    ck_assert_int_eq(n, 2);
    OK(cudaGetDeviceProperties(&a, 0));
    OK(cudaGetDeviceProperties(&b, 1));
    ck_assert_mem_ne(&a.uuid, &b.uuid, sizeof a.uuid);
    ck_assert_int_ne(a.pciBusID, b.pciBusID);
    OK(cudaDeviceGetPCIBusId(id, sizeof id, 1));
    OK(cudaDeviceGetByPCIBusId(&d, id));
    ck_assert_int_eq(d, 1);
    IS(cudaSetDevice(2), cudaErrorInvalidDevice);
    IS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    IS(cudaGetDeviceProperties(&a, 2), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(freeing_a_block_of_the_other_device_leaves_the_current_one)
{
    struct cudaPointerAttributes at;
    void *p;

    two();
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&p, 4096));
    OK(cudaPointerGetAttributes(&at, p));
    ck_assert_int_eq(at.device, 1);
    OK(cudaSetDevice(0));
    OK(cudaFree(p));
    ck_assert_int_eq(current(), 0);
    IS(cudaFree(p), cudaErrorInvalidValue);
    ck_assert_int_eq(current(), 0);
}
END_TEST

static void *sees_device_0(void *unused)
{
    ck_assert_int_eq(current(), 0);
    return unused;
}

START_TEST(the_choice_belongs_to_a_thread)
{
    two();
    OK(cudaSetDevice(1));
    on_thread(sees_device_0, NULL);
    ck_assert_int_eq(current(), 1);
}
END_TEST

START_TEST(a_context_pushed_by_the_program_is_the_current_device)
{
    CUcontext mine = NULL, primary = NULL, popped = NULL;

    two();
    OK(cudaSetDevice(0));
    IS(DRIVER(cuDevicePrimaryCtxRetain, 7000)(&primary, 1), CUDA_SUCCESS);
    IS(DRIVER(cuCtxPushCurrent, 4000)(primary), CUDA_SUCCESS);
    ck_assert_int_eq(current(), 1);
    IS(DRIVER(cuCtxPopCurrent, 4000)(&popped), CUDA_SUCCESS);
    ck_assert_ptr_eq(popped, primary);
    ck_assert_int_eq(current(), 0);
    IS(DRIVER(cuCtxGetCurrent, 4000)(&mine), CUDA_SUCCESS);
    ck_assert_ptr_ne(mine, primary);
}
END_TEST

START_TEST(peer_access_can_be_enabled_once)
{
    int can = 0;

    two();
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 1);
    OK(cudaSetDevice(0));
    OK(cudaDeviceEnablePeerAccess(1, 0));
    IS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    OK(cudaDeviceDisablePeerAccess(1));
    IS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}
END_TEST

START_TEST(memory_allocated_after_enabling_is_reachable_too)
{
    unsigned char byte = 0;
    void *before, *after, *here;

    two();
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&before, 64));
    OK(cudaSetDevice(0));
    OK(cudaDeviceEnablePeerAccess(1, 0));
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&after, 64));
    OK(cudaMemset(before, 4, 64));
    OK(cudaMemset(after, 5, 64));
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(0));
    OK(cudaMalloc(&here, 64));
    OK(cudaMemcpy(here, before, 64, cudaMemcpyDefault));
    OK(cudaMemcpy(&byte, here, 1, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(byte, 4);
    OK(cudaMemcpy(here, after, 64, cudaMemcpyDefault));
    OK(cudaMemcpy(&byte, here, 1, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(byte, 5);
}
END_TEST

START_TEST(copies_between_devices_need_no_peer_access)
{
    unsigned char byte = 0;
    void *a, *b;

    two();
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&b, 64));
    OK(cudaMemset(b, 6, 64));
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(0));
    OK(cudaMalloc(&a, 64));
    OK(cudaMemcpyPeer(a, 0, b, 1, 64));
    OK(cudaMemcpy(&byte, a, 1, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(byte, 6);
    ck_assert_int_eq(current(), 0);
}
END_TEST

RUN_TESTS("two devices", devices_are_counted_and_told_apart,
          freeing_a_block_of_the_other_device_leaves_the_current_one,
          the_choice_belongs_to_a_thread, a_context_pushed_by_the_program_is_the_current_device,
          peer_access_can_be_enabled_once, memory_allocated_after_enabling_is_reachable_too,
          copies_between_devices_need_no_peer_access)
