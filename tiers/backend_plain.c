#include "tiers/backend_plain.h"

#include "tiers/size.h"

#define ADD(counter, n) __atomic_fetch_add(&(counter), (n), __ATOMIC_RELAXED)
#define SUBTRACT(counter, n) __atomic_fetch_sub(&(counter), (n), __ATOMIC_RELAXED)

static bool aligned(unsigned long long address, size_t alignment)
{
    return (address & (alignment - 1)) == 0;
}

/* Memory whose first aligned byte has `bytes` behind it. What the driver gives by itself is tried first where it should do: an address that
 * needs no padding costs none. After an error entry->address is not 0 where memory was got and would not go back. */
static tn_mem_error take_aligned(tn_plain *plain, size_t bytes, size_t alignment, tn_book_entry *entry)
{
    size_t padded;
    if (!tn_size_add(bytes, alignment - 1, &padded) || padded > TN_BYTES_MAX)
        return TN_MEM_E_OUT_OF_MEMORY;
    if (alignment <= plain->source->alignment(bytes)) {
        entry->bytes = bytes;
        tn_mem_error error = plain->source->take(plain->owner, bytes, &entry->address);
        if (error != TN_MEM_OK)
            return error;
        if (aligned(entry->address, alignment))
            return TN_MEM_OK;
        error = plain->source->give(plain->owner, entry->address);
        if (error != TN_MEM_OK)
            return error;
        entry->address = 0;
    }
    entry->bytes = padded;
    return plain->source->take(plain->owner, padded, &entry->address);
}

/* Memory that the driver would not take back is nobody's, and no caller can claim it: its entry has no base. Each call tries again. */
static void keep_stray(tn_plain *plain, const tn_book_entry *entry)
{
    ADD(plain->padding, entry->bytes);
    ADD(plain->strays, 1);
    tn_book_write(&plain->book, entry);
}

static void give_strays(tn_plain *plain)
{
    tn_book_entry entry = {0};
    while (__atomic_load_n(&plain->strays, __ATOMIC_RELAXED) > 0 && tn_book_next(&plain->book, entry.region.id, &entry)) {
        tn_region stray = entry.region;
        if (entry.region.base != NULL || tn_book_claim(&plain->book, &stray, &entry) != TN_MEM_OK)
            continue;
        if (plain->source->give(plain->owner, entry.address) != TN_MEM_OK) {
            tn_book_write(&plain->book, &entry);
            return;
        }
        SUBTRACT(plain->padding, entry.bytes);
        SUBTRACT(plain->strays, 1);
        tn_book_remove(&plain->book, entry.region.id);
    }
}

static tn_mem_error plain_acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    tn_plain *plain = self;
    tn_book_entry entry = {0};
    give_strays(plain);
    tn_mem_error error = tn_book_open(&plain->book, &entry.region.id);
    if (error != TN_MEM_OK)
        return error;
    error = take_aligned(plain, bytes, alignment, &entry);
    if (error != TN_MEM_OK && entry.address == 0) {
        tn_book_remove(&plain->book, entry.region.id);
        return error;
    }
    if (error != TN_MEM_OK) {
        keep_stray(plain, &entry);
        return error;
    }
    unsigned long long base = (entry.address + alignment - 1) & ~(unsigned long long)(alignment - 1);
    entry.region.base = (void *)(uintptr_t)base;
    entry.region.committed = entry.region.reserved = bytes;
    entry.region.tag = tag;
    ADD(plain->padding, entry.bytes - bytes);
    tn_book_write(&plain->book, &entry);
    *region = entry.region;
    return TN_MEM_OK;
}

static tn_mem_error plain_release(void *self, tn_region *region)
{
    tn_plain *plain = self;
    tn_book_entry entry;
    give_strays(plain);
    tn_mem_error error = tn_book_claim(&plain->book, region, &entry);
    if (error != TN_MEM_OK)
        return error;
    error = plain->source->give(plain->owner, entry.address);
    if (error != TN_MEM_OK) {
        tn_book_write(&plain->book, &entry);
        return error;
    }
    SUBTRACT(plain->padding, entry.bytes - entry.region.committed);
    tn_book_remove(&plain->book, entry.region.id);
    return TN_MEM_OK;
}

static size_t plain_capacity(void *self)
{
    const tn_plain *plain = self;
    return plain->capacity;
}

static const tn_backend_table table = {
    .acquire = plain_acquire,
    .release = plain_release,
    .capacity = plain_capacity,
};

void tn_plain_init(tn_plain *plain, const tn_plain_source *source, void *owner, const tn_cuda *cuda, tn_metadata metadata,
                   size_t capacity)
{
    *plain = (tn_plain){.cuda = cuda, .source = source, .owner = owner, .capacity = capacity};
    tn_book_init(&plain->book, metadata);
    /* The table has no hole, and nothing else can be refused. */
    (void)!tn_backend_init(&plain->backend, &table, plain, NULL);
}

size_t tn_plain_end(tn_plain *plain)
{
    size_t left = 0;
    tn_book_entry entry = {0};
    while (tn_book_next(&plain->book, entry.region.id, &entry)) {
        (void)!plain->source->give(plain->owner, entry.address);
        left++;
    }
    tn_book_end(&plain->book);
    return left;
}

size_t tn_plain_device_bytes(const tn_cuda *cuda, tn_cuda_log *log)
{
    size_t unused, total;
    if (cuda->info == NULL || tn_cuda_note(log, TN_CUDA_INFO, cuda->info(&unused, &total)) != TN_MEM_OK)
        return SIZE_MAX;
    return total;
}
