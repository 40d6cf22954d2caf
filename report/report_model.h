/* The report's model: what loading and replay fill in and what text and JSON print. Owned by one tn_report
 * and used by one thread. Indices instead of pointers wherever an array grows; every array stays in an
 * order that depends on the journals alone. */
#ifndef TENURE_REPORT_REPORT_MODEL_H
#define TENURE_REPORT_REPORT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "ledger/journal_reader.h"
#include "report/report.h"
#include "report/report_symbol.h"

/* Counts and bytes of one line. The peaks of a line that sums others are peaks of the sum. During the replay live_* is what
 * is there at that moment and left_* what ended processes never freed; after it live_* holds both. */
typedef struct tn_stat {
    uint64_t allocs, frees, refused; /* calls: granted; freed; answered with an error */
    uint64_t live_requested, peak_requested, live_backed, peak_backed;
    uint64_t left_requested, left_backed;
    uint64_t at_peak, at_low; /* backed: at its place's peak; at the place's lowest point after its largest free-down */
    uint32_t peak_epoch, low_epoch; /* of the moments for which those hold, while replaying */
} tn_stat;

/* The moments of one place that all its lines are asked for. */
typedef struct tn_moments {
    uint32_t peak_epoch, low_epoch; /* how often each was moved on; 0: there was none */
    uint64_t peak, peak_ns;         /* backed bytes in sum; ns as tn_moment.ns */
    uint64_t high, drop, low_ns;    /* the largest fall of the sum by frees, and when it ended */
} tn_moments;

/* Where memory is: places[TN_PLACE_HOST] is the host, the others are devices. */
#define TN_PLACE_HOST 0u
typedef struct tn_place {
    uint8_t uuid[16];
    int has_uuid;
    uint32_t ordinal;        /* in the first process that named it; TN_DEVICE_NONE = unknown */
    const char *name;        /* NULL = no DEVICE record */
    uint64_t total_bytes;    /* 0 = unknown */
    tn_stat total;           /* the kinds for which tn_kind_is_summed(), host memory at the host alone */
    tn_stat kinds[TN_KIND_COUNT];
    tn_stat *apis;           /* [api * TN_KIND_COUNT + kind]; NULL while nothing has happened here, as the next two */
    tn_stat *owners;         /* [owner], of the kinds in the total; they add up to it */
    tn_stat phases[TN_PHASE_SERVING + 1]; /* by the phase in which a block came; they add up to the total, too */
    tn_moments moments;      /* of the total */
    uint64_t ended_with_context; /* blocks that a reset or a destroyed context ended */
} tn_place;

typedef struct tn_api { /* one name, over all processes */
    const char *name;
    uint8_t level, klass;
    uint64_t resolved, calls;
} tn_api;

typedef struct tn_site { /* one key (native and Python), over all processes */
    uint64_t key;
    const tn_rec_python_site *python; /* NULL: no Python part */
    const tn_rec_site *record; /* NULL: no stack */
    uint32_t process;          /* whose module table the record's frames refer to */
    uint32_t owner;            /* index in owners */
    uint32_t first_row;        /* chain through tn_row.next; TN_NO_INDEX ends it */
    uint8_t tier;              /* no call's: the memory of that tier of a plan (TN_ROUTE_*), for each a site of its own; 0: a site as usual */
} tn_site;

#define TN_NO_INDEX UINT32_MAX
#define TN_ROW_APIS 6
typedef struct tn_row { /* what the report prints as a site: key, kind and place */
    uint32_t site, place, next;
    uint8_t kind, api_count;
    uint32_t apis[TN_ROW_APIS]; /* the calls it allocated by, in order of appearance */
    tn_stat stat;
} tn_row;

typedef struct tn_process {
    tn_reader *reader;
    char *journal;         /* file name */
    uint32_t *api_of;      /* the journal's api id -> index in apis, or TN_NO_INDEX */
    uint32_t *site_of;     /* the journal's site id -> index in sites, or TN_NO_INDEX */
    uint32_t *place_of;    /* [256] ordinal -> index in places, or TN_NO_INDEX */
    uint32_t api_end, site_end;
    uint64_t start_ns;     /* on the clock on which the processes of the run are merged */
    uint64_t ran_ns;       /* from its first CUDA call to its journal's last sign of life; whole once the replay is over */
    int ended;             /* it is known to be gone, and its memory with it */
    uint64_t frees_unknown;  /* frees of blocks that the journal does not know */
    uint64_t frees_failed;   /* frees that the driver refused: the block stays */
    uint64_t replaced;       /* addresses handed out again although their free was never seen */
} tn_process;

/* Where the replay stopped short of the end: --at. */
typedef struct tn_stop {
    const char *wanted;  /* a mark's text or number, or a phase; NULL: the end */
    int reached;
    uint32_t number;     /* of the mark, from 1; 0: a phase */
    const char *text;    /* the mark's, or the phase's name */
    uint64_t ns;
    char seen[512];      /* marks met so far, for who asked for another */
    uint32_t marks;      /* how many */
} tn_stop;

struct tn_report {
    char *path;
    json_t *run;             /* run.json, or NULL */
    tn_process *processes; size_t process_count;
    tn_place *places; size_t place_count;
    tn_api *apis; size_t api_count;
    tn_site *sites; size_t site_count;
    uint32_t tier_sites;       /* index of the site of T1's memory; those of the other tiers follow */
    const char **owners; size_t owner_count; /* names (report_owner.h) */
    tn_row *rows; size_t row_count;
    uint32_t *row_order;     /* indices of rows in the order of printing, once the replay is over */
    char **warnings; size_t warning_count;
    uint64_t dropped_events;
    tn_stat reserved, mapped; /* address ranges, not physical memory */
    tn_symbols *symbols;
    struct tn_steps *steps;     /* report_steps.h */
    struct tn_serving *serving; /* report_serving.h */
    struct tn_ranges *ranges;   /* report_ranges.h */
    struct tn_growth *growth;   /* report_growth.h */
    struct tn_refusals *refusals; /* report_refusals.h */
    struct tn_routing *routing; /* report_routing.h */
    struct tn_checks *checks;   /* report_checks.h */
    char **texts; size_t text_count; /* what no journal holds */
    tn_stop stop;
    struct tn_devices *devices; /* report_device.h; NULL before the replay */
    int unread;    /* a journal, or a part of one, could not be read */
    int unwritten; /* a process dropped something or stopped recording */
};

/* In the device's sum: everything that takes the device's memory and belongs to this program. Imported
 * memory is another's, a graph's own memory is shown apart, host memory is at the host. */
static inline int tn_kind_is_summed(uint8_t kind)
{
    return kind != TN_KIND_NONE && kind != TN_KIND_GRAPH && kind < TN_KIND_IMPORTED; /* what comes after it is other memory's */
}
static inline int tn_kind_is_host(uint8_t kind)
{
    return kind == TN_KIND_PINNED || kind == TN_KIND_REGISTERED || kind == TN_KIND_HANDED_HOST;
}

/* The site of a tier's memory; tier 1 to TN_ROUTE_TIERS - 1. */
static inline uint32_t tn_tier_site(const tn_report *report, unsigned tier)
{
    return report->tier_sites + tier - 1;
}

/* Replays all journals of a loaded report, in one order, into places, rows, phases and counters. */
TN_MUST_USE tn_error tn_replay(tn_report *report);
/* Its last step: live bytes as printed, rows in the order of printing. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_replay_finish(tn_report *report);

/* Appends one warning (printf); silently keeps none when memory is out, which loading reports by itself. */
void tn_report_warn(tn_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
