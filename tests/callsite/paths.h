/* Random ways to a hook, for slots_paths.c: frames of many kinds that call each other as a path says. A path belongs to the thread that walks it;
 * paths_steps.c is compiled several times, with different flags, and each copy gives steps of its own. */
#ifndef TENURE_TESTS_PATHS_H
#define TENURE_TESTS_PATHS_H

#include <setjmp.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct path {
    uint64_t state;  /* says which steps are taken: equal states, equal paths */
    uint64_t jitter; /* says how much is taken from the stack by alloca where the path leaves that open */
    int left;        /* steps to go */
    int coroutines;  /* on the way now; there are only so many stacks */
    int handlers;
    int throws;      /* what catches is below */
    uint32_t kinds;  /* bits of what was passed on the way */
    uint32_t site;   /* the hook's answer */
    int hit;         /* and whether it was in the verified slots */
    jmp_buf *back;
} path;

/* Bits of path.kinds. */
enum { PATH_ALLOCA = 1, PATH_VLA = 2, PATH_COROUTINE = 4, PATH_SIGNAL = 8, PATH_ALTSTACK = 16, PATH_THROWN = 32, PATH_CAUGHT = 64, PATH_TAIL = 128,
       PATH_NO_TABLES = 256, PATH_NORETURN = 512, PATH_LIBC = 1024, PATH_ALIGNED = 2048, PATH_NO_FRAME_POINTER = 4096, PATH_FRAME_POINTER = 8192,
       PATH_STALE = 16384, PATH_KINDS = 15 };

static inline uint64_t path_bits(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x >> 16;
}

/* Goes on with any step of any file, or calls the hook. In slots_paths.c. */
uint32_t path_next(path *p);
/* In place of an exported wrapper. */
uint32_t path_hook(path *p);

/* One table of steps for each copy. */
#define PATH_STEPS 16
typedef uint32_t (*path_step)(path *p);
extern const path_step steps_frame_pointer[PATH_STEPS], steps_no_frame_pointer[PATH_STEPS], steps_tail[PATH_STEPS], steps_no_tables[PATH_STEPS];
/* paths_throw.cc: one that catches, one that throws after the hook, and one with a destructor on the way. */
#define STEP_THROWS 2
extern const path_step steps_throw[4];

#ifdef __cplusplus
}
#endif

#endif
