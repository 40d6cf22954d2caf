"""A small server on PyTorch: loads, marks itself by NVTX, serves rounds, and waits. Steered by its arguments, as tests/phases/prog_serve.c:
load, serve:N (rounds that allocate a tensor of another size each, so that new segments come), sleep:MS, print:TEXT, idle:MS."""
import sys
import time

import torch

kept = []


def load():
    torch.cuda.nvtx.range_push("load")
    kept.append(torch.ones(256, 1 << 20, dtype=torch.float32, device="cuda"))
    torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    torch.cuda.nvtx.mark("weights loaded")


def serve(rounds):
    for i in range(rounds):
        torch.cuda.nvtx.range_push("round")
        torch.empty((32 + 8 * i) << 20, dtype=torch.uint8, device="cuda").fill_(i)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.nvtx.range_pop()


for word in sys.argv[1:]:
    what, _, value = word.partition(":")
    if what == "load":
        load()
    elif what == "serve":
        serve(int(value))
    elif what in ("sleep", "idle"):
        time.sleep(int(value) / 1000)
    elif what == "print":
        print(value, flush=True)
    else:
        sys.exit(93)
