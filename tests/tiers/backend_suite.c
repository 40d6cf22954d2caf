#include "backend_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define REGIONS 12

static const suite_subject *s;
static jmp_buf broken;
static char why[512];
static int passed;
/* What a test has live, so that one that breaks off leaves nothing behind for the next. */
static tn_region regions[REGIONS];

static void __attribute__((noreturn, format(printf, 2, 3))) break_off(int line, const char *format, ...)
{
    va_list arguments;
    int n = snprintf(why, sizeof why, "line %d: ", line);
    va_start(arguments, format);
    vsnprintf(why + n, sizeof why - (size_t)n, format, arguments);
    va_end(arguments);
    longjmp(broken, 1);
}

#define want(condition) \
    do {                \
        if (!(condition)) break_off(__LINE__, "%s", #condition); \
    } while (0)
#define want_same(a, b)                                                                                                   \
    do {                                                                                                                  \
        unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b);                                    \
        if (a_ != b_) break_off(__LINE__, "%s is %llu, not %s, which is %llu", #a, a_, #b, b_);                           \
    } while (0)
#define want_error(error, call)                                                                                           \
    do {                                                                                                                  \
        tn_mem_error got_ = (call);                                                                                       \
        if (got_ != (error))                                                                                              \
            break_off(__LINE__, "%s: %s, not: %s", #call, tn_mem_error_text(got_), tn_mem_error_text(error));             \
    } while (0)
#define want_ok(call) want_error(TN_MEM_OK, call)

void suite_host_fill(void *self, void *at, uint32_t word, size_t bytes)
{
    uint32_t *words = at;
    (void)self;
    for (size_t i = 0; i < bytes / 4; i++)
        words[i] = word;
}

size_t suite_host_wrong(void *self, const void *at, uint32_t word, size_t bytes)
{
    const uint32_t *words = at;
    size_t wrong = 0;
    (void)self;
    for (size_t i = 0; i < bytes / 4; i++)
        wrong += words[i] != word;
    return wrong;
}

static tn_backend_stats stats_now(void)
{
    tn_backend_stats stats;
    tn_backend_read_stats(s->backend, &stats);
    return stats;
}

static size_t physical_now(void)
{
    return s->physical != NULL ? s->physical(s->self) : 0;
}

/* V1: the figures are the sum of what is live, and no more than what the device has in use since `before`. */
static void check_conservation(size_t before)
{
    size_t live = 0, reserved = 0;
    for (int i = 0; i < REGIONS; i++) {
        live += regions[i].committed;
        reserved += regions[i].reserved;
    }
    tn_backend_stats stats = stats_now();
    want_same(stats.live, live);
    want_same(stats.reserved, reserved);
    want(stats.live <= stats.peak);
    want(stats.live <= stats.capacity);
    if (s->physical != NULL && physical_now() + s->slack - before < live)
        break_off(__LINE__, "the device has %zu bytes in use, fewer than the %zu that are live", physical_now() - before, live);
}

static void fill(const tn_region *r, size_t from, size_t to, uint32_t word)
{
    s->fill(s->self, (char *)r->base + from, word, to - from);
}

static void check_fill(const tn_region *r, size_t from, size_t to, uint32_t word)
{
    size_t wrong = s->wrong(s->self, (char *)r->base + from, word, to - from);
    if (wrong != 0)
        break_off(__LINE__, "%zu of %zu words are not what was written", wrong, (to - from) / 4);
}

static void release_all(void)
{
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].base != NULL)
            want_ok(tn_backend_release(s->backend, &regions[i]));
}

/* ---- the invariants ---- */

static void arguments_are_checked_first(void)
{
    tn_region *r = &regions[0];
    tn_backend_stats before = stats_now();
    want_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(s->backend, 0, 0, "t", r));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(s->backend, MIB, 3, "t", r));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(s->backend, MIB, 2 * TN_ALIGNMENT_MAX, "t", r));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(s->backend, MIB, 0, NULL, r));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_acquire_growable(s->backend, MIB, 2 * MIB, 0, "t", r));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_release(s->backend, r));
    tn_backend_stats after = stats_now();
    want_same(after.refused, before.refused + 6);
    want_same(after.live, 0);
    want_same(after.acquires, before.acquires);
}

static void more_than_there_is_is_out_of_memory(void)
{
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, TN_BYTES_MAX + 1, TN_BYTES_MAX, (size_t)1 << 52};
    size_t before = physical_now();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        want_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(s->backend, sizes[i], 0, "t", &regions[0]));
        want_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(s->backend, sizes[i], s->max_alignment, "t", &regions[0]));
        if (s->grows)
            want_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire_growable(s->backend, sizes[i], sizes[i], 0, "t", &regions[0]));
    }
    check_conservation(before);
    want_same(physical_now(), before);
}

static void bases_are_aligned_as_asked(void)
{
    const size_t sizes[] = {1, 4096, MIB + 24576, 3 * MIB};
    for (size_t alignment = 1; alignment <= s->max_alignment; alignment *= 2)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            want_ok(tn_backend_acquire(s->backend, sizes[i], alignment, "t", &regions[0]));
            want_same((uintptr_t)regions[0].base % alignment, 0);
            want(regions[0].committed >= sizes[i] && regions[0].reserved >= regions[0].committed);
            if (s->grows) {
                want_ok(tn_backend_acquire_growable(s->backend, sizes[i], 1, alignment, "t", &regions[1]));
                want_same((uintptr_t)regions[1].base % alignment, 0);
                want(regions[1].committed >= 1 && regions[1].reserved >= sizes[i]);
            }
            release_all();
        }
}

static void the_last_byte_can_be_used(void)
{
    const size_t sizes[] = {4, 512, 4096, 2 * MIB - 4, 2 * MIB, 3 * MIB + 4};
    for (size_t alignment = 256; alignment <= s->max_alignment; alignment *= 64)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            want_ok(tn_backend_acquire(s->backend, sizes[i], alignment, "t", &regions[i]));
            fill(&regions[i], 0, sizes[i], (uint32_t)(77 + i));
            if (i + 1 < sizeof sizes / sizeof *sizes)
                continue;
            for (size_t k = 0; k <= i; k++)
                check_fill(&regions[k], 0, sizes[k], (uint32_t)(77 + k));
            release_all();
        }
}

static void a_region_is_released_once(void)
{
    want_ok(tn_backend_acquire(s->backend, 4096, 0, "t", &regions[0]));
    tn_region copy = regions[0], moved = regions[0];
    moved.base = (char *)moved.base + 512;
    want_error(TN_MEM_E_ARGUMENT, tn_backend_release(s->backend, &moved));
    uint64_t releases = stats_now().releases;
    want_ok(tn_backend_release(s->backend, &regions[0]));
    want(regions[0].base == NULL);
    want_error(TN_MEM_E_ARGUMENT, tn_backend_release(s->backend, &regions[0]));
    want_error(TN_MEM_E_STALE, tn_backend_release(s->backend, &copy));
    want_same(stats_now().releases, releases + 1);
    want_same(stats_now().live, 0);
}

static void plain_regions_do_not_grow(void)
{
    want_ok(tn_backend_acquire(s->backend, 3 * MIB, 0, "t", &regions[0]));
    tn_region was = regions[0];
    want_ok(tn_backend_commit(s->backend, &regions[0], 3 * MIB));
    want_error(TN_MEM_E_ARGUMENT, tn_backend_commit(s->backend, &regions[0], was.reserved + 1));
    want_error(TN_MEM_E_NOT_GROWABLE, tn_backend_decommit(s->backend, &regions[0], 0));
    if (!s->grows)
        want_error(TN_MEM_E_NOT_GROWABLE, tn_backend_acquire_growable(s->backend, 2 * MIB, MIB, 0, "t", &regions[1]));
    want(memcmp(&was, &regions[0], sizeof was) == 0);
    release_all();
}

/* xorshift, as good as anything here. */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % below;
}

static void change_region(uint64_t *random, tn_region *r)
{
    uint64_t what = draw(random, 4);
    tn_region was = *r;
    if (r->base == NULL && s->grows && what < 2) {
        size_t units = 1 + draw(random, 8), initial = draw(random, units + 1);
        want_ok(tn_backend_acquire_growable(s->backend, units * s->unit, initial * s->unit, 0, "grown", r));
    } else if (r->base == NULL) {
        want_ok(tn_backend_acquire(s->backend, 1 + draw(random, 3 * MIB), 0, "plain", r));
    } else if (what == 0 || !s->grows || strcmp(r->tag, "grown") != 0) {
        want_ok(tn_backend_release(s->backend, r));
    } else if (what < 3) {
        size_t bytes = draw(random, r->reserved + 1);
        want_ok(tn_backend_commit(s->backend, r, bytes));
        want(r->committed >= bytes && r->committed >= was.committed && r->base == was.base && r->reserved == was.reserved);
    } else {
        size_t bytes = draw(random, r->committed + 1);
        want_ok(tn_backend_decommit(s->backend, r, bytes));
        want(r->committed >= bytes && r->committed < bytes + s->unit && r->base == was.base && r->reserved == was.reserved);
    }
}

static void what_is_live_is_conserved_after_every_operation(void)
{
    uint64_t random = s->seed != 0 ? s->seed : 1;
    size_t before = physical_now();
    for (size_t i = 0; i < s->operations; i++) {
        change_region(&random, &regions[draw(&random, REGIONS)]);
        check_conservation(before);
    }
    release_all();
    check_conservation(before);
    want_same(physical_now(), before);
}

static void what_was_written_stays_while_others_come_and_go(void)
{
    uint64_t random = s->seed + 99;
    for (int i = 0; i < REGIONS / 2; i++) {
        want_ok(tn_backend_acquire(s->backend, MIB + 4096 * (size_t)i, 0, "kept", &regions[i]));
        fill(&regions[i], 0, MIB, (uint32_t)(1000 + i));
    }
    for (size_t n = 0; n < 4 * REGIONS; n++)
        change_region(&random, &regions[REGIONS / 2 + draw(&random, REGIONS / 2)]);
    for (int i = 0; i < REGIONS / 2; i++)
        check_fill(&regions[i], 0, MIB, (uint32_t)(1000 + i));
    release_all();
}

/* V9: one unit to ten and back to one, three times, beside another growing region; the base is the same at each step, the bytes that stay
 * committed are intact, and what comes back can be used. */
static void the_base_is_constant_under_growth_by_ten_and_back(void)
{
    tn_region *r = &regions[0], *beside = &regions[1];
    size_t unit = s->unit, before = physical_now();
    want_ok(tn_backend_acquire_growable(s->backend, 10 * unit, unit, 0, "kv", r));
    want_ok(tn_backend_acquire_growable(s->backend, 10 * unit, 2 * unit, 0, "beside", beside));
    want_same(r->committed, unit);
    want_same(r->reserved, 10 * unit);
    void *base = r->base, *base_beside = beside->base;
    fill(r, 0, unit, 1);
    fill(beside, 0, 2 * unit, 999);
    for (int round = 0; round < 3; round++) {
        for (size_t n = 2; n <= 10; n++) {
            want_ok(tn_backend_commit(s->backend, r, n * unit));
            want(r->base == base);
            want_same(r->committed, n * unit);
            fill(r, (n - 1) * unit, n * unit, (uint32_t)(n + 100 * (size_t)round));
            check_conservation(before);
        }
        for (size_t n = 2; n <= 10; n++)
            check_fill(r, (n - 1) * unit, n * unit, (uint32_t)(n + 100 * (size_t)round));
        for (size_t n = 9; n < 10; n -= 2) { /* 9 to 1 */
            want_ok(tn_backend_decommit(s->backend, r, n * unit));
            want(r->base == base);
            want_same(r->committed, n * unit);
            if (n > 1)
                check_fill(r, (n - 1) * unit, n * unit, (uint32_t)(n + 100 * (size_t)round));
            check_fill(r, 0, unit, 1);
            check_conservation(before);
        }
        check_fill(beside, 0, 2 * unit, 999);
        want(beside->base == base_beside);
    }
    release_all();
    want_same(physical_now(), before);
}

static void commits_are_as_large_as_asked(void)
{
    tn_region *r = &regions[0];
    size_t before = physical_now();
    want_ok(tn_backend_acquire_growable(s->backend, 4 * s->unit, 0, 0, "kv", r));
    want_same(r->committed, 0);
    for (size_t n = 1; n <= 4; n++) {
        want_ok(tn_backend_commit(s->backend, r, n * s->unit));
        if (s->physical != NULL)
            want_same(physical_now() - before, n * s->unit);
    }
    want_ok(tn_backend_commit(s->backend, r, 1)); /* has it already */
    want_same(r->committed, 4 * s->unit);
    want_error(TN_MEM_E_ARGUMENT, tn_backend_commit(s->backend, r, 4 * s->unit + 1));
    want_ok(tn_backend_decommit(s->backend, r, 0));
    want_same(physical_now(), before);
    release_all();
}

/* ---- failures ---- */

typedef tn_mem_error scenario(tn_region *r);

static tn_mem_error do_acquire(tn_region *r) { return tn_backend_acquire(s->backend, 3 * MIB, 0, "t", r); }
static tn_mem_error do_acquire_aligned(tn_region *r) { return tn_backend_acquire(s->backend, MIB, s->max_alignment, "t", r); }
static tn_mem_error do_reserve(tn_region *r) { return tn_backend_acquire_growable(s->backend, 6 * s->unit, 3 * s->unit, 0, "t", r); }
static tn_mem_error do_commit(tn_region *r) { return tn_backend_commit(s->backend, r, 6 * s->unit); }
static tn_mem_error do_decommit(tn_region *r) { return tn_backend_decommit(s->backend, r, s->unit); }
static tn_mem_error do_release(tn_region *r) { return tn_backend_release(s->backend, r); }

static const struct step {
    const char *name;
    scenario *prepare, *act;
    bool grows;
} steps[] = {
    {"acquire", NULL, do_acquire, false},
    {"acquire_aligned", NULL, do_acquire_aligned, false},
    {"release", do_acquire, do_release, false},
    {"acquire_growable", NULL, do_reserve, true},
    {"commit", do_reserve, do_commit, true},
    {"decommit", do_reserve, do_decommit, true},
    {"release_growable", do_reserve, do_release, true},
};

/* The n-th driver call within a step fails: either nothing has changed, then the step succeeds when it is tried again, or it succeeded. */
static void fail_once(const struct step *step, uint64_t nth)
{
    tn_region *r = &regions[0];
    size_t start = physical_now();
    if (step->prepare != NULL) {
        want_ok(step->prepare(r));
        fill(r, 0, r->committed, 4711);
    }
    tn_region was = *r;
    size_t before = physical_now();
    tn_backend_stats stats = stats_now();
    s->fail(s->self, nth, false);
    tn_mem_error error = step->act(r);
    s->fail(s->self, 0, false);
    tn_backend_stats after = stats_now();
    if (error != TN_MEM_OK) {
        want(memcmp(&was, r, sizeof was) == 0);
        want_same(physical_now(), before);
        want_same(after.live, stats.live);
        want_same(after.reserved, stats.reserved);
        want_same(after.refused, stats.refused + 1);
        want_same(after.acquires + after.releases + after.commits + after.decommits,
                  stats.acquires + stats.releases + stats.commits + stats.decommits);
        if (step->prepare != NULL)
            check_fill(r, 0, r->committed, 4711);
        want_ok(step->act(r));
    }
    if (r->base != NULL && r->committed > 0) {
        size_t kept = step->prepare == NULL || was.committed > r->committed ? r->committed : was.committed;
        if (step->prepare != NULL)
            check_fill(r, 0, kept, 4711);
        fill(r, 0, r->committed, 815);
        check_fill(r, 0, r->committed, 815);
    }
    check_conservation(start);
    /* A driver that did not take something back is asked again by the next call. */
    want_ok(do_acquire(&regions[1]));
    release_all();
    want_same(physical_now(), start);
}

static void a_driver_call_that_fails_changes_nothing(void)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint64_t nth = 0;
        if (steps[i].grows && !s->grows)
            continue;
        do {
            fail_once(&steps[i], ++nth);
            want(nth < 1000);
        } while (s->failed(s->self));
        printf("# %s: %s: each of %llu driver calls failed once\n", s->name, steps[i].name, (unsigned long long)(nth - 1));
    }
}

/* All calls from the n-th on fail, those that undo too: when the driver works again, all is to be had back. */
static void a_driver_that_fails_for_good_loses_nothing(void)
{
    size_t start = physical_now();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].grows && !s->grows)
            continue;
        for (uint64_t nth = 1;; nth++) {
            tn_region *r = &regions[0];
            if (steps[i].prepare != NULL)
                want_ok(steps[i].prepare(r));
            s->fail(s->self, nth, true);
            tn_mem_error error = steps[i].act(r);
            bool struck = s->failed(s->self);
            s->fail(s->self, 0, false);
            want(error != TN_MEM_OK || r->base != NULL || steps[i].act == do_release);
            check_conservation(start);
            want_ok(do_acquire(&regions[1]));
            release_all();
            want_same(stats_now().live, 0);
            want_same(stats_now().reserved, 0);
            want_same(physical_now(), start);
            if (!struck)
                break;
        }
    }
}

static bool run(const char *name, void (*test)(void))
{
    fflush(stdout);
    if (setjmp(broken) == 0) {
        test();
        printf("ok %s.%s\n", s->name, name);
        passed++;
        return true;
    }
    printf("not ok %s.%s: %s\n", s->name, name, why);
    if (s->fail != NULL)
        s->fail(s->self, 0, false);
    for (int i = 0; i < REGIONS; i++) {
        (void)!tn_backend_release(s->backend, &regions[i]);
        regions[i] = (tn_region){0};
    }
    return false;
}

#define RUN(test) (failed += !run(#test, test))

int suite_run(const suite_subject *subject)
{
    int failed = 0;
    s = subject;
    memset(regions, 0, sizeof regions);
    printf("# %s: TENURE_SEED=%llu\n", s->name, (unsigned long long)s->seed);
    RUN(arguments_are_checked_first);
    RUN(more_than_there_is_is_out_of_memory);
    RUN(bases_are_aligned_as_asked);
    RUN(the_last_byte_can_be_used);
    RUN(a_region_is_released_once);
    RUN(plain_regions_do_not_grow);
    RUN(what_is_live_is_conserved_after_every_operation);
    RUN(what_was_written_stays_while_others_come_and_go);
    if (s->grows) {
        RUN(the_base_is_constant_under_growth_by_ten_and_back);
        RUN(commits_are_as_large_as_asked);
    }
    if (s->fail != NULL) {
        RUN(a_driver_call_that_fails_changes_nothing);
        RUN(a_driver_that_fails_for_good_loses_nothing);
    }
    return failed;
}

int suite_passed(void)
{
    return passed;
}
