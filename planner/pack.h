/* Offsets for buffers whose lifetimes are known (dynamic storage allocation): no two that are alive together may share
 * an address, and the whole is to be as low as possible. tn_pack() is pure: the same buffers give the same bytes in any
 * order and in any process; effort is limited in steps, never in time. The caller owns every array; nothing is kept
 * between calls, so any number of threads may pack at once. */
#ifndef TENURE_PLANNER_PACK_H
#define TENURE_PLANNER_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tn_pack_error {
    TN_PACK_OK = 0,
    TN_PACK_E_NOMEM,     /* the host has no memory left */
    TN_PACK_E_LIFETIME,  /* a lifetime ends before it begins */
    TN_PACK_E_GAP,       /* a gap is empty, outside its buffer's lifetime, or overlaps or touches the one before */
    TN_PACK_E_ALIGNMENT, /* an alignment is too large (2^40 at most) */
    TN_PACK_E_DUPLICATE, /* two buffers have one id */
    TN_PACK_E_CONFLICT,  /* a conflict names a buffer that is not there, or a buffer and itself */
    TN_PACK_E_OVERFLOW,  /* sizes that add up to more than 2^62 bytes */
    TN_PACK_E_LIMIT,     /* more than 2^31 buffers, gaps or conflicts */
    TN_PACK_ERROR_COUNT
} tn_pack_error;

/* A short English phrase; never NULL. */
const char *tn_pack_error_text(tn_pack_error error);

#define TN_PACK_NO_HINT UINT64_MAX

/* Part of a lifetime, half-open, in which the buffer is not alive. */
typedef struct tn_pack_gap {
    uint64_t lower, upper;
} tn_pack_gap;

typedef struct tn_pack_buffer {
    uint64_t id;             /* unique; decides between buffers that are equal otherwise */
    uint64_t lower, upper;   /* alive in [lower, upper), in any unit; an empty lifetime conflicts with nothing */
    uint64_t size;           /* bytes; 0 conflicts with nothing */
    uint64_t alignment;      /* offsets are multiples of it; 0 is taken as 1, any other number is permitted */
    uint64_t hint;           /* an offset to try first (a plan of before), or TN_PACK_NO_HINT */
    const tn_pack_gap *gaps; /* sorted, inside the lifetime, not touching one another; NULL for none */
    size_t gap_count;
} tn_pack_buffer;

/* Two indexes into the array of buffers that must not share an address. */
typedef struct tn_pack_conflict {
    uint32_t a, b;
} tn_pack_conflict;

/* Who found a placement. The first ones are greedy members, each run once. */
typedef enum tn_pack_member {
    TN_PACK_HINTS,        /* at the hints where that is free, else the lowest hole */
    TN_PACK_BY_SIZE,      /* lowest hole, largest first */
    TN_PACK_BY_AREA,      /* size times lifetime */
    TN_PACK_BY_LIFETIME,  /* longest lived first */
    TN_PACK_BY_PRESSURE,  /* those alive at the fullest moment first, then by size */
    TN_PACK_BY_BIRTH,     /* in order of birth, lowest hole */
    TN_PACK_ONLINE,       /* in order of birth, tightest hole, as an allocator that sees no future would */
    TN_PACK_BY_CROWD,     /* those with the most bytes beside them first */
    TN_PACK_IMPROVED,     /* local search from the best of the above */
    TN_PACK_EXACT,        /* branch and bound */
    TN_PACK_MEMBER_COUNT
} tn_pack_member;

const char *tn_pack_member_name(tn_pack_member member);

typedef struct tn_pack_options {
    uint64_t steps;       /* the most work to do; 0 is TN_PACK_DEFAULT_STEPS. Up to 4096 buffers all greedy members run in any case */
    uint64_t lower_bound; /* a bound that the caller can prove, 0 where he has none */
    bool greedy_only;     /* neither search: the best member, quickly */
} tn_pack_options;

/* About ten seconds at most of one slow core. */
#define TN_PACK_DEFAULT_STEPS 4000000000u

typedef struct tn_pack_result {
    uint64_t height;      /* max of offset + size, bytes */
    uint64_t lower_bound; /* no placement is lower than this */
    bool proved;          /* height is the least possible */
    tn_pack_member winner;
    struct {
        bool ran;        /* false: not asked for, or not worth its steps */
        uint64_t height; /* with its placement alone */
    } members[TN_PACK_MEMBER_COUNT];
    uint64_t steps;   /* used */
    size_t parts;     /* groups of buffers that have no conflict with any other group */
    size_t conflicts; /* pairs that conflict; SIZE_MAX where there are too many to list */
} tn_pack_result;

/* Places `count` buffers by their lifetimes. offsets[i] belongs to buffers[i]. On an error nothing is written but
 * *culprit (may be NULL): the index of the first buffer that is wrong. */
tn_pack_error tn_pack(const tn_pack_buffer *buffers, size_t count, const tn_pack_options *options, uint64_t *offsets,
                      tn_pack_result *result, size_t *culprit) __attribute__((warn_unused_result));

/* The same for conflicts that the caller knows and no single clock explains (several journals): lifetimes and gaps of the
 * buffers are not read, except lower and upper for orders of placing. Pairs may repeat and stand either way round. */
tn_pack_error tn_pack_graph(const tn_pack_buffer *buffers, size_t count, const tn_pack_conflict *conflicts,
                            size_t conflict_count, const tn_pack_options *options, uint64_t *offsets,
                            tn_pack_result *result, size_t *culprit) __attribute__((warn_unused_result));

#endif
