"""Marks from Python: tenure.h's function by ctypes; nothing where the process is not recorded."""
import ctypes

_whole = ctypes.CDLL(None)
try:
    _mark = _whole.tenure_v1_mark
    _mark.argtypes = [ctypes.c_char_p]
except AttributeError:
    _mark = None


def mark(text):
    if _mark:
        _mark(text.encode())
