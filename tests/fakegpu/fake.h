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
#define FK_SMALL FK_MIB      /* requests up to this size share pages */
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
#define FK_API_EARLY(name, params, call) FK_API_(name, params, call, false)
/* A function that takes a stream, and its per-thread-default-stream twin. `call` uses PT: 0 legacy, 1 per thread. */
#define FK_API_PT(name, suffixed, params, call)                     \
    FK_API(name, params, ({ const int PT = 0; (void)PT; call; }))   \
    FK_API(suffixed, params, ({ const int PT = 1; (void)PT; call; }))

/* ---- configuration (environment, read once) ---- */
enum fk_mode { FK_PLAIN, FK_WDDM, FK_UMA, FK_MIG, FK_OLDDRIVER };
struct fk_config {
    int devices, driver_version;
    size_t mem, context, module, reset_left, managed_touch;
    unsigned delay_us, alloc_us;
    enum fk_mode mode;
};
extern struct fk_config fk_cfg;
void fk_config_load(void);

/* ---- handles ---- */
enum fk_type { FK_T_NONE, FK_T_CTX, FK_T_STREAM, FK_T_EVENT, FK_T_POOL, FK_T_VMM, FK_T_ARRAY, FK_T_MIPMAP, FK_T_MODULE,
               FK_T_LIBRARY, FK_T_FUNC, FK_T_GRAPH, FK_T_NODE, FK_T_EXEC, FK_T_USEROBJ, FK_T_LINK };
void fk_handle_add(const void *p, enum fk_type type);
void fk_handle_del(const void *p);
bool fk_handle_is(const void *p, enum fk_type type);

struct fk_ctx; struct fk_stream; struct fk_event; struct fk_pool; struct fk_vmm; struct fk_graph; struct fk_plan;
struct fk_node; struct fk_capture; struct fk_func; struct fk_op; struct fk_array; struct fk_module;

/* ---- blocks by address (registry.c) ---- */
enum fk_kind { FK_DEVICE = 1, FK_PITCH, FK_MANAGED, FK_ASYNC, FK_GRAPH, FK_HOST, FK_REGISTERED, FK_VMM, FK_IMPORT };
struct fk_block {
    CUdeviceptr base;
    size_t size, backed; /* bytes asked for; bytes of the card's memory by the driver's rounding */
    enum fk_kind kind;
    int device;
    struct fk_ctx *ctx; /* NULL for memory that outlives contexts */
    uint64_t buffer_id;
    unsigned flags;
    bool sync_memops, freeing, touched, live; /* live: graph memory between its alloc and free nodes */
    uint64_t alloc_stream;
    struct fk_pool *pool;
    struct fk_vmm *vmm;
    size_t vmm_offset;
    int access[FK_MAX_DEVICES]; /* VMM: CUmemAccess_flags per device */
    void *import;               /* IPC: the mapping's record */
    struct fk_block *left, *right;
    uint32_t prio;
};
/** Creates and files a block. NULL only when the host is out of memory. */
struct fk_block *fk_block_add(CUdeviceptr base, size_t size, enum fk_kind kind, int device, struct fk_ctx *ctx);
void fk_block_remove(struct fk_block *b);
/** The block that holds address p, or NULL. */
struct fk_block *fk_block_at(CUdeviceptr p);
/** First block whose base is >= p, or NULL. */
struct fk_block *fk_block_next(CUdeviceptr p);
/** True if [p, p+n) lies inside one block or inside adjoining VMM mappings. */
bool fk_range_ok(CUdeviceptr p, size_t n);
bool fk_is_device_kind(enum fk_kind k);
/** Gives a block's memory back and forgets it, without waiting (memory.c). Not for stream-ordered blocks. */
void fk_block_destroy(struct fk_block *b);

/* ---- physical memory (phys.c) ---- */
struct fk_extent { size_t off, len; struct fk_extent *next; };
struct fk_slab;
struct fk_stats { uint64_t live_req, peak_req, live_backed, peak_backed, allocs, frees, graph_bytes; };
struct fk_dev {
    int ordinal, memfd;
    char *va;      /* the whole card, mapped once: address = va + offset */
    size_t span;   /* offsets; larger than the capacity, since address space does not fragment on a card */
    size_t capacity, used;
    struct fk_extent *free_list;
    struct fk_slab *slabs;
    struct fk_ctx *primary;
    struct fk_pool *default_pool, *pool;
    bool faulted;          /* a sticky error happened: no new context (46) */
    size_t reset_charge;
    size_t graph_reserved, graph_used, graph_reserved_high, graph_used_high;
    struct fk_stats st;
    _Atomic uint32_t *shared_refs; /* per physical page: users in other processes of an exported handle */
};
extern struct fk_dev fk_devs[FK_MAX_DEVICES];
extern struct fk_stats fk_host_stats, fk_registered_stats;
CUresult fk_phys_start(struct fk_dev *d);
/** Takes `bytes` of capacity; false if the card is full (WDDM mode never is). */
bool fk_charge(struct fk_dev *d, size_t bytes);
void fk_charge_force(struct fk_dev *d, size_t bytes);
void fk_uncharge(struct fk_dev *d, size_t bytes);
/** Address space of the card in 2 MiB steps, without charge. 0 if none is left. */
CUdeviceptr fk_extent_take(struct fk_dev *d, size_t bytes);
void fk_extent_give(struct fk_dev *d, CUdeviceptr p, size_t bytes);
/** Memory of a plain block, charged by the driver's rounding. 0 if the card is full. */
CUdeviceptr fk_plain_take(struct fk_dev *d, size_t bytes);
void fk_plain_give(struct fk_dev *d, CUdeviceptr p, size_t bytes);
/** Overwrites the pages of [p, p+n) that were touched; untouched pages stay untouched. */
void fk_poison(CUdeviceptr p, size_t n);
void fk_drop_pages(CUdeviceptr p, size_t n);
size_t fk_plain_backed(size_t bytes);
void fk_stat_add(struct fk_stats *s, size_t req, size_t backed);
void fk_stat_sub(struct fk_stats *s, size_t req, size_t backed);
static inline size_t fk_up(size_t n, size_t to) { return n > SIZE_MAX - to ? SIZE_MAX / to * to : (n + to - 1) / to * to; }

/* ---- contexts (context.c) ---- */
struct fk_ctx {
    struct fk_ctx *next;
    int device;
    bool primary, active;
    unsigned flags, refs;
    uint64_t id;
    CUresult error; /* sticky */
    struct fk_stream *streams, *legacy;
    unsigned stream_count;
    size_t charge, stream_charge, limit_charge;
    size_t limits[16];
    bool limits_dirty;
    unsigned peers; /* bit per device whose memory this context may touch */
    unsigned version;
};
extern struct fk_ctx *fk_contexts;
struct fk_tls { struct fk_ctx *stack[32]; int depth; CUstreamCaptureMode mode; bool fail_now; };
extern __thread struct fk_tls fk_tls;
struct fk_ctx *fk_current(void);
/** The calling thread's usable context: 201 without one, 709 if destroyed, its sticky error if it has one. */
CUresult fk_need_ctx(struct fk_ctx **out);
/** CUDA_SUCCESS, or the sticky error of the current context if there is one. */
CUresult fk_ctx_error(void);
CUresult fk_need_device(CUdevice dev, struct fk_dev **out);
/** Destroys what the context owns, as a reset does. Default-pool blocks survive. */
void fk_ctx_teardown(struct fk_ctx *c);
void fk_ctx_fault(struct fk_ctx *c, CUresult error);

/* ---- work (work.c executes it, stream.c queues it, graph.c stores it) ---- */
enum fk_work_type { FK_W_EMPTY, FK_W_COPY, FK_W_FILL, FK_W_KERNEL, FK_W_HOST, FK_W_CALLBACK, FK_W_RECORD, FK_W_WAIT,
                    FK_W_ALLOC, FK_W_FREE, FK_W_MEMOP, FK_W_GRAPH, FK_W_CHILD };
struct fk_kernel {
    struct fk_func *f;
    unsigned grid[3], block[3], shared;
    bool known; /* argument layout known: args holds a copy */
    unsigned char args[64];
    void *ptrs[8];
};
struct fk_work {
    enum fk_work_type type;
    union {
        CUDA_MEMCPY3D_PEER copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        struct fk_kernel kernel;
        CUDA_HOST_NODE_PARAMS host;
        struct { CUstreamCallback fn; void *data; CUstream handle; } callback;
        struct fk_event *event;
        struct { CUdeviceptr p; size_t bytes; int device; } mem;
        struct { CUstreamBatchMemOpParams *ops; unsigned count, flags; } memop;
        struct fk_plan *plan;
        struct fk_graph *child;
    } u;
    void *owned; /* freed with the work */
};
struct fk_range { CUdeviceptr p; size_t n; bool write; };
/** Device ranges that the work touches; returns how many (at most 4). */
int fk_work_ranges(const struct fk_work *w, struct fk_range *out);
/** Runs the work of one operation. Called without the lock. */
CUresult fk_work_run(struct fk_work *w, struct fk_op *op);
void fk_work_release(struct fk_work *w);

struct fk_op {
    struct fk_op *next;
    int refs;
    bool done, running, fault;
    uint64_t done_ns, stream_id;
    struct fk_ctx *ctx;
    struct fk_op **deps;
    int ndeps;
    struct fk_work w;
    struct fk_event *events; /* IPC events that publish when this is done */
};
void fk_op_unref(struct fk_op *op);

/* ---- streams (stream.c) ---- */
struct fk_stream {
    struct fk_stream *next;
    struct fk_ctx *ctx;
    uint64_t id;
    unsigned flags;
    int priority;
    bool legacy, per_thread, worker, destroyed;
    pid_t owner;
    struct fk_op *head, *tail, *last;
    struct fk_op **pending; /* waits that the next operation takes along */
    int npending;
    pthread_cond_t wake;
    struct fk_capture *cap;
    bool cap_origin;
    struct fk_node **cap_deps;
    size_t ncap_deps;
    CUstreamAttrValue attrs[32];
};
#define FK_STREAM_PT(h, pt, out) FK_TRY(fk_stream_get(h, pt, out))
/** Resolves a handle (0, legacy, per-thread or created) in the current context. */
CUresult fk_stream_get(CUstream h, int pt, struct fk_stream **out);
/** Queues work, or adds it to the graph that the stream captures. Takes over w->owned. `out` (may be NULL) gets a reference. */
CUresult fk_submit(struct fk_stream *s, struct fk_work *w, struct fk_op **out);
CUresult fk_enqueue(struct fk_stream *s, struct fk_work *w, struct fk_op **out);
void fk_stream_depend(struct fk_stream *s, struct fk_op *op);
void fk_wait_op(struct fk_op *op);
void fk_wait_stream(struct fk_stream *s);
void fk_wait_ctx(struct fk_ctx *c);
/** Waits for all work of a device that is queued now. */
void fk_wait_device(int ordinal);
/** What a synchronising call does besides waiting: settles pool frees and trims pools to their thresholds. */
void fk_synchronised(void);
/** Marks every unfinished operation that touches [p, p+n) to fail with 700. */
void fk_fault_users(CUdeviceptr p, size_t n);
bool fk_stream_busy(struct fk_stream *s);
struct fk_stream *fk_legacy_stream(struct fk_ctx *c);
void fk_streams_destroy(struct fk_ctx *c);
extern pthread_mutex_t fk_lock;
extern pthread_cond_t fk_done;
uint64_t fk_now_ns(void);

/* ---- events (event.c) ---- */
struct fk_event {
    struct fk_event *next;
    struct fk_ctx *ctx;
    unsigned flags;
    int refs;
    bool destroyed, imported;
    struct fk_op *op; /* last record, or NULL */
    uint64_t graph_done_ns;
    struct fk_capture *cap; /* recorded inside this capture */
    uint64_t cap_id;
    struct fk_node **cap_deps;
    size_t ncap_deps;
    void *shared; /* interprocess state */
    int shared_fd;
};
void fk_event_unref(struct fk_event *e);
/** A record operation or graph node ran; publishes to other processes. Called without the lock. */
void fk_event_reached(struct fk_event *e, struct fk_op *op);
/** Blocks until the event's last record is done. Called without the lock. */
void fk_event_await(struct fk_event *e);
void fk_events_destroy(struct fk_ctx *c);

/* ---- capture (capture.c) ---- */
struct fk_capture {
    struct fk_capture *next;
    uint64_t id;
    CUstreamCaptureMode mode;
    pid_t thread;
    bool invalid, to_graph;
    struct fk_stream *origin;
    struct fk_graph *graph;
};
extern struct fk_capture *fk_captures;
/** For calls that are unsafe while capturing: 900, and the conflicting captures die; else CUDA_SUCCESS. */
CUresult fk_capture_unsafe(void);
/** For calls that end every capture of the context (NULL: of the process), whatever its mode. */
CUresult fk_capture_forbid(struct fk_ctx *c);
/** For work on the legacy stream: 906 if a blocking stream of the context captures. */
CUresult fk_capture_legacy(struct fk_ctx *c);
CUresult fk_capture_add(struct fk_stream *s, struct fk_work *w, struct fk_node **out);
/** Event record and wait on capturing streams; *handled says that the call ended here. */
CUresult fk_capture_record(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled);
CUresult fk_capture_wait(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled);
void fk_capture_drop_stream(struct fk_stream *s);
CUresult fk_stream_sync_check(struct fk_stream *s);

/* ---- pools (pool.c) ---- */
struct fk_pool *fk_pool_default(struct fk_dev *d);
/** The stream has passed a free: poisons pool bytes, gives a plain block back. */
void fk_free_reached(CUdeviceptr p, size_t bytes);
CUresult fk_pool_free_async(struct fk_block *b, struct fk_stream *s);
/** cuMemFree of a stream-ordered block: at once, nothing waited for. */
void fk_pool_free_now(struct fk_block *b);
/** Trims idle pool bytes of the device, thresholds or not; true if anything was given back. */
bool fk_pool_trim_idle(struct fk_dev *d);
/** A synchronisation: frees whose stream has passed them become idle bytes, surplus idle bytes go back. */
void fk_pool_settle(void);
bool fk_pool_holds(CUdeviceptr p, size_t n);
CUresult fk_pool_attribute(CUdeviceptr p, struct fk_pool **out);
bool fk_pool_accessible(const struct fk_pool *p, int device);

/* ---- VMM, arrays, IPC ---- */
struct fk_vmm {
    uint64_t magic;
    int device, refs, maps;
    size_t size, offset;
    CUmemAllocationProp prop;
    bool imported;
    char *import_va, *import_page; /* imported handles: their bytes, and their count, in this process */
    _Atomic uint32_t *import_refs;
    struct fk_vmm *next;
};
void fk_vmm_released_elsewhere(struct fk_dev *d);
struct fk_array {
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUdeviceptr mem;
    size_t bytes, pitch, rows, slices;
    int device;
    struct fk_ctx *ctx;
    bool level, deferred; /* level: belongs to a mipmapped array */
    struct fk_array *next;
};
void fk_arrays_destroy(struct fk_ctx *c);
/** Opens page memory of another process; NULL with errno-like CUresult in *err. */
char *fk_ipc_map(pid_t pid, int fd, size_t offset, size_t len);
void fk_import_release(struct fk_block *b);

/* ---- modules (module.c) ---- */
struct fk_builtin { const char *name; int nargs; unsigned char size[6]; unsigned char offset[6]; };
struct fk_func {
    struct fk_func *next;
    struct fk_module *module;
    const struct fk_builtin *builtin; /* NULL: a kernel that does nothing */
    char *name;
    int attrs[32];
};
struct fk_module {
    struct fk_module *next;
    struct fk_ctx *ctx;
    struct fk_func *funcs;
    bool loaded, library; /* loaded: its code was charged at a first launch */
    int device;
};
/** Launch checks shared by streams and graphs: charges code and limits at the first launch. */
CUresult fk_kernel_prepare(struct fk_kernel *k, CUfunction f, void **params, void **extra);
CUresult fk_kernel_charge(struct fk_func *f, struct fk_ctx *c);
CUresult fk_kernel_run(struct fk_kernel *k, struct fk_op *op);
int fk_kernel_ranges(const struct fk_kernel *k, struct fk_range *out);
void fk_modules_destroy(struct fk_ctx *c);

/* ---- graphs (graph.c, node.c, exec.c) ---- */
struct fk_node {
    struct fk_node *next;
    struct fk_graph *graph;
    CUgraphNodeType type;
    struct fk_work w;
    struct fk_node **deps;
    size_t ndeps;
    struct fk_node *origin; /* of a clone */
    bool disabled, mark;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUmemAccessDesc alloc_access[FK_MAX_DEVICES];
    struct fk_block *block; /* of an alloc node */
    CUcontext ctx;
    size_t index; /* scratch of a clone */
    CUkernelNodeAttrValue *attrs;
};
struct fk_held { void *object; int count; }; /* user objects of a graph */
struct fk_graph {
    struct fk_node *nodes, *last;
    size_t count, edges;
    struct fk_graph *source;
    bool child, has_memory;
    int refs;
    struct fk_held *held;
    size_t nheld;
};
struct fk_graph *fk_graph_new(void);
void fk_graph_release(struct fk_graph *g);
/** Adds n (or, negative, gives back) references to a user object; false if there are fewer. */
bool fk_graph_hold(struct fk_graph *g, void *object, int n);
void fk_userobj_release(void *object, unsigned n);
struct fk_node *fk_node_add(struct fk_graph *g, CUgraphNodeType type, struct fk_node *const *deps, size_t ndeps);
CUgraphNodeType fk_node_type_of(const struct fk_work *w);
struct fk_graph *fk_graph_clone(struct fk_graph *g, bool child);
CUresult fk_graph_alloc(struct fk_node *n, CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult fk_graph_free_check(struct fk_graph *g, CUdeviceptr p);
CUresult fk_plan_run(struct fk_plan *x, struct fk_op *op);
void fk_plan_unref(struct fk_plan *p);
/** Frees graph memory that its graph left allocated. Returns false if p is not such memory. */
bool fk_graph_block_free(struct fk_block *b);
void fk_graph_block_state(struct fk_block *b, bool live);
CUresult fk_exec_set(CUgraphExec h, CUgraphNode node, const struct fk_work *w);
CUresult fk_node_set(struct fk_node *x, const struct fk_work *w);
bool fk_node_copy_work(struct fk_node *to, const struct fk_node *from);

/* ---- statistics and errors ---- */
void fk_stats_write(void);
extern bool fk_started;
CUresult fk_write_info(size_t *free_out, size_t *total_out, int device);

#endif
