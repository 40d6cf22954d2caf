/* Lifetimes as the hardware means them, from journals written here a call at a time. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE
#define A 0x7f0000000000u
#define B 0x7f0000200000u

/* The positions of a trace are the calls' own numbers: program_begin's first call is event 1. */
static tn_trace *trace_of(program *p)
{
    program_end(p, "one");
    return open_scratch();
}

START_TEST(a_block_with_no_work_is_clean_at_its_free)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    give(&p, DEVICE, A);
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->begin, 1);
    ck_assert_uint_eq(life(t, 0)->freed, 2);
    ck_assert_uint_eq(life(t, 0)->clean, 2);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_plain_block_lives_until_a_wait_covers_its_free)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    wait_stream(&p, 1); /* 3: covers the work, so the next free meets none */
    work(&p, 1);
    give(&p, DEVICE, A); /* 5 */
    work(&p, 1);         /* later work on the same stream is no part of it */
    wait_stream(&p, 2);  /* another stream */
    wait_stream(&p, 1);  /* 8 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->freed, 5);
    ck_assert_uint_eq(life(t, 0)->clean, 8);
    tn_trace_free(t);
}
END_TEST

START_TEST(every_stream_of_the_context_has_to_be_covered)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    work(&p, 2);
    give(&p, DEVICE, A);
    wait_stream(&p, 1);
    wait_stream(&p, 2); /* 6 */
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    work(&p, 2);
    give(&p, DEVICE, A);
    wait_context(&p); /* 11 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 6);
    ck_assert_uint_eq(life(t, 1)->clean, 11);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_wait_vouches_for_what_was_enqueued_before_it_began)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_STREAM, .stream = 1, .aux = JM_START + 1}); /* began before the work */
    wait_stream(&p, 1);                                                                                  /* 5 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 5);
    tn_trace_free(t);
}
END_TEST

START_TEST(an_event_wait_covers_its_stream_up_to_the_record)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 1, B, 4096);
    work(&p, 1);
    record_event(&p, 0xe, 1);
    give(&p, DEVICE, A); /* only work before the record is in its way */
    work(&p, 1);
    give(&p, DEVICE, B);
    wait_event(&p, 0xe); /* 8 */
    wait_stream(&p, 1);  /* 9 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 8);
    ck_assert_uint_eq(life(t, 1)->clean, 9);
    tn_trace_free(t);
}
END_TEST

START_TEST(the_wait_of_a_free_that_may_be_placed_counts_for_nothing)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 1, B, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_FREE, .addr = A, .aux = JM_START + p.at});
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, TN_LIFE_OPEN);
    tn_trace_free(t);
}
END_TEST

START_TEST(the_wait_of_a_free_that_stays_the_drivers_counts)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    take(&p, TN_KIND_MANAGED, 2, B, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    give(&p, TN_KIND_MANAGED, B);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_FREE, .addr = B, .aux = JM_START + p.at}); /* 6 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 6);
    tn_trace_free(t);
}
END_TEST

START_TEST(pinned_memory_is_in_use_by_every_context)
{
    program p = program_begin(1);
    take(&p, TN_KIND_PINNED, 1, A, 4096);
    p.ctx = 2;
    work(&p, 7);
    p.ctx = 1;
    give(&p, TN_KIND_PINNED, A);
    wait_context(&p);
    p.ctx = 2;
    wait_context(&p); /* 5 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 5);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_stream_ordered_block_is_clean_when_its_stream_is)
{
    program p = program_begin(1);
    take_on(&p, 1, A, 4096, 1);
    work(&p, 1);
    work(&p, 2);
    give_on(&p, TN_KIND_ASYNC, A, 1);
    wait_stream(&p, 2);
    wait_stream(&p, 1); /* 6 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->freed, 4);
    ck_assert_uint_eq(life(t, 0)->clean, 6);
    ck_assert_uint_eq(life(t, 0)->free_stream, 1);
    tn_trace_free(t);
}
END_TEST

START_TEST(joins_say_which_stream_waited_for_what)
{
    program p = program_begin(1);
    record_event(&p, 0xe, 1);
    join(&p, 0xe, 2);
    other(&p, (tn_event){.type = TN_EV_EVENT_RECORD, .addr = 0xf, .stream = 1, .aux2 = 1}); /* captured */
    join(&p, 0xf, 2);
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(t->processes[0].join_count, 1);
    tn_trace_join j = t->processes[0].joins[0];
    ck_assert(j.at == 2 && j.to == 2 && j.from == 1 && j.upto == 1);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_plain_block_freed_in_stream_order_waits_for_that_stream)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    give_on(&p, DEVICE, A, 3);
    wait_stream(&p, 3); /* 3 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->freed, 2);
    ck_assert_uint_eq(life(t, 0)->clean, 3);
    ck_assert(life(t, 0)->flags & TN_LF_OTHER_FREE);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_reset_ends_what_is_not_stream_ordered)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    take_on(&p, 1, B, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_CONTEXT, .kind = TN_CTX_RESET});
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->clean, 3);
    ck_assert_uint_eq(life(t, 1)->freed, TN_LIFE_OPEN);
    tn_trace_free(t);
}
END_TEST

START_TEST(exports_captures_attributes_and_graphs_mark_their_blocks)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 2, B, 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A + 100});
    other(&p, (tn_event){.type = TN_EV_ATTRIBUTE, .addr = B, .bytes = 6, .aux = 1});
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_KERNEL, .addr = 0x99, .bytes = B, .aux = 4096});
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_BEGIN, .stream = 1});
    take(&p, DEVICE, 3, A + 0x10000, 4096);
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_END, .stream = 1});
    take(&p, DEVICE, 3, A + 0x20000, 4096);
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->flags, TN_LF_EXPORTED);
    ck_assert_uint_eq(life(t, 1)->flags, TN_LF_SYNC_MEMOPS | TN_LF_HELD);
    ck_assert_uint_eq(life(t, 2)->flags, TN_LF_IN_CAPTURE);
    ck_assert_uint_eq(life(t, 3)->flags, 0);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_phase_of_a_later_journal_is_passed_over)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 8192);
    other(&p, (tn_event){.type = TN_EV_PHASE, .kind = TN_PHASE_SERVING + 1});
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(t->processes[0].phase_count, 0);
    tn_trace_free(t);
}
END_TEST

START_TEST(a_released_handle_lives_while_it_is_mapped)
{
    program p = program_begin(1);
    take(&p, TN_KIND_VMM_HANDLE, 1, 0x77, 2 << 20);
    other(&p, (tn_event){.type = TN_EV_VMM_MAP, .addr = A, .bytes = 2 << 20, .aux = 0x77});
    give(&p, TN_KIND_VMM_HANDLE, 0x77);
    other(&p, (tn_event){.type = TN_EV_VMM_UNMAP, .addr = A, .bytes = 2 << 20}); /* 4 */
    tn_trace *t = trace_of(&p);
    ck_assert_uint_eq(life(t, 0)->freed, 4);
    tn_trace_free(t);
}
END_TEST

START_TEST(the_order_in_which_runs_are_given_does_not_show)
{
    program p = program_begin(1), q = program_begin(2);
    take(&p, DEVICE, 1, A, 4096);
    take(&q, DEVICE, 2, A, 8192);
    program_end_in(&p, "first", "p");
    program_end_in(&q, "second", "q");
    tn_trace *one = open_runs((const char *const[]){"first", "second"}, 2), *two = open_runs((const char *const[]){"second", "first", "first"}, 3);
    ck_assert_uint_eq(one->process_count, 2);
    ck_assert_uint_eq(two->process_count, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(one->processes[i].lives[0].bytes, two->processes[i].lives[0].bytes);
    ck_assert_uint_eq(one->site_count, two->site_count);
    for (size_t i = 0; i < one->site_count; i++)
        ck_assert_uint_eq(one->sites[i].key, two->sites[i].key);
    tn_trace_free(one);
    tn_trace_free(two);
}
END_TEST

START_TEST(what_cannot_be_read_is_named_in_one_sentence)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *t;
    const char *path = scratch_file("nothing.tnj");
    ck_assert_int_eq(tn_trace_open(&path, 1, &t, message), TN_E_OPEN);
    ck_assert_ptr_nonnull(strstr(message, "nothing.tnj"));
    path = scratch_file(".");
    ck_assert_int_eq(tn_trace_open(&path, 1, &t, message), TN_E_EMPTY);
    FILE *f = fopen(scratch_file("text.tnj"), "w");
    fputs("this is no journal at all", f);
    fclose(f);
    ck_assert_int_eq(tn_trace_open(&path, 1, &t, message), TN_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(message, "text.tnj"));
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(a_journal_that_dropped_events_is_known_to_be_incomplete)
{
    program p = program_begin(1);
    take(&p, DEVICE, 1, A, 4096);
    jm_header(p.journal)->dropped_events = 3;
    tn_trace *t = trace_of(&p);
    ck_assert_int_eq(tn_trace_incomplete(t), 1);
    tn_trace_free(t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *c = tcase_create("trace");
    tcase_add_checked_fixture(c, scratch_make, scratch_remove);
    tcase_add_test(c, a_block_with_no_work_is_clean_at_its_free);
    tcase_add_test(c, a_plain_block_lives_until_a_wait_covers_its_free);
    tcase_add_test(c, every_stream_of_the_context_has_to_be_covered);
    tcase_add_test(c, a_wait_vouches_for_what_was_enqueued_before_it_began);
    tcase_add_test(c, an_event_wait_covers_its_stream_up_to_the_record);
    tcase_add_test(c, the_wait_of_a_free_that_may_be_placed_counts_for_nothing);
    tcase_add_test(c, the_wait_of_a_free_that_stays_the_drivers_counts);
    tcase_add_test(c, pinned_memory_is_in_use_by_every_context);
    tcase_add_test(c, a_stream_ordered_block_is_clean_when_its_stream_is);
    tcase_add_test(c, joins_say_which_stream_waited_for_what);
    tcase_add_test(c, a_plain_block_freed_in_stream_order_waits_for_that_stream);
    tcase_add_test(c, a_reset_ends_what_is_not_stream_ordered);
    tcase_add_test(c, exports_captures_attributes_and_graphs_mark_their_blocks);
    tcase_add_test(c, a_phase_of_a_later_journal_is_passed_over);
    tcase_add_test(c, a_released_handle_lives_while_it_is_mapped);
    tcase_add_test(c, the_order_in_which_runs_are_given_does_not_show);
    tcase_add_test(c, what_cannot_be_read_is_named_in_one_sentence);
    tcase_add_test(c, a_journal_that_dropped_events_is_known_to_be_incomplete);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
