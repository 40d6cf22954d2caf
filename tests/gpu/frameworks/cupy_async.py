"""CuPy on the device's stream-ordered pool, and with raw allocations that no pool keeps. Prints sums that are the same in every run."""
import cupy as cp

cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)
a = cp.arange(1 << 20, dtype=cp.float32)
print(float((a * 3).sum()))
with cp.cuda.Stream() as stream:
    print(float(cp.ones((256, 256)).sum()))
    stream.synchronize()
del a
cp.cuda.set_allocator(cp.cuda.memory._malloc)
print(float(cp.arange(4096, dtype=cp.int64).sum()))
raw = cp.cuda.runtime.malloc(1 << 20)
cp.cuda.runtime.memset(raw, 1, 1 << 20)
cp.cuda.runtime.free(raw)
