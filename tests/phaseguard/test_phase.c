/* The phases' order: forward only, a swap in brackets, and every thread told its own move. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "phaseguard/call_name.h"
#include "phaseguard/phase.h"

static void check_move(tn_phase_state *s, uint32_t to, tn_phase_move move, uint32_t from, uint32_t swap, uint32_t then)
{
    tn_phase_moved m = tn_phase_set(s, to);
    ck_assert_int_eq(m.move, move);
    ck_assert_uint_eq(m.from, from);
    ck_assert_uint_eq(m.swap, swap);
    ck_assert_uint_eq(tn_phase_of(s), then);
}

START_TEST(forward_only)
{
    tn_phase_state s = {0};
    check_move(&s, TN_PHASE_LOADING, TN_MOVE_NONE, TN_PHASE_LOADING, 0, TN_PHASE_LOADING);
    check_move(&s, TN_PHASE_PLANNING, TN_MOVE_FORWARD, TN_PHASE_LOADING, 0, TN_PHASE_PLANNING);
    check_move(&s, TN_PHASE_LOADING, TN_MOVE_BACKWARD, TN_PHASE_PLANNING, 0, TN_PHASE_PLANNING);
    check_move(&s, TN_PHASE_SERVING, TN_MOVE_FORWARD, TN_PHASE_PLANNING, 0, TN_PHASE_SERVING);
    check_move(&s, TN_PHASE_LOADING, TN_MOVE_BACKWARD, TN_PHASE_SERVING, 0, TN_PHASE_SERVING);
    check_move(&s, TN_PHASE_SERVING, TN_MOVE_NONE, TN_PHASE_SERVING, 0, TN_PHASE_SERVING);
    check_move(&s, 3, TN_MOVE_INVALID, TN_PHASE_SERVING, 0, TN_PHASE_SERVING);
    ck_assert_uint_eq(tn_phase_swaps(&s), 0);
}
END_TEST

START_TEST(planning_may_be_left_out)
{
    tn_phase_state s = {0};
    check_move(&s, TN_PHASE_SERVING, TN_MOVE_FORWARD, TN_PHASE_LOADING, 0, TN_PHASE_SERVING);
}
END_TEST

START_TEST(a_swap_is_bracketed)
{
    tn_phase_state s = {0};
    tn_phase_set(&s, TN_PHASE_SERVING);
    for (uint32_t n = 1; n <= 3; n++) {
        check_move(&s, TN_PHASE_PLANNING, TN_MOVE_SWAP_BEGIN, TN_PHASE_SERVING, n, TN_PHASE_PLANNING);
        check_move(&s, TN_PHASE_PLANNING, TN_MOVE_NONE, TN_PHASE_PLANNING, 0, TN_PHASE_PLANNING);
        check_move(&s, TN_PHASE_LOADING, TN_MOVE_BACKWARD, TN_PHASE_PLANNING, 0, TN_PHASE_PLANNING);
        check_move(&s, TN_PHASE_SERVING, TN_MOVE_SWAP_END, TN_PHASE_PLANNING, n, TN_PHASE_SERVING);
    }
    ck_assert_uint_eq(tn_phase_swaps(&s), 3);
}
END_TEST

START_TEST(backward_is_known_beforehand)
{
    for (uint32_t from = 0; from < 3; from++)
        for (uint32_t to = 0; to < 4; to++) {
            tn_phase_state s = {from};
            ck_assert_int_eq(tn_phase_is_backward(from, to), tn_phase_set(&s, to).move >= TN_MOVE_BACKWARD);
        }
}
END_TEST

static tn_phase_state shared;
static uint32_t begun, ended;

static void *swaps_often(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        tn_phase_moved m = tn_phase_set(&shared, i & 1 ? TN_PHASE_SERVING : TN_PHASE_PLANNING);
        if (m.move == TN_MOVE_SWAP_BEGIN)
            __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
        if (m.move == TN_MOVE_SWAP_END)
            __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    }
    return arg;
}

START_TEST(each_move_belongs_to_one_thread)
{
    pthread_t threads[4];
    tn_phase_set(&shared, TN_PHASE_SERVING);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, swaps_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tn_phase_set(&shared, TN_PHASE_SERVING);
    ck_assert_uint_gt(begun, 0);
    ck_assert_uint_eq(tn_phase_swaps(&shared), begun);
    ck_assert(ended == begun || ended + 1 == begun); /* the last end may have been ours */
}
END_TEST

START_TEST(words)
{
    for (uint32_t p = 0; p < 3; p++)
        ck_assert_int_eq(tn_phase_parse(tn_phase_word(p)), (int)p);
    ck_assert_ptr_null(tn_phase_word(3));
    ck_assert_int_eq(tn_phase_parse("Serving"), -1);
    ck_assert_str_eq(tn_cause_word(TN_CAUSE_CTL), "ctl");
    ck_assert_str_eq(tn_cause_word(TN_CAUSE_SOAK), "soak");
    ck_assert_str_eq(tn_cause_word(UINT64_MAX), "unknown");
}
END_TEST

static int named(const char *row, const char *name)
{
    return tn_call_is_named(row, name, strlen(name));
}

START_TEST(variants_of_a_call)
{
    ck_assert(named("cudaGraphLaunch", "cudaGraphLaunch"));
    ck_assert(named("cudaGraphLaunch_ptsz", "cudaGraphLaunch"));
    ck_assert(named("cuMemAlloc_v2", "cuMemAlloc"));
    ck_assert(named("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"));
    ck_assert(named("cuMemAlloc_v2", "cuMemAlloc_v2"));
    ck_assert(!named("cuMemAllocAsync", "cuMemAlloc"));
    ck_assert(!named("cuMemAlloc", "cuMemAlloc_v2"));
    ck_assert(!named("cudaGraphLaunch", "cudaGraph"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phase");
    TCase *cases = tcase_create("phase");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, forward_only);
    tcase_add_test(cases, planning_may_be_left_out);
    tcase_add_test(cases, a_swap_is_bracketed);
    tcase_add_test(cases, backward_is_known_beforehand);
    tcase_add_test(cases, each_move_belongs_to_one_thread);
    tcase_add_test(cases, words);
    tcase_add_test(cases, variants_of_a_call);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
