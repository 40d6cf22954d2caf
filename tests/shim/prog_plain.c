/* One block, copied to and from; also built with AddressSanitizer, whose library wants to stand before every other one. */
#include <cuda_runtime_api.h>

#include "tests/shim/prog.h"

int main(void)
{
    void *p = NULL;
    char *volatile host = malloc(100);
    MUST(cudaMalloc(&p, 100) == cudaSuccess);
    MUST(cudaMemset(p, 7, 100) == cudaSuccess);
    MUST(cudaMemcpy(host, p, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    printf("%d\n", host[99]);
    MUST(cudaFree(p) == cudaSuccess);
    free(host);
    return 0;
}
