#include "tiers/backend_pinned.h"

#include "tiers/backend_plain.h"
#include "tiers/metadata_use.h"

struct tn_pinned {
    tn_plain plain;
    tn_metadata metadata;
    unsigned flags;
};

static tn_mem_error pinned_take(void *owner, size_t bytes, unsigned long long *address)
{
    tn_pinned *pinned = owner;
    void *host = NULL;
    tn_mem_error error =
        tn_cuda_note(&pinned->plain.log, TN_CUDA_HOST_ALLOC, pinned->plain.cuda->host_alloc(&host, bytes, pinned->flags));
    *address = error == TN_MEM_OK ? (uintptr_t)host : 0;
    return error;
}

static tn_mem_error pinned_give(void *owner, unsigned long long address)
{
    tn_pinned *pinned = owner;
    return tn_cuda_note(&pinned->plain.log, TN_CUDA_HOST_FREE, pinned->plain.cuda->host_free((void *)(uintptr_t)address));
}

/* What the driver may be expected to give: above 1 MiB a mapping of its own (tests/diff/mappings.c), else at most a page. */
static size_t pinned_alignment(size_t bytes)
{
    return bytes > (size_t)1 << 20 ? (size_t)2 << 20 : 4096;
}

static const tn_plain_source source = {pinned_take, pinned_give, pinned_alignment};

tn_mem_error tn_pinned_create(const tn_pinned_options *options, tn_pinned **pinned)
{
    if (options == NULL || options->cuda == NULL || pinned == NULL || (options->flags & ~(unsigned)TN_PINNED_FLAGS) != 0)
        return TN_MEM_E_ARGUMENT;
    if (options->cuda->host_alloc == NULL || options->cuda->host_free == NULL)
        return TN_MEM_E_UNSUPPORTED;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_pinned *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_pinned){.metadata = metadata, .flags = options->flags};
    tn_plain_init(&made->plain, &source, made, options->cuda, metadata, SIZE_MAX);
    *pinned = made;
    return TN_MEM_OK;
}

size_t tn_pinned_destroy(tn_pinned *pinned)
{
    if (pinned == NULL)
        return 0;
    size_t left = tn_plain_end(&pinned->plain);
    tn_metadata metadata = pinned->metadata;
    tn_metadata_free(&metadata, pinned, sizeof *pinned);
    return left;
}

tn_backend *tn_pinned_backend(tn_pinned *pinned)
{
    return &pinned->plain.backend;
}

unsigned tn_pinned_identity(const tn_pinned *pinned)
{
    return pinned->flags;
}

tn_cuda_failure tn_pinned_failure(const tn_pinned *pinned)
{
    return tn_cuda_last_failure(&pinned->plain.log);
}

size_t tn_pinned_padding(const tn_pinned *pinned)
{
    return __atomic_load_n(&pinned->plain.padding, __ATOMIC_RELAXED);
}
