#include "tiers/region_book.h"

#include <string.h>

#include "tiers/metadata_use.h"

void tn_book_init(tn_book *book, tn_metadata metadata)
{
    *book = (tn_book){.metadata = metadata};
    pthread_mutex_init(&book->lock, NULL);
}

void tn_book_end(tn_book *book)
{
    tn_metadata_free(&book->metadata, book->entries, book->room * sizeof *book->entries);
    pthread_mutex_destroy(&book->lock);
}

/* The index of the first entry whose id is not below `id`. */
static size_t lower_bound(const tn_book *book, uint64_t id)
{
    size_t low = 0, high = book->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (book->entries[middle].region.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tn_book_entry *find(const tn_book *book, uint64_t id)
{
    size_t at = lower_bound(book, id);
    return at < book->count && book->entries[at].region.id == id ? &book->entries[at] : NULL;
}

tn_mem_error tn_book_open(tn_book *book, uint64_t *id)
{
    tn_mem_error error = TN_MEM_E_HOST_MEMORY;
    pthread_mutex_lock(&book->lock);
    void *entries = book->entries;
    if (tn_metadata_grow(&book->metadata, &entries, &book->room, book->count + 1, sizeof *book->entries)) {
        book->entries = entries;
        *id = ++book->next_id;
        book->entries[book->count++] = (tn_book_entry){.region.id = *id};
        error = TN_MEM_OK;
    }
    pthread_mutex_unlock(&book->lock);
    return error;
}

void tn_book_write(tn_book *book, const tn_book_entry *entry)
{
    pthread_mutex_lock(&book->lock);
    tn_book_entry *at = find(book, entry->region.id);
    *at = *entry;
    at->live = true;
    pthread_mutex_unlock(&book->lock);
}

void tn_book_remove(tn_book *book, uint64_t id)
{
    pthread_mutex_lock(&book->lock);
    tn_book_entry *at = find(book, id);
    size_t after = (size_t)(book->entries + book->count - (at + 1));
    memmove(at, at + 1, after * sizeof *at);
    book->count--;
    pthread_mutex_unlock(&book->lock);
}

tn_mem_error tn_book_claim(tn_book *book, const tn_region *region, tn_book_entry *entry)
{
    tn_mem_error error = TN_MEM_OK;
    pthread_mutex_lock(&book->lock);
    tn_book_entry *at = find(book, region->id);
    if (at == NULL || !at->live) {
        error = TN_MEM_E_STALE;
    } else if (at->region.base != region->base) {
        error = TN_MEM_E_ARGUMENT;
    } else {
        *entry = *at;
        at->live = false;
    }
    pthread_mutex_unlock(&book->lock);
    return error;
}

bool tn_book_next(tn_book *book, uint64_t after, tn_book_entry *entry)
{
    bool found = false;
    pthread_mutex_lock(&book->lock);
    for (size_t i = lower_bound(book, after + 1); i < book->count && !found; i++)
        if (book->entries[i].live) {
            *entry = book->entries[i];
            found = true;
        }
    pthread_mutex_unlock(&book->lock);
    return found;
}
