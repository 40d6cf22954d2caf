/* The figures of plans, one by one, from histories so short that they can be said beforehand: tiers in their order with capacities and sums, how
 * slots share, what is written beside a site, when one discipline gives way to another. */
#define _GNU_SOURCE
#include "planner/gap.h"
#include "tests/planner/plan_figures.h"

/* ---- tiers and sums ---- */

static void one_charge(void *user, tn_plan *made, const tn_section *s, tn_plan_section *out)
{
    (void)user;
    (void)s;
    for (unsigned i = 0; i < 2; i++)
        *tn_plan_add_charge(made, out) = (tn_plan_charge){.name = "context", .source = "a test", .bytes = 1000 + i};
}

START_TEST(tiers_stand_in_their_order_and_add_up)
{
    pinned(1, 1, 5000, 4); /* staging: gone before serving */
    pinned(1, 2, 5000, 4);
    give(&p, PINNED, address(1));
    give(&p, PINNED, address(2));
    pinned(2, 3, 100, 2);
    pinned(3, 4, 4097, 1);
    pinned(4, 5, 8192, 1);
    pinned(5, 6, 1, 7);
    take(&p, TN_KIND_MANAGED, 6, address(7), 5 * MIB);
    take(&p, TN_KIND_MANAGED, 6, address(8), 3 * MIB);
    give(&p, TN_KIND_MANAGED, address(7));
    take(&p, DEVICE, 7, address(9), 3 * MIB); /* kept */
    take(&p, DEVICE, 8, address(10), 6000);
    phase(&p, TN_PHASE_SERVING);
    comes_and_goes(9, 11, 70000, 3);
    for (unsigned round = 0; round < 2; round++)
        for (uint32_t stream = 1; stream < 4; stream++) { /* stacks on three streams, the second the highest */
            take_on(&p, 10, address(12 + stream), 4096, stream);
            if (stream == 2)
                take_on(&p, 11, address(20), 8192, stream);
            if (stream == 2)
                give_on(&p, ASYNC, address(20), stream);
            give_on(&p, ASYNC, address(12 + stream), stream);
            wait_stream(&p, stream);
        }
    phase(&p, TN_PHASE_PLANNING); /* nothing happens in it */
    plan_it((tn_plan_options){.charger = one_charge, .budget = 7});
    static const struct { tn_discipline d; tn_family f; uint32_t flags; uint64_t sites, capacity, high_water, streams; } wanted[] = {
        {TN_D_T2, TN_FAMILY_DEVICE, 0, 2, 3 * MIB + 6144, 4 * MIB + 6144, 0}, {TN_D_PACKED, TN_FAMILY_DEVICE, 0, 1, 70144, 70144, 0},
        {TN_D_PACKED, TN_FAMILY_ASYNC, 0, 2, 12288, 12288, 0}, {TN_D_T5A, TN_FAMILY_PINNED, 4, 1, 16384, 16384, 0},
        {TN_D_T5B, TN_FAMILY_PINNED, 1, 2, 12800, 16384, 0}, {TN_D_T5B, TN_FAMILY_PINNED, 2, 1, 512, 4096, 0}, {TN_D_T5B, TN_FAMILY_PINNED, 7, 1, 512, 4096, 0}};
    ck_assert_uint_eq(section->tier_count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < section->tier_count; i++) {
        const tn_plan_tier *x = &section->tiers[i];
        ck_assert(x->discipline == wanted[i].d && x->family == wanted[i].f);
        ck_assert_uint_eq(x->detail, wanted[i].flags);
        ck_assert_uint_eq(x->sites, wanted[i].sites);
        ck_assert_uint_eq(x->capacity, wanted[i].capacity);
        ck_assert_uint_eq(x->live_peak, wanted[i].high_water);
        ck_assert_uint_eq(x->streams, wanted[i].streams);
    }
    ck_assert_uint_eq(section->native_bytes, 8 * MIB);
    ck_assert_uint_eq(section->charge_count, 2);
    ck_assert_uint_eq(section->total, 8 * MIB + 3 * MIB + 6144 + 70144 + 12288 + 2001);
    ck_assert_uint_eq(section->device_live_peak, 4 * MIB + 6144 + 70144);
    ck_assert_uint_eq(section->instances, 1);
    ck_assert_uint_eq(plan->processes, 1);
    ck_assert_uint_eq(plan->events, 43);
    ck_assert_uint_eq(plan->budget, 7);
    static const tn_plan_phase phases[] = {{TN_PHASE_LOADING, 4 * MIB + 6144, 8 * MIB, 24576},
                                           {TN_PHASE_PLANNING, 4 * MIB + 6144, 3 * MIB, 24576},
                                           {TN_PHASE_SERVING, 4 * MIB + 6144 + 70144, 3 * MIB, 24576}};
    ck_assert_uint_eq(section->phase_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const tn_plan_phase *x = &section->phases[i];
        ck_assert_uint_eq(x->phase, phases[i].phase);
        ck_assert_uint_eq(x->device_bytes, phases[i].device_bytes);
        ck_assert_uint_eq(x->native_bytes, phases[i].native_bytes);
        ck_assert_uint_eq(x->pinned_bytes, phases[i].pinned_bytes);
    }
}
END_TEST

START_TEST(a_stack_for_each_stream_counts_as_often)
{
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t stream = 1; stream < 4; stream++) {
            take_on(&p, 1, address(stream), 4096, stream);
            take_on(&p, 2, address(10 + stream), 8192, stream);
            give_on(&p, ASYNC, address(10 + stream), stream);
            if (stream != 3)
                give_on(&p, ASYNC, address(stream), stream);
            if (stream == 3) /* so much is alive on all streams at once */
                for (uint32_t all = 1; all < 4; all++)
                    take_on(&p, 2, address(20 + all), 8192, all);
            if (stream == 3)
                for (uint32_t all = 1; all < 4; all++)
                    give_on(&p, ASYNC, address(20 + all), all);
            if (stream == 3)
                give_on(&p, ASYNC, address(stream), stream);
        }
    plan_it((tn_plan_options){0});
    is(1, TN_D_T4);
    const tn_plan_tier *tier = tier_of(TN_D_T4, TN_FAMILY_ASYNC);
    ck_assert_uint_eq(tier->streams, 3);
    ck_assert_uint_eq(tier->capacity, 12288);
    ck_assert_uint_eq(section->total, 3 * 12288);
}
END_TEST

START_TEST(an_engines_arena_grows_with_headroom)
{
    for (unsigned k = 0; k < 5; k++)
        take(&p, DEVICE, 1, address(k), 1000 + k * 512);
    phase(&p, TN_PHASE_SERVING);
    comes_and_goes(2, 20, 4096, 9);
    plan_it((tn_plan_options){.headroom = 30});
    is(1, TN_D_T2);
    ck_assert_uint_eq(tier_of(TN_D_T2, TN_FAMILY_DEVICE)->capacity, 10240 + 3072); /* 30 %, rounded up to 512 */
    is(2, TN_D_PACKED);
    ck_assert_uint_eq(row_of(2)->headroom, 5632 - 4096);
    ck_assert_uint_eq(row_of(2)->classes[0].bytes, 5632); /* 5324.8 */
    ck_assert_uint_eq(plan->headroom, 30);
}
END_TEST

/* Three loaders with a staging block each: `overlap` of them are there at once. */
static void loaders(unsigned overlap)
{
    for (unsigned k = 0; k < 3; k++) {
        p.thread = k + 1;
        take(&p, PINNED, 1, address(k), 262144);
        take(&p, DEVICE, 2, address(8 + k), 1 << 20);
        if (k + 1 >= overlap) {
            p.thread = 7; /* whoever frees it, the block counts for the thread that took it */
            give(&p, PINNED, address(k + 1 - overlap));
            give(&p, DEVICE, address(8 + k + 1 - overlap));
            wait_context(&p);
        }
    }
    for (unsigned k = 4 - overlap; k < 3; k++) {
        give(&p, PINNED, address(k));
        give(&p, DEVICE, address(8 + k));
        wait_context(&p);
    }
    phase(&p, TN_PHASE_SERVING);
}

START_TEST(headroom_is_for_threads_that_overlap_more)
{
    loaders(_i + 1);
    plan_it((tn_plan_options){.headroom = 10});
    is(1, TN_D_T5A);
    ck_assert_uint_eq(tier_of(TN_D_T5A, TN_FAMILY_PINNED)->capacity, 3 * 262144);
    if (_i < 2)
        ck_assert_uint_eq(row_of(1)->room.blocks, 3);
    ck_assert_uint_eq(section->total / (3 << 20), 1); /* the device's too, whatever its discipline */
}
END_TEST

START_TEST(without_headroom_threads_overlap_as_seen)
{
    loaders(2);
    plan_it((tn_plan_options){0});
    ck_assert_uint_eq(tier_of(TN_D_T5A, TN_FAMILY_PINNED)->capacity, 2 * 262144);
    ck_assert(!row_of(1)->room.given);
}
END_TEST

/* Many threads that take turns are given at most twice as many blocks as were seen at once. */
START_TEST(threads_that_take_turns_do_not_get_a_block_each)
{
    for (unsigned k = 0; k < 40; k++) {
        p.thread = k % 8 + 1;
        take(&p, DEVICE, 1, address(k % 2), 1 << 20);
        if (k >= 1) {
            give(&p, DEVICE, address((k + 1) % 2));
            wait_context(&p);
        }
    }
    plan_it((tn_plan_options){.headroom = 10});
    ck_assert_uint_eq(row_of(1)->room.blocks, 4);
}
END_TEST

START_TEST(a_percent_of_less_than_a_hundred_bytes_counts)
{
    for (unsigned k = 0; k < 3; k++)
        take(&p, DEVICE, 1, address(k), 512);
    plan_it((tn_plan_options){.headroom = 34});
    ck_assert_uint_eq(tier_of(TN_D_T2, TN_FAMILY_DEVICE)->capacity, 1536 + 1024); /* 522.24, rounded up to 512 */
}
END_TEST

START_TEST(without_headroom_there_is_none)
{
    for (unsigned i = 0; i < 4; i++)
        comes_and_goes(1, 1, 4096 + i % 2 * 4096, 3);
    plan_it((tn_plan_options){0});
    ck_assert_uint_eq(row_of(1)->headroom, 0);
    ck_assert(row_of(1)->varies);
    ck_assert_uint_eq(row_of(1)->capacity, 8192);
}
END_TEST

/* ---- how slots share ---- */

/* Sites 1 and 2 in turn at one address, and so many blocks of site 3 in between that are alive beside each. */
static void alternate(unsigned between)
{
    for (unsigned i = 0; i < 3; i++)
        for (uint32_t site = 1; site < 3; site++) {
            take(&p, DEVICE, site, address(site), 2 * MIB);
            take(&p, DEVICE, 3, address(3), 4096);
            give(&p, DEVICE, address(3));
            give(&p, DEVICE, address(site));
            for (unsigned k = 0; k < between; k++)
                comes_and_goes(3, 4, 4096, 1);
        }
}

START_TEST(the_nearest_use_by_another_is_counted_in_hand_outs)
{
    alternate((unsigned)_i);
    plan_it((tn_plan_options){0});
    const tn_plan_tier *tier = tier_of(TN_D_PACKED, TN_FAMILY_DEVICE);
    ck_assert_uint_eq(tier->capacity, 2 * MIB + 4096);
    ck_assert_uint_eq(tier->lower_bound, 2 * MIB + 4096);
    ck_assert_uint_eq(tier->slots, 3);
    ck_assert_uint_eq(tier->hand_outs, 6 * (2 + (unsigned)_i));
    ck_assert_uint_eq(tier->shared, 5);
    ck_assert_uint_eq(tier->nearest, 1 + (unsigned)_i);
}
END_TEST

START_TEST(slots_side_by_side_share_nothing)
{
    for (unsigned i = 0; i < 3; i++) {
        take(&p, DEVICE, 1, address(1), 4096);
        take(&p, DEVICE, 2, address(2), 4096);
        give(&p, DEVICE, address(1));
        give(&p, DEVICE, address(2));
    }
    plan_it((tn_plan_options){0});
    const tn_plan_tier *tier = tier_of(TN_D_PACKED, TN_FAMILY_DEVICE);
    ck_assert_uint_eq(tier->capacity, 8192);
    ck_assert_uint_eq(tier->shared, 0);
    ck_assert_uint_eq(tier->nearest, 0);
}
END_TEST

/* One context's blocks are on one stream, the other's on two that know nothing of each other: there no address may go from one to the other without
 * a wait. */
START_TEST(a_context_with_one_stream_says_nothing_of_another)
{
    for (uint32_t ctx = 1; ctx < 3; ctx++) {
        p.ctx = ctx;
        for (unsigned i = 0; i < 3; i++)
            for (uint32_t k = 1; k < 3; k++) { /* each crosses the one before, so that none is on a stack */
                uint32_t stream = ctx == 2 ? k : 1;
                take_on(&p, k, address(10 * ctx + k), 4096, stream * 10 + ctx);
                take_on(&p, 3, address(10 * ctx + 5), 512, stream * 10 + ctx);
                work(&p, stream * 10 + ctx);
                give_on(&p, ASYNC, address(10 * ctx + k), stream * 10 + ctx);
                give_on(&p, ASYNC, address(10 * ctx + 5), stream * 10 + ctx);
            }
    }
    program_end(&p, "one");
    t = open_scratch();
    plan = plan_with(t, (tn_plan_options){0});
    section = &plan->sections[0];
    uint64_t waits = 0;
    ck_assert_uint_eq(excesses(plan, t, &waits), 0);
    ck_assert_uint_eq(waits, 0);
    is(1, TN_D_PACKED);
    is(2, TN_D_PACKED);
    ck_assert_uint_eq(section->instances, 2);
    uint64_t a = row_of(1)->classes[0].offsets[0], b = row_of(2)->classes[0].offsets[0];
    ck_assert(a >= b + 4096 || b >= a + 4096);
}
END_TEST

/* Sites that come and go in two sizes each: a site's slots are of several classes or of one, as is asked. */
START_TEST(classes_are_as_fine_as_is_asked)
{
    static const struct { uint32_t asked; size_t classes; uint64_t largest; } wanted[] = {
        {1, 1, 8192}, {2, 2, 8192}, {64, 4, 8192}, {TN_CLASSES_EACH, 4, 8192}, {TN_CLASSES_ONE, 1, 8192}};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < 4; k++)
            take(&p, DEVICE, 1, address(k), 8192 - k * 1024);
        for (unsigned k = 0; k < 4; k++)
            give(&p, DEVICE, address(k));
    }
    plan_it((tn_plan_options){.classes_an_octave = wanted[_i].asked});
    ck_assert_uint_eq(row_of(1)->class_count, wanted[_i].classes);
    ck_assert_uint_eq(row_of(1)->classes[row_of(1)->class_count - 1].bytes, wanted[_i].largest);
    ck_assert_uint_eq(tier_of(TN_D_PACKED, TN_FAMILY_DEVICE)->classes_an_octave, wanted[_i].asked);
    ck_assert_uint_eq(row_of(1)->alignment, 512);
}
END_TEST

/* ---- one way or another ---- */

/* Kept blocks of 512 bytes between kept ones of 2 MiB and more: a bump arena pads each large one. Scratch to be packed makes that worth avoiding
 * where it is more than a sixteenth. */
START_TEST(an_arena_that_pads_too_much_is_packed)
{
    for (unsigned k = 0; k < 4; k++) { /* whatever else there is */
        take(&p, DEVICE, 4, address(40 + k), 90 * MIB);
        written(&p, address(40 + k), TN_WRITE_H2D);
    }
    take_on(&p, 5, address(50), 90 * MIB, 1);
    take(&p, PINNED, 6, address(52), 90 * MIB);
    phase(&p, TN_PHASE_SERVING);
    for (unsigned k = 0; k < 6; k++)
        take(&p, DEVICE, 1 + k % 2, address(k), k % 2 ? (_i ? 2 * MIB : 40 * MIB) : 512);
    comes_and_goes(3, 20, 4096, 2);
    plan_it((tn_plan_options){0});
    is(2, _i ? TN_D_T3 : TN_D_T2);
    is(1, _i ? TN_D_T3 : TN_D_T2);
    is(4, TN_D_T1);
}
END_TEST

/* Two blocks of one size that are there when memory is shortest; then one of them is not, or there is but one, or they differ. */
START_TEST(fixed_blocks_are_of_one_size_and_all_there)
{
    for (unsigned i = 0; i < 3; i++) {
        take(&p, DEVICE, 2, address(9), 1 * MIB);
        take(&p, DEVICE, 1, address(1), 4096);
        if (_i != 2)
            take(&p, DEVICE, 1, address(2), _i == 3 ? 8192 : 4096);
        if (_i == 1)
            give(&p, DEVICE, address(2));
        take(&p, DEVICE, 2, address(3), 1 * MIB + 1024 * i);
        if (_i != 2 && _i != 1)
            give(&p, DEVICE, address(2));
        give(&p, DEVICE, address(1));
        give(&p, DEVICE, address(3));
        give(&p, DEVICE, address(9));
    }
    plan_it((tn_plan_options){0});
    is(1, _i ? TN_D_PACKED : TN_D_T3);
    if (_i == 0) {
        ck_assert_uint_eq(row_of(1)->capacity, 8192);
        ck_assert_uint_eq(row_of(1)->blocks, 2);
        ck_assert_uint_eq(tier_of(TN_D_T3, TN_FAMILY_DEVICE)->capacity, 8192);
        ck_assert_uint_eq(tier_of(TN_D_T3, TN_FAMILY_DEVICE)->slots, 0);
    }
}
END_TEST

/* 512 blocks of varying sizes alive at once are laid out; with one more, sites of 256 together are. */
START_TEST(as_many_are_packed_as_is_worth_while)
{
    unsigned count = 128 + (_i == 1);
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t site = 1; site < 5; site++)
            for (unsigned k = 0; k < (site == 4 ? count : 128); k++)
                take(&p, DEVICE, site, address(site * 200 + k), (k % 2 ? 512 : 1024) * site);
        for (uint32_t site = 1; site < 5; site++)
            for (unsigned k = 0; k < (site == 4 ? count : 128); k++)
                give(&p, DEVICE, address(site * 200 + k));
    }
    plan_it((tn_plan_options){.steps = 1000});
    is(1, _i ? TN_D_T3 : TN_D_PACKED);
    is(2, _i ? TN_D_T3 : TN_D_PACKED);
    is(3, _i ? TN_D_T3 : TN_D_PACKED);
    is(4, TN_D_PACKED); /* the heaviest, and no other beside its 129 */
}
END_TEST

START_TEST(a_gap_is_behind_every_block_that_is_placed)
{
    take(&p, DEVICE, 1, address(1), 1000);
    take(&p, DEVICE, 1, address(2), 5000);
    take(&p, TN_KIND_MANAGED, 2, address(3), 5 * MIB);
    pinned(3, 4, 100, 2);
    phase(&p, TN_PHASE_SERVING);
    comes_and_goes(4, 5, 4096, 3);
    program_end(&p, "one");
    t = open_scratch();
    tn_trace_add_gap(t, 0);
    tn_trace_add_gap(t, 512);
    plan = plan_with(t, (tn_plan_options){.gap = 512});
    section = &plan->sections[0];
    ck_assert_uint_eq(plan->gap, 512);
    ck_assert_uint_eq(excesses(plan, t, NULL), 0);
    is(1, TN_D_T2);
    ck_assert_uint_eq(tier_of(TN_D_T2, TN_FAMILY_DEVICE)->capacity, 1536 + 5632);
    is(4, TN_D_PACKED);
    ck_assert_uint_eq(row_of(4)->classes[0].bytes, 4096 + 512);
    ck_assert_uint_eq(row_of(4)->largest, 4096 + 512);
    is(3, TN_D_T5B);
    ck_assert_uint_eq(row_of(3)->classes[0].bytes, 1024);
    is(2, TN_D_NATIVE);
    ck_assert_uint_eq(row_of(2)->largest, 5 * MIB);
    ck_assert_uint_eq(section->native_bytes, 5 * MIB);
    /* What has no gap does not fill what was planned for with one, and what has a larger one has no room. */
    tn_trace_add_gap(t, 1);
    ck_assert_uint_gt(excesses(plan, t, NULL), 0);
    tn_trace_add_gap(t, UINT64_MAX - 4096);
    ck_assert_uint_eq(t->processes[0].lives[1].bytes, 5513); /* larger than any: left as it was */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan make");
    TCase *c = tcase_create("plan make");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, tiers_stand_in_their_order_and_add_up);
    tcase_add_test(c, a_stack_for_each_stream_counts_as_often);
    tcase_add_test(c, an_engines_arena_grows_with_headroom);
    tcase_add_loop_test(c, headroom_is_for_threads_that_overlap_more, 0, 3);
    tcase_add_test(c, without_headroom_threads_overlap_as_seen);
    tcase_add_test(c, threads_that_take_turns_do_not_get_a_block_each);
    tcase_add_test(c, without_headroom_there_is_none);
    tcase_add_test(c, a_gap_is_behind_every_block_that_is_placed);
    tcase_add_loop_test(c, the_nearest_use_by_another_is_counted_in_hand_outs, 0, 4);
    tcase_add_test(c, slots_side_by_side_share_nothing);
    tcase_add_test(c, a_context_with_one_stream_says_nothing_of_another);
    tcase_add_loop_test(c, classes_are_as_fine_as_is_asked, 0, 5);
    tcase_add_loop_test(c, an_arena_that_pads_too_much_is_packed, 0, 2);
    tcase_add_loop_test(c, fixed_blocks_are_of_one_size_and_all_there, 0, 4);
    tcase_add_loop_test(c, as_many_are_packed_as_is_worth_while, 0, 2);
    tcase_add_test(c, a_percent_of_less_than_a_hundred_bytes_counts);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
