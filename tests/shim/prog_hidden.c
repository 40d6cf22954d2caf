/* Programs that do what hides a recorder: `clearenv` empties the environment before the first CUDA call; `namespace LIBCUDART` opens the
 * runtime in a namespace of its own. Prints what it got. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*malloc_fn)(void **, size_t);

int main(int argc, char **argv)
{
    void *p = NULL;
    int spaced = argc > 2 && strcmp(argv[1], "namespace") == 0;
    if (!spaced && clearenv() != 0) return 1;
    void *h = spaced ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW) : dlopen(argv[argc - 1], RTLD_NOW);
    malloc_fn f = h ? (malloc_fn)dlsym(h, "cudaMalloc") : NULL;
    printf("found=%d malloc=%d\n", f != NULL, f ? f(&p, 4096) : -1);
    return 0;
}
