/*
 * Events and captures. An event is counted: queued records and graph nodes hold it after its destruction.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_EVENT_H
#define FAKEGPU_FAKE_EVENT_H

#include "fake.h"

/* ---- events (event.c) ---- */
struct fk_event {
    struct fk_event *next;
    struct fk_ctx *ctx;
    unsigned flags;
    int refs;
    bool destroyed, imported;
    struct fk_op *op; /* last record, or NULL */
    uint64_t graph_done_ns;
    struct fk_capture *cap; /* recorded inside this capture */
    uint64_t cap_id;
    struct fk_node **cap_deps;
    size_t ncap_deps;
    void *shared; /* interprocess state */
    int shared_fd;
};
void fk_event_unref(struct fk_event *e);
/** A record operation or graph node ran; publishes to other processes. Called without the lock. */
void fk_event_reached(struct fk_event *e, struct fk_op *op);
/** Blocks until the event's last record is done. Called without the lock. */
void fk_event_await(struct fk_event *e);
void fk_events_destroy(struct fk_ctx *c);

/* ---- capture (capture.c) ---- */
struct fk_capture {
    struct fk_capture *next;
    uint64_t id;
    CUstreamCaptureMode mode;
    pid_t thread;
    bool invalid, to_graph;
    struct fk_stream *origin;
    struct fk_graph *graph;
};
extern struct fk_capture *fk_captures;
/** For calls that are unsafe while capturing: 900, and the conflicting captures die; else CUDA_SUCCESS. */
CUresult fk_capture_unsafe(void);
/** For calls that end every capture of the context (NULL: of the process), whatever its mode. */
CUresult fk_capture_forbid(struct fk_ctx *c);
/** For work on the legacy stream: 906 if a blocking stream of the context captures. */
CUresult fk_capture_legacy(struct fk_ctx *c);
CUresult fk_capture_add(struct fk_stream *s, struct fk_work *w, struct fk_node **out);
/** Event record and wait on capturing streams; *handled says that the call ended here. */
CUresult fk_capture_record(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled);
CUresult fk_capture_wait(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled);
void fk_capture_drop_stream(struct fk_stream *s);
/** For calls that a captured stream does not survive, whatever the mode: 900, and its capture dies. */
CUresult fk_capture_untouched(struct fk_stream *s);
/** For waits on one stream and queries of it: refused on a captured one, and unsafe beside any other capture. */
CUresult fk_stream_sync_check(struct fk_stream *s);

#endif
