/* Reservations, handles and mappings. */
#include "test_driver.h"

static CUmemAccessDesc rw(int device)
{
    CUmemAccessDesc d = {device_prop(device).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return d;
}

static CUmemGenericAllocationHandle handle(size_t n)
{
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp p = device_prop(0);
    OK(cuMemCreate(&h, n, &p, 0));
    return h;
}

static CUdeviceptr reserve(size_t n)
{
    CUdeviceptr p;
    OK(cuMemAddressReserve(&p, n, 0, 0, 0));
    return p;
}

START_TEST(partial_and_offset_maps_give_801)
{
    start();
    CUmemGenericAllocationHandle h = handle(4 * MIB);
    CUdeviceptr p = reserve(8 * MIB);
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 2 * MIB, 0, h, 0));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 4096, 0, h, 0));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 2 * MIB, 2 * MIB, h, 0));
    OK(cuMemMap(p, 4 * MIB, 0, h, 0));
}
END_TEST

START_TEST(a_double_unmap_succeeds)
{
    start();
    CUmemGenericAllocationHandle h = handle(2 * MIB);
    CUdeviceptr p = reserve(2 * MIB);
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(cuMemUnmap(p, 2 * MIB));
    OK(cuMemUnmap(p, 2 * MIB));
    OK(cuMemRelease(h));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
}
END_TEST

/* A reservation of `bytes` with 64 MiB of room behind it that nobody holds. */
static CUdeviceptr reserve_before_room(size_t bytes)
{
    CUdeviceptr p, wide = reserve(bytes + 64 * MIB);
    OK(cuMemAddressFree(wide, bytes + 64 * MIB));
    OK(cuMemAddressReserve(&p, bytes, 0, wide, 0));
    ck_assert_uint_eq(p, wide);
    return p;
}

START_TEST(a_map_past_its_reservation_succeeds_and_blocks_its_release)
{
    start();
    CUdeviceptr p = reserve_before_room(8 * MIB);
    CUmemGenericAllocationHandle h = handle(4 * MIB);
    for (int i = 0; i < 2; i++) { /* the room behind is free again after the unmap */
        OK(cuMemMap(p + 6 * MIB, 4 * MIB, 0, h, 0));
        GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 8 * MIB));
        OK(cuMemUnmap(p + 6 * MIB, 4 * MIB));
    }
    OK(cuMemAddressFree(p, 8 * MIB));
}
END_TEST

START_TEST(a_map_far_past_its_reservation_or_past_one_page_is_refused)
{
    start();
    CUdeviceptr page = reserve_before_room(2 * MIB), p = reserve_before_room(8 * MIB);
    CUmemGenericAllocationHandle h = handle(4 * MIB), large = handle(64 * MIB);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(page, 4 * MIB, 0, h, 0));
    OK(cuMemAddressFree(page, 2 * MIB));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 6 * MIB, 64 * MIB, 0, large, 0));
    OK(cuMemAddressFree(p, 8 * MIB));
}
END_TEST

START_TEST(a_map_across_two_reservations_blocks_both)
{
    CUdeviceptr second;
    start();
    CUdeviceptr first = reserve_before_room(2 * MIB);
    OK(cuMemAddressReserve(&second, 2 * MIB, 0, first + 2 * MIB, 0));
    ck_assert_uint_eq(second, first + 2 * MIB);
    CUmemGenericAllocationHandle h = handle(4 * MIB);
    OK(cuMemMap(first, 4 * MIB, 0, h, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(first, 2 * MIB));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(second, 2 * MIB));
    OK(cuMemUnmap(first, 4 * MIB));
    OK(cuMemAddressFree(second, 2 * MIB));
    OK(cuMemAddressFree(first, 2 * MIB));
}
END_TEST

START_TEST(memory_counts_from_create_to_the_last_holder)
{
    start();
    size_t before = free_bytes();
    CUdeviceptr p = reserve(64 * MIB);
    ck_assert_uint_eq(free_bytes(), before);
    CUmemGenericAllocationHandle h = handle(64 * MIB);
    ck_assert_uint_eq(before - free_bytes(), 64 * MIB);
    OK(cuMemMap(p, 64 * MIB, 0, h, 0));
    OK(cuMemRelease(h)); /* the mapping holds it */
    ck_assert_uint_eq(before - free_bytes(), 64 * MIB);
    OK(cuMemUnmap(p, 64 * MIB));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

START_TEST(two_mappings_show_the_same_bytes)
{
    CUmemAccessDesc d = rw(0);
    start();
    CUmemGenericAllocationHandle h = handle(2 * MIB);
    CUdeviceptr a = reserve(2 * MIB), b = reserve(2 * MIB);
    OK(cuMemMap(a, 2 * MIB, 0, h, 0));
    OK(cuMemMap(b, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(a, 2 * MIB, &d, 1));
    OK(cuMemSetAccess(b, 2 * MIB, &d, 1));
    OK(cuMemsetD8(a + 100, 0x42, 1));
    ck_assert_uint_eq(first_byte(b + 100), 0x42);
}
END_TEST

START_TEST(contents_survive_unmap_and_map_at_the_same_address)
{
    CUmemAccessDesc d = rw(0);
    CUdeviceptr other;
    start();
    CUmemGenericAllocationHandle h = handle(2 * MIB);
    CUdeviceptr p = reserve(2 * MIB);
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(p, 2 * MIB, &d, 1));
    OK(cuMemsetD8(p, 0x37, 2 * MIB));
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(p, 2 * MIB));
    OK(cuMemAlloc(&other, 2 * MIB)); /* another library allocates in between */
    OK(cuMemsetD8(other, 0, 2 * MIB));
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(p, 2 * MIB, &d, 1));
    ck_assert_uint_eq(first_byte(p + MIB), 0x37);
}
END_TEST

START_TEST(a_kernel_needs_access)
{
    CUdeviceptr p;
    unsigned char v = 1;
    size_t n = 16;
    void *args[] = {&p, &v, &n};
    start();
    CUstream s = new_stream();
    CUmemGenericAllocationHandle h = handle(2 * MIB);
    p = reserve(2 * MIB);
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(launch(s, "fake_fill", args));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
}
END_TEST

START_TEST(granularity_and_sizes)
{
    size_t g;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp p = device_prop(0), got;
    CUdeviceptr a;
    start();
    OK(cuMemGetAllocationGranularity(&g, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ck_assert_uint_eq(g, 2 * MIB);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, 8, &p, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&a, 4096, 0, 0, 0));
    h = handle(2 * MIB);
    OK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    ck_assert_int_eq(got.location.id, 0);
    CUdeviceptr q = reserve(2 * MIB);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(q, 2 * MIB, &(CUmemAccessDesc){p.location, 3}, 1)); /* not mapped */
    OK(cuMemMap(q, 2 * MIB, 0, h, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemMap(q, 2 * MIB, 0, h, 0)); /* taken */
    CUmemGenericAllocationHandle again;
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(q + 5)));
    ck_assert_uint_eq(again, h);
}
END_TEST

START_TEST(one_handle_may_be_most_of_the_card)
{
    start();
    size_t before = free_bytes(), n = before / 10 * 9 / (2 * MIB) * (2 * MIB);
    CUmemGenericAllocationHandle h = handle(n);
    ck_assert_uint_eq(before - free_bytes(), n);
    OK(cuMemRelease(h));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, partial_and_offset_maps_give_801);
    tcase_add_test(t, a_double_unmap_succeeds);
    tcase_add_test(t, a_map_past_its_reservation_succeeds_and_blocks_its_release);
    tcase_add_test(t, a_map_far_past_its_reservation_or_past_one_page_is_refused);
    tcase_add_test(t, a_map_across_two_reservations_blocks_both);
    tcase_add_test(t, memory_counts_from_create_to_the_last_holder);
    tcase_add_test(t, two_mappings_show_the_same_bytes);
    tcase_add_test(t, contents_survive_unmap_and_map_at_the_same_address);
    tcase_add_test(t, a_kernel_needs_access);
    tcase_add_test(t, granularity_and_sizes);
    tcase_add_test(t, one_handle_may_be_most_of_the_card);
}

int main(void) { return run_tests("vmm", fill); }
