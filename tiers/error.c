#include "tiers/error.h"

#include <stddef.h>

static const char *const texts[TN_MEM_ERROR_COUNT] = {
    [TN_MEM_OK] = "no error",
    [TN_MEM_E_ARGUMENT] = "an argument is not valid",
    [TN_MEM_E_OUT_OF_MEMORY] = "the backend is out of memory",
    [TN_MEM_E_BUDGET] = "the budget or the phase does not allow it",
    [TN_MEM_E_NOT_GROWABLE] = "the region cannot grow or shrink in place",
    [TN_MEM_E_EXHAUSTED] = "the allocator has no room left within its plan",
    [TN_MEM_E_STALE] = "it was released, freed or reset before",
    [TN_MEM_E_DRIVER] = "the driver refused",
    [TN_MEM_E_HOST_MEMORY] = "no host memory is left for the allocator's own structures",
    [TN_MEM_E_MUST_WAIT] = "no freed block is clean yet",
    [TN_MEM_E_FOREIGN] = "it belongs to another allocator",
    [TN_MEM_E_NOT_SHARED] = "blocks of this pool are never shared",
    [TN_MEM_E_ORDER] = "what was begun later must be ended first",
    [TN_MEM_E_DIVERGED] = "the program does not do what the plan was made from",
    [TN_MEM_E_UNSUPPORTED] = "the driver or the device does not support it",
    [TN_MEM_E_NO_CONTEXT] = "the calling thread has no CUDA context that works",
    [TN_MEM_E_CAPTURING] = "a stream is being captured",
    [TN_MEM_E_REGISTERED] = "that host memory is registered already, or a part of it",
    [TN_MEM_E_UNREGISTERED] = "no registration begins there",
    [TN_MEM_E_LEFTOVER] = "something is still there that should be gone",
    [TN_MEM_E_IN_USE] = "it is handed out, and there is only one",
};

const char *tn_mem_error_text(tn_mem_error error)
{
    if ((unsigned)error >= TN_MEM_ERROR_COUNT || texts[error] == NULL)
        return "an unknown error";
    return texts[error];
}
