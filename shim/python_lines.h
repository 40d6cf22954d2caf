/* From an instruction to its source line, by the table that a code object carries. Pure functions over a copy of the table; any thread. */
#ifndef TENURE_SHIM_PYTHON_LINES_H
#define TENURE_SHIM_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The line of the instruction `at` bytes after the first one (negative: none was executed yet), 0 where the table gives none. `format` is
 * TN_PY_*. *used receives how many of the table's bytes decided: a table that begins with the same ones says the same. */
uint32_t tn_py_line(int format, const uint8_t *table, size_t bytes, uint32_t first_line, int64_t at, size_t *used);

#endif
