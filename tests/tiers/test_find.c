/* Whose an address is, inside packed slots and a stack: the live block that the byte lies in, with the bytes that were asked for, and never
 * one that is freed, or the padding behind one. */
#include "fixture.h"
#include "tick_device.h"

static tn_host *host;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 4 * MIB, .quarantine = 4 * MIB});
}

static void end(void)
{
    fixture_finish(host);
}

/* Site 0: two slots beside each other, behind a gap. Site 1: one over both. Site 2: behind another gap, before the region's end. */
static const tn_packed_slot slots[] = {
    {.site = 0, .ordinal = 0, .offset = 512, .bytes = 1024},
    {.site = 0, .ordinal = 1, .offset = 1536, .bytes = 1024},
    {.site = 1, .offset = 512, .bytes = 4096},
    {.site = 2, .offset = 6144, .bytes = 1024},
};
static const tn_packed_plan plan = {.slots = slots, .slot_count = 4, .site_count = 3, .capacity = 8192};
static tn_packed *packed;

static void expect_packed(tn_mem_error wanted, size_t at, size_t base, size_t bytes)
{
    char *region = tn_packed_region(packed).data;
    void *found = NULL;
    size_t found_bytes = 0;
    expect_error(wanted, tn_packed_find(packed, region + at, &found, &found_bytes));
    ck_assert_ptr_eq(found, wanted == TN_MEM_OK ? region + base : NULL);
    ck_assert_uint_eq(found_bytes, bytes);
    expect_error(wanted, tn_packed_find(packed, region + at, NULL, NULL));
}

static char *take(uint32_t site, size_t bytes)
{
    tn_stable_span span;
    expect_ok(tn_packed_take(packed, site, bytes, TN_WORK_NO_QUEUE, &span, NULL));
    return tn_stable_data(span);
}

static void begin_packed(void)
{
    expect_ok(tn_packed_create(&(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &plan, .work = device_begin()},
                               &packed));
}

START_TEST(a_byte_of_a_packed_block_is_that_blocks)
{
    begin_packed();
    expect_packed(TN_MEM_E_STALE, 600, 0, 0); /* nobody ever had it */
    char *first = take(0, 1000), *second = take(0, 1024), *last = take(2, 1);
    expect_packed(TN_MEM_OK, 512, 512, 1000);
    expect_packed(TN_MEM_OK, 1511, 512, 1000);
    expect_packed(TN_MEM_E_STALE, 1512, 0, 0); /* more than was asked for */
    expect_packed(TN_MEM_OK, 1536, 1536, 1024);
    expect_packed(TN_MEM_OK, 2559, 1536, 1024);
    expect_packed(TN_MEM_E_STALE, 2560, 0, 0);
    expect_packed(TN_MEM_OK, 6144, 6144, 1);
    expect_packed(TN_MEM_E_STALE, 6145, 0, 0);
    expect_ok(tn_packed_free(packed, first, NULL));
    expect_packed(TN_MEM_E_STALE, 512, 0, 0);
    expect_packed(TN_MEM_OK, 1600, 1536, 1024);
    expect_ok(tn_packed_free(packed, second, NULL));
    char *over = take(1, 3000);
    expect_packed(TN_MEM_OK, 1536, 512, 3000);
    expect_packed(TN_MEM_OK, 3511, 512, 3000);
    expect_packed(TN_MEM_E_STALE, 3512, 0, 0);
    expect_ok(tn_packed_free(packed, over, NULL));
    expect_ok(tn_packed_free(packed, last, NULL));
    expect_ok(tn_packed_destroy(&packed));
}
END_TEST

START_TEST(a_gap_is_nobodys_and_what_lies_outside_is_an_argument)
{
    begin_packed();
    char *region = tn_packed_region(packed).data, *block = take(0, 1024);
    expect_packed(TN_MEM_E_STALE, 0, 0, 0);
    expect_packed(TN_MEM_E_STALE, 511, 0, 0);
    expect_packed(TN_MEM_E_STALE, 5000, 0, 0);
    expect_packed(TN_MEM_E_STALE, 7168, 0, 0);
    expect_packed(TN_MEM_E_STALE, 8191, 0, 0);
    expect_packed(TN_MEM_E_ARGUMENT, 8192, 0, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_find(packed, region - 1, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_find(packed, NULL, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_find(NULL, block, NULL, NULL));
    expect_ok(tn_packed_free(packed, block, NULL));
    expect_ok(tn_packed_destroy(&packed));
}
END_TEST

START_TEST(a_byte_of_the_stack_is_its_live_blocks)
{
    tn_scratch *stack;
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = tn_host_backend(host), .tag = "stack", .capacity = 8192}, &stack));
    tn_stable_span spans[3];
    const size_t sizes[] = {100, 256, 1};
    for (int i = 0; i < 3; i++)
        expect_ok(tn_scratch_take(stack, sizes[i], 256, &spans[i]));
    char *base = tn_stable_data(spans[0]);
    void *found;
    size_t bytes;
    for (int i = 0; i < 3; i++) {
        char *data = tn_stable_data(spans[i]);
        expect_ok(tn_scratch_find(stack, data, &found, &bytes));
        ck_assert(found == data && bytes == sizes[i]);
        expect_ok(tn_scratch_find(stack, data + sizes[i] - 1, &found, &bytes));
        ck_assert(found == data && bytes == sizes[i]);
    }
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base + 100, NULL, NULL));
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base + 513, NULL, NULL));
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base + 8191, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_find(stack, base + 8192, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_find(stack, base - 1, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_scratch_find(NULL, base, NULL, NULL));
    expect_ok(tn_scratch_free(stack, tn_stable_data(spans[1]))); /* a tombstone */
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base + 256, NULL, NULL));
    expect_ok(tn_scratch_find(stack, base + 512, NULL, NULL));
    expect_ok(tn_scratch_free(stack, tn_stable_data(spans[2])));
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base + 512, NULL, NULL));
    tn_scratch_reset(stack);
    expect_error(TN_MEM_E_STALE, tn_scratch_find(stack, base, NULL, NULL));
    expect_ok(tn_scratch_destroy(&stack));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("find");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_byte_of_a_packed_block_is_that_blocks);
    tcase_add_test(tests, a_gap_is_nobodys_and_what_lies_outside_is_an_argument);
    tcase_add_test(tests, a_byte_of_the_stack_is_its_live_blocks);
    return fixture_run("find", tests);
}
