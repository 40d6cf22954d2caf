/* Lifetimes as the hardware means them, from journals written here a call at a time. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE
#define A 0x7f0000000000u
#define B 0x7f0000200000u

/* The positions of a trace are the calls' own numbers: the first call is event 1. */
static program p;
static tn_trace *t;

static void begin(void)
{
    scratch_make();
    p = program_begin(1);
}

static void end(void)
{
    tn_trace_free(t);
    if (p.journal)
        jm_free(p.journal);
    scratch_remove();
}

static void read_trace(void)
{
    program_end(&p, "one");
    t = open_scratch();
}

START_TEST(a_block_with_no_work_is_clean_at_its_free)
{
    take(&p, DEVICE, 1, A, 4096);
    give(&p, DEVICE, A);
    read_trace();
    ck_assert_uint_eq(life(t, 0)->begin, 1);
    ck_assert_uint_eq(life(t, 0)->freed, 2);
    ck_assert_uint_eq(life(t, 0)->clean, 2);
}
END_TEST

START_TEST(a_plain_block_lives_until_a_wait_covers_its_free)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    wait_stream(&p, 1); /* 3: covers the work, so the next free meets none */
    work(&p, 1);
    give(&p, DEVICE, A); /* 5 */
    work(&p, 1);         /* later work on the same stream is no part of it */
    wait_stream(&p, 2);  /* another stream */
    wait_stream(&p, 1);  /* 8 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->freed, 5);
    ck_assert_uint_eq(life(t, 0)->clean, 8);
}
END_TEST

START_TEST(every_stream_of_the_context_has_to_be_covered)
{
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
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 6);
    ck_assert_uint_eq(life(t, 1)->clean, 11);
}
END_TEST

START_TEST(a_wait_vouches_for_what_was_enqueued_before_it_began)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_STREAM, .stream = 1, .aux = JM_START + 1}); /* began before the work */
    wait_stream(&p, 1);                                                                                  /* 5 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 5);
}
END_TEST

START_TEST(an_event_wait_covers_its_stream_up_to_the_record)
{
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 1, B, 4096);
    work(&p, 1);
    record_event(&p, 0xe, 1);
    give(&p, DEVICE, A); /* only work before the record is in its way */
    work(&p, 1);
    give(&p, DEVICE, B);
    wait_event(&p, 0xe); /* 8 */
    wait_stream(&p, 1);  /* 9 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 8);
    ck_assert_uint_eq(life(t, 1)->clean, 9);
}
END_TEST

START_TEST(a_copy_that_waited_is_done_itself_and_others_work_is_not)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1); /* 2 */
    uint64_t begun = JM_START + p.at;
    work(&p, 1); /* 3: the copy */
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_COPY, .stream = 1, .aux = begun});
    give(&p, DEVICE, A); /* 5: nothing is in its way */
    take(&p, DEVICE, 1, A, 4096);
    p.thread = 2;
    work(&p, 1); /* 7 */
    p.thread = 1;
    begun = JM_START + p.at - 2;
    work(&p, 1); /* 8 */
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_COPY, .stream = 1, .aux = begun}); /* began before the other thread's work */
    give(&p, DEVICE, A); /* 10 */
    wait_stream(&p, 1);  /* 11 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 5);
    ck_assert_uint_eq(life(t, 1)->clean, 11);
}
END_TEST

START_TEST(a_wait_covers_what_its_stream_had_waited_for)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1); /* a copy */
    record_event(&p, 0xe, 1);
    join(&p, 0xe, 2); /* 4 */
    work(&p, 2);
    give(&p, DEVICE, A); /* 6 */
    record_event(&p, 0xf, 2);
    take(&p, DEVICE, 1, B, 4096);
    work(&p, 1);
    give(&p, DEVICE, B); /* 10: behind the record */
    join(&p, 0xf, 3);
    wait_stream(&p, 3); /* 12: by way of 2 it covers 1, up to the first record */
    wait_stream(&p, 2); /* 13 */
    wait_stream(&p, 1); /* 14 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 12);
    ck_assert_uint_eq(life(t, 1)->clean, 14);
}
END_TEST

START_TEST(a_wait_begun_before_the_join_covers_nothing_of_it)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    work(&p, 2);
    record_event(&p, 0xd, 2); /* 4 */
    record_event(&p, 0xe, 1);
    join(&p, 0xe, 2); /* 6 */
    give(&p, DEVICE, A);
    wait_event(&p, 0xd); /* 8: the stream as it was before it joined */
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_STREAM, .stream = 2, .aux = JM_START + 4});
    wait_stream(&p, 2); /* 10 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 10);
}
END_TEST

START_TEST(joins_that_nobody_waits_for_are_forgotten_and_rings_end)
{
    for (int i = 0; i < 3000; i++) {
        work(&p, 1);
        record_event(&p, 0xe, 1);
        join(&p, 0xe, 2);
        work(&p, 2);
        record_event(&p, 0xf, 2);
        join(&p, 0xf, 1);
    }
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    record_event(&p, 0xe, 1);
    join(&p, 0xe, 2);
    give(&p, DEVICE, A);
    uint64_t before = p.at;
    wait_stream(&p, 2);
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, before);
}
END_TEST

START_TEST(the_wait_of_a_free_that_may_be_placed_counts_for_nothing)
{
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 1, B, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_FREE, .addr = A, .aux = JM_START + p.at});
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, TN_LIFE_OPEN);
}
END_TEST

START_TEST(the_wait_of_a_free_that_stays_the_drivers_counts)
{
    take(&p, DEVICE, 1, A, 4096);
    take(&p, TN_KIND_MANAGED, 2, B, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    give(&p, TN_KIND_MANAGED, B);
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_FREE, .addr = B, .aux = JM_START + p.at}); /* 6 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 6);
}
END_TEST

START_TEST(pinned_memory_is_in_use_by_every_context)
{
    take(&p, TN_KIND_PINNED, 1, A, 4096);
    p.ctx = 2;
    work(&p, 7);
    p.ctx = 1;
    give(&p, TN_KIND_PINNED, A);
    wait_context(&p);
    p.ctx = 2;
    wait_context(&p); /* 5 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 5);
}
END_TEST

/* A run that was itself served by a plan makes the same plan again: the upper half of aux2 is no flag, and a tier's own memory no block. */
START_TEST(a_served_block_is_as_it_would_have_been)
{
    const uint64_t served = (uint64_t)TN_ROUTE_T5B << 32, packed = (uint64_t)TN_ROUTE_PACKED << 32;
    other(&p, (tn_event){.type = TN_EV_ARENA, .kind = TN_KIND_DEVICE, .addr = A + (64 << 20), .bytes = 16 << 20, .aux = 16 << 20, .aux2 = packed});
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_PINNED, .site = TN_SITE_FIRST, .addr = A, .bytes = 5000, .aux2 = served | 3});
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_DEVICE, .site = TN_SITE_FIRST + 1, .addr = A + (64 << 20), .bytes = (3 << 20) + 1, .aux2 = packed});
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_DEVICE, .site = TN_SITE_FIRST + 1, .addr = A + (72 << 20), .bytes = 700, .aux2 = packed});
    read_trace();
    ck_assert_uint_eq(t->processes[0].life_count, 3);
    ck_assert_uint_eq(life(t, 0)->detail, 3);
    ck_assert_uint_eq(life(t, 0)->backed, 8192 / TN_LIFE_UNIT);
    ck_assert_uint_eq(life(t, 1)->backed, (4 << 20) / TN_LIFE_UNIT);
    ck_assert_uint_eq(life(t, 2)->backed, 1024 / TN_LIFE_UNIT);
}
END_TEST

START_TEST(a_stream_ordered_block_is_clean_when_its_stream_is)
{
    take_on(&p, 1, A, 4096, 1);
    work(&p, 1);
    work(&p, 2);
    give_on(&p, TN_KIND_ASYNC, A, 1);
    wait_stream(&p, 2);
    wait_stream(&p, 1); /* 6 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->freed, 4);
    ck_assert_uint_eq(life(t, 0)->clean, 6);
    ck_assert_uint_eq(life(t, 0)->free_stream, 1);
}
END_TEST

START_TEST(joins_say_which_stream_waited_for_what)
{
    record_event(&p, 0xe, 1);
    join(&p, 0xe, 2);
    other(&p, (tn_event){.type = TN_EV_EVENT_RECORD, .addr = 0xf, .stream = 1, .aux2 = 1}); /* captured */
    join(&p, 0xf, 2);
    read_trace();
    ck_assert_uint_eq(t->processes[0].join_count, 1);
    tn_trace_join j = t->processes[0].joins[0];
    ck_assert(j.at == 2 && j.to == 2 && j.from == 1 && j.upto == 1);
}
END_TEST

START_TEST(a_plain_block_freed_in_stream_order_waits_for_that_stream)
{
    take(&p, DEVICE, 1, A, 4096);
    give_on(&p, DEVICE, A, 3);
    wait_stream(&p, 3); /* 3 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->freed, 2);
    ck_assert_uint_eq(life(t, 0)->clean, 3);
    ck_assert(life(t, 0)->flags & TN_LF_OTHER_FREE);
}
END_TEST

START_TEST(a_reset_ends_what_is_not_stream_ordered)
{
    take(&p, DEVICE, 1, A, 4096);
    take_on(&p, 1, B, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_CONTEXT, .kind = TN_CTX_RESET});
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 3);
    ck_assert_uint_eq(life(t, 1)->freed, TN_LIFE_OPEN);
}
END_TEST

START_TEST(exports_captures_attributes_and_graphs_mark_their_blocks)
{
    take(&p, DEVICE, 1, A, 4096);
    take(&p, DEVICE, 2, B, 4096);
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A + 100});
    other(&p, (tn_event){.type = TN_EV_ATTRIBUTE, .addr = B, .bytes = 6, .aux = 1});
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_KERNEL, .addr = 0x99, .bytes = B, .aux = 4096});
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_BEGIN, .stream = 1});
    take(&p, DEVICE, 3, A + 0x10000, 4096);
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_END, .stream = 1});
    take(&p, DEVICE, 3, A + 0x20000, 4096);
    read_trace();
    ck_assert_uint_eq(life(t, 0)->flags, TN_LF_EXPORTED);
    ck_assert_uint_eq(life(t, 1)->flags, TN_LF_SYNC_MEMOPS | TN_LF_HELD);
    ck_assert_uint_eq(life(t, 2)->flags, TN_LF_IN_CAPTURE);
    ck_assert_uint_eq(life(t, 3)->flags, 0);
}
END_TEST

START_TEST(a_block_is_of_the_pool_that_was_current)
{
    const uint64_t own = 0x51, first = 0x50;
    const uint8_t is[] = {TN_KIND_ASYNC, TN_KIND_POOL, TN_KIND_ASYNC, TN_KIND_POOL, TN_KIND_ASYNC};
    other(&p, (tn_event){.type = TN_EV_POOL, .kind = TN_POOL_CREATE, .addr = own});
    take_on(&p, 1, A, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_POOL, .kind = TN_POOL_DEVICE_SET, .addr = own, .bytes = 0});
    take_on(&p, 1, A + 0x1000, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_POOL, .kind = TN_POOL_DEVICE_SET, .addr = first, .bytes = 0});
    take_on(&p, 1, A + 0x2000, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_POOL, .kind = TN_POOL_DEVICE_SET, .addr = own, .bytes = 0});
    take_on(&p, 1, A + 0x3000, 4096, 1);
    other(&p, (tn_event){.type = TN_EV_POOL, .kind = TN_POOL_DESTROY, .addr = own});
    take_on(&p, 1, A + 0x4000, 4096, 1);
    read_trace();
    for (size_t i = 0; i < sizeof is; i++)
        ck_assert_uint_eq(life(t, i)->kind, is[i]);
}
END_TEST

START_TEST(a_phase_of_a_later_journal_is_passed_over)
{
    take(&p, DEVICE, 1, A, 8192);
    other(&p, (tn_event){.type = TN_EV_PHASE, .kind = TN_PHASE_SERVING + 1});
    read_trace();
    ck_assert_uint_eq(t->processes[0].phase_count, 0);
}
END_TEST

/* Also where the file says that it dropped so many events that any number could be. */
START_TEST(a_number_that_cannot_be_is_refused)
{
    take(&p, DEVICE, 1, A, 8192);
    jm_header(p.journal)->dropped_events = _i >= 2 ? UINT64_MAX / 2 : 0;
    other(&p, (tn_event){.type = TN_EV_WORK, .kind = TN_WORK_KERNEL, .ctx = _i % 2 ? 1 : 0xffff00, .stream = _i % 2 ? 0xffff00 : 1, .bytes = 1, .aux = JM_START + p.at});
    program_end(&p, "one");
    char message[TN_TRACE_MESSAGE];
    const char *path = scratch_file("one.tnj");
    ck_assert_int_eq(tn_trace_open(&path, 1, &t, message), TN_E_LIMIT);
    ck_assert_msg(strstr(message, "one.tnj: it names more events, contexts or streams") != NULL, "%s", message);
}
END_TEST

START_TEST(a_context_wait_covers_streams_that_only_freed)
{
    take_on(&p, 1, A, 4096, 1);
    take_on(&p, 1, B, 4096, 2);
    give_on(&p, TN_KIND_ASYNC, A, 1);
    give_on(&p, TN_KIND_ASYNC, B, 2);
    wait_context(&p);
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 5);
    ck_assert_uint_eq(life(t, 1)->clean, 5);
}
END_TEST

START_TEST(a_released_handle_lives_while_it_is_mapped)
{
    take(&p, TN_KIND_VMM_HANDLE, 1, 0x77, 2 << 20);
    other(&p, (tn_event){.type = TN_EV_VMM_MAP, .addr = A, .bytes = 2 << 20, .aux = 0x77});
    give(&p, TN_KIND_VMM_HANDLE, 0x77);
    other(&p, (tn_event){.type = TN_EV_VMM_UNMAP, .addr = A, .bytes = 2 << 20}); /* 4 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->freed, 4);
}
END_TEST

/* ---- calls that change nothing, or not what they seem to ---- */

START_TEST(what_the_driver_refused_changes_nothing)
{
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = DEVICE, .site = TN_SITE_FIRST + 1, .addr = A, .bytes = 4096, .result = 2});
    take(&p, DEVICE, 2, A, 4096);
    other(&p, (tn_event){.type = TN_EV_FREE, .kind = DEVICE, .addr = A, .result = 1});
    other(&p, (tn_event){.type = TN_EV_CONTEXT, .kind = TN_CTX_RESET, .result = 1});
    other(&p, (tn_event){.type = TN_EV_CONTEXT, .kind = TN_CTX_RESET + 100}); /* some other thing about a context */
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A, .result = 1});
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_IPC, .addr = A + 4096}); /* just behind it */
    other(&p, (tn_event){.type = TN_EV_ATTRIBUTE, .addr = A, .bytes = 6, .aux = 1, .result = 1});
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_BEGIN, .stream = 1, .result = 1});
    other(&p, (tn_event){.type = TN_EV_CAPTURE, .kind = TN_CAPTURE_END, .stream = 1});
    other(&p, (tn_event){.type = TN_EV_QUERY, .bytes = 1 << 20, .aux = 2 << 20, .aux2 = 1, .result = 1});
    other(&p, (tn_event){.type = TN_EV_GRAPH, .kind = TN_GRAPH_INSTANTIATE, .addr = 0x55, .result = 1});
    take(&p, DEVICE, 2, B, 4096);
    give(&p, DEVICE, B + 512); /* nothing is there */
    p.ctx = 0;
    take(&p, DEVICE, 2, B + 8192, 4096);
    read_trace();
    const tn_trace_process *r = &t->processes[0];
    ck_assert_uint_eq(r->life_count, 3);
    ck_assert_uint_eq(r->refused, 1);
    ck_assert_uint_eq(r->frees_unknown, 1);
    ck_assert_uint_eq(r->no_context, 1);
    ck_assert_uint_eq(r->query_count, 0);
    ck_assert_uint_eq(r->graph_execs[0], 0);
    ck_assert_uint_eq(r->first_count, 1);
    ck_assert_uint_eq(r->firsts[0].at, 2);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(life(t, i)->freed, TN_LIFE_OPEN);
        ck_assert_uint_eq(life(t, i)->flags, 0);
    }
}
END_TEST

START_TEST(an_address_that_comes_again_ends_the_block_whose_free_was_not_seen)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    phase(&p, TN_PHASE_SERVING); /* 3 */
    take(&p, DEVICE, 1, A, 8192);
    give(&p, DEVICE, A); /* 5 */
    read_trace();
    ck_assert_uint_eq(t->processes[0].life_count, 2);
    ck_assert_uint_eq(life(t, 0)->freed, 4);
    ck_assert_uint_eq(life(t, 0)->clean, 4);
    ck_assert_uint_eq(life(t, 0)->free_phase, TN_PHASE_SERVING);
    ck_assert_uint_eq(life(t, 1)->freed, 5);
}
END_TEST

START_TEST(an_event_vouches_for_its_last_record_before_the_wait_and_a_captured_one_for_nothing)
{
    take(&p, DEVICE, 1, A, 4096);
    work(&p, 1);
    give(&p, DEVICE, A);
    other(&p, (tn_event){.type = TN_EV_EVENT_RECORD, .addr = 0xf, .stream = 1, .aux2 = 1}); /* captured */
    wait_event(&p, 0xf);
    record_event(&p, 0xe, 1); /* 6 */
    other(&p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_EVENT, .addr = 0xe, .aux = JM_START + 5}); /* had begun before */
    other(&p, (tn_event){.type = TN_EV_EVENT_RECORD, .addr = 0xd}); /* 8: on the default stream, which waits for all */
    wait_event(&p, 0xd);                                            /* 9 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->clean, 9);
}
END_TEST

START_TEST(one_call_may_unmap_many_handles_and_a_retained_one_stays)
{
    const uint64_t bytes = 2 << 20;
    for (unsigned i = 0; i < 3; i++) {
        take(&p, TN_KIND_VMM_HANDLE, 1, 0x70 + i, bytes);
        other(&p, (tn_event){.type = TN_EV_VMM_MAP, .addr = A + i * bytes, .bytes = bytes, .aux = 0x70 + i});
    }
    other(&p, (tn_event){.type = TN_EV_EXPORT, .kind = TN_EXPORT_RETAIN, .aux = 0x71});
    for (unsigned i = 0; i < 3; i++)
        give(&p, TN_KIND_VMM_HANDLE, 0x70 + i);
    other(&p, (tn_event){.type = TN_EV_VMM_UNMAP, .addr = A, .bytes = 2 * bytes, .result = 1});
    other(&p, (tn_event){.type = TN_EV_VMM_UNMAP, .addr = A, .bytes = 2 * bytes}); /* 12: not the third */
    give(&p, TN_KIND_VMM_HANDLE, 0x71);                                           /* 13 */
    read_trace();
    ck_assert_uint_eq(life(t, 0)->freed, 12);
    ck_assert_uint_eq(life(t, 1)->freed, 13);
    ck_assert_uint_eq(life(t, 2)->freed, TN_LIFE_OPEN);
}
END_TEST

START_TEST(graphs_are_counted_while_they_are_there_and_their_memory_ends_with_its_node)
{
    const tn_event made = {.type = TN_EV_GRAPH, .kind = TN_GRAPH_INSTANTIATE}, gone = {.type = TN_EV_GRAPH, .kind = TN_GRAPH_EXEC_DESTROY};
    tn_event e;
    for (unsigned i = 0; i < 6; i++) { /* two at once, one of them made anew under its old handle */
        e = made, e.addr = 0x51;
        other(&p, e);
        e = made, e.addr = 0x52 + i;
        other(&p, e);
        e = gone, e.addr = 0x52 + i;
        other(&p, e);
    }
    e = gone, e.addr = 0x99; /* not known */
    other(&p, e);
    take(&p, TN_KIND_GRAPH, 1, A, 4096);
    take(&p, DEVICE, 2, B, 4096);
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_FREE, .bytes = B}); /* no memory of a graph's */
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_FREE, .bytes = A}); /* 23 */
    other(&p, (tn_event){.type = TN_EV_GRAPH_NODE, .kind = TN_NODE_KERNEL, .bytes = A + 4096, .aux2 = TN_SITE_FIRST + 3});
    read_trace();
    ck_assert_uint_eq(t->processes[0].graph_execs[0], 2);
    ck_assert_uint_eq(life(t, 0)->freed, 23);
    ck_assert_uint_eq(life(t, 1)->freed, TN_LIFE_OPEN);
    for (size_t i = 0; i < t->site_count; i++) /* a held block that is not known marks its site */
        ck_assert_uint_eq(t->sites[i].flags, t->sites[i].key == 0x1003 ? TN_LF_HELD : 0);
}
END_TEST

START_TEST(the_order_in_which_runs_are_given_does_not_show)
{
    program q = program_begin(2);
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
    take(&p, DEVICE, 1, A, 4096);
    jm_header(p.journal)->dropped_events = 3;
    read_trace();
    ck_assert_int_eq(tn_trace_incomplete(t), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *c = tcase_create("trace");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, a_block_with_no_work_is_clean_at_its_free);
    tcase_add_test(c, a_plain_block_lives_until_a_wait_covers_its_free);
    tcase_add_test(c, every_stream_of_the_context_has_to_be_covered);
    tcase_add_test(c, a_wait_vouches_for_what_was_enqueued_before_it_began);
    tcase_add_test(c, an_event_wait_covers_its_stream_up_to_the_record);
    tcase_add_test(c, the_wait_of_a_free_that_may_be_placed_counts_for_nothing);
    tcase_add_test(c, the_wait_of_a_free_that_stays_the_drivers_counts);
    tcase_add_test(c, pinned_memory_is_in_use_by_every_context);
    tcase_add_test(c, a_served_block_is_as_it_would_have_been);
    tcase_add_test(c, a_stream_ordered_block_is_clean_when_its_stream_is);
    tcase_add_test(c, a_copy_that_waited_is_done_itself_and_others_work_is_not);
    tcase_add_test(c, a_wait_covers_what_its_stream_had_waited_for);
    tcase_add_test(c, a_wait_begun_before_the_join_covers_nothing_of_it);
    tcase_add_test(c, joins_that_nobody_waits_for_are_forgotten_and_rings_end);
    tcase_add_test(c, joins_say_which_stream_waited_for_what);
    tcase_add_test(c, a_plain_block_freed_in_stream_order_waits_for_that_stream);
    tcase_add_test(c, a_reset_ends_what_is_not_stream_ordered);
    tcase_add_test(c, exports_captures_attributes_and_graphs_mark_their_blocks);
    tcase_add_test(c, a_block_is_of_the_pool_that_was_current);
    tcase_add_test(c, a_phase_of_a_later_journal_is_passed_over);
    tcase_add_loop_test(c, a_number_that_cannot_be_is_refused, 0, 4);
    tcase_add_test(c, a_context_wait_covers_streams_that_only_freed);
    tcase_add_test(c, a_released_handle_lives_while_it_is_mapped);
    tcase_add_test(c, what_the_driver_refused_changes_nothing);
    tcase_add_test(c, an_address_that_comes_again_ends_the_block_whose_free_was_not_seen);
    tcase_add_test(c, an_event_vouches_for_its_last_record_before_the_wait_and_a_captured_one_for_nothing);
    tcase_add_test(c, one_call_may_unmap_many_handles_and_a_retained_one_stays);
    tcase_add_test(c, graphs_are_counted_while_they_are_there_and_their_memory_ends_with_its_node);
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
