#include "tiers/backend_plain.h"
#include "tiers/metadata_use.h"
#include "tiers/size.h"
#include "tiers/vmm_inside.h"

#define ADD(counter, n) __atomic_fetch_add(&(counter), (n), __ATOMIC_RELAXED)
#define READ(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)

/* ---- what the driver did not take back ---- */

static bool is_over(const tn_vmm_region *r)
{
    return r->range.reservation == 0 && r->range.touched == 0;
}

static void free_region(tn_vmm *vmm, tn_vmm_region *r)
{
    tn_vmm_range_forget(&vmm->device, &r->range);
    tn_metadata_free(&vmm->metadata, r, sizeof *r);
}

static void keep_remnant(tn_vmm *vmm, tn_vmm_region *r)
{
    pthread_mutex_lock(&vmm->lock);
    r->next = vmm->remnants;
    vmm->remnants = r;
    pthread_mutex_unlock(&vmm->lock);
}

static void drop_region(tn_vmm *vmm, tn_vmm_region *r)
{
    if (is_over(r))
        free_region(vmm, r);
    else
        keep_remnant(vmm, r);
}

/* Tries each remnant once. Taken out of the list meanwhile, so that no other thread has it too. */
static void settle_remnants(tn_vmm *vmm)
{
    if (__atomic_load_n(&vmm->remnants, __ATOMIC_RELAXED) == NULL)
        return;
    pthread_mutex_lock(&vmm->lock);
    tn_vmm_region *r = vmm->remnants;
    vmm->remnants = NULL;
    pthread_mutex_unlock(&vmm->lock);
    while (r != NULL) {
        tn_vmm_region *next = r->next;
        (void)tn_vmm_range_settle(&vmm->device, &r->range, true);
        drop_region(vmm, r);
        r = next;
    }
}

/* ---- acquisition ---- */

static void note_refusal(tn_vmm *vmm, tn_cuda_call call, int code)
{
    __atomic_store_n(&vmm->refusal, (uint64_t)call << 32 | (uint32_t)code, __ATOMIC_RELAXED);
}

static tn_mem_error fall_back(tn_vmm *vmm, size_t bytes, size_t alignment, const char *tag, tn_vmm_region *r)
{
    if (r->growable) {
        ADD(vmm->growths_refused, 1);
        return TN_MEM_E_NOT_GROWABLE;
    }
    const tn_backend *plain = tn_driver_backend(vmm->plain);
    tn_mem_error error = plain->table->acquire(plain->self, bytes, alignment, tag, &r->plain);
    if (error == TN_MEM_OK)
        ADD(vmm->fallbacks, 1);
    return error;
}

static tn_mem_error make_range(tn_vmm *vmm, size_t reserve, size_t initial, size_t alignment, tn_vmm_region *r)
{
    if (!tn_size_align_up(reserve, vmm->device.granularity, &reserve) || reserve > TN_BYTES_MAX)
        return TN_MEM_E_OUT_OF_MEMORY;
    size_t chunk = r->growable && vmm->chunk < reserve ? vmm->chunk : reserve;
    tn_mem_error error = tn_vmm_range_make(&vmm->device, reserve, alignment, chunk, &r->range);
    if (error == TN_MEM_OK)
        error = tn_vmm_range_grow(&vmm->device, &r->range, tn_vmm_range_chunks(&r->range, initial));
    if (error != TN_MEM_OK)
        (void)tn_vmm_range_settle(&vmm->device, &r->range, true);
    return error;
}

static void describe(const tn_vmm_region *r, tn_region *region)
{
    if (r->plain.base != NULL) {
        region->base = r->plain.base;
        region->committed = region->reserved = r->plain.committed;
        return;
    }
    region->base = (void *)(uintptr_t)r->range.base;
    region->committed = tn_vmm_range_bytes(&r->range, r->range.committed);
    region->reserved = r->range.bytes;
}

static tn_mem_error make_region(tn_vmm *vmm, size_t reserve, size_t initial, size_t alignment, const char *tag, bool growable,
                                tn_region *region)
{
    settle_remnants(vmm);
    tn_vmm_region *r = vmm->metadata.resize(vmm->metadata.self, NULL, 0, sizeof *r);
    if (r == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *r = (tn_vmm_region){.growable = growable};
    tn_book_entry entry = {.payload = r};
    tn_mem_error error = tn_book_open(&vmm->book, &entry.region.id);
    if (error != TN_MEM_OK) {
        free_region(vmm, r);
        return error;
    }
    error = vmm->refused ? TN_MEM_E_UNSUPPORTED : make_range(vmm, reserve, initial, alignment, r);
    if (error == TN_MEM_E_UNSUPPORTED && is_over(r)) {
        tn_cuda_failure last = tn_cuda_last_failure(&vmm->log);
        if (!vmm->refused)
            note_refusal(vmm, last.call, last.code);
        error = fall_back(vmm, reserve, alignment, tag, r);
    }
    if (error != TN_MEM_OK) {
        tn_book_remove(&vmm->book, entry.region.id);
        drop_region(vmm, r);
        return error;
    }
    entry.region.tag = tag;
    describe(r, &entry.region);
    tn_book_write(&vmm->book, &entry);
    *region = entry.region;
    return TN_MEM_OK;
}

static tn_mem_error vmm_acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    return make_region(self, bytes, bytes, alignment, tag, false, region);
}

static tn_mem_error vmm_reserve(void *self, size_t reserve, size_t initial, size_t alignment, const char *tag, tn_region *region)
{
    return make_region(self, reserve, initial, alignment, tag, true, region);
}

/* ---- life and end ---- */

static tn_mem_error grow_region(tn_vmm *vmm, tn_vmm_region *r, size_t bytes)
{
    r->quiet = 0;
    r->wanted = 0;
    return tn_vmm_range_grow(&vmm->device, &r->range, tn_vmm_range_chunks(&r->range, bytes));
}

static tn_mem_error shrink_region(tn_vmm *vmm, tn_vmm_region *r, size_t bytes)
{
    size_t wanted = tn_vmm_range_chunks(&r->range, bytes);
    r->wanted = wanted > r->wanted ? wanted : r->wanted;
    if (++r->quiet < vmm->patience)
        return TN_MEM_OK;
    tn_mem_error error = TN_MEM_OK;
    if (r->wanted < r->range.committed)
        error = tn_vmm_range_shrink(&vmm->device, &r->range, r->wanted);
    /* Where the driver refused, the next call tries again at once. */
    r->quiet = error == TN_MEM_OK ? 0 : vmm->patience - 1;
    r->wanted = error == TN_MEM_OK ? 0 : r->wanted;
    return error;
}

/* Memory that is wanted now and then is wanted: it counts like a decommit's. */
static tn_mem_error note_need(tn_vmm *vmm, tn_vmm_region *r, size_t bytes)
{
    (void)vmm;
    size_t wanted = r->plain.base == NULL ? tn_vmm_range_chunks(&r->range, bytes) : 0;
    if (r->quiet > 0 && wanted > r->wanted)
        r->wanted = wanted;
    return TN_MEM_OK;
}

static tn_mem_error resize(tn_vmm *vmm, tn_region *region, size_t bytes, tn_mem_error (*change)(tn_vmm *, tn_vmm_region *, size_t))
{
    tn_book_entry entry;
    settle_remnants(vmm);
    tn_mem_error error = tn_book_claim(&vmm->book, region, &entry);
    if (error != TN_MEM_OK)
        return error;
    tn_vmm_region *r = entry.payload;
    error = r->growable || change == note_need ? change(vmm, r, bytes) : TN_MEM_E_NOT_GROWABLE;
    describe(r, &entry.region);
    tn_book_write(&vmm->book, &entry);
    region->committed = entry.region.committed;
    return error;
}

static tn_mem_error vmm_commit(void *self, tn_region *region, size_t bytes)
{
    return resize(self, region, bytes, grow_region);
}

static tn_mem_error vmm_needed(void *self, const tn_region *region, size_t bytes)
{
    tn_region same = *region;
    return resize(self, &same, bytes, note_need);
}

/* Where sizes overflow the acquisition itself will say so. */
static size_t vmm_rounded(void *self, size_t reserve, size_t bytes)
{
    const tn_vmm *vmm = self;
    size_t whole, chunk = vmm->chunk;
    if (vmm->refused || !tn_size_align_up(reserve > 0 ? reserve : bytes, vmm->device.granularity, &whole))
        return bytes;
    if (reserve == 0)
        return whole;
    chunk = chunk < whole ? chunk : whole;
    size_t chunks = bytes / chunk + (bytes % chunk != 0);
    return chunks * chunk < whole ? chunks * chunk : whole;
}

static tn_mem_error vmm_decommit(void *self, tn_region *region, size_t bytes)
{
    return resize(self, region, bytes, shrink_region);
}

/* Gives back what stands behind a region; after an error it is a region still. */
static tn_mem_error end_region(tn_vmm *vmm, tn_vmm_region *r)
{
    if (r->plain.base == NULL)
        return tn_vmm_range_end(&vmm->device, &r->range);
    const tn_backend *plain = tn_driver_backend(vmm->plain);
    return plain->table->release(plain->self, &r->plain);
}

static tn_mem_error vmm_release(void *self, tn_region *region)
{
    tn_vmm *vmm = self;
    tn_book_entry entry;
    settle_remnants(vmm);
    tn_mem_error error = tn_book_claim(&vmm->book, region, &entry);
    if (error != TN_MEM_OK)
        return error;
    error = end_region(vmm, entry.payload);
    if (error != TN_MEM_OK) {
        describe(entry.payload, &entry.region);
        tn_book_write(&vmm->book, &entry);
        region->committed = entry.region.committed;
        return error;
    }
    tn_book_remove(&vmm->book, entry.region.id);
    drop_region(vmm, entry.payload);
    return TN_MEM_OK;
}

static size_t vmm_capacity(void *self)
{
    const tn_vmm *vmm = self;
    return vmm->capacity;
}

static const tn_backend_table table = {
    .acquire = vmm_acquire,
    .reserve = vmm_reserve,
    .commit = vmm_commit,
    .decommit = vmm_decommit,
    .release = vmm_release,
    .capacity = vmm_capacity,
    .rounded = vmm_rounded,
    .needed = vmm_needed,
};

/* ---- the backend itself ---- */

/* Whether the device has it at all, and its granularity. */
static tn_mem_error ask_device(tn_vmm *vmm, int device)
{
    const tn_cuda *cuda = vmm->device.cuda;
    const struct {
        tn_cuda_call call;
        bool there;
    } needed[] = {
        {TN_CUDA_GRANULARITY, cuda->granularity != NULL}, {TN_CUDA_RESERVE, cuda->reserve != NULL},
        {TN_CUDA_UNRESERVE, cuda->unreserve != NULL},     {TN_CUDA_CREATE, cuda->create != NULL},
        {TN_CUDA_RELEASE, cuda->release != NULL},         {TN_CUDA_MAP, cuda->map != NULL},
        {TN_CUDA_UNMAP, cuda->unmap != NULL},             {TN_CUDA_ACCESS, cuda->access != NULL},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there) {
            note_refusal(vmm, needed[i].call, 0);
            return TN_MEM_E_UNSUPPORTED;
        }
    int supported = 1;
    if (cuda->attribute != NULL) {
        int asked = cuda->attribute(&supported, TN_CUDA_ATTRIBUTE_VMM, device);
        tn_mem_error error = tn_cuda_note(&vmm->log, TN_CUDA_ATTRIBUTE, asked);
        if (error == TN_MEM_E_UNSUPPORTED)
            note_refusal(vmm, TN_CUDA_ATTRIBUTE, asked);
        if (error != TN_MEM_OK)
            return error;
    }
    if (supported == 0) {
        note_refusal(vmm, TN_CUDA_ATTRIBUTE, 0);
        return TN_MEM_E_UNSUPPORTED;
    }
    vmm->device.property = (tn_cuda_property){.type = TN_CUDA_PINNED, .location = {TN_CUDA_ON_DEVICE, device}};
    int code = cuda->granularity(&vmm->device.granularity, &vmm->device.property, TN_CUDA_GRANULARITY_RECOMMENDED);
    tn_mem_error error = tn_cuda_note(&vmm->log, TN_CUDA_GRANULARITY, code);
    if (error == TN_MEM_E_UNSUPPORTED)
        note_refusal(vmm, TN_CUDA_GRANULARITY, code);
    if (error == TN_MEM_OK && !tn_is_power_of_two(vmm->device.granularity))
        return TN_MEM_E_DRIVER;
    return error;
}

static tn_mem_error settle_chunk(tn_vmm *vmm, size_t chunk)
{
    vmm->chunk = chunk;
    if (chunk != 0)
        return chunk % vmm->device.granularity == 0 ? TN_MEM_OK : TN_MEM_E_ARGUMENT;
    return tn_size_align_up(TN_VMM_CHUNK_DEFAULT, vmm->device.granularity, &vmm->chunk) ? TN_MEM_OK : TN_MEM_E_DRIVER;
}

static tn_mem_error start(tn_vmm *vmm, const tn_vmm_options *options)
{
    vmm->device.access = vmm->access;
    vmm->access[vmm->device.access_count++] = tn_vmm_access_of(options->device, TN_CUDA_ACCESS_READ_WRITE);
    for (size_t i = 0; i < options->peer_count; i++) {
        if (options->peers[i] == options->device || tn_vmm_find_peer(vmm, options->peers[i]) < vmm->device.access_count)
            return TN_MEM_E_ARGUMENT;
        vmm->access[vmm->device.access_count++] = tn_vmm_access_of(options->peers[i], TN_CUDA_ACCESS_READ_WRITE);
    }
    tn_mem_error error = ask_device(vmm, options->device);
    vmm->refused = error == TN_MEM_E_UNSUPPORTED;
    if (error == TN_MEM_OK)
        error = settle_chunk(vmm, options->chunk);
    else if (vmm->refused)
        error = TN_MEM_OK;
    vmm->capacity = tn_plain_device_bytes(options->cuda, &vmm->log);
    return error;
}

tn_mem_error tn_vmm_create(const tn_vmm_options *options, tn_vmm **vmm)
{
    if (options == NULL || options->cuda == NULL || vmm == NULL || options->peer_count > TN_VMM_PEERS_MAX ||
        (options->peer_count != 0 && options->peers == NULL))
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_driver *plain = NULL;
    tn_mem_error error = tn_driver_create(&(tn_driver_options){options->cuda, &metadata}, &plain);
    if (error != TN_MEM_OK)
        return error;
    tn_vmm *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL) {
        tn_driver_destroy(plain);
        return TN_MEM_E_HOST_MEMORY;
    }
    *made = (tn_vmm){
        .metadata = metadata,
        .plain = plain,
        .patience = options->patience == 0 ? TN_VMM_PATIENCE_DEFAULT : options->patience,
    };
    made->device = (tn_vmm_device){.cuda = options->cuda, .log = &made->log, .metadata = metadata, .held = &made->held};
    tn_book_init(&made->book, metadata);
    pthread_mutex_init(&made->lock, NULL);
    error = start(made, options);
    if (error == TN_MEM_OK)
        error = tn_backend_init(&made->backend, &table, made, NULL);
    if (error != TN_MEM_OK) {
        tn_vmm_destroy(made);
        return error;
    }
    *vmm = made;
    return TN_MEM_OK;
}

size_t tn_vmm_destroy(tn_vmm *vmm)
{
    if (vmm == NULL)
        return 0;
    size_t left = 0;
    tn_book_entry entry = {0};
    for (; tn_book_next(&vmm->book, entry.region.id, &entry); left++) {
        tn_vmm_region *r = entry.payload;
        if (r->plain.base == NULL)
            (void)!tn_vmm_range_end(&vmm->device, &r->range);
        free_region(vmm, r);
    }
    settle_remnants(vmm);
    for (tn_vmm_region *r = vmm->remnants, *next; r != NULL; r = next) {
        next = r->next;
        free_region(vmm, r);
    }
    tn_driver_destroy(vmm->plain); /* with the plain regions, which are counted above */
    tn_book_end(&vmm->book);
    pthread_mutex_destroy(&vmm->lock);
    tn_metadata metadata = vmm->metadata;
    tn_metadata_free(&metadata, vmm, sizeof *vmm);
    return left;
}

tn_backend *tn_vmm_backend(tn_vmm *vmm)
{
    return &vmm->backend;
}

tn_cuda_failure tn_vmm_failure(const tn_vmm *vmm)
{
    return tn_cuda_last_failure(&vmm->log);
}

void tn_vmm_read_figures(const tn_vmm *vmm, tn_vmm_figures *figures)
{
    uint64_t refusal = READ(vmm->refusal);
    *figures = (tn_vmm_figures){
        .granularity = vmm->device.granularity,
        .chunk = vmm->chunk,
        .refused = vmm->refused,
        .refusal = {.code = (int)(uint32_t)refusal, .call = (tn_cuda_call)(refusal >> 32)},
        .fallbacks = READ(vmm->fallbacks),
        .growths_refused = READ(vmm->growths_refused),
        .held = READ(vmm->held),
    };
}
