/* What the parts of the replay share: one process's state while its events are read. For them alone. */
#ifndef TENURE_PLANNER_TRACE_REPLAY_H
#define TENURE_PLANNER_TRACE_REPLAY_H

#include "planner/trace.h"
#include "planner/trace_index.h"
#include "planner/trace_marks.h"

typedef struct mapping { uint64_t bytes; uint32_t life; } mapping;
typedef struct recorded { uint64_t stamp; uint32_t at, stream, ctx; uint8_t captured; } recorded;

typedef struct tn_replay {
    tn_trace *trace;
    tn_trace_process *p;
    const uint32_t *site_of;
    uint32_t site_end;
    const tn_event *e;
    uint32_t at;            /* the event's position */
    uint32_t thread;
    tn_marks *marks;
    tn_index addresses, handles, arrays; /* live blocks by what names them */
    tn_index mapped;        /* address -> index in mappings */
    mapping *mappings; size_t mapping_count;
    tn_index events;        /* handle -> index in records */
    recorded *records; size_t record_count;
    tn_index execs;         /* live graph execs -> device */
    tn_index pools;         /* that the program has made */
    uint64_t current_pool[UINT8_MAX + 1]; /* of a device, where the program made it; 0: the default one */
    uint32_t exec_count[256];
    struct thread_state {
        uint64_t work_last;   /* stamp of its last work, */
        uint32_t work_stream; /* which was enqueued here */
        uint8_t freed_kind;   /* of the block of its last free */
    } *threads; size_t thread_room;
    uint8_t *seen_site;     /* by index in the trace's sites: 1 where the process has taken from it */
    tn_index handle_state;  /* life of a VMM handle -> index in states */
    struct handle_state { uint32_t refs, maps; uint8_t mapped; } *states; size_t state_count;
    uint32_t captures;
    tn_error error;
} tn_replay;

static inline void tn_replay_check(tn_replay *r, tn_error e)
{
    if (r->error == TN_OK)
        r->error = e;
}

static inline uint32_t tn_replay_site(const tn_replay *r, uint32_t id)
{
    uint32_t site = id < r->site_end ? r->site_of[id] : TN_TRACE_NONE;
    return site == TN_TRACE_NONE ? r->site_of[TN_SITE_NONE] : site;
}

/* The block is gone: by a free at this event, or by something that ends all at once. */
static inline void tn_replay_end(tn_replay *r, uint32_t index)
{
    tn_life *l = &r->p->lives[index];
    l->freed = l->clean = r->at;
    l->free_phase = r->e->phase;
}

static inline struct handle_state *tn_replay_handle(tn_replay *r, uint32_t life)
{
    uint32_t i = tn_index_find(&r->handle_state, life);
    return i == TN_INDEX_NONE ? NULL : &r->states[i];
}

/* A handle is released and mapped nowhere any more. Work that still runs may be at its memory, where it was ever mapped: in any context. */
void tn_replay_end_handle(tn_replay *r, uint32_t index, const struct handle_state *s);

/* The event at hand, of each kind (trace_special.c). */
void tn_replay_map(tn_replay *r);
void tn_replay_unmap(tn_replay *r);
void tn_replay_pool(tn_replay *r);
void tn_replay_export(tn_replay *r);
void tn_replay_node(tn_replay *r);
void tn_replay_graph(tn_replay *r);
void tn_replay_first_write(tn_replay *r);
/* Marks the live block that holds the address, if there is one. */
void tn_replay_flag(tn_replay *r, uint64_t addr, uint8_t flag);

#endif
