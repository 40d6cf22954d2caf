#include "shim/api.h"

#include <string.h>

#include "shim/hooks.h"

const tn_api_row tn_api_rows[TN_API_COUNT] = {
#define LEGACY 0
#define PTDS 1
#define TN_DRIVER(klass, variant, name, ...) {#name, TN_LEVEL_DRIVER, TN_CLASS_##klass, variant, (void *)TN_EXPORTED(name)},
#define TN_RUNTIME(klass, variant, name, ...) {#name, TN_LEVEL_RUNTIME, TN_CLASS_##klass, variant, (void *)TN_EXPORTED(name)},
#define TN_NVML(klass, name, ...) {#name, TN_LEVEL_NVML, TN_CLASS_##klass, 0, (void *)TN_EXPORTED(name)},
    {0},
#include "shim/api_all.def"
};

#define BUCKETS 2048u /* a power of two well above TN_API_MAX: chains stay short */

/* Open addressing over row numbers, filled at the first question. Two threads may fill it at once: both write
 * the same numbers to the same places, and `ready` is set only when all stand. */
static uint16_t table[BUCKETS];
static int ready;

static unsigned hash(const char *s)
{
    unsigned h = 2166136261u;
    while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
    return h ^ h >> 13;
}

static void fill(void)
{
    for (int api = 1; api < TN_API_COUNT; api++) {
        unsigned i = hash(tn_api_rows[api].name) % BUCKETS;
        while (__atomic_load_n(&table[i], __ATOMIC_RELAXED) && table[i] != api) i = (i + 1) % BUCKETS;
        __atomic_store_n(&table[i], (uint16_t)api, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

int tn_api_find(const char *name)
{
    if (!name || (name[0] != 'c' && name[0] != 'n')) return TN_API_NONE;
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) fill();
    for (unsigned i = hash(name) % BUCKETS; table[i]; i = (i + 1) % BUCKETS)
        if (strcmp(tn_api_rows[table[i]].name, name) == 0) return table[i];
    return TN_API_NONE;
}
