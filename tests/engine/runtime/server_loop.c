#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "compute/compute.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"
#include "memory/kv_cache.h"
#include "memory/state.h"

#define MAX_ACTIVE 4

static struct request *requests; /* as many as are asked for, and those after the swap */
static int finished, cancelled, refused;

/* The traffic: a shared system prompt, impatient clients, images, long
 * contexts and speculation come round at different periods. */
static void make_requests(struct engine *eng, int first, int end)
{
    for (int i = first; i < end; i++) {
        struct request *r = &requests[i];
        bool shared = i % 3 == 0;
        *r = (struct request){ .id = i };
        r->prompt_tokens = 48 + (int)(engine_rand(eng) % 600);
        r->max_new_tokens = 4 + (int)(engine_rand(eng) % 5);
        if (shared && feature_on(F_PREFIX_SHARING)) {
            r->prefix_hash = 0x5157u;
            r->prefix_blocks = 8;
            r->prompt_tokens += 128;
        } else {
            r->prefix_hash = 0x10000u + (unsigned)i;
            r->prefix_blocks = 2;
        }
        /* An agent's conversation comes back later, whatever else is served meanwhile. */
        r->pinned_prefix = i == 1 && feature_on(F_PREFIX_PINNING);
        r->long_context = i % 6 == 5;
        if (r->long_context)
            r->prompt_tokens += eng->cfg->chunk + 200;
        r->cancel_after = i % 5 == 2 && feature_on(F_CANCELLATION) ? 2 : 0;
        r->has_image = i % 4 == 1;
        r->speculative = i % 4 >= 2;
        r->text_hash = 0xcbf29ce484222325ULL;
    }
}

static void admit(struct server *srv, struct request *r, int seq)
{
    r->seq = seq;
    r->state = REQ_PREFILL;
    scheduler_prefill(srv, r);
    if (r->state == REQ_REFUSED) {
        kv_seq_free(seq);
        refused++;
        return;
    }
    if (r->long_context && feature_on(F_STREAMING_HOLES))
        kv_seq_evict_middle(seq, 4, 16);
    graph_decode_begin(srv, r);
}

static void finish(struct server *srv, struct request *r)
{
    graph_decode_end(srv, r);
    if (r->state == REQ_CANCELLED)
        cancelled++;
    else
        finished++;
    printf("request %d tokens=%d text=0x%016llx%s\n", r->id, r->produced, (unsigned long long)r->text_hash,
           r->state == REQ_CANCELLED ? " cancelled" : "");
}

static void decode_one(struct server *srv, struct request *r)
{
    struct engine *eng = srv->eng;

    if (!kv_seq_grow(r->seq, 1, eng->compute)) {
        r->state = REQ_CANCELLED;
        return;
    }
    spec_set_enabled(r->speculative);
    graph_decode_step(srv, r);
    int accepted = spec_step(srv, r);
    cuda_graph_replay(eng, r->seq, (size_t)kv_seq_length(r->seq));
    ssm_state_step(eng, r->seq, eng->compute);
    if (r->produced == 1)
        snapshot_store_save(eng, r->id);
    int token = sampling_run(eng, workspace_logits(), eng->compute);
    stream_output_token(eng, r, token);
    r->produced += 1 + accepted;
    if (r->cancel_after > 0 && r->produced >= r->cancel_after)
        r->state = REQ_CANCELLED;
    else if (r->produced >= r->max_new_tokens)
        r->state = REQ_FINISHED;
}

/* A pool whose high-water marks are reset at the flip tells what serving alone used. */
static void reset_watermarks(void)
{
    cudaMemPool_t pool;
    uint64_t zero = 0;

    if (!feature_on(F_POOL_WATERMARK))
        return;
    CU_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CU_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    CU_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero));
}

static void report_watermarks(uint64_t before, uint64_t at_flip)
{
    cudaMemPool_t pool;
    uint64_t high = 0, threshold = 0;

    CU_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CU_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    CU_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    printf("pool used_high_before=%llu at_flip=%llu served=%llu threshold=%llu\n", (unsigned long long)before,
           (unsigned long long)at_flip, (unsigned long long)high, (unsigned long long)threshold);
}

static uint64_t used_high(void)
{
    cudaMemPool_t pool;
    uint64_t high = 0;

    CU_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CU_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    return high;
}

/* What the engine only sets up once the port is open. */
static void late_init(struct server *srv)
{
    if (!feature_on(F_INIT_AFTER_SERVING) || srv->lora != NULL)
        return;
    srv->lora = lora_load(srv->eng, 16);
    behaviour(F_INIT_AFTER_SERVING, "serving=%d bytes=%zu", srv->eng->serving, srv->lora->bytes);
}

static void serve(struct server *srv, int first, int end)
{
    struct request *active[MAX_ACTIVE] = { 0 };
    int next = first, running = 0;

    make_requests(srv->eng, first, end);
    while (next < end || running > 0) {
        for (int slot = 0; slot < MAX_ACTIVE; slot++) {
            if (active[slot] != NULL || next >= end)
                continue;
            struct request *r = &requests[next++];
            admit(srv, r, slot);
            if (r->state == REQ_DECODE) {
                active[slot] = r;
                running++;
            }
        }
        for (int slot = 0; slot < MAX_ACTIVE; slot++) {
            struct request *r = active[slot];
            if (r == NULL)
                continue;
            decode_one(srv, r);
            if (r->state == REQ_DECODE)
                continue;
            finish(srv, r);
            active[slot] = NULL;
            running--;
        }
    }
    probe_collect();
}

void server_run_more(struct server *srv, int count)
{
    int first = srv->eng->n_requests;

    serve(srv, first, first + count);
    printf("requests_after_swap=%d\n", count);
}

void server_run(struct server *srv)
{
    struct engine *eng = srv->eng;
    uint64_t high_before = used_high();

    requests = calloc((size_t)eng->n_requests + MAX_REQUESTS_AFTER_SWAP, sizeof *requests);
    if (requests == NULL) {
        fprintf(stderr, "engine: no memory for %d requests\n", eng->n_requests);
        exit(4);
    }
    reset_watermarks();
    uint64_t high_at_flip = used_high();
    late_init(srv);
    serve(srv, 0, eng->n_requests);
    if (kv_prefix_hits() > 0)
        behaviour(F_PREFIX_SHARING, "hits=%d", kv_prefix_hits());
    if (kv_prefix_passed_over() > 0)
        behaviour(F_PREFIX_PINNING, "passed_over=%d", kv_prefix_passed_over());
    if (kv_holes_made() > 0)
        behaviour(F_STREAMING_HOLES, "holes=%d", kv_holes_made());
    if (cancelled > 0)
        behaviour(F_CANCELLATION, "cancelled=%d", cancelled);
    if (feature_on(F_PREFIX_PERSIST))
        behaviour(F_PREFIX_PERSIST, "loaded=%d", kv_prefix_persist(eng));
    snapshot_store_load(eng, 0);
    report_watermarks(high_before, high_at_flip);
    printf("requests=%d finished=%d cancelled=%d refused=%d kv_free=%d of %d\n", eng->n_requests, finished, cancelled,
           refused, kv_cache_free_blocks(), kv_cache_blocks());
}
