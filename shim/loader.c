#include "shim/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/callsite.h"
#include "shim/hooks.h"
#include "shim/modules.h"
#include "shim/python.h"
#include "shim/real.h"
#include "shim/serve.h"

typedef void *(*dlsym_fn)(void *, const char *);
typedef int (*dlclose_fn)(void *);

/* glibc's own, by version, since a plain look-up would find the trampoline again. A definition without a version in a library that
 * has versions for anything (as one that needs libc does) is passed over. */
static void *next_versioned(const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    void *p = NULL;
    for (size_t i = 0; !p && i < sizeof versions / sizeof versions[0]; i++) p = dlvsym(RTLD_NEXT, name, versions[i]);
    return p;
}

static dlsym_fn real_dlsym(void)
{
    static dlsym_fn cached;
    dlsym_fn p = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (!p) {
        p = (dlsym_fn)next_versioned("dlsym");
#ifdef TENURE_WRAP
        /* We stand in front of every preload, and this one's own dlsym has no version (it may be the preload of
         * `tenure record`). */
        dlsym_fn next = (dlsym_fn)p(RTLD_NEXT, "dlsym");
        if (next) p = next;
#endif
        __atomic_store_n(&cached, p, __ATOMIC_RELAXED);
    }
    return p;
}

void *tn_real_dlsym(void *handle, const char *name) { return real_dlsym()(handle, name); }

/* The dlsym that the program would have met without us, and that its look-ups go on to: another preload's behind us, which must go
 * on seeing every name, else glibc's. Our own look-ups pass such a library by. */
static dlsym_fn next_dlsym(void)
{
    static dlsym_fn cached;
    dlsym_fn p = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (!p) {
        p = (dlsym_fn)tn_real_dlsym(RTLD_NEXT, "dlsym");
        if (!p) p = real_dlsym();
        __atomic_store_n(&cached, p, __ATOMIC_RELAXED);
    }
    return p;
}

int tn_real_dlclose(void *handle)
{
    static dlclose_fn cached;
    dlclose_fn p = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (!p) {
        p = (dlclose_fn)next_versioned("dlclose");
        __atomic_store_n(&cached, p, __ATOMIC_RELAXED);
    }
    return p(handle);
}

/* While a library goes away no address of it may be looked up or remembered. */
TN_EXPORT int dlclose(void *handle)
{
    if (!tn_wanted()) return tn_real_dlclose(handle);
    tn_look_for_bypass();
    tn_callsite_dlclose_begin();
    tn_python_dlclose_begin();
    tn_modules_closing(1);
    int r = tn_real_dlclose(handle), saved = errno;
    tn_modules_closing(-1);
    tn_callsite_dlclose_end();
    tn_driver_forget();
    tn_cudart_forget();
    errno = saved;
    return r;
}

#ifndef TENURE_WRAP
/* What the program would find under `name` without us: behind us in the global scope, or among the dependencies of the
 * object that asks. NULL where it would find nothing. */
static void *found_without_us(const char *name, const void *hook, const void *caller)
{
    tn_module_info m;
    void *p = tn_real_dlsym(RTLD_NEXT, name);
    if (p && p != hook) return p;
    if (!tn_module_of(caller, &m) || m.is_main) return NULL;
    void *object = dlopen(m.path, RTLD_NOLOAD | RTLD_LAZY);
    if (!object) return NULL;
    p = tn_real_dlsym(object, name);
    tn_real_dlclose(object);
    return p != hook ? p : NULL;
}

/* Whether `p` is a function of the driver's or NVML's name that lies in neither, such as a test's own stand-in: our hook has
 * nothing to call there and must not take its place. A runtime may lie in any object (a static copy whose names are
 * exported), and its hook finds it there. */
static int is_anothers(const void *p, int api)
{
    tn_module_info m;
    uint8_t level = tn_api_rows[api].level;
    if (level == TN_LEVEL_RUNTIME || !tn_module_of(p, &m)) return 0;
    return level == TN_LEVEL_NVML ? !tn_is_nvml(m.path) : !tn_is_libcuda(m.path);
}

static int is_executable(const void *caller)
{
    tn_module_info m;
    return tn_module_of(caller, &m) && m.is_main;
}

/* A look-up by RTLD_DEFAULT from an object that stays to the end makes what it finds stay as well (a runtime that a plug-in brought keeps
 * its state through the plug-in's dlclose). The real look-up finds us, so this is done for what it would have found. */
static void keep_loaded(const void *p)
{
    tn_module_info m;
    void *object = tn_module_of(p, &m) && !m.is_main ? dlopen(m.path, RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY) : NULL;
    if (object) tn_real_dlclose(object);
}

/* NULL with dlerror set, by a look-up that fails for real: this name in libc. */
static tn_route not_found(const char *name)
{
    void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
    tn_route none = {tn_real_dlsym(libc, name), 0};
    return none; /* libc's handle is never given back: closing it would reset dlerror */
}
#endif

/* A function in no module of our namespace: in one made by dlmopen, whose libraries have a libc and a dlsym of their own. Nothing
 * there comes past the hooks, and the report says so. */
static void *in_other_namespace(void *found)
{
    Dl_info where;
    char text[400];
    if (!dladdr(found, &where) || !where.dli_fname) return found;
    if (!tn_is_libcuda(where.dli_fname) && !tn_is_libcudart(where.dli_fname) && !tn_is_nvml(where.dli_fname)) return found;
    snprintf(text, sizeof text, "%.300s stands in a namespace of its own (dlmopen): its calls are not seen", where.dli_fname);
    tn_coverage(TN_COV_BYPASS, text);
    return found;
}

/* Whether a plain reference of the caller's to this name is natively the very function that the handle gave, and our hook in its place, called
 * from there, calls that one: then the look-up gives the hook, so that the two compare equal as they do natively. */
static int is_callers_own(const void *found, int api, int copy, const void *caller)
{
#ifdef TENURE_WRAP
    (void)found; (void)api; (void)copy; (void)caller;
    return 0;
#else
    return tn_real_dlsym(RTLD_NEXT, tn_api_rows[api].name) == found && tn_cudart_of(caller) == &tn_cudarts[copy].fn;
#endif
}

/* What an explicit handle's look-up found, replaced where it lies in a driver, a shared runtime or NVML. */
static void *replaced(void *found, void *handle, int api, const void *caller)
{
    tn_module_info m;
    const tn_api_row *row = &tn_api_rows[api];
    if (!tn_module_of(found, &m)) return in_other_namespace(found);
    if (row->level == TN_LEVEL_DRIVER && tn_is_libcuda(m.path)) {
        int bound;
        if (!tn_driver_bind(handle, m.path)) {
            char text[400];
            snprintf(text, sizeof text, "a second CUDA driver, %.300s: its functions are not hooked", m.path);
            tn_coverage(TN_COV_SECOND_LIBCUDA, text);
            return found;
        }
        if (!tn_driver_hook_of(found, &bound)) return found;
        tn_count_resolved(bound);
        return tn_api_rows[bound].hook;
    }
    if (row->level == TN_LEVEL_RUNTIME && tn_is_libcudart(m.path)) {
        int k = tn_cudart_copy(handle, m.base, m.end, m.path);
        tn_count_resolved(api);
        return k >= 0 && !is_callers_own(found, api, k, caller) ? tn_cudart_bound(k, api) : row->hook;
    }
    if (row->level == TN_LEVEL_NVML && tn_is_nvml(m.path)) {
        tn_nvml_bind(handle);
        tn_count_resolved(api);
        return row->hook;
    }
    return found;
}

static tn_route route(void *handle, const char *name, int api, const void *caller)
{
    tn_route real = {(void *)next_dlsym(), 1};
    (void)caller;
    const void *hook = tn_api_rows[api].hook;
#ifndef TENURE_WRAP
    void *without;
#endif
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
#ifndef TENURE_WRAP
        if (!(without = found_without_us(name, hook, caller))) return not_found(name);
        if (handle == RTLD_DEFAULT && is_executable(caller)) keep_loaded(without);
        /* From the executable both kinds of look-up pass us; a library behind us finds us by RTLD_DEFAULT alone. */
        if (is_anothers(without, api) && (handle == RTLD_DEFAULT || is_executable(caller)) && tn_real_dlsym(RTLD_DEFAULT, name) == hook)
            return (tn_route){without, 0};
#endif
        return real;
    }
    void *found = next_dlsym()(handle, name);
    if (!found) return (tn_route){NULL, 0};
    if (found == hook) {
#ifndef TENURE_WRAP
        if (!(without = found_without_us(name, hook, caller))) return not_found(name);
        if (is_anothers(without, api)) return (tn_route){without, 0};
        found = tn_real_dlsym(handle, name); /* the last look-up made leaves dlerror as this one does */
#endif
        return (tn_route){found, 0};
    }
    if (!tn_wanted()) {
        /* What asks so goes past every hook from here on. */
        if (strncmp(name, "cuGetProcAddress", 16) == 0 || strcmp(name, "cuInit") == 0) tn_serve_not_started();
        return (tn_route){found, 0};
    }
    void *instead = replaced(found, handle, api, caller);
    tn_real_dlsym(handle, name); /* as above: binding looks for names that an older library lacks */
    return (tn_route){instead, 0};
}

tn_route tn_dlsym_route(void *handle, const char *name, const void *caller)
{
    int api = tn_api_find(name), saved = errno;
    if (api == TN_API_NONE) return (tn_route){(void *)next_dlsym(), 1};
    tn_route answer = route(handle, name, api, caller);
    errno = saved;
    return answer;
}
