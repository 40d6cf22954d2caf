/* The copies of the runtime in the process, and which object uses which. */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "shim/elf.h"
#include "shim/gate.h"
#include "shim/hook.h"
#include "shim/modules.h"
#include "shim/real.h"
#include "shim/signals.h"

tn_cudart tn_cudarts[TN_CUDARTS];

enum { EMPTY = 0, FILLING, READY };
#define WAIT_YIELDS 100000 /* filling takes some microseconds */
static _Atomic int copy_state[TN_CUDARTS];

/* Which copy the object at [base, end) calls; read by every runtime hook, so without a lock. */
#define USERS 256
#define TAKEN 1u
/* A row holds while its generation is the present one; 0: never used, and so are those after it. No lock: a signal handler may
 * come between, and a forked child may begin between. */
typedef struct user { _Atomic uint64_t generation, base, end; _Atomic int copy; } user;
static struct { _Alignas(64) _Atomic uint64_t now; user row[USERS]; } users = {.now = 2}; /* `now`: the present generation */

/* A "copy" may be another preload that stands in front of the runtime with a name or two and needs no runtime itself: the names that
 * it lacks are those of the next object in the global scope, as they are for the program without us. */
static void *function_of(void *handle, const char *name, const void *hook)
{
    void *p = tn_real_dlsym(handle, name);
    if (!p || p == hook) p = tn_real_dlsym(RTLD_NEXT, name);
    return p == hook ? NULL : p;
}

static void fill(void *handle, tn_runtime_functions *fn)
{
    void *p;
#define TN_RUNTIME(klass, variant, name, ...)                          \
    p = function_of(handle, #name, tn_api_rows[TN_API_##name].hook);   \
    memcpy(&fn->name, &p, sizeof p);
#include "shim/api_runtime.def"
#undef TN_RUNTIME
    p = function_of(handle, "cudaGetDevice", NULL);
    memcpy(&fn->cudaGetDevice, &p, sizeof p);
}

/* Until another thread has filled a copy's row, which no handler of that thread interrupts; not for ever, all the same. */
static void wait_filled(int k)
{
    for (int i = 0; i < WAIT_YIELDS && atomic_load_explicit(&copy_state[k], memory_order_acquire) == FILLING; i++) sched_yield();
}

/* The first copy's range stands in tn_hot_page as well. It is written once and only ever taken back, so nobody can read a half of it. */
static _Atomic uint64_t first_base;
#ifdef TENURE_WRAP
static _Atomic uint64_t first_bytes = UINT64_MAX; /* a static runtime has no range of its own: see tn_cudart_holds() */
#else
static _Atomic uint64_t first_bytes;
#endif

static void keep_range(uint64_t base, uint64_t end)
{
#ifndef TENURE_WRAP
    uint64_t none = 0;
    if (!atomic_compare_exchange_strong(&first_base, &none, base)) return;
    atomic_store(&first_bytes, end - base);
    tn_cudart_range_to(tn_hot_page);
#else
    (void)base, (void)end;
#endif
}

void tn_cudart_range_to(tn_hot *hot)
{
    atomic_store_explicit(&hot->runtime, atomic_load(&first_base), memory_order_relaxed);
    atomic_store_explicit(&hot->runtime_bytes, atomic_load(&first_bytes), memory_order_release);
}

static int copy_at(void *handle, uint64_t base, uint64_t end, const char *path)
{
    for (int k = 0; k < TN_CUDARTS; k++) {
        wait_filled(k);
        if (atomic_load_explicit(&copy_state[k], memory_order_acquire) == READY && tn_cudarts[k].base == base) return k;
    }
    tn_runtime_functions fn;
    fill(handle, &fn);
    for (int k = 0; k < TN_CUDARTS; k++) {
        int expected = EMPTY;
        if (!atomic_compare_exchange_strong(&copy_state[k], &expected, FILLING)) {
            wait_filled(k);
            if (tn_cudarts[k].base == base && atomic_load(&copy_state[k]) == READY) return k;
            continue;
        }
        tn_cudarts[k].fn = fn;
        tn_cudarts[k].base = base;
        tn_cudarts[k].end = end;
        snprintf(tn_cudarts[k].path, sizeof tn_cudarts[k].path, "%s", path);
        atomic_store_explicit(&copy_state[k], READY, memory_order_release);
        keep_range(base, end);
        return k;
    }
    char text[400];
    snprintf(text, sizeof text, "a ninth CUDA runtime in the process, %s: its functions were resolved by caller", path);
    tn_coverage(TN_COV_NINTH_CUDART, text);
    return -1;
}

/* Handlers wait, as in tn_driver_bind(). */
int tn_cudart_copy(void *handle, uint64_t base, uint64_t end, const char *path)
{
    uint64_t blocked = tn_signals_block();
    int k = copy_at(handle, base, end, path);
    tn_signals_restore(blocked);
    return k;
}

/* The copy whose cudaMalloc `symbol` is, if it is ready already. */
static int known_copy_of(const void *symbol)
{
    for (int k = 0; symbol && k < TN_CUDARTS; k++)
        if (atomic_load_explicit(&copy_state[k], memory_order_acquire) == READY && (const void *)tn_cudarts[k].fn.cudaMalloc == symbol) return k;
    return -1;
}

/* The copy in which `symbol`, a real cudaMalloc, lies; -1 if it is none of ours to know. */
static int copy_of_symbol(const void *symbol)
{
    tn_module_info m;
    if (!symbol || symbol == tn_api_rows[TN_API_cudaMalloc].hook || !tn_module_of(symbol, &m)) return -1;
    for (int k = 0; k < TN_CUDARTS; k++)
        if (atomic_load_explicit(&copy_state[k], memory_order_acquire) == READY && tn_cudarts[k].base == m.base) return k;
    void *handle = m.is_main ? dlopen(NULL, RTLD_LAZY) : dlopen(m.path, RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) return -1;
    int k = tn_cudart_copy(handle, m.base, m.end, m.path);
    tn_real_dlclose(handle);
    return k;
}

#ifndef TENURE_WRAP /* there the linker's __real_ names lead to whatever stands in front */
/* A runtime function that the global scope behind us finds in another object than the runtime: a preload's that stands in front of some
 * names. Without us every caller would meet it first. *runtime: a function of the runtime behind. NULL: there is none. */
static const void *interposed(const void **runtime)
{
    tn_module_info m, other;
    const void *p = *runtime = tn_real_dlsym(RTLD_NEXT, "cudaGetDevice");
    if (!p || !tn_module_of(p, &m)) return NULL;
#define TN_RUNTIME(klass, variant, name, ...)                                                          \
    p = tn_real_dlsym(RTLD_NEXT, #name);                                                               \
    if (p && p != tn_api_rows[TN_API_##name].hook && (uint64_t)p - m.base >= m.end - m.base &&         \
        tn_module_of(p, &other) && !tn_is_libcudart(other.path))                                       \
        return p;
#include "shim/api_runtime.def"
#undef TN_RUNTIME
    return NULL;
}
#endif

/* The row for callers behind such a preload, -1 without one. */
static int in_front = -1;

/* Once, while the process is loaded, by its only thread, in the constructor or in a call that comes before it: preloads neither come nor
 * go later, and these look-ups take the loader's lock, which a later caller may not be able to wait for (a library's constructor
 * that holds it may be waiting for the caller). A preload in front of a runtime that is opened later is not found. */
void tn_cudart_look_in_front(void)
{
#ifndef TENURE_WRAP
    static int looked;
    if (looked) return;
    looked = 1;
    const void *runtime, *other = interposed(&runtime);
    if (other && copy_of_symbol(runtime) >= 0) in_front = copy_of_symbol(other);
#endif
}

static int find_copy(const tn_module_info *caller, const void *address)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};
    void *handle;
    tn_cudart_look_in_front();
    if (in_front >= 0) return in_front;
    /* A copy that is known is found without the loader's lock. */
    int k = tn_loader_forked() ? -1 : known_copy_of(tn_elf_find(address, "cudaMalloc"));
    if (k >= 0) return k;
    if (caller && !caller->is_main && (handle = dlopen(caller->path, RTLD_NOLOAD | RTLD_LAZY)) != NULL) {
        k = copy_of_symbol(tn_real_dlsym(handle, "cudaMalloc"));
        tn_real_dlclose(handle);
    }
    if (k < 0) k = copy_of_symbol(tn_real_dlsym(RTLD_NEXT, "cudaMalloc"));
    for (size_t i = 0; k < 0 && i < sizeof names / sizeof names[0]; i++) {
        if ((handle = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY)) == NULL) continue;
        k = copy_of_symbol(tn_real_dlsym(handle, "cudaMalloc"));
        tn_real_dlclose(handle);
    }
    for (int i = 0; k < 0 && i < TN_CUDARTS; i++)
        if (atomic_load_explicit(&copy_state[i], memory_order_acquire) == READY) k = i;
    return k;
}

/* The copy that the row says, -1 where it is not of this generation or not about `at`. */
static inline int copy_in_row(const user *u, uint64_t at, uint64_t now)
{
    if (atomic_load_explicit(&u->generation, memory_order_acquire) != now) return -1;
    uint64_t base = atomic_load_explicit(&u->base, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&u->end, memory_order_relaxed);
    int k = atomic_load_explicit(&u->copy, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return at - base < end - base && atomic_load_explicit(&u->generation, memory_order_relaxed) == now ? k : -1;
}

static __attribute__((noinline)) int copy_of_user(uint64_t at, uint64_t now)
{
    for (int i = 0; i < USERS && atomic_load_explicit(&users.row[i].generation, memory_order_acquire) != 0; i++) {
        int k = copy_in_row(&users.row[i], at, now);
        if (k < 0) continue;
        tn_self.user = (uint16_t)i;
        return k;
    }
    return -1;
}

static void keep_user(const tn_module_info *m, int k, uint64_t now)
{
    for (int i = 0; i < USERS; i++) {
        user *u = &users.row[i];
        uint64_t generation = atomic_load_explicit(&u->generation, memory_order_relaxed);
        if (generation == now || generation == TAKEN || !atomic_compare_exchange_strong(&u->generation, &generation, TAKEN)) continue;
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&u->base, m->base, memory_order_relaxed);
        atomic_store_explicit(&u->end, m->end, memory_order_relaxed);
        atomic_store_explicit(&u->copy, k, memory_order_relaxed);
        atomic_store_explicit(&u->generation, now, memory_order_release);
        return;
    }
}

static __attribute__((noinline)) const tn_runtime_functions *find_of(const void *caller, uint64_t now)
{
    int known_copy = copy_of_user((uint64_t)caller, now);
    if (known_copy >= 0) return &tn_cudarts[known_copy].fn;

    tn_module_info m;
    uint64_t blocked = tn_signals_block(); /* as in tn_driver_bind() */
    tn_loader_enter();
    int known = tn_module_of(caller, &m);
    int k = find_copy(known ? &m : NULL, caller);
    tn_loader_leave();
    tn_signals_restore(blocked);
    if (k < 0) return NULL;
    if (known) keep_user(&m, k, now);
    return &tn_cudarts[k].fn;
}

const tn_runtime_functions *tn_cudart_of(const void *caller)
{
    uint64_t now = atomic_load_explicit(&users.now, memory_order_acquire);
    int k = copy_in_row(&users.row[tn_self.user], (uint64_t)caller, now); /* mostly the one as before */
    return __builtin_expect(k >= 0, 1) ? &tn_cudarts[k].fn : find_of(caller, now);
}

int tn_cudart_holds(const void *address)
{
#ifdef TENURE_WRAP
    return address != NULL; /* a static runtime has no range of its own */
#else
    int known = 0;
    for (int k = 0; k < TN_CUDARTS; k++) {
        if (atomic_load_explicit(&copy_state[k], memory_order_acquire) != READY) continue;
        if ((uint64_t)address - tn_cudarts[k].base < tn_cudarts[k].end - tn_cudarts[k].base) return 1;
        known = 1;
    }
    return !known;
#endif
}

/* In a forked child: what another thread of the parent had begun to fill is nobody's to finish. */
void tn_cudart_after_fork(void)
{
    for (int k = 0; k < TN_CUDARTS; k++) {
        int filling = FILLING;
        atomic_compare_exchange_strong(&copy_state[k], &filling, EMPTY);
    }
}

/* A slot of a copy that is gone can be given to another one: hooks bound to it were pointers into an unloaded library
 * natively, too. */
void tn_cudart_forget(void)
{
    tn_module_info m;
    atomic_fetch_add(&users.now, 1);
    tn_loader_enter();
    for (int k = 0; k < TN_CUDARTS; k++)
        if (atomic_load_explicit(&copy_state[k], memory_order_acquire) == READY &&
            (!tn_module_of((const void *)(tn_cudarts[k].end - 1), &m) || m.base != tn_cudarts[k].base)) {
            atomic_store_explicit(&copy_state[k], EMPTY, memory_order_release);
            atomic_fetch_add(&tn_hot_page->generation, 1); /* nobody has been through the copy that comes here next */
            if (atomic_load(&first_base) && tn_cudarts[k].base == atomic_load(&first_base)) {
                atomic_store(&first_bytes, 0);
                tn_cudart_range_to(tn_hot_page);
            }
        }
    tn_loader_leave();
}
