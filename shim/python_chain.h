/* One thread's chain of Python frames turned into a site: walked, then found among the chains that this thread has seen or read anew. The cache
 * belongs to its thread, which alone reads and writes it; everything else is in python_places.h. */
#ifndef TENURE_SHIM_PYTHON_CHAIN_H
#define TENURE_SHIM_PYTHON_CHAIN_H

#include <stdint.h>

#include "shim/python_layout.h"
#include "shim/python_places.h"
#include "shim/python_read.h"

#define TN_PY_SETS 32u /* chains kept a thread: 32 sets of 4 */
#define TN_PY_WAYS 4u
#define TN_PY_TABLE_MAX 49152u /* bytes of a line table that are looked at; lines beyond are unknown */

/* A frame as it stands: what it runs, where, and whose it is. */
typedef struct tn_py_frame {
    uint64_t code, instr; /* instr: pointer, or index as the frame has it */
    uint32_t owner;
} tn_py_frame;

/* A code object as it was when it was read. */
typedef struct tn_py_code {
    uint64_t file, name, table; /* its objects */
    const tn_py_place *place;
    uint32_t first_line, version;
    uint8_t is_strict;          /* contents have to be compared, the version does not decide */
    uint8_t counts;             /* 0: the frame was not complete */
} tn_py_code;

typedef struct tn_py_seen {
    uint64_t signature;
    uint32_t native, site;
    uint32_t n, cut;
    tn_py_frame frames[TN_PYTHON_FRAMES_MAX];
    tn_py_code codes[TN_PYTHON_FRAMES_MAX];
} tn_py_seen;

typedef struct tn_py_cache {
    tn_py_seen seen[TN_PY_SETS][TN_PY_WAYS];
    uint8_t next[TN_PY_SETS]; /* which way is given up next */
    tn_py_pages pages;
    tn_py_text file, name;
    uint8_t table[TN_PY_TABLE_MAX];
} tn_py_cache;

typedef struct tn_py_call { /* one look-up */
    const tn_py *py;
    tn_py_cache *cache;
    uint64_t frame;      /* the innermost, as tn_py_innermost() found it */
    int is_main;         /* the thread runs in the main interpreter */
    tn_py_reader reader;
} tn_py_call;

/* Reads the thread's state: 1, and c->frame (0: none) and c->is_main are filled; 0: it cannot be read. What it says is true only if the interpreter's
 * end had not begun afterwards. */
int tn_py_innermost(tn_py_call *c, uint64_t state);

/* 1: *site is the site; 0: no Python frame, or a bound was met; -1: what was read is no chain of frames. */
int tn_py_chain_site(tn_py_call *c, tn_journal *j, uint32_t native, uint32_t *site);

#endif
