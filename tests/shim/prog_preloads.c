/* Plain allocations and frees, and what each answered. Knows nothing of preloads: the test puts some in front of it. */
#include <cuda_runtime_api.h>

#include "tests/shim/prog.h"

int main(void)
{
    size_t free_bytes = 0, total = 0;
    for (int i = 0; i < 3; i++) {
        void *p = NULL;
        int allocated = (int)cudaMalloc(&p, 1000 + (size_t)i);
        printf("%d %d %d\n", allocated, p != NULL, (int)cudaFree(p));
    }
    printf("query %d\n", (int)cudaMemGetInfo(&free_bytes, &total));
    return 0;
}
