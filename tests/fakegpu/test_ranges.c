/* Addresses: ranges, alignment, identifiers, mapping sizes. */
#include "test_driver.h"

static size_t range_size(CUdeviceptr p)
{
    size_t n, m;
    CUdeviceptr base;
    OK(cuMemGetAddressRange(&base, &n, p));
    OK(cuPointerGetAttribute(&m, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
    ck_assert_uint_eq(n, m);
    return n;
}

START_TEST(ranges_are_the_requested_bytes)
{
    static const size_t sizes[] = {1, 511, 512, 513, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB + 5, 100 * MIB};
    start();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CUdeviceptr p, base;
        size_t n;
        OK(cuMemAlloc(&p, sizes[i]));
        ck_assert_uint_eq(range_size(p), sizes[i]);
        ck_assert_uint_eq(range_size(p + sizes[i] - 1), sizes[i]);
        OK(cuMemGetAddressRange(&base, NULL, p + sizes[i] - 1));
        ck_assert_uint_eq(base, p);
        OK(cuMemGetAddressRange(NULL, &n, p));
        OK(cuMemGetAddressRange(NULL, NULL, p));
    }
}
END_TEST

START_TEST(one_past_the_end_is_unknown)
{
    CUdeviceptr p, base;
    size_t n;
    unsigned t;
    start();
    OK(cuMemAlloc(&p, 1));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &n, p + 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 1));
    OK(cuMemAlloc(&p, 2 * MIB));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &n, p + 2 * MIB));
}
END_TEST

START_TEST(freed_is_unknown_at_once)
{
    CUdeviceptr p, base;
    size_t n;
    start();
    OK(cuMemAlloc(&p, 4096));
    OK(cuMemFree(p));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &n, p));
    ck_assert_uint_eq(type_of(p), 0);
}
END_TEST

START_TEST(the_buffer_id_always_grows)
{
    unsigned long long last = 0, id;
    start();
    for (int i = 0; i < 8; i++) {
        CUdeviceptr p;
        OK(cuMemAlloc(&p, 4096)); /* the same address each time */
        OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
        ck_assert_uint_gt(id, last);
        last = id;
        OK(cuMemFree(p));
    }
}
END_TEST

START_TEST(the_mapping_is_2_mib_up_to_2_mib)
{
    static const size_t sizes[] = {1, MIB, MIB + 1, 2 * MIB};
    start();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CUdeviceptr p;
        size_t n;
        OK(cuMemAlloc(&p, sizes[i]));
        OK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p));
        ck_assert_uint_eq(n, 2 * MIB);
    }
}
END_TEST

START_TEST(alignment_is_512_bytes_and_2_mib_above_1_mib)
{
    static const size_t small[] = {1, 3, 512, 700, 65536, MIB}, large[] = {MIB + 1, 2 * MIB, 3 * MIB, 33 * MIB};
    CUdeviceptr p;
    start();
    /* As on a card: below 2 MiB a block goes where a page has room for it, so the alignment of the larger ones is that of an empty page. */
    CUdeviceptr first;
    OK(cuMemAlloc(&first, 1007200));
    OK(cuMemAlloc(&p, 1077200));
    ck_assert_uint_eq(p - first, 1007616);
    OK(cuMemAlloc(&p, MIB + 1));
    ck_assert_uint_eq(p % (2 * MIB), 0);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
            OK(cuMemAlloc(&p, small[i]));
            ck_assert_uint_eq(p % 512, 0);
        }
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
            OK(cuMemAlloc(&p, large[i]));
            ck_assert_uint_eq(p % (2 * MIB), 0);
        }
    }
}
END_TEST

START_TEST(small_blocks_share_pages_and_large_ones_take_whole_ones)
{
    CUdeviceptr p[4];
    start();
    size_t before = free_bytes();
    for (int i = 0; i < 4; i++)
        OK(cuMemAlloc(&p[i], 1000));
    ck_assert_uint_eq(before - free_bytes(), 2 * MIB);
    for (int i = 0; i < 4; i++)
        OK(cuMemFree(p[i]));
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuMemAlloc(&p[0], MIB + 1));
    OK(cuMemAlloc(&p[1], 5 * MIB));
    ck_assert_uint_eq(before - free_bytes(), 8 * MIB);
}
END_TEST

START_TEST(the_list_query_answers_zero_for_what_it_does_not_know)
{
    unsigned type = 77;
    int device = 77, managed = 77;
    CUdeviceptr p, unknown = (CUdeviceptr)(uintptr_t)&p;
    void *host = NULL;
    CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *out[] = {&type, &device, &managed, &host};
    start();
    OK(cuPointerGetAttributes(4, attrs, out, unknown));
    ck_assert_ptr_eq(host, &p);
    ck_assert_uint_eq(type, 0);
    ck_assert_int_eq(device, -2);
    ck_assert_int_eq(managed, 0);
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuPointerGetAttributes(3, attrs, out, p));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    ck_assert_int_eq(device, 0);
    ck_assert_int_eq(managed, 1);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, ranges_are_the_requested_bytes);
    tcase_add_test(t, one_past_the_end_is_unknown);
    tcase_add_test(t, freed_is_unknown_at_once);
    tcase_add_test(t, the_buffer_id_always_grows);
    tcase_add_test(t, the_mapping_is_2_mib_up_to_2_mib);
    tcase_add_test(t, alignment_is_512_bytes_and_2_mib_above_1_mib);
    tcase_add_test(t, small_blocks_share_pages_and_large_ones_take_whole_ones);
    tcase_add_test(t, the_list_query_answers_zero_for_what_it_does_not_know);
}

int main(void) { return run_tests("ranges", fill); }
