"""Triton: one kernel compiled at run time, on PyTorch's memory."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


n = 100000
x = torch.arange(n, device="cuda", dtype=torch.float32)
y = x * 2
o = torch.empty_like(x)
add[(triton.cdiv(n, 1024),)](x, y, o, n, B=1024)
print(o.sum().item())
