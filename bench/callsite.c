/* What one tn_callsite() costs, by the depth of the stack: warm (the chain is known) and cold (it is met for the first time, so it is
 * unwound, interned, and its record written to a real journal). Ways: "slots" (the cache of verified slots before libunwind), "unwind"
 * (libunwind each time), "own" (the walk by frame pointers). usage: callsite slots|unwind|own EMPTY_FOLDER [LIBUNWIND_FOLDER] */
#include <stdio.h>
#include <string.h>

#include "bench/stats.h"
#include "ledger/journal.h"
#include "shim/callsite.h"
#include "shim/callsite_slots.h"
#include "shim/unwind.h"

#ifdef BENCH_NO_FRAME_POINTERS
#define BENCH_FRAMES ", no frame pointers"
#else
#define BENCH_FRAMES ""
#endif
#define ROUNDS 41
#define CALLS 20000
#define CHAINS 501

#define OUT_OF_LINE __attribute__((noinline, noclone))
#define KEEP_APART(mark) __asm__ __volatile__("nop # " mark ::: "memory")

static double samples[CHAINS > ROUNDS ? CHAINS : ROUNDS];
static size_t taken;
static int cold;

static OUT_OF_LINE uint32_t hook(void)
{
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 1);
    KEEP_APART("hook");
    return site;
}

/* 256 callers, since a short stack has few frames in which chains can differ. */
#define CALLER(n)                                                                  \
    static OUT_OF_LINE void caller_##n(void)                                       \
    {                                                                              \
        double began = bench_wall_ns();                                            \
        hook();                                                                    \
        samples[taken++] = bench_wall_ns() - began;                                \
        KEEP_APART(#n);                                                            \
    }
#define NAME(n) caller_##n,
#define SIXTEEN(of, n)                                                             \
    of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)        \
    of(n##8) of(n##9) of(n##a) of(n##b) of(n##c) of(n##d) of(n##e) of(n##f)
#define ALL(of)                                                                    \
    SIXTEEN(of, 0) SIXTEEN(of, 1) SIXTEEN(of, 2) SIXTEEN(of, 3) SIXTEEN(of, 4)     \
    SIXTEEN(of, 5) SIXTEEN(of, 6) SIXTEEN(of, 7) SIXTEEN(of, 8) SIXTEEN(of, 9)     \
    SIXTEEN(of, a) SIXTEEN(of, b) SIXTEEN(of, c) SIXTEEN(of, d) SIXTEEN(of, e)     \
    SIXTEEN(of, f)
ALL(CALLER)
static void (*const callers[256])(void) = {ALL(NAME)};

static OUT_OF_LINE void many_calls(void)
{
    for (int i = 0; i < CALLS; i++) /* so that the tables are warm */
        hook();
    for (taken = 0; taken < ROUNDS; taken++) {
        double began = bench_cpu_ns();
        for (int i = 0; i < CALLS; i++)
            hook();
        samples[taken] = (bench_cpu_ns() - began) / CALLS;
    }
    KEEP_APART("calls");
}

/* `more` + 1 frames whose return addresses spell `path`: each of the two calls has its own. Below them stands the hook's caller. */
static OUT_OF_LINE void descend(unsigned more, unsigned path)
{
    if (more == 0) {
        if (cold)
            callers[path % 256]();
        else
            many_calls();
        KEEP_APART("end");
    } else if (path >> (7 + more) & 1) {
        descend(more - 1, path);
        KEEP_APART("one");
    } else {
        descend(more - 1, path);
        KEEP_APART("two");
    }
}

/* Frames from its caller to the end of the stack. */
static OUT_OF_LINE int frames_above(void)
{
    uint64_t frames[TN_FRAMES_MAX + 24];
    return tn_unwind(__builtin_return_address(0), frames, TN_FRAMES_MAX + 24);
}

int main(int argc, char **argv)
{
    static const int depths[] = {8, 16, 24};
    tn_journal *journal;
    int own = argc > 1 && strcmp(argv[1], "own") == 0, slots = argc > 1 && strcmp(argv[1], "slots") == 0;
    if (argc < 3 || (!own && !slots && strcmp(argv[1], "unwind") != 0)) {
        fprintf(stderr, "usage: callsite slots|unwind|own EMPTY_FOLDER [LIBUNWIND_FOLDER]\n");
        return 2;
    }
    tn_journal_options o = {.run_dir = argv[2], .libtenure_path = ""};
    if (tn_journal_open(&o, &journal) != TN_OK) {
        fprintf(stderr, "callsite: no journal in %s\n", argv[2]);
        return 1;
    }
    tn_slots_mode = slots ? TN_SLOTS_ON : TN_SLOTS_OFF;
    int started = tn_callsite_start(journal, argc > 3 ? argv[3] : NULL);
    if (own) {
        tn_unwind = tn_unwind_own;
    } else if (started != 0) {
        fprintf(stderr, "callsite: no libunwind\n");
        return 1;
    }
    bench_pin(0);
    int above = frames_above() + 2; /* and the hook's caller, and one descend() */
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        char name[64];
        if (depths[i] <= above) {
            fprintf(stderr, "callsite: %d frames stand above the benchmark already\n", above);
            return 1;
        }
        unsigned more = (unsigned)(depths[i] - above);
        cold = 0;
        descend(more, 0);
        snprintf(name, sizeof name, "warm, %d frames, %s" BENCH_FRAMES, depths[i], argv[1]);
        bench_print("callsite", name, "ns", "cpu", samples, taken);
        cold = 1;
        taken = 0;
        for (unsigned path = 0; path < CHAINS; path++)
            descend(more, path);
        snprintf(name, sizeof name, "cold, %d frames, %s" BENCH_FRAMES, depths[i], argv[1]);
        bench_print("callsite", name, "ns", "wall", samples, taken);
    }
    tn_journal_end(journal);
    return 0;
}
