/* Whether every thread has been outside since: those inside are waited for, not for ever, and whoever is not known is never taken to be outside. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "shim/quiet.h"

static int own;
static _Atomic int stage, seen;

static void wait_for(int n)
{
    while (atomic_load(&stage) < n) sched_yield();
}

static void *inside_for_a_while(void *arg)
{
    static int busy;
    (void)arg;
    tn_quiet_join(&busy);
    __atomic_store_n(&busy, 1, __ATOMIC_RELAXED);
    atomic_store(&stage, 1);
    wait_for(2);
    __atomic_store_n(&busy, 0, __ATOMIC_RELAXED);
    atomic_store(&stage, 3);
    wait_for(4);
    tn_quiet_leave(&busy);
    __atomic_store_n(&busy, 1, __ATOMIC_RELAXED); /* nobody's any more */
    atomic_store(&stage, 5);
    wait_for(6);
    return NULL;
}

START_TEST(a_thread_inside_is_waited_for_and_not_for_ever)
{
    pthread_t t;
    atomic_store(&stage, 0);
    tn_quiet_join(&own);
    own = 1; /* the caller asks from inside */
    ck_assert_int_eq(tn_quiet_since_now(&own), 1);
    ck_assert_int_eq(pthread_create(&t, NULL, inside_for_a_while, NULL), 0);
    wait_for(1);
    ck_assert_int_eq(tn_quiet_since_now(&own), 0);
    atomic_store(&stage, 2);
    wait_for(3);
    ck_assert_int_eq(tn_quiet_since_now(&own), 1);
    atomic_store(&stage, 4);
    wait_for(5);
    ck_assert_int_eq(tn_quiet_since_now(&own), 1);
    atomic_store(&stage, 6);
    pthread_join(t, NULL);
}
END_TEST

/* What is taken apart after a quiet moment is not in use: a thread goes in, looks whether it is there, and uses it. */
static int *_Atomic shared;
static _Atomic int end, used_after_it_went;

static void *uses(void *arg)
{
    int busy = 0;
    (void)arg;
    tn_quiet_join(&busy);
    while (!atomic_load(&end)) {
        __atomic_store_n(&busy, 1, __ATOMIC_RELAXED);
        atomic_signal_fence(memory_order_seq_cst);
        int *p = atomic_load_explicit(&shared, memory_order_relaxed);
        if (p && __atomic_load_n(p, __ATOMIC_RELAXED) != 7) atomic_store(&used_after_it_went, 1);
        if (p) atomic_fetch_add(&seen, 1);
        atomic_signal_fence(memory_order_seq_cst);
        __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    }
    tn_quiet_leave(&busy);
    return NULL;
}

START_TEST(nobody_uses_what_went_after_a_quiet_moment)
{
    enum { ROUNDS = 2000, USERS = 3 };
    pthread_t t[USERS];
    int taken = 0;
    time_t until = time(NULL) + 3;
    tn_quiet_join(&own);
    for (int i = 0; i < USERS; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, uses, NULL), 0);
    for (int round = 0; round < ROUNDS && time(NULL) < until; round++) {
        static int things[ROUNDS];
        things[round] = 7;
        atomic_store(&shared, &things[round]);
        int before = atomic_load(&seen);
        for (int i = 0; i < 100 && atomic_load(&seen) == before; i++) sched_yield();
        atomic_store(&shared, NULL);
        if (!tn_quiet_since_now(&own)) continue; /* one was held up inside */
        __atomic_store_n(&things[round], 0, __ATOMIC_RELAXED);
        taken++;
    }
    atomic_store(&end, 1);
    for (int i = 0; i < USERS; i++) pthread_join(t[i], NULL);
    ck_assert_int_eq(atomic_load(&used_after_it_went), 0);
    ck_assert_int_gt(taken, 0);
    ck_assert_int_gt(atomic_load(&seen), 0);
}
END_TEST

START_TEST(a_thread_that_is_not_known_may_be_inside)
{
    static int words[1100];
    for (int i = 0; i < 1100; i++) tn_quiet_join(&words[i]);
    ck_assert_int_eq(tn_quiet_since_now(&own), 0);
    for (int i = 0; i < 1100; i++) tn_quiet_leave(&words[i]);
    ck_assert_int_eq(tn_quiet_since_now(&own), 0); /* one of those without a place may be there still */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("quiet");
    TCase *t = tcase_create("quiet");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_thread_inside_is_waited_for_and_not_for_ever);
    tcase_add_test(t, nobody_uses_what_went_after_a_quiet_moment);
    tcase_add_test(t, a_thread_that_is_not_known_may_be_inside);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
