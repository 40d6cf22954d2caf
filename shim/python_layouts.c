#include "shim/python_layout.h"

#include <stddef.h>

/* From the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1 and 3.13.0, 64-bit; tests/python/layout_check.c compiled against any of
 * them says the same. The structs are public or fixed for the life of a minor version. */
static const tn_py_layout layouts[] = {
    {.minor = 8, .lines = TN_PY_LNOTAB, .instr_unit = 1, .state_interp = 16, .state_frame = 24, .frame_previous = 24, .frame_code = 32,
     .frame_instr = 104, .code_first_line = 40, .code_file = 104, .code_name = 112, .code_table = 120, .ascii_bytes = 48, .compact_bytes = 72,
     .runtime_head = 32, .runtime_main = 40},
    {.minor = 9, .lines = TN_PY_LNOTAB, .instr_unit = 1, .state_interp = 16, .state_frame = 24, .frame_previous = 24, .frame_code = 32,
     .frame_instr = 104, .code_first_line = 40, .code_file = 104, .code_name = 112, .code_table = 120, .ascii_bytes = 48, .compact_bytes = 72,
     .runtime_head = 32, .runtime_main = 40},
    {.minor = 10, .lines = TN_PY_RANGES, .instr_unit = 2, .state_interp = 16, .state_frame = 24, .frame_previous = 24, .frame_code = 32,
     .frame_instr = 96, .code_first_line = 40, .code_file = 104, .code_name = 112, .code_table = 120, .ascii_bytes = 48, .compact_bytes = 72,
     .runtime_head = 32, .runtime_main = 40},
    {.minor = 11, .lines = TN_PY_LOCATIONS, .state_interp = 16, .state_frame = 56, .has_cframe = 1, .cframe_current = 8, .frame_previous = 48,
     .frame_code = 32, .frame_instr = 56, .frame_owner = 69, .code_first_line = 72, .code_file = 112, .code_name = 128, .code_table = 136,
     .code_start = 184, .code_traceable = 168, .ascii_bytes = 48, .compact_bytes = 72, .runtime_head = 40, .runtime_main = 48},
    {.minor = 12, .lines = TN_PY_LOCATIONS, .state_interp = 16, .state_frame = 56, .has_cframe = 1, .cframe_current = 0, .has_version = 1,
     .frame_previous = 8, .frame_code = 0, .frame_instr = 56, .frame_owner = 70, .code_first_line = 68, .code_file = 112, .code_name = 128,
     .code_table = 136, .code_start = 192, .code_traceable = 176, .code_version = 92, .ascii_bytes = 40, .compact_bytes = 56,
     .runtime_head = 40, .runtime_main = 48},
    {.minor = 13, .lines = TN_PY_LOCATIONS, .state_interp = 16, .state_frame = 72, .has_version = 1, .frame_previous = 8, .frame_code = 0,
     .frame_instr = 56, .frame_owner = 70, .code_first_line = 68, .code_file = 112, .code_name = 128, .code_table = 136, .code_start = 200,
     .code_traceable = 184, .code_version = 92, .ascii_bytes = 40, .compact_bytes = 56, .runtime_head = 632, .runtime_main = 640},
};

const tn_py_layout *tn_py_layout_of(unsigned minor)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].minor == minor) return &layouts[i];
    return NULL;
}
