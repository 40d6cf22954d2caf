#include "app/engine.h"

#include <string.h>

#include "core/check.h"

/* Shapes of the three models. The stored bits follow their file formats: one
 * byte and a half-precision scale per 32 weights, four bits with a scale kept
 * apart, and a mixed four-bit format with a wider embedding. */
static const struct engine_config configs[] = {
    {
        .name = "dense",
        .n_layers = 36, .d_model = 2560, .n_heads = 32, .kv_heads = 8, .head_dim = 128,
        .d_ff = 9728, .vocab = 151936,
        .max_batch = 8, .max_seq = 4096, .chunk = 896,
        .kv_block_tokens = 16, .kv_elem_bytes = 1,
        .layer_bits_x1000 = 8500, .embed_bits_x1000 = 8500, .tied_embedding = true,
        .uses_draft = true, .uses_nvfp4_cache = true,
        .early_cache_bytes = MIB(560),
        .balloon_bytes = MIB(1600),
        .kv_reserve = MIB(7200),
        .first_forward_cap = MIB(3900),
        .vram_budget = MIB(13800),
    },
    {
        .name = "moe",
        .n_layers = 48, .d_model = 2048, .n_heads = 32, .kv_heads = 4, .head_dim = 128,
        .d_ff = 6144, .vocab = 151936,
        .n_experts = 128, .top_k = 8, .expert_ff = 768,
        .max_batch = 8, .max_seq = 4096, .chunk = 512,
        .kv_block_tokens = 16, .kv_elem_bytes = 1,
        .layer_bits_x1000 = 4000, .embed_bits_x1000 = 16000, .tied_embedding = false,
        .uses_moe = true,
        .early_cache_bytes = 0,
        .expert_cache_bytes = MIB(1900),
        .balloon_bytes = MIB(1800),
        .kv_reserve = MIB(7460),
        .first_forward_cap = MIB(2),
        .vram_budget = MIB(23000),
    },
    {
        .name = "vision",
        .n_layers = 34, .d_model = 2560, .n_heads = 8, .kv_heads = 4, .head_dim = 256,
        .d_ff = 10240, .vocab = 262144,
        .max_batch = 4, .max_seq = 4096, .chunk = 512,
        .kv_block_tokens = 16, .kv_elem_bytes = 1,
        .layer_bits_x1000 = 4824, .embed_bits_x1000 = 6563, .tied_embedding = true,
        .uses_vision = true, .uses_fp16_cache = true, .uses_nvfp4_cache = true,
        .fp16_cache_budget = MIB(5230),
        .early_cache_bytes = MIB(263),
        .balloon_bytes = MIB(1700),
        .kv_reserve = MIB(9000),
        .first_forward_cap = MIB(2),
        .vram_budget = MIB(14500),
    },
};

static const struct engine_config draft_config = {
    .name = "draft",
    .n_layers = 4, .d_model = 1024, .n_heads = 16, .kv_heads = 8, .head_dim = 64,
    .d_ff = 3072, .vocab = 32000,
    .max_batch = 8, .max_seq = 4096, .chunk = 256,
    .kv_block_tokens = 16, .kv_elem_bytes = 1,
    .layer_bits_x1000 = 8500, .embed_bits_x1000 = 8500, .tied_embedding = true,
};

static const struct engine_config token_draft_config = {
    .name = "token-draft",
    .n_layers = 1, .d_model = 64, .n_heads = 4, .kv_heads = 4, .head_dim = 16,
    .d_ff = 128, .vocab = 512,
    .max_batch = 1, .max_seq = 64, .chunk = 16,
    .kv_block_tokens = 16, .kv_elem_bytes = 1,
    .layer_bits_x1000 = 8500, .embed_bits_x1000 = 8500, .tied_embedding = true,
};

const struct engine_config *config_draft(bool used)
{
    return used ? &draft_config : &token_draft_config;
}

const struct engine_config *config_find(const char *name)
{
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        if (strcmp(configs[i].name, name) == 0)
            return &configs[i];
    return NULL;
}

size_t config_layer_elems(const struct engine_config *cfg)
{
    size_t d = (size_t)cfg->d_model;
    size_t q = d * (size_t)cfg->n_heads * (size_t)cfg->head_dim;
    size_t kv = d * (size_t)cfg->kv_heads * (size_t)cfg->head_dim;
    size_t ffn = cfg->n_experts > 0 ? 0 : 3 * d * (size_t)cfg->d_ff;
    return 2 * q + 2 * kv + ffn;
}

void stream_order(cudaStream_t first, cudaStream_t then)
{
    static cudaEvent_t mark;
    if (mark == NULL)
        CU_CHECK(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming));
    CU_CHECK(cudaEventRecord(mark, first));
    CU_CHECK(cudaStreamWaitEvent(then, mark, 0));
}

size_t sized(bool used, size_t bytes)
{
    return used && bytes > TOKEN_BYTES ? bytes : TOKEN_BYTES;
}

size_t round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

uint64_t engine_rand(struct engine *eng)
{
    uint64_t x = eng->rng;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    eng->rng = x;
    return x * 0x2545f4914f6cdd1dULL;
}
