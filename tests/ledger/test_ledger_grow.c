/* The ledger's tables where they grow in ways that many threads meet by chance: one that is left while the next is full already, and lines that
 * are crowded without need. Includes the source, to stop the work half-way. */
#define _GNU_SOURCE
#include <check.h>

#include "ledger/ledger_grow.c"

static void insert(uint64_t i)
{
    tn_entry e = { .addr = i, .bytes = 1, .extra = ~i };
    ck_assert_int_eq(tn_ledger_insert(TN_SPACE_VMM_HANDLE, &e, NULL), 0);
}

static void ck_all(uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++) {
        tn_entry e;
        ck_assert_int_eq(tn_ledger_find(TN_SPACE_VMM_HANDLE, i, &e), 1);
        ck_assert_uint_eq(e.extra, ~i);
    }
    ck_assert_int_eq(tn_ledger_find(TN_SPACE_VMM_HANDLE, count + 1, NULL), 0);
    ck_assert_uint_eq(tn_ledger_count(), count);
}

static uint64_t capacity(unsigned class)
{
    return (uint64_t)TN_LINE_CELLS << class;
}

/* Blocks in the first table, the second one prepared, nothing moved yet. */
static uint64_t stop_while_moving(uint64_t blocks)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
    tn_lock_take(&growth);
    for (uint64_t i = 1; i <= blocks; i++)
        insert(i);
    ck_assert_int_eq(phase, IDLE);
    ck_assert_int_eq(begin(TN_CLASS_MIN + 1), 1);
    while (phase == PREPARING)
        (void)work();
    return blocks;
}

START_TEST(a_third_table_takes_what_two_cannot_hold)
{
    uint64_t count = stop_while_moving(capacity(TN_CLASS_MIN));
    /* As other threads do, while the one that moves cells is off the processor. */
    while (count < capacity(TN_CLASS_MIN) + capacity(TN_CLASS_MIN + 1) - 20)
        insert(++count);
    ck_assert_uint_eq(tn_view_newest(view_now()), TN_CLASS_MIN + 1);
    ck_all(count);
    tn_lock_release(&growth);
    for (int i = 0; i < 50; i++)
        insert(++count);
    ck_assert_uint_ge(tn_view_newest(view_now()), TN_CLASS_MIN + 4);
    ck_all(count);
    for (uint64_t i = 1; i <= count; i++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_VMM_HANDLE, i, NULL), 1);
    ck_all(0);
}
END_TEST

START_TEST(blocks_go_from_tables_that_are_left)
{
    uint64_t count = stop_while_moving(300);
    for (uint64_t i = 2; i <= count; i += 2)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_VMM_HANDLE, i, NULL), 1);
    for (int i = 0; i < 2; i++)
        (void)work(); /* half of it */
    for (uint64_t i = 1; i <= count; i++)
        ck_assert_int_eq(tn_ledger_find(TN_SPACE_VMM_HANDLE, i, NULL), i % 2);
    for (uint64_t i = 1; i <= count; i += 2)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_VMM_HANDLE, i, NULL), 1);
    while (phase == MOVING)
        (void)work();
    tn_lock_release(&growth);
    ck_assert_uint_eq(tn_view_old(view_now()), 0);
    ck_all(0);
    /* and the memory of the one that was left holds nothing, and takes nothing */
    for (unsigned i = 0; i < 1u << TN_CLASS_MIN; i++)
        for (unsigned k = 0; k < TN_LINE_CELLS; k++)
            ck_assert_uint_eq(tn_tables[TN_CLASS_MIN].lines[i].cells[k], TN_CELL_CLOSED);
    ck_assert_int_eq(tn_cell_put(TN_CLASS_MIN, tn_cell(1, 0, 64)), 0);
}
END_TEST

START_TEST(shrunk_tables_are_used_again)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
    for (int round = 0; round < 4; round++) {
        for (uint64_t i = 1; i <= 20000; i++)
            insert(i);
        ck_assert_uint_ge(newest(), TN_CLASS_MIN + 5);
        ck_all(20000);
        for (uint64_t i = 20000; i > 0; i--)
            ck_assert_int_eq(tn_ledger_remove(TN_SPACE_VMM_HANDLE, i, NULL), 1);
        ck_assert_uint_le(newest(), TN_CLASS_MIN + 3);
    }
    ck_assert_uint_ge(tn_tables[TN_CLASS_MIN + 5].life, 4); /* prepared once a round at least */
}
END_TEST

/* Registered memory of few bytes: many blocks in one page of the smallest level. */
START_TEST(crowded_lines_alone_do_not_grow_a_table)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
    for (uint64_t i = 0; i < 100; i++) {
        tn_entry e = { .addr = 0x10000 + 2 * i, .bytes = 2, .extra = i };
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
    }
    ck_assert_uint_eq(newest(), TN_CLASS_MIN);
    ck_assert_uint_gt(tn_tables[TN_CLASS_MIN].reach, 3);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 100; i++) {
            tn_entry e;
            ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, 0x10001 + 2 * i, &e), round == 0);
            if (round == 0)
                ck_assert_uint_eq(e.extra, i);
        }
        for (uint64_t i = 0; i < 100; i++)
            ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, 0x10000 + 2 * i, NULL), round == 0);
    }
    tn_ledger_thread_ends();
    /* What had to leave its line was counted, and is counted out again. */
    for (unsigned i = 0; i < 1u << TN_CLASS_MIN; i++)
        ck_assert_uint_eq((uint32_t)tn_tables[TN_CLASS_MIN].lines[i].over, 0);
}
END_TEST

static unsigned cells_taken(void)
{
    unsigned taken = 0;
    for (uint64_t i = 0; i >> newest() == 0; i++)
        for (unsigned k = 0; k < TN_LINE_CELLS; k++)
            taken += tn_tables[newest()].lines[i].cells[k] > TN_CELL_FREE;
    return taken;
}

/* A removal leaves node and cells for the block to come again: few of them, in tables that are left as well, and none once the thread has ended. */
START_TEST(what_is_kept_for_blocks_to_come_again_moves_and_goes)
{
    ck_assert_int_eq(tn_ledger_init(), TN_OK);
    for (uint64_t i = 1; i <= 100; i++) {
        tn_entry e = { .addr = i << 20, .bytes = 1 << 20, .extra = i };
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
    }
    ck_assert_uint_eq(cells_taken(), 200);
    for (uint64_t i = 1; i <= 100; i++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, i << 20, NULL), 1);
    unsigned kept = cells_taken();
    ck_assert_uint_gt(kept, 0);
    ck_assert_uint_le(kept, 16);
    ck_assert_uint_eq(tn_ledger_count(), 0);
    for (uint64_t i = 1; i <= 5000; i++)
        insert(i);
    ck_assert_uint_gt(newest(), TN_CLASS_MIN);
    for (uint64_t i = 1; i <= 100; i++) {
        tn_entry e = { .addr = i << 20, .bytes = 1 << 20, .extra = ~i };
        ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, (i << 20) + 5, NULL), 0);
        ck_assert_int_eq(tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL), 0);
        ck_assert_int_eq(tn_ledger_find(TN_SPACE_ADDRESS, (i << 20) + 5, &e), 1);
        ck_assert_uint_eq(e.extra, ~i);
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_ADDRESS, i << 20, NULL), 1);
    }
    for (uint64_t i = 1; i <= 5000; i++)
        ck_assert_int_eq(tn_ledger_remove(TN_SPACE_VMM_HANDLE, i, NULL), 1);
    while (phase != IDLE)
        (void)work();
    tn_ledger_thread_ends();
    ck_assert_uint_eq(cells_taken(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ledger_grow");
    TCase *c = tcase_create("ledger_grow");
    tcase_add_test(c, a_third_table_takes_what_two_cannot_hold);
    tcase_add_test(c, blocks_go_from_tables_that_are_left);
    tcase_add_test(c, shrunk_tables_are_used_again);
    tcase_add_test(c, crowded_lines_alone_do_not_grow_a_table);
    tcase_add_test(c, what_is_kept_for_blocks_to_come_again_moves_and_goes);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
