/* Prints the offsets of python_layout.c as the headers have them, for the interpreter that it is compiled against; and, built with -DRECORDED, those that are
 * recorded for the minor version given. The test compares the two. Fields of versions that have none are 0. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOW(name, value) printf(#name "=%ld\n", (long)(value))

#ifdef RECORDED
#include "shim/python_layout.h"

int main(int argc, char **argv)
{
    const tn_py_layout *l = argc == 2 ? tn_py_layout_of((unsigned)atoi(argv[1])) : NULL;
    if (!l) return 1;
#define FIELD(name) SHOW(name, l->name)
    FIELD(state_interp); FIELD(state_frame); FIELD(has_cframe); FIELD(cframe_current); FIELD(frame_previous); FIELD(frame_code); FIELD(frame_instr);
    FIELD(frame_owner); FIELD(code_first_line); FIELD(code_file); FIELD(code_name); FIELD(code_table); FIELD(code_start); FIELD(code_traceable);
    FIELD(has_version); FIELD(code_version); FIELD(ascii_bytes); FIELD(compact_bytes); FIELD(runtime_head); FIELD(runtime_main);
    SHOW(ob_type, TN_PY_OB_TYPE); SHOW(string_length, TN_PY_STRING_LENGTH); SHOW(string_state, TN_PY_STRING_STATE);
    SHOW(bytes_length, TN_PY_BYTES_LENGTH); SHOW(bytes_text, TN_PY_BYTES_TEXT);
    return 0;
}
#else
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#if PY_VERSION_HEX < 0x03090000
#include "internal/pycore_pystate.h"
#else
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#define HAS_INTERPRETER_FRAMES 1
#endif

#define STATE(field) offsetof(PyThreadState, field)
#define CODE(field) offsetof(PyCodeObject, field)

int main(void)
{
    SHOW(state_interp, STATE(interp));
#if PY_VERSION_HEX >= 0x030d0000
    SHOW(state_frame, STATE(current_frame)); SHOW(has_cframe, 0); SHOW(cframe_current, 0);
#elif HAS_INTERPRETER_FRAMES
    SHOW(state_frame, STATE(cframe)); SHOW(has_cframe, 1); SHOW(cframe_current, offsetof(_PyCFrame, current_frame));
#else
    SHOW(state_frame, STATE(frame)); SHOW(has_cframe, 0); SHOW(cframe_current, 0);
#endif
#if HAS_INTERPRETER_FRAMES
#define FRAME(field) offsetof(_PyInterpreterFrame, field)
    SHOW(frame_previous, FRAME(previous));
#if PY_VERSION_HEX >= 0x030d0000
    SHOW(frame_code, FRAME(f_executable)); SHOW(frame_instr, FRAME(instr_ptr));
#else
    SHOW(frame_code, FRAME(f_code)); SHOW(frame_instr, FRAME(prev_instr));
#endif
    SHOW(frame_owner, FRAME(owner));
#else
#define FRAME(field) offsetof(PyFrameObject, field)
    SHOW(frame_previous, FRAME(f_back)); SHOW(frame_code, FRAME(f_code)); SHOW(frame_instr, FRAME(f_lasti)); SHOW(frame_owner, 0);
#endif
    SHOW(code_first_line, CODE(co_firstlineno)); SHOW(code_file, CODE(co_filename));
#if HAS_INTERPRETER_FRAMES
    SHOW(code_name, CODE(co_qualname)); SHOW(code_table, CODE(co_linetable)); SHOW(code_start, CODE(co_code_adaptive));
    SHOW(code_traceable, CODE(_co_firsttraceable));
#else
    SHOW(code_name, CODE(co_name));
#if PY_VERSION_HEX >= 0x030a0000
    SHOW(code_table, CODE(co_linetable));
#else
    SHOW(code_table, CODE(co_lnotab));
#endif
    SHOW(code_start, 0); SHOW(code_traceable, 0);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    SHOW(has_version, 1); SHOW(code_version, CODE(co_version));
#else
    SHOW(has_version, 0); SHOW(code_version, 0);
#endif
    SHOW(ascii_bytes, sizeof(PyASCIIObject)); SHOW(compact_bytes, sizeof(PyCompactUnicodeObject));
    SHOW(runtime_head, offsetof(_PyRuntimeState, interpreters.head)); SHOW(runtime_main, offsetof(_PyRuntimeState, interpreters.main));
    SHOW(ob_type, offsetof(PyObject, ob_type)); SHOW(string_length, offsetof(PyASCIIObject, length)); SHOW(string_state, offsetof(PyASCIIObject, state));
    SHOW(bytes_length, offsetof(PyVarObject, ob_size)); SHOW(bytes_text, offsetof(PyBytesObject, ob_sval));
    return 0;
}
#endif
