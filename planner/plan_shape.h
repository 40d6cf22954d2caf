/* The plan file's keys as tables, which its reader and its writer go through alike, so that what one writes the other knows. Constant; any
 * thread. */
#ifndef TENURE_PLANNER_PLAN_SHAPE_H
#define TENURE_PLANNER_PLAN_SHAPE_H

#include <stddef.h>

typedef enum tn_shape_type {
    TN_SHAPE_U64 = 0,
    TN_SHAPE_U32,
    TN_SHAPE_U8,
    TN_SHAPE_FLAG,       /* int or uint8_t by size: false or true */
    TN_SHAPE_TEXT,       /* const char * */
    TN_SHAPE_KEY,        /* uint64_t as 16 hexadecimal digits */
    TN_SHAPE_DISCIPLINE,
    TN_SHAPE_FAMILY,     /* TN_FAMILY_COUNT is "other" */
    TN_SHAPE_PHASE,
    TN_SHAPE_FINENESS,   /* uint32_t: a number, "one" or "each size" */
    TN_SHAPE_OBJECT,     /* embedded */
    TN_SHAPE_ARRAY,      /* pointer and count: of objects of `shape` */
    TN_SHAPE_U64S, TN_SHAPE_KEYS, TN_SHAPE_TEXTS /* pointer and count */
} tn_shape_type;

enum {
    TN_SHAPE_OPTIONAL = 1, /* left out where zero, NULL, or empty */
    TN_SHAPE_IF_KNOWN = 2, /* an object whose first member, an int, says whether it is there */
    TN_SHAPE_NAMES = 4     /* for people alone: what serves from a plan has no need of it */
};

/* No shape has more fields, no C struct of an array's elements more bytes. */
#define TN_SHAPE_FIELDS 64
#define TN_SHAPE_BYTES 512

enum { TN_SHAPE_PHASES = 3 };
extern const char *const tn_shape_phases[TN_SHAPE_PHASES]; /* as files name them, by TN_PHASE_* */

struct tn_shape;
typedef struct tn_shape_field {
    const char *name;
    tn_shape_type type;
    unsigned flags;
    size_t offset, count_offset, bytes; /* bytes: of a FLAG */
    const struct tn_shape *shape;
} tn_shape_field;

typedef struct tn_shape {
    const tn_shape_field *fields;
    size_t count, bytes; /* bytes: of the C struct */
    int one_line;        /* written on one line */
} tn_shape;

extern const tn_shape tn_plan_shape; /* of tn_plan; `schema` stands before its fields */

#endif
