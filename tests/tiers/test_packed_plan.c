/* The check of a packed plan: what each fault looks like, that its neighbour without it is sound, and that sizes near the end of size_t
 * are faults, not wrapped. */
#include "fixture.h"

enum { MOST = 6 };

typedef struct table {
    tn_packed_slot slots[MOST];
    size_t count, capacity;
} table;

/* Two sites; the first has two classes, its first class two ordinals. Sites share addresses. */
static table sound(void)
{
    return (table){
        .slots = {{.site = 0, .size_class = 3, .ordinal = 0, .offset = 0, .bytes = 512},
                  {.site = 0, .size_class = 3, .ordinal = 1, .offset = 512, .bytes = 512, .alignment = 512},
                  {.site = 0, .size_class = 5, .ordinal = 0, .offset = 256, .bytes = 1000},
                  {.site = 2, .size_class = 0, .ordinal = 0, .offset = 0, .bytes = 2048, .alignment = 1}},
        .count = 4,
        .capacity = 2048,
    };
}

static void expect_fault(const table *t, tn_packed_fault fault, size_t slot)
{
    tn_packed_plan plan = {.slots = t->slots, .slot_count = t->count, .site_count = 3, .capacity = t->capacity};
    tn_packed_problem problem;
    expect_error(fault == TN_PACKED_SOUND ? TN_MEM_OK : TN_MEM_E_ARGUMENT, tn_packed_plan_check(&plan, NULL, &problem));
    ck_assert_msg(problem.fault == fault && problem.slot == slot, "slot %zu: %s, not slot %zu: %s", problem.slot,
                  tn_packed_fault_text(problem.fault), slot, tn_packed_fault_text(fault));
}

START_TEST(slots_of_different_classes_and_sites_may_share_addresses)
{
    table t = sound();
    expect_fault(&t, TN_PACKED_SOUND, 0);
}
END_TEST

START_TEST(a_plan_without_a_table_is_none)
{
    table t = sound();
    t.count = 0;
    expect_fault(&t, TN_PACKED_NO_TABLE, 0);
    t.count = TN_PACKED_SLOTS_MAX + 1;
    expect_fault(&t, TN_PACKED_NO_TABLE, 0);
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_plan_check(NULL, NULL, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_plan_check(&(tn_packed_plan){.slot_count = 1, .site_count = 1, .capacity = 1}, NULL, NULL));
}
END_TEST

START_TEST(sites_are_below_their_count)
{
    table t = sound();
    t.slots[3].site = 3;
    expect_fault(&t, TN_PACKED_BAD_SITE, 3);
    t.slots[3].site = UINT32_MAX;
    expect_fault(&t, TN_PACKED_BAD_SITE, 3);
}
END_TEST

START_TEST(slots_come_in_order_and_each_once)
{
    table t = sound();
    t.slots[1].ordinal = 0;
    expect_fault(&t, TN_PACKED_BAD_ORDER, 1);
    t = sound();
    t.slots[2].size_class = 2;
    expect_fault(&t, TN_PACKED_BAD_ORDER, 2);
    t = sound();
    t.slots[0].site = t.slots[1].site = 1;
    expect_fault(&t, TN_PACKED_BAD_ORDER, 2);
}
END_TEST

START_TEST(ordinals_have_no_holes)
{
    table t = sound();
    t.slots[0].ordinal = 1;
    expect_fault(&t, TN_PACKED_BAD_ORDINAL, 0);
    t = sound();
    t.slots[1].ordinal = 2;
    expect_fault(&t, TN_PACKED_BAD_ORDINAL, 1);
    t = sound();
    t.slots[3].ordinal = 1;
    expect_fault(&t, TN_PACKED_BAD_ORDINAL, 3);
}
END_TEST

START_TEST(a_class_has_one_size_and_the_next_a_larger)
{
    table t = sound();
    t.slots[1].bytes = 511;
    expect_fault(&t, TN_PACKED_BAD_BYTES, 1);
    t = sound();
    t.slots[2].bytes = 512;
    expect_fault(&t, TN_PACKED_BAD_BYTES, 2);
    t = sound();
    t.slots[3].bytes = 0;
    expect_fault(&t, TN_PACKED_BAD_BYTES, 3);
}
END_TEST

START_TEST(offsets_are_aligned)
{
    table t = sound();
    t.slots[2].offset = 255; /* the default is 256 */
    expect_fault(&t, TN_PACKED_BAD_ALIGNMENT, 2);
    t = sound();
    t.slots[1].alignment = 1024;
    expect_fault(&t, TN_PACKED_BAD_ALIGNMENT, 1);
    t.slots[1].alignment = 3;
    expect_fault(&t, TN_PACKED_BAD_ALIGNMENT, 1);
    t.slots[1].alignment = TN_ALIGNMENT_MAX * 2;
    expect_fault(&t, TN_PACKED_BAD_ALIGNMENT, 1);
}
END_TEST

START_TEST(slots_end_within_the_region_also_where_the_sum_would_wrap)
{
    table t = sound();
    t.capacity = 2047;
    expect_fault(&t, TN_PACKED_BAD_CAPACITY, 3);
    t = sound();
    t.slots[3].bytes = SIZE_MAX;
    expect_fault(&t, TN_PACKED_BAD_CAPACITY, 3);
    t.slots[3].offset = SIZE_MAX - 1;
    t.slots[3].bytes = 4;
    expect_fault(&t, TN_PACKED_BAD_CAPACITY, 3);
    t = sound();
    t.capacity = 0;
    expect_fault(&t, TN_PACKED_BAD_CAPACITY, 0);
    t.capacity = (size_t)PTRDIFF_MAX + 1;
    expect_fault(&t, TN_PACKED_BAD_CAPACITY, 0);
    t.capacity = PTRDIFF_MAX;
    expect_fault(&t, TN_PACKED_SOUND, 0);
}
END_TEST

START_TEST(slots_of_one_class_share_no_byte)
{
    table t = sound();
    t.slots[1].offset = 256;
    t.slots[1].alignment = 256;
    expect_fault(&t, TN_PACKED_BAD_OVERLAP, 1);
    t.slots[1].offset = 511;
    t.slots[1].alignment = 1;
    expect_fault(&t, TN_PACKED_BAD_OVERLAP, 1);
    t.slots[1].offset = 512;
    expect_fault(&t, TN_PACKED_SOUND, 0);
    t.slots[0].offset = 1024;
    expect_fault(&t, TN_PACKED_SOUND, 0);
}
END_TEST

/* All but two of a large class lie apart, in no order. */
START_TEST(one_overlap_among_thousands_is_found)
{
    enum { COUNT = 5000 };
    tn_packed_slot *slots = calloc(COUNT, sizeof *slots);
    for (uint32_t i = 0; i < COUNT; i++)
        slots[i] = (tn_packed_slot){.ordinal = i, .offset = (size_t)(i * 2477u % COUNT) * 512, .bytes = 512};
    tn_packed_plan plan = {.slots = slots, .slot_count = COUNT, .site_count = 1, .capacity = COUNT * 512};
    tn_packed_problem problem;
    expect_ok(tn_packed_plan_check(&plan, NULL, &problem));
    slots[3001].offset -= slots[3001].offset == 0 ? 0 : 256;
    expect_error(TN_MEM_E_ARGUMENT, tn_packed_plan_check(&plan, NULL, &problem));
    ck_assert_int_eq(problem.fault, TN_PACKED_BAD_OVERLAP);
    size_t a = slots[problem.slot].offset, b = slots[problem.other].offset;
    ck_assert(problem.slot == 3001 || problem.other == 3001);
    ck_assert_uint_lt(a > b ? a - b : b - a, 512);
    free(slots);
}
END_TEST

static void *no_memory(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self, (void)block, (void)old_bytes, (void)new_bytes;
    return NULL;
}

START_TEST(what_could_not_be_checked_is_not_called_sound)
{
    table t = sound();
    tn_packed_plan plan = {.slots = t.slots, .slot_count = t.count, .site_count = 3, .capacity = t.capacity};
    expect_error(TN_MEM_E_HOST_MEMORY, tn_packed_plan_check(&plan, &(tn_metadata){.resize = no_memory}, NULL));
}
END_TEST

START_TEST(every_fault_has_a_text_of_its_own)
{
    const char *unknown = tn_packed_fault_text(TN_PACKED_FAULT_COUNT);
    for (int i = 0; i < TN_PACKED_FAULT_COUNT; i++) {
        ck_assert_str_ne(tn_packed_fault_text((tn_packed_fault)i), unknown);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(tn_packed_fault_text((tn_packed_fault)i), tn_packed_fault_text((tn_packed_fault)j));
    }
    ck_assert_str_eq(unknown, "an unknown fault");
    ck_assert_str_eq(tn_packed_fault_text((tn_packed_fault)-1), unknown);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("packed_plan");
    tcase_add_test(tests, slots_of_different_classes_and_sites_may_share_addresses);
    tcase_add_test(tests, a_plan_without_a_table_is_none);
    tcase_add_test(tests, sites_are_below_their_count);
    tcase_add_test(tests, slots_come_in_order_and_each_once);
    tcase_add_test(tests, ordinals_have_no_holes);
    tcase_add_test(tests, a_class_has_one_size_and_the_next_a_larger);
    tcase_add_test(tests, offsets_are_aligned);
    tcase_add_test(tests, slots_end_within_the_region_also_where_the_sum_would_wrap);
    tcase_add_test(tests, slots_of_one_class_share_no_byte);
    tcase_add_test(tests, one_overlap_among_thousands_is_found);
    tcase_add_test(tests, what_could_not_be_checked_is_not_called_sound);
    tcase_add_test(tests, every_fault_has_a_text_of_its_own);
    return fixture_run("packed_plan", tests);
}
