/* Sizes at the edges of their type, and the texts of the errors. */
#include <string.h>

#include "fixture.h"
#include "tiers/metadata_use.h"
#include "tiers/size.h"

START_TEST(sums_that_do_not_fit_are_refused)
{
    size_t sum = 7;
    ck_assert(tn_size_add(SIZE_MAX - 1, 1, &sum));
    ck_assert_uint_eq(sum, SIZE_MAX);
    sum = 7;
    ck_assert(!tn_size_add(SIZE_MAX, 1, &sum));
    ck_assert_uint_eq(sum, 7);
}
END_TEST

START_TEST(products_that_do_not_fit_are_refused)
{
    size_t product = 7;
    ck_assert(tn_size_multiply((size_t)1 << 32, ((size_t)1 << 32) - 1, &product));
    product = 7;
    ck_assert(!tn_size_multiply((size_t)1 << 32, (size_t)1 << 32, &product));
    ck_assert_uint_eq(product, 7);
    ck_assert(tn_size_multiply(0, SIZE_MAX, &product));
    ck_assert_uint_eq(product, 0);
}
END_TEST

START_TEST(aligning_up_never_wraps)
{
    size_t aligned = 7;
    ck_assert(!tn_size_align_up(SIZE_MAX, 256, &aligned));
    ck_assert(!tn_size_align_up(SIZE_MAX - 254, 256, &aligned));
    ck_assert_uint_eq(aligned, 7);
    ck_assert(tn_size_align_up(SIZE_MAX - 255, 256, &aligned));
    ck_assert_uint_eq(aligned, SIZE_MAX - 255);
    ck_assert(tn_size_align_up(0, 256, &aligned));
    ck_assert_uint_eq(aligned, 0);
    ck_assert(tn_size_align_up(257, 256, &aligned));
    ck_assert_uint_eq(aligned, 512);
    ck_assert(tn_size_align_up(SIZE_MAX, 1, &aligned));
    ck_assert_uint_eq(aligned, SIZE_MAX);
}
END_TEST

START_TEST(powers_of_two_are_known)
{
    ck_assert(!tn_is_power_of_two(0));
    ck_assert(tn_is_power_of_two(1));
    ck_assert(!tn_is_power_of_two(3));
    ck_assert(tn_is_power_of_two((size_t)1 << 63));
    ck_assert(!tn_is_power_of_two(SIZE_MAX));
}
END_TEST

START_TEST(each_error_has_a_text_of_its_own)
{
    const char *unknown = tn_mem_error_text(TN_MEM_ERROR_COUNT);
    ck_assert_str_eq(unknown, tn_mem_error_text((tn_mem_error)-1));
    for (int i = 0; i < TN_MEM_ERROR_COUNT; i++) {
        ck_assert_str_ne(tn_mem_error_text((tn_mem_error)i), unknown);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(tn_mem_error_text((tn_mem_error)i), tn_mem_error_text((tn_mem_error)j));
    }
}
END_TEST

static void *no_call(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self, (void)block, (void)old_bytes, (void)new_bytes;
    ck_abort_msg("there was no need to ask for memory");
}

START_TEST(an_array_grows_where_it_must_and_not_beyond_all_memory)
{
    tn_metadata metadata = {.resize = no_call};
    void *array = &metadata;
    size_t room = 4;
    ck_assert(tn_metadata_grow(&metadata, &array, &room, 4, 16)); /* it is that large */
    ck_assert(tn_metadata_grow(&metadata, &array, &room, 0, 16));
    ck_assert(!tn_metadata_grow(&metadata, &array, &room, SIZE_MAX / 8, 16));
    room = SIZE_MAX / 2 + 1;
    ck_assert(!tn_metadata_grow(&metadata, &array, &room, SIZE_MAX, 1));
    ck_assert_ptr_eq(array, &metadata);
    metadata = tn_metadata_or_malloc(NULL);
    array = NULL;
    room = 0;
    ck_assert(tn_metadata_grow(&metadata, &array, &room, 1, 16));
    ck_assert_uint_eq(room, 8);
    ck_assert(tn_metadata_grow(&metadata, &array, &room, 9, 16));
    ck_assert_uint_eq(room, 16);
    ck_assert(tn_metadata_grow(&metadata, &array, &room, 100, 16));
    ck_assert_uint_eq(room, 100);
    tn_metadata_free(&metadata, array, room * 16);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("size");
    tcase_add_test(tests, an_array_grows_where_it_must_and_not_beyond_all_memory);
    tcase_add_test(tests, sums_that_do_not_fit_are_refused);
    tcase_add_test(tests, products_that_do_not_fit_are_refused);
    tcase_add_test(tests, aligning_up_never_wraps);
    tcase_add_test(tests, powers_of_two_are_known);
    tcase_add_test(tests, each_error_has_a_text_of_its_own);
    return fixture_run("size", tests);
}
