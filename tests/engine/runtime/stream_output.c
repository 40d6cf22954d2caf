#include "runtime/runtime.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Tokens on their way to the clients: a ring on the device, mirrored in pinned
 * memory, and the stop-sequence automaton. */
static struct {
    void *ring;
    void *automaton;
    void *stop_states, *stop_hits;
    void *host_ring;
    void *host_text;
    void *host_stats;
} out;

void stream_output_init(struct engine *eng)
{
    size_t ring = (size_t)eng->cfg->max_batch * KIB(8);

    CU_CHECK(cudaMalloc(&out.ring, ring));
    buf_dev("runtime/output_ring", out.ring, ring);
    CU_CHECK(cudaMalloc(&out.automaton, KIB(128)));
    buf_dev("runtime/stop_automaton", out.automaton, KIB(128));
    CU_CHECK(cudaMalloc(&out.stop_states, KIB(2))), CU_CHECK(cudaMalloc(&out.stop_hits, KIB(2)));
    buf_dev("runtime/stop_states", out.stop_states, KIB(2));
    buf_dev("runtime/stop_hits", out.stop_hits, KIB(2));
    CU_CHECK(cudaHostAlloc(&out.host_ring, ring, cudaHostAllocPortable));
    buf_host("runtime/output_host_ring", out.host_ring, ring);
    CU_CHECK(cudaHostAlloc(&out.host_text, KIB(64), cudaHostAllocDefault));
    buf_host("runtime/output_host_text", out.host_text, KIB(64));
    CU_CHECK(cudaMallocHost(&out.host_stats, KIB(4)));
    buf_host("runtime/output_host_stats", out.host_stats, KIB(4));
}

void stream_output_token(struct engine *eng, struct request *req, int token)
{
    cudaStream_t s = eng->compute;

    req->text_hash = (req->text_hash ^ (uint64_t)(unsigned)token) * 0x100000001b3ULL;
    ((unsigned char *)out.host_text)[req->seq * 16] = (unsigned char)token;
    kernel_binary(out.ring, out.host_text, out.automaton, s);
    kernel_binary(out.stop_states, out.ring, out.stop_hits, s);
    kernel_unary(out.host_ring, out.ring, s);
    kernel_unary(out.host_stats, out.stop_states, s);
    /* The next token overwrites the text row. */
    CU_CHECK(cudaStreamSynchronize(s));
}

void stream_output_release(void)
{
    buf_free_host(&out.host_stats);
    buf_free_host(&out.host_text);
    buf_free_host(&out.host_ring);
    buf_free(&out.stop_hits);
    buf_free(&out.stop_states);
    buf_free(&out.automaton);
    buf_free(&out.ring);
}
