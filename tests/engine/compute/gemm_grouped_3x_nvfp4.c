#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define RESERVATION MIB(512)    /* a guess from before the scheduler's need was measured */

/* Three products of an expert layer in one persistent launch. */
static struct {
    void *reservation;
    void *scheduler_state;
    void *tile_counter;
    void *gate_args, *up_args, *down_args;
    void *row_map;
    void *intermediate;
    void *barrier;
} ctx;

void grouped_3x_prewarm(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t map = sized(cfg->uses_moe, (size_t)cfg->chunk * (size_t)cfg->top_k * sizeof(int32_t));
    size_t inter = sized(cfg->uses_moe, (size_t)cfg->max_batch * (size_t)cfg->top_k * (size_t)cfg->expert_ff * 2);

    CU_CHECK(cudaMalloc(&ctx.reservation, RESERVATION));
    buf_dev("compute/grouped_3x_reservation", ctx.reservation, RESERVATION);
    CU_CHECK(cudaMalloc(&ctx.scheduler_state, 152320));
    buf_dev("compute/grouped_3x_scheduler", ctx.scheduler_state, 152320);
    CU_CHECK(cudaMalloc(&ctx.tile_counter, KIB(1)));
    buf_dev("compute/grouped_3x_tile_counter", ctx.tile_counter, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.gate_args, KIB(32)));
    buf_dev("compute/grouped_3x_gate_args", ctx.gate_args, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.up_args, KIB(32)));
    buf_dev("compute/grouped_3x_up_args", ctx.up_args, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.down_args, KIB(32)));
    buf_dev("compute/grouped_3x_down_args", ctx.down_args, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.row_map, map));
    buf_dev("compute/grouped_3x_row_map", ctx.row_map, map);
    CU_CHECK(cudaMalloc(&ctx.intermediate, inter)), CU_CHECK(cudaMalloc(&ctx.barrier, KIB(1)));
    buf_dev("compute/grouped_3x_intermediate", ctx.intermediate, inter);
    buf_dev("compute/grouped_3x_barrier", ctx.barrier, KIB(1));
}

void grouped_3x_run(void *c, const void *a, const void *b, cudaStream_t stream)
{
    void *rows = NULL;

    CU_CHECK(cudaMallocAsync(&rows, KIB(96), stream));
    buf_dev_async("compute/grouped_3x_rows", rows, KIB(96), stream);
    kernel_fill(ctx.tile_counter, 0, stream);
    kernel_binary(rows, a, ctx.row_map, stream);
    kernel_binary(ctx.intermediate, rows, ctx.gate_args, stream);
    kernel_binary(ctx.scheduler_state, ctx.up_args, ctx.down_args, stream);
    kernel_binary(ctx.reservation, ctx.intermediate, ctx.scheduler_state, stream);
    kernel_gemm(c, ctx.reservation, b, stream);
    kernel_fill(ctx.barrier, 1, stream);
    buf_free_async(&rows, stream);
}

void grouped_3x_release(void)
{
    buf_free(&ctx.barrier);
    buf_free(&ctx.intermediate);
    buf_free(&ctx.row_map);
    buf_free(&ctx.down_args);
    buf_free(&ctx.up_args);
    buf_free(&ctx.gate_args);
    buf_free(&ctx.tile_counter);
    buf_free(&ctx.scheduler_state);
    buf_free(&ctx.reservation);
}
