/* The figures of plans, one by one, from histories so short that they can be said beforehand: tiers in their order with capacities and sums, how
 * slots share, what is written beside a site, when one discipline gives way to another. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE
#define ASYNC TN_KIND_ASYNC
#define PINNED TN_KIND_PINNED

static program p;
static tn_trace *t;
static tn_plan *plan;
static const tn_plan_section *section;

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

static void plan_it(tn_plan_options options)
{
    program_end(&p, "one");
    t = open_scratch();
    plan = plan_with(t, options);
    ck_assert_uint_eq(plan->section_count, 1);
    section = &plan->sections[0];
    ck_assert_uint_eq(excesses(plan, t, NULL), 0);
}

static const tn_plan_row *row_of(uint32_t site)
{
    const tn_plan_row *row = tn_plan_row_of(section, 0x1000 + site, 0);
    ck_assert_ptr_nonnull(row);
    return row;
}

static const tn_plan_tier *tier_of(tn_discipline d, tn_family f)
{
    for (size_t i = 0; i < section->tier_count; i++)
        if (section->tiers[i].discipline == d && section->tiers[i].family == f)
            return &section->tiers[i];
    ck_abort_msg("there is no tier %s for %s memory", tn_discipline_name(d), tn_family_name(f));
    return NULL;
}

static void is(uint32_t site, tn_discipline d)
{
    ck_assert_msg(row_of(site)->discipline == d, "site %u is %s: %s", site, tn_discipline_name(row_of(site)->discipline), row_of(site)->reason);
}

static void pinned(uint32_t site, unsigned place, uint64_t bytes, uint64_t flags)
{
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = PINNED, .site = TN_SITE_FIRST + site, .addr = address(place), .bytes = bytes, .aux2 = flags});
}

/* Scratch: taken and given `rounds` times. */
static void comes_and_goes(uint32_t site, unsigned place, uint64_t bytes, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        take(&p, DEVICE, site, address(place), bytes);
        give(&p, DEVICE, address(place));
    }
}

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

/* Each family for itself: 300 blocks of each are not too many. */
START_TEST(families_are_not_counted_together)
{
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned k = 0; k < 300; k++) {
            take(&p, DEVICE, 1, address(k), k % 2 ? 512 : 1024);
            take_on(&p, 2, address(300 + k), k % 2 ? 512 : 1024, 1);
            take(&p, PINNED, 3, address(600 + k), k % 2 ? 512 : 1024);
        }
        for (unsigned k = 0; k < 300; k++) {
            give(&p, DEVICE, address(k));
            give_on(&p, ASYNC, address(300 + k), 1);
            give(&p, PINNED, address(600 + k));
        }
        wait_context(&p);
    }
    plan_it((tn_plan_options){.steps = 1000});
    is(1, TN_D_PACKED);
    is(2, TN_D_PACKED);
    is(3, TN_D_T5B);
}
END_TEST

/* Of so many blocks one layout is made, a size for each site. */
START_TEST(very_many_blocks_are_laid_out_once)
{
    for (unsigned i = 0; i < 100001; i++) {
        take(&p, DEVICE, 1, address(1), i % 2 ? 4096 : 1024);
        take(&p, DEVICE, 1, address(2), i % 3 ? 8192 : 512);
        give(&p, DEVICE, address(1));
        give(&p, DEVICE, address(2));
    }
    plan_it((tn_plan_options){0});
    const tn_plan_tier *tier = tier_of(TN_D_PACKED, TN_FAMILY_DEVICE);
    ck_assert_uint_eq(tier->classes_an_octave, TN_CLASSES_ONE);
    ck_assert_uint_eq(tier->hand_outs, 200002);
    ck_assert_uint_eq(tier->capacity, 16384);
    ck_assert_uint_eq(row_of(1)->class_count, 1);
}
END_TEST

static void more_room(void *user, const tn_trace *trace, uint32_t site, tn_room *room)
{
    const tn_room *of_site_1 = user;
    if (trace->sites[site].key == 0x1001)
        *room = *of_site_1;
}

START_TEST(fixed_blocks_with_room_are_aligned_as_their_size_is)
{
    static tn_room room = {.given = 1, .size = 3 * MIB, .blocks = 3};
    for (unsigned i = 0; i < 2; i++) {
        take(&p, DEVICE, 1, address(1), 4096);
        take(&p, DEVICE, 1, address(2), 4096);
        give(&p, DEVICE, address(1));
        give(&p, DEVICE, address(2));
    }
    plan_it((tn_plan_options){.room_of = more_room, .user = &room});
    is(1, TN_D_T3);
    ck_assert_uint_eq(row_of(1)->largest, 3 * MIB);
    ck_assert_uint_eq(row_of(1)->alignment, 2 * MIB);
    ck_assert_uint_eq(row_of(1)->capacity, 12 * MIB);
    ck_assert_uint_eq(row_of(1)->blocks, 3);
}
END_TEST

/* ---- what stands beside a site ---- */

/* What is kept from late on was not there when the family was at its highest: packed, it would cost nothing. */
START_TEST(the_runner_up_may_cost_nothing)
{
    uint8_t kind = _i ? ASYNC : DEVICE;
    for (unsigned i = 0; i < 2; i++) {
        _i ? take_on(&p, 1, address(1), 1 * MIB, 1) : take(&p, kind, 1, address(1), 1 * MIB);
        _i ? take_on(&p, 2, address(2), 1 * MIB + i * 512, 1) : take(&p, kind, 2, address(2), 1 * MIB + i * 512);
        _i ? give_on(&p, kind, address(1), 1) : give(&p, kind, address(1));
        _i ? give_on(&p, kind, address(2), 1) : give(&p, kind, address(2));
        wait_context(&p);
    }
    _i ? take_on(&p, 3, address(3), 4096, 1) : take(&p, kind, 3, address(3), 4096);
    plan_it((tn_plan_options){0});
    is(3, TN_D_T2);
    ck_assert_int_eq(row_of(3)->runner_up, TN_D_PACKED);
    ck_assert_uint_eq(row_of(3)->runner_capacity, 0);
}
END_TEST

START_TEST(the_runner_up_is_the_least_of_the_others_that_are_right)
{
    for (unsigned i = 0; i < 3; i++) { /* two sites in turn: together one block, apart two */
        comes_and_goes(1, 1, 8192, 1);
        comes_and_goes(2, 2, 4096, 2);
    }
    plan_it((tn_plan_options){0});
    is(1, TN_D_PACKED);
    ck_assert_int_eq(row_of(1)->runner_up, TN_D_NATIVE);
    ck_assert_uint_eq(row_of(1)->runner_capacity, 8192);
    ck_assert_int_eq(row_of(2)->runner_up, TN_D_NATIVE);
    ck_assert_uint_eq(row_of(2)->runner_capacity, 4096);
}
END_TEST

/* The first site by key exports; the second has its innermost frame, and the third another one. */
START_TEST(an_exporters_siblings_stay_with_the_driver)
{
    jm_site(p.journal, TN_SITE_FIRST + 2, 0x1002, 2, (const uint64_t[][2]){{1, 0x100}, {1, 0x200}});
    for (uint32_t site = 1; site < 4; site++)
        take(&p, DEVICE, site, address(site), 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = address(1) + 100});
    plan_it((tn_plan_options){0});
    is(1, TN_D_NATIVE);
    is(2, TN_D_NATIVE);
    is(3, TN_D_T2);
    ck_assert_uint_eq(row_of(2)->capacity, 4096);
    ck_assert_uint_eq(row_of(2)->alignment, 0);
    ck_assert_int_eq(row_of(3)->runner_up, TN_D_NATIVE);
}
END_TEST

START_TEST(frames_are_named_by_module_and_offset)
{
    take(&p, DEVICE, 3, address(1), 4096);
    plan_it((tn_plan_options){0});
    ck_assert_uint_eq(row_of(3)->frame_count, 1);
    const tn_plan_frame *f = &row_of(3)->frames[0];
    ck_assert_str_eq(f->module, "program");
    ck_assert_str_eq(f->build_id, "00112233445566778899aabbccddeeff00112233");
    ck_assert_uint_eq(f->offset, 0x300);
    ck_assert_ptr_null(f->function);
    ck_assert_str_eq(section->exe, "engine");
    ck_assert_str_eq(section->exe_build_id, "00ff");
    ck_assert_ptr_null(section->script);
}
END_TEST

/* The last query on the first request's thread, before it, of the site with the most bytes when serving begins, if that took a quarter of what was
 * free. */
START_TEST(the_sizing_query_is_found)
{
    static const struct { uint64_t free_bytes; int known; } wanted[] = {{12 * MIB, 1}, {12 * MIB + 4, 0}};
    other(&p, (tn_event){.type = TN_EV_QUERY, .site = TN_SITE_FIRST + 20, .bytes = 1000 * MIB, .aux = 2000 * MIB, .aux2 = 1});
    other(&p, (tn_event){.type = TN_EV_QUERY, .site = TN_SITE_FIRST + 20, .bytes = wanted[_i].free_bytes, .aux = 2000 * MIB, .aux2 = 2});
    p.thread = 2;
    other(&p, (tn_event){.type = TN_EV_QUERY, .site = TN_SITE_FIRST + 21, .bytes = 8 * MIB, .aux = 2000 * MIB, .aux2 = 1});
    p.thread = 1;
    take(&p, DEVICE, 2, address(1), 2 * MIB);
    take(&p, DEVICE, 1, address(2), 3 * MIB);
    take(&p, DEVICE, 3, address(3), 3 * MIB); /* of the same size: the query sizes it, too */
    other(&p, (tn_event){.type = TN_EV_QUERY, .site = TN_SITE_FIRST + 22, .bytes = 8 * MIB, .aux = 2000 * MIB, .aux2 = 1});
    phase(&p, TN_PHASE_SERVING);
    take(&p, DEVICE, 4, address(4), 20 * MIB);
    plan_it((tn_plan_options){0});
    ck_assert_int_eq(section->sizing.known, wanted[_i].known);
    if (!wanted[_i].known)
        return;
    ck_assert_uint_eq(section->sizing.key, 0x1000 + 20);
    ck_assert_uint_eq(section->sizing.ordinal, 2);
    ck_assert_uint_eq(section->sizing.free_bytes, 12 * MIB);
    ck_assert_uint_eq(section->sizing.sized_count, 2);
    ck_assert(section->sizing.sized[0] == 0x1001 && section->sizing.sized[1] == 0x1003);
}
END_TEST

START_TEST(regions_are_listed_with_their_first_request)
{
    for (unsigned model = 0; model < 2; model++) { /* the second is larger, loaded when the first has gone, and stays */
        for (unsigned k = 0; k < 3; k++) {
            take(&p, DEVICE, 1, address(k), (3 + model) * MIB);
            written(&p, address(k), TN_WRITE_H2D);
        }
        for (unsigned k = 0; k < 3 && !model; k++)
            give(&p, DEVICE, address(k));
        wait_context(&p);
    }
    phase(&p, TN_PHASE_SERVING);
    plan_it((tn_plan_options){0});
    is(1, TN_D_T1);
    ck_assert_uint_eq(section->region_count, 2);
    for (uint64_t i = 0; i < 2; i++) {
        const tn_plan_region *r = &section->regions[i];
        ck_assert_uint_eq(r->key, 0x1001);
        ck_assert_uint_eq(r->first_bytes, (3 + i) * MIB);
        ck_assert_uint_eq(r->capacity, i ? 12 * MIB : 11 * MIB); /* the last one needs no padding */
        ck_assert_uint_eq(r->count, 3);
        ck_assert_uint_eq(r->times, 1);
    }
    ck_assert_uint_eq(tier_of(TN_D_T1, TN_FAMILY_DEVICE)->capacity, 12 * MIB);
    ck_assert_uint_eq(tier_of(TN_D_T1, TN_FAMILY_DEVICE)->live_peak, 12 * MIB);
}
END_TEST

START_TEST(of_nothing_there_is_no_plan)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = {.steps = 1};
    work(&p, 1);
    program_end(&p, "one");
    t = open_scratch();
    tn_error error = tn_plan_make(t, &options, &plan, message);
    ck_assert_int_eq(error, TN_E_EMPTY);
    ck_assert_ptr_null(plan);
    ck_assert_msg(message[0] != 0, "it says nothing");
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
    tcase_add_test(c, without_headroom_there_is_none);
    tcase_add_loop_test(c, the_nearest_use_by_another_is_counted_in_hand_outs, 0, 4);
    tcase_add_test(c, slots_side_by_side_share_nothing);
    tcase_add_test(c, a_context_with_one_stream_says_nothing_of_another);
    tcase_add_loop_test(c, classes_are_as_fine_as_is_asked, 0, 5);
    tcase_add_loop_test(c, an_arena_that_pads_too_much_is_packed, 0, 2);
    tcase_add_loop_test(c, fixed_blocks_are_of_one_size_and_all_there, 0, 4);
    tcase_add_loop_test(c, as_many_are_packed_as_is_worth_while, 0, 2);
    tcase_add_test(c, families_are_not_counted_together);
    tcase_add_loop_test(c, the_runner_up_may_cost_nothing, 0, 2);
    tcase_add_test(c, a_percent_of_less_than_a_hundred_bytes_counts);
    tcase_add_test(c, the_runner_up_is_the_least_of_the_others_that_are_right);
    tcase_add_test(c, very_many_blocks_are_laid_out_once);
    tcase_add_test(c, fixed_blocks_with_room_are_aligned_as_their_size_is);
    tcase_add_test(c, an_exporters_siblings_stay_with_the_driver);
    tcase_add_test(c, frames_are_named_by_module_and_offset);
    tcase_add_loop_test(c, the_sizing_query_is_found, 0, 2);
    tcase_add_test(c, regions_are_listed_with_their_first_request);
    tcase_add_test(c, of_nothing_there_is_no_plan);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
