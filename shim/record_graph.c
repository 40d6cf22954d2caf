/* Captures and graphs: which streams are being captured, which memory a graph owns, and which addresses the nodes of an
 * executable graph hold. */
#include <stdatomic.h>
#include <string.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/map.h"
#include "shim/pages.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve_graphs.h"
#include "shim/serve_marks.h"

#define NODES_MAX 65536u   /* of one graph; beyond it the rest is one UNREADABLE event */
#define DEPTH_MAX 8        /* of child graphs */
#define PARAMETER_MAX 4096 /* bytes of one kernel parameter */

static tn_map capturing = TN_MAP_INIT; /* (stream's number, 0): its capture is in the count */

int rec_captures(void) { return atomic_load_explicit(&tn_hot_page->captures, memory_order_relaxed); }

static void count_captures(int n)
{
    atomic_fetch_add(&tn_hot_page->captures, n);
    atomic_fetch_add(&tn_hot_page->generation, 1); /* what shim/launch.h keeps holds for one state alone */
}

int rec_is_capturing(void *stream)
{
    CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!tn_real.cuStreamIsCapturing || tn_real.cuStreamIsCapturing(stream, &s) != 0) return 0;
    return s == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static void capture(tn_hook_frame *f, int what, void *stream, void *graph, uint64_t mode, int r)
{
    uint32_t number = tn_stream_number(f, stream);
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = (uint8_t)what;
    e->result = r;
    e->stream = number;
    e->addr = (uint64_t)graph;
    e->bytes = mode;
    tn_journal_commit(e, TN_EV_CAPTURE);
}

void rec_capture_may_begin(void) { tn_capture_gate_begin(); }

void rec_capture_begin(tn_hook_frame *f, int r, void *stream, uint64_t mode)
{
    uint64_t one = 1;
    uint32_t number = r == 0 ? tn_stream_number(f, stream) : 0;
    if (number && tn_map_add(&capturing, number, 0, &one) == 1) {
        count_captures(1);
        if (tn_serving) tn_serve_capture_began();
    }
    tn_capture_gate_end();
    if (r != 0) return;
    capture(f, TN_CAPTURE_BEGIN, stream, NULL, mode, r);
}

static void capture_gone(uint32_t stream, const void *graph)
{
    if (!tn_map_remove(&capturing, stream, 0, NULL)) return;
    count_captures(-1);
    if (tn_serving) tn_serve_capture_ended(graph);
}

/* A capture that was killed ends here too, with an error; only a call on a stream that was not being captured ends
 * nothing (the driver's "illegal state" and invalid arguments). */
void rec_capture_end(tn_hook_frame *f, int r, void *stream, void *graph)
{
    if (r == CUDA_ERROR_ILLEGAL_STATE || r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_HANDLE ||
        r == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD || r == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
        return;
    f->thread->told++;
    if (!f->nested) capture_gone(tn_stream_number(f, stream), graph);
    capture(f, TN_CAPTURE_END, stream, graph, 0, r);
}

void rec_capture_gone(uint32_t stream) { capture_gone(stream, NULL); }

void rec_capture_exchange(tn_hook_frame *f, int r, uint64_t old_mode)
{
    if (r == 0) capture(f, TN_CAPTURE_EXCHANGE_MODE, TN_STREAM_NONE, NULL, old_mode, r);
}

/* ---- the addresses that nodes hold */

static void held(tn_hook_frame *f, const void *exec, int node, uint64_t addr)
{
    tn_entry block = {0};
    if (!addr) return;
    int known = tn_ledger_find(TN_SPACE_ADDRESS, addr, &block) || tn_ledger_find(TN_SPACE_MAPPING, addr, &block);
    if (!known && node == TN_NODE_KERNEL) return; /* a number that only looks like an address */
    if (tn_serving && known) tn_serve_graph_holds(exec, &block);
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = (uint8_t)node;
    e->device = known ? block.device : (uint8_t)TN_DEVICE_NONE;
    e->ctx = block.ctx;
    e->addr = (uint64_t)exec;
    e->bytes = known ? block.addr : addr;
    e->aux = block.bytes;
    e->aux2 = block.site;
    tn_journal_commit(e, TN_EV_GRAPH_NODE);
}

static void unreadable(tn_hook_frame *f, const void *exec, uint64_t nodes)
{
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = TN_NODE_UNREADABLE;
    e->addr = (uint64_t)exec;
    e->aux2 = nodes;
    tn_journal_commit(e, TN_EV_GRAPH_NODE);
}

/* A part of a graph: it may record events, too. */
static void unreadable_graph(tn_hook_frame *f, const void *exec, uint64_t nodes)
{
    tn_serve_events_end();
    unreadable(f, exec, nodes);
}

/* Every aligned word of every parameter that lies in a live block counts: parameters may be structs with pointers inside.
 * Where the driver does not tell the parameters' sizes, the node is unreadable. */
static void kernel_parameters(tn_hook_frame *f, const void *exec, CUfunction function, CUkernel kernel, void **params)
{
    size_t offset, size, i = 0;
    if (!params) { /* none, or packed in `extra`, whose layout the driver does not tell */
        unreadable(f, exec, 1);
        return;
    }
    for (;; i++) {
        CUresult r = CUDA_ERROR_NOT_SUPPORTED;
        if (function && tn_real.cuFuncGetParamInfo) r = tn_real.cuFuncGetParamInfo(function, i, &offset, &size);
        else if (kernel && tn_real.cuKernelGetParamInfo) r = tn_real.cuKernelGetParamInfo(kernel, i, &offset, &size);
        if (r == CUDA_ERROR_INVALID_VALUE) break; /* past the last one */
        if (r != 0 || size > PARAMETER_MAX) {
            unreadable(f, exec, 1);
            break;
        }
        for (size_t at = 0; params[i] && at + 8 <= size; at += 8) {
            uint64_t word;
            memcpy(&word, (const char *)params[i] + at, sizeof word);
            held(f, exec, TN_NODE_KERNEL, word);
        }
    }
}

static void copy_node(tn_hook_frame *f, const void *exec, const CUDA_MEMCPY3D *c)
{
    if (c->dstMemoryType != CU_MEMORYTYPE_ARRAY) held(f, exec, TN_NODE_COPY, c->dstMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)c->dstHost : c->dstDevice);
    if (c->srcMemoryType != CU_MEMORYTYPE_ARRAY) held(f, exec, TN_NODE_COPY, c->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)c->srcHost : c->srcDevice);
}

static void memops(tn_hook_frame *f, const void *exec, const CUstreamBatchMemOpParams *all, unsigned count)
{
    for (unsigned i = 0; all && i < count; i++) {
        const CUstreamBatchMemOpParams *o = &all[i];
        if (o->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || o->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
            held(f, exec, TN_NODE_MEMOP, o->waitValue.address);
        else if (o->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || o->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            held(f, exec, TN_NODE_MEMOP, o->writeValue.address);
    }
}

static void memop_node(tn_hook_frame *f, const void *exec, CUgraphNode node)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS p;
    if (tn_real.cuGraphBatchMemOpNodeGetParams && tn_real.cuGraphBatchMemOpNodeGetParams(node, &p) == 0) memops(f, exec, p.paramArray, p.count);
    else unreadable(f, exec, 1);
}

static size_t read_nodes(tn_hook_frame *f, const void *exec, CUgraph graph, int depth);

static void read_node(tn_hook_frame *f, const void *exec, CUgraphNode node, int depth)
{
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_MEMCPY3D c;
    CUDA_MEMSET_NODE_PARAMS m;
    CUgraph child;
    if (!tn_real.cuGraphNodeGetType || tn_real.cuGraphNodeGetType(node, &type) != 0) {
        unreadable_graph(f, exec, 1);
        return;
    }
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (tn_real.cuGraphKernelNodeGetParams_v2 && tn_real.cuGraphKernelNodeGetParams_v2(node, &k) == 0)
            kernel_parameters(f, exec, k.func, k.kern, k.kernelParams);
        else unreadable(f, exec, 1);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (tn_real.cuGraphMemcpyNodeGetParams && tn_real.cuGraphMemcpyNodeGetParams(node, &c) == 0) copy_node(f, exec, &c);
        else unreadable(f, exec, 1);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (tn_real.cuGraphMemsetNodeGetParams && tn_real.cuGraphMemsetNodeGetParams(node, &m) == 0) held(f, exec, TN_NODE_MEMSET, m.dst);
        else unreadable(f, exec, 1);
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (depth < DEPTH_MAX && tn_real.cuGraphChildGraphNodeGetGraph && tn_real.cuGraphChildGraphNodeGetGraph(node, &child) == 0)
            read_nodes(f, exec, child, depth + 1);
        else unreadable_graph(f, exec, 1);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        memop_node(f, exec, node);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: /* its bodies are known only to whoever made the node */
        unreadable(f, exec, 1);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: /* by every launch, out of sight */
        tn_serve_events_end();
        break;
    default: /* empty, event, semaphore, host and memory nodes hold no address of a block */
        break;
    }
}

static size_t read_nodes(tn_hook_frame *f, const void *exec, CUgraph graph, int depth)
{
    /* The driver fills an array of ours; a page at a time is not offered, so it stands on anonymous memory. */
    size_t count = 0;
    if (!tn_real.cuGraphGetNodes || tn_real.cuGraphGetNodes(graph, NULL, &count) != 0) {
        unreadable_graph(f, exec, 0);
        return 0;
    }
    size_t total = count;
    if (count > NODES_MAX) {
        unreadable_graph(f, exec, count - NODES_MAX);
        count = NODES_MAX;
    }
    CUgraphNode *nodes = count ? tn_pages(count * sizeof *nodes) : NULL;
    if (count && !nodes) unreadable_graph(f, exec, count);
    size_t filled = count;
    if (nodes && tn_real.cuGraphGetNodes(graph, nodes, &filled) == 0)
        for (size_t i = 0; i < filled && i < count; i++) read_node(f, exec, nodes[i], depth);
    if (nodes) tn_pages_free(nodes, count * sizeof *nodes);
    return total;
}

void rec_graph(tn_hook_frame *f, int r, int what, void *handle, void *graph)
{
    if (r != 0 || f->nested) return;
    if (what == TN_GRAPH_EXEC_DESTROY) rec_graph_exec_gone(handle);
    uint32_t site = what == TN_GRAPH_INSTANTIATE || what == TN_GRAPH_UPDATE || what == TN_GRAPH_TRIM ? tn_frame_site(f) : TN_SITE_NONE;
    size_t nodes = graph ? read_nodes(f, handle, graph, 0) : 0;
    if (tn_serving && what == TN_GRAPH_EXEC_DESTROY) tn_serve_exec_gone(handle);
    if (tn_serving && (graph || what == TN_GRAPH_DESTROY)) tn_serve_graph_was_read(graph ? graph : handle);
    tn_context c = tn_context_current(f);
    tn_event *e = tn_event_new(f, rec_stamp(f));
    if (!e) return;
    e->kind = (uint8_t)what;
    e->device = c.device;
    e->ctx = c.number;
    e->site = site;
    e->addr = (uint64_t)handle;
    e->bytes = nodes;
    e->aux = (uint64_t)graph;
    tn_journal_commit(e, TN_EV_GRAPH);
}

void rec_graph_upload(tn_hook_frame *f, int r, void *exec, void *stream)
{
    rec_graph(f, r, TN_GRAPH_UPLOAD, exec, NULL);
    rec_work(f, r, TN_WORK_GRAPH, stream);
}

void rec_graph_launch(tn_hook_frame *f, int r, void *exec, void *stream)
{
    (void)exec;
    rec_work(f, r, TN_WORK_GRAPH, stream);
}

void rec_graph_kernel(tn_hook_frame *f, int r, void *exec, CUfunction function, CUkernel kernel, void **params)
{
    if (r == 0 && !f->nested) kernel_parameters(f, exec, function, kernel, params);
    rec_graph_set(f, r, exec);
}

void rec_graph_copy(tn_hook_frame *f, int r, void *exec, const CUDA_MEMCPY3D *copy)
{
    if (r == 0 && !f->nested && copy) copy_node(f, exec, copy);
    rec_graph_set(f, r, exec);
}

void rec_graph_address(tn_hook_frame *f, int r, void *exec, int node, uint64_t addr)
{
    if (r == 0 && !f->nested) held(f, exec, node, addr);
    rec_graph_set(f, r, exec);
}

void rec_graph_memops(tn_hook_frame *f, int r, void *exec, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    if (r == 0 && !f->nested && params) memops(f, exec, params->paramArray, params->count);
    rec_graph_set(f, r, exec);
}

void rec_graph_params(tn_hook_frame *f, int r, void *exec, const CUgraphNodeParams *params)
{
    if (r == 0 && !f->nested && params) {
        switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            kernel_parameters(f, exec, params->kernel.func, params->kernel.kern, params->kernel.kernelParams);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            copy_node(f, exec, &params->memcpy.copyParams);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            held(f, exec, TN_NODE_MEMSET, params->memset.dst);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (params->graph.graph) read_nodes(f, exec, params->graph.graph, 0);
            else unreadable(f, exec, 1);
            break;
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            memops(f, exec, params->memOp.paramArray, params->memOp.count);
            break;
        default:
            break;
        }
    }
    rec_graph_set(f, r, exec);
}

void rec_graph_set(tn_hook_frame *f, int r, void *exec) { rec_graph(f, r, TN_GRAPH_UPDATE, exec, NULL); }

/* ---- memory nodes: the graph owns the block, from the node's making until the graph frees it */

void rec_graph_alloc(tn_hook_frame *f, int r, void *graph, uint64_t addr, uint64_t bytes)
{
    rec_alloc(f, r, TN_KIND_GRAPH, addr, bytes, (uint64_t)graph);
}

void rec_graph_free(tn_hook_frame *f, int r, void *graph, uint64_t addr)
{
    if (r != 0) return;
    f->thread->told++;
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = TN_NODE_FREE;
    e->addr = (uint64_t)graph;
    e->bytes = addr;
    tn_journal_commit(e, TN_EV_GRAPH_NODE);
}

void rec_graph_node(tn_hook_frame *f, int r, void *graph, const CUgraphNodeParams *params)
{
    if (r != 0 || !params) return;
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) rec_graph_alloc(f, r, graph, params->alloc.dptr, params->alloc.bytesize);
    else if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) rec_graph_free(f, r, graph, params->free.dptr);
}
