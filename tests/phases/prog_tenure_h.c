/* tenure.h by itself: what its functions answer, that they leave errno alone and that threads may call them at once. With an argument
 * this process starts CUDA first. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <tenure.h>

static void *marks(void *arg)
{
    char text[32];
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "thread %d", i % 10);
        if (tenure_mark(text) == TENURE_REFUSED)
            return NULL;
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    int good = 0;
    void *p = NULL;
    (void)argv;
    if (argc > 1)
        cudaMalloc(&p, 1 << 20);
    errno = 77;
    printf("planning %d\n", tenure_phase(TENURE_PLANNING));
    printf("planning again %d\n", tenure_phase(TENURE_PLANNING));
    printf("back %d\n", tenure_phase(TENURE_LOADING));
    printf("none %d\n", tenure_phase(7));
    printf("mark %d\n", tenure_mark("before"));
    printf("serving %d\n", tenure_phase(TENURE_SERVING));
    printf("errno %d\n", errno);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, marks, &good);
    for (int i = 0; i < 4; i++) {
        void *answer = NULL;
        pthread_join(threads[i], &answer);
        good += answer != NULL;
    }
    printf("threads %d\n", good);
    if (argc > 1)
        cudaFree(p);
    return 0;
}
