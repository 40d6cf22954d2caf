#include "compute/compute.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Top-k and top-p sampling with the random state on the device. */
static struct {
    void *rng_state;
    void *top_k_values, *top_k_indices;
    void *sorted_probs;
    void *cumulative;
    void *chosen;
    void *logprobs;
    void *min_p;
    void *entropy;
    void *host_tokens;
    void *host_logprobs;
} ctx;

static int async_of_plain;
static int plain_of_async;

void sampling_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t batch = (size_t)cfg->max_batch;
    size_t sorted = batch * 4096 * sizeof(float);

    CU_CHECK(cudaMalloc(&ctx.rng_state, batch * 256));
    buf_dev("compute/sample_rng_state", ctx.rng_state, batch * 256);
    CU_CHECK(cudaMalloc(&ctx.top_k_values, KIB(32))), CU_CHECK(cudaMalloc(&ctx.top_k_indices, KIB(32)));
    buf_dev("compute/sample_top_k_values", ctx.top_k_values, KIB(32));
    buf_dev("compute/sample_top_k_indices", ctx.top_k_indices, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.sorted_probs, sorted));
    buf_dev("compute/sample_sorted", ctx.sorted_probs, sorted);
    CU_CHECK(cudaMalloc(&ctx.cumulative, sorted));
    buf_dev("compute/sample_cumulative", ctx.cumulative, sorted);
    CU_CHECK(cudaMalloc(&ctx.chosen, KIB(1)));
    buf_dev("compute/sample_chosen", ctx.chosen, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.logprobs, batch * 1024));
    buf_dev("compute/sample_logprobs", ctx.logprobs, batch * 1024);
    CU_CHECK(cudaMalloc(&ctx.entropy, batch * 512));
    buf_dev("compute/sample_entropy", ctx.entropy, batch * 512);
    CU_CHECK(cudaHostAlloc(&ctx.host_tokens, KIB(1), cudaHostAllocMapped));
    buf_host("compute/sample_host_tokens", ctx.host_tokens, KIB(1));
    CU_CHECK(cudaHostAlloc(&ctx.host_logprobs, batch * 1024, cudaHostAllocDefault));
    buf_host("compute/sample_host_logprobs", ctx.host_logprobs, batch * 1024);
}

/* A plain block for the minimum-probability filter, taken by each call. */
static void min_p_filter(cudaStream_t stream)
{
    CU_CHECK(cudaMalloc(&ctx.min_p, KIB(48)));
    buf_dev("compute/sample_min_p", ctx.min_p, KIB(48));
    kernel_binary(ctx.min_p, ctx.sorted_probs, ctx.cumulative, stream);
    kernel_unary(ctx.chosen, ctx.min_p, stream);
    if (!feature_on(F_FREE_OTHER_FAMILY)) {
        buf_free_inflight(&ctx.min_p, stream);
        return;
    }
    /* Given back in stream order, although it was not taken so. */
    buf_free_async(&ctx.min_p, stream);
    other_family_note(1, 0);
}

int sampling_run(struct engine *eng, const void *logits, cudaStream_t stream)
{
    size_t keys = (size_t)eng->cfg->vocab * sizeof(int32_t);
    void *sort_keys = NULL, *sort_tmp = NULL;

    CU_CHECK(cudaMallocAsync(&sort_keys, keys, stream));
    buf_dev_async("compute/sample_sort_keys", sort_keys, keys, stream);
    CU_CHECK(cudaMallocAsync(&sort_tmp, KIB(512), stream));
    buf_dev_async("compute/sample_sort_tmp", sort_tmp, KIB(512), stream);
    kernel_binary(sort_keys, logits, ctx.rng_state, stream);
    kernel_unary(sort_tmp, sort_keys, stream);
    kernel_unary(ctx.top_k_values, sort_tmp, stream);
    kernel_binary(ctx.top_k_indices, sort_tmp, ctx.top_k_values, stream);
    kernel_binary(ctx.sorted_probs, ctx.top_k_values, ctx.top_k_indices, stream);
    kernel_unary(ctx.cumulative, ctx.sorted_probs, stream);
    kernel_binary(ctx.entropy, ctx.sorted_probs, ctx.cumulative, stream);
    min_p_filter(stream);
    kernel_unary(ctx.logprobs, ctx.sorted_probs, stream);
    kernel_unary(ctx.host_tokens, ctx.chosen, stream);
    kernel_unary(ctx.host_logprobs, ctx.logprobs, stream);
    buf_free_async(&sort_keys, stream);
    buf_free_async(&sort_tmp, stream);
    CU_CHECK(cudaStreamSynchronize(stream));
    return ((const unsigned char *)ctx.host_tokens)[0];
}

void sampling_release(void)
{
    buf_free_host(&ctx.host_logprobs);
    buf_free_host(&ctx.host_tokens);
    buf_free(&ctx.entropy);
    buf_free(&ctx.logprobs);
    buf_free(&ctx.chosen);
    buf_free(&ctx.cumulative);
    buf_free(&ctx.sorted_probs);
    buf_free(&ctx.top_k_indices);
    buf_free(&ctx.top_k_values);
    /* The random state is shared with graphs that outlive the sampler and stays. */
}

void other_family_note(int by_async, int by_plain)
{
    async_of_plain += by_async;
    plain_of_async += by_plain;
}

void other_family_report(void)
{
    if (async_of_plain + plain_of_async > 0)
        behaviour(F_FREE_OTHER_FAMILY, "async_of_plain=%d plain_of_async=%d", async_of_plain, plain_of_async);
}
