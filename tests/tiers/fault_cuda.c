#include "fault_cuda.h"

#include <pthread.h>

static tn_cuda under, front;
static uint64_t left, counts[TN_CUDA_CALL_COUNT];
static int code_set, codes[TN_CUDA_CALL_COUNT];
static bool lasts, struck, off;
static tn_cuda_call first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one call at a time, as in the driver */

static int strike(tn_cuda_call call)
{
    if (off)
        return 0;
    counts[call]++;
    if (codes[call] != 0)
        return codes[call];
    if (left == 0 || (left > 1 && left-- > 1))
        return 0;
    if (!struck)
        first = call;
    struck = true;
    left = lasts ? 1 : 0;
    return code_set;
}

#define IN_FRONT(call, member, parameters, arguments)  \
    static int front_##member parameters               \
    {                                                  \
        pthread_mutex_lock(&lock);                     \
        int code = strike(TN_CUDA_##call);             \
        code = code != 0 ? code : under.member arguments; \
        pthread_mutex_unlock(&lock);                   \
        return code;                                   \
    }

IN_FRONT(ALLOC, alloc, (tn_cuda_address *a, size_t n), (a, n))
IN_FRONT(FREE, free, (tn_cuda_address a), (a))
IN_FRONT(INFO, info, (size_t *unused, size_t *total), (unused, total))
IN_FRONT(DEFAULT_POOL, default_pool, (tn_cuda_pool *p, int device), (p, device))
IN_FRONT(ALLOC_FROM_POOL, alloc_from_pool, (tn_cuda_address *a, size_t n, tn_cuda_pool p, tn_cuda_stream s), (a, n, p, s))
IN_FRONT(ALLOC_ASYNC, alloc_async, (tn_cuda_address *a, size_t n, tn_cuda_stream s), (a, n, s))
IN_FRONT(FREE_ASYNC, free_async, (tn_cuda_address a, tn_cuda_stream s), (a, s))
IN_FRONT(IS_CAPTURING, is_capturing, (tn_cuda_stream s, int *status), (s, status))
IN_FRONT(SYNCHRONIZE, synchronize, (tn_cuda_stream s), (s))
IN_FRONT(ATTRIBUTE, attribute, (int *value, int attribute, int device), (value, attribute, device))
IN_FRONT(GRANULARITY, granularity, (size_t *n, const tn_cuda_property *p, int which), (n, p, which))
IN_FRONT(RESERVE, reserve, (tn_cuda_address *a, size_t n, size_t al, tn_cuda_address h, unsigned long long f), (a, n, al, h, f))
IN_FRONT(UNRESERVE, unreserve, (tn_cuda_address a, size_t n), (a, n))
IN_FRONT(CREATE, create, (tn_cuda_handle *h, size_t n, const tn_cuda_property *p, unsigned long long f), (h, n, p, f))
IN_FRONT(RELEASE, release, (tn_cuda_handle h), (h))
IN_FRONT(MAP, map, (tn_cuda_address a, size_t n, size_t o, tn_cuda_handle h, unsigned long long f), (a, n, o, h, f))
IN_FRONT(UNMAP, unmap, (tn_cuda_address a, size_t n), (a, n))
IN_FRONT(ACCESS, access, (tn_cuda_address a, size_t n, const tn_cuda_access *d, size_t c), (a, n, d, c))
IN_FRONT(HOST_ALLOC, host_alloc, (void **p, size_t n, unsigned f), (p, n, f))
IN_FRONT(HOST_FREE, host_free, (void *p), (p))
IN_FRONT(HOST_REGISTER, host_register, (void *p, size_t n, unsigned f), (p, n, f))
IN_FRONT(HOST_UNREGISTER, host_unregister, (void *p), (p))

const tn_cuda *fault_cuda(const tn_cuda *table)
{
    under = *table;
#define TN_CUDA_ENTRY(call, member, name, parameters) front.member = under.member != NULL ? front_##member : NULL;
    TN_CUDA_CALLS(TN_CUDA_ENTRY)
#undef TN_CUDA_ENTRY
    fault_set(0, 0, false);
    off = false;
    for (int i = 0; i < TN_CUDA_CALL_COUNT; i++) {
        counts[i] = 0;
        codes[i] = 0;
    }
    return &front;
}

void fault_set(uint64_t nth, int code, bool lasting)
{
    left = nth;
    code_set = code;
    lasts = lasting;
    struck = struck && nth == 0;
}

void fault_call(tn_cuda_call call, int code)
{
    codes[call] = code;
}

bool fault_struck(void)
{
    return struck;
}

tn_cuda_call fault_first(void)
{
    return first;
}

uint64_t fault_count(tn_cuda_call call)
{
    return counts[call];
}

void fault_pause(bool paused)
{
    off = paused;
}

void fault_out_of_memory(void *self, uint64_t nth, bool lasting)
{
    (void)self;
    fault_set(nth, 2, lasting); /* CUDA_ERROR_OUT_OF_MEMORY */
}

bool fault_has_struck(void *self)
{
    (void)self;
    return fault_struck();
}
