/* A host without Python that allocates, loads an interpreter (argv[1], with home argv[2]), lets it allocate, ends it, unloads it, and does so again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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
        printf("%d", end());
        cudaMalloc(&p, 2000 + (size_t)i);
        printf("%d\n", dlclose(lib));
        cudaMalloc(&p, 3000 + (size_t)i);
    }
    stop = 1;
    pthread_join(t, NULL);
    return 0;
}
