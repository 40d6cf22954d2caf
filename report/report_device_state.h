/* The watcher's own state, shared by the files that make it: lines, the model of blocks, readings. Nothing outside report_device*.c
 * includes this. Owned by tn_report.devices; one thread. */
#ifndef TENURE_REPORT_REPORT_DEVICE_STATE_H
#define TENURE_REPORT_REPORT_DEVICE_STATE_H

#include "report/report_device.h"

#define TN_PAGE_BYTES 2097152 /* what the driver takes device memory in */

typedef struct tn_shared_page { /* 2 MiB that small blocks of one process share */
    uint64_t page;    /* address >> 21; 0: free element */
    uint32_t process, place;
    uint32_t blocks;  /* alive in it; 0: a tombstone */
    uint32_t line;    /* the TN_LINE_SHARED line that its rest is on */
    int64_t bytes;    /* of its blocks */
} tn_shared_page;

typedef struct tn_pending { uint8_t kind; uint32_t site, process; int64_t bytes; } tn_pending;
typedef struct tn_past { uint64_t ns; int64_t modelled; } tn_past; /* the model's sum from then on */
#define TN_PASTS 65536u

typedef struct tn_device_state { /* of one place */
    tn_device_account account;
    size_t line_capacity;
    uint32_t *line_slots; size_t line_mask; /* lines that are no row's, by what they are of: open addressing */
    uint64_t generation;        /* raised at every quiet reading */
    uint64_t *line_generation;  /* whose `undo` belongs to the present one */
    int64_t kinds[TN_LINE_KINDS];
    int64_t modelled, charged;
    int64_t residual;           /* at the last quiet reading */
    uint32_t async_site, graph_site; /* who allocated last in that way */
    uint64_t managed_blocks;
    int64_t managed_bytes; /* as asked for */
    uint32_t managed_site; /* who allocated managed memory last */
    int64_t small_arrays; /* bytes */
    tn_pending *pending; size_t pending_count, pending_capacity;
    tn_past *pasts; size_t past_next, past_count;
    int64_t pool_reserved, pool_used;
    int64_t neighbour_sum;
} tn_device_state;

typedef struct tn_pool { uint64_t handle; uint32_t process, place; int64_t reserved, used; } tn_pool; /* handle 0: the graphs' */
/* All stream-ordered pools of one process on one device. What the driver says is used and no block of ours explains is nobody's: it stays out
 * of the lines, and so among what is unattributed. */
typedef struct tn_pools {
    uint32_t process, place;
    int64_t reserved, used;
    int64_t live;     /* bytes of our blocks */
    int64_t lost;     /* of blocks ended by a plain free: used for ever, by the driver's count */
    int64_t unknown;  /* used less live and lost, at the last reading */
    uint32_t line;    /* TN_LINE_POOL_SLACK */
} tn_pools;

typedef struct tn_devices {
    tn_device_state *each; size_t count; /* by place; grows with report->places */
    uint32_t *line_of_row; size_t row_capacity; /* TN_NO_INDEX: none yet */
    const char *label; uint32_t label_process; /* of the mark or phase whose reading is to come */
    tn_shared_page *pages; size_t page_mask, page_used;
    tn_pool *pools; size_t pool_count;
    tn_pools *groups; size_t group_count;
} tn_devices;

/* The state of a place, made at first need; NULL without memory. */
tn_device_state *tn_device_state_of(tn_report *report, uint32_t place);
/* The line of that kind, site (and row, process, handle), made at first need; TN_NO_INDEX without memory. */
uint32_t tn_device_line(tn_device_state *d, uint8_t kind, uint32_t site, uint32_t row, uint32_t process, uint64_t handle);
/* Adds bytes to a line and to the sums it stands in. */
void tn_device_add(tn_device_state *d, uint32_t line, int64_t bytes);
static inline int tn_line_is_modelled(uint8_t kind) { return kind <= TN_LINE_GRAPH_MEMORY; }
/* The model's sum as it was at that time. */
int64_t tn_device_modelled_at(const tn_device_state *d, uint64_t ns);
void tn_device_remember(tn_device_state *d, uint64_t ns);

/* report_device_model.c: a block that came or went; what pools and graphs hold; the end of a process. */
tn_error tn_device_change(const tn_moment *moment, const tn_change *change);
tn_error tn_device_held(const tn_moment *moment, tn_device_state *d, uint32_t place);

/* report_device_readings.c */
tn_error tn_device_charge(const tn_moment *moment, tn_device_state *d);
void tn_device_process_end(const tn_moment *moment);

#endif
