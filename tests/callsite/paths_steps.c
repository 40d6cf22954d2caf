/* Steps of a path: PATHS names the table, PATHS_KIND are the bits that this way of compiling sets. See paths.h. */
#define _GNU_SOURCE
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#include "tests/callsite/paths.h"

/* The compiler must believe that the room is used, and must not fill it. */
#define USE(room) __asm__ __volatile__("" : : "r"(room) : "memory")

#define STEP static __attribute__((noinline)) uint32_t
#ifdef PATHS_TAIL
#define RETURN(call) return call
#else
/* The frame stays. */
#define RETURN(call)                              \
    do {                                          \
        uint32_t r_ = call;                       \
        __asm__ __volatile__("" ::: "memory");    \
        return r_;                                \
    } while (0)
#endif

static inline void passes(path *p, uint32_t kind)
{
    p->kinds |= kind | PATHS_KIND;
}

STEP plain(path *p)
{
    passes(p, 0);
    RETURN(path_next(p));
}

STEP other(path *p)
{
    passes(p, 0);
    __asm__ __volatile__("nop");
    RETURN(path_next(p));
}

/* Two returns into one function. */
STEP fork_in_the_way(path *p)
{
    passes(p, 0);
    if (path_bits(&p->state) & 1)
        RETURN(path_next(p));
    __asm__ __volatile__("nop");
    RETURN(path_next(p));
}

STEP with_locals(path *p)
{
    char room[200];
    USE(room);
    passes(p, 0);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

STEP big_frame(path *p)
{
    char room[3000];
    USE(room);
    passes(p, 0);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

/* Keeps values in all registers that calls keep, the frame pointer among them where it is free. */
STEP full_registers(path *p)
{
    uint64_t a = p->state, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13;
    __asm__ __volatile__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    passes(p, 0);
    uint32_t r = path_next(p);
    __asm__ __volatile__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    return a + b + c + d + e + f == 1 ? 0 : r;
}

static __attribute__((noinline)) uint32_t nine(path *p, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    passes(p, 0);
    uint32_t r = path_next(p);
    return a + b + c + d + e + f + g + h == 1 ? 0 : r;
}

/* Pushes arguments for the call. */
STEP many_arguments(path *p)
{
    uint64_t x = p->state | 2;
    RETURN(nine(p, x, x, x, x, x, x, x, x));
}

/* As much as the path says: one way, one size. Not filled, so that what stood there before still does. */
STEP with_alloca(path *p)
{
    char *room = alloca(16 + (path_bits(&p->state) & 3) * 48);
    USE(room);
    passes(p, PATH_ALLOCA);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

/* As much as chance says: one way, two sizes, or seldom many. */
STEP with_wild_alloca(path *p)
{
    uint64_t sizes = path_bits(&p->state) % 8 ? 1 : 63;
    char *room = alloca(16 + (path_bits(&p->jitter) & sizes) * 16);
    USE(room);
    passes(p, PATH_ALLOCA);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

STEP with_vla(path *p)
{
    char room[8 + (path_bits(&p->jitter) & 1) * 64];
    USE(room);
    passes(p, PATH_VLA);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

/* A frame that is realigned and of open size, for which the tables have an expression; seldom, since nothing with such a frame among its innermost
 * can hit. */
static __attribute__((noinline)) uint32_t aligned(path *p)
{
    char room[64] __attribute__((aligned(64))), *more = alloca(16 + (path_bits(&p->jitter) & 1) * 16);
    USE(room);
    USE(more);
    passes(p, PATH_ALIGNED);
    uint32_t r = path_next(p);
    USE(room);
    return r;
}

STEP with_aligned(path *p)
{
    passes(p, 0);
    if (path_bits(&p->state) % 8 == 0)
        RETURN(aligned(p));
    RETURN(path_next(p));
}

static __thread path *of_compare;

static int compare(const void *a, const void *b)
{
    path *p = of_compare;
    if (p) {
        of_compare = NULL;
        path_next(p);
    }
    return *(const char *)a - *(const char *)b;
}

/* Frames of libc on the way. */
STEP through_libc(path *p)
{
    char two[2] = { 2, 1 };
    passes(p, PATH_LIBC);
    of_compare = p;
    qsort(two, 2, 1, compare);
    return p->site;
}

/* The call is the function's last instruction. */
static __attribute__((noinline, noreturn)) void leaves(path *p)
{
    jmp_buf *back = p->back;
    path_next(p);
    longjmp(*back, 1);
}

static __attribute__((noinline, noreturn)) void last_call(path *p)
{
    p->kinds |= PATH_NORETURN | PATHS_KIND;
    leaves(p);
}

STEP does_not_return(path *p)
{
    jmp_buf here, *volatile before = p->back;
    path *volatile q = p;
    p->back = &here;
    if (setjmp(here) == 0)
        last_call(p);
    q->back = before;
    return q->site;
}

static __attribute__((noinline)) uint32_t odd(path *p);

/* Recursion of two. */
static __attribute__((noinline)) uint32_t even(path *p)
{
    passes(p, 0);
    if (--p->left <= 0 || path_bits(&p->state) & 1)
        RETURN(path_next(p));
    RETURN(odd(p));
}

static uint32_t odd(path *p)
{
    passes(p, 0);
    if (--p->left <= 0 || path_bits(&p->state) & 1)
        RETURN(path_next(p));
    RETURN(even(p));
}

const path_step PATHS[PATH_STEPS] = { plain, other, fork_in_the_way, with_locals, big_frame, full_registers, many_arguments, with_alloca,
                                      with_wild_alloca, with_vla, with_aligned, through_libc, does_not_return, even, odd, plain };
