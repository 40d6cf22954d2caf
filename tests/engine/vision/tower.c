#include "vision/vision.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/vram_allocator.h"

#define TOWER_LAYERS 27
#define TOWER_DIM 1152
#define TOWER_FF 4304
#define IMAGE_SIZE 896
#define IMAGE_TOKENS 256

static void *blocks[TOWER_LAYERS];
static void *projector;
static void *pixels;
static void *embeddings;
static void *image_staging;

/* Single precision: the tower's normalisations overflow in half. */
static size_t block_bytes(const struct engine_config *cfg)
{
    size_t attn = 4u * TOWER_DIM * TOWER_DIM;
    size_t ffn = 2u * TOWER_DIM * TOWER_FF;
    return sized(cfg->uses_vision, (attn + ffn) * sizeof(float));
}

bool vision_load(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    int layers = cfg->uses_vision ? TOWER_LAYERS : 1;
    size_t block = block_bytes(cfg);
    size_t proj = sized(cfg->uses_vision, (size_t)TOWER_DIM * (size_t)cfg->d_model * 2);
    size_t pixel = sized(cfg->uses_vision, (size_t)IMAGE_SIZE * IMAGE_SIZE * 3 * 2);
    size_t embed = sized(cfg->uses_vision, (size_t)IMAGE_TOKENS * (size_t)cfg->d_model * 2);

    for (int l = 0; l < layers; l++) {
        blocks[l] = vram_alloc(block, "vision/tower_block", 0);
        if (blocks[l] == NULL)
            goto refused;
    }
    projector = vram_alloc(proj, "vision/projector", 0);
    pixels = vram_alloc(pixel, "vision/pixels", 0);
    embeddings = vram_alloc(embed, "vision/embeddings", 0);
    if (projector == NULL || pixels == NULL || embeddings == NULL)
        goto refused;
    CU_CHECK(cudaHostAlloc(&image_staging, pixel, cudaHostAllocWriteCombined));
    buf_host("vision/image_staging", image_staging, pixel);
    return true;
refused:
    vision_release();
    return false;
}

const void *vision_encode(struct engine *eng, int image)
{
    const struct engine_config *cfg = eng->cfg;
    size_t resized = sized(cfg->uses_vision, (size_t)IMAGE_SIZE * IMAGE_SIZE * 3 * 4);
    void *work = NULL;

    if (projector == NULL)
        return NULL;
    CU_CHECK(cudaMallocAsync(&work, resized, eng->prefill));
    buf_dev_async("vision/resize_scratch", work, resized, eng->prefill);
    kernel_unary(work, image_staging, eng->prefill);
    kernel_fill(work, image + 1, eng->prefill);
    kernel_unary(pixels, work, eng->prefill);
    for (int l = 0; l < TOWER_LAYERS && blocks[l] != NULL; l++)
        kernel_gemm(embeddings, pixels, blocks[l], eng->prefill);
    kernel_gemm(embeddings, embeddings, projector, eng->prefill);
    buf_free_async(&work, eng->prefill);
    return embeddings;
}

void vision_release(void)
{
    buf_free_host(&image_staging);
    vram_free(&embeddings);
    vram_free(&pixels);
    vram_free(&projector);
    for (int l = TOWER_LAYERS - 1; l >= 0; l--)
        vram_free(&blocks[l]);
}
