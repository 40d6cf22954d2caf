"""CuPy: its own pool, the device's stream-ordered pool, raw calls. `python3 cupy_pools.py pool|async|raw`."""
import sys

import cupy as cp

from marks import mark

how = sys.argv[1]
if how == "async":
    cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)
elif how == "raw":
    cp.cuda.set_allocator(cp.cuda.memory._malloc)
a = cp.arange(1 << 22, dtype=cp.float32)
mark("first array")
b = [cp.ones(1000 * (i + 1), dtype=cp.float32) * i for i in range(40)]
mark("small arrays")
x = cp.random.RandomState(1).rand(1024, 1024, dtype=cp.float32)
print(float((x @ x).sum()) > 0)
mark("product")
print(float(sum(float(v.sum()) for v in b)))
raw = [cp.cuda.runtime.malloc(300 * 1024 + i * 70000) for i in range(30)]
cp.cuda.Device().synchronize()
mark("raw blocks")
for p in raw:
    cp.cuda.runtime.free(p)
del b
if how == "pool":
    cp.get_default_memory_pool().free_all_blocks()
cp.cuda.Device().synchronize()
mark("end")
