/* The validator, beside a plan that holds: whatever is planted in it alone is found and named. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_check.h"

#define MIB ((uint64_t)1 << 20)
#define FAR ((uint64_t)1 << 57) /* beyond what a size may be */

enum { T1, T2, T3, PACKED, STACKED, PINNED, NATIVE, ROWS };
enum { TIER_T1, TIER_T2, TIER_T3, TIER_PACKED, TIER_T4, TIER_T5B, TIER_SPARE, TIERS };

/* One site of each discipline; its copy points into itself once it is used. */
typedef struct sample {
    uint64_t small[2], large[1], pinned[2];
    tn_plan_class classes[2], pinned_class;
    tn_plan_row rows[ROWS];
    tn_plan_tier tiers[TIERS];
    tn_plan_region regions[2];
    tn_plan_charge charges[1];
    tn_plan_section section;
    tn_plan plan;
} sample;

static void sample_make(sample *s)
{
    *s = (sample){
        .small = {0, 2560},
        .large = {4096},
        .pinned = {0, 8192},
        .classes = {{.bytes = 1024, .alignment = 512, .offsets = s->small, .count = 2}, {.bytes = 4000, .alignment = 512, .offsets = s->large, .count = 1}},
        .pinned_class = {.bytes = 8192, .alignment = 4096, .offsets = s->pinned, .count = 2},
        .rows = {[T1] = {.key = 1, .discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .capacity = 3 * MIB, .blocks = 3, .largest = MIB},
                 [T2] = {.key = 2, .discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = MIB, .blocks = 1, .largest = MIB},
                 [T3] = {.key = 3, .discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .capacity = 4 * MIB, .blocks = 4, .largest = MIB, .held = 1},
                 [PACKED] = {.key = 4, .discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .capacity = 6048, .blocks = 3, .largest = 4000,
                             .classes = s->classes, .class_count = 2},
                 [STACKED] = {.key = 5, .discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .capacity = 4096, .blocks = 2, .largest = 2048},
                 [PINNED] = {.key = 6, .discipline = TN_D_T5B, .family = TN_FAMILY_PINNED, .detail = 1, .capacity = 16384, .blocks = 2, .largest = 8192,
                             .classes = &s->pinned_class, .class_count = 1},
                 [NATIVE] = {.key = 6, .python = 9, .discipline = TN_D_NATIVE, .family = TN_FAMILY_COUNT, .capacity = 77}},
        .tiers = {[TIER_T1] = {.discipline = TN_D_T1, .family = TN_FAMILY_DEVICE, .capacity = 4 * MIB},
                  [TIER_T2] = {.discipline = TN_D_T2, .family = TN_FAMILY_DEVICE, .capacity = 2 * MIB},
                  [TIER_T3] = {.discipline = TN_D_T3, .family = TN_FAMILY_DEVICE, .capacity = 4 * MIB},
                  [TIER_PACKED] = {.discipline = TN_D_PACKED, .family = TN_FAMILY_ASYNC, .capacity = 8192},
                  [TIER_T4] = {.discipline = TN_D_T4, .family = TN_FAMILY_ASYNC, .capacity = 8192, .streams = 3},
                  [TIER_T5B] = {.discipline = TN_D_T5B, .family = TN_FAMILY_PINNED, .detail = 1, .capacity = 16384},
                  [TIER_SPARE] = {.discipline = TN_D_T2, .family = TN_FAMILY_ASYNC}},
        .regions = {{.key = 1, .first_bytes = MIB, .capacity = 3 * MIB, .count = 3, .times = 1}, {.key = 1, .first_bytes = 7, .capacity = 7, .count = 1}},
        .charges = {{.name = "context", .bytes = 500}},
        .section = {.native_bytes = 77, .total = 77 + 500 + 10 * MIB + 8192 + 3 * 8192, .rows = s->rows, .row_count = ROWS, .tiers = s->tiers,
                    .tier_count = TIERS, .regions = s->regions, .region_count = 2, .charges = s->charges, .charge_count = 1},
        .plan = {.sections = &s->section, .section_count = 1},
    };
}

START_TEST(a_plan_that_holds_is_found_to_hold)
{
    sample s;
    char message[TN_PLAN_CHECK_MESSAGE];
    sample_make(&s);
    ck_assert_msg(tn_plan_check(&s.plan, message) == TN_OK, "%s", message);
    ck_assert_str_eq(message, "");
    s.plan.gap = FAR;
    ck_assert_int_eq(tn_plan_check(&s.plan, message), TN_E_FORMAT);
    ck_assert_str_eq(message, "gap_bytes: 144115188075855872 cannot be");
    s.plan.gap = 512;
    s.section.total++; /* the second section is looked at as well */
    tn_plan_section two[2] = {s.section, s.section};
    two[0].total--;
    s.plan.sections = two;
    s.plan.section_count = 2;
    ck_assert_int_eq(tn_plan_check(&s.plan, message), TN_E_FORMAT);
    ck_assert_ptr_eq(strstr(message, "sections[1]: its total is "), message);
}
END_TEST

static const struct { const char *says; uint64_t value; size_t at; unsigned bytes; } faults[] = {
#define FAULT(text, field, to) {text, (uint64_t)(to), offsetof(sample, field), sizeof(((sample *)0)->field)}
    FAULT("site 0000000000000004: a slot of 0 bytes, aligned to 512, cannot be", classes[0].bytes, 0),
    FAULT("cannot be", classes[1].bytes, FAR),
    FAULT("a slot of 1024 bytes, aligned to 768, cannot be", classes[0].alignment, 768),
    FAULT("aligned to 256, cannot be", classes[0].alignment, 256),
    FAULT("slots of 8192 bytes are aligned to 512, less than the driver's", pinned_class.alignment, 512),
    FAULT("the class of 4000 bytes has no slot", classes[1].count, 0),
    FAULT("offset 2561 is no multiple of 512", small[1], 2561),
    FAULT("the slot of 4000 bytes at 4608 reaches beyond the tier's 8192", large[0], 4608),
    FAULT("reaches beyond the tier's 8192", large[0], UINT64_MAX / 512 * 512),
    FAULT("two slots of one class overlap at 512", small[1], 512),
    FAULT("two slots of one class overlap at 2560", small[0], 2560),
    FAULT("two slots of one class overlap at 3072", small[0], 3072), /* the later one first */
    FAULT("site 0000000000000001: a size is too large", rows[T1].capacity, FAR),
    FAULT("a size is too large", rows[T1].largest, FAR),
    FAULT("a size is too large", rows[T1].blocks, FAR),
    FAULT("a size is too large", rows[T1].runner_capacity, FAR),
    FAULT("site 0000000000000006: it is native and has slots", rows[NATIVE].class_count, 1),
    FAULT("T1 is not for other memory", rows[T1].family, TN_FAMILY_COUNT),
    FAULT("T5b is not for device memory", rows[PINNED].family, TN_FAMILY_DEVICE),
    FAULT("there is no tier T5b for pinned memory", rows[PINNED].detail, 2),
    FAULT("there is no tier T3 for async memory", rows[T3].family, TN_FAMILY_ASYNC),
    FAULT("packed, and no slots", rows[PACKED].class_count, 0),
    FAULT("site 0000000000000004: graphs hold its addresses, and it shares them", rows[PACKED].held, 1),
    FAULT("site 0000000000000005: graphs hold its addresses, and it shares them", rows[STACKED].held, 1),
    FAULT("5 blocks of 1048576 bytes are more than its 4194304", rows[T3].blocks, 5),
    FAULT("blocks of 0 bytes are more than its", rows[T3].largest, 0),
    FAULT("its classes are not in the order of their sizes", classes[1].bytes, 1024),
    FAULT("no slot holds its largest request, 4001 bytes", rows[PACKED].largest, 4001),
    FAULT("site 0000000000000002: sites are not in the order of their keys, or one is there twice", rows[T1].key, 3),
    FAULT("site 0000000000000006: sites are not in the order of their keys, or one is there twice", rows[NATIVE].python, 0),
    FAULT("tier T5b: its capacity is too large", tiers[TIER_T5B].capacity, FAR),
    FAULT("tier T4: its capacity is too large", tiers[TIER_T4].streams, FAR),
    FAULT("tier T5b is not for this family of memory", tiers[TIER_SPARE].discipline, TN_D_T5B),
    FAULT("tier T2 is not for this family of memory", tiers[TIER_SPARE].family, TN_FAMILY_COUNT),
    FAULT("tier T3 has 4194303 bytes for sites that take 4194304", tiers[TIER_T3].capacity, 4 * MIB - 1),
    FAULT("regions[0]: its first request is of no T1 site", regions[0].key, 2),
    FAULT("regions[1]: its first request is of no T1 site", regions[1].key, 99),
    FAULT("regions[0]: 1048575 bytes for 3 requests, the first of 1048576, cannot be", regions[0].capacity, MIB - 1),
    FAULT("regions[1]", regions[1].capacity, FAR),
    FAULT("regions[1]: 7 bytes for 0 requests", regions[1].count, 0),
    FAULT("its total is", section.native_bytes, 78),
    FAULT("its total is", charges[0].bytes, 501),
    FAULT("its total is", charges[0].bytes, UINT64_MAX),
    FAULT("its total is", tiers[TIER_T4].streams, 2),
    FAULT("its total is", tiers[TIER_T2].capacity, MIB),
};

/* Every field is an unsigned number or an enumeration, in this machine's order of bytes. */
START_TEST(a_planted_fault_is_found_and_named)
{
    sample s;
    char message[TN_PLAN_CHECK_MESSAGE];
    sample_make(&s);
    memcpy((char *)&s + faults[_i].at, &faults[_i].value, faults[_i].bytes);
    ck_assert_msg(tn_plan_check(&s.plan, message) == TN_E_FORMAT, "fault %d (%s) is not found", _i, faults[_i].says);
    ck_assert_msg(strncmp(message, "sections[0]: ", 13) == 0 && strstr(message, faults[_i].says) != NULL, "fault %d: %s, not %s", _i, message, faults[_i].says);
}
END_TEST

START_TEST(a_tier_is_there_once_for_each_kind_of_pinned_memory)
{
    sample s;
    char message[TN_PLAN_CHECK_MESSAGE];
    sample_make(&s);
    tn_plan_tier tiers[TIERS + 1];
    memcpy(tiers, s.tiers, sizeof s.tiers);
    tiers[TIERS] = s.tiers[TIER_T5B];
    s.section.tiers = tiers;
    s.section.tier_count = TIERS + 1;
    ck_assert_int_eq(tn_plan_check(&s.plan, message), TN_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(message, "tier T5b is there twice for pinned memory"));
    tiers[TIERS].detail = 2;
    ck_assert_msg(tn_plan_check(&s.plan, message) == TN_OK, "%s", message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_check");
    TCase *c = tcase_create("plan_check");
    tcase_add_test(c, a_plan_that_holds_is_found_to_hold);
    tcase_add_loop_test(c, a_planted_fault_is_found_and_named, 0, sizeof faults / sizeof faults[0]);
    tcase_add_test(c, a_tier_is_there_once_for_each_kind_of_pinned_memory);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
