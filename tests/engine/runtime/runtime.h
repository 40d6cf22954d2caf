/* The serving side: start-up helpers, scheduler, graphs, speculation, swap.
 *
 * A request belongs to the scheduler from admission to its end, which is one
 * of: finished, cancelled, refused. Each part is a file-scope singleton; all
 * of it runs on the main thread. */
#ifndef ENGINE_RUNTIME_RUNTIME_H
#define ENGINE_RUNTIME_RUNTIME_H

#include "app/engine.h"
#include "lora/lora.h"
#include "model/model.h"

#define MAX_REQUESTS 1000000
#define MAX_REQUESTS_AFTER_SWAP 8

enum request_state { REQ_WAITING, REQ_PREFILL, REQ_DECODE, REQ_FINISHED, REQ_CANCELLED, REQ_REFUSED };

struct request {
    int id;
    int seq;
    int prompt_tokens;
    int max_new_tokens;
    int produced;
    int cancel_after;       /* tokens after which the client goes away; 0: never */
    uint64_t prefix_hash;
    int prefix_blocks;
    bool pinned_prefix;
    bool has_image;
    bool speculative;
    bool long_context;
    enum request_state state;
    uint64_t text_hash;
    /* Taken at the start of decoding, given back on every way out. */
    void *block_table, *banned, *ctx_len, *positions, *logit_bias, *stop_ids;
};

struct server {
    struct engine *eng;
    struct model_weights *weights;
    struct draft_model *draft;
    struct lora_adapter *lora;
};

/* engine_init.c */
void balloon_inflate(struct engine *eng);
void balloon_release(void);
int kv_blocks_from_free(struct engine *eng);
void runtime_init(struct engine *eng);
void runtime_warm_l2(struct engine *eng, const void *weights);
void runtime_release(void);

/* engine_scheduler.c */
void scheduler_init(struct engine *eng);
void scheduler_prefill(struct server *srv, struct request *req);
void scheduler_release(void);

/* engine_graph_decode.c */
void graph_decode_init(struct engine *eng);
void graph_decode_begin(struct server *srv, struct request *req);
void graph_decode_step(struct server *srv, struct request *req);
void graph_decode_end(struct server *srv, struct request *req);
void graph_decode_release(void);

/* cuda_graph.c: captured decode steps, one graph per batch bucket. */
void cuda_graph_init(struct engine *eng);
void cuda_graph_replay(struct engine *eng, int bucket, size_t ctx_tokens);
void cuda_graph_report(void);
void cuda_graph_release(void);

/* engine_spec.c */
void spec_init(struct engine *eng);
void spec_set_enabled(bool enabled);
int spec_step(struct server *srv, struct request *req);
void spec_report(void);
void spec_release(void);

/* model_swap.c: false if the new model did not fit and the old one is back. */
bool model_swap(struct server *srv, const struct engine_config *next);
void caches_build_early(struct server *srv);
void caches_build_late(struct server *srv);
void caches_release(void);

/* stream_output.c */
void stream_output_init(struct engine *eng);
void stream_output_token(struct engine *eng, struct request *req, int token);
void stream_output_release(void);

/* server_loop.c: serves all requests and prints one summary line; then, after a swap, a few more. */
void server_run(struct server *srv);
void server_run_more(struct server *srv, int count);

#endif
