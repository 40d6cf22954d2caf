"""Times decode steps of a small transformer in PyTorch; bench_torch_pairs.py compares bare and recorded ones.

Builds its models, prints {"ready": version, "variants": names}, and then answers each line VARIANT-NUMBER ASIDE on standard input with
one JSON object: the microseconds of every step and a digest of the tokens. A variant is a batch size, with or without
a CUDA graph. ASIDE is 1 or 0 for a library that can step aside (libtenure_aside.so), whose switch is then set so for these steps. The model
is written with plain torch operators and has a KV cache; every allocation goes through PyTorch's
default caching allocator. Eager steps launch more than a hundred kernels each, so the host is what they wait for, and what
stands in front of every call is seen as fully as it can be.

With --gate it says {"gate": 1} before it starts CUDA and waits for a line, and says by tenure.h when it serves.

usage: bench_torch_decode.py [--steps N] [--warmup N] [--layers N] [--device cuda|cpu] [--gate]
"""
import argparse
import ctypes
import json
import math
import sys
import time

import torch

import bench_worker

HIDDEN, HEADS, VOCABULARY = 512, 8, 4096
HEAD = HIDDEN // HEADS


class Layer:
    """One transformer layer: attention over the cache, then a gated feed-forward part."""

    def __init__(self, batch, length, device, dtype):
        def weights(rows, columns):
            return torch.randn(rows, columns, device=device, dtype=dtype) / math.sqrt(rows)

        self.qkv, self.out = weights(HIDDEN, 3 * HIDDEN), weights(HIDDEN, HIDDEN)
        self.gate, self.up, self.down = weights(HIDDEN, 4 * HIDDEN), weights(HIDDEN, 4 * HIDDEN), weights(4 * HIDDEN, HIDDEN)
        self.scale1 = torch.ones(HIDDEN, device=device, dtype=dtype)
        self.scale2 = torch.ones(HIDDEN, device=device, dtype=dtype)
        self.keys = torch.zeros(batch, HEADS, length, HEAD, device=device, dtype=dtype)
        self.values = torch.zeros_like(self.keys)

    def step(self, x, position, mask):
        batch = x.shape[0]
        h = normed(x) * self.scale1
        q, k, v = (h @ self.qkv).view(batch, 3, HEADS, 1, HEAD).unbind(1)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        scores = (q @ self.keys.transpose(-1, -2)) / math.sqrt(HEAD) + mask
        attended = (torch.softmax(scores.float(), -1).to(x.dtype) @ self.values).reshape(batch, HIDDEN)
        x = x + attended @ self.out
        h = normed(x) * self.scale2
        return x + (torch.nn.functional.silu(h @ self.gate) * (h @ self.up)) @ self.down


def normed(x):
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype)


class Model:
    """Decodes greedily, one token a step, up to `length` tokens. All that changes from step to step is in tensors."""

    def __init__(self, layers, batch, length, device, dtype):
        self.embedding = torch.randn(VOCABULARY, HIDDEN, device=device, dtype=dtype)
        self.layers = [Layer(batch, length, device, dtype) for _ in range(layers)]
        self.token = torch.zeros(batch, device=device, dtype=torch.long)
        self.position = torch.zeros(1, device=device, dtype=torch.long)
        self.slots = torch.arange(length, device=device)
        # Tensors, since a number on the host would be copied to the device at each step, and a capture allows no such copy.
        self.shown = torch.zeros(length, device=device, dtype=dtype)
        self.hidden = torch.full((length,), float("-inf"), device=device, dtype=dtype)

    def step(self):
        mask = torch.where(self.slots <= self.position, self.shown, self.hidden)
        x = self.embedding[self.token]
        for layer in self.layers:
            x = layer.step(x, self.position, mask)
        self.token.copy_((normed(x) @ self.embedding.t()).argmax(-1))
        self.position.add_(1)

    def restart(self):
        self.token.zero_()
        self.position.zero_()


def timed(model, step, steps):
    """Microseconds of each step, with the token read back as an engine does that streams its answer; and the tokens' digest."""
    model.restart()
    model.token.tolist()  # waits for it
    times, digest = [], 0
    for _ in range(steps):
        began = time.perf_counter_ns()
        step()
        token = model.token.tolist()
        times.append((time.perf_counter_ns() - began) / 1e3)
        digest = (digest * 1000003 + token[0]) % (1 << 61)
    return times, digest


def captured(model):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model.step()
    return graph


def switch():
    """The switch of a library that can step aside, or None."""
    try:
        return ctypes.c_int.in_dll(ctypes.CDLL(None), "tenure_bench_aside")
    except ValueError:
        return None


def build(options):
    """The variants: name -> (model, what makes one step of it)."""
    variants = {}
    on_gpu = options.device == "cuda"
    length = max(options.steps, options.warmup) + 8
    for batch in (1, 8):
        model = Model(options.layers, batch, length, options.device, torch.float16 if on_gpu else torch.float32)
        variants[f"eager, batch {batch}"] = (model, model.step)
        if on_gpu:
            graph = captured(model)
            variants[f"graph, batch {batch}"] = (model, graph.replay)
    return variants


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gate", action="store_true")
    options = parser.parse_args()
    if options.gate:
        bench_worker.gate()
    torch.manual_seed(1)
    if options.device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    with torch.inference_mode():
        variants = build(options)
        for model, step in variants.values():
            timed(model, step, options.warmup)
        if options.gate:
            bench_worker.serving()
        print(json.dumps({"ready": torch.__version__, "variants": list(variants)}), flush=True)
        aside = switch()
        for line in sys.stdin:
            number, value = line.split()
            if aside is not None:
                aside.value = int(value)
            times, digest = timed(*list(variants.values())[int(number)], options.steps)
            print(json.dumps({"times": times, "digest": digest}), flush=True)


if __name__ == "__main__":
    main()
