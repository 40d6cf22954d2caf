#include "compute/compute.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static void *workspace;
static size_t workspace_bytes;
static int growths;

static void *tile_a, *tile_b;
static void *sf_a, *sf_b;
static void *epilogue;

/* Bytes that a product with `m` rows asks for. */
static size_t workspace_size(const struct engine *eng, size_t m)
{
    return round_up(m * (size_t)eng->cfg->d_model / 4, KIB(64));
}

void cutlass_init(struct engine *eng)
{
    size_t tile = (size_t)eng->cfg->d_model * 128;

    CU_CHECK(cudaMalloc(&tile_a, tile));
    buf_dev("compute/cutlass_tile_a", tile_a, tile);
    CU_CHECK(cudaMalloc(&tile_b, tile));
    buf_dev("compute/cutlass_tile_b", tile_b, tile);
    CU_CHECK(cudaMalloc(&sf_a, tile / 16));
    buf_dev("compute/cutlass_sf_a", sf_a, tile / 16);
    CU_CHECK(cudaMalloc(&sf_b, tile / 16));
    buf_dev("compute/cutlass_sf_b", sf_b, tile / 16);
    CU_CHECK(cudaMalloc(&epilogue, KIB(128)));
    buf_dev("compute/cutlass_epilogue", epilogue, KIB(128));
}

/* Grown at product time: the old workspace goes, a larger one comes. */
static void ensure_workspace(size_t need, cudaStream_t stream)
{
    if (workspace != NULL && (need <= workspace_bytes || !feature_on(F_CUTLASS_LAZY_GROWTH)))
        return;
    if (workspace != NULL) {
        buf_free_inflight(&workspace, stream);
        growths++;
    }
    CU_CHECK(cudaMalloc(&workspace, need));
    buf_dev("compute/cutlass_workspace", workspace, need);
    workspace_bytes = need;
}

void cutlass_gemm(struct engine *eng, void *c, const void *a, const void *b, size_t m, cudaStream_t stream)
{
    void *split = NULL;

    ensure_workspace(workspace_size(eng, m), stream);
    CU_CHECK(cudaMallocAsync(&split, m * 256, stream));
    buf_dev_async("compute/cutlass_split", split, m * 256, stream);
    kernel_binary(tile_a, a, sf_a, stream);
    kernel_binary(tile_b, b, sf_b, stream);
    kernel_gemm(workspace, tile_a, tile_b, stream);
    kernel_binary(split, workspace, epilogue, stream);
    kernel_unary(c, split, stream);
    buf_free_async(&split, stream);
}

void cutlass_report(void)
{
    if (growths > 0)
        behaviour(F_CUTLASS_LAZY_GROWTH, "growths=%d bytes=%zu", growths, workspace_bytes);
}

void cutlass_release(void)
{
    buf_free(&workspace);
    buf_free(&epilogue);
    buf_free(&sf_b);
    buf_free(&sf_a);
    buf_free(&tile_b);
    buf_free(&tile_a);
}
