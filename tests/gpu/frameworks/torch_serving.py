"""A small serving loop in PyTorch: weights are loaded, "serving" is printed, then requests of different lengths are answered, each with a prefill and a
few decode steps whose key and value tensors grow by a row a step. Prints the digest of each answer: whoever stands in front of the
allocations must not change it. What the loop takes a request, in milliseconds, goes to standard error.

GRAPHS=1 captures the decode step's matrix products as a CUDA graph. REQUESTS=N is how many requests are answered (default 24).

With `--worker N` it is a worker of ../bench_rate.py: it waits at the gate, loads, and answers each line with requests 1 to N: one JSON object
with the microseconds a request and the digest of the answers."""
import hashlib
import json
import os
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cuda.enable_cudnn_sdp(False)
torch.backends.cuda.enable_flash_sdp(False)
torch.backends.cuda.enable_mem_efficient_sdp(False)

WIDTH, LAYERS, STEPS = 1024, 6, 12
REQUESTS = int(os.environ.get("REQUESTS", "24"))
GRAPHS = os.environ.get("GRAPHS") == "1"


def load():
    layers = []
    for i in range(LAYERS):
        host = torch.arange(WIDTH * WIDTH * 4, dtype=torch.float32).reshape(4, WIDTH, WIDTH)
        host = torch.sin(host * (i + 1) * 0.001) * 0.03
        pinned = host.pin_memory()
        layers.append([w.to("cuda", non_blocking=True) for w in pinned])
        torch.cuda.synchronize()
    return layers


def attend(q, k, v):
    return torch.softmax(q @ k.t() * 0.03, dim=-1) @ v


class Step:
    """The products of one token, eager or as a graph over buffers that stay."""

    def __init__(self, layers):
        self.layers = layers
        self.x = torch.zeros(1, WIDTH, device="cuda")
        self.graph = None
        if GRAPHS:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.products()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = self.products()

    def products(self):
        h = self.x
        for wq, wk, wv, wo in self.layers:
            h = torch.tanh(h @ wq + h @ wk) @ wo + h @ wv
        return h

    def __call__(self, x):
        self.x.copy_(x)
        if self.graph is None:
            return self.products()
        self.graph.replay()
        return self.out.clone()


def answer(layers, step, number):
    length = 32 + (number * 37) % 160
    x = torch.cos(torch.arange(length * WIDTH, device="cuda", dtype=torch.float32) * (number + 1) * 0.01).reshape(length, WIDTH)
    caches = []
    for wq, wk, wv, wo in layers:
        k, v = x @ wk, x @ wv
        caches.append((k, v))
        x = attend(x @ wq, k, v) @ wo
    token = x[-1:]
    digest = hashlib.sha256()
    for _ in range(STEPS):
        token = step(token)
        grown = []
        for (wq, wk, wv, wo), (k, v) in zip(layers, caches):
            k, v = torch.cat([k, token @ wk]), torch.cat([v, token @ wv])
            token = attend(token @ wq, k, v) @ wo
            grown.append((k, v))
        caches = grown
        digest.update(token.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def worker(requests):
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import bench_worker

    bench_worker.gate()
    layers = load()
    step = Step(layers)

    def whole():
        begin = time.perf_counter_ns()
        answers = [answer(layers, step, number) for number in range(1, requests + 1)]
        return {"times": [(time.perf_counter_ns() - begin) / 1e3 / requests], "digest": " ".join(answers)}

    whole()
    bench_worker.serving()
    print(json.dumps({"ready": torch.__version__, "variants": ["requests"]}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(whole()), flush=True)


def main():
    layers = load()
    step = Step(layers)
    print("warm", answer(layers, step, 0), flush=True)
    print("serving", flush=True)
    times = []
    for number in range(1, REQUESTS + 1):
        begin = time.perf_counter()
        print(number, answer(layers, step, number), flush=True)
        times.append(time.perf_counter() - begin)
    times.sort()
    print(f"request_ms median={times[len(times) // 2] * 1e3:.3f} least={times[0] * 1e3:.3f}", file=sys.stderr)


if sys.argv[1:2] == ["--worker"]:
    worker(int(sys.argv[2]))
else:
    main()
