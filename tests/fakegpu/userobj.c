/* User objects: counted, held by graphs too; their destructor runs when nobody holds them. */
#include "fake.h"

#include <stdlib.h>

bool fk_graph_hold(struct fk_graph *g, void *object, int n)
{
    for (size_t i = 0; i < g->nheld; i++)
        if (g->held[i].object == object) {
            if (g->held[i].count + n < 0)
                return false;
            g->held[i].count += n;
            return true;
        }
    struct fk_held *h = n > 0 ? realloc(g->held, (g->nheld + 1) * sizeof *h) : NULL;
    if (h == NULL)
        return false;
    g->held = h;
    h[g->nheld++] = (struct fk_held){object, n};
    return true;
}

struct userobj { CUhostFn fn; void *data; unsigned refs; };

static CUresult uo_create(CUuserObject *out, void *data, CUhostFn fn, unsigned refs, unsigned flags)
{
    if (out == NULL || fn == NULL || refs == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct userobj *u = malloc(sizeof *u);
    if (u == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *u = (struct userobj){fn, data, refs};
    fk_handle_add(u, FK_T_USEROBJ);
    *out = (CUuserObject)u;
    return CUDA_SUCCESS;
}
static CUresult uo_count(CUuserObject h, unsigned n, bool add)
{
    struct userobj *u = (struct userobj *)h;
    if (!fk_handle_is(u, FK_T_USEROBJ) || n == 0 || (!add && n > u->refs))
        return CUDA_ERROR_INVALID_VALUE;
    u->refs = add ? u->refs + n : u->refs - n;
    if (u->refs == 0) {
        fk_handle_del(u);
        u->fn(u->data);
        free(u);
    }
    return CUDA_SUCCESS;
}
FK_API(cuUserObjectCreate, (CUuserObject *out, void *data, CUhostFn fn, unsigned refs, unsigned flags),
       uo_create(out, data, fn, refs, flags))
FK_API(cuUserObjectRetain, (CUuserObject h, unsigned n), uo_count(h, n, true))
FK_API(cuUserObjectRelease, (CUuserObject h, unsigned n), uo_count(h, n, false))

/* A graph keeps references until it is destroyed or gives them back. */
static CUresult uo_graph(CUgraph g, CUuserObject h, unsigned n, unsigned flags, bool add)
{
    if (!fk_handle_is(g, FK_T_GRAPH) || !fk_handle_is(h, FK_T_USEROBJ) || n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!add)
        return fk_graph_hold((struct fk_graph *)g, h, -(int)n) ? uo_count(h, n, false) : CUDA_ERROR_INVALID_VALUE;
    if (!fk_graph_hold((struct fk_graph *)g, h, (int)n))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return flags & CU_GRAPH_USER_OBJECT_MOVE ? CUDA_SUCCESS : uo_count(h, n, true);
}
FK_API(cuGraphRetainUserObject, (CUgraph g, CUuserObject h, unsigned n, unsigned flags), uo_graph(g, h, n, flags, true))
FK_API(cuGraphReleaseUserObject, (CUgraph g, CUuserObject h, unsigned n), uo_graph(g, h, n, 0, false))

void fk_userobj_release(void *h, unsigned n)
{
    uo_count(h, n, false);
}
