/* Plain allocations and frees, and what each answered. Knows nothing of preloads: the test puts some in front of it. The argument is a
 * second runtime, opened after a library was closed; the calls after that are still the first one's, and the preloads'. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/shim/prog.h"

int main(int argc, char **argv)
{
    size_t free_bytes = 0, total = 0;
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            void *closed = dlopen("libm.so.6", RTLD_NOW);
            printf("close %d\n", closed ? dlclose(closed) : -1);
            void *second = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
            printf("second %d %d\n", second != NULL, second && dlsym(second, "cudaMalloc"));
        }
        void *p = NULL;
        int allocated = (int)cudaMalloc(&p, 1000 + (size_t)i);
        printf("%d %d %d\n", allocated, p != NULL, (int)cudaFree(p));
    }
    printf("query %d\n", (int)cudaMemGetInfo(&free_bytes, &total));
    return 0;
}
