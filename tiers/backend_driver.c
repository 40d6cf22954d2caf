#include "tiers/backend_driver.h"

#include "tiers/backend_plain.h"
#include "tiers/metadata_use.h"

#define PAGE ((size_t)2 << 20)

struct tn_driver {
    tn_plain plain;
    tn_metadata metadata;
};

static tn_mem_error driver_take(void *owner, size_t bytes, unsigned long long *address)
{
    tn_driver *driver = owner;
    tn_mem_error error = tn_cuda_note(&driver->plain.log, TN_CUDA_ALLOC, driver->plain.cuda->alloc(address, bytes));
    *address = error == TN_MEM_OK ? *address : 0;
    return error;
}

static tn_mem_error driver_give(void *owner, unsigned long long address)
{
    tn_driver *driver = owner;
    return tn_cuda_note(&driver->plain.log, TN_CUDA_FREE, driver->plain.cuda->free(address));
}

/* Seen on an H200: 512 bytes for small blocks, which share pages, and whole pages from a page on. */
static size_t driver_alignment(size_t bytes)
{
    return bytes >= PAGE ? PAGE : 512;
}

static const tn_plain_source source = {driver_take, driver_give, driver_alignment};

tn_mem_error tn_driver_create(const tn_driver_options *options, tn_driver **driver)
{
    if (options == NULL || options->cuda == NULL || driver == NULL)
        return TN_MEM_E_ARGUMENT;
    if (options->cuda->alloc == NULL || options->cuda->free == NULL)
        return TN_MEM_E_UNSUPPORTED;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_driver *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    made->metadata = metadata;
    tn_plain_init(&made->plain, &source, made, options->cuda, metadata, SIZE_MAX);
    made->plain.capacity = tn_plain_device_bytes(options->cuda, &made->plain.log);
    *driver = made;
    return TN_MEM_OK;
}

size_t tn_driver_destroy(tn_driver *driver)
{
    if (driver == NULL)
        return 0;
    size_t left = tn_plain_end(&driver->plain);
    tn_metadata metadata = driver->metadata;
    tn_metadata_free(&metadata, driver, sizeof *driver);
    return left;
}

tn_backend *tn_driver_backend(tn_driver *driver)
{
    return &driver->plain.backend;
}

tn_cuda_failure tn_driver_failure(const tn_driver *driver)
{
    return tn_cuda_last_failure(&driver->plain.log);
}

size_t tn_driver_padding(const tn_driver *driver)
{
    return __atomic_load_n(&driver->plain.padding, __ATOMIC_RELAXED);
}
