/* The rules. */
#include "report/report_fold.h"

#include <stddef.h>
#include <string.h>

/* Layers as they are shown. */
static const char c_library[] = "the C library";
static const char cpp_library[] = "the C++ standard library";
static const char torch_allocator[] = "PyTorch's allocator";
static const char torch_dispatch[] = "PyTorch's dispatcher";
static const char xla_allocator[] = "XLA's allocator";
static const char cupy_pool[] = "CuPy's memory pool";
static const char thrust[] = "Thrust and CUB";
static const char rmm[] = "RMM";
static const char foreign_calls[] = "ctypes";
static const char bindings[] = "Python bindings";
static const char cpython[] = "CPython";

/* The first rule that fits decides. NULL fits all; '*' at the end stands for any rest, at the beginning for any start. */
static const struct rule { const char *layer, *module, *function; } rules[] = {
    {cpp_library, NULL, "std::*"},
    {cpp_library, NULL, "__gnu_cxx::*"},
    {cpp_library, NULL, "operator new*"},
    {cpp_library, NULL, "core::ops::*"}, /* Rust's own */
    {cpp_library, "libstdc++.so*", NULL},
    {cpp_library, "libc++.so*", NULL},
    {c_library, "libc.so*", NULL},
    {c_library, "libpthread.so*", NULL},
    {c_library, "ld-linux*", NULL},

    {torch_allocator, NULL, "c10::cuda::CUDACachingAllocator::*"},
    {torch_allocator, NULL, "c10::cuda::CUDAAllocatorConfig*"},
    {torch_allocator, NULL, "c10::CachingAllocator::*"},
    {torch_allocator, NULL, "c10::StorageImpl*"},
    {torch_allocator, NULL, "c10::intrusive_ptr*"},
    {torch_allocator, NULL, "c10::make_intrusive*"},
    {torch_allocator, NULL, "c10::GetAllocator*"},
    {torch_allocator, NULL, "c10::Storage::*"},
    {torch_allocator, NULL, "at::CachingHostAllocator*"},
    {torch_allocator, NULL, "at::cuda::CachingHostAllocator*"},
    {torch_allocator, NULL, "at::cuda::CUDACachingHostAllocator*"},
    {torch_allocator, NULL, "at::detail::empty_*"},
    {torch_allocator, NULL, "at::detail::_empty_*"},
    {torch_dispatch, NULL, "c10::Dispatcher::*"},
    {torch_dispatch, NULL, "c10::impl::*"},
    {torch_dispatch, NULL, "c10::KernelFunction::*"},
    {torch_dispatch, NULL, "c10::detail::*"},
    {torch_dispatch, NULL, "at::_ops::*"},
    {torch_dispatch, NULL, "at::(anonymous)::wrapper_*"},
    {torch_dispatch, NULL, "at::redispatch::*"},
    {torch_dispatch, NULL, "torch::autograd::VariableType::*"},
    {torch_dispatch, NULL, "torch::ADInplaceOrView::*"},

    {xla_allocator, NULL, "tsl::BFCAllocator::*"},
    {xla_allocator, NULL, "tsl::*Allocator*"},
    {xla_allocator, NULL, "stream_executor::*Allocator*"},
    {xla_allocator, NULL, "xla::*Allocator*"},
    {cupy_pool, NULL, "__pyx_*_4cupy_4cuda_6memory_*"},
    {thrust, NULL, "thrust::*"},
    {thrust, NULL, "cub::*"},
    {thrust, NULL, "cuda::std::*"},
    {rmm, NULL, "rmm::*"},

    {foreign_calls, "libffi.so*", NULL},
    {foreign_calls, "_ctypes.*", NULL},
    {foreign_calls, "_cffi_backend.*", NULL},
    {bindings, NULL, "pybind11::*"},
    {bindings, NULL, "nanobind::*"},
    {bindings, NULL, "__Pyx_*"},
    {cpython, "libpython*", NULL},
    {cpython, "python", NULL},
    {cpython, "python2*", NULL},
    {cpython, "python3*", NULL},
    {cpython, NULL, "_PyEval_*"}, /* also where it is linked into a program */
    {cpython, NULL, "PyEval_*"},
    {cpython, NULL, "_PyObject_*"},
    {cpython, NULL, "PyObject_*"},
    {cpython, NULL, "_PyFunction_*"},
    {cpython, NULL, "PyVectorcall_*"},
};

/* Pieces between stars, in order; the first and the last are bound to the ends. */
static int fits(const char *pattern, const char *text)
{
    if (!pattern)
        return 1;
    if (!text)
        return 0;
    const char *star = strchr(pattern, '*');
    if (!star)
        return strcmp(pattern, text) == 0;
    size_t length = (size_t)(star - pattern);
    if (strncmp(pattern, text, length) != 0)
        return 0;
    text += length;
    while (star[1]) {
        const char *piece = star + 1, *next = strchr(piece, '*');
        length = next ? (size_t)(next - piece) : strlen(piece);
        size_t left = strlen(text);
        if (!next)
            return left >= length && strcmp(text + left - length, piece) == 0;
        while (strncmp(text, piece, length) != 0)
            if (*text++ == 0)
                return 0;
        text += length;
        star = next;
    }
    return 1;
}

const char *tn_fold_layer(const char *module, const char *function)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (fits(rules[i].module, module) && fits(rules[i].function, function))
            return rules[i].layer;
    return NULL;
}
