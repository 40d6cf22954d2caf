/* Millions of random call paths, each looked up in the verified slots and the long way (TN_SLOTS_CHECK): slots_paths [--long|PATHS]. Most paths are
 * drawn from some hundred, so that most look-ups hit; the rest is new. Prints a line for each checked thing. Ten million paths unless told
 * otherwise (also by TENURE_SLOTS_PATHS); --long: a hundred million. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "shim/callsite.h"
#include "shim/callsite_slots.h"
#include "shim/callsite_tables.h"
#include "shim/unwind.h"
#include "tests/callsite/mock_journal.h"
#include "tests/callsite/paths.h"

#define THREADS 2
#define KNOWN 500             /* paths that come again */
#define EPOCH_PATHS 500000    /* between two dlcloses */
#define COROUTINES 2
#define STACK_BYTES (512 * 1024)

typedef struct walker {
    uint64_t paths, random;
    uint64_t calls[PATH_KINDS + 1], hits[PATH_KINDS + 1]; /* of each kind, the last one all */
} walker;

static __thread path *volatile of_handler; /* raise() is declared never to come back into this file */
static __thread char *coroutine_stacks[COROUTINES];
static __thread ucontext_t contexts[COROUTINES][2];

__attribute__((noinline)) uint32_t path_hook(path *p)
{
    const void *caller = __builtin_return_address(0), *frame = __builtin_frame_address(0);
    p->hit = tn_slots_find(tn_epoch(), caller, frame) != TN_SITE_NONE;
    p->site = tn_callsite(caller, frame, 1);
    return p->site;
}

static void in_coroutine(unsigned high, unsigned low)
{
    path_next((path *)((uintptr_t)high << 32 | low));
}

static __attribute__((noinline)) uint32_t through_coroutine(path *p)
{
    int k = p->coroutines++;
    ucontext_t *own = &contexts[k][0], *back = &contexts[k][1];
    p->kinds |= PATH_COROUTINE;
    getcontext(own);
    own->uc_stack.ss_sp = coroutine_stacks[k];
    own->uc_stack.ss_size = STACK_BYTES;
    own->uc_link = back;
    makecontext(own, (void (*)(void))(uintptr_t)in_coroutine, 2, (unsigned)((uintptr_t)p >> 32), (unsigned)(uintptr_t)p);
    swapcontext(back, own);
    p->coroutines--;
    return p->site;
}

static void on_signal(int sig)
{
    path *p = of_handler;
    (void)sig;
    path_next(p);
}

static __attribute__((noinline)) uint32_t through_signal(path *p, int sig)
{
    path *before = of_handler;
    p->kinds |= sig == SIGUSR1 ? PATH_SIGNAL : PATH_ALTSTACK;
    of_handler = p;
    p->handlers++;
    raise(sig);
    p->handlers--;
    of_handler = before;
    return p->site;
}

/* A frame of two sizes, over which all that stood on the stack when it had the one stands again when it has the other, in the same places seen from
 * below. The ways on from here are few, so that what was remembered for one way to here is met again with another. Words that are no addresses
 * of code stay as they were: the saved frame pointers among them are stale too. */
#define STALE 8
#define STALE_WORDS 600
static __thread uint64_t stale_words[STALE][STALE_WORDS];
static __thread int stale_counts[STALE];
static __thread uint64_t stack_lowest, stack_end;

static __attribute__((noinline)) uint32_t stale(path *p, int k, int plant)
{
    uint64_t *room = alloca(plant ? 8 * STALE_WORDS + 64 : 64);
    __asm__ __volatile__("" : "+r"(room)::"memory");
    if (plant) {
        memcpy(room, stale_words[k], 8 * (size_t)stale_counts[k]);
    } else {
        uint64_t words = (stack_end - (uint64_t)(uintptr_t)room) / 8;
        stale_counts[k] = words < STALE_WORDS ? (int)words : STALE_WORDS;
        memcpy(stale_words[k], (void *)room, 8 * (size_t)stale_counts[k]);
    }
    uint32_t r = path_next(p);
    __asm__ __volatile__("" ::"r"(room) : "memory");
    return r;
}

static __attribute__((noinline)) uint32_t through_stale(path *p)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    int k = (int)(path_bits(&p->state) % STALE);
    if (p->coroutines || p->handlers || here < stack_lowest || here >= stack_end)
        return path_next(p);
    p->kinds |= PATH_STALE;
    p->state = 0x1234567 * (uint64_t)(k + 1);
    p->left = k % 4;
    return stale(p, k, path_bits(&p->jitter) & 1);
}

/* Steps that no exception may pass. */
static __attribute__((noinline)) uint32_t walled(path *p, unsigned what)
{
    int throws = p->throws;
    uint32_t r;
    p->throws = 0;
    if (what < 6 && p->coroutines < COROUTINES)
        r = through_coroutine(p);
    else if (what < 9 && p->handlers < 2)
        r = through_signal(p, SIGUSR1);
    else if (what < 12 && p->handlers == 0) /* a second one, from a coroutine, would write over the first */
        r = through_signal(p, SIGUSR2);
    else
        r = steps_no_tables[path_bits(&p->state) % PATH_STEPS](p);
    p->throws = throws;
    return r;
}

__attribute__((noinline)) uint32_t path_next(path *p)
{
    uint32_t r;
    if (p->left-- <= 0) {
        r = path_hook(p);
    } else {
        unsigned what = (unsigned)(path_bits(&p->state) % 1024);
        if (what < 16)
            r = walled(p, what);
        else if (what >= 1014)
            r = through_stale(p);
        else if (p->throws > 0 && what % 16 == 0)
            r = steps_throw[STEP_THROWS](p);
        else if (what < 40)
            r = steps_throw[path_bits(&p->state) % 4](p);
        else if (what < 120)
            r = steps_tail[path_bits(&p->state) % PATH_STEPS](p);
        else if (what < 500)
            r = steps_frame_pointer[path_bits(&p->state) % PATH_STEPS](p);
        else
            r = steps_no_frame_pointer[path_bits(&p->state) % PATH_STEPS](p);
    }
    __asm__ __volatile__("" ::: "memory");
    return r;
}

static void count(walker *w, const path *p)
{
    for (int k = 0; k <= PATH_KINDS; k++)
        if (k == PATH_KINDS || p->kinds & 1u << k) {
            w->calls[k]++;
            w->hits[k] += (uint64_t)p->hit;
        }
}

static __attribute__((noinline)) void walk(walker *w)
{
    static uint64_t known[KNOWN];
    uint64_t seed = 0x5eed;
    for (int i = 0; i < KNOWN; i++)
        known[i] = path_bits(&seed) | 1;
    for (uint64_t i = 0; i < w->paths; i++) {
        path p = { 0 };
        uint64_t r = path_bits(&w->random);
        p.state = r % 128 ? known[(r >> 8) % KNOWN] : path_bits(&w->random) | 1;
        p.jitter = path_bits(&w->random) | 1;
        p.left = (int)(path_bits(&p.state) % 22);
        path_next(&p);
        count(w, &p);
        if (i % EPOCH_PATHS == EPOCH_PATHS - 1) {
            tn_callsite_dlclose_begin();
            tn_callsite_dlclose_end();
        }
    }
}

static void *walks(void *arg)
{
    stack_t alternate = { 0 };
    alternate.ss_size = STACK_BYTES;
    alternate.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; k < COROUTINES; k++)
        coroutine_stacks[k] = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigaltstack(&alternate, NULL) == 0 && tn_stack_bounds(&stack_lowest, &stack_end) == 0)
        walk(arg);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
    return NULL;
}

static int failed;

static void check(int ok, const char *name)
{
    printf("%s %s\n", ok ? "ok" : "not ok", name);
    failed |= !ok;
}

static uint64_t number_of_paths(int argc, char **argv)
{
    const char *asked = argc > 1 ? argv[1] : getenv("TENURE_SLOTS_PATHS");
    if (asked && strcmp(asked, "--long") == 0)
        return 100000000;
    return asked ? strtoull(asked, NULL, 10) : 10000000;
}

static void print(const walker *all)
{
    static const char *const names[PATH_KINDS + 1] = { "alloca", "vla", "coroutine", "signal", "altstack", "thrown", "caught", "tail", "no_tables",
                                                       "noreturn", "libc", "aligned", "no_frame_pointer", "frame_pointer", "stale", "all" };
    for (int k = 0; k <= PATH_KINDS; k++) {
        char name[64];
        printf("# %s: %llu calls, %llu hits\n", names[k], (unsigned long long)all->calls[k], (unsigned long long)all->hits[k]);
        snprintf(name, sizeof name, "%s_was_on_the_way", names[k]);
        check(all->calls[k] > 0, name);
        uint32_t bit = 1u << k;
        if (bit & (PATH_COROUTINE | PATH_ALTSTACK)) {
            snprintf(name, sizeof name, "%s_has_no_hits", names[k]);
            check(all->hits[k] == 0, name);
        } else if (!(bit & (PATH_SIGNAL | PATH_NO_TABLES | PATH_ALIGNED))) {
            snprintf(name, sizeof name, "%s_has_hits", names[k]);
            check(all->hits[k] > 0, name);
        }
    }
}

int main(int argc, char **argv)
{
    walker walkers[THREADS], all;
    pthread_t threads[THREADS];
    struct timespec from, to;
    uint64_t paths = number_of_paths(argc, argv);
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
    tn_slots_mode = TN_SLOTS_CHECK;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    check(tn_callsite_start(mock_journal(), NULL) == 0, "libunwind_is_open");
    timespec_get(&from, TIME_UTC);
    memset(&all, 0, sizeof all);
    memset(walkers, 0, sizeof walkers);
    for (int t = 0; t < THREADS; t++) {
        walkers[t].paths = paths / THREADS;
        walkers[t].random = 0x9e3779b97f4a7c15u * (uint64_t)(t + 1);
        if (pthread_create(&threads[t], NULL, walks, &walkers[t]) != 0)
            return 1;
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        for (int k = 0; k <= PATH_KINDS; k++) {
            all.calls[k] += walkers[t].calls[k];
            all.hits[k] += walkers[t].hits[k];
        }
    }
    timespec_get(&to, TIME_UTC);
    printf("# %llu paths in %.1f s\n", (unsigned long long)paths, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    print(&all);
    check(all.calls[PATH_KINDS] == paths / THREADS * THREADS, "all_paths_were_walked");
    check(2 * all.hits[PATH_KINDS] > all.calls[PATH_KINDS], "most_look_ups_hit");
    /* but where the other thread's dlclose came between the two */
    check(tn_slots_hits <= all.hits[PATH_KINDS] && all.hits[PATH_KINDS] - tn_slots_hits <= paths / 10000, "what_was_found_was_compared");
    check(tn_slots_differences == 0, "no_hit_differs_from_the_long_way");
    printf("# %llu differences\n", (unsigned long long)tn_slots_differences);
    return failed;
}
