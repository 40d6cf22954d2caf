/*
 * Internal header of the fake driver (libcuda.so.1).
 *
 * Ownership: every object below belongs to the driver and lives until the matching destroy call; contexts
 * are kept for the whole process, so that a stale handle is an error and never a crash.
 * Threads: one lock (fk_lock) guards all state. FK_API takes it around the body of every exported function;
 * functions named fk_* and static bodies run with it held unless their comment says otherwise. Stream workers
 * hold it only to fetch and to retire an operation. Waiting releases it (fk_wait_op, fk_wait_device).
 */
#ifndef FAKEGPU_FAKE_H
#define FAKEGPU_FAKE_H

#define __CUDA_API_VERSION_INTERNAL 1
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FK_MAX_DEVICES 8
#define FK_MIB ((size_t)1 << 20)
#define FK_PAGE (2 * FK_MIB) /* physical page of the card: granularity of blocks above 1 MiB and of VMM handles */
#define FK_SMALL FK_MIB      /* what a larger request is backed by counts in whole pages */
#define FK_GRAIN ((size_t)512)
#define FK_POOL_STEP (32 * FK_MIB)

#define FK_TRY(expr)                      \
    do {                                  \
        CUresult fk_r_ = (expr);          \
        if (fk_r_ != CUDA_SUCCESS)        \
            return fk_r_;                 \
    } while (0)

/* ---- exported functions: name, address, calls; see core.c ---- */
struct fk_api {
    const char *name;
    void (*fn)(void);
    uint64_t calls;
    uint64_t fail_at; /* this call returns out-of-memory; 0 = none */
    unsigned class_known;
    unsigned latency_us;
    bool fail_in_body; /* allocation calls fail inside, so that their outputs are written as on a card */
};
extern struct fk_api *const __start_fk_apis[] __attribute__((visibility("hidden")));
extern struct fk_api *const __stop_fk_apis[] __attribute__((visibility("hidden")));

CUresult fk_begin(struct fk_api *api, bool need_init);
void fk_end(void);
/** True once for a call that FAKEGPU_FAIL chose; allocation bodies then answer out of memory. */
bool fk_take_failure(void);

#define FK_REGISTER(sym)                                                            \
    static struct fk_api fk_api_##sym = {.name = #sym, .fn = (void (*)(void))sym};  \
    static struct fk_api *const fk_ref_##sym __attribute__((section("fk_apis"), used)) = &fk_api_##sym;
#define FK_API_(name, params, call, init)                       \
    FK_REGISTER(name)                                           \
    CUresult CUDAAPI name params                                \
    {                                                           \
        CUresult fk_rc_ = fk_begin(&fk_api_##name, init);       \
        if (fk_rc_ == CUDA_SUCCESS) {                           \
            fk_rc_ = call;                                      \
            fk_end();                                           \
        }                                                       \
        return fk_rc_;                                          \
    }
#define FK_API(name, params, call) FK_API_(name, params, call, true)
/* Allocation calls: `clear` empties the outputs before anything is looked at, even in a process that may not use the driver. */
#define FK_API_CLEARED(name, params, clear, call)               \
    FK_REGISTER(name)                                           \
    CUresult CUDAAPI name params                                \
    {                                                           \
        CUresult fk_rc_ = fk_begin(&fk_api_##name, true);       \
        if (fk_rc_ == CUDA_ERROR_NOT_INITIALIZED)               \
            clear;                                              \
        if (fk_rc_ == CUDA_SUCCESS) {                           \
            clear;                                              \
            fk_rc_ = call;                                      \
            fk_end();                                           \
        }                                                       \
        return fk_rc_;                                          \
    }
#define FK_CLEAR(out) ((out) != NULL ? (void)(*(out) = 0) : (void)0)
#define FK_API_EARLY(name, params, call) FK_API_(name, params, call, false)
/* A function that takes a stream, and its per-thread-default-stream twin. `call` uses PT: 0 legacy, 1 per thread. */
#define FK_API_PT(name, suffixed, params, call)                     \
    FK_API(name, params, ({ const int PT = 0; (void)PT; call; }))   \
    FK_API(suffixed, params, ({ const int PT = 1; (void)PT; call; }))
#define FK_API_PT_CLEARED(name, suffixed, params, clear, call)                            \
    FK_API_CLEARED(name, params, clear, ({ const int PT = 0; (void)PT; call; }))          \
    FK_API_CLEARED(suffixed, params, clear, ({ const int PT = 1; (void)PT; call; }))

/* ---- configuration (environment, read once) ---- */
enum fk_mode { FK_PLAIN, FK_WDDM, FK_UMA, FK_MIG, FK_OLDDRIVER };
struct fk_config {
    int devices, driver_version;
    size_t mem, context, module, reset_left, managed_touch;
    unsigned delay_us, alloc_us, fault;
    enum fk_mode mode;
    bool direct; /* FAKEGPU_DIRECT */
    bool reuse;  /* FAKEGPU_REUSE */
};
extern struct fk_config fk_cfg;
void fk_config_load(void);

/* ---- handles ---- */
enum fk_type { FK_T_NONE, FK_T_CTX, FK_T_STREAM, FK_T_EVENT, FK_T_POOL, FK_T_VMM, FK_T_ARRAY, FK_T_MIPMAP, FK_T_MODULE,
               FK_T_LIBRARY, FK_T_FUNC, FK_T_KERNEL, FK_T_GRAPH, FK_T_NODE, FK_T_EXEC, FK_T_USEROBJ, FK_T_LINK };
void fk_handle_add(const void *p, enum fk_type type);
void fk_handle_del(const void *p);
bool fk_handle_is(const void *p, enum fk_type type);
/** Under FAKEGPU_DIRECT: ends the process where p is a handle that has been deleted. */
void fk_handle_stale(const void *p, const char *what);

struct fk_ctx; struct fk_stream; struct fk_event; struct fk_pool; struct fk_vmm; struct fk_graph; struct fk_plan;
struct fk_node; struct fk_capture; struct fk_func; struct fk_op; struct fk_array; struct fk_module;

/* ---- statistics and errors ---- */
void fk_stats_write(void);
extern bool fk_started;
CUresult fk_write_info(size_t *free_out, size_t *total_out, int device);

#include "fake_memory.h"
#include "fake_context.h"
#include "fake_stream.h"
#include "fake_event.h"
#include "fake_pool.h"
#include "fake_graph.h"

#endif
