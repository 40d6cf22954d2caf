"""PyTorch: a transformer block's worth of products, a convolution, a CUDA graph, the pool of streams. The allocator is whichever
PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF) names. Prints the allocator's name and sums."""
import torch

from marks import mark

torch.set_grad_enabled(False)
torch.manual_seed(3)
print(torch.cuda.get_allocator_backend())
weights = [torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(24)]
mark("weights")
x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
for w in weights:
    x = torch.nn.functional.gelu(x @ w) * 0.05
print(float(x.float().abs().sum()) > 0)
mark("products")
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3)).cuda()
print(net(torch.randn(8, 3, 128, 128, device="cuda")).shape)
mark("convolution")
streams = [torch.cuda.Stream() for _ in range(64)] + [torch.cuda.Stream(priority=-1) for _ in range(64)]
for s in streams[::8]:
    with torch.cuda.stream(s):
        torch.ones(100000, device="cuda").sum()
torch.cuda.synchronize()
mark("streams")
static = torch.randn(32, 1024, device="cuda", dtype=torch.bfloat16)
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        torch.nn.functional.gelu(static @ weights[0])
torch.cuda.current_stream().wait_stream(side)
with torch.cuda.graph(graph):
    out = torch.nn.functional.gelu(static @ weights[0])
mark("captured")
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
mark("replayed")
del weights
torch.cuda.empty_cache()
mark("weights dropped")
for _ in range(200):
    y = net(torch.randn(4, 3, 64, 64, device="cuda"))
torch.cuda.synchronize()
mark("end")
print(y.shape)
