#include "tiers/backend_async.h"

#include "tiers/backend_plain.h"
#include "tiers/metadata_use.h"

struct tn_async {
    tn_plain plain;
    tn_metadata metadata;
    tn_async_options options;
    tn_cuda_pool pool;
};

static tn_mem_error note(tn_async *async, tn_cuda_call call, int code)
{
    return tn_cuda_note(&async->plain.log, call, code);
}

static tn_mem_error check_capture(tn_async *async)
{
    int status = TN_CUDA_NOT_CAPTURING;
    if (async->options.cuda->is_capturing == NULL)
        return TN_MEM_OK;
    tn_mem_error error = note(async, TN_CUDA_IS_CAPTURING, async->options.cuda->is_capturing(async->options.stream, &status));
    return error != TN_MEM_OK || status == TN_CUDA_NOT_CAPTURING ? error : TN_MEM_E_CAPTURING;
}

static tn_mem_error async_give(void *owner, unsigned long long address)
{
    tn_async *async = owner;
    return note(async, TN_CUDA_FREE_ASYNC, async->options.cuda->free_async(address, async->options.stream));
}

static tn_mem_error async_take(void *owner, size_t bytes, unsigned long long *address)
{
    tn_async *async = owner;
    const tn_cuda *cuda = async->options.cuda;
    tn_mem_error error = check_capture(async);
    if (error != TN_MEM_OK)
        return error;
    if (async->options.current_pool)
        error = note(async, TN_CUDA_ALLOC_ASYNC, cuda->alloc_async(address, bytes, async->options.stream));
    else
        error = note(async, TN_CUDA_ALLOC_FROM_POOL, cuda->alloc_from_pool(address, bytes, async->pool, async->options.stream));
    *address = error == TN_MEM_OK ? *address : 0;
    if (error != TN_MEM_OK || !async->options.wait)
        return error;
    error = note(async, TN_CUDA_SYNCHRONIZE, cuda->synchronize(async->options.stream));
    if (error != TN_MEM_OK && async_give(async, *address) == TN_MEM_OK)
        *address = 0;
    return error;
}

static size_t async_alignment(size_t bytes)
{
    (void)bytes;
    return 512;
}

static const tn_plain_source source = {async_take, async_give, async_alignment};

static bool has_entries(const tn_async_options *options)
{
    const tn_cuda *cuda = options->cuda;
    if (cuda->free_async == NULL || (options->wait && cuda->synchronize == NULL))
        return false;
    return options->current_pool ? cuda->alloc_async != NULL : cuda->default_pool != NULL && cuda->alloc_from_pool != NULL;
}

tn_mem_error tn_async_create(const tn_async_options *options, tn_async **async)
{
    if (options == NULL || options->cuda == NULL || async == NULL)
        return TN_MEM_E_ARGUMENT;
    if (!has_entries(options))
        return TN_MEM_E_UNSUPPORTED;
    tn_cuda_pool pool = NULL;
    if (!options->current_pool) {
        tn_mem_error error = tn_cuda_error(options->cuda->default_pool(&pool, options->device));
        if (error != TN_MEM_OK)
            return error;
    }
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_async *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_async){.metadata = metadata, .options = *options, .pool = pool};
    made->options.metadata = NULL;
    tn_plain_init(&made->plain, &source, made, options->cuda, metadata, SIZE_MAX);
    *async = made;
    return TN_MEM_OK;
}

size_t tn_async_destroy(tn_async *async)
{
    if (async == NULL)
        return 0;
    size_t left = tn_plain_end(&async->plain);
    tn_metadata metadata = async->metadata;
    tn_metadata_free(&metadata, async, sizeof *async);
    return left;
}

tn_backend *tn_async_backend(tn_async *async)
{
    return &async->plain.backend;
}

tn_cuda_failure tn_async_failure(const tn_async *async)
{
    return tn_cuda_last_failure(&async->plain.log);
}

size_t tn_async_padding(const tn_async *async)
{
    return __atomic_load_n(&async->plain.padding, __ATOMIC_RELAXED);
}
