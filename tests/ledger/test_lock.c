/* The lock keeps threads apart and wakes those that wait; in debug builds a wrong order of ranks traps. The
 * source is included, so that the debug half is tested in every build. */
#define _GNU_SOURCE
#define TN_DEBUG 1
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "ledger/tn_error.h"
#include "ledger/tn_lock.c"

static tn_lock shared_lock = TN_LOCK_INIT(TN_LOCK_LEDGER);
static long counter; /* not atomic: the lock has to do */

static void *count(void *p)
{
    (void)p;
    for (int i = 0; i < 200000; i++) {
        tn_lock_take(&shared_lock);
        counter++;
        tn_lock_release(&shared_lock);
    }
    return NULL;
}

START_TEST(eight_threads_count_right)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(counter, 8 * 200000);
    ck_assert_uint_eq(shared_lock.word, 0);
}
END_TEST

static void *hold_and_sleep(void *p)
{
    tn_lock_take(&shared_lock);
    *(_Atomic int *)p = 1;
    usleep(50000);
    counter = 42;
    tn_lock_release(&shared_lock);
    return NULL;
}

START_TEST(a_waiter_sleeps_until_the_release)
{
    pthread_t thread;
    _Atomic int held_now = 0;
    pthread_create(&thread, NULL, hold_and_sleep, (void *)&held_now);
    while (!held_now)
        usleep(100);
    ck_assert_int_eq(tn_lock_try(&shared_lock), 0);
    errno = 77;
    tn_lock_take(&shared_lock);
    ck_assert_int_eq(counter, 42);
    ck_assert_int_eq(errno, 77);
    tn_lock_release(&shared_lock);
    ck_assert_int_eq(tn_lock_try(&shared_lock), 1);
    tn_lock_release(&shared_lock);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(rising_ranks_are_fine)
{
    tn_lock low = TN_LOCK_INIT(TN_LOCK_LEDGER), same = TN_LOCK_INIT(TN_LOCK_LEDGER),
            high = TN_LOCK_INIT(TN_LOCK_JOURNAL_GROWTH), any = { 0, 0 };
    tn_lock_take(&low);
    tn_lock_take(&same);
    tn_lock_take(&high);
    tn_lock_take(&any);
    tn_lock_release(&low); /* in any order */
    tn_lock_release(&any);
    tn_lock_release(&high);
    tn_lock_release(&same);
    ck_assert_uint_eq(held_count, 0);
}
END_TEST

START_TEST(a_falling_rank_traps)
{
    tn_lock low = TN_LOCK_INIT(TN_LOCK_LEDGER), high = TN_LOCK_INIT(TN_LOCK_JOURNAL_GROWTH);
    tn_lock_take(&high);
    tn_lock_take(&low);
}
END_TEST

START_TEST(releasing_what_is_not_held_traps)
{
    tn_lock lock = TN_LOCK_INIT(TN_LOCK_LEDGER);
    tn_lock_release(&lock);
}
END_TEST

START_TEST(every_error_has_its_text)
{
    for (int e = -1; e <= TN_ERROR_COUNT; e++) {
        const char *text = tn_error_text((tn_error)e);
        ck_assert_ptr_nonnull(text);
        ck_assert_int_gt((int)text[0], 0);
        int known = e >= 0 && e < TN_ERROR_COUNT;
        const char *unknown = tn_error_text((tn_error)999);
        ck_assert_int_eq(text != unknown, known);
        for (int other = 0; known && other < e; other++)
            ck_assert_str_ne(text, tn_error_text((tn_error)other));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lock");
    TCase *c = tcase_create("lock");
    tcase_add_test(c, eight_threads_count_right);
    tcase_add_test(c, a_waiter_sleeps_until_the_release);
    tcase_add_test(c, rising_ranks_are_fine);
#if defined(__x86_64__)
    int trap = SIGILL;
#else
    int trap = SIGTRAP;
#endif
    tcase_add_test_raise_signal(c, a_falling_rank_traps, trap);
    tcase_add_test_raise_signal(c, releasing_what_is_not_held_traps, trap);
    tcase_add_test(c, every_error_has_its_text);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
