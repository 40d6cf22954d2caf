/* Allocates and frees on two threads until it is killed, telling how far it came in a shared page. usage: prog_kill PAGE_FILE */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/shim/kill.h"
#include "tests/shim/prog.h"

enum { WINDOW = 64 }; /* live blocks of a thread */
static kill_page *page;

static void *run(void *number)
{
    int t = *(int *)number;
    void *live[WINDOW];
    for (uint32_t n = 0; n < KILL_MAX; n++) {
        if (n >= WINDOW) {
            page->errors += cudaFree(live[n % WINDOW]) != cudaSuccess;
            atomic_store(&page->freed[t], n - WINDOW + 1);
        }
        page->errors += cudaMalloc(&live[n % WINDOW], KILL_BYTES(t, n)) != cudaSuccess;
        atomic_store(&page->allocated[t], n + 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static int numbers[KILL_THREADS] = {0, 1};
    pthread_t threads[KILL_THREADS];
    int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
    MUST(fd >= 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(page != MAP_FAILED);
    for (int t = 0; t < KILL_THREADS; t++)
        MUST(pthread_create(&threads[t], NULL, run, &numbers[t]) == 0);
    for (int t = 0; t < KILL_THREADS; t++)
        pthread_join(threads[t], NULL);
    pause();
    return 0;
}
