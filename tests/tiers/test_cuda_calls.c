/* Our own types of the driver's interface against the toolkit's header: sizes, places of members, values; and the names against the driver. */
#include <check.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiers/backend_cuda_load.h"
#include "tiers/backend_pinned.h"
#include "tiers/cuda_error.h"

#define SAME_SIZE(ours, theirs) ck_assert_uint_eq(sizeof(ours), sizeof(theirs))
#define SAME_PLACE(ours, ours_member, theirs, theirs_member)                            \
    do {                                                                                \
        ck_assert_uint_eq(offsetof(ours, ours_member), offsetof(theirs, theirs_member)); \
        SAME_SIZE(((ours *)0)->ours_member, ((theirs *)0)->theirs_member);              \
    } while (0)

START_TEST(types_lie_as_the_toolkits_do)
{
    SAME_SIZE(int, CUresult);
    SAME_SIZE(int, CUdevice);
    SAME_SIZE(tn_cuda_address, CUdeviceptr);
    SAME_SIZE(tn_cuda_handle, CUmemGenericAllocationHandle);
    SAME_SIZE(tn_cuda_stream, CUstream);
    SAME_SIZE(tn_cuda_pool, CUmemoryPool);
    SAME_SIZE(int, CUstreamCaptureStatus);
    SAME_SIZE(int, CUdevice_attribute);
    SAME_SIZE(int, CUmemAllocationGranularity_flags);
    SAME_SIZE(tn_cuda_location, CUmemLocation);
    SAME_PLACE(tn_cuda_location, type, CUmemLocation, type);
    SAME_PLACE(tn_cuda_location, id, CUmemLocation, id);
    SAME_SIZE(tn_cuda_property, CUmemAllocationProp);
    SAME_PLACE(tn_cuda_property, type, CUmemAllocationProp, type);
    SAME_PLACE(tn_cuda_property, handle_types, CUmemAllocationProp, requestedHandleTypes);
    SAME_PLACE(tn_cuda_property, location, CUmemAllocationProp, location);
    SAME_PLACE(tn_cuda_property, meta_data, CUmemAllocationProp, win32HandleMetaData);
    SAME_PLACE(tn_cuda_property, compression, CUmemAllocationProp, allocFlags.compressionType);
    SAME_PLACE(tn_cuda_property, direct_rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
    SAME_PLACE(tn_cuda_property, usage, CUmemAllocationProp, allocFlags.usage);
    SAME_PLACE(tn_cuda_property, reserved, CUmemAllocationProp, allocFlags.reserved);
    SAME_SIZE(tn_cuda_access, CUmemAccessDesc);
    SAME_PLACE(tn_cuda_access, location, CUmemAccessDesc, location);
    SAME_PLACE(tn_cuda_access, flags, CUmemAccessDesc, flags);
}
END_TEST

START_TEST(values_are_the_toolkits)
{
    ck_assert_int_eq(TN_CUDA_PINNED, (int)CU_MEM_ALLOCATION_TYPE_PINNED);
    ck_assert_int_eq(TN_CUDA_ON_DEVICE, (int)CU_MEM_LOCATION_TYPE_DEVICE);
    ck_assert_int_eq(TN_CUDA_ACCESS_NONE, (int)CU_MEM_ACCESS_FLAGS_PROT_NONE);
    ck_assert_int_eq(TN_CUDA_ACCESS_READ_WRITE, (int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ck_assert_int_eq(TN_CUDA_GRANULARITY_RECOMMENDED, (int)CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    ck_assert_int_eq(TN_CUDA_ATTRIBUTE_VMM, (int)CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    ck_assert_int_eq(TN_CUDA_NOT_CAPTURING, (int)CU_STREAM_CAPTURE_STATUS_NONE);
    ck_assert_int_eq(TN_PINNED_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
    ck_assert_int_eq(TN_PINNED_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
    ck_assert_int_eq(TN_PINNED_WRITE_COMBINED, CU_MEMHOSTALLOC_WRITECOMBINED);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_OUT_OF_MEMORY), TN_MEM_E_OUT_OF_MEMORY);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_NOT_INITIALIZED), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_DEINITIALIZED), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_STUB_LIBRARY), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_NO_DEVICE), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_INVALID_CONTEXT), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_CONTEXT_IS_DESTROYED), TN_MEM_E_NO_CONTEXT);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED), TN_MEM_E_REGISTERED);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED), TN_MEM_E_UNREGISTERED);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_NOT_PERMITTED), TN_MEM_E_UNSUPPORTED);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_NOT_SUPPORTED), TN_MEM_E_UNSUPPORTED);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), TN_MEM_E_CAPTURING);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), TN_MEM_E_CAPTURING);
    ck_assert_int_eq(tn_cuda_error(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD), TN_MEM_E_CAPTURING);
}
END_TEST

static const char *without;

static void *all_but_one(void *self, const char *name)
{
    return without != NULL && strcmp(name, without) == 0 ? NULL : self;
}

START_TEST(entries_that_are_missing_are_named)
{
    tn_cuda cuda;
    const char *missing = "?";
    char anything;
    without = NULL;
    tn_cuda_fill(&cuda, all_but_one, &anything, &missing);
    ck_assert_ptr_null(missing);
    const void *const *entries = (const void *const *)(const void *)&cuda;
    for (size_t i = 0; i < TN_CUDA_CALL_COUNT; i++)
        ck_assert_ptr_eq(entries[i], &anything);
    for (int i = 0; i < TN_CUDA_CALL_COUNT; i++) {
        without = tn_cuda_call_name((tn_cuda_call)i);
        tn_cuda_fill(&cuda, all_but_one, &anything, &missing);
        ck_assert_str_eq(missing, without);
        ck_assert_ptr_null(entries[i]);
    }
    tn_cuda_fill(&cuda, all_but_one, NULL, NULL);
    ck_assert_ptr_null(entries[0]);
}
END_TEST

START_TEST(a_driver_is_found_and_has_every_name)
{
    tn_cuda cuda;
    const char *missing = "?";
    ck_assert_int_eq(tn_cuda_load(NULL, NULL), TN_MEM_E_ARGUMENT);
    ck_assert_int_eq(tn_cuda_load(&cuda, &missing), TN_MEM_OK);
    ck_assert_msg(missing == NULL, "%s", missing);
    size_t unused, total;
    ck_assert_int_eq(tn_cuda_error(cuda.info(&unused, &total)), TN_MEM_E_NO_CONTEXT); /* nothing here starts CUDA */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_calls");
    TCase *tests = tcase_create("cuda_calls");
    tcase_add_test(tests, types_lie_as_the_toolkits_do);
    tcase_add_test(tests, values_are_the_toolkits);
    tcase_add_test(tests, entries_that_are_missing_are_named);
    tcase_add_test(tests, a_driver_is_found_and_has_every_name);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
