/*
 * A small preload that writes down where the engine's allocation calls come
 * from, in the form of a report: sites with frames of module, build id, offset.
 * It lets check_sites.sh be tested, and the engine's coverage of its own source,
 * with nothing else in between. One lock; the file named by SITE_TRACE is
 * written when the process ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define MAX_SITES 4096
#define MAX_FRAMES 12

struct site {
    void *frames[MAX_FRAMES];
    int n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct site sites[MAX_SITES];
static int n_sites;
static int overflow;

static void note(void)
{
    struct site s = { .n = 0 };
    void *all[MAX_FRAMES + 2];
    int n = backtrace(all, MAX_FRAMES + 2);

    /* The first two are this function and the wrapper. */
    for (int i = 2; i < n; i++)
        s.frames[s.n++] = all[i];
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n_sites && memcmp(&sites[i], &s, sizeof s) != 0)
        i++;
    if (i == n_sites) {
        if (n_sites < MAX_SITES)
            sites[n_sites++] = s;
        else
            overflow = 1;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void write_out(void)
{
    const char *name = getenv("SITE_TRACE");
    FILE *f = name != NULL ? fopen(name, "w") : NULL;

    if (f == NULL)
        return;
    fprintf(f, "{\"overflow\": %d, \"sites\": [", overflow);
    for (int i = 0; i < n_sites; i++) {
        fprintf(f, "%s\n{\"frames\": [", i > 0 ? "," : "");
        for (int k = 0; k < sites[i].n; k++) {
            Dl_info info;
            struct link_map *map = NULL;
            if (dladdr1(sites[i].frames[k], &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
                continue;
            size_t offset = (size_t)((char *)sites[i].frames[k] - (char *)info.dli_fbase);
            fprintf(f, "%s{\"module\": \"%s\", \"build_id\": null, \"offset\": \"0x%zx\"}", k > 0 ? ", " : "",
                    info.dli_fname, offset);
        }
        fprintf(f, "]}");
    }
    fprintf(f, "]}\n");
    fclose(f);
}

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

cudaError_t cudaMalloc(void **p, size_t n)
{
    note();
    return REAL(cudaMalloc)(p, n);
}

cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s)
{
    note();
    return REAL(cudaMallocAsync)(p, n, s);
}

cudaError_t cudaMallocHost(void **p, size_t n)
{
    note();
    return REAL(cudaMallocHost)(p, n);
}

cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags)
{
    note();
    return REAL(cudaHostAlloc)(p, n, flags);
}

cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags)
{
    note();
    return REAL(cudaHostRegister)(p, n, flags);
}
