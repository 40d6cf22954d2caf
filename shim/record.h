/* What the rows of the API table do before and after a real call in record mode: keep the ledger and write the
 * journal. All of these run on the calling thread inside its hook, with errno put aside; none holds a lock
 * around a CUDA or loader call, and the CUDA calls they make themselves are those of api_helpers.def.
 * `r` is the result of the real call; a failed call is journalled where its refusal is news (allocations,
 * frees) and dropped elsewhere. */
#ifndef TENURE_SHIM_RECORD_H
#define TENURE_SHIM_RECORD_H

#include <stdint.h>

#include "shim/cuda_abi.h"
#include "shim/hook.h"

#define TN_STREAM_NONE ((void *)-1)  /* not stream-ordered */
#define TN_DEV_UNKNOWN (-1)
enum { TN_WRITE_AUTO = 100, TN_WRITE_D2H = 101 }; /* asks the ledger which one; writes to the host */
enum { TN_SYNC = 1 };                /* the call returns when the copy is done, so it is a wait as well */

/* Before the real call of what ends something: another thread may be given the same handle or range the moment it is free, and
 * its event must not come before this one's. */
static inline void rec_begin(tn_hook_frame *f) { f->begun = tn_stamp(); }
/* Where such a call began, now for every other. */
static inline uint64_t rec_stamp(const tn_hook_frame *f) { return f->begun ? f->begun : tn_stamp(); }

/* ---- memory (record_memory.c) */
void rec_site(tn_hook_frame *f); /* names the site now, before the real call goes through libcudart */
void rec_site_first(tn_hook_frame *f); /* the same where the call may make a context; frequent calls that record nothing else */
void rec_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra);
void rec_alloc_on(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, void *stream);
/* Memory of a tier came, or went: `route` as in an ARENA event's aux2. */
void rec_arena(tn_hook_frame *f, int gone, int kind, uint64_t addr, uint64_t bytes, uint64_t route, uint32_t ctx, uint8_t device);
void rec_alloc_vmm(tn_hook_frame *f, int r, uint64_t handle, uint64_t bytes, const CUmemAllocationProp *prop, uint64_t flags);
void rec_import(tn_hook_frame *f, int r, uint64_t addr, uint64_t bytes); /* bytes 0: asked from the driver */
void rec_import_handle(tn_hook_frame *f, int r, uint64_t handle);
/* Takes the block out of the ledger and stamps the free before the driver is called; the end puts it back if the
 * driver refused. */
void rec_free_begin(tn_hook_frame *f, tn_space space, uint64_t addr);
void rec_free_end(tn_hook_frame *f, int r, void *stream);
/* The same for runtime rows: nothing if a driver row under this call has recorded (record_runtime.c). */
void rt_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra);
void rt_alloc_on(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, void *stream);
void rt_free_begin(tn_hook_frame *f, const void *real, tn_space space, uint64_t addr); /* real: the function that is called */
void rt_free_end(tn_hook_frame *f, int r, void *stream);
void rt_graph_free(tn_hook_frame *f, int r, void *graph, uint64_t addr);
void rt_reset_begin(tn_hook_frame *f);
void rt_reset_end(tn_hook_frame *f, int r);
/* What begins or ends a handle that is remembered here: told, where no driver row under this call has. */
void rt_begin(tn_hook_frame *f);
void rt_pool_made(tn_hook_frame *f, int r, uint64_t pool, int imported, int device);
void rt_pool_end_begin(tn_hook_frame *f, uint64_t pool);
void rt_pool_end(tn_hook_frame *f, int r, uint64_t pool);
void rt_stream(tn_hook_frame *f, int r, void *stream, uint64_t flags, int priority);
void rt_stream_destroy_begin(tn_hook_frame *f, void *stream);
void rt_stream_destroy(tn_hook_frame *f, int r);
void rt_capture_end(tn_hook_frame *f, int r, void *stream, void *graph);
void rec_vmm(tn_hook_frame *f, int r, tn_event_type type, uint64_t addr, uint64_t bytes, uint64_t aux, uint64_t aux2);
/* Bytes of an array: texels times texel size, from its description. */
uint64_t rec_array_bytes(int r, const CUDA_ARRAY_DESCRIPTOR *d);
uint64_t rec_array3d_bytes(int r, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels);
uint64_t rec_rt_array_bytes(int r, const struct cudaChannelFormatDesc *d, size_t w, size_t h, size_t depth);
uint64_t rec_rt_mipmap_bytes(int r, const struct cudaChannelFormatDesc *d, size_t w, size_t h, size_t depth, unsigned levels);

/* ---- queries, attributes, sharing (record_query.c) */
void rec_query(tn_hook_frame *f, int r, uint64_t free_bytes, uint64_t total);
void rt_query(tn_hook_frame *f, int r, uint64_t free_bytes, uint64_t total);
void rec_query_total(tn_hook_frame *f, int r, uint64_t total, int device);
void rec_nvml_memory(tn_hook_frame *f, int r, const void *memory, int version);
void rec_attribute(tn_hook_frame *f, int r, uint64_t addr, uint64_t attribute, const void *value);
void rec_pool_end_begin(tn_hook_frame *f, uint64_t pool);
void rec_pool(tn_hook_frame *f, int r, int what, uint64_t pool, uint64_t attribute, uint64_t value);
void rec_pool_attribute(tn_hook_frame *f, int r, int what, uint64_t pool, int attribute, const void *value);
uint64_t rec_pool_location(int r, const CUmemPoolProps *props);
void rec_export(tn_hook_frame *f, int r, int what, uint64_t addr, uint64_t value);
void rec_peer(tn_hook_frame *f, int r, int what, uint64_t peer, uint64_t device);
void rec_limit(tn_hook_frame *f, int r, uint64_t limit, uint64_t value);

/* ---- contexts and modules (record_context.c) */
void rec_ctx(tn_hook_frame *f, int r, int what, void *context, int device);
void rec_ctx_primary_retain_begin(tn_hook_frame *f, int device);
void rec_ctx_primary_begin(tn_hook_frame *f, int device);
void rec_ctx_primary(tn_hook_frame *f, int r, int what, int device);
void rec_ctx_destroy_begin(tn_hook_frame *f, void *context);
void rec_ctx_destroy(tn_hook_frame *f, int r, void *context);
void rec_ctx_reset(tn_hook_frame *f, void *context); /* of a context already known */
void rec_ctx_current(tn_hook_frame *f, int r, int what);
void rec_module(tn_hook_frame *f, int r, int what, void *handle);

/* ---- work, order, waits (record_work.c) */
void rec_work(tn_hook_frame *f, int r, int what, void *stream);
void rec_launch(tn_hook_frame *f, int r, const void *function, void *stream);
void rec_launch_each(tn_hook_frame *f, int r, const CUDA_LAUNCH_PARAMS *each, unsigned count);
void rec_copy(tn_hook_frame *f, int r, uint64_t dst, uint64_t src, int write, void *stream, int sync);
void rec_copy_struct(tn_hook_frame *f, int r, uint64_t dst, uint64_t src, int dst_type, int src_type, void *stream, int sync);
void rec_copy_batch(tn_hook_frame *f, int r, const CUdeviceptr *dst, const CUdeviceptr *src, size_t count, void *stream);
void rec_stream(tn_hook_frame *f, int r, int what, void *stream, uint64_t flags, int priority);
void rec_stream_destroy_begin(tn_hook_frame *f, void *stream);
void rec_stream_destroy(tn_hook_frame *f, int r);
void rec_event_begin(tn_hook_frame *f, const void *event, int external); /* before a record; before a join */
void rec_join_begin(tn_hook_frame *f);
void rec_event_made(tn_hook_frame *f, int r, const void *event);
void rec_event_shared(const void *event); /* another process may record it too */
void rec_event_destroy_begin(tn_hook_frame *f, const void *event);
CUstream rec_config_stream(const CUlaunchConfig *config); /* into which a launch with attributes goes */
void rec_event(tn_hook_frame *f, int r, tn_event_type type, const void *event, void *stream);
void rec_ctx_event(tn_hook_frame *f, int r, tn_event_type type, const void *event, void *context); /* of all its streams */
void rec_event_destroy(tn_hook_frame *f, int r, const void *event);
void rec_wait(tn_hook_frame *f, int r, int what, void *context, uint64_t event);
void rec_wait_stream(tn_hook_frame *f, int r, int what, void *stream);
void rec_wait_on(tn_hook_frame *f, int r, int what, void *stream, uint64_t event); /* TN_STREAM_NONE: the event */

/* ---- captures and graphs (record_graph.c) */
int rec_captures(void); /* how many captures are active in the process */
int rec_is_capturing(void *stream);
void rec_capture_may_begin(void); /* before the real call; rec_capture_begin follows */
void rec_capture_begin(tn_hook_frame *f, int r, void *stream, uint64_t mode);
void rec_capture_end(tn_hook_frame *f, int r, void *stream, void *graph);
void rec_capture_gone(uint32_t stream); /* a stream that is gone is captured no longer */
void rec_capture_exchange(tn_hook_frame *f, int r, uint64_t old_mode);
void rec_graph(tn_hook_frame *f, int r, int what, void *handle, void *graph);
void rec_graph_upload(tn_hook_frame *f, int r, void *exec, void *stream);
void rec_graph_launch(tn_hook_frame *f, int r, void *exec, void *stream);
void rec_graph_kernel(tn_hook_frame *f, int r, void *exec, CUfunction function, CUkernel kernel, void **params);
void rec_graph_copy(tn_hook_frame *f, int r, void *exec, const CUDA_MEMCPY3D *copy);
void rec_graph_address(tn_hook_frame *f, int r, void *exec, int node, uint64_t addr);
void rec_graph_memops(tn_hook_frame *f, int r, void *exec, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params);
void rec_graph_params(tn_hook_frame *f, int r, void *exec, const CUgraphNodeParams *params);
void rec_graph_set(tn_hook_frame *f, int r, void *exec);
void rec_graph_alloc(tn_hook_frame *f, int r, void *graph, uint64_t addr, uint64_t bytes);
void rec_graph_free(tn_hook_frame *f, int r, void *graph, uint64_t addr);
void rec_graph_node(tn_hook_frame *f, int r, void *graph, const CUgraphNodeParams *params);

/* ---- resolvers (driver.c) */
void tn_resolver_map(tn_hook_frame *f, int r, void **pointer);

#endif
