/* What was read of code objects, kept by content and never freed: functions (file, qualified name, first line), places (a function and a line in it),
 * and the sites of the journal that have a Python part. Equal content is one entry, so that memory grows with the program's text and not with
 * its run; each kind has a bound. One lock, taken in a miss only, held over table work and journal records, never around the loader. */
#ifndef TENURE_SHIM_PYTHON_PLACES_H
#define TENURE_SHIM_PYTHON_PLACES_H

#include <stdint.h>

#include "ledger/journal.h"

#define TN_PY_TEXT_MAX 1024u /* bytes of a file's name or a function's, as kept in memory; longer ones are cut */

/* A string object's contents: `bytes` of it, of `length` characters. */
typedef struct tn_py_text {
    uint64_t length;
    uint32_t state;  /* the object's word of flags: how wide characters are */
    uint16_t bytes;
    uint8_t raw[TN_PY_TEXT_MAX];
} tn_py_text;

/* A string of the same kind, kept. */
typedef struct tn_py_string {
    uint64_t length;
    uint32_t state;
    uint16_t bytes;
    uint8_t raw[];
} tn_py_string;

typedef struct tn_py_function {
    struct tn_py_function *next;
    uint64_t hash;
    uint64_t key; /* equal in every run, wherever the file is installed */
    uint32_t id, first_line;
    const tn_py_string *file, *name;
} tn_py_function;

typedef struct tn_py_place {
    struct tn_py_place *next;
    uint64_t hash, table_length;
    const tn_py_function *function;
    uint32_t line, used;
    uint8_t table[]; /* the part of the line table that decided, `used` bytes */
} tn_py_place;

/* The bits of a string's flags that say how it is stored; the others (interned or not) change in its life. */
uint32_t tn_py_string_kind(uint32_t state);

/* NULL: a bound was met or no memory is left. A new function's PYTHON record is written before it is returned. */
const tn_py_function *tn_py_function_of(tn_journal *j, const tn_py_text *file, const tn_py_text *name, uint32_t first_line);
const tn_py_place *tn_py_place_of(const tn_py_function *f, uint32_t line, uint64_t table_length, const uint8_t *table, uint32_t used);

/* The site of this native site called from these places, innermost first; its PYTHON_SITE record is written before a new id is returned.
 * `native` itself where a bound was met or no memory is left. */
uint32_t tn_py_site_of(tn_journal *j, uint32_t native, const tn_py_place *const *places, uint32_t n, int cut);
/* Whether a bound was met, so that some sites have no Python part. */
int tn_py_full(void);

#endif
