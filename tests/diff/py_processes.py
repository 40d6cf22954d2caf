"""os.fork before and after CUDA has started, multiprocessing by fork and by spawn, subprocess; what each child finds."""
import ctypes
import multiprocessing
import os
import subprocess
import sys


def obs(key, *values):
    os.write(1, (key + "=" + ",".join(str(v) for v in values) + "\n").encode())


def calls():
    cudart = ctypes.CDLL("libcudart.so.13")
    p = ctypes.c_void_p(0x1230)
    free = ctypes.c_size_t(1)
    a = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4096))
    b = cudart.cudaMemGetInfo(ctypes.byref(free), None)
    c = cudart.cudaGetLastError()
    d = cudart.cudaFree(p) if a == 0 else -1
    return a, b, c, d


def worker(queue):
    queue.put(calls())


def forked(key):
    child = os.fork()
    if child == 0:
        obs(key, *calls())
        os._exit(7)
    obs(key + ".ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def multi(key, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=worker, args=(queue,))
    process.start()
    obs(key, *queue.get(timeout=60))
    process.join(60)
    obs(key + ".ended", process.exitcode)


if __name__ == "__main__":
    forked("fork.before")
    multi("multiprocessing.fork.before", "fork")
    multi("multiprocessing.spawn.before", "spawn")
    obs("parent", *calls())
    forked("fork.after")
    multi("multiprocessing.fork.after", "fork")
    multi("multiprocessing.spawn.after", "spawn")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        obs("pool", sorted(pool.starmap(calls, [()] * 4)))
    code = "import ctypes; p = ctypes.c_void_p(); print(ctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(p), ctypes.c_size_t(64)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    obs("subprocess", done.returncode, done.stdout.strip(), done.stderr.strip())
    obs("parent.again", *calls())
