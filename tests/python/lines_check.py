"""Compares python_lines.c with the interpreter's own look-up, for every instruction of every function in the modules of the standard library that
can be compiled. Usage: lines_check.py LIBRARY FORMAT; prints how many were compared, and exits 1 if any differs."""
import ctypes
import glob
import os
import sys
import sysconfig

library = ctypes.CDLL(sys.argv[1])
library.tn_py_line.restype = ctypes.c_uint32
library.tn_py_line.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_int64, ctypes.POINTER(ctypes.c_size_t)]
own = ctypes.pythonapi.PyCode_Addr2Line
own.argtypes = [ctypes.py_object, ctypes.c_int]
form = int(sys.argv[2])
compared = different = 0


def look(code):
    global compared, different
    table = code.co_lnotab if form == 1 else code.co_linetable
    used = ctypes.c_size_t()
    for at in range(0, len(code.co_code), 2):
        got = library.tn_py_line(form, table, len(table), code.co_firstlineno, at, ctypes.byref(used))
        # The part that decided is enough, except where the table's end did.
        again = got if used.value == len(table) else library.tn_py_line(
            form, table[:used.value] + b"\xff" * 8, used.value + 8, code.co_firstlineno, at, ctypes.byref(used))
        wanted = max(own(code, at), 0)
        compared += 1
        if got != wanted or again != wanted:
            different += 1
            if different < 10:
                print(code.co_filename, code.co_name, at, got, again, wanted)
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            look(constant)


for path in sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:150]:
    try:
        with open(path, "rb") as f:
            look(compile(f.read(), path, "exec", dont_inherit=True))
    except (SyntaxError, OSError):
        pass
print(compared, "instructions,", different, "differences")
sys.exit(1 if different or not compared else 0)
