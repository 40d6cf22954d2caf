#include "tiers/cuda_error.h"

/* CUresult by its number: these have stood since they were published. */
enum {
    CODE_OUT_OF_MEMORY = 2,
    CODE_NOT_INITIALIZED = 3,
    CODE_DEINITIALIZED = 4,
    CODE_STUB_LIBRARY = 34,
    CODE_NO_DEVICE = 100,
    CODE_INVALID_CONTEXT = 201,
    CODE_HOST_REGISTERED = 712,
    CODE_HOST_NOT_REGISTERED = 713,
    CODE_CONTEXT_DESTROYED = 709,
    CODE_NOT_PERMITTED = 800,
    CODE_NOT_SUPPORTED = 801,
    CODE_CAPTURE_FIRST = 900, /* unsupported, invalidated, merge, unmatched, unjoined, isolation, implicit */
    CODE_CAPTURE_LAST = 906,
    CODE_CAPTURE_WRONG_THREAD = 908
};

tn_mem_error tn_cuda_error(int code)
{
    if (code >= CODE_CAPTURE_FIRST && code <= CODE_CAPTURE_LAST)
        return TN_MEM_E_CAPTURING;
    switch (code) {
    case 0: return TN_MEM_OK;
    case CODE_OUT_OF_MEMORY: return TN_MEM_E_OUT_OF_MEMORY;
    case CODE_NOT_INITIALIZED:
    case CODE_DEINITIALIZED:
    case CODE_STUB_LIBRARY:
    case CODE_NO_DEVICE:
    case CODE_INVALID_CONTEXT:
    case CODE_CONTEXT_DESTROYED: return TN_MEM_E_NO_CONTEXT;
    case CODE_HOST_REGISTERED: return TN_MEM_E_REGISTERED;
    case CODE_HOST_NOT_REGISTERED: return TN_MEM_E_UNREGISTERED;
    case CODE_NOT_PERMITTED:
    case CODE_NOT_SUPPORTED: return TN_MEM_E_UNSUPPORTED;
    case CODE_CAPTURE_WRONG_THREAD: return TN_MEM_E_CAPTURING;
    default: return TN_MEM_E_DRIVER;
    }
}

tn_mem_error tn_cuda_note(tn_cuda_log *log, tn_cuda_call call, int code)
{
    if (code != 0) {
        __atomic_store_n(&log->last, (uint64_t)call << 32 | (uint32_t)code, __ATOMIC_RELAXED);
        __atomic_fetch_add(&log->failures, 1, __ATOMIC_RELAXED);
    }
    return tn_cuda_error(code);
}

tn_cuda_failure tn_cuda_last_failure(const tn_cuda_log *log)
{
    uint64_t last = __atomic_load_n(&log->last, __ATOMIC_RELAXED);
    return (tn_cuda_failure){
        .code = (int)(uint32_t)last,
        .call = (tn_cuda_call)(last >> 32),
        .failures = __atomic_load_n(&log->failures, __ATOMIC_RELAXED),
    };
}

const char *tn_cuda_call_name(tn_cuda_call call)
{
    static const char *const names[TN_CUDA_CALL_COUNT] = {
#define TN_CUDA_ENTRY(call, member, name, parameters) [TN_CUDA_##call] = name,
        TN_CUDA_CALLS(TN_CUDA_ENTRY)
#undef TN_CUDA_ENTRY
    };
    return (unsigned)call < TN_CUDA_CALL_COUNT ? names[call] : "?";
}
