/*
 * Entry of every exported function: the lock, the call counters, the life of the process (not started, started,
 * forked, late), chosen failures, and the set of live handles.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t fk_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
pthread_cond_t fk_done = PTHREAD_COND_INITIALIZER;
struct fk_config fk_cfg;
bool fk_started;
__thread struct fk_tls fk_tls;

static _Atomic bool late, forked;
static bool config_loaded;

static size_t env_number(const char *name, size_t fallback)
{
    const char *s = getenv(name);
    if (s == NULL || *s == '\0')
        return fallback;
    char *end;
    unsigned long long v = strtoull(s, &end, 10);
    return *end == '\0' ? (size_t)v : fallback;
}

void fk_config_load(void)
{
    if (config_loaded)
        return;
    config_loaded = true;
    const char *mode = getenv("FAKEGPU_MODE");
    if (mode != NULL) {
        if (strcmp(mode, "wddm") == 0)
            fk_cfg.mode = FK_WDDM;
        else if (strcmp(mode, "uma") == 0)
            fk_cfg.mode = FK_UMA;
        else if (strcmp(mode, "mig") == 0)
            fk_cfg.mode = FK_MIG;
        else if (strcmp(mode, "olddriver") == 0)
            fk_cfg.mode = FK_OLDDRIVER;
    }
    fk_cfg.driver_version = fk_cfg.mode == FK_OLDDRIVER ? 12020 : 13000;
    fk_cfg.devices = (int)env_number("FAKEGPU_DEVICES", 1);
    if (fk_cfg.devices > FK_MAX_DEVICES)
        fk_cfg.devices = FK_MAX_DEVICES;
    fk_cfg.mem = env_number("FAKEGPU_MEM_MIB", fk_cfg.mode == FK_MIG ? 17920 : 143771) * FK_MIB;
    fk_cfg.context = env_number("FAKEGPU_CONTEXT_MIB", 527) * FK_MIB;
    fk_cfg.module = env_number("FAKEGPU_MODULE_MIB", 2) * FK_MIB;
    fk_cfg.reset_left = env_number("FAKEGPU_RESET_MIB", 127) * FK_MIB;
    if (fk_cfg.reset_left > fk_cfg.context)
        fk_cfg.reset_left = fk_cfg.context;
    fk_cfg.managed_touch = env_number("FAKEGPU_MANAGED_MIB", 128) * FK_MIB;
    fk_cfg.direct = env_number("FAKEGPU_DIRECT", 0) != 0;
    fk_cfg.reuse = env_number("FAKEGPU_REUSE", 0) != 0;
    fk_cfg.delay_us = (unsigned)env_number("FAKEGPU_DELAY_US", 0);
    fk_cfg.alloc_us = (unsigned)env_number("FAKEGPU_ALLOC_US", 0);
    fk_cfg.fault = (unsigned)env_number("FAKEGPU_FAULT", 0);
}

/* FAKEGPU_FAIL=cuMemAlloc_v2:3,cuMemCreate:1 */
static uint64_t chosen_failure(const char *name)
{
    const char *s = getenv("FAKEGPU_FAIL");
    size_t len = strlen(name);
    while (s != NULL && *s != '\0') {
        if (strncmp(s, name, len) == 0 && s[len] == ':')
            return strtoull(s + len + 1, NULL, 10);
        s = strchr(s, ',');
        if (s != NULL)
            s++;
    }
    return 0;
}

/* First call of a function: does it allocate, does it have a latency, which of its calls fails. Lock held. */
static void classify(struct fk_api *api)
{
    fk_config_load();
    bool alloc = strncmp(api->name, "cuMemAlloc", 10) == 0 || strcmp(api->name, "cuMemHostAlloc") == 0;
    api->latency_us = alloc || strcmp(api->name, "cuMemCreate") == 0 ? fk_cfg.alloc_us : 0;
    api->fail_at = chosen_failure(api->name);
    api->fail_in_body = alloc;
    api->class_known = 1;
}

CUresult fk_begin(struct fk_api *api, bool need_init)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed))
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&fk_lock);
    if (!api->class_known)
        classify(api);
    api->calls++;
    CUresult r = CUDA_SUCCESS;
    fk_tls.fail_now = false;
    if (atomic_load(&late))
        r = CUDA_ERROR_DEINITIALIZED;
    else if (need_init && !fk_started)
        r = CUDA_ERROR_NOT_INITIALIZED;
    else if (api->fail_at != 0 && api->calls == api->fail_at) {
        if (api->fail_in_body)
            fk_tls.fail_now = true;
        else
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r != CUDA_SUCCESS) {
        pthread_mutex_unlock(&fk_lock);
        return r;
    }
    if (api->latency_us != 0) {
        pthread_mutex_unlock(&fk_lock);
        usleep(api->latency_us);
        pthread_mutex_lock(&fk_lock);
    }
    return CUDA_SUCCESS;
}

void fk_end(void)
{
    pthread_mutex_unlock(&fk_lock);
}

bool fk_take_failure(void)
{
    bool f = fk_tls.fail_now;
    fk_tls.fail_now = false;
    return f;
}

/* ---- process life ---- */

/* A child of a process that had started CUDA may not use it: the card's state belongs to the parent. */
static void child_after_fork(void)
{
    if (fk_started)
        atomic_store(&forked, true);
    pthread_mutex_unlock(&fk_lock); /* taken before the fork by this very thread */
}

static void lock_before_fork(void) { pthread_mutex_lock(&fk_lock); }
static void unlock_after_fork(void) { pthread_mutex_unlock(&fk_lock); }

__attribute__((constructor)) static void library_start(void)
{
    pthread_atfork(lock_before_fork, unlock_after_fork, child_after_fork);
}

/* The driver is gone once exit handlers older than cuInit and destructors run: they get 4. */
static void at_exit(void)
{
    atomic_store(&late, true);
}

__attribute__((destructor)) static void library_end(void)
{
    atomic_store(&late, true);
    if (fk_started && !atomic_load(&forked))
        fk_stats_write();
}

static CUresult do_init(unsigned flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    fk_config_load();
    if (fk_cfg.devices <= 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!fk_started) {
        for (int i = 0; i < fk_cfg.devices; i++) {
            fk_devs[i].ordinal = i;
            fk_devs[i].memfd = -1;
            fk_devs[i].capacity = fk_cfg.mem;
        }
        atexit(at_exit);
        fk_started = true;
    }
    return CUDA_SUCCESS;
}
FK_API_EARLY(cuInit, (unsigned flags), do_init(flags))

static CUresult do_driver_version(int *v)
{
    if (v == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    fk_config_load();
    *v = fk_cfg.driver_version;
    return CUDA_SUCCESS;
}
FK_API_EARLY(cuDriverGetVersion, (int *v), do_driver_version(v))

/* ---- live handles: open addressing, grown at half full; removed entries keep their slot until the next growth ---- */

static struct slot { const void *p; enum fk_type type; } *slots;
static size_t nslots, used_slots;

static struct slot *find_slot(const void *p)
{
    size_t i = ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (;; i++) {
        struct slot *s = &slots[i & (nslots - 1)];
        if (s->p == p || s->p == NULL)
            return s;
    }
}

void fk_handle_add(const void *p, enum fk_type type)
{
    if (used_slots * 2 >= nslots) {
        struct slot *old = slots;
        size_t n = nslots, live = 0;
        for (size_t i = 0; i < n; i++)
            live += old[i].type != FK_T_NONE;
        nslots = 1024;
        while (nslots < live * 4 + 4)
            nslots *= 2;
        slots = calloc(nslots, sizeof *slots);
        if (slots == NULL)
            abort();
        used_slots = live;
        for (size_t i = 0; i < n; i++)
            if (old[i].type != FK_T_NONE)
                *find_slot(old[i].p) = old[i];
        free(old);
    }
    struct slot *s = find_slot(p);
    used_slots += s->p == NULL;
    s->p = p;
    s->type = type;
}

void fk_handle_del(const void *p)
{
    struct slot *s = find_slot(p);
    if (s->p == p)
        s->type = FK_T_NONE;
}

void fk_handle_stale(const void *p, const char *what)
{
    struct slot *s = nslots != 0 ? find_slot(p) : NULL;
    if (!fk_cfg.direct || s == NULL || p == NULL || s->p != p || s->type != FK_T_NONE)
        return;
    fprintf(stderr, "fakegpu: %s was used after its end\n", what);
    abort();
}

bool fk_handle_is(const void *p, enum fk_type type)
{
    if (p == NULL || nslots == 0)
        return false;
    struct slot *s = find_slot(p);
    return s->p == p && s->type == type;
}
