/* Starts CUDA, then opens libworker.so, whose constructor waits for calls of another thread. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    printf("start=%d\n", (int)cudaFree(NULL));
    fflush(stdout);
    printf("opened=%d\n", dlopen("libworker.so", RTLD_NOW) != NULL);
    return 0;
}
