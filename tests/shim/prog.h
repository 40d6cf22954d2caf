/* For this folder's programs: ordinary CUDA programs that know nothing of Tenure. What they print must be the same with and without it, so
 * no addresses, times or process ids. */
#ifndef TESTS_SHIM_PROG_H
#define TESTS_SHIM_PROG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with code 99 and a line on standard error where `ok` is 0. */
static inline void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(99);
}

#define MUST(expr) must((expr) != 0, #expr)

#endif
