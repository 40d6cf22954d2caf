#include "tiers/pinned_slabs.h"

#include <pthread.h>
#include <string.h>

#include "tiers/metadata_use.h"
#include "tiers/seam_use.h"
#include "tiers/size.h"

/* A piece of a slab; those of a slab lie side by side and fill it, and no two free ones are neighbours. */
typedef struct piece {
    size_t offset, bytes;
    uint64_t serial;   /* of its block; 0: free */
    size_t asked;      /* bytes that the block's owner asked for */
    bool waiting;      /* given back, and the work may not be done */
    tn_work_set work;
} piece;

typedef struct slab {
    tn_region region;
    unsigned flags;
    bool busy;         /* on its way back to the backend */
    piece *pieces;
    size_t count, room;
} slab;

struct tn_pinned_slabs {
    tn_pinned_slabs_options options;
    tn_metadata metadata;
    tn_work work;
    bool has_work;
    pthread_mutex_t lock;
    slab *slabs;
    size_t count, room;
    size_t opening;       /* slabs that are being acquired */
    uint64_t next_serial;
    tn_pinned_slabs_stats counted;
};

/* ---- pieces ---- */

static void remove_piece(slab *s, size_t at)
{
    memmove(&s->pieces[at], &s->pieces[at + 1], (s->count - at - 1) * sizeof *s->pieces);
    s->count--;
}

/* Room was made before. */
static void insert_free(slab *s, size_t at, size_t offset, size_t bytes)
{
    memmove(&s->pieces[at + 1], &s->pieces[at], (s->count - at) * sizeof *s->pieces);
    s->pieces[at] = (piece){.offset = offset, .bytes = bytes};
    s->count++;
}

/* Makes the piece free and one with its free neighbours. */
static void free_piece(slab *s, size_t at)
{
    piece *p = &s->pieces[at];
    p->serial = 0;
    p->waiting = false;
    if (at + 1 < s->count && s->pieces[at + 1].serial == 0) {
        p->bytes += s->pieces[at + 1].bytes;
        remove_piece(s, at + 1);
    }
    if (at > 0 && s->pieces[at - 1].serial == 0) {
        s->pieces[at - 1].bytes += s->pieces[at].bytes;
        remove_piece(s, at);
    }
}

/* Frees what has become clean. */
static void settle(tn_pinned_slabs *slabs, slab *s)
{
    for (size_t i = s->count; i-- > 0;) {
        piece *p = &s->pieces[i];
        if (!p->waiting || !tn_work_set_is_clean(&p->work, &slabs->work))
            continue;
        slabs->counted.waiting--;
        slabs->counted.waiting_bytes -= p->asked;
        free_piece(s, i);
        i = i < s->count ? i : s->count;
    }
}

/* Where a block would begin in [offset, offset + room) of the slab; false where it does not fit. */
static bool fits(const slab *s, size_t offset, size_t room, size_t bytes, size_t alignment, size_t *at)
{
    size_t base = (uintptr_t)s->region.base, address = base + offset;
    if (!tn_size_align_up(address, alignment, &address) || address - base - offset > room)
        return false;
    *at = address - base;
    return bytes <= room - (*at - offset);
}

/* Whether it would fit if all that waits were clean. */
static bool would_fit(const slab *s, size_t bytes, size_t alignment)
{
    size_t begin = 0, at;
    for (size_t i = 0; i <= s->count; i++) {
        bool taken = i == s->count || (s->pieces[i].serial != 0 && !s->pieces[i].waiting);
        if (!taken)
            continue;
        size_t end = i == s->count ? s->region.committed : s->pieces[i].offset;
        if (fits(s, begin, end - begin, bytes, alignment, &at))
            return true;
        begin = i == s->count ? end : end + s->pieces[i].bytes;
    }
    return false;
}

/* For the pieces that a block's cutting makes of one, and in a new slab that one. */
static bool make_room(tn_pinned_slabs *slabs, slab *s)
{
    void *pieces = s->pieces;
    bool made = tn_metadata_grow(&slabs->metadata, &pieces, &s->room, s->count + 3, sizeof *s->pieces);
    s->pieces = pieces;
    return made;
}

/* Cuts the block out of the slab's first free piece that holds it. EXHAUSTED: none does. */
static tn_mem_error cut(tn_pinned_slabs *slabs, slab *s, size_t bytes, size_t alignment, tn_pinned_block *block)
{
    size_t at = 0, i = 0;
    while (i < s->count && (s->pieces[i].serial != 0 || !fits(s, s->pieces[i].offset, s->pieces[i].bytes, bytes, alignment, &at)))
        i++;
    if (i == s->count)
        return TN_MEM_E_EXHAUSTED;
    if (!make_room(slabs, s))
        return TN_MEM_E_HOST_MEMORY;
    size_t before = at - s->pieces[i].offset, behind = s->pieces[i].bytes - before - bytes;
    if (behind > 0)
        insert_free(s, i + 1, at + bytes, behind);
    if (before > 0)
        insert_free(s, i++, at - before, before);
    s->pieces[i] = (piece){.offset = at, .bytes = bytes, .asked = bytes, .serial = ++slabs->next_serial};
    *block = (tn_pinned_block){(char *)s->region.base + at, bytes, s->flags, s->pieces[i].serial, slabs};
    slabs->counted.takes++;
    slabs->counted.live++;
    slabs->counted.live_bytes += bytes;
    if (slabs->counted.live_bytes > slabs->counted.high_water)
        slabs->counted.high_water = slabs->counted.live_bytes;
    return TN_MEM_OK;
}

/* ---- slabs ---- */

/* Not one that is busy: it has no blocks, and its addresses may be another's by now. */
static slab *find_slab(const tn_pinned_slabs *slabs, const void *address)
{
    for (size_t i = 0; i < slabs->count; i++) {
        const tn_region *r = &slabs->slabs[i].region;
        if (!slabs->slabs[i].busy && (uintptr_t)address >= (uintptr_t)r->base && (uintptr_t)address - (uintptr_t)r->base < r->committed)
            return &slabs->slabs[i];
    }
    return NULL;
}

/* From the slabs there are. EXHAUSTED where a new one may be opened; MUST_WAIT or EXHAUSTED, counted, where not. */
static tn_mem_error take_there(tn_pinned_slabs *slabs, unsigned flags, size_t bytes, size_t alignment, tn_pinned_block *block)
{
    bool later = false;
    for (size_t i = 0; i < slabs->count; i++) {
        slab *s = &slabs->slabs[i];
        if (s->flags != flags || s->busy)
            continue;
        settle(slabs, s);
        tn_mem_error error = cut(slabs, s, bytes, alignment, block);
        if (error != TN_MEM_E_EXHAUSTED)
            return error;
        later = later || would_fit(s, bytes, alignment);
    }
    if (slabs->count + slabs->opening < slabs->options.max_slabs)
        return TN_MEM_E_EXHAUSTED;
    if (later)
        slabs->counted.must_wait++;
    else
        slabs->counted.exhausted++;
    return later ? TN_MEM_E_MUST_WAIT : TN_MEM_E_EXHAUSTED;
}

/* Puts an acquired region among the slabs, and cuts the block that it was acquired for. */
static tn_mem_error add_slab(tn_pinned_slabs *slabs, const tn_region *region, unsigned flags, size_t bytes, size_t alignment,
                             tn_pinned_block *block)
{
    void *all = slabs->slabs;
    bool made = tn_metadata_grow(&slabs->metadata, &all, &slabs->room, slabs->count + 1, sizeof *slabs->slabs);
    slab opened = {.region = *region, .flags = flags};
    slabs->slabs = all;
    if (!made || !make_room(slabs, &opened))
        return TN_MEM_E_HOST_MEMORY;
    insert_free(&opened, 0, 0, region->committed);
    slab *s = &slabs->slabs[slabs->count++];
    *s = opened;
    slabs->counted.capacity += region->committed;
    slabs->counted.capacity_of[flags] += region->committed;
    return cut(slabs, s, bytes, alignment, block); /* has room for it and its neighbours */
}

static tn_mem_error take_anew(tn_pinned_slabs *slabs, unsigned flags, size_t bytes, size_t alignment, tn_pinned_block *block)
{
    tn_backend *backend = slabs->options.backends[flags];
    size_t wanted = bytes > slabs->options.slab_bytes ? bytes : slabs->options.slab_bytes;
    tn_region region;
    tn_mem_error error = tn_backend_acquire(backend, wanted, alignment, slabs->options.tag, &region);
    pthread_mutex_lock(&slabs->lock);
    slabs->opening--;
    if (error == TN_MEM_OK)
        error = add_slab(slabs, &region, flags, bytes, alignment, block);
    pthread_mutex_unlock(&slabs->lock);
    if (error == TN_MEM_E_HOST_MEMORY && region.base != NULL)
        (void)!tn_backend_release(backend, &region);
    return error;
}

tn_mem_error tn_pinned_slabs_take(tn_pinned_slabs *slabs, unsigned flags, size_t bytes, size_t alignment, tn_pinned_block *block)
{
    if (slabs == NULL || block == NULL)
        return TN_MEM_E_ARGUMENT;
    *block = (tn_pinned_block){0};
    alignment = alignment == 0 ? TN_ALIGNMENT_DEFAULT : alignment;
    if (bytes == 0 || !tn_is_power_of_two(alignment) || alignment > TN_ALIGNMENT_MAX || (flags & ~(unsigned)TN_PINNED_FLAGS) != 0)
        return TN_MEM_E_ARGUMENT;
    if (slabs->options.backends[flags] == NULL)
        return TN_MEM_E_UNSUPPORTED;
    pthread_mutex_lock(&slabs->lock);
    tn_mem_error error = take_there(slabs, flags, bytes, alignment, block);
    bool anew = error == TN_MEM_E_EXHAUSTED && slabs->count + slabs->opening < slabs->options.max_slabs;
    slabs->opening += anew;
    pthread_mutex_unlock(&slabs->lock);
    if (anew)
        error = take_anew(slabs, flags, bytes, alignment, block);
    if (error == TN_MEM_OK)
        TN_SEAM(handed_out, slabs, slabs->options.tag, block->data, bytes);
    return error;
}

static piece *find_piece(const tn_pinned_slabs *slabs, const tn_pinned_block *block, slab **in)
{
    slab *s = find_slab(slabs, block->data);
    for (size_t i = 0; s != NULL && i < s->count; i++)
        if (s->pieces[i].serial == block->serial && (char *)s->region.base + s->pieces[i].offset == block->data) {
            *in = s;
            return s->pieces[i].waiting ? NULL : &s->pieces[i];
        }
    return NULL;
}

static void give_piece(tn_pinned_slabs *slabs, slab *s, piece *p, const tn_work_mark *marks, size_t count)
{
    slabs->counted.gives++;
    slabs->counted.live--;
    slabs->counted.live_bytes -= p->asked;
    p->work = (tn_work_set){0};
    for (size_t i = 0; i < count; i++)
        tn_work_set_add(&p->work, &slabs->work, marks[i]);
    if (p->work.count == 0) {
        free_piece(s, (size_t)(p - s->pieces));
        return;
    }
    p->waiting = true;
    slabs->counted.waiting++;
    slabs->counted.waiting_bytes += p->asked;
}

tn_mem_error tn_pinned_slabs_give(tn_pinned_slabs *slabs, tn_pinned_block *block, const tn_work_mark *marks, size_t count)
{
    if (slabs == NULL || block == NULL || block->data == NULL || (count > 0 && (marks == NULL || !slabs->has_work)))
        return TN_MEM_E_ARGUMENT;
    slab *s = NULL;
    pthread_mutex_lock(&slabs->lock);
    piece *p = block->owner == slabs && block->serial != 0 ? find_piece(slabs, block, &s) : NULL;
    if (p == NULL) {
        slabs->counted.bad_blocks++;
        pthread_mutex_unlock(&slabs->lock);
        return block->owner == slabs ? TN_MEM_E_STALE : TN_MEM_E_FOREIGN;
    }
    /* Before, and with the lock: the addresses may be another's as soon as it is open. */
    TN_SEAM(taken_back, slabs, block->data);
    give_piece(slabs, s, p, marks, count);
    pthread_mutex_unlock(&slabs->lock);
    *block = (tn_pinned_block){0};
    return TN_MEM_OK;
}

/* ---- the whole ---- */

tn_mem_error tn_pinned_slabs_create(const tn_pinned_slabs_options *options, tn_pinned_slabs **slabs)
{
    if (options == NULL || slabs == NULL || options->tag == NULL || options->slab_bytes == 0 || options->max_slabs == 0 ||
        (options->work != NULL && !tn_work_is_valid(options->work)))
        return TN_MEM_E_ARGUMENT;
    bool any = false;
    for (size_t i = 0; i < TN_PINNED_SETS; i++)
        any = any || options->backends[i] != NULL;
    if (!any)
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_pinned_slabs *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_pinned_slabs){.options = *options, .metadata = metadata, .has_work = options->work != NULL};
    if (made->has_work)
        made->work = *options->work;
    made->options.work = NULL;
    made->options.metadata = NULL;
    pthread_mutex_init(&made->lock, NULL);
    *slabs = made;
    return TN_MEM_OK;
}

/* The first slab from `from` on that is one free piece, marked busy; the count where there is none. */
static size_t claim_empty(tn_pinned_slabs *slabs, size_t from)
{
    for (; from < slabs->count; from++) {
        slab *s = &slabs->slabs[from];
        if (s->busy)
            continue;
        settle(slabs, s);
        if (s->count == 1 && s->pieces[0].serial == 0) {
            s->busy = true;
            break;
        }
    }
    return from;
}

static void forget_slab(tn_pinned_slabs *slabs, slab *s)
{
    slabs->counted.capacity -= s->region.committed;
    slabs->counted.capacity_of[s->flags] -= s->region.committed;
    tn_metadata_free(&slabs->metadata, s->pieces, s->room * sizeof *s->pieces);
    memmove(s, s + 1, (size_t)(slabs->slabs + slabs->count - (s + 1)) * sizeof *s);
    slabs->count--;
}

tn_mem_error tn_pinned_slabs_trim(tn_pinned_slabs *slabs)
{
    if (slabs == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error first = TN_MEM_OK;
    pthread_mutex_lock(&slabs->lock);
    for (size_t i = claim_empty(slabs, 0); i < slabs->count; i = claim_empty(slabs, i)) {
        tn_region region = slabs->slabs[i].region;
        uint64_t id = region.id;
        unsigned flags = slabs->slabs[i].flags;
        pthread_mutex_unlock(&slabs->lock);
        tn_mem_error error = tn_backend_release(slabs->options.backends[flags], &region);
        pthread_mutex_lock(&slabs->lock);
        /* Others may have come and gone before it, and its place with them. */
        i = 0;
        while (slabs->slabs[i].region.id != id || slabs->slabs[i].flags != flags)
            i++;
        slab *s = &slabs->slabs[i];
        if (error == TN_MEM_OK) {
            forget_slab(slabs, s);
        } else {
            s->busy = false;
            first = first == TN_MEM_OK ? error : first;
            i++;
        }
    }
    pthread_mutex_unlock(&slabs->lock);
    return first;
}

tn_mem_error tn_pinned_slabs_destroy(tn_pinned_slabs **slabs)
{
    if (slabs == NULL || *slabs == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_pinned_slabs *all = *slabs;
    if (all->counted.live > 0)
        return TN_MEM_E_LEFTOVER;
    tn_mem_error error = tn_pinned_slabs_trim(all);
    if (error != TN_MEM_OK || all->count > 0)
        return error != TN_MEM_OK ? error : TN_MEM_E_MUST_WAIT;
    pthread_mutex_destroy(&all->lock);
    tn_metadata metadata = all->metadata;
    tn_metadata_free(&metadata, all->slabs, all->room * sizeof *all->slabs);
    tn_metadata_free(&metadata, all, sizeof *all);
    *slabs = NULL;
    return TN_MEM_OK;
}

tn_mem_error tn_pinned_slabs_identity(tn_pinned_slabs *slabs, const void *address, unsigned *flags)
{
    if (slabs == NULL || flags == NULL)
        return TN_MEM_E_ARGUMENT;
    pthread_mutex_lock(&slabs->lock);
    const slab *s = find_slab(slabs, address);
    if (s != NULL)
        *flags = s->flags;
    pthread_mutex_unlock(&slabs->lock);
    return s != NULL ? TN_MEM_OK : TN_MEM_E_STALE;
}

void tn_pinned_slabs_read_stats(tn_pinned_slabs *slabs, tn_pinned_slabs_stats *stats)
{
    pthread_mutex_lock(&slabs->lock);
    *stats = slabs->counted;
    stats->slabs = slabs->count;
    pthread_mutex_unlock(&slabs->lock);
}
