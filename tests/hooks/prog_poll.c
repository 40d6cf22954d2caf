/* A million polls of an idle stream: what the journal makes of them must stay small. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#define POLLS 1000000

int main(void)
{
    cudaStream_t s;
    int done = 0, failures = cudaStreamCreate(&s) != cudaSuccess;
    for (int i = 0; i < POLLS; i++) done += cudaStreamQuery(s) == cudaSuccess;
    printf("failures=%d done=%d\n", failures, done == POLLS);
    return 0;
}
