"""Python threads that allocate and fail side by side: each has its own last error and its own results; and an exit handler."""
import atexit
import ctypes
import threading

cudart = ctypes.CDLL("libcudart.so.13")
block = ctypes.c_void_p()


def obs(key, *values):
    print(key + "=" + ",".join(str(v) for v in values), flush=True)


def at_end():
    obs("atexit.free", cudart.cudaFree(block), cudart.cudaGetLastError())


results = {}
gate = threading.Barrier(8)


def work(number):
    bad = 0
    gate.wait()
    for i in range(300):
        p = ctypes.c_void_p()
        bad += cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(100 + number)) != 0
        bad += cudart.cudaFree(p) != 0
    refused = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 << 40)) if number % 2 else 0
    gate.wait()
    results[number] = (bad, refused, cudart.cudaGetLastError(), cudart.cudaGetLastError())


class Deleted:
    """Frees from a destructor, as tensors do."""

    freed = []

    def __init__(self):
        self.p = ctypes.c_void_p()
        self.code = cudart.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(256))

    def __del__(self):
        Deleted.freed.append(cudart.cudaFree(self.p))


atexit.register(at_end)
obs("malloc", cudart.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20)))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for n in sorted(results):
    obs("thread.%d" % n, *results[n])
some = [Deleted() for _ in range(50)]
obs("made", sum(s.code for s in some))
del some
obs("deleted", len(Deleted.freed), sum(Deleted.freed))
try:
    keep = Deleted()
    raise ValueError("past a block")
except ValueError as e:
    del keep
    obs("raised", e, len(Deleted.freed))
obs("last", cudart.cudaGetLastError())
