/* Arrays and mipmapped arrays, and the strided copies that reach them. */
#include "test_driver.h"

START_TEST(ordinary_arrays_refuse_memory_requirements)
{
    CUarray a;
    CUmipmappedArray m;
    CUDA_ARRAY_DESCRIPTOR d = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR d3 = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    start();
    OK(cuArrayCreate(&a, &d));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&r, a, 0));
    OK(cuMipmappedArrayCreate(&m, &d3, 3));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(&r, m, 0));
}
END_TEST

START_TEST(deferred_arrays_answer_and_take_no_memory)
{
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR d = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING};
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    start();
    size_t before = free_bytes();
    OK(cuArray3DCreate(&a, &d));
    OK(cuArrayGetMemoryRequirements(&r, a, 0));
    ck_assert_uint_ge(r.size, 16 * MIB);
    ck_assert_uint_gt(r.alignment, 0);
    ck_assert_uint_eq(free_bytes(), before);
    OK(cuArrayDestroy(a));
}
END_TEST

START_TEST(an_array_takes_its_texels_rounded_to_pages)
{
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = {1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    start();
    size_t before = free_bytes();
    OK(cuArrayCreate(&a, &d));
    ck_assert_uint_eq(before - free_bytes(), 16 * MIB);
    OK(cuArrayDestroy(a));
    ck_assert_uint_eq(free_bytes(), before);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
}
END_TEST

START_TEST(rows_go_in_and_come_out)
{
    enum { W = 40, H = 7, PITCH = 64 };
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = {W, H, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    unsigned char in[PITCH * H], out[W * H];
    start();
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7);
    OK(cuArrayCreate(&a, &d));
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = PITCH, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = a, .WidthInBytes = W, .Height = H};
    OK(cuMemcpy2D(&c));
    CUDA_MEMCPY2D b = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out,
                       .dstPitch = W, .WidthInBytes = W, .Height = H};
    OK(cuMemcpy2D(&b));
    for (int y = 0; y < H; y++)
        ck_assert_mem_eq(out + y * W, in + y * PITCH, W);
}
END_TEST

START_TEST(boxes_of_pitched_memory_are_copied)
{
    CUdeviceptr p;
    size_t pitch;
    unsigned char in[4 * 3 * 2], out[4 * 3 * 2] = {0};
    start();
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i + 1);
    OK(cuMemAllocPitch(&p, &pitch, 4, 6, 4));
    ck_assert_uint_eq(pitch % 512, 0);
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = 4, .srcHeight = 3,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p, .dstPitch = pitch, .dstHeight = 3,
                       .WidthInBytes = 4, .Height = 3, .Depth = 2};
    OK(cuMemcpy3D(&c));
    CUDA_MEMCPY3D b = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = pitch, .srcHeight = 3,
                       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out, .dstPitch = 4, .dstHeight = 3,
                       .WidthInBytes = 4, .Height = 3, .Depth = 2};
    OK(cuMemcpy3D(&b));
    ck_assert_mem_eq(in, out, sizeof in);
    ck_assert_uint_eq(first_byte(p + 3 * pitch), 13); /* the second slice begins a slice pitch further on */
}
END_TEST

START_TEST(levels_halve_and_belong_to_their_array)
{
    CUmipmappedArray m;
    CUarray level;
    CUDA_ARRAY3D_DESCRIPTOR d = {64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, got;
    start();
    size_t before = free_bytes();
    OK(cuMipmappedArrayCreate(&m, &d, 3));
    OK(cuMipmappedArrayGetLevel(&level, m, 2));
    OK(cuArray3DGetDescriptor(&got, level));
    ck_assert_uint_eq(got.Width, 16);
    ck_assert_uint_eq(got.Height, 8);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, m, 3));
    OK(cuMipmappedArrayDestroy(m));
    ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, ordinary_arrays_refuse_memory_requirements);
    tcase_add_test(t, deferred_arrays_answer_and_take_no_memory);
    tcase_add_test(t, an_array_takes_its_texels_rounded_to_pages);
    tcase_add_test(t, rows_go_in_and_come_out);
    tcase_add_test(t, boxes_of_pitched_memory_are_copied);
    tcase_add_test(t, levels_halve_and_belong_to_their_array);
}

int main(void) { return run_tests("arrays", fill); }
