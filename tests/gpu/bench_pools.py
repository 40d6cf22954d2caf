#!/usr/bin/env python3
"""What a pair of allocation and free costs in PyTorch's caching allocator and in CuPy's pool, through their Python functions: JSON lines as
bench_serve's. The cost of the Python calls themselves is measured with a function that does nothing and printed as a case of its own; what is
not installed is said in a line and is no failure. usage: bench_pools.py TURNS"""
import json
import statistics
import sys
import time

PAIRS = 2000
SIZES = {"256 B": 256, "64 KiB": 64 << 10, "2 MiB": 2 << 20, "64 MiB": 64 << 20}


def line(case, clock, samples):
    samples = sorted(samples)
    at = lambda q: samples[min(len(samples) - 1, int(q * len(samples)))]
    print(json.dumps({"group": "serve", "case": case, "unit": "ns a pair", "clock": clock, "n": len(samples), "min": samples[0], "p10": at(0.1),
                      "median": statistics.median(samples), "p90": at(0.9), "max": samples[-1], "mean": statistics.fmean(samples)}), flush=True)


def measure(case, turns, pair, end):
    pair(PAIRS)
    cpu, wall = [], []
    for _ in range(turns):
        began = time.perf_counter_ns(), time.thread_time_ns()
        pair(PAIRS)
        ended = time.perf_counter_ns(), time.thread_time_ns()
        wall.append((ended[0] - began[0]) / PAIRS)
        cpu.append((ended[1] - began[1]) / PAIRS)
        end()
    line(case, "cpu", cpu)
    line(case, "wall", wall)


def pairs_of(allocate, free):
    def run(n):
        for _ in range(n):
            free(allocate())
    return run


def nothing():
    pass


def main():
    turns = int(sys.argv[1])
    one = 1
    measure("Python calls alone", turns, pairs_of(one.__int__, one.__eq__), nothing)
    try:
        import torch
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        from torch.cuda import caching_allocator_alloc as allocate, caching_allocator_delete as free
        for name, size in SIZES.items():
            measure("PyTorch, caching_allocator_alloc and _delete, " + name, turns, pairs_of(lambda: allocate(size, 0), free), torch.cuda.synchronize)
    except ImportError as error:
        print(f"bench_pools.py: {error}", file=sys.stderr)
    try:
        import cupy
        pool = cupy.cuda.MemoryPool()
        for name, size in SIZES.items():
            # The block goes back where its last reference does.
            measure("CuPy, MemoryPool.malloc, " + name, turns, pairs_of(lambda: pool.malloc(size), id), cupy.cuda.runtime.deviceSynchronize)
    except ImportError as error:
        print(f"bench_pools.py: {error}", file=sys.stderr)


main()
