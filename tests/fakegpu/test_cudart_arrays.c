/* Arrays and mipmapped arrays, pitched memory, and copies between them. */
#include "test_cudart_common.h"

#include <string.h>

static struct cudaChannelFormatDesc floats(void)
{
    return cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
}

START_TEST(an_array_says_what_it_was_made_as)
{
    struct cudaChannelFormatDesc f = cudaCreateChannelDesc(8, 8, 8, 8,
                                                           cudaChannelFormatKindUnsigned),
                                 back;
    struct cudaExtent extent;
    unsigned flags = 99;
    cudaArray_t a;

    OK(cudaMallocArray(&a, &f, 30, 20, cudaArraySurfaceLoadStore));
    OK(cudaArrayGetInfo(&back, &extent, &flags, a));
    ck_assert_int_eq(memcmp(&back, &f, sizeof f), 0);
    ck_assert_uint_eq(extent.width, 30);
    ck_assert_uint_eq(extent.height, 20);
    ck_assert_uint_eq(extent.depth, 0);
    ck_assert_uint_eq(flags, cudaArraySurfaceLoadStore);
    OK(cudaFreeArray(a));
}
END_TEST

START_TEST(three_channels_and_mixed_widths_are_no_format)
{
    struct cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0,
                                                               cudaChannelFormatKindUnsigned);
    struct cudaChannelFormatDesc mixed = cudaCreateChannelDesc(8, 16, 0, 0,
                                                               cudaChannelFormatKindUnsigned);
    cudaArray_t a = (cudaArray_t)(size_t)1;

    IS(cudaMallocArray(&a, &three, 4, 4, 0), cudaErrorInvalidChannelDescriptor);
    ck_assert_ptr_null(a);
    IS(cudaMallocArray(&a, &mixed, 4, 4, 0), cudaErrorInvalidChannelDescriptor);
}
END_TEST

START_TEST(a_two_dimensional_copy_goes_there_and_back)
{
    struct cudaChannelFormatDesc f = floats();
    float in[8][16], out[8][16];
    cudaArray_t a, b;

    for (int i = 0; i < 8 * 16; i++)
        in[i / 16][i % 16] = (float)i;
    memset(out, 0, sizeof out);
    OK(cudaMallocArray(&a, &f, 16, 8, 0));
    OK(cudaMallocArray(&b, &f, 16, 8, 0));
    OK(cudaMemcpy2DToArray(a, 0, 0, in, sizeof in[0], sizeof in[0], 8, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, sizeof in[0], 8, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy2DFromArray(out, sizeof out[0], b, 0, 0, sizeof in[0], 8,
                             cudaMemcpyDeviceToHost));
    ck_assert_int_eq(memcmp(in, out, sizeof in), 0);
    OK(cudaFreeArray(a));
    OK(cudaFreeArray(b));
}
END_TEST

/* Columns of an array count in elements, those of plain memory in bytes. */
START_TEST(a_three_dimensional_copy_counts_array_columns_in_elements)
{
    struct cudaChannelFormatDesc f = floats();
    struct cudaExtent extent = {4, 3, 2};
    struct cudaMemcpy3DParms p = {0};
    float in[2][3][4], out[2][3][4];
    cudaArray_t a;

    for (int i = 0; i < 24; i++)
        ((float *)in)[i] = (float)(100 + i);
    memset(out, 0, sizeof out);
    OK(cudaMalloc3DArray(&a, &f, extent, 0));
    p.srcPtr = (struct cudaPitchedPtr){in, 4 * sizeof(float), 4, 3};
    p.dstArray = a;
    p.extent = extent;
    p.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&p));
    p = (struct cudaMemcpy3DParms){0};
    p.srcArray = a;
    p.srcPos.x = 1;
    p.dstPtr = (struct cudaPitchedPtr){out, 4 * sizeof(float), 4, 3};
    p.extent = (struct cudaExtent){3, 3, 2};
    p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++) {
            ck_assert_int_eq(memcmp(out[z][y], &in[z][y][1], 3 * sizeof(float)), 0);
            ck_assert(out[z][y][3] == 0);
        }
    OK(cudaFreeArray(a));
}
END_TEST

START_TEST(pitched_memory_copies_and_sets)
{
    unsigned char in[5][100], out[5][100];
    struct cudaPitchedPtr volume;
    size_t pitch;
    void *p;

    memset(in, 0x42, sizeof in);
    OK(cudaMallocPitch(&p, &pitch, 100, 5));
    ck_assert_uint_eq(pitch % 512, 0);
    OK(cudaMemset2D(p, pitch, 1, 100, 5));
    OK(cudaMemcpy2D(p, pitch, in, 100, 50, 5, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(out, 100, p, pitch, 100, 5, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(out[4][49], 0x42);
    ck_assert_uint_eq(out[4][50], 1);
    IS(cudaMemcpy2D(out, 100, p, pitch, 101, 5, cudaMemcpyDeviceToHost),
       cudaErrorInvalidPitchValue);
    OK(cudaFree(p));
    OK(cudaMalloc3D(&volume, (struct cudaExtent){100, 5, 3}));
    ck_assert_uint_eq(volume.ysize, 5);
    OK(cudaMemset3D(volume, 7, (struct cudaExtent){100, 4, 3}));
    OK(cudaMemcpy(out, (char *)volume.ptr + volume.pitch * (5 * 2 + 3), 100,
                  cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(out[0][99], 7);
    OK(cudaFree(volume.ptr));
}
END_TEST

/* The old one-dimensional copies run over the ends of rows. */
START_TEST(a_byte_count_runs_over_the_ends_of_rows)
{
    struct cudaChannelFormatDesc f = cudaCreateChannelDesc(8, 0, 0, 0,
                                                           cudaChannelFormatKindUnsigned);
    unsigned char in[40], out[40];
    cudaArray_t a;

    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i + 1);
    OK(cudaMallocArray(&a, &f, 16, 4, 0));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    OK(cudaMemcpyToArray(a, 6, 0, in, sizeof in, cudaMemcpyHostToDevice));
    OK(cudaMemcpyFromArray(out, a, 6, 0, sizeof out, cudaMemcpyDeviceToHost));
#pragma GCC diagnostic pop
    ck_assert_mem_eq(in, out, sizeof in);
    OK(cudaMemcpy2DFromArray(out, 16, a, 0, 1, 16, 1, cudaMemcpyDeviceToHost));
    ck_assert_uint_eq(out[0], 11);
    OK(cudaFreeArray(a));
}
END_TEST

START_TEST(levels_of_a_mipmapped_array_shrink)
{
    struct cudaChannelFormatDesc f = floats();
    struct cudaExtent extent;
    cudaMipmappedArray_t m;
    cudaArray_t level;

    OK(cudaMallocMipmappedArray(&m, &f, (struct cudaExtent){64, 32, 0}, 4, 0));
    OK(cudaGetMipmappedArrayLevel(&level, m, 2));
    OK(cudaArrayGetInfo(NULL, &extent, NULL, level));
    ck_assert_uint_eq(extent.width, 16);
    ck_assert_uint_eq(extent.height, 8);
    ck_assert_int_ne(cudaGetMipmappedArrayLevel(&level, m, 4), cudaSuccess);
    OK(cudaFreeMipmappedArray(m));
}
END_TEST

START_TEST(only_deferred_arrays_tell_their_memory_requirements)
{
    struct cudaChannelFormatDesc f = floats();
    struct cudaArrayMemoryRequirements need = {0};
    cudaArray_t a;

    OK(cudaMallocArray(&a, &f, 64, 64, 0));
    IS(cudaArrayGetMemoryRequirements(&need, a, 0), cudaErrorInvalidValue);
    OK(cudaFreeArray(a));
    OK(cudaMallocArray(&a, &f, 64, 64, cudaArrayDeferredMapping));
    OK(cudaArrayGetMemoryRequirements(&need, a, 0));
    ck_assert_uint_ge(need.size, 64 * 64 * 4);
    OK(cudaFreeArray(a));
}
END_TEST

START_TEST(free_of_null_and_of_a_freed_array)
{
    struct cudaChannelFormatDesc f = floats();
    cudaArray_t a;

    OK(cudaFreeArray(NULL));
    OK(cudaFreeMipmappedArray(NULL));
    OK(cudaMallocArray(&a, &f, 16, 16, 0));
    OK(cudaFreeArray(a));
    ck_assert_int_ne(cudaFreeArray(a), cudaSuccess);
}
END_TEST

RUN_TESTS("arrays", an_array_says_what_it_was_made_as,
          three_channels_and_mixed_widths_are_no_format,
          a_two_dimensional_copy_goes_there_and_back,
          a_three_dimensional_copy_counts_array_columns_in_elements,
          pitched_memory_copies_and_sets,
          a_byte_count_runs_over_the_ends_of_rows, levels_of_a_mipmapped_array_shrink,
          only_deferred_arrays_tell_their_memory_requirements, free_of_null_and_of_a_freed_array)
