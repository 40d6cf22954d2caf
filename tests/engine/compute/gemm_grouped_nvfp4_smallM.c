#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Grouped products with few rows per expert: decode of a mixture of experts.
 * One problem per expert, described by arrays on the device. */
static struct {
    void *problem_sizes;
    void *ptr_a, *ptr_b, *ptr_c;
    void *ptr_sfa, *ptr_sfb;
    void *stride_a, *stride_b, *stride_c;
    void *layout_sfa, *layout_sfb;
    void *alpha;
    void *packed_rows;
    void *host_args;
} args;

void grouped_small_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t n = (size_t)(cfg->n_experts > 0 ? cfg->n_experts : 1);
    size_t ptrs = sized(cfg->uses_moe, n * sizeof(void *) * 8);
    size_t strides = sized(cfg->uses_moe, n * 3 * sizeof(int64_t));
    size_t layouts = sized(cfg->uses_moe, n * 96);
    size_t rows = sized(cfg->uses_moe, (size_t)cfg->max_batch * (size_t)cfg->top_k * (size_t)cfg->d_model);

    CU_CHECK(cudaMalloc(&args.problem_sizes, strides));
    buf_dev("compute/small_problem_sizes", args.problem_sizes, strides);
    CU_CHECK(cudaMalloc(&args.ptr_a, ptrs));
    buf_dev("compute/small_ptr_a", args.ptr_a, ptrs);
    CU_CHECK(cudaMalloc(&args.ptr_b, ptrs));
    buf_dev("compute/small_ptr_b", args.ptr_b, ptrs);
    CU_CHECK(cudaMalloc(&args.ptr_c, ptrs));
    buf_dev("compute/small_ptr_c", args.ptr_c, ptrs);
    CU_CHECK(cudaMalloc(&args.ptr_sfa, ptrs));
    buf_dev("compute/small_ptr_sfa", args.ptr_sfa, ptrs);
    CU_CHECK(cudaMalloc(&args.ptr_sfb, ptrs));
    buf_dev("compute/small_ptr_sfb", args.ptr_sfb, ptrs);
    CU_CHECK(cudaMalloc(&args.stride_a, strides));
    buf_dev("compute/small_stride_a", args.stride_a, strides);
    CU_CHECK(cudaMalloc(&args.stride_b, strides));
    buf_dev("compute/small_stride_b", args.stride_b, strides);
    CU_CHECK(cudaMalloc(&args.stride_c, strides));
    buf_dev("compute/small_stride_c", args.stride_c, strides);
    CU_CHECK(cudaMalloc(&args.layout_sfa, layouts));
    buf_dev("compute/small_layout_sfa", args.layout_sfa, layouts);
    CU_CHECK(cudaMalloc(&args.layout_sfb, layouts));
    buf_dev("compute/small_layout_sfb", args.layout_sfb, layouts);
    CU_CHECK(cudaMalloc(&args.alpha, KIB(4)));
    buf_dev("compute/small_alpha", args.alpha, KIB(4));
    CU_CHECK(cudaMalloc(&args.packed_rows, rows));
    buf_dev("compute/small_packed_rows", args.packed_rows, rows);
    CU_CHECK(cudaHostAlloc(&args.host_args, layouts, cudaHostAllocWriteCombined));
    buf_host("compute/small_host_args", args.host_args, layouts);
}

void grouped_small_run(void *c, const void *a, const void *b, cudaStream_t stream)
{
    kernel_unary(args.problem_sizes, args.host_args, stream);
    kernel_binary(args.ptr_a, args.host_args, args.stride_a, stream);
    kernel_binary(args.ptr_b, args.host_args, args.stride_b, stream);
    kernel_binary(args.ptr_c, args.host_args, args.stride_c, stream);
    kernel_binary(args.ptr_sfa, args.ptr_a, args.layout_sfa, stream);
    kernel_binary(args.ptr_sfb, args.ptr_b, args.layout_sfb, stream);
    kernel_binary(args.packed_rows, a, args.alpha, stream);
    kernel_gemm(c, args.packed_rows, b, stream);
}

void grouped_small_release(void)
{
    buf_free_host(&args.host_args);
    buf_free(&args.packed_rows);
    buf_free(&args.alpha);
    buf_free(&args.layout_sfb);
    buf_free(&args.layout_sfa);
    buf_free(&args.stride_c);
    buf_free(&args.stride_b);
    buf_free(&args.stride_a);
    buf_free(&args.ptr_sfb);
    buf_free(&args.ptr_sfa);
    buf_free(&args.ptr_c);
    buf_free(&args.ptr_b);
    buf_free(&args.ptr_a);
    buf_free(&args.problem_sizes);
}
