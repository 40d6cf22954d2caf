#include "model/model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define LOADER_THREADS 3
#define INDEX_SHARDS 4
#define STAGING_BYTES MIB(8)
#define PAGE 4096

/* One device slot at a time. The pool gives a block to another stream only when
 * its free has been passed, so without this its size would depend on timing. */
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;

/* All loaders have their staging at the same time: on a busy machine one was through before the last had begun. */
static pthread_barrier_t all_staged;

struct loader {
    pthread_t thread;
    int id;
    int shards_done;
};

/* One thread's share of the index: pinned staging and a device slot per shard. */
static void *load_shards(void *arg)
{
    struct loader *self = arg;
    cudaStream_t stream;
    char host_name[32], slot_name[32];
    void *staging = NULL;

    snprintf(host_name, sizeof host_name, "model/loader_staging_%d", self->id);
    snprintf(slot_name, sizeof slot_name, "model/loader_slot_%d", self->id);
    CU_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CU_CHECK(cudaHostAlloc(&staging, KIB(256), cudaHostAllocPortable));
    buf_host(host_name, staging, KIB(256));
    (void)pthread_barrier_wait(&all_staged);
    for (int i = 0; i < INDEX_SHARDS; i++) {
        void *slot = NULL;
        size_t bytes = KIB(64) * (size_t)(i + 1);
        pthread_mutex_lock(&slot_lock);
        CU_CHECK(cudaMallocAsync(&slot, bytes, stream));
        buf_dev_async(slot_name, slot, bytes, stream);
        kernel_unary(slot, staging, stream);
        CU_CHECK(cudaStreamSynchronize(stream));
        buf_retire(slot);
        CU_CHECK(cudaFreeAsync(slot, stream));
        CU_CHECK(cudaStreamSynchronize(stream));
        pthread_mutex_unlock(&slot_lock);
        self->shards_done++;
    }
    buf_free_host(&staging);
    CU_CHECK(cudaStreamDestroy(stream));
    return NULL;
}

void weights_scan_index(struct engine *eng)
{
    struct loader loaders[LOADER_THREADS];
    int shards = 0;
    int n = feature_on(F_LOADER_THREADS) ? LOADER_THREADS : 0;

    if (n > 0)
        (void)pthread_barrier_init(&all_staged, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        loaders[i].id = i;
        loaders[i].shards_done = 0;
        if (pthread_create(&loaders[i].thread, NULL, load_shards, &loaders[i]) != 0) {
            fputs("engine: cannot start a loader thread\n", stderr);
            exit(3);
        }
    }
    for (int i = 0; i < n; i++) {
        (void)pthread_join(loaders[i].thread, NULL);
        shards += loaders[i].shards_done;
    }
    if (n > 0)
        (void)pthread_barrier_destroy(&all_staged);
    if (n > 0)
        behaviour(F_LOADER_THREADS, "threads=%d shards=%d", n, shards);
    CU_CHECK(cudaStreamSynchronize(eng->copy));
}

/* Repacks one layer through a device transient. Its size follows the largest tensor. */
static size_t repack_layer(struct engine *eng, struct model_weights *w, int l, const void *pinned)
{
    void *transient = NULL;
    size_t bytes = round_up(config_layer_elems(w->cfg) / 2, MIB(1));

    if (!feature_on(F_LOAD_TRANSIENTS))
        return 0;
    CU_CHECK(cudaMalloc(&transient, bytes));
    buf_dev("model/repack_transient", transient, bytes);
    kernel_binary(transient, pinned, w->layer[l][W_Q], eng->copy);
    kernel_unary(w->layer[l][W_K], transient, eng->copy);
    buf_free_inflight(&transient, eng->copy);
    return bytes;
}

void weights_stage(struct engine *eng, struct model_weights *w)
{
    void *pinned = NULL;
    void *pages = aligned_alloc(PAGE, STAGING_BYTES);
    size_t moved = 0;
    int repacked = 0;

    if (pages == NULL) {
        fputs("engine: out of host memory for staging\n", stderr);
        exit(3);
    }
    CU_CHECK(cudaMallocHost(&pinned, STAGING_BYTES));
    buf_host("model/upload_staging", pinned, STAGING_BYTES);
    CU_CHECK(cudaHostRegister(pages, STAGING_BYTES, cudaHostRegisterDefault));
    buf_host("model/mapped_file", pages, STAGING_BYTES);

    for (int l = 0; l < w->cfg->n_layers; l++) {
        kernel_unary(pinned, pages, eng->copy);
        kernel_unary(w->layer[l][W_Q], pinned, eng->copy);
        kernel_unary(w->layer[l][W_O], w->layer[l][W_Q], eng->copy);
        if (l % 6 == 0) {
            size_t bytes = repack_layer(eng, w, l, pinned);
            moved += bytes;
            repacked += bytes > 0;
        }
    }
    CU_CHECK(cudaStreamSynchronize(eng->copy));
    if (repacked > 0)
        behaviour(F_LOAD_TRANSIENTS, "layers=%d bytes=%zu left=0", repacked, moved);

    buf_retire(pages);
    CU_CHECK(cudaHostUnregister(pages));
    free(pages);
    buf_free_host(&pinned);
}
