"""A helper of workers.py: the same interpreter, another script, and an allocation of its own."""
import ctypes

p = ctypes.c_void_p()
cudart = ctypes.CDLL("libcudart.so.13")
print(cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(5000)), cudart.cudaFree(p))
