/* Captures and graphs while a plan serves; called by the hooks that record them. Any thread, inside its hook. */
#ifndef TENURE_SHIM_SERVE_GRAPHS_H
#define TENURE_SHIM_SERVE_GRAPHS_H

#include "ledger/ledger.h"
#include "shim/serve.h"

/* A free that waits for a graph to be read. */
typedef struct tn_serve_kept { tn_place *place; void *address; tn_work_set uncovered; uint32_t row, stream; } tn_serve_kept;

/* 1: it is kept until no graph is left that nobody has read; 0: there is none now, and the block is the caller's to give back. */
int tn_serve_keep(const tn_serve_kept *block);

extern _Atomic int tn_serve_unread __attribute__((visibility("hidden")));
static inline int tn_serve_has_unread(void) { return atomic_load(&tn_serve_unread) != 0; }
void tn_serve_capture_began(void);
/* A capture that was counted ended, in `graph` (NULL: in none). */
void tn_serve_capture_ended(const void *graph);
/* The nodes of `graph` have been read for an executable one, or it was destroyed. */
void tn_serve_graph_was_read(const void *graph);

/* A node of `exec` holds the block: until the exec is gone its memory goes to no other site. */
void tn_serve_graph_holds(const void *exec, const tn_entry *block);
void tn_serve_exec_gone(const void *exec);

/* The place is being taken apart: what is kept or held there is nobody's any more. No thread is within a call on it. */
void tn_serve_graphs_forget(const tn_place *place);

#endif
