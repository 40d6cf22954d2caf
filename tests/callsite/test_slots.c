/* The verified-slot cache on the stack of the test itself, one promise a test. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <string.h>
#include <ucontext.h>

#include "shim/callsite_find.h"
#include "shim/unwind.h"
#include "tests/callsite/plugs.h"
#include "tests/callsite/slots_looks.h"

START_TEST(known_chain_is_found)
{
    look l;
    start();
    for (volatile int depth = 0; depth < 40; depth++)
        for (volatile int i = 0; i < 3; i++) {
            recurse(&l, depth);
            if (i == 0 && depth < 12)
                ck_miss(l);
            else if (i > 0)
                ck_hit(l);
        }
    /* the chain to the end of the stack, which no count cuts off */
    ck_assert_uint_eq(mock_site_of(TN_SITE_FIRST)->head.flags, 0);
}
END_TEST

START_TEST(one_entry_serves_at_every_height)
{
    look l;
    start();
    for (volatile int i = 0; i < 20; i++) {
        char *room = alloca(16 + 112 * (size_t)i);
        __asm__ __volatile__("" ::"r"(room) : "memory");
        recurse(&l, 30);
        if (i == 0)
            ck_miss(l);
        else
            ck_hit(l);
    }
}
END_TEST

/* The next look-up from the same place is by the strip: one that is of no use to it would leave the tree to answer, at twice the price. */
START_TEST(a_chain_that_was_found_has_a_strip)
{
    look l;
    start();
    for (volatile int depth = 0; depth < 40; depth++)
        for (volatile int i = 0; i < 12; i++) {
            recurse(&l, depth);
            if (i < 11) /* the strip may have been another chain's */
                continue;
            ck_hit(l);
            const tn_slots *c = tn_slots_own;
            const tn_slot_strip *s = tn_strip_of(c, l.caller, (uint64_t)(uintptr_t)l.frame);
            ck_assert_uint_eq(s->caller, l.caller);
            ck_assert_uint_eq(s->site, l.found);
            ck_assert_uint_le(s->reach, c->end - (uint64_t)(uintptr_t)l.frame);
        }
}
END_TEST

/* ---- stale return addresses */

#define ROOM_WORDS 4096
static uint64_t room_words[ROOM_WORDS], room_at;
static int room_count; /* to the end of the stack at most */

static void measure(uint64_t *room)
{
    uint64_t lowest, end;
    ck_assert_int_eq(tn_stack_bounds(&lowest, &end), 0);
    room_at = (uint64_t)(uintptr_t)room;
    room_count = (end - room_at) / 8 < ROOM_WORDS ? (int)((end - room_at) / 8) : ROOM_WORDS;
}

static void record(uint64_t *room)
{
    for (int i = 0; i < room_count; i++)
        room_words[i] = ((volatile uint64_t *)room)[i];
}

/* What stood here and above it the last time, addresses of the stack moved along. */
static void plant(uint64_t *room)
{
    for (int i = 0; i < room_count; i++) {
        uint64_t w = room_words[i];
        room[i] = w - room_at < 8 * (uint64_t)room_count ? w - room_at + (uint64_t)(uintptr_t)room : w;
    }
}

static void nothing(uint64_t *room)
{
    (void)room;
}

/* No branches, so that there is one call of inner(). */
static __attribute__((noinline)) void with_alloca(look *l, size_t bytes, void (*before)(uint64_t *), void (*after)(uint64_t *))
{
    uint64_t *room = alloca(bytes);
    before(room);
    inner(l);
    after(room);
    KEEP;
}

static __attribute__((noinline)) void first_way(look *l)
{
    with_alloca(l, 64, measure, record);
    KEEP;
}

static __attribute__((noinline)) void other_way(look *l)
{
    with_alloca(l, 8 * ROOM_WORDS + 64, plant, nothing);
    KEEP;
}

/* Everything that the first way remembers stands again where it stood, seen from the hook; but the frame of with_alloca ends elsewhere now. */
START_TEST(stale_addresses_below_an_alloca_do_not_count)
{
    look a, b;
    start();
    for (volatile int i = 0; i < 2; i++)
        first_way(&a);
    ck_hit(a);
    uint64_t from_hook = (room_at - (uint64_t)(uintptr_t)a.frame) / 8;
    for (volatile int i = 0; i < 3; i++) {
        other_way(&b);
        ck_right(b);
        ck_assert_uint_ne(b.found, a.found);
        ck_assert_uint_ne(b.fast, a.fast);
    }
    /* or this tests nothing: the return address into first_way is there */
    int stale = 0;
    for (int i = 0; i < room_count && !stale; i++)
        if (room_words[i] - (uint64_t)(uintptr_t)first_way < 64)
            stale = i;
    ck_assert_int_gt(stale, 0);
    ck_assert_uint_eq(((volatile const uint64_t *)b.frame)[from_hook + (uint64_t)stale], room_words[stale]);
}
END_TEST

/* A frame for which the tables have an expression: realigned, and of a size that is not known. */
static __attribute__((noinline)) void with_aligned(look *l, size_t bytes)
{
    char room[64] __attribute__((aligned(64))), *more = alloca(bytes);
    __asm__ __volatile__("" ::"r"(room), "r"(more) : "memory");
    inner(l);
    __asm__ __volatile__("" ::"r"(room), "r"(more) : "memory");
}

START_TEST(other_frames_are_never_kept)
{
    look l;
    start();
    inner(&l);
    uint32_t count = tn_slots_count(tn_slots_mine());
    for (volatile int i = 0; i < 10; i++) {
        with_aligned(&l, 48);
        ck_miss(l);
    }
    ck_assert_uint_eq(tn_slots_count(tn_slots_mine()), count);
}
END_TEST

/* ---- modules that come and go */

typedef uint32_t (*plug_fn)(uint32_t (*back)(void *), void *arg);

static __attribute__((noinline)) uint32_t plug_hook(void *l)
{
    const void *caller = __builtin_return_address(0), *frame = __builtin_frame_address(0);
    ((look *)l)->found = tn_slots_find(tn_epoch(), caller, frame);
    ((look *)l)->fast = tn_callsite(caller, frame, 1);
    ((look *)l)->slow = tn_callsite(caller, NULL, 1);
    return ((look *)l)->fast;
}

static __attribute__((noinline)) void call_plug(plug_fn f, look *l)
{
    f(plug_hook, l);
    KEEP;
}

START_TEST(another_library_in_the_same_place_is_no_hit)
{
    look l;
    uint32_t sites[3];
    void *at = NULL;
    start();
    for (volatile int i = 0; i < 3; i++) {
        void *h = dlopen(plug_path(i == 1 ? "libplug_b.so" : "libplug_a.so"), RTLD_NOW);
        ck_assert_ptr_nonnull(h);
        plug_fn f = (plug_fn)(uintptr_t)dlsym(h, "plug_call");
        if (at)
            ck_assert_ptr_eq(at, (void *)(uintptr_t)f); /* or this tests nothing */
        at = (void *)(uintptr_t)f;
        for (volatile int k = 0; k < 3; k++) { /* one call: equal chains but for the library */
            call_plug(f, &l);
            if (k == 0)
                ck_miss(l);
            else
                ck_hit(l);
        }
        sites[i] = l.fast;
        tn_callsite_dlclose_begin();
        call_plug(f, &l);
        ck_miss(l); /* not read */
        dlclose(h);
        tn_callsite_dlclose_end();
    }
    ck_assert_uint_ne(sites[0], sites[1]);
    ck_assert_uint_eq(sites[0], sites[2]);
}
END_TEST

static __attribute__((noinline)) void recurse_plug(look *l, plug_fn f, int depth)
{
    if (depth > 0)
        recurse_plug(l, f, depth - 1);
    else
        f(plug_hook, l);
    KEEP;
}

/* Frames of a CUDA runtime are skipped, so that these chains take more frames than usual. */
START_TEST(chains_with_skipped_frames_are_found)
{
    look l;
    start();
    void *h = dlopen(plug_path("libcudart.so.99"), RTLD_NOW);
    ck_assert_ptr_nonnull(h);
    plug_fn f = (plug_fn)(uintptr_t)dlsym(h, "plug_call");
    for (volatile int depth = 0; depth < 45; depth++)
        for (volatile int i = 0; i < 3; i++) {
            recurse_plug(&l, f, depth);
            if (i)
                ck_hit(l);
            else
                ck_right(l);
        }
    ck_assert_uint_eq(mock_site_of(l.slow)->head.frame_count, TN_FRAMES_MAX);
}
END_TEST

START_TEST(nothing_is_kept_while_a_dlclose_runs)
{
    look l;
    start();
    tn_callsite_dlclose_begin();
    for (volatile int i = 0; i < 3; i++) {
        inner(&l);
        ck_miss(l);
    }
    tn_callsite_dlclose_end();
    for (volatile int i = 0; i < 3; i++) {
        inner(&l);
        if (i == 0)
            ck_miss(l);
        else
            ck_hit(l);
    }
}
END_TEST

/* ---- other stacks */

static ucontext_t before_fiber, in_fiber;
static look fiber_looks[3];

static void fiber(void)
{
    for (volatile int i = 0; i < 3; i++)
        inner(&fiber_looks[i]);
}

START_TEST(coroutines_take_the_long_way)
{
    static char stack[128 * 1024];
    look l;
    start();
    inner(&l);
    uint32_t count = tn_slots_count(tn_slots_mine());
    ck_assert_int_eq(getcontext(&in_fiber), 0);
    in_fiber.uc_stack.ss_sp = stack;
    in_fiber.uc_stack.ss_size = sizeof stack;
    in_fiber.uc_link = &before_fiber;
    makecontext(&in_fiber, fiber, 0);
    ck_assert_int_eq(swapcontext(&before_fiber, &in_fiber), 0);
    for (volatile int i = 0; i < 3; i++)
        ck_miss(fiber_looks[i]);
    ck_assert_uint_eq(tn_slots_count(tn_slots_mine()), count);
}
END_TEST

START_TEST(a_wrong_caller_or_frame_is_no_hit)
{
    look l;
    start();
    for (volatile int i = 0; i < 2; i++)
        inner(&l);
    ck_hit(l);
    const tn_slots *c = tn_slots_mine();
    uint64_t words[2] = { 0, (uint64_t)(uintptr_t)inner + 1 };
    uint64_t lowest, end;
    ck_assert_int_eq(tn_stack_bounds(&lowest, &end), 0);
    ck_assert_uint_eq(tn_slots_find_in(c, tn_epoch(), words[1], (uint64_t)(uintptr_t)words), TN_SITE_NONE);
    /* outside of the stack, where nothing may be read */
    const uint64_t outside[] = { 0, 8, lowest - 8, end - 8, end, end + 8, UINT64_MAX - 7, (uint64_t)(uintptr_t)start };
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        ck_assert_uint_eq(tn_slots_find_in(c, tn_epoch(), words[1], outside[i]), TN_SITE_NONE);
}
END_TEST

/* ---- room */

/* Thirteen bits choose the way: more chains than there is room for. */
static __attribute__((noinline)) void zero(look *l, int bits, int depth);
static __attribute__((noinline)) void one(look *l, int bits, int depth);

static void zero(look *l, int bits, int depth)
{
    if (depth == 0)
        inner(l);
    else if (bits & 1)
        one(l, bits >> 1, depth - 1);
    else
        zero(l, bits >> 1, depth - 1);
    __asm__ __volatile__("nop" ::: "memory");
}

static void one(look *l, int bits, int depth)
{
    if (depth == 0)
        inner(l);
    else if (bits & 1)
        one(l, bits >> 1, depth - 1);
    else
        zero(l, bits >> 1, depth - 1);
    __asm__ __volatile__("nop; nop" ::: "memory");
}

START_TEST(a_full_cache_starts_afresh)
{
    look l;
    uint32_t most = 0, last = 0, restarts = 0;
    start();
    for (volatile int bits = 0; bits < 1 << 13; bits++)
        for (volatile int i = 0; i < 2; i++) {
            zero(&l, bits, 13);
            if (i)
                ck_hit(l);
            else
                ck_right(l);
            uint32_t count = tn_slots_count(tn_slots_mine());
            restarts += count < last;
            most = count > most ? count : most;
            last = count;
        }
    ck_assert_uint_gt(restarts, 0);
    ck_assert_uint_lt(most, TN_SLOTS_NODES);
    ck_assert_uint_gt(most, TN_SLOTS_NODES - 100);
}
END_TEST

static __attribute__((noinline)) void with_sizes(look *l, size_t bytes)
{
    char *room = alloca(bytes);
    __asm__ __volatile__("" ::"r"(room) : "memory");
    inner(l);
    KEEP;
}

START_TEST(ever_new_sizes_of_a_frame_do_not_fill_it)
{
    look l;
    uint32_t count[200];
    start();
    for (volatile int i = 0; i < 200; i++) {
        with_sizes(&l, 16 + 16 * (size_t)i);
        ck_miss(l);
        count[i] = tn_slots_count(tn_slots_mine());
    }
    ck_assert_uint_gt(count[10], count[5]);
    ck_assert_uint_eq(count[199], count[50]);
}
END_TEST

/* ---- switches */

START_TEST(another_unwinder_is_not_stood_in_for)
{
    look l;
    start();
    for (volatile int i = 0; i < 3; i++) {
        if (i == 2)
            tn_unwind = tn_unwind_own;
        inner(&l);
    }
    ck_assert_uint_ne(l.found, TN_SITE_NONE);
    ck_right(l); /* both by the own walk */
    ck_assert_uint_ne(l.fast, l.found);
}
END_TEST

START_TEST(switched_off_it_keeps_nothing)
{
    look l;
    start();
    tn_slots_mode = TN_SLOTS_OFF;
    for (volatile int i = 0; i < 3; i++) {
        inner(&l);
        ck_miss(l);
    }
    ck_assert_ptr_null(tn_slots_mine());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        known_chain_is_found,
        one_entry_serves_at_every_height,
        a_chain_that_was_found_has_a_strip,
        stale_addresses_below_an_alloca_do_not_count,
        other_frames_are_never_kept,
        another_library_in_the_same_place_is_no_hit,
        chains_with_skipped_frames_are_found,
        nothing_is_kept_while_a_dlclose_runs,
        coroutines_take_the_long_way,
        a_wrong_caller_or_frame_is_no_hit,
        a_full_cache_starts_afresh,
        ever_new_sizes_of_a_frame_do_not_fill_it,
        another_unwinder_is_not_stood_in_for,
        switched_off_it_keeps_nothing,
    };
    return run_tests("slots", tests, (int)(sizeof tests / sizeof tests[0]));
}
