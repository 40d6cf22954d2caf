"""Python functions that call the same PyTorch operator: two call torch.empty, two call torch.mm, from the main thread, a thread, a generator and a
method. Each asks for a size that no other does and that the caching allocator takes from the driver at once, so that each has an allocation
of its own. Prints for each function the frames that a traceback shows, innermost first.

With --time N the loop that asks for N small tensors is timed instead: under PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync each
of them is a call of the driver. Prints nanoseconds a tensor, the least of five rounds."""
import sys
import threading
import time
import traceback

import torch

kept = []
MIB = 1 << 20


def say(name):
    frames = traceback.extract_stack()[:-1]
    print(name, " ".join(f"{f.name}:{f.lineno}" for f in reversed(frames[-3:])), flush=True)


def empty_one():
    say("empty_one"); kept.append(torch.empty(40 * MIB, dtype=torch.uint8, device="cuda"))


def empty_two():
    say("empty_two"); kept.append(torch.empty(60 * MIB, dtype=torch.uint8, device="cuda"))


def mm_one(a, b):
    say("mm_one"); kept.append(torch.mm(a, b))


def mm_two(a, b):
    say("mm_two"); kept.append(torch.mm(a, b))


class Layer(torch.nn.Module):
    def forward(self, mib):
        say("forward"); return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def generated():
    say("generated"); yield torch.empty(140 * MIB, dtype=torch.uint8, device="cuda")


def in_thread():
    say("in_thread"); kept.append(torch.empty(160 * MIB, dtype=torch.uint8, device="cuda"))


def callers():
    a = torch.ones(4096, 4096, device="cuda")
    small = torch.ones(64, 64, device="cuda")
    torch.mm(small, small)  # what cuBLAS takes for itself comes here
    empty_one()
    empty_two()
    mm_one(a, a)
    mm_two(a, a)
    layer = Layer()
    kept.append(layer(100))
    kept.extend(generated())
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    torch.cuda.synchronize()


def small_tensors(n):
    for _ in range(n):
        torch.empty(1024, device="cuda")


def timed(n):
    best = None
    small_tensors(n)
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        small_tensors(n)
        took = (time.perf_counter_ns() - begin) / n
        best = took if best is None or took < best else best
    print(f"{best:.0f}")


if len(sys.argv) == 3 and sys.argv[1] == "--time":
    timed(int(sys.argv[2]))
else:
    callers()
