/* Preloaded in front of the toolkit's cudart: writes down every question to the
 * driver's resolver and every request for a private table, with the answer.
 *
 * It takes the place of dlsym for the one name cudart looks up so, and of the
 * resolver where the resolver is asked for itself; everything else is passed
 * on. RESOLVER_TRACE names the file. Single-threaded by its use. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult (*resolver_t)(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);
typedef CUresult (*table_t)(const void **, const CUuuid *);
typedef void *(*dlsym_t)(void *, const char *);

static resolver_t real_resolver;
static table_t real_table;

static FILE *trace(void)
{
    static FILE *file;
    const char *name = getenv("RESOLVER_TRACE");

    if (!file && name)
        file = fopen(name, "w");
    return file;
}

static CUresult table(const void **out, const CUuuid *id)
{
    CUresult r = real_table(out, id);
    FILE *f = trace();

    if (f) {
        fprintf(f, "table ");
        for (int i = 0; i < 16; i++)
            fprintf(f, "%02x", (unsigned char)id->bytes[i]);
        fprintf(f, " -> %d\n", (int)r);
        fflush(f);
    }
    return r;
}

static CUresult resolver(const char *name, void **out, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult own = (CUdriverProcAddressQueryResult)99;
    CUresult r = real_resolver(name, out, version, flags, &own);
    FILE *f = trace();

    if (f) {
        fprintf(f, "%s %d %llu -> %d %s %d\n", *name ? name : "(empty)", version,
                (unsigned long long)flags, (int)r, *out ? "found" : "null", (int)own);
        fflush(f);
    }
    if (status)
        *status = own;
    if (r == CUDA_SUCCESS && *out && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000)
        *(resolver_t *)(void *)out = resolver;
    if (r == CUDA_SUCCESS && *out && strcmp(name, "cuGetExportTable") == 0) {
        memcpy(&real_table, out, sizeof real_table);
        *(table_t *)(void *)out = table;
    }
    return r;
}

void *dlsym(void *handle, const char *name)
{
    static dlsym_t real;
    void *p;

    if (!real) {
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

        for (int i = 0; i < 3 && !real; i++)
            *(void **)(void *)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (!real)
            abort();
    }
    p = real(handle, name);
    if (p && strcmp(name, "cuGetProcAddress_v2") == 0) {
        memcpy(&real_resolver, &p, sizeof real_resolver);
        *(resolver_t *)(void *)&p = resolver;
    }
    return p;
}
