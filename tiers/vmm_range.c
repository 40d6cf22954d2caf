#include "tiers/vmm_range.h"

#include "tiers/metadata_use.h"
#include "tiers/size.h"

#define NOTE(device, call, code) tn_cuda_note((device)->log, TN_CUDA_##call, (code))

static size_t chunk_offset(const tn_vmm_range *range, size_t index)
{
    return index * range->chunk;
}

static size_t chunk_bytes(const tn_vmm_range *range, size_t index)
{
    size_t left = range->bytes - chunk_offset(range, index);
    return left < range->chunk ? left : range->chunk;
}

size_t tn_vmm_range_bytes(const tn_vmm_range *range, size_t chunks)
{
    return chunks == 0 ? 0 : chunk_offset(range, chunks - 1) + chunk_bytes(range, chunks - 1);
}

size_t tn_vmm_range_chunks(const tn_vmm_range *range, size_t bytes)
{
    return bytes / range->chunk + (bytes % range->chunk != 0);
}

tn_mem_error tn_vmm_range_make(const tn_vmm_device *device, size_t bytes, size_t alignment, size_t chunk, tn_vmm_range *range)
{
    *range = (tn_vmm_range){.bytes = bytes, .chunk = chunk, .reservation_bytes = bytes};
    /* Addresses cost nothing, and the driver's own word on large alignments need not be taken. */
    if (alignment > device->granularity && !tn_size_add(bytes, alignment, &range->reservation_bytes))
        return TN_MEM_E_OUT_OF_MEMORY;
    tn_mem_error error = NOTE(device, RESERVE, device->cuda->reserve(&range->reservation, range->reservation_bytes, 0, 0, 0));
    if (error != TN_MEM_OK) {
        range->reservation = 0;
        return error;
    }
    range->base = (range->reservation + alignment - 1) & ~(tn_cuda_address)(alignment - 1);
    if (range->base - range->reservation <= range->reservation_bytes - bytes)
        return TN_MEM_OK;
    (void)!tn_vmm_range_end(device, range); /* not aligned to the driver's own granularity: what no driver does */
    return TN_MEM_E_DRIVER;
}

/* Maps a chunk's handle at its place, for all who may use it. After an error it is not mapped, unless the driver refused that too. */
static tn_mem_error map_chunk(const tn_vmm_device *device, const tn_vmm_range *range, size_t index, tn_vmm_chunk *chunk)
{
    tn_cuda_address at = range->base + chunk_offset(range, index);
    size_t bytes = chunk_bytes(range, index);
    tn_mem_error error = NOTE(device, MAP, device->cuda->map(at, bytes, 0, chunk->handle, 0));
    if (error != TN_MEM_OK)
        return error;
    chunk->mapped = true;
    error = NOTE(device, ACCESS, device->cuda->access(at, bytes, device->access, device->access_count));
    if (error != TN_MEM_OK && NOTE(device, UNMAP, device->cuda->unmap(at, bytes)) == TN_MEM_OK)
        chunk->mapped = false;
    return error;
}

/* Lets a chunk go as far as the driver does. */
static tn_mem_error drop_chunk(const tn_vmm_device *device, const tn_vmm_range *range, size_t index)
{
    tn_vmm_chunk *chunk = &range->chunks[index];
    if (chunk->mapped) {
        tn_mem_error error =
            NOTE(device, UNMAP, device->cuda->unmap(range->base + chunk_offset(range, index), chunk_bytes(range, index)));
        if (error != TN_MEM_OK)
            return error;
        chunk->mapped = false;
    }
    if (chunk->held) {
        tn_mem_error error = NOTE(device, RELEASE, device->cuda->release(chunk->handle));
        if (error != TN_MEM_OK)
            return error;
        chunk->held = false;
    }
    return TN_MEM_OK;
}

/* Brings `touched` and the figures to what there is. */
static void note_rest(const tn_vmm_device *device, tn_vmm_range *range)
{
    size_t held = 0;
    while (range->touched > range->committed && !range->chunks[range->touched - 1].held)
        range->touched--;
    for (size_t i = range->committed; i < range->touched; i++)
        held += range->chunks[i].held ? chunk_bytes(range, i) : 0;
    __atomic_fetch_add(device->held, held - range->held, __ATOMIC_RELAXED); /* modulo 2^64: falls too */
    range->held = held;
}

/* Gets rid of what lies above the committed chunks; the first error. */
static tn_mem_error drop_rest(const tn_vmm_device *device, tn_vmm_range *range)
{
    tn_mem_error first = TN_MEM_OK;
    for (size_t i = range->touched; i-- > range->committed;) {
        tn_mem_error error = drop_chunk(device, range, i);
        first = first == TN_MEM_OK ? error : first;
    }
    note_rest(device, range);
    return first;
}

static tn_mem_error commit_chunk(const tn_vmm_device *device, tn_vmm_range *range, size_t index)
{
    void *chunks = range->chunks;
    bool made = tn_metadata_grow(&device->metadata, &chunks, &range->chunk_room, index + 1, sizeof *range->chunks);
    range->chunks = chunks;
    if (!made)
        return TN_MEM_E_HOST_MEMORY;
    tn_vmm_chunk *chunk = &range->chunks[index];
    *chunk = (tn_vmm_chunk){0};
    tn_mem_error error =
        NOTE(device, CREATE, device->cuda->create(&chunk->handle, chunk_bytes(range, index), &device->property, 0));
    if (error != TN_MEM_OK)
        return error;
    chunk->held = true;
    range->touched = index + 1;
    return map_chunk(device, range, index, chunk);
}

tn_mem_error tn_vmm_range_grow(const tn_vmm_device *device, tn_vmm_range *range, size_t chunks)
{
    size_t before = range->committed;
    tn_mem_error error = drop_rest(device, range);
    while (error == TN_MEM_OK && range->committed < chunks) {
        error = commit_chunk(device, range, range->committed);
        range->committed += error == TN_MEM_OK;
    }
    if (error != TN_MEM_OK) {
        range->committed = before;
        (void)!drop_rest(device, range);
    }
    return error;
}

tn_mem_error tn_vmm_range_shrink(const tn_vmm_device *device, tn_vmm_range *range, size_t chunks)
{
    /* All is unmapped before anything is released: until then each chunk can be put back with its bytes. */
    for (size_t i = range->committed; i-- > chunks;) {
        tn_mem_error error = NOTE(device, UNMAP, device->cuda->unmap(range->base + chunk_offset(range, i), chunk_bytes(range, i)));
        range->chunks[i].mapped = error != TN_MEM_OK;
        if (error == TN_MEM_OK)
            continue;
        size_t end = range->committed;
        for (range->committed = i + 1; range->committed < end; range->committed++)
            if (map_chunk(device, range, range->committed, &range->chunks[range->committed]) != TN_MEM_OK)
                break;
        (void)!drop_rest(device, range);
        return error;
    }
    range->committed = chunks;
    (void)!drop_rest(device, range);
    return TN_MEM_OK;
}

tn_mem_error tn_vmm_range_access(const tn_vmm_device *device, const tn_vmm_range *range, tn_cuda_access access)
{
    size_t bytes = tn_vmm_range_bytes(range, range->committed);
    if (bytes == 0)
        return TN_MEM_OK;
    return NOTE(device, ACCESS, device->cuda->access(range->base, bytes, &access, 1));
}

bool tn_vmm_range_settle(const tn_vmm_device *device, tn_vmm_range *range, bool all)
{
    if (drop_rest(device, range) != TN_MEM_OK)
        return false;
    if (!all || range->reservation == 0)
        return true;
    if (NOTE(device, UNRESERVE, device->cuda->unreserve(range->reservation, range->reservation_bytes)) != TN_MEM_OK)
        return false;
    range->reservation = 0;
    return true;
}

tn_mem_error tn_vmm_range_end(const tn_vmm_device *device, tn_vmm_range *range)
{
    tn_mem_error error = tn_vmm_range_shrink(device, range, 0);
    if (error == TN_MEM_OK && tn_vmm_range_settle(device, range, true))
        tn_vmm_range_forget(device, range);
    return error;
}

void tn_vmm_range_forget(const tn_vmm_device *device, tn_vmm_range *range)
{
    __atomic_fetch_sub(device->held, range->held, __ATOMIC_RELAXED);
    range->held = 0;
    tn_metadata_free(&device->metadata, range->chunks, range->chunk_room * sizeof *range->chunks);
    range->chunks = NULL;
    range->chunk_room = range->touched = range->committed = 0;
}
