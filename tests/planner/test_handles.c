/* Sites of handles of physical memory: which get a pool and why others do not, how many handles a pool has, and what a plan of them says of other
 * runs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"
#include "planner/plan_check.h"
#include "planner/verify.h"
#include "tests/planner/plan_test.h"

#define HANDLE TN_KIND_VMM_HANDLE
#define RDMA ((uint64_t)TN_VMM_RDMA)

static program p;
static tn_trace *t;
static tn_plan *plan;

static void begin(void)
{
    scratch_make();
    p = program_begin(1);
}

static void end(void)
{
    tn_plan_free(plan);
    tn_trace_free(t);
    scratch_remove();
}

static void read_plan(tn_plan_options options)
{
    program_end(&p, "one");
    t = open_scratch();
    plan = plan_with(t, options);
    ck_assert_uint_eq(plan->section_count, 1);
}

static void make(uint32_t site, uint64_t handle, uint64_t bytes, uint64_t detail)
{
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = HANDLE, .site = TN_SITE_FIRST + site, .addr = handle, .bytes = bytes, .aux = bytes, .aux2 = detail});
}

static void map(uint64_t at, uint64_t handle, uint64_t bytes) { other(&p, (tn_event){.type = TN_EV_VMM_MAP, .addr = at, .bytes = bytes, .aux = handle}); }
static void unmap(uint64_t at, uint64_t bytes) { other(&p, (tn_event){.type = TN_EV_VMM_UNMAP, .addr = at, .bytes = bytes}); }

static const tn_plan_row *row_of(uint32_t site)
{
    const tn_plan_row *row = tn_plan_row_of(&plan->sections[0], 0x1000 + site, 0);
    ck_assert_ptr_nonnull(row);
    return row;
}

static const tn_plan_tier *pool_of(uint64_t bytes, uint32_t detail)
{
    const tn_plan_section *s = &plan->sections[0];
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].family == TN_FAMILY_HANDLE && s->tiers[i].block == bytes && s->tiers[i].detail == detail)
            return &s->tiers[i];
    return NULL;
}

static void expect_pool(uint64_t bytes, uint32_t detail, uint64_t slots, uint64_t sites)
{
    const tn_plan_tier *pool = pool_of(bytes, detail);
    ck_assert_ptr_nonnull(pool);
    ck_assert_uint_eq(pool->slots, slots);
    ck_assert_uint_eq(pool->sites, sites);
    ck_assert_uint_eq(pool->capacity, slots * bytes);
}

static void expect_native(uint32_t site, const char *reason)
{
    ck_assert_int_eq(row_of(site)->discipline, TN_D_NATIVE);
    ck_assert_msg(strstr(row_of(site)->reason, reason) != NULL, "site %u: %s", site, row_of(site)->reason);
}

START_TEST(sites_share_a_pool_of_one_size_and_properties)
{
    make(1, 0x11, 2 * MIB, 0);
    make(2, 0x12, 2 * MIB, 0);
    give(&p, HANDLE, 0x12);
    make(1, 0x13, 2 * MIB, 0); /* three came, two are there at once */
    make(1, 0x14, 20 * MIB, 0);
    make(3, 0x15, 2 * MIB, RDMA);
    take(&p, TN_KIND_DEVICE, 9, address(1), MIB);
    read_plan((tn_plan_options){0});
    expect_pool(2 * MIB, 0, 2, 2);
    expect_pool(20 * MIB, 0, 1, 1);
    expect_pool(2 * MIB, TN_VMM_RDMA, 1, 1);
    ck_assert_int_eq(row_of(1)->discipline, TN_D_T3);
    ck_assert_int_eq(row_of(1)->family, TN_FAMILY_HANDLE);
    ck_assert_uint_eq(row_of(1)->blocks, 3);
    ck_assert_uint_eq(row_of(1)->largest, 20 * MIB);
    ck_assert_uint_eq(row_of(3)->detail, TN_VMM_RDMA);
    const tn_plan_section *s = &plan->sections[0];
    uint64_t tiers = 0;
    for (size_t i = 0; i < s->tier_count; i++)
        tiers += s->tiers[i].capacity;
    ck_assert_uint_eq(s->total, tiers + s->native_bytes);
    ck_assert_uint_eq(s->native_bytes, 0);
    ck_assert_uint_eq(s->instances, 1);
    ck_assert_uint_eq(excesses(plan, t, NULL), 0);
}
END_TEST

START_TEST(a_site_that_gets_no_pool_says_why)
{
    phase(&p, TN_PHASE_LOADING);
    make(1, 0x11, 2 * MIB, TN_VMM_OTHER);
    make(2, 0x12, 2 * MIB, 0);
    make(2, 0x13, 2 * MIB, RDMA);
    make(3, 0x14, 2 * MIB, 1);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_FD, .addr = 0x14, .aux = 1});
    make(4, 0x15, 2 * MIB, 0);
    map(address(1), 0x15, 2 * MIB);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_RETAIN, .addr = address(1) + 4096, .aux = 0x15});
    make(5, 0x16, 2 * MIB, 0);
    map(address(2), 0x16, 2 * MIB);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_DMABUF, .addr = address(2) + 4096, .aux = 4096});
    make(6, 0x17, 2 * MIB, 0);
    give(&p, HANDLE, 0x17);
    for (unsigned i = 0; i < 6; i++) { /* of another size each time */
        make(7, 0x18, (2 + i) * MIB, 0);
        give(&p, HANDLE, 0x18);
    }
    make(8, 0x19, 2 * MIB, 0);
    phase(&p, TN_PHASE_SERVING);
    make(7, 0x1a, 2 * MIB, 0);
    read_plan((tn_plan_options){0});
    expect_native(1, "properties that no pool has");
    expect_native(2, "several properties");
    expect_native(3, "exported, or retained");
    expect_native(4, "exported, or retained");
    expect_native(5, "exported, or retained");
    expect_native(6, "before loading ended");
    expect_native(7, "so many sizes");
    ck_assert_int_eq(row_of(8)->discipline, TN_D_T3);
    expect_pool(2 * MIB, 0, 1, 1);
}
END_TEST

START_TEST(a_handle_had_back_by_its_address_is_one_that_was_retained)
{
    make(1, 0x11, 2 * MIB, 0);
    map(address(1), 0x11, 2 * MIB);
    give(&p, HANDLE, 0x11);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_RETAIN, .addr = address(1), .aux = 0x11});
    unmap(address(1), 2 * MIB);
    give(&p, HANDLE, 0x11); /* 6 */
    read_plan((tn_plan_options){0});
    expect_native(1, "exported, or retained");
    ck_assert_uint_eq(life(t, 0)->freed, 6);
}
END_TEST

/* A handle is not free for another before it is unmapped everywhere, and what ran meanwhile is done. */
START_TEST(a_pool_has_room_for_handles_whose_work_may_not_be_done)
{
    for (unsigned i = 0; i < 3; i++) {
        make(1, 0x11 + i, 2 * MIB, 0);
        map(address(1), 0x11 + i, 2 * MIB);
        give(&p, HANDLE, 0x11 + i);
        work(&p, 1);
        if (i == 1)
            wait_context(&p);
        unmap(address(1), 2 * MIB);
    }
    read_plan((tn_plan_options){0});
    expect_pool(2 * MIB, 0, 2, 1); /* the first was not clean when the second came; both were when the third did */
    uint64_t waits;
    ck_assert_uint_eq(excesses(plan, t, &waits), 0);
    ck_assert_uint_eq(waits, 0);
}
END_TEST

START_TEST(a_pool_has_twice_as_many_as_there_are_at_once_and_then_a_request_waits)
{
    uint64_t waits;
    work(&p, 2); /* on a stream that nobody waits for */
    for (unsigned i = 0; i < 5; i++) {
        make(1, 0x11 + i, 2 * MIB, 0);
        map(address(1), 0x11 + i, 2 * MIB);
        give(&p, HANDLE, 0x11 + i);
        unmap(address(1), 2 * MIB);
    }
    read_plan((tn_plan_options){0});
    expect_pool(2 * MIB, 0, 2, 1);
    ck_assert_uint_eq(excesses(plan, t, &waits), 0);
    ck_assert_uint_eq(waits, 2); /* of the third and the fifth: each makes two clean */
}
END_TEST

START_TEST(a_handle_that_was_never_mapped_is_clean_at_once)
{
    work(&p, 1);
    for (unsigned i = 0; i < 3; i++) {
        make(1, 0x11, 2 * MIB, 0);
        give(&p, HANDLE, 0x11);
    }
    read_plan((tn_plan_options){0});
    expect_pool(2 * MIB, 0, 1, 1);
}
END_TEST

START_TEST(one_unmap_with_a_gap_in_it_ends_all_mappings_in_its_range)
{
    make(1, 0x11, 2 * MIB, 0);
    make(1, 0x12, 2 * MIB, 0);
    map(address(1), 0x11, 2 * MIB);
    map(address(1) + 6 * MIB, 0x12, 2 * MIB);
    give(&p, HANDLE, 0x11);
    give(&p, HANDLE, 0x12);
    unmap(address(1), 8 * MIB); /* 7 */
    read_plan((tn_plan_options){0});
    ck_assert_uint_eq(life(t, 0)->freed, 7);
    ck_assert_uint_eq(life(t, 1)->freed, 7);
}
END_TEST

START_TEST(handles_belong_to_no_context)
{
    p.ctx = 2;
    take(&p, TN_KIND_DEVICE, 9, address(1), MIB);
    make(1, 0x11, 2 * MIB, 0);
    p.ctx = 1;
    take(&p, TN_KIND_DEVICE, 9, address(2), MIB);
    make(1, 0x12, 2 * MIB, 0);
    other(&p, (tn_event){.type = TN_EV_CONTEXT, .kind = TN_CTX_DESTROY}); /* which takes none with it */
    p.ctx = 2;
    make(1, 0x13, 2 * MIB, 0);
    read_plan((tn_plan_options){0});
    expect_pool(2 * MIB, 0, 3, 1);
    ck_assert_uint_eq(plan->sections[0].instances, 2);
    ck_assert_uint_eq(excesses(plan, t, NULL), 0);
}
END_TEST

/* ---- other runs ---- */

/* A run of its own, with so many handles of a size at once. */
static tn_trace *run_of(const char *name, uint32_t pid, uint64_t bytes, unsigned count)
{
    p = program_begin(pid);
    for (unsigned i = 0; i < count; i++)
        make(1, 0x11 + i, bytes, 0);
    program_end_in(&p, name, "one");
    return open_runs(&name, 1);
}

static void room_of(void *user, const tn_trace *trace, uint32_t site, tn_room *room)
{
    (void)trace;
    (void)site;
    *room = *(const tn_room *)user;
}

START_TEST(another_run_needs_as_many_and_of_the_same_size)
{
    program_end(&p, "unused");
    tn_trace *two = run_of("two", 2, 2 * MIB, 2), *five = run_of("five", 3, 2 * MIB, 5), *large = run_of("large", 4, 4 * MIB, 1);
    plan = plan_with(two, (tn_plan_options){0});
    ck_assert_uint_eq(excesses(plan, two, NULL), 0);
    ck_assert_uint_eq(excesses(plan, five, NULL), 3);
    ck_assert_uint_eq(excesses(plan, large, NULL), 1); /* no handle stands for one of another size */
    tn_plan_free(plan);
    plan = plan_with(two, (tn_plan_options){.room_of = room_of, .user = &(tn_room){.given = 1, .blocks = 5}});
    expect_pool(2 * MIB, 0, 5, 1);
    ck_assert_uint_eq(excesses(plan, five, NULL), 0);
    tn_plan_free(plan);
    plan = plan_with(two, (tn_plan_options){.room_of = room_of, .user = &(tn_room){.given = 1, .size = 4 * MIB}});
    expect_pool(2 * MIB, 0, 2, 1);
    expect_pool(4 * MIB, 0, 1, 0);
    ck_assert_uint_eq(excesses(plan, large, NULL), 0);
    ck_assert_uint_eq(excesses(plan, two, NULL), 0);
    tn_trace_free(two);
    tn_trace_free(five);
    tn_trace_free(large);
}
END_TEST

START_TEST(a_pool_that_cannot_be_is_found)
{
    static const struct { const char *what; uint64_t block, slots; uint32_t detail; uint64_t capacity; } faults[] = {
        {"are not its", 2 * MIB, 3, 0, 4 * MIB}, {"are not its", 2 * MIB, 0, 0, 0},
        {"no pool has the properties", 2 * MIB, 2, TN_VMM_OTHER, 4 * MIB}, {"there is no tier T3 for handle memory", 4 * MIB, 1, 0, 4 * MIB},
        {"there is no tier T3 for handle memory", 2 * MIB, 2, TN_VMM_RDMA, 4 * MIB}};
    char message[TN_PLAN_CHECK_MESSAGE];
    make(1, 0x11, 2 * MIB, 0);
    make(1, 0x12, 2 * MIB, 0);
    read_plan((tn_plan_options){0});
    ck_assert_int_eq(tn_plan_check(plan, message), TN_OK);
    tn_plan_tier *tier = &plan->sections[0].tiers[0];
    const tn_plan_tier sound = *tier;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        tier->block = faults[i].block;
        tier->slots = faults[i].slots;
        tier->detail = faults[i].detail;
        tier->capacity = faults[i].capacity;
        plan->sections[0].rows[0].detail = faults[i].detail & TN_VMM_OTHER; /* which is then no other fault */
        ck_assert_int_eq(tn_plan_check(plan, message), TN_E_FORMAT);
        ck_assert_msg(strstr(message, faults[i].what) != NULL, "%zu: %s", i, message);
        *tier = sound;
        plan->sections[0].rows[0].detail = sound.detail;
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("handles");
    TCase *c = tcase_create("handles");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, sites_share_a_pool_of_one_size_and_properties);
    tcase_add_test(c, a_site_that_gets_no_pool_says_why);
    tcase_add_test(c, a_handle_had_back_by_its_address_is_one_that_was_retained);
    tcase_add_test(c, a_pool_has_room_for_handles_whose_work_may_not_be_done);
    tcase_add_test(c, a_pool_has_twice_as_many_as_there_are_at_once_and_then_a_request_waits);
    tcase_add_test(c, a_handle_that_was_never_mapped_is_clean_at_once);
    tcase_add_test(c, one_unmap_with_a_gap_in_it_ends_all_mappings_in_its_range);
    tcase_add_test(c, handles_belong_to_no_context);
    tcase_add_test(c, another_run_needs_as_many_and_of_the_same_size);
    tcase_add_test(c, a_pool_that_cannot_be_is_found);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
