/* A library that calls back: the module of a frame in the tests. Built several times, with another PLUG_VARIANT for other code, and with and without
 * build-id. */
#include <stdint.h>

#ifndef PLUG_VARIANT
#define PLUG_VARIANT 0
#endif

uint32_t plug_call(uint32_t (*back)(void *), void *arg);
int plug_variant(int x);

__attribute__((noinline)) uint32_t plug_call(uint32_t (*back)(void *), void *arg)
{
    uint32_t r = back(arg);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

int plug_variant(int x)
{
#if PLUG_VARIANT == 1
    for (int i = 0; i < x; i++)
        x ^= i * 3;
#endif
    return x + PLUG_VARIANT;
}
