#include "runtime/runtime.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"

#define K_MAX 8

/* Staging between the draft and the target. The captured verification is kept
 * per draft length and dropped whenever speculation is switched off. */
static struct {
    void *draft_tokens;
    void *draft_probs;
    void *accept_mask, *accept_count;
    void *verify_hidden;
    void *host_draft, *host_accept, *host_bonus;
    cudaGraphExec_t verify[2];
    bool enabled;
    int toggles;
    int steps;
    int captures;
    int drops;
} spec;

void spec_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    bool used = cfg->uses_draft;
    size_t probs = sized(used, (size_t)K_MAX * (size_t)cfg->vocab * sizeof(float));
    size_t hidden = sized(used, (size_t)K_MAX * (size_t)cfg->max_batch * (size_t)cfg->d_model * 2);

    CU_CHECK(cudaMalloc(&spec.draft_tokens, KIB(4)));
    buf_dev("runtime/spec_draft_tokens", spec.draft_tokens, KIB(4));
    CU_CHECK(cudaMalloc(&spec.draft_probs, probs));
    buf_dev("runtime/spec_draft_probs", spec.draft_probs, probs);
    CU_CHECK(cudaMalloc(&spec.accept_mask, KIB(2))), CU_CHECK(cudaMalloc(&spec.accept_count, KIB(1)));
    buf_dev("runtime/spec_accept_mask", spec.accept_mask, KIB(2));
    buf_dev("runtime/spec_accept_count", spec.accept_count, KIB(1));
    CU_CHECK(cudaMalloc(&spec.verify_hidden, hidden));
    buf_dev("runtime/spec_verify_hidden", spec.verify_hidden, hidden);
    CU_CHECK(cudaHostAlloc(&spec.host_draft, KIB(4), cudaHostAllocDefault));
    buf_host("runtime/spec_host_draft", spec.host_draft, KIB(4));
    CU_CHECK(cudaHostAlloc(&spec.host_accept, KIB(2), cudaHostAllocMapped));
    buf_host("runtime/spec_host_accept", spec.host_accept, KIB(2));
    CU_CHECK(cudaHostAlloc(&spec.host_bonus, KIB(2), cudaHostAllocDefault));
    buf_host("runtime/spec_host_bonus", spec.host_bonus, KIB(2));
}

static void drop_graphs(void)
{
    for (int i = 0; i < 2; i++) {
        if (spec.verify[i] == NULL)
            continue;
        CU_CHECK(cudaGraphExecDestroy(spec.verify[i]));
        spec.verify[i] = NULL;
        spec.drops++;
    }
}

void spec_set_enabled(bool enabled)
{
    if (!feature_on(F_SPEC_TOGGLE) || enabled == spec.enabled)
        return;
    spec.enabled = enabled;
    spec.toggles++;
    if (!enabled)
        drop_graphs();
}

static void capture_verify(int which, cudaStream_t s)
{
    cudaGraph_t graph = NULL;

    CU_CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    kernel_unary(spec.draft_tokens, spec.host_draft, s);
    kernel_binary(spec.verify_hidden, spec.draft_tokens, spec.draft_probs, s);
    kernel_binary(spec.accept_mask, spec.verify_hidden, spec.draft_tokens, s);
    kernel_fill(spec.accept_count, which + 1, s);
    kernel_unary(spec.host_accept, spec.accept_mask, s);
    CU_CHECK(cudaStreamEndCapture(s, &graph));
    CU_CHECK(cudaGraphInstantiate(&spec.verify[which], graph, 0));
    CU_CHECK(cudaGraphDestroy(graph));
    spec.captures++;
}

/* Drafts, verifies, and says how many tokens the target accepted. */
int spec_step(struct server *srv, struct request *req)
{
    cudaStream_t s = srv->eng->compute;
    int k = 2 + req->id % 2;
    size_t tree = (size_t)k * KIB(2);
    void *draft_kv = NULL, *tree_mask = NULL;

    if (!spec.enabled)
        return 0;
    CU_CHECK(cudaMallocAsync(&draft_kv, sized(srv->eng->cfg->uses_draft, MIB(2)), s));
    buf_dev_async("runtime/spec_draft_kv", draft_kv, sized(srv->eng->cfg->uses_draft, MIB(2)), s);
    CU_CHECK(cudaMallocAsync(&tree_mask, tree, s));
    buf_dev_async("runtime/spec_tree_mask", tree_mask, tree, s);
    if (srv->draft != NULL) {
        kernel_gemm(draft_kv, srv->draft->weights->embed, tree_mask, s);
        kernel_gemm(spec.draft_probs, draft_kv, weights_tensor(srv->draft->weights, 0, W_Q), s);
    }
    if (spec.verify[k - 2] == NULL)
        capture_verify(k - 2, s);
    CU_CHECK(cudaGraphLaunch(spec.verify[k - 2], s));
    kernel_binary(workspace_hidden(), spec.verify_hidden, spec.host_bonus, s);
    buf_free_async(&draft_kv, s);
    buf_free_async(&tree_mask, s);
    spec.steps++;
    return k - 1;
}

void spec_report(void)
{
    if (spec.toggles > 0)
        behaviour(F_SPEC_TOGGLE, "toggles=%d steps=%d captures=%d drops=%d", spec.toggles, spec.steps, spec.captures,
                  spec.drops);
}

void spec_release(void)
{
    drop_graphs();
    buf_free_host(&spec.host_bonus);
    buf_free_host(&spec.host_accept);
    buf_free_host(&spec.host_draft);
    buf_free(&spec.verify_hidden);
    buf_free(&spec.accept_count);
    buf_free(&spec.accept_mask);
    buf_free(&spec.draft_probs);
    buf_free(&spec.draft_tokens);
}
