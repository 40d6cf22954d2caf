/* Binding to the real driver and NVML, and mapping the real driver's addresses to our hooks. */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "shim/gate.h"
#include "shim/hook.h"
#include "shim/modules.h"
#include "shim/plant.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/signals.h"

tn_driver_functions tn_real;
tn_nvml_functions tn_real_nvml;

enum { UNBOUND = 0, BINDING, BOUND };
#define WAIT_YIELDS 100000 /* publishing takes some 20 us */
static _Atomic int driver_state, nvml_state;
static char driver_path[4096];
static uint64_t driver_base, nvml_base; /* where they lie, to notice that they are gone */

/* Until another thread has published, which no handler of that thread interrupts; not for ever, all the same. */
static void wait_published(_Atomic int *state)
{
    for (int i = 0; i < WAIT_YIELDS && atomic_load_explicit(state, memory_order_acquire) == BINDING; i++) sched_yield();
}

#define BUCKETS 2048u
static struct { const void *real; int api; } by_address[BUCKETS];

static unsigned bucket(const void *p) { return (unsigned)(((uint64_t)p * 0x9e3779b97f4a7c15u) >> 53) % BUCKETS; }

static void remember(const void *real, int api)
{
    if (!real) return;
    unsigned i = bucket(real);
    while (by_address[i].real && by_address[i].real != real) i = (i + 1) % BUCKETS;
    if (by_address[i].real) return; /* two names of one function: either hook is right */
    by_address[i].real = real;
    by_address[i].api = api;
}

void *tn_driver_hook_of(const void *real, int *api)
{
    if (atomic_load_explicit(&driver_state, memory_order_acquire) != BOUND) return NULL;
    for (unsigned i = bucket(real); by_address[i].real; i = (i + 1) % BUCKETS) {
        if (by_address[i].real != real) continue;
        *api = by_address[i].api;
        TN_PLANT_POINT(variant, api);
        return tn_api_rows[*api].hook;
    }
    return NULL;
}

/* A look-up that only finds the driver's own definition, never our hook of the same name. */
static void *real_symbol(void *handle, const char *name, const void *hook)
{
    void *p = tn_real_dlsym(handle, name);
    return p == hook ? NULL : p;
}

static void look_up(void *handle, tn_driver_functions *fn)
{
    void *p;
#define TN_DRIVER(klass, variant, name, ...)                                       \
    p = real_symbol(handle, #name, tn_api_rows[TN_API_##name].hook);               \
    memcpy(&fn->name, &p, sizeof p);
#include "shim/api_driver_memory.def"
#include "shim/api_driver_order.def"
#include "shim/api_driver_work.def"
#include "shim/api_driver_copy.def"
#undef TN_DRIVER
#define TN_HELPER(name, params)              \
    p = tn_real_dlsym(handle, #name);        \
    memcpy(&fn->name, &p, sizeof p);
#include "shim/api_helpers.def"
#undef TN_HELPER
}

void tn_driver_hot(void)
{
    tn_hot *hot = tn_hot_page;
#define TN_DRIVER(...)
#define TN_LAUNCH(variant, name, ...) hot->launch[TN_SHORT_##name] = (void (*)(void))tn_real.name;
#include "shim/api_driver_work.def"
#undef TN_DRIVER
    for (unsigned i = 0; i < TN_COPY_COUNT; i++) atomic_store(&hot->copy[i], NULL); /* a call of the long way puts them back */
    for (unsigned i = 0; i < TN_WAITS_COUNT; i++) atomic_store(&hot->wait[i].real, NULL);
    hot->self = (char *)&tn_self - (char *)__builtin_thread_pointer();
    hot->get_current = (int (*)(void **))(void (*)(void))tn_real.cuCtxGetCurrent;
}

static void publish(const tn_driver_functions *fn, const tn_module_info *m)
{
    snprintf(driver_path, sizeof driver_path, "%s", m->path);
    driver_base = m->base;
#define TN_DRIVER(klass, variant, name, ...) remember((const void *)fn->name, TN_API_##name);
#include "shim/api_driver_memory.def"
#include "shim/api_driver_order.def"
#include "shim/api_driver_work.def"
#include "shim/api_driver_copy.def"
#undef TN_DRIVER
    tn_real = *fn;
    TN_PLANT_POINT(functions, &tn_real);
    tn_driver_hot();
}

static int bind_driver(void *handle, const char *path)
{
    tn_module_info m;
    void *own = handle ? NULL : dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) handle = own;
    if (!handle) return 0;
    void *any = tn_real_dlsym(handle, "cuDriverGetVersion");
    tn_loader_enter();
    int found = any && tn_module_of(any, &m) && tn_is_libcuda(m.path);
    tn_loader_leave();
    if (!found) {
        if (own) tn_real_dlclose(own);
        return 0;
    }
    /* Several threads may look up at once, each for itself, since no lock of ours may be held around the loader's; the
     * first to finish publishes. */
    tn_driver_functions fn;
    look_up(handle, &fn);
    int expected = UNBOUND;
    if (atomic_compare_exchange_strong(&driver_state, &expected, BINDING)) {
        publish(&fn, &m);
        atomic_store_explicit(&driver_state, BOUND, memory_order_release);
    }
    wait_published(&driver_state);
    if (own) tn_real_dlclose(own);
    return atomic_load_explicit(&driver_state, memory_order_acquire) == BOUND && (!path || strcmp(path, driver_path) == 0);
}

/* Handlers wait: one that calls CUDA has the same look-ups to make, and would wait for ever for what its own thread is publishing, or
 * for a lock of the loader's that its thread is about to let go. */
int tn_driver_bind(void *handle, const char *path)
{
    if (atomic_load_explicit(&driver_state, memory_order_acquire) == BOUND) return !path || strcmp(path, driver_path) == 0;
    uint64_t blocked = tn_signals_block();
    int bound = bind_driver(handle, path);
    tn_signals_restore(blocked);
    return bound;
}

static void bind_nvml(void *handle)
{
    void *own = handle ? NULL : dlopen("libnvidia-ml.so.1", RTLD_NOLOAD | RTLD_LAZY), *p;
    tn_module_info m;
    if (!handle) handle = own;
    if (!handle) return;
    void *any = real_symbol(handle, "nvmlDeviceGetMemoryInfo", tn_api_rows[TN_API_nvmlDeviceGetMemoryInfo].hook);
    if (!any || !tn_module_of(any, &m)) {
        if (own) tn_real_dlclose(own);
        return;
    }
    tn_nvml_functions fn;
#define TN_NVML(klass, name, ...)                                    \
    p = real_symbol(handle, #name, tn_api_rows[TN_API_##name].hook); \
    memcpy(&fn.name, &p, sizeof p);
#include "shim/api_nvml.def"
#undef TN_NVML
    int expected = UNBOUND;
    if (atomic_compare_exchange_strong(&nvml_state, &expected, BINDING)) {
        tn_real_nvml = fn;
        nvml_base = m.base;
        atomic_store_explicit(&nvml_state, BOUND, memory_order_release);
    }
    wait_published(&nvml_state);
    if (own) tn_real_dlclose(own);
}

void tn_nvml_bind(void *handle)
{
    if (atomic_load_explicit(&nvml_state, memory_order_acquire) == BOUND) return;
    uint64_t blocked = tn_signals_block();
    bind_nvml(handle);
    tn_signals_restore(blocked);
}

static int is_gone(const void *function, uint64_t base)
{
    tn_module_info m;
    tn_loader_enter();
    int gone = function && (!tn_module_of(function, &m) || m.base != base);
    tn_loader_leave();
    return gone;
}

/* Only threads that call a function of an unloaded library can see the pointers change here. */
void tn_driver_forget(void)
{
    int bound = BOUND;
    const void *driver, *nvml;
    memcpy(&driver, &tn_real.cuDriverGetVersion, sizeof driver);
    memcpy(&nvml, &tn_real_nvml.nvmlDeviceGetMemoryInfo, sizeof nvml);
    uint64_t blocked = tn_signals_block();
    int driver_gone = atomic_load_explicit(&driver_state, memory_order_acquire) == BOUND && is_gone(driver, driver_base);
    int nvml_gone = atomic_load_explicit(&nvml_state, memory_order_acquire) == BOUND && is_gone(nvml, nvml_base);
    if (driver_gone && atomic_compare_exchange_strong(&driver_state, &bound, BINDING)) {
        memset(&tn_real, 0, sizeof tn_real);
        tn_driver_hot();
        memset(by_address, 0, sizeof by_address);
        atomic_store_explicit(&driver_state, UNBOUND, memory_order_release);
    }
    bound = BOUND;
    if (nvml_gone && atomic_compare_exchange_strong(&nvml_state, &bound, BINDING)) {
        memset(&tn_real_nvml, 0, sizeof tn_real_nvml);
        atomic_store_explicit(&nvml_state, UNBOUND, memory_order_release);
    }
    tn_signals_restore(blocked);
}

/* In a forked child: what another thread of the parent had begun to publish is nobody's to finish. */
void tn_driver_after_fork(void)
{
    int binding = BINDING;
    atomic_compare_exchange_strong(&driver_state, &binding, UNBOUND);
    binding = BINDING;
    atomic_compare_exchange_strong(&nvml_state, &binding, UNBOUND);
}

void *tn_behind_us(const char *name, const void *hook)
{
    void *p = tn_real_dlsym(RTLD_NEXT, name);
    return p == hook ? NULL : p;
}

/* After a resolver answered: the hook of exactly the symbol and variant that it found. An address that is none of the
 * driver's table stays as it is, and so does a refusal. */
void tn_resolver_map(tn_hook_frame *f, int r, void **pointer)
{
    int api;
    (void)f;
    if (r != 0 || !pointer || !*pointer || !tn_wanted()) return;
    /* A resolver may be the first of ours that is called, where the runtime's own look-ups are out of sight. */
    if (atomic_load_explicit(&driver_state, memory_order_acquire) != BOUND) tn_driver_bind(NULL, NULL);
    void *hook = tn_driver_hook_of(*pointer, &api);
    if (!hook) return;
    *pointer = hook;
    tn_count_resolved(api);
}
