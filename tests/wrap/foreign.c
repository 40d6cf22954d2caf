/* A program as another build has it: no header of CUDA's, no knowledge of Tenure. Allocates twice, frees once. */
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **at, size_t bytes);
int cudaFree(void *at);

int main(void)
{
    void *p = NULL, *q = NULL;
    int r = cudaMalloc(&p, 1000);
    r |= cudaMalloc(&q, (size_t)5 << 20);
    r |= cudaFree(p);
    printf("result %d, %s\n", r, p && q && p != q ? "two blocks" : "no blocks");
    return r != 0;
}
