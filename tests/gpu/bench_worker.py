"""What the Python workers of bench_torch_pairs.py and bench_rate.py share: a gate before CUDA is started, and the word that serving begins."""
import ctypes
import json
import sys

SERVING = 2  # TENURE_SERVING of tenure.h


def gate():
    """Says that the imports are done and waits for a line, so that many workers can import side by side and start CUDA one by one."""
    print(json.dumps({"gate": 1}), flush=True)
    if not sys.stdin.readline():
        sys.exit(0)


def serving():
    """tenure.h's function; nothing where the process does not run under Tenure."""
    try:
        phase = ctypes.CDLL(None).tenure_v1_phase
    except AttributeError:
        return
    phase.argtypes, phase.restype = [ctypes.c_int], ctypes.c_int
    phase(SERVING)
