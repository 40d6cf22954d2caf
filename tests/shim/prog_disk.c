/* Makes and frees N blocks, waits for somebody to do something to the disk, and makes N more. Ends with code 7, which a shim that spoils
 * something would change. usage: prog_disk N READY_FILE GO_FILE */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/prog.h"

static int blocks;

static void *work(void *unused)
{
    long errors = 0;
    (void)unused;
    for (int i = 0; i < blocks; i++) {
        void *p = NULL;
        errors += cudaMalloc(&p, (size_t)(i % 4096 + 1)) != cudaSuccess;
        errors += cudaFree(p) != cudaSuccess;
    }
    return (void *)errors;
}

static long on_two_threads(void)
{
    pthread_t t;
    void *other = NULL;
    MUST(pthread_create(&t, NULL, work, NULL) == 0);
    long errors = (long)work(NULL);
    pthread_join(t, &other);
    return errors + (long)other;
}

int main(int argc, char **argv)
{
    MUST(argc == 4);
    blocks = atoi(argv[1]);
    printf("first half: %ld errors\n", on_two_threads());
    fprintf(stderr, "half way\n");
    int fd = open(argv[2], O_CREAT | O_WRONLY, 0600);
    MUST(fd >= 0 && close(fd) == 0);
    for (int i = 0; access(argv[3], F_OK) != 0; i++) {
        must(i < 3000, "nobody said go");
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    printf("second half: %ld errors\n", on_two_threads());
    /* The signals that a full disk could have sent are as they were. */
    struct sigaction bus, xfsz;
    MUST(sigaction(SIGBUS, NULL, &bus) == 0 && sigaction(SIGXFSZ, NULL, &xfsz) == 0);
    printf("handlers untouched: %d\n", bus.sa_handler == SIG_DFL && xfsz.sa_handler == SIG_DFL);
    void *last = NULL;
    printf("last: %d\n", (int)cudaMalloc(&last, 1 << 20));
    fprintf(stderr, "done\n");
    return 7;
}
