/* What the tests of the verified slots have in common: a hook that asks in all ways, and frames above it. Included by files that are compiled
 * without frame pointers where the compiler needs none: their frames are of the kind whose CFA is the stack pointer plus a constant, but for
 * those that say otherwise. Counters that a call is made under are volatile there: no copy of a loop may have a call, and with it a return
 * address, of its own. */
#ifndef TENURE_TESTS_SLOTS_LOOKS_H
#define TENURE_TESTS_SLOTS_LOOKS_H

#include <check.h>

#include "shim/callsite.h"
#include "shim/callsite_slots.h"
#include "shim/callsite_tables.h"
#include "tests/callsite/mock_journal.h"

#define KEEP __asm__ __volatile__("" ::: "memory")

/* What one hook learned. */
typedef struct look {
    uint32_t found; /* in the slots, before anything else */
    uint32_t fast, slow;
    const uint64_t *frame;
    uint64_t caller;
} look;

static __attribute__((noinline, unused)) void hook(look *l)
{
    const void *caller = __builtin_return_address(0), *frame = __builtin_frame_address(0);
    l->frame = frame;
    l->caller = (uint64_t)(uintptr_t)caller;
    l->found = tn_slots_find(tn_epoch(), caller, frame);
    l->fast = tn_callsite(caller, frame, 1);
    l->slow = tn_callsite(caller, NULL, 1);
    KEEP;
}

static __attribute__((unused)) void start(void)
{
    tn_slots_mode = TN_SLOTS_ON;
    ck_assert_int_eq(tn_callsite_start(mock_journal(), NULL), 0);
}

static __attribute__((noinline, unused)) void inner(look *l)
{
    hook(l);
    KEEP;
}

static __attribute__((noinline, unused)) void recurse(look *l, int depth)
{
    if (depth > 0)
        recurse(l, depth - 1);
    else
        inner(l);
    KEEP;
}

#define ck_right(l) ck_assert_uint_eq((l).fast, (l).slow)
#define ck_hit(l)                                  \
    do {                                           \
        ck_right(l);                               \
        ck_assert_uint_eq((l).found, (l).slow);    \
    } while (0)
#define ck_miss(l)                                    \
    do {                                              \
        ck_right(l);                                  \
        ck_assert_uint_eq((l).found, TN_SITE_NONE);   \
    } while (0)

/* Runs a suite of these tests; the process's exit code. */
static inline int run_tests(const char *name, const TTest *const *tests, int n)
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    for (int i = 0; i < n; i++)
        tcase_add_test(t, tests[i]);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}

#endif
