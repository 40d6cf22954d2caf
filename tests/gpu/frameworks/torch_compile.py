"""torch.compile: a small MLP compiled by Inductor, then once more with its CUDA graphs. Prints digests that are the same in
every run; what a fused kernel rounds differently from eager PyTorch does not matter here, only that two runs agree."""
import hashlib

import torch

torch.manual_seed(5)
torch.set_grad_enabled(False)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 64)).cuda()
batches = [torch.randn(32, 256).cuda() for _ in range(4)]


def digest(tensor):
    return hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()[:32]


for mode in ("default", "reduce-overhead"):
    torch.compiler.reset()
    compiled = torch.compile(net, mode=mode)
    for step, batch in enumerate(batches):
        torch.compiler.cudagraph_mark_step_begin()
        print(f"{mode}.{step}={digest(compiled(batch))}", flush=True)
