/* A small server's memory behaviour, steered by its arguments, one after the other:
 *   alloc:N       N allocations of 1 MiB that stay
 *   loop:N        N times allocated and freed, 4 KiB, always at the same place in the source
 *   once          one allocation of 64 KiB at a place of its own, which stays
 *   leak:N        N allocations of 8 KiB that are forgotten
 *   retry         a request that no card can grant, and a small one after it
 *   print:TEXT    a line on standard output, flushed; warn:TEXT on standard error; raw:TEXT without a newline
 *   sleep:MS      no CUDA call for so long
 *   work:MS       a small allocation and free every 5 ms for so long
 *   launch:MS     a kernel every millisecond for so long, and no other call
 *   listen:PORT   listens on 127.0.0.1 from here on and answers HTTP with 200
 *   fork          goes on in two processes
 *   mark:TEXT, phase:N   by tenure.h; what they answered is printed
 *   kill:N        sends itself signal N; exit:N leaves by _exit; wait waits for SIGTERM and then ends well */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <tenure.h>

static volatile sig_atomic_t told_to_end;

static void end_well(int signal)
{
    (void)signal;
    told_to_end = 1;
}

static void rest(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && !told_to_end)
        ;
}

static void *take(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) != cudaSuccess)
        exit(90);
    return p;
}

static void loop(long n, long ms)
{
    for (long i = 0; i < n && !told_to_end; i++) {
        cudaFree(take(4096));
        if (ms)
            rest(ms);
    }
}

static void launch(long ms)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
    cudaLibrary_t library;
    cudaKernel_t kernel;
    /* The driver's: the fake runtime makes other calls of the driver around its own. */
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(&cuLaunchKernel) launch_kernel = driver ? (__typeof__(&cuLaunchKernel))dlsym(driver, "cuLaunchKernel") : NULL;
    if (!launch_kernel)
        exit(96);
    if (cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
        cudaLibraryGetKernel(&kernel, library, "nothing") != cudaSuccess)
        exit(94);
    for (long i = 0; i < ms && !told_to_end; i++) {
        if (launch_kernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS)
            exit(95);
        rest(1);
    }
}

static void retry(void)
{
    void *p = NULL;
    if (cudaMalloc(&p, (size_t)1 << 50) == cudaSuccess)
        exit(91);
    (void)cudaGetLastError();
    cudaFree(take(512));
}

static void *answer(void *arg)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    int listener = (int)(long)arg;
    char request[1024];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        if (read(fd, request, sizeof(request)) > 0 && write(fd, text, sizeof(text) - 1) < 0)
            perror("write");
        close(fd);
    }
}

static void listen_on(long port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 8) != 0 || pthread_create(&thread, NULL, answer, (void *)(long)fd) != 0)
        exit(92);
}

static void print(FILE *to, const char *text, const char *after)
{
    fprintf(to, "%s%s", text, after);
    fflush(to);
}

static pid_t child;

static void do_one(const char *what)
{
    const char *colon = strchr(what, ':'), *value = colon ? colon + 1 : "";
    size_t word = colon ? (size_t)(colon - what) : strlen(what);
    long n = atol(value);
#define IS(name) (word == sizeof(name) - 1 && strncmp(what, name, word) == 0)
    if (IS("alloc")) {
        for (long i = 0; i < n; i++)
            take(1 << 20);
    } else if (IS("loop")) {
        loop(n, 0);
    } else if (IS("once")) {
        take(65536);
    } else if (IS("leak")) {
        for (long i = 0; i < n; i++)
            take(8192);
    } else if (IS("retry")) {
        retry();
    } else if (IS("print")) {
        print(stdout, value, "\n");
    } else if (IS("warn")) {
        print(stderr, value, "\n");
    } else if (IS("raw")) {
        print(stdout, value, "");
    } else if (IS("sleep")) {
        rest(n);
    } else if (IS("work")) {
        loop(n / 5, 5);
    } else if (IS("launch")) {
        launch(n);
    } else if (IS("listen")) {
        listen_on(n);
    } else if (IS("fork")) {
        child = fork();
    } else if (IS("mark")) {
        printf("mark %d\n", tenure_mark(value));
    } else if (IS("phase")) {
        printf("phase %d\n", tenure_phase((int)n));
    } else if (IS("kill")) {
        kill(getpid(), (int)n);
    } else if (IS("exit")) {
        fflush(stdout);
        _exit((int)n);
    } else if (IS("wait")) {
        while (!told_to_end)
            rest(20);
    } else {
        exit(93);
    }
#undef IS
}

int main(int argc, char **argv)
{
    signal(SIGTERM, end_well);
    for (int i = 1; i < argc; i++)
        do_one(argv[i]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
