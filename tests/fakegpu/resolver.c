/*
 * cuGetProcAddress, old and new, over one table of names and versions and the list of exported functions.
 * A name with a variant suffix is never found; a miss is a success with a NULL pointer and a status.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct symbol {
    const char *base;
    int version;
    const char *name, *pt;
    int pt_version;
};
static const struct symbol table[] = {
#define FK_SYMBOL(base, version, name, pt, pt_version) {base, version, name, pt, pt_version},
#include "resolver.def"
#undef FK_SYMBOL
};
#define NTABLE (sizeof table / sizeof table[0])

/* Stands for the status that the first form of the call does not have. */
static CUdriverProcAddressQueryResult no_status;
static const struct fk_api **exports; /* sorted by name */
static size_t nexports;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct fk_api *const *)a)->name, (*(const struct fk_api *const *)b)->name);
}

static void sort_exports(void)
{
    nexports = (size_t)(__stop_fk_apis - __start_fk_apis);
    exports = malloc(nexports * sizeof *exports);
    if (exports == NULL)
        abort();
    for (size_t i = 0; i < nexports; i++)
        exports[i] = __start_fk_apis[i];
    qsort(exports, nexports, sizeof *exports, by_name);
}

static void *address_of(const char *name)
{
    struct fk_api key = {.name = name}, *k = &key;
    const struct fk_api **e = bsearch(&k, exports, nexports, sizeof *exports, by_name);
    void *p = NULL;
    if (e != NULL)
        memcpy(&p, &(*e)->fn, sizeof p);
    return p;
}

/* A negative version is no bound at all: the driver then hands out its newest variant. */
static CUresult resolve(const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    const struct symbol *hit = NULL;
    bool known = false;
    fk_config_load();
    bool first_form = status == &no_status;
    if (version < 0)
        version = fk_cfg.driver_version;
    if (version > fk_cfg.driver_version || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    if (exports == NULL)
        sort_exports();
    void *found = NULL;
    for (size_t i = 0; i < NTABLE; i++) {
        const struct symbol *s = &table[i];
        if (strcmp(s->base, name) != 0 || s->version > fk_cfg.driver_version)
            continue;
        known |= address_of(s->name) != NULL;
        if (s->version <= version && address_of(s->name) != NULL)
            hit = s;
    }
    if (hit != NULL) {
        bool pt = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && hit->pt[0] != '\0' && version >= hit->pt_version;
        found = address_of(pt ? hit->pt : hit->name);
    }
    if (found == NULL && first_form)
        return CUDA_ERROR_NOT_FOUND; /* it has no status to say so */
    *out = found; /* a NULL output faults here, and a NULL name above, as on the real driver */
    if (status != NULL)
        *status = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known     ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}
FK_API_EARLY(cuGetProcAddress, (const char *name, void **out, int version, cuuint64_t flags),
             resolve(name, out, version, flags, &no_status))
FK_API_EARLY(cuGetProcAddress_v2,
             (const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status),
             resolve(name, out, version, flags, status))

/* For a runtime under FAKEGPU_DIRECT; fakegpu.h is the contract. */
__attribute__((visibility("default"))) CUresult fakegpu_resolver(const char *name, void **out, int version, cuuint64_t flags,
                                                                 CUdriverProcAddressQueryResult *status)
{
    pthread_mutex_lock(&fk_lock);
    CUresult r = resolve(name, out, version, flags, status);
    pthread_mutex_unlock(&fk_lock);
    return r;
}

/* Private tables are not imitated: whoever asks for one learns that it is not there. */
static CUresult export_table(const void **out, const CUuuid *id)
{
    if (out == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
FK_API_EARLY(cuGetExportTable, (const void **out, const CUuuid *id), export_table(out, id))
