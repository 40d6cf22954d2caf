/*
 * Shared by the files that make nodes. A node belongs to its graph and owns the work it carries. All under fk_lock.
 */
#ifndef FAKEGPU_NODE_H
#define FAKEGPU_NODE_H

#include "fake.h"

#define NODE_ARGS CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n

/** Adds a node around finished work; on failure the caller still owns it. `made` may be NULL. */
CUresult fk_node_make(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n, struct fk_work *w, struct fk_node **made);
/** The node, if the handle is one of that type; else invalid value. */
CUresult fk_node_of(CUgraphNode h, CUgraphNodeType type, struct fk_node **out);

CUresult fk_add_empty(NODE_ARGS);
CUresult fk_add_kernel(NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult fk_add_copy(NODE_ARGS, const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult fk_add_fill(NODE_ARGS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult fk_add_host(NODE_ARGS, const CUDA_HOST_NODE_PARAMS *p);

/* Changes: of the graph's node, or, where an exec is given, of the exec alone. */
CUresult fk_set_kernel(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult fk_exec_kernel(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult fk_set_copy(CUgraphExec x, CUgraphNode h, const CUDA_MEMCPY3D *p);
CUresult fk_set_fill(CUgraphExec x, CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p);
CUresult fk_set_host(CUgraphExec x, CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p);

#endif
