"""One native call site, three Python callers: weights that stay, a pool of equal blocks, and scratch that comes and goes with each request."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20


def take(size):
    p = ctypes.c_void_p()
    code = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))
    if code:
        sys.exit("cudaMalloc: %d" % code)
    return p


def give(p):
    if cudart.cudaFree(p):
        sys.exit("cudaFree")


def fill(p, value, size):
    if cudart.cudaMemset(p, value, ctypes.c_size_t(size)):
        sys.exit("cudaMemset")


def digest(p, size):
    host = (ctypes.c_ubyte * size)()
    if cudart.cudaMemcpy(host, p, ctypes.c_size_t(size), 2):
        sys.exit("cudaMemcpy")
    return sum(host) & 0xFFFFFFFF


def weights():
    return [take((3 + i) * MIB) for i in range(6)]


def caches():
    return [take(2 * MIB) for _ in range(4)]


def request(n, held):
    size = 64 * 1024 * (1 + n % 5)
    p = take(size)
    fill(p, n & 255, size)
    fill(held[n % len(held)], (n + 1) & 255, 4096)
    sums = digest(p, size), digest(held[n % len(held)], 4096)
    give(p)
    cudart.cudaDeviceSynchronize()
    return sums


def main():
    model = weights()
    for i, p in enumerate(model):
        fill(p, 17 * i & 255, MIB)
    pool = caches()
    for n in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        print("request", n, *request(n, pool))
    print("weights", *(digest(p, MIB) for p in model))
    for p in model + pool:
        give(p)


main()
