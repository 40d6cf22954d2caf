/* Looks names up in every way there is and prints what it found: the symbol's name and its object, or the loader's message without the
 * object it names. usage: prog_probe none PLUG | driver | weak */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#include "tests/shim/prog.h"

typedef int (*proc_v2)(const char *, void **, int, uint64_t, int *);
typedef int (*proc_v1)(const char *, void **, int, uint64_t);

/* Only in the mode `none`, where no object is expected to change. */
static int with_object;

static void print(const char *how, const char *name, void *p)
{
    char copy[512];
    const char *error = dlerror(), *again, *tail;
    Dl_info info;
    if (error != NULL) /* the next call gives the text back */
        error = (snprintf(copy, sizeof copy, "%s", error), copy);
    tail = error != NULL ? strstr(error, ": ") : NULL;
    again = dlerror();
    printf("%-14s %-24s ", how, name);
    if (p == NULL)
        printf("NULL");
    else if (!dladdr(p, &info))
        printf("somewhere");
    else
        printf("%s%s%s", info.dli_sname ? info.dli_sname : "?", with_object ? " of " : "",
               with_object ? strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname : "");
    printf(" error=%s again=%s\n", error == NULL ? "none" : tail != NULL ? tail + 2 : error, again == NULL ? "none" : again);
}

static int none(const char *plug)
{
    static const char *const names[] = {"cudaMalloc", "cudaMalloc", "cuInit", "cuMemAlloc_v2", "cuMemAlloc", "cudaMallocAsync_ptsz",
                                        "nvmlDeviceGetMemoryInfo", "cuGetProcAddress", "cuGetProcAddress_v2", "cudnnCreate",
                                        "cublasCreate_v2", "curl_easy_init", "cuMemAllocAnything", "cuda", "cu", "", "malloc", "printf",
                                        "dlopen", "tn_dlsym_route", "no_such_name_anywhere"};
    with_object = 1;
    void *self = dlopen(NULL, RTLD_LAZY), *library = dlopen(plug, RTLD_LAZY | RTLD_LOCAL), *libc = dlopen("libc.so.6", RTLD_LAZY);
    MUST(self != NULL && library != NULL && libc != NULL);
    void *(*next)(const char *) = (void *(*)(const char *))dlsym(library, "plug_next");
    void *(*by_default)(const char *) = (void *(*)(const char *))dlsym(library, "plug_default");
    MUST(next != NULL && by_default != NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        print("RTLD_DEFAULT", names[i], dlsym(RTLD_DEFAULT, names[i]));
        print("RTLD_NEXT", names[i], dlsym(RTLD_NEXT, names[i]));
        print("dlopen(NULL)", names[i], dlsym(self, names[i]));
        print("library", names[i], dlsym(library, names[i]));
        print("libc", names[i], dlsym(libc, names[i]));
        print("in its default", names[i], by_default(names[i]));
        print("in its next", names[i], next(names[i]));
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    printf("its own cuInit says %d\n", init(3));
    /* An error that nobody has read yet stays the last one's. */
    dlsym(libc, "no_such_name_anywhere");
    print("then malloc", "malloc", dlsym(libc, "malloc"));
    dlsym(RTLD_DEFAULT, "cudaFree");
    print("then cuInit", "cuInit", dlsym(self, "cuInit"));
    printf("dlclose %d\n", dlclose(library));
    library = dlopen("libcuda.so.1", RTLD_NOW);
    printf("libcuda %s\n", library == NULL ? "is not there" : "is there");
    return 0;
}

static void ask(proc_v2 resolver, const char *name, int version, uint64_t flags, int with_status)
{
    void *p = (void *)(intptr_t)-1;
    int status = -1;
    int r = resolver(name, &p, version, flags, with_status ? &status : NULL);
    char how[40];
    snprintf(how, sizeof how, "%d %d", version, (int)flags);
    printf("r=%d status=%d%s ", r, status, p == (void *)(intptr_t)-1 ? " (untouched)" : "");
    print(how, name, p == (void *)(intptr_t)-1 ? NULL : p);
}

/* The driver's resolver, asked for itself, with and without a status, at every version and flag (no CUDA is started). */
static int driver(void)
{
    static const int versions[] = {2000, 3020, 7000, 11020, 11030, 12000, 12050, 13000, 99000};
    static const char *const names[] = {"cuGetProcAddress", "cuMemAlloc", "cuMemFree", "cuMemAllocAsync", "cuMemcpyHtoDAsync",
                                        "cuStreamSynchronize", "cuGraphInstantiate", "cuCtxCreate", "cuInit", "cuGetErrorName", "cuNoSuch",
                                        "cuMemAlloc_v2", ""};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    MUST(library != NULL);
    proc_v2 v2 = (proc_v2)dlsym(library, "cuGetProcAddress_v2");
    proc_v1 v1 = (proc_v1)dlsym(library, "cuGetProcAddress");
    MUST(v2 != NULL && v1 != NULL);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        print("dlsym", names[n], dlsym(library, names[n]));
        for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
            for (uint64_t flags = 0; flags < 4; flags++)
                ask(v2, names[n], versions[v], flags, (n + v + flags) % 2 != 0);
        void *p = NULL;
        int r = v1(names[n], &p, 11030, 0);
        printf("v1 r=%d ", r);
        print("v1", names[n], p);
    }
    /* What the resolver gives for itself works as one, and gives the same again. */
    void *resolver = NULL, *from_it = NULL, *direct = NULL;
    MUST(v2("cuGetProcAddress", &resolver, 12000, 0, NULL) == 0);
    MUST(((proc_v2)resolver)("cuMemAlloc", &from_it, 12000, 0, NULL) == 0);
    MUST(v2("cuMemAlloc", &direct, 12000, 0, NULL) == 0);
    printf("its own resolver agrees: %d\n", from_it == direct);
    return 0;
}

extern int cudaMalloc(void **, size_t) __attribute__((weak));

static int weak(void)
{
    void *p = (void *)&p;
    if (cudaMalloc == NULL)
        printf("absent\n");
    else
        printf("there, answers %d\n", cudaMalloc(&p, 8));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "none") == 0)
        return none(argv[2]);
    if (argc == 2 && strcmp(argv[1], "driver") == 0)
        return driver();
    return argc == 2 && strcmp(argv[1], "weak") == 0 ? weak() : 2;
}
