/* A host without Python that allocates, loads an interpreter (argv[1], with home argv[2]), lets it allocate, ends it, unloads it, and does so again. Forked
 * children unload something too, while the other thread of their parent may have been anywhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cudaMalloc(void **p, size_t bytes);

static volatile int stop;

static void *busy(void *arg)
{
    (void)arg;
    while (!stop) {
        void *p;
        cudaMalloc(&p, 256);
    }
    return NULL;
}

/* How many of 100 children took longer than it takes to unload a library. */
static int slow_children(void)
{
    int slow = 0, status;
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct timespec a, b;
            clock_gettime(CLOCK_MONOTONIC, &a);
            void *lib = dlopen("libresolv.so.2", RTLD_NOW);
            if (!lib || dlclose(lib) != 0) _exit(2);
            clock_gettime(CLOCK_MONOTONIC, &b);
            _exit((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9 > 0.8);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 2) return -1;
        slow += WEXITSTATUS(status);
    }
    return slow;
}

int main(int argc, char **argv)
{
    void *p;
    pthread_t t;
    if (argc != 3) return 2;
    setenv("PYTHONHOME", argv[2], 1);
    cudaMalloc(&p, 1);
    pthread_create(&t, NULL, busy, NULL);
    for (int i = 0; i < 3; i++) {
        void *lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        if (!lib) { puts(dlerror()); return 1; }
        void (*start)(int) = (void (*)(int))dlsym(lib, "Py_InitializeEx");
        int (*run)(const char *) = (int (*)(const char *))dlsym(lib, "PyRun_SimpleString");
        int (*end)(void) = (int (*)(void))dlsym(lib, "Py_FinalizeEx");
        char text[256];
        start(0);
        snprintf(text, sizeof text, "import ctypes\ndef f%d():\n ctypes.CDLL(None).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(%d))\nf%d()\n", i, 1000 + i, i);
        printf("%d", run(text));
        if (i == 0) printf("%d", slow_children());
        printf("%d", end());
        cudaMalloc(&p, 2000 + (size_t)i);
        printf("%d\n", dlclose(lib));
        cudaMalloc(&p, 3000 + (size_t)i);
    }
    stop = 1;
    pthread_join(t, NULL);
    return 0;
}
