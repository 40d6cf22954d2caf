#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

void cu_check(cudaError_t rc, const char *what, const char *file, int line)
{
    if (rc == cudaSuccess)
        return;
    fflush(stdout);
    fprintf(stderr, "engine: %s:%d: %s: %s\n", file, line, what, cudaGetErrorString(rc));
    exit(3);
}

int cu_try(cudaError_t rc)
{
    if (rc == cudaSuccess)
        return 1;
    (void)cudaGetLastError();
    return 0;
}
