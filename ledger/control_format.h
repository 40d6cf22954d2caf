/* The control block: one small file beside each journal, mapped by the recorded process and by whoever commands it, so that a phase or
 * a mark reaches a running process without a signal. The process owns the file and the fields that say what it took; commands are
 * put in by one writer at a time, who holds an exclusive flock on the file. docs/JOURNAL.md is the published description. */
#ifndef TENURE_LEDGER_CONTROL_FORMAT_H
#define TENURE_LEDGER_CONTROL_FORMAT_H

#include <stdint.h>

#define TN_CONTROL_MAGIC "TENUREC1"
#define TN_CONTROL_VERSION 1u
#define TN_CONTROL_SUFFIX ".tnc" /* the journal's name otherwise */
#define TN_CONTROL_BYTES 16384u
#define TN_CONTROL_SLOTS 63u
#define TN_CONTROL_TEXT 224u /* of a mark, with its NUL; longer ones are cut by the writer */

enum { TN_COMMAND_PHASE = 1, TN_COMMAND_MARK = 2 };
enum { TN_ATTENTION_COMMAND = 1u << 0, TN_ATTENTION_CALLS = 1u << 1, TN_ATTENTION_READING = 1u << 2 };

typedef struct tn_control_slot { /* 256 bytes */
    uint64_t tsc;      /* when the command was given: the writer's own reading of the stamp counter */
    uint32_t kind;     /* TN_COMMAND_* */
    uint32_t value;    /* the phase */
    uint32_t cause;    /* TN_CAUSE_* */
    uint32_t reserved[3];
    char text[TN_CONTROL_TEXT];
} tn_control_slot;

typedef struct tn_control {
    char magic[8];     /* stored last */
    uint32_t version, bytes;
    uint32_t pid, slots;
    uint64_t random_id; /* the journal's */
    uint64_t reserved[4];
    /* A line of its own: read at every hooked call. */
    uint32_t attention; /* TN_ATTENTION_*, atomic: not 0 where the process has to look */
    uint32_t reserved_line[15];
    /* The process's, atomic. */
    uint32_t phase;     /* TN_PHASE_* as it stands */
    uint32_t swaps;     /* how often Serving was re-entered as Planning */
    uint64_t taken;     /* commands taken so far */
    uint64_t refused;   /* phase commands among them that would have gone backwards */
    uint64_t serving_allocations; /* driver allocations counted while Serving */
    uint64_t serving_repeated;    /* those of them that were not the first use of their site */
    uint64_t process_reserved[3];
    /* The writers', under the flock; read by the process. */
    uint64_t posted;    /* commands put in so far; command n stands in slot n % slots */
    uint64_t lost;      /* commands that found no free slot */
    uint64_t writer_reserved[6];
    tn_control_slot slot[TN_CONTROL_SLOTS];
} tn_control;

_Static_assert(sizeof(tn_control_slot) == 256, "four cache lines");
_Static_assert(sizeof(tn_control) == 256 + 63 * 256, "a head and the slots");
_Static_assert(sizeof(tn_control) == TN_CONTROL_BYTES, "whole pages");
_Static_assert(__builtin_offsetof(tn_control, attention) == 64, "on a line of its own");
_Static_assert(__builtin_offsetof(tn_control, phase) == 128, "on another");

#endif
