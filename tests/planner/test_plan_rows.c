/* The rows of plans, from histories as short as those of test_plan_make.c: what is written beside a site, runner-up, frames, sizing query and regions. */
#define _GNU_SOURCE
#include "tests/planner/plan_figures.h"

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
    Suite *suite = suite_create("plan rows");
    TCase *c = tcase_create("plan rows");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, families_are_not_counted_together);
    tcase_add_loop_test(c, the_runner_up_may_cost_nothing, 0, 2);
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
