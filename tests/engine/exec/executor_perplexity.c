#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Scores a short text: a start-up check of the loaded model. Its buffers are
 * one-shot and go before the server opens. */
double perplexity_run(struct engine *eng, const struct model_weights *w)
{
    size_t rows = 16;
    size_t logits = rows * (size_t)eng->cfg->vocab * sizeof(float);
    cudaStream_t s = eng->compute;
    void *row_logits = NULL, *targets = NULL, *losses = NULL, *host_losses = NULL;
    double sum = 0.0;

    CU_CHECK(cudaMalloc(&row_logits, logits));
    buf_dev("exec/ppl_logits", row_logits, logits);
    CU_CHECK(cudaMalloc(&targets, KIB(2)));
    buf_dev("exec/ppl_targets", targets, KIB(2));
    CU_CHECK(cudaMalloc(&losses, KIB(2)));
    buf_dev("exec/ppl_losses", losses, KIB(2));
    CU_CHECK(cudaHostAlloc(&host_losses, KIB(2), cudaHostAllocDefault));
    buf_host("exec/ppl_host_losses", host_losses, KIB(2));

    kernel_gemm(row_logits, w->embed, w->norms, s);
    kernel_binary(losses, row_logits, targets, s);
    kernel_unary(host_losses, losses, s);
    CU_CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < 64; i++)
        sum += ((const unsigned char *)host_losses)[i];

    buf_free_host(&host_losses);
    buf_free(&losses);
    buf_free(&targets);
    buf_free(&row_logits);
    return sum / 64.0;
}
