/* Where CPython keeps what a traceback shows: offsets by minor version, and the functions of the interpreter that is loaded, found in the
 * loaded objects' own tables (no dlsym, so the program's dlerror stays as it is; nothing is ever linked). A tn_py is a value: whoever fills one
 * owns it. Any thread may call; no lock of ours. */
#ifndef TENURE_SHIM_PYTHON_LAYOUT_H
#define TENURE_SHIM_PYTHON_LAYOUT_H

#include <stdint.h>

/* How a code object tells lines from instructions (python_lines.c). */
enum { TN_PY_LNOTAB = 1 /* 3.8, 3.9 */, TN_PY_RANGES /* 3.10 */, TN_PY_LOCATIONS /* from 3.11 */ };

/* All in bytes; 0 where a version has no such field, except for frame_code and cframe_current, which may be first. */
typedef struct tn_py_layout {
    uint16_t minor;         /* of 3.x */
    uint8_t lines;          /* TN_PY_* */
    uint8_t instr_unit;     /* 0: the frame holds a pointer to its instruction; else a 32-bit index in units of so many bytes */
    uint16_t state_interp, state_frame; /* PyThreadState: its interpreter; its innermost frame or, where has_cframe, the way to it */
    uint8_t has_cframe, has_version;
    uint16_t cframe_current;
    uint16_t frame_previous, frame_code, frame_instr, frame_owner; /* owner from 3.11: a byte */
    uint16_t code_first_line, code_file, code_name, code_table; /* name: the qualified one from 3.11 */
    uint16_t code_start, code_traceable, code_version; /* first instruction; index of the first one that counts as executing; from 3.12 a serial */
    uint16_t ascii_bytes, compact_bytes; /* sizes of the two kinds of string head */
    uint32_t runtime_head, runtime_main; /* _PyRuntime: newest and main interpreter */
} tn_py_layout;

#define TN_PY_OB_TYPE 8u   /* the same in all builds that are read */
#define TN_PY_OWNER_GENERATOR 1u
#define TN_PY_OWNER_FOREIGN 3u /* from here on: frames of the interpreter's own, which are nobody's code */
#define TN_PY_STRING_LENGTH 16u
#define TN_PY_STRING_STATE 32u
#define TN_PY_BYTES_LENGTH 16u
#define TN_PY_BYTES_TEXT 32u

typedef struct tn_py {
    void *(*this_thread)(void); /* PyGILState_GetThisThreadState: a look-up of thread-specific data */
    int (*is_initialized)(void), (*is_finalizing)(void);
    uint64_t runtime, code_type, string_type, bytes_type; /* addresses */
    int permanent;  /* the program or a library it was linked with: no dlclose takes it away */
    char version[24];
    tn_py_layout at;
} tn_py;

/* 1: *out is the interpreter of this process, with a layout. 0: there is none. TN_PY_LATER: a library of one is loaded that has not begun. -1: there is one that is not read; `why` then holds a sentence. In a
 * forked child the objects may not be listed (modules.h): there only the program and what it was linked with are known, from before. */
#define TN_PY_LATER 2
int tn_py_find(tn_py *out, char *why, unsigned why_bytes);
/* How many objects were ever loaded: while it stays the same, no interpreter has come. 0 in a forked child. */
uint64_t tn_py_loads(void);
/* The recorded layout of 3.`minor`, up to 3.13; NULL where there is none. For tests, too. */
const tn_py_layout *tn_py_layout_of(unsigned minor);

#endif
