/* Recurrent state, its snapshots, layer offload and the weight snapshot.
 *
 * Each part is a file-scope singleton with an init and a release, used from
 * the main thread. */
#ifndef ENGINE_MEMORY_STATE_H
#define ENGINE_MEMORY_STATE_H

#include "app/engine.h"

void ssm_state_init(struct engine *eng);
void ssm_state_step(struct engine *eng, int seq, cudaStream_t stream);
void *ssm_state_conv(void);
void *ssm_state_hidden(void);
void ssm_state_release(void);

/* LRU store of recurrent-state slabs for hybrid prefixes. */
void snapshot_store_init(struct engine *eng);
void snapshot_store_save(struct engine *eng, int entry);
void snapshot_store_load(struct engine *eng, int entry);
void snapshot_store_release(void);

/* Two device slots that hold layers streamed in from pinned memory. */
void layer_offload_init(struct engine *eng);
void layer_offload_stream(struct engine *eng, int layer);
void layer_offload_release(void);

/* Keeps a pageable copy of some weights registered, for suspend and resume. */
void weight_snapshot_save(struct engine *eng, const void *weights);
void weight_snapshot_restore(struct engine *eng, void *weights);
void weight_snapshot_release(void);

#endif
