/* Address ranges and alignment of what the runtime hands out. */
#include "test_cudart_common.h"

#include <string.h>

static size_t range(const void *p, void **start)
{
    CUdeviceptr base = 0;
    size_t size = 0;

    OK(DRIVER(cuMemGetAddressRange, 3020)(&base, &size, (CUdeviceptr)(size_t)p));
    *start = (void *)(size_t)base;
    return size;
}

static CUresult attribute(void *out, CUpointer_attribute name, const void *p)
{
    return DRIVER(cuPointerGetAttribute, 4000)(out, name, (CUdeviceptr)(size_t)p);
}

static const size_t sizes[] = {1, 511, 512, 4097, MIB, MIB + 1, 3 * MIB + 5, 64 * MIB};
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

START_TEST(ranges_are_the_requested_bytes)
{
    size_t size = sizes[_i], asked = 0;
    char *p;
    void *start;

    OK(cudaMalloc((void **)&p, size));
    ck_assert_uint_eq(range(p, &start), size);
    ck_assert_ptr_eq(start, p);
    ck_assert_uint_eq(range(p + size - 1, &start), size);
    ck_assert_ptr_eq(start, p);
    IS(attribute(&asked, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p), CUDA_SUCCESS);
    ck_assert_uint_eq(asked, size);
    ck_assert_int_eq(type_of(p + size - 1), cudaMemoryTypeDevice);
    ck_assert_int_eq(type_of(p + size), cudaMemoryTypeUnregistered);
    OK(cudaFree(p));
    ck_assert_int_eq(type_of(p), cudaMemoryTypeUnregistered);
}
END_TEST

START_TEST(alignment_is_512_and_2_mib_above_1_mib)
{
    size_t size = sizes[_i];
    void *p, *filler;

    OK(cudaMalloc(&filler, MIB)); /* leaves no room in its page for more than 1 MiB */
    OK(cudaMalloc(&p, size));
    ck_assert_uint_eq((size_t)p % (size > MIB ? 2 * MIB : 512), 0);
}
END_TEST

START_TEST(buffer_ids_always_grow)
{
    unsigned long long last = 0, id = 0;
    void *p;

    for (int i = 0; i < 8; i++) {
        OK(cudaMalloc(&p, 4096));
        IS(attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p), CUDA_SUCCESS);
        ck_assert_uint_gt(id, last);
        last = id;
        OK(cudaFree(p));
    }
}
END_TEST

START_TEST(mapping_size_is_2_mib_for_blocks_up_to_that)
{
    size_t mapped = 0;
    void *p;

    OK(cudaMalloc(&p, 300));
    IS(attribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p), CUDA_SUCCESS);
    ck_assert_uint_eq(mapped, 2 * MIB);
    OK(cudaMalloc(&p, 2 * MIB));
    IS(attribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p), CUDA_SUCCESS);
    ck_assert_uint_eq(mapped, 2 * MIB);
}
END_TEST

START_TEST(types_of_all_families)
{
    struct cudaPointerAttributes a;
    void *p, *own = aligned_alloc(4096, 4096);
    int local;

    OK(cudaMallocManaged(&p, 64, cudaMemAttachGlobal));
    OK(cudaPointerGetAttributes(&a, p));
    ck_assert_int_eq(a.type, cudaMemoryTypeManaged);
    OK(cudaMallocHost(&p, 64));
    OK(cudaPointerGetAttributes(&a, p));
    ck_assert_int_eq(a.type, cudaMemoryTypeHost);
    ck_assert_ptr_eq(a.hostPointer, p);
    ck_assert_ptr_nonnull(a.devicePointer);
    OK(cudaHostRegister(own, 4096, cudaHostRegisterMapped));
    ck_assert_int_eq(type_of(own), cudaMemoryTypeHost);
    OK(cudaHostUnregister(own));
    ck_assert_int_eq(type_of(own), cudaMemoryTypeUnregistered);
    OK(cudaMallocAsync(&p, 64, NULL));
    OK(cudaPointerGetAttributes(&a, p));
    ck_assert_int_eq(a.type, cudaMemoryTypeDevice);
    ck_assert_int_eq(a.device, 0);
    ck_assert_ptr_eq(a.devicePointer, p);
    OK(cudaPointerGetAttributes(&a, &local));
    ck_assert_int_eq(a.type, cudaMemoryTypeUnregistered);
    ck_assert_ptr_eq(a.hostPointer, &local);
    ck_assert_ptr_null(a.devicePointer);
    free(own);
}
END_TEST

START_TEST(host_memory_flags_and_device_address)
{
    unsigned flags = 0;
    void *h, *d = NULL;

    OK(cudaHostAlloc(&h, 4096, cudaHostAllocPortable | cudaHostAllocWriteCombined));
    OK(cudaHostGetFlags(&flags, h));
    ck_assert_uint_eq(flags & (cudaHostAllocPortable | cudaHostAllocWriteCombined),
                      cudaHostAllocPortable | cudaHostAllocWriteCombined);
    OK(cudaHostGetDevicePointer(&d, h, 0));
    ck_assert_ptr_nonnull(d);
    OK(cudaMemset(d, 3, 4096));
    ck_assert_uint_eq(((unsigned char *)h)[4095], 3);
    OK(cudaFreeHost(h));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranges");
    TCase *all = tcase_create("ranges");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(all, ranges_are_the_requested_bytes, 0, SIZES);
    tcase_add_loop_test(all, alignment_is_512_and_2_mib_above_1_mib, 0, SIZES);
    tcase_add_test(all, buffer_ids_always_grow);
    tcase_add_test(all, mapping_size_is_2_mib_for_blocks_up_to_that);
    tcase_add_test(all, types_of_all_families);
    tcase_add_test(all, host_memory_flags_and_device_address);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
