#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim/callsite.h"
#include "shim/callsite_tables.h"
#include "shim/unwind.h"
#include "tests/callsite/mock_journal.h"
#include "tests/callsite/plugs.h"

/* In place of an exported wrapper. */
static __attribute__((noinline)) uint32_t hook(void *unused)
{
    (void)unused;
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 7);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static void start(void)
{
    ck_assert_int_eq(tn_callsite_start(mock_journal(), NULL), 0);
}

static __attribute__((noinline)) uint32_t funnel(void)
{
    uint32_t r = hook(NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

/* The chain of the test's own function, so that two ids can differ in nothing but what is tested. */
START_TEST(known_chain_is_one_site_and_one_record)
{
    uint32_t ids[4];
    start();
    errno = 77;
    for (int i = 0; i < 4; i++)
        ids[i] = funnel();
    ck_assert_int_eq(errno, 77);
    ck_assert_uint_eq(ids[0], TN_SITE_FIRST);
    for (int i = 1; i < 4; i++)
        ck_assert_uint_eq(ids[i], ids[0]);
    ck_assert_int_eq(mock_site_count, 1);
    const mock_site *s = mock_site_of(ids[0]);
    ck_assert_uint_eq(s->head.outer_api, 7);
    ck_assert_uint_eq(s->head.flags & ~(uint32_t)TN_SF_CUT, 0);
    ck_assert_uint_gt(s->head.frame_count, 2);
    const mock_module *m = mock_module_of(s->frames[0].module);
    ck_assert_ptr_nonnull(m);
    /* deepest first: the return address in funnel(), which lies behind its start */
    uint64_t at = m->head.base + s->frames[0].offset;
    ck_assert_uint_gt(at, (uint64_t)(uintptr_t)funnel);
    ck_assert_uint_lt(at, (uint64_t)(uintptr_t)funnel + 64);
    for (uint32_t i = 0; i < s->head.frame_count; i++)
        ck_assert_ptr_nonnull(mock_module_of(s->frames[i].module));
}
END_TEST

START_TEST(callers_of_one_funnel_are_sites_of_their_own)
{
    uint32_t ids[31];
    int n = 0;
    start();
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
#define CALL ids[n++] = funnel();
#define CALL5 CALL CALL CALL CALL CALL
        CALL5 CALL5 CALL5 CALL5 CALL5 CALL5 CALL
        ck_assert_int_eq(mock_site_count, 31);
    }
    ck_assert_int_eq(n, 31);
    for (int i = 0; i < 31; i++)
        for (int k = 0; k < i; k++) {
            ck_assert_uint_ne(ids[i], ids[k]);
            ck_assert_uint_ne(mock_site_of(ids[i])->head.key, mock_site_of(ids[k])->head.key);
        }
}
END_TEST

static __attribute__((noinline)) uint32_t recurse(int depth)
{
    uint32_t r = depth > 0 ? recurse(depth - 1) : hook(NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(deep_recursion_is_cut)
{
    start();
    uint32_t shallow = recurse(2), id = 0;
    ck_assert_uint_le(mock_site_of(shallow)->head.frame_count, TN_FRAMES_MAX);
    /* one call site at each depth, so that only the depth varies */
    for (int depth = 20; depth < 2000; depth += 97) {
        uint32_t deep = recurse(depth);
        ck_assert_uint_ne(deep, shallow);
        ck_assert_uint_eq(mock_site_of(deep)->head.frame_count, TN_FRAMES_MAX);
        ck_assert_uint_eq(mock_site_of(deep)->head.flags, TN_SF_CUT);
        /* the innermost are kept: first the hook's caller, then the recursion */
        ck_assert_uint_eq(mock_site_of(deep)->frames[0].offset, mock_site_of(shallow)->frames[0].offset);
        ck_assert_uint_ne(mock_site_of(deep)->frames[0].offset, mock_site_of(deep)->frames[1].offset);
        if (id)
            ck_assert_uint_eq(deep, id); /* the innermost 16 are the same */
        id = deep;
    }
}
END_TEST

/* ---- more sites than are kept */

static int told_full;
static void note_full(void) { told_full++; }

START_TEST(sites_have_a_bound)
{
    uint32_t ids[2][10];
    tn_sites_max = 5;
    tn_callsite_full = note_full;
    start();
    for (int pass = 0; pass < 2; pass++) {
        uint32_t *id = ids[pass];
        int n = 0;
#define CALL2 id[n++] = recurse(2); id[n++] = recurse(3);
        CALL2 CALL2 CALL2 CALL2 CALL2
    }
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    ck_assert_int_eq(mock_site_count, 6);
    for (int i = 0; i < 10; i++) {
        const mock_site *s = mock_site_of(ids[0][i]);
        ck_assert_ptr_nonnull(s);
        if (i < 5) {
            ck_assert_uint_eq(s->head.flags & (TN_SF_CALLER_ONLY | TN_SF_TOO_MANY), 0);
            continue;
        }
        ck_assert_uint_eq(ids[0][i], ids[0][5]);
        ck_assert_uint_eq(s->head.flags, TN_SF_CALLER_ONLY | TN_SF_TOO_MANY);
        ck_assert_uint_eq(s->head.frame_count, 1);
        ck_assert_uint_eq(s->frames[0].offset, mock_site_of(ids[0][0])->frames[0].offset);
    }
    ck_assert_int_eq(told_full, 1);
    ck_assert_uint_eq(tn_callsite_not_kept(), 5);
}
END_TEST

START_TEST(callers_beyond_the_bound_have_one_too)
{
    tn_site_frame f = { .identity = 1, .record = 1 };
    uint32_t alone = TN_SF_CALLER_ONLY | TN_SF_TOO_MANY, last = 0;
    tn_sites_max = 3;
    tn_tables_lock();
    for (f.offset = 1; f.offset <= 3; f.offset++)
        ck_assert_uint_eq(tn_site_intern(mock_journal(), f.offset, &f, 1, 0, 0), TN_SITE_FIRST + (uint32_t)f.offset - 1);
    ck_assert_uint_eq(tn_site_intern(mock_journal(), f.offset, &f, 1, 0, 0), TN_SITE_TOO_MANY);
    for (; f.offset <= 3 + TN_CALLERS_MAX; f.offset++)
        last = tn_site_intern(mock_journal(), f.offset, &f, 1, 0, alone);
    ck_assert_uint_eq(last, TN_SITE_FIRST + 2 + TN_CALLERS_MAX);
    ck_assert_uint_eq(tn_site_intern(mock_journal(), f.offset, &f, 1, 0, alone), TN_SITE_TOO_MANY);
    f.offset--; /* a known one stays known */
    ck_assert_uint_eq(tn_site_intern(mock_journal(), f.offset, &f, 1, 0, 0), last);
    tn_tables_unlock();
}
END_TEST

/* ---- anonymous code */

#if defined(__x86_64__)
/* push rbp; mov rbp,rsp; mov rax,rdi; mov rdi,rsi; mov rsi,rdx; call rax; pop rbp; ret */
static const unsigned char with_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0xff, 0xd0, 0x5d, 0xc3 };
/* sub rsp,8; mov rax,rdi; mov rdi,rsi; call rax; add rsp,8; ret */
static const unsigned char without_frame[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
#elif defined(__aarch64__)
/* stp x29,x30,[sp,#-16]!; mov x29,sp; mov x9,x0; mov x0,x1; mov x1,x2; blr x9; ldp x29,x30,[sp],#16; ret */
static const unsigned with_frame[] = { 0xa9bf7bfd, 0x910003fd, 0xaa0003e9, 0xaa0103e0, 0xaa0203e1, 0xd63f0120, 0xa8c17bfd, 0xd65f03c0 };
/* str x30,[sp,#-16]!; mov x9,x0; mov x0,x1; blr x9; ldr x30,[sp],#16; ret */
static const unsigned without_frame[] = { 0xf81f0ffe, 0xaa0003e9, 0xaa0103e0, 0xd63f0120, 0xf84107fe, 0xd65f03c0 };
#endif

typedef uint32_t (*jit_fn)(void *fn, void *arg, void *arg2);

static void *emit(const void *code, size_t bytes, size_t lead)
{
    unsigned char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    memcpy(p + lead, code, bytes);
    ck_assert_int_eq(mprotect(p, 8192, PROT_READ | PROT_EXEC), 0);
    __builtin___clear_cache((char *)p, (char *)p + 8192);
    return p + lead;
}

static int jit_frames(const mock_site *s)
{
    int n = 0;
    for (uint32_t i = 0; i < s->head.frame_count; i++)
        if (mock_module_of(s->frames[i].module)->head.jit) {
            ck_assert_uint_eq(s->frames[i].offset, 0);
            n++;
        }
    return n;
}

static __attribute__((noinline)) uint32_t through(jit_fn outer, void *inner)
{
    uint32_t r = inner ? outer(inner, (void *)(uintptr_t)hook, NULL) : outer((void *)(uintptr_t)hook, NULL, NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(anonymous_code_is_one_jit_frame_wherever_it_lies)
{
    start();
    uint32_t ids[3];
    for (int i = 0; i < 3; i++) {
        void *code = emit(with_frame, sizeof with_frame, (size_t)i * 512);
        ids[i] = through((jit_fn)(uintptr_t)code, NULL);
    }
    ck_assert_uint_eq(ids[0], ids[1]);
    ck_assert_uint_eq(ids[0], ids[2]);
    ck_assert_int_eq(mock_site_count, 1);
    ck_assert_int_eq(jit_frames(mock_site_of(ids[0])), 1);
    ck_assert_int_eq(mock_module_of(mock_site_of(ids[0])->frames[0].module)->head.jit, 1);
    ck_assert_uint_gt(mock_site_of(ids[0])->head.frame_count, 2); /* the walk goes on behind it */
}
END_TEST

static void *nest[30];

/* Each level of anonymous code calls the next: fn takes its own successor from `arg`. */
static __attribute__((noinline)) uint32_t through_nested(int depth)
{
    uint32_t r;
    if (depth == 2)
        r = ((jit_fn)(uintptr_t)nest[0])(nest[1], (void *)(uintptr_t)hook, NULL);
    else
        r = ((jit_fn)(uintptr_t)nest[0])((void *)(uintptr_t)hook, NULL, NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(anonymous_frames_that_follow_each_other_are_one)
{
    start();
    nest[0] = emit(with_frame, sizeof with_frame, 0);
    nest[1] = emit(with_frame, sizeof with_frame, 64);
    uint32_t two = through_nested(2);
    ck_assert_int_eq(jit_frames(mock_site_of(two)), 1);
}
END_TEST

START_TEST(anonymous_code_without_a_frame_is_survived)
{
    start();
    void *code = emit(without_frame, sizeof without_frame, 0);
    uint32_t id = through((jit_fn)(uintptr_t)code, NULL);
    ck_assert_uint_ge(id, TN_SITE_FIRST);
    ck_assert_int_ge(jit_frames(mock_site_of(id)), 1);
    tn_unwind = tn_unwind_own;
    ck_assert_uint_ge(through((jit_fn)(uintptr_t)code, NULL), TN_SITE_FIRST);
}
END_TEST

/* libunwind asks whether it may read before it follows a frame pointer it has no table for; it must get the truth (unwind_pipe.c), and no
 * descriptor of the host's may serve for that. */
#if defined(__x86_64__)
/* push rbp; mov rbp,rdx; mov rax,rdi; mov rdi,rsi; call rax; pop rbp; ret */
static const unsigned char wild_frame[] = { 0x55, 0x48, 0x89, 0xd5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3 };

START_TEST(wild_frame_pointers_in_anonymous_code_are_survived)
{
    start();
    jit_fn code = (jit_fn)(uintptr_t)emit(wild_frame, sizeof wild_frame, 0);
    char *closed = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    closed[0] = closed[4096] = 1; /* resident, then unreadable */
    ck_assert_int_eq(mprotect(closed + 4096, 4096, PROT_NONE), 0);
    void *wild[] = { NULL, (void *)16, closed + 4096, closed + 4096 - 8, closed + 8191, (void *)0x8000000000000000u, (void *)UINT64_MAX };
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++)
        for (int own = 0; own < 2; own++) {
            tn_unwind = own ? tn_unwind_own : tn_unwind_libunwind;
            ck_assert_uint_ge(code((void *)(uintptr_t)hook, NULL, wild[i]), TN_SITE_FIRST);
        }
}
END_TEST

/* A fiber whose stack ends at an unreadable page, and a frame pointer just into that: near enough for libunwind to believe it. */
static ucontext_t before_fiber, in_fiber;
static char *fiber_stack;
static jit_fn fiber_code;
static uint32_t fiber_site;
#define FIBER_BYTES (64 * 1024)

static void fiber(void)
{
    fiber_site = fiber_code((void *)(uintptr_t)hook, NULL, fiber_stack + FIBER_BYTES + 64);
}

START_TEST(frame_pointer_just_beyond_the_stack_is_survived)
{
    start();
    fiber_code = (jit_fn)(uintptr_t)emit(wild_frame, sizeof wild_frame, 0);
    fiber_stack = mmap(NULL, FIBER_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fiber_stack[FIBER_BYTES] = 1; /* resident, so that only an attempt to read it tells */
    ck_assert_int_eq(mprotect(fiber_stack + FIBER_BYTES, 4096, PROT_NONE), 0);
    ck_assert_int_eq(getcontext(&in_fiber), 0);
    in_fiber.uc_stack.ss_sp = fiber_stack;
    in_fiber.uc_stack.ss_size = FIBER_BYTES;
    in_fiber.uc_link = &before_fiber;
    makecontext(&in_fiber, fiber, 0);
    ck_assert_int_eq(swapcontext(&before_fiber, &in_fiber), 0);
    ck_assert_uint_ge(fiber_site, TN_SITE_FIRST);
}
END_TEST
#endif

START_TEST(no_descriptor_of_the_host_is_taken)
{
    int before = dup(1);
    close(before);
    start();
    (void)through((jit_fn)(uintptr_t)emit(with_frame, sizeof with_frame, 0), NULL);
    int after = dup(1);
    ck_assert_int_ge(before, 0);
    ck_assert_int_eq(after, before);
}
END_TEST

/* ---- modules that come and go */

typedef uint32_t (*plug_fn)(uint32_t (*back)(void *), void *arg);

static __attribute__((noinline)) uint32_t call_plug(plug_fn f)
{
    uint32_t r = f(hook, NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(another_library_in_the_same_place_is_no_stale_site)
{
    start();
    uint32_t a = 0, b = 0, again = 0;
    void *at = NULL;
    for (int i = 0; i < 3; i++) {
        void *h = dlopen(plug_path(i == 1 ? "libplug_b.so" : "libplug_a.so"), RTLD_NOW);
        ck_assert_ptr_nonnull(h);
        plug_fn f = (plug_fn)(uintptr_t)dlsym(h, "plug_call");
        if (at)
            ck_assert_ptr_eq(at, (void *)(uintptr_t)f); /* or this tests nothing */
        at = (void *)(uintptr_t)f;
        uint32_t id = call_plug(f);
        ck_assert_uint_eq(call_plug(f) != TN_SITE_NONE, 1);
        *(i == 0 ? &a : i == 1 ? &b : &again) = id;
        tn_callsite_dlclose_begin();
        uint32_t during = call_plug(f);
        ck_assert_uint_ne(during, TN_SITE_NONE);
        dlclose(h);
        tn_callsite_dlclose_end();
    }
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(a, again);
    const mock_site *sa = mock_site_of(a), *sb = mock_site_of(b);
    ck_assert_uint_ne(sa->head.key, sb->head.key);
    ck_assert_uint_eq(sa->frames[0].offset, sb->frames[0].offset);
    ck_assert_str_eq(strrchr(mock_module_of(sa->frames[0].module)->path, '/'), "/libplug_a.so");
    ck_assert_str_eq(strrchr(mock_module_of(sb->frames[0].module)->path, '/'), "/libplug_b.so");
}
END_TEST

/* One build-id at two places: two module records, one site. */
START_TEST(one_library_loaded_twice_gives_equal_sites)
{
    start();
    void *a = dlopen(plug_path("noid_a/libnoid.so"), RTLD_NOW), *c = dlopen(plug_path("noid_c/libnoid.so"), RTLD_NOW), *b = dlopen(plug_path("noid_b/libnoid.so"), RTLD_NOW);
    ck_assert(a && b && c);
    plug_fn fa = (plug_fn)(uintptr_t)dlsym(a, "plug_call"), fb = (plug_fn)(uintptr_t)dlsym(b, "plug_call"), fc = (plug_fn)(uintptr_t)dlsym(c, "plug_call");
    ck_assert_ptr_ne((void *)(uintptr_t)fa, (void *)(uintptr_t)fc);
    uint32_t ids[3];
    plug_fn all[3] = { fa, fb, fc };
    for (int i = 0; i < 3; i++)
        ids[i] = call_plug(all[i]);
    ck_assert_uint_eq(ids[0], ids[2]);
    ck_assert_uint_ne(ids[0], ids[1]);
    ck_assert_int_eq(mock_site_count, 2);
    const mock_module *m = mock_module_of(mock_site_of(ids[0])->frames[0].module);
    ck_assert_uint_eq(m->head.hashed, 1);
    ck_assert_uint_eq(m->head.build_id_bytes, 0);
}
END_TEST

START_TEST(frames_of_a_shared_runtime_are_skipped)
{
    start();
    void *h = dlopen(plug_path("libcudart.so.99"), RTLD_NOW);
    ck_assert_ptr_nonnull(h);
    plug_fn f = (plug_fn)(uintptr_t)dlsym(h, "plug_call");
    uint32_t id = call_plug(f);
    const mock_site *s = mock_site_of(id);
    for (uint32_t i = 0; i < s->head.frame_count; i++)
        ck_assert_ptr_null(strstr(mock_module_of(s->frames[i].module)->path, "libcudart"));
    uint64_t at = mock_module_of(s->frames[0].module)->head.base + s->frames[0].offset;
    ck_assert_uint_gt(at, (uint64_t)(uintptr_t)call_plug);
    ck_assert_uint_lt(at, (uint64_t)(uintptr_t)call_plug + 64);
}
END_TEST

/* Skipped frames do not shorten a long chain: 16 frames remain where there are that many. */
static __attribute__((noinline)) uint32_t recurse_plug(int depth, plug_fn f)
{
    uint32_t r = depth > 0 ? recurse_plug(depth - 1, f) : f(hook, NULL);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(skipped_frames_are_made_up_for)
{
    start();
    void *h = dlopen(plug_path("libcudart.so.99"), RTLD_NOW);
    ck_assert_ptr_nonnull(h);
    plug_fn f = (plug_fn)(uintptr_t)dlsym(h, "plug_call");
    uint32_t ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = recurse_plug(30, f);
    ck_assert_uint_eq(ids[0], ids[1]);
    ck_assert_uint_eq(ids[0], ids[2]);
    ck_assert_uint_eq(mock_site_of(ids[0])->head.frame_count, TN_FRAMES_MAX);
    ck_assert_uint_eq(mock_site_of(ids[0])->head.flags, TN_SF_CUT);
    ck_assert_int_eq(mock_site_count, 1);
}
END_TEST

/* ---- the unwinders */

START_TEST(a_caller_that_is_not_on_the_stack_stands_alone)
{
    start();
    const char *nowhere = (const char *)(uintptr_t)funnel + 2;
    for (int own = 0; own < 2; own++) {
        if (own)
            tn_unwind = tn_unwind_own;
        uint32_t id = tn_callsite(nowhere + own, NULL, 3);
        const mock_site *s = mock_site_of(id);
        ck_assert_uint_eq(s->head.frame_count, 1);
        ck_assert_uint_eq(s->head.flags, (uint32_t)(TN_SF_CALLER_ONLY | (own ? TN_SF_OWN_WALK : 0)));
        ck_assert_uint_eq(mock_module_of(s->frames[0].module)->head.base + s->frames[0].offset, (uint64_t)(uintptr_t)nowhere + (uint64_t)own);
    }
}
END_TEST

/* The outermost hook's caller, asked for from far below: through the runtime's innards to a driver hook. */
static __attribute__((noinline)) uint32_t far_below(const void *caller, const void *frame, int levels)
{
    uint32_t r = levels > 0 ? far_below(caller, frame, levels - 1) : tn_callsite(caller, frame, 7);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

static __attribute__((noinline)) uint32_t outer_hook(int levels)
{
    uint32_t r = far_below(__builtin_return_address(0), __builtin_frame_address(0), levels);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

START_TEST(frames_below_the_caller_do_not_count)
{
    start();
    uint32_t first = 0;
    for (int levels = 0; levels <= 18; levels++) {
        uint32_t id = outer_hook(levels);
        ck_assert_uint_eq(mock_site_of(id)->head.flags & TN_SF_CALLER_ONLY, 0);
        if (first)
            ck_assert_uint_eq(id, first);
        first = id;
    }
    ck_assert_uint_gt(mock_site_of(first)->head.frame_count, 2);
    ck_assert_int_eq(mock_site_count, 1);
}
END_TEST

static __attribute__((noinline)) int both_walks(uint64_t *a, uint64_t *b, int max, int *nb)
{
    const void *caller = __builtin_return_address(0);
    int n = tn_unwind_libunwind(caller, a, max);
    *nb = tn_unwind_own(caller, b, max);
    return n;
}

static __attribute__((noinline)) int both_below(int depth, uint64_t *a, uint64_t *b, int max, int *nb)
{
    int n = depth > 0 ? both_below(depth - 1, a, b, max, nb) : both_walks(a, b, max, nb);
    __asm__ __volatile__("" ::: "memory");
    return n;
}

/* This file has frame pointers: as far as it goes, both walks see the same. */
START_TEST(own_walk_agrees_with_libunwind)
{
    uint64_t a[TN_UNWIND_MAX], b[TN_UNWIND_MAX];
    int nb;
    start();
    for (int depth = 0; depth < 30; depth += 3) {
        int n = both_below(depth, a, b, TN_UNWIND_MAX, &nb);
        ck_assert_int_ge(n, depth + 2);
        ck_assert_int_ge(nb, depth + 2);
        ck_assert_mem_eq(a, b, (size_t)(depth + 2) * sizeof a[0]);
    }
    for (int max = 1; max <= TN_UNWIND_MAX; max++) {
        int n = both_below(60, a, b, max, &nb);
        ck_assert_int_eq(n, max);
        ck_assert_int_eq(nb, max);
        ck_assert_mem_eq(a, b, (size_t)max * sizeof a[0]);
    }
}
END_TEST

START_TEST(own_walk_marks_its_sites)
{
    start();
    tn_unwind = tn_unwind_own;
    uint32_t id = recurse(3);
    ck_assert_uint_eq(mock_site_of(id)->head.flags & (TN_SF_OWN_WALK | TN_SF_CALLER_ONLY), TN_SF_OWN_WALK);
    ck_assert_uint_ge(mock_site_of(id)->head.frame_count, 5);
}
END_TEST

/* Garbage in the frame pointer, as code compiled without one leaves it: nothing outside the stack may be read. */
#if defined(__x86_64__)
static __attribute__((noinline)) int walk_with(uint64_t fp, uint64_t *frames)
{
    int n;
    __asm__ __volatile__("push %%rbp\n\tmov %[fp], %%rbp\n\tmov %%rsp, %%rbx\n\tand $-16, %%rsp\n\tcall *%[walk]\n\tmov %%rbx, %%rsp\n\tpop %%rbp"
                         : "=a"(n)
                         : [fp] "r"(fp), [walk] "r"(tn_unwind_own), "D"((void *)1), "S"(frames), "d"(16)
                         : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
    return n;
}

START_TEST(own_walk_survives_garbage_frame_pointers)
{
    uint64_t frames[16], here = (uint64_t)(uintptr_t)frames;
    uint64_t trap[4] = { 0, 0, 0, 0 };
    const uint64_t garbage[] = { 0, 1, 8, 0x7fffffffffffu, UINT64_MAX, UINT64_MAX - 7, 0xdeadbeef000u, here + 1, (uint64_t)(uintptr_t)trap };
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        ck_assert_int_eq(walk_with(garbage[i], frames), 0);
    trap[0] = (uint64_t)(uintptr_t)trap; /* a loop */
    trap[1] = 0x500000;
    ck_assert_int_eq(walk_with((uint64_t)(uintptr_t)trap, frames), 0);
    trap[0] = UINT64_MAX - 7;
    ck_assert_int_eq(walk_with((uint64_t)(uintptr_t)trap, frames), 0);
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("callsite");
    TCase *t = tcase_create("callsite");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, known_chain_is_one_site_and_one_record);
    tcase_add_test(t, callers_of_one_funnel_are_sites_of_their_own);
    tcase_add_test(t, deep_recursion_is_cut);
    tcase_add_test(t, sites_have_a_bound);
    tcase_add_test(t, callers_beyond_the_bound_have_one_too);
    tcase_add_test(t, anonymous_code_is_one_jit_frame_wherever_it_lies);
    tcase_add_test(t, anonymous_frames_that_follow_each_other_are_one);
    tcase_add_test(t, anonymous_code_without_a_frame_is_survived);
#if defined(__x86_64__)
    tcase_add_test(t, wild_frame_pointers_in_anonymous_code_are_survived);
    tcase_add_test(t, frame_pointer_just_beyond_the_stack_is_survived);
#endif
    tcase_add_test(t, no_descriptor_of_the_host_is_taken);
    tcase_add_test(t, another_library_in_the_same_place_is_no_stale_site);
    tcase_add_test(t, one_library_loaded_twice_gives_equal_sites);
    tcase_add_test(t, frames_of_a_shared_runtime_are_skipped);
    tcase_add_test(t, skipped_frames_are_made_up_for);
    tcase_add_test(t, a_caller_that_is_not_on_the_stack_stands_alone);
    tcase_add_test(t, frames_below_the_caller_do_not_count);
    tcase_add_test(t, own_walk_agrees_with_libunwind);
    tcase_add_test(t, own_walk_marks_its_sites);
#if defined(__x86_64__)
    tcase_add_test(t, own_walk_survives_garbage_frame_pointers);
#endif
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
