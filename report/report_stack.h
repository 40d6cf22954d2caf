/* The stack of a site as lines for people: inlined functions beside the others, runs of frames of one layer as one line.
 * A tn_stack is the caller's; its strings belong to the report. One thread. */
#ifndef TENURE_REPORT_REPORT_STACK_H
#define TENURE_REPORT_REPORT_STACK_H

#include "report/report_model.h"

typedef struct tn_stack_line {
    const char *module;   /* file name, or NULL: not known */
    const char *path;     /* NULL: no file */
    const char *function; /* demangled; NULL: unknown */
    const char *file;     /* of the source; NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint64_t offset;      /* of the return address in the module */
    uint64_t delta;       /* of the return address in the function; 0 of an inlined one */
    uint8_t jit, inlined;
    tn_symbol_state state, line_state; /* why function, or file and line, are not known */
    const char *layer;    /* one that the line belongs to, or NULL */
    uint32_t frames;      /* folded: how many lines this one stands for, else 1 */
} tn_stack_line;

#define TN_STACK_LINES 256 /* of TN_FRAMES_MAX frames with what is inlined in them */

typedef struct tn_stack {
    tn_stack_line lines[TN_STACK_LINES];
    uint32_t count;
} tn_stack;

/* Has the site's frames looked up with the next that are asked for. */
void tn_stack_want(tn_report *report, uint32_t site);
/* Innermost first. `fold`: a run of lines of one layer becomes one line with `layer` and `frames`, the other fields of which
 * are the first one's. No lines where there is no stack. */
void tn_stack_of(tn_report *report, uint32_t site, int fold, tn_stack *out);
/* The line that tells a person where this is: the innermost in no layer, else the innermost. NULL without a stack. */
const tn_stack_line *tn_stack_where(const tn_stack *stack);
/* The site in a few words, in at most `size` - 1 bytes, for tables: "load_weights (load.c:123) in engine",
 * "engine+0x1234", "no stack"; of Python callers the innermost one outside of installed packages. Not cleaned. Returns `out`. */
char *tn_stack_words(tn_report *report, uint32_t site, char *out, size_t size);

#endif
