/* Two threads in turn: while one's call that ends a context has not yet returned, the other makes a context, which gets the same handle, and has
 * memory there that must outlive that call. Exits with 5 when each handle came again and all was well. */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 5
#define BYTES 8192
#define MOST 8 /* contexts until the handle comes again */

static _Atomic int wrong, again;
static CUcontext ending; /* of this round */

#define WANT(call, wanted) want(#call, (int)(call), wanted)
static void want(const char *what, int got, int wanted)
{
    if (got == wanted) return;
    printf("%s gave %d\n", what, got);
    wrong = 1;
}

__attribute__((noinline)) static CUdeviceptr take(void)
{
    CUdeviceptr p = 0;
    WANT(cuMemAlloc(&p, BYTES), 0);
    return p;
}

static void *ends(void *arg)
{
    (void)arg;
    WANT(cuCtxDestroy(ending), 0);
    return NULL;
}

static void one_round(unsigned char value)
{
    CUcontext made[MOST], other = NULL;
    int count = 0;
    pthread_t t;
    unsigned char copy[BYTES];
    WANT(cuCtxCreate(&ending, NULL, 0, 0), 0);
    WANT(cuMemsetD8(take(), 1, BYTES), 0); /* ends with its context */
    WANT(cuCtxPopCurrent(NULL), 0);
    if (pthread_create(&t, NULL, ends, NULL) != 0) wrong = 1;
    while (other != ending && count < MOST) {
        usleep(4000);
        WANT(cuCtxCreate(&other, NULL, 0, 0), 0);
        made[count++] = other;
    }
    again += other == ending;
    CUdeviceptr p = take();
    WANT(cuMemsetD8(p, value, BYTES), 0);
    pthread_join(t, NULL);
    CUdeviceptr q = take();
    WANT(cuMemsetD8(q, value + 1, BYTES), 0);
    WANT(cuMemcpyDtoH(copy, p, BYTES), 0);
    for (int i = 0; i < BYTES && !wrong; i++) want("a byte", copy[i], value);
    WANT(cuMemFree(p), 0);
    WANT(cuMemFree(q), 0);
    while (count) WANT(cuCtxDestroy(made[--count]), 0);
}

int main(void)
{
    WANT(cuInit(0), 0);
    for (unsigned char i = 0; i < ROUNDS && !wrong; i++) one_round(10 + 2 * i);
    want("how often a handle came again", again, ROUNDS);
    return wrong ? 1 : 5;
}
