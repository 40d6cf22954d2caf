"""CUDA through ctypes: the caller of every function is libffi, its errors are the runtime's own, and names come from dlsym."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.13")
cuda = ctypes.CDLL("libcuda.so.1")
TOO_MUCH = ctypes.c_size_t(4 << 40)


def obs(key, *values):
    print(key + "=" + ",".join(str(v) for v in values), flush=True)


def last():
    return "last=%d" % cudart.cudaGetLastError()


p = ctypes.c_void_p(0x1230)
d = ctypes.c_uint64(0x1230)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
obs("init", cuda.cuInit(0))
obs("malloc", cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20)), bool(p.value), last())
obs("memset", cudart.cudaMemset(p, 7, ctypes.c_size_t(1 << 20)), last())
host = (ctypes.c_ubyte * 100)()
obs("copy", cudart.cudaMemcpy(host, p, ctypes.c_size_t(100), 2), set(host) == {7}, last())
obs("query", cudart.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)), free.value < total.value, last())
obs("query.null", cudart.cudaMemGetInfo(None, None), last())
obs("driver.alloc", cuda.cuMemAlloc_v2(ctypes.byref(d), ctypes.c_size_t(100)))
obs("driver.free", cuda.cuMemFree_v2(d))
obs("driver.free.again", cuda.cuMemFree_v2(d))
obs("refused", cudart.cudaMalloc(ctypes.byref(d), TOO_MUCH), d.value, cudart.cudaPeekAtLastError())
obs("refused.last", last(), last())
obs("driver.refused", cuda.cuMemAlloc_v2(ctypes.byref(d), TOO_MUCH), last())
obs("free", cudart.cudaFree(p), last())
obs("free.again", cudart.cudaFree(p), last())
obs("attributes", hasattr(cudart, "cudaMallocAsync"), hasattr(cudart, "cudaNoSuchFunction"), hasattr(cuda, "cuMemAlloc_v9"))
obs("process", hasattr(ctypes.CDLL(None), "cudaMalloc"), hasattr(ctypes.CDLL(None), "cudnnCreate"))

# A Python function called by the runtime, which allocates in turn.
HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
called = []
callback = HOST(lambda arg: called.append(arg))
obs("launch", cudart.cudaLaunchHostFunc(None, callback, ctypes.c_void_p(5)), last())
obs("sync", cudart.cudaDeviceSynchronize(), called, last())

blocks = []
bad = 0
for i in range(2000):
    q = ctypes.c_void_p()
    bad += cudart.cudaMalloc(ctypes.byref(q), ctypes.c_size_t(64 + i % 512)) != 0
    blocks.append(q)
for q in blocks:
    bad += cudart.cudaFree(q) != 0
obs("many", bad, last())
sys.exit(0)
