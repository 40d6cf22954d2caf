/* liblate.so: allocates in its constructor, frees in its destructor. */
#include "observe.h"

static void *block;
static int calls;

int late_count(void);
int late_count(void) { return ++calls; }

__attribute__((constructor)) static void made(void) { obs_code("library.malloc", cudaMalloc(&block, 1000)); }
__attribute__((destructor)) static void gone(void) { obs_last("library.free", cudaFree(block)); }
