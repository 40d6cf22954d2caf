/* Nanoseconds of one tn_callsite() on a warm hit, at stacks of several depths: the best of 20 rounds of 100,000 calls, and the unwinder alone. Prints
 * CSV. Argument: "slots" (the default) from verified slots, "walk" by libunwind and the raw chain, "own" by frame pointers. This file is compiled with
 * frame pointers; -fomit-frame-pointer in COPTS measures frames of the other kind.
 *
 * The figures are in docs/MEASUREMENTS.md. No more than 17 frames are compared, at 24 as at any greater depth. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/callsite.h"
#include "shim/callsite_slots.h"
#include "tests/callsite/mock_journal.h"

#define ROUNDS 20
#define CALLS 100000

static double now_ns(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) uint32_t hook(void)
{
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 1);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static __attribute__((noinline)) int unwind_only(void)
{
    uint64_t frames[TN_FRAMES_MAX + 1];
    int n = tn_unwind(__builtin_return_address(0), frames, TN_FRAMES_MAX + 1);
    __asm__ __volatile__("" ::"r"(frames) : "memory");
    return n;
}

static double best(int what)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double t = now_ns();
        for (int i = 0; i < CALLS; i++) {
            if (what)
                hook();
            else
                unwind_only();
        }
        t = (now_ns() - t) / CALLS;
        if (t < least)
            least = t;
    }
    return least;
}

/* `depth` frames from here to the end of the stack, the hook's caller included. */
static __attribute__((noinline)) void at_depth(int more, int depth)
{
    if (more > 0) {
        at_depth(more - 1, depth);
    } else {
        best(1);
        double site = best(1);
        printf("%d,%.0f,%.0f\n", depth, site, best(0));
    }
    __asm__ __volatile__("" ::: "memory");
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "slots";
    int own = strcmp(way, "own") == 0;
    tn_slots_mode = strcmp(way, "slots") == 0 ? TN_SLOTS_ON : TN_SLOTS_OFF;
    if (!own && tn_callsite_start(mock_journal(), NULL) != 0) {
        fprintf(stderr, "no libunwind\n");
        return 1;
    }
    puts("frames,callsite_ns,unwind_ns");
    /* below the loop's function: at_depth, main, and the three of libc and the loader */
    static const int depths[] = { 8, 16, 24 };
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        at_depth(depths[i] - 6, depths[i]);
    return 0;
}
