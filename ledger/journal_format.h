/* The journal's format on disk, version 1: what the shim writes and the command reads. docs/JOURNAL.md is
 * the published description; the two change together, and any change of layout raises
 * TN_JOURNAL_VERSION. One file belongs to one process; a chunk belongs to one thread until it is full, so
 * no two threads ever write the same bytes (the header's drop counters, atomic, are the one exception).
 *
 *   file   = header (TN_HEADER_BYTES), then chunks of TN_CHUNK_BYTES each
 *   chunk  = tn_chunk_header (64 bytes), then by its type:
 *            EVENTS    tn_event[TN_EVENTS_PER_CHUNK]; a slot whose type is TN_EV_NONE was never committed
 *            RECORDS   tn_record headers with payloads, 8-byte aligned; a type of 0 ends the chunk
 *            COUNTERS  TN_COUNTER_SLOTS blocks of TN_COUNTERS u64, one block for a thread at a time; blocks
 *                      are handed on when a thread ends, so only sums over all blocks have a meaning
 * All integers are in the byte order of the writing machine (little-endian on both supported ones). */
#ifndef TENURE_LEDGER_JOURNAL_FORMAT_H
#define TENURE_LEDGER_JOURNAL_FORMAT_H

#include <stdint.h>

#define TN_JOURNAL_MAGIC "TENUREJ1"
#define TN_CHUNK_MAGIC 0x314b4843u /* "CHK1" */
#define TN_JOURNAL_VERSION 1u
#define TN_HEADER_BYTES 8192u
#define TN_CHUNK_BYTES 65536u
#define TN_EVENTS_PER_CHUNK ((TN_CHUNK_BYTES - 64u) / 64u)
#define TN_API_MAX 640u                       /* rows of the API table that a journal can count */
#define TN_COUNTERS (2u * TN_API_MAX)         /* [0,MAX) calls, [MAX,2*MAX) addresses handed out by a resolver */
#define TN_COUNTER_SLOTS ((TN_CHUNK_BYTES - 64u) / (TN_COUNTERS * 8u)) /* 6 */
#define TN_FRAMES_MAX 16u
#define TN_PYTHON_FRAMES_MAX 8u
#define TN_JOURNAL_SUFFIX ".tnj"

/* Header flags. */
enum {
    TN_HF_BUFFERED = 1u << 0,     /* buffered writes: SIGKILL may lose each thread's last, unfilled chunk */
    TN_HF_ENDED = 1u << 1,        /* the process ran its exit handlers */
    TN_HF_UNWIND_OWN = 1u << 2,   /* libunwind was not to be had: frame-pointer walk */
    TN_HF_WRAP = 1u << 3,         /* linked in by --wrap, not preloaded */
    TN_HF_STOPPED = 1u << 4,      /* recording stopped for good (see stop_error); drops are counted on */
};

typedef struct tn_journal_header { /* at offset 0; the rest of the TN_HEADER_BYTES is zero */
    char magic[8];
    uint32_t version, header_bytes, chunk_bytes, event_bytes;
    uint32_t flags;      /* TN_HF_*, atomic */
    uint32_t stop_error; /* tn_error, with TN_HF_STOPPED */
    uint64_t dropped_events, dropped_records; /* atomic */
    uint64_t tsc_hz;        /* ticks a second of the stamps; 0 = unknown, then use the two clock pairs */
    uint64_t tsc_start, mono_start_ns;  /* pair taken at creation: CLOCK_MONOTONIC */
    uint64_t real_start_ns;             /* CLOCK_REALTIME at creation */
    uint64_t tsc_last, mono_last_ns;    /* pair refreshed whenever a chunk is made */
    uint64_t random_id;     /* the 64 bits in the file's name */
    uint32_t pid, ppid;
    uint32_t api_count, shim_version;   /* 0xMMmmpp */
    uint32_t driver_version, runtime_version; /* as CUDA says (13000), 0 = not seen */
    char host[64], boot_id[40];
    char exe[1024];          /* /proc/self/exe */
    char cmdline[2048];      /* arguments separated by NUL, cut at the end */
    char exe_build_id[64];   /* hex, empty if none */
    char libtenure_path[512];
} tn_journal_header;

enum { TN_CHUNK_EVENTS = 1, TN_CHUNK_RECORDS = 2, TN_CHUNK_COUNTERS = 3 };

typedef struct tn_chunk_header {
    uint32_t magic, type;
    uint32_t thread;      /* journal's own thread number, from 1; 0 for shared chunks */
    uint32_t tid;         /* the kernel's, of the thread that made the chunk; a later one may have taken over */
    uint64_t sequence;    /* n-th chunk of that thread, from 0 */
    uint64_t tsc;         /* when the chunk was made */
    uint64_t reserved[4];
} tn_chunk_header;

/* One event, 64 bytes. `type` is stored last, with release order. Times are stamp counter values: an
 * allocation is stamped after the driver returned, a free before the driver was called. The order of events is
 * (tsc, thread, position). Fields without a meaning for a type are 0. docs/JOURNAL.md has the table of fields by type. */
typedef struct tn_event {
    uint64_t tsc;
    uint8_t type;       /* TN_EV_* */
    uint8_t kind;       /* TN_KIND_* for memory; else the type's own sub-code */
    uint8_t device;     /* ordinal in the process; TN_DEVICE_NONE if none */
    uint8_t phase;      /* TN_PHASE_* */
    uint16_t api;       /* the call that recorded it */
    uint16_t outer_api; /* the outermost hooked call, 0 if the same */
    uint32_t site;      /* TN_SITE_NONE, TN_SITE_NO_STACK or a SITE record's id */
    int32_t result;     /* the call's own return code */
    uint32_t ctx;       /* number of a CONTEXT record; 0 = none */
    uint32_t stream;    /* number of a STREAM record; 0 = not stream-ordered */
    uint64_t addr;      /* device or host address, or a handle */
    uint64_t bytes;     /* requested */
    uint64_t aux;
    uint64_t aux2;
} tn_event;

#define TN_DEVICE_NONE 255u
#define TN_SITE_NONE 0u
#define TN_SITE_NO_STACK 1u /* a call made from a signal handler inside a hook */
#define TN_SITE_FIRST 2u

typedef enum tn_event_type {
    TN_EV_NONE = 0,
    TN_EV_ALLOC,        /* kind; addr, bytes, aux = backed, aux2 = by kind, see docs/JOURNAL.md; result != 0: refused, addr is 0 or undefined */
    TN_EV_FREE,         /* kind; addr, bytes and aux = as known by the ledger (0 = unknown block), aux2 = site of the allocation;
                         * result != 0: refused, the block lives on */
    TN_EV_VMM_RESERVE,  /* addr, bytes */
    TN_EV_VMM_UNRESERVE,
    TN_EV_VMM_MAP,      /* addr, bytes, aux = handle, aux2 = offset */
    TN_EV_VMM_UNMAP,
    TN_EV_VMM_ACCESS,   /* addr, bytes, aux = location id of the first descriptor, aux2 = number of descriptors */
    TN_EV_WORK,         /* stream; bytes = calls merged into this event, aux = a stamp after the last and before the thread's next event, kind = TN_WORK_* of the first,
                         * aux2 = 1: a capture was active in the process, so the work may have been captured, not enqueued; addr, low half =
                         * so many of the calls are row `api`'s and in no counter, high half = the same for the row whose id is `result` */
    TN_EV_FIRST_WRITE,  /* addr = block start, bytes = block size, kind = TN_WRITE_*, aux2 = site of the allocation */
    TN_EV_WAIT,         /* kind = TN_WAIT_*; stream or addr (event); stamped after; aux = stamp when it began; bytes > 0: so many equal waits in a row, aux2 = stamp of the first */
    TN_EV_EVENT_RECORD, /* addr = event handle, stream; aux2 as for WORK */
    TN_EV_STREAM_WAIT,  /* addr = event handle, stream; aux2 as for WORK */
    TN_EV_EVENT_DESTROY, /* addr = event handle */
    TN_EV_CONTEXT,      /* kind = TN_CTX_*; ctx, addr = handle */
    TN_EV_STREAM,       /* kind = TN_STREAM_*; stream, addr = handle, aux = driver's stream id, bytes = flags, aux2 = priority */
    TN_EV_CAPTURE,      /* kind = TN_CAPTURE_*; stream, addr = graph (end), bytes = mode (exchange: the former one) */
    TN_EV_GRAPH,        /* kind = TN_GRAPH_*; addr = exec or graph, aux = graph (instantiate, update), bytes = nodes */
    TN_EV_GRAPH_NODE,   /* kind = TN_NODE_*; addr = exec (FREE: graph), bytes = start of the block held, aux = its bytes and
                         * aux2 = its site if known; UNREADABLE: aux2 = nodes that could not be read */
    TN_EV_QUERY,        /* memory query: bytes = free (0: only the total was asked), aux = total, aux2 = n-th query of this native site on this device, from 1 */
    TN_EV_EXPORT,       /* kind = TN_EXPORT_*; addr = pointer (may be inside a block), handle or pool; aux = handle type, size or handle got */
    TN_EV_PEER,         /* kind = TN_PEER_*; addr = peer context or pool, bytes = device that gets access (pool) */
    TN_EV_POOL,         /* kind = TN_POOL_*; addr = pool, bytes = value, aux = attribute; by kind, see docs/JOURNAL.md */
    TN_EV_ATTRIBUTE,    /* pointer attribute set: addr, bytes = attribute, aux = value */
    TN_EV_LIMIT,        /* bytes = value, aux = which */
    TN_EV_MODULE,       /* kind = TN_MODULE_* or TN_LIBRARY_*; addr = handle */
    TN_EV_FIRST_LAUNCH, /* addr = function, aux = module if known */
    TN_EV_CHARGE,       /* kind = TN_CHARGE_*; bytes = used before, aux = used after, aux2 = 1 if nothing else ran meanwhile */
    TN_EV_PHASE,        /* kind = new phase; aux = the former one, bytes = number of the swap that this begins or ends, else 0; aux2 = TN_CAUSE_* */
    TN_EV_MARK,         /* kind = TN_MARK_*; addr = id of a STRING record, aux = number of the range, aux2 = TN_CAUSE_* */
    TN_EV_THREAD,       /* kind 1 = first event of a thread, 2 = its end; aux = the kernel's thread id, aux2 = a serial that no other thread of the process has */
    TN_EV_ARENA,        /* memory of a tier of ours came (result 0) or went (result 1): addr, bytes, aux = backed, kind as of an ALLOC, aux2 = TN_ROUTE_* of the tier; ctx, device */
    TN_EV_CHECK,        /* what a debugging option found at the free of a served block, or at the process's end: kind = TN_CHECK_*; addr, bytes = the block, site = of its free; aux, low
                         * half = first byte behind its end that was overwritten, high half = how many are; aux2, low half = site of the allocation, high half = TN_CHECK_WAITED ...; ctx, device */
    TN_EV_HANDOUT,      /* a block of the program's own tiers (tiers/seam.h), which lies in memory that other events tell of: kind = TN_KIND_HANDED or HANDED_HOST; result 0: handed
                         * out at site, addr, bytes; 1: taken back, addr; 2: all of the allocator; ctx = number of the allocator, device */
    TN_EV_TYPE_COUNT
} tn_event_type;

/* Where a plan sent a request: the upper half of an ALLOC's aux2, for DEVICE, ASYNC and PINNED blocks and VMM handles (the lower half is the kind's own). A block
 * that a tier serves has aux 0: the tier's memory is told of by ARENA events. */
enum { TN_ROUTE_T1 = 1, TN_ROUTE_T2, TN_ROUTE_T3, TN_ROUTE_T4, TN_ROUTE_PACKED, TN_ROUTE_T5B, TN_ROUTE_TIERS }; /* 0: the driver's */
enum { TN_ROUTE_TOO_LARGE = 1, TN_ROUTE_TOO_MANY, TN_ROUTE_IN_THE_WAY, TN_ROUTE_NO_ROOM, TN_ROUTE_CAPTURE, TN_ROUTE_NOT_CLEAN, TN_ROUTE_CAUSES }; /* why a planned request was spilled */
enum {
    TN_ROUTE_TIER = 0xf,          /* mask: TN_ROUTE_T1 ... */
    TN_ROUTE_CAUSE_SHIFT = 4,     /* four bits: why not, 0 where it was not spilled */
    TN_ROUTE_PLANNED_NATIVE = 1 << 9, /* the plan leaves the site to the driver */
    TN_ROUTE_UNPLANNED = 1 << 10, /* there is a plan for the process and device, and the site is not in it */
    TN_ROUTE_WAITED = 1 << 11,    /* a wait was made before the block was handed out */
    TN_ROUTE_CANARY = 1 << 12,    /* a canary stands behind it */
    TN_ROUTE_NO_CANARY = 1 << 13  /* one was asked for, and there is nothing behind it, or a capture was active */
};
static inline uint32_t tn_route_of(uint64_t aux2) { return (uint32_t)(aux2 >> 32); }
static inline unsigned tn_route_tier(uint32_t route) { return route & TN_ROUTE_TIER; }
static inline unsigned tn_route_cause(uint32_t route) { return route >> TN_ROUTE_CAUSE_SHIFT & 0xf; }

/* What a VMM handle was asked for as: the lower half of its ALLOC's aux2. */
enum {
    TN_VMM_TYPES = 0xff,          /* mask: of the handles that it may be exported as */
    TN_VMM_COMPRESSION_SHIFT = 8, /* eight bits */
    TN_VMM_RDMA = 1 << 16,        /* reachable by GPUDirect RDMA */
    TN_VMM_USAGE_SHIFT = 17,      /* eight bits */
    TN_VMM_OTHER = 1 << 30        /* something that these do not say: not of a device, a tile pool, flags */
};

typedef enum tn_kind { /* what a pointer or handle is */
    TN_KIND_NONE = 0,
    TN_KIND_DEVICE,      /* plain device memory */
    TN_KIND_PITCH,       /* the same, allocated pitched */
    TN_KIND_ASYNC,       /* stream-ordered, default or current pool */
    TN_KIND_POOL,        /* stream-ordered, from an explicit pool */
    TN_KIND_MANAGED,
    TN_KIND_PINNED,
    TN_KIND_REGISTERED,  /* host memory of the program's own */
    TN_KIND_ARRAY,
    TN_KIND_MIPMAP,
    TN_KIND_VMM_HANDLE,  /* physical memory; addr is the handle */
    TN_KIND_GRAPH,       /* a graph's memory node */
    TN_KIND_IMPORTED,    /* IPC or external: listed, not owned */
    TN_KIND_HANDED,      /* a HANDOUT's in device memory */
    TN_KIND_HANDED_HOST, /* in pinned memory */
    TN_KIND_COUNT
} tn_kind;

enum { TN_PHASE_LOADING = 0, TN_PHASE_PLANNING = 1, TN_PHASE_SERVING = 2 };
enum { TN_CAUSE_CTL = 1, TN_CAUSE_API, TN_CAUSE_LINE, TN_CAUSE_PORT, TN_CAUSE_HTTP, TN_CAUSE_CALL, TN_CAUSE_QUIET, TN_CAUSE_NVTX, TN_CAUSE_SOAK };
enum { TN_MARK_POINT = 0, TN_MARK_RANGE_BEGIN, TN_MARK_RANGE_END };
enum { TN_WORK_KERNEL = 1, TN_WORK_COPY, TN_WORK_MEMSET, TN_WORK_GRAPH, TN_WORK_HOSTFN, TN_WORK_PREFETCH, TN_WORK_MEMOP };
enum { TN_WRITE_H2D = 1, TN_WRITE_D2D, TN_WRITE_MEMSET, TN_WRITE_H2H };
enum { TN_WAIT_CONTEXT = 1, TN_WAIT_STREAM, TN_WAIT_EVENT, TN_WAIT_STREAM_QUERY, TN_WAIT_EVENT_QUERY, TN_WAIT_COPY, TN_WAIT_FREE };
enum { TN_CTX_CREATE = 1, TN_CTX_PRIMARY_RETAIN, TN_CTX_PRIMARY_RELEASE, TN_CTX_RESET, TN_CTX_DESTROY, TN_CTX_SET, TN_CTX_PUSH, TN_CTX_POP, TN_CTX_SEEN };
enum { TN_STREAM_CREATE = 1, TN_STREAM_DESTROY, TN_STREAM_SEEN, TN_STREAM_LEGACY, TN_STREAM_PER_THREAD };
enum { TN_CAPTURE_BEGIN = 1, TN_CAPTURE_END, TN_CAPTURE_EXCHANGE_MODE };
enum { TN_GRAPH_CREATE = 1, TN_GRAPH_INSTANTIATE, TN_GRAPH_UPLOAD, TN_GRAPH_UPDATE, TN_GRAPH_EXEC_DESTROY, TN_GRAPH_DESTROY, TN_GRAPH_TRIM };
enum { TN_NODE_KERNEL = 1, TN_NODE_COPY, TN_NODE_MEMSET, TN_NODE_ALLOC, TN_NODE_FREE, TN_NODE_MEMOP, TN_NODE_UNREADABLE };
enum { TN_EXPORT_IPC = 1, TN_EXPORT_FD, TN_EXPORT_DMABUF, TN_EXPORT_POOL, TN_EXPORT_POOL_POINTER, TN_EXPORT_RETAIN };
enum { TN_PEER_ENABLE = 1, TN_PEER_DISABLE, TN_PEER_POOL_ACCESS };
enum { TN_POOL_CREATE = 1, TN_POOL_DESTROY, TN_POOL_TRIM, TN_POOL_GET, TN_POOL_SET, TN_POOL_DEVICE_SET };
enum { TN_MODULE_LOAD = 1, TN_MODULE_UNLOAD, TN_LIBRARY_LOAD, TN_LIBRARY_UNLOAD };
enum { TN_CHARGE_CONTEXT = 1, TN_CHARGE_MODULE, TN_CHARGE_LAUNCH, TN_CHARGE_STREAM, TN_CHARGE_EVENT, TN_CHARGE_GRAPH, TN_CHARGE_LIMIT,
       TN_CHARGE_MANAGED, TN_CHARGE_SYNC, TN_CHARGE_READING, TN_CHARGE_BASELINE, TN_CHARGE_POOL, TN_CHARGE_GRAPH_MEMORY,
       TN_CHARGE_FIRST_USE, TN_CHARGE_PEER, TN_CHARGE_NEIGHBOUR, TN_CHARGE_PINNED, TN_CHARGE_ARRAY, TN_CHARGE_NONE = 0 };
enum { TN_READ_PHASE = 1, TN_READ_MARK, TN_READ_EVENTS, TN_READ_TIME, TN_READ_END }; /* why a reading was taken */
enum { TN_CHECK_NO_CANARY = 0, TN_CHECK_INTACT, TN_CHECK_OVERWRITTEN, TN_CHECK_NOT_DONE /* neither looked at nor poisoned, as far as asked for */, TN_CHECK_KINDS };
enum { TN_CHECK_WAITED = 1 /* a wait was made for it */, TN_CHECK_POISONED = 2, TN_CHECK_AT_EXIT = 4, TN_CHECK_GUARDED = 8 /* of NOT_DONE: a canary was there */ };
enum { TN_CHARGE_QUIET_BEFORE = 1, TN_CHARGE_QUIET_AFTER = 2, TN_CHARGE_ALONE = 4, TN_CHARGE_NO_BEFORE = 8, TN_CHARGE_BLIND = 16 };

/* Records: variable length, rare, written under the journal's records lock. Strings inside are NUL-terminated. A later record
 * of the same type and id replaces the earlier one; ids are below 2^24. */
typedef struct tn_record {
    uint32_t type;   /* TN_REC_*, stored last with release order */
    uint32_t bytes;  /* payload bytes, without this header and the padding to 8 */
} tn_record;

enum {
    TN_REC_API = 1,  /* tn_rec_api + name */
    TN_REC_MODULE,   /* tn_rec_module + path */
    TN_REC_SITE,     /* tn_rec_site + frames */
    TN_REC_DEVICE,   /* tn_rec_device + name */
    TN_REC_STRING,   /* u32 id, then text */
    TN_REC_COVERAGE, /* tn_rec_coverage + text: what the shim could not reach, turned off, or found remarkable */
    TN_REC_PYTHON,   /* tn_rec_python + file + qualified name: a Python function */
    TN_REC_PYTHON_SITE, /* tn_rec_python_site + frames: a site with a Python part */
};

typedef struct tn_rec_api { uint16_t id; uint8_t level, klass; } tn_rec_api; /* level: TN_LEVEL_* */
enum { TN_LEVEL_RUNTIME = 1, TN_LEVEL_DRIVER, TN_LEVEL_NVML, TN_LEVEL_LOADER };
/* What an API does to memory, for the report's coverage section. */
enum { TN_CLASS_ALLOC = 1, TN_CLASS_FREE, TN_CLASS_QUERY, TN_CLASS_WORK, TN_CLASS_WAIT, TN_CLASS_ORDER, TN_CLASS_CHARGE, TN_CLASS_EXPORT, TN_CLASS_CONTEXT, TN_CLASS_GRAPH, TN_CLASS_ATTRIBUTE, TN_CLASS_RESOLVE };

typedef struct tn_rec_module {
    uint32_t id;
    uint8_t build_id_bytes;  /* 0: no build-id; then build_id holds an 8-byte hash of name, program headers and .eh_frame_hdr */
    uint8_t build_id[32];
    uint8_t hashed, jit, reserved; /* hashed: see above; jit: anonymous code */
    uint64_t base, end;      /* load base (subtract from an address to get `offset`) and end of the last segment */
} tn_rec_module;

typedef struct tn_rec_site {
    uint32_t id, frame_count;
    uint64_t key;            /* 64-bit hash of the chain; equal in every run of the same binaries */
    uint32_t outer_api, flags; /* TN_SF_* */
    struct tn_frame { uint32_t module, reserved; uint64_t offset; } frames[]; /* return addresses, deepest (nearest the call) first */
} tn_rec_site;
enum { TN_SF_CUT = 1 /* more than TN_FRAMES_MAX frames */, TN_SF_OWN_WALK = 2, TN_SF_CALLER_ONLY = 4,
       TN_SF_TOO_MANY = 8 /* beside the one before: there were as many sites as are kept, and it stands for all chains above its caller */ };

typedef struct tn_rec_python { uint32_t id, first_line; } tn_rec_python;
/* Its native frames are those of the SITE record `native`, its own id is from the same series. */
typedef struct tn_rec_python_site {
    uint32_t id, native;
    uint64_t key;            /* 64-bit hash of the Python frames; equal in every run of the same source text */
    uint32_t frame_count, flags; /* TN_PF_* */
    struct tn_python_frame { uint32_t function, line; } frames[]; /* innermost first; function: id of a PYTHON record; line 0: none */
} tn_rec_python_site;
enum { TN_PF_CUT = 1 /* more than TN_PYTHON_FRAMES_MAX frames */ };

typedef struct tn_rec_device { uint32_t ordinal; uint8_t uuid[16]; uint32_t reserved; uint64_t total_bytes; } tn_rec_device;
typedef struct tn_rec_coverage { uint32_t what, reserved; } tn_rec_coverage; /* what: TN_COV_* */
enum { TN_COV_BYPASS = 1, TN_COV_SECOND_LIBCUDA, TN_COV_NINTH_CUDART, TN_COV_NO_LIBUNWIND, TN_COV_TURNED_OFF, TN_COV_NOTE };

_Static_assert(sizeof(tn_event) == 64, "an event is one cache line");
_Static_assert(sizeof(tn_chunk_header) == 64, "a chunk header is one cache line");
_Static_assert(sizeof(tn_journal_header) <= TN_HEADER_BYTES, "the header fits its space");
_Static_assert(TN_COUNTER_SLOTS >= 4, "a counter chunk serves several threads");

#endif
