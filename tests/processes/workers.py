"""Workers of an interpreter: os.fork before CUDA starts, multiprocessing by fork and by spawn, a pool, a subprocess of another script, and the
parent itself; each allocates the same way and says whether all it wrote came back."""
import ctypes
import multiprocessing
import os
import subprocess
import sys

ROUNDS = 10


def obs(key, *values):
    os.write(1, (key + "=" + ",".join(str(v) for v in values) + "\n").encode())


def calls(salt):
    cudart = ctypes.CDLL("libcudart.so.13")
    good = 0
    for turn in range(ROUNDS):
        plain, ordered, pinned = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t(4096 * (1 + turn % 3))
        # A line each: what ctypes calls differs in nothing else.
        if cudart.cudaMalloc(ctypes.byref(plain), size):
            return "refused"
        if cudart.cudaMallocAsync(ctypes.byref(ordered), size, None):
            return "refused"
        if cudart.cudaMallocHost(ctypes.byref(pinned), size):
            return "refused"
        for block in (plain, ordered):
            value = (salt + turn) % 256
            cudart.cudaMemsetAsync(block, value, size, None)
            cudart.cudaMemcpyAsync(pinned, block, size, 2, None)
            cudart.cudaStreamSynchronize(None)
            good += ctypes.string_at(pinned, size.value) == bytes([value]) * size.value
        if cudart.cudaFreeAsync(ordered, None) or cudart.cudaFree(plain) or cudart.cudaFreeHost(pinned):
            return "not freed"
    return "good" if good == 2 * ROUNDS else "%d of %d" % (good, 2 * ROUNDS)


def worker(queue, salt):
    queue.put(calls(salt))


def multi(key, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=worker, args=(queue, salt)) for salt in (1, 2)]
    for process in processes:
        process.start()
    results = sorted(queue.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    obs(key, *results, *(process.exitcode for process in processes))


if __name__ == "__main__":
    child = os.fork()
    if child == 0:
        obs("forked", calls(7))
        os._exit(3)
    obs("forked.ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    multi("fork", "fork")
    multi("spawn", "spawn")
    obs("parent", calls(9))
    multi("spawn.after", "spawn")
    if len(sys.argv) > 1:
        done = subprocess.run([sys.executable, sys.argv[1]], capture_output=True, text=True, check=False)
        obs("other", done.returncode, done.stdout.strip())
