/*
 * Modules, kernels and graphs. A graph owns its nodes; an exec owns a private copy of them.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_GRAPH_H
#define FAKEGPU_FAKE_GRAPH_H

#include "fake.h"

/* ---- modules (module.c) ---- */
struct fk_builtin { const char *name; int nargs; unsigned char size[6]; unsigned char offset[6]; };
/** Where a kernel's parameters lie, by its PTX. */
#define FK_MAX_PARAMS 32
struct fk_params { size_t count, offset[FK_MAX_PARAMS], size[FK_MAX_PARAMS]; };
/** A kernel of a library, or a function of a module: one of the program's, or one that a library has in a context. */
struct fk_func {
    struct fk_func *next;
    struct fk_module *module; /* NULL once that is gone */
    struct fk_func *functions; /* of a kernel: one for each context in which it was asked for */
    struct fk_func *kernel, *sibling; /* of such a function: its kernel, and that one's next */
    const struct fk_builtin *builtin; /* NULL: a kernel that does nothing */
    char *name;
    struct fk_params params;
    int attrs[FK_MAX_DEVICES][32]; /* a function has those of its context's device */
};
struct fk_module {
    struct fk_module *next;
    struct fk_ctx *ctx; /* NULL: a library */
    struct fk_module *of; /* the library whose module it is in ctx, or NULL */
    struct fk_func *funcs; /* a library's are kernels */
    bool library;
    char *ptx; /* the image, if it is text */
    bool loaded; /* its code is charged */
};
/** Charges a module's code, if it is not yet (module.c). */
CUresult fk_module_charge(struct fk_module *m);
/** The function to launch in a context: a kernel's, its library loaded there if need be, or the function itself; 400 for another context's. */
CUresult fk_function_in(struct fk_func **out, void *h, struct fk_ctx *c);
/** A kernel's function in a context in which it was asked for, or NULL. */
struct fk_func *fk_function_known(const struct fk_func *kernel, const struct fk_ctx *c);
/** A copy of the image if it is PTX, else NULL (ptx.c). */
char *fk_ptx_copy(const void *image);
/** False if the text has no such kernel. Zero parameters also where they were not understood. */
bool fk_ptx_params(const char *text, const char *name, struct fk_params *out);
/** Copies the arguments of a launch (launch.c). */
CUresult fk_kernel_prepare(struct fk_kernel *k, struct fk_func *f, void **params, void **extra);
/** Charges code and limits at the first launch, in the function's context; in c if that is gone. */
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
    bool joined; /* while captured: the origin stream has waited for it */
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
/** Physical memory of an exec's memory nodes; NULL if it has none. Charged at upload or first launch. */
struct fk_reserve *fk_reserve_new(struct fk_node *const *order, size_t count);
CUresult fk_reserve_charge(struct fk_reserve *r);
void fk_reserve_orphan(struct fk_reserve *r);
void fk_graph_block_state(struct fk_block *b, bool live);
CUresult fk_exec_set(CUgraphExec h, CUgraphNode node, const struct fk_work *w);
CUresult fk_node_set(struct fk_node *x, const struct fk_work *w);
bool fk_node_copy_work(struct fk_node *to, const struct fk_node *from);

#endif
