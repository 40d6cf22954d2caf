/* Slots for several size classes an octave, each set laid out quickly, and the best of them with care. */
#include "planner/layout.h"

#include <stdlib.h>
#include <string.h>

#include "planner/pack.h"
#include "planner/slots.h"

#define ONE_SIZE_LOSS 100u
#define SLOT_LOSS 1000u
/* Coarser classes are tried until two in a row cost more than this part. */
#define IDLE_LOSS 500u
/* With more blocks than this one layout is made, a size for each site, and no search: minutes are not spent on it. */
#define MANY_BLOCKS 200000u

static const uint32_t finenesses[] = {16, 8, 4, 2, 1, TN_CLASSES_ONE};

static tn_error of_pack(tn_pack_error e)
{
    return e == TN_PACK_OK ? TN_OK : e == TN_PACK_E_NOMEM ? TN_E_NOMEM : e == TN_PACK_E_OVERFLOW || e == TN_PACK_E_LIMIT ? TN_E_LIMIT : TN_E_ARGUMENT;
}

/* Uses that touch are one; what lies between two is a gap. */
static size_t gaps_of(const tn_use *uses, size_t count, tn_pack_gap *gaps)
{
    size_t n = 0;
    for (size_t i = 1; i < count; i++)
        if (uses[i].begin > uses[i - 1].end)
            gaps[n++] = (tn_pack_gap){.lower = uses[i - 1].end, .upper = uses[i].begin};
    return n;
}

static tn_error pack(const tn_slots *slots, uint64_t steps, uint64_t *offsets, tn_pack_result *result)
{
    tn_pack_buffer *buffers = calloc(slots->count + 1, sizeof *buffers);
    tn_pack_gap *gaps = malloc((slots->use_count + 1) * sizeof *gaps);
    tn_pack_conflict *conflicts = malloc((slots->pair_count + 1) * sizeof *conflicts);
    tn_pack_options options = {.steps = steps, .greedy_only = steps == 0};
    tn_error error = TN_E_NOMEM;
    if (buffers && gaps && conflicts) {
        size_t use = 0, gap = 0;
        for (size_t i = 0; i < slots->count; i++) {
            size_t first = use;
            while (use < slots->use_count && slots->uses[use].slot == i)
                use++;
            buffers[i] = (tn_pack_buffer){.id = i, .lower = slots->uses[first].begin, .upper = slots->uses[use - 1].end, .size = slots->at[i].bytes,
                                          .alignment = slots->at[i].alignment, .hint = TN_PACK_NO_HINT, .gaps = gaps + gap};
            buffers[i].gap_count = gaps_of(slots->uses + first, use - first, gaps + gap);
            gap += buffers[i].gap_count;
        }
        for (size_t i = 0; i < slots->pair_count; i++)
            conflicts[i] = (tn_pack_conflict){.a = slots->pairs[i].a, .b = slots->pairs[i].b};
        error = of_pack(slots->by_pairs ? tn_pack_graph(buffers, slots->count, conflicts, slots->pair_count, &options, offsets, result, NULL)
                                        : tn_pack(buffers, slots->count, &options, offsets, result, NULL));
    }
    free(buffers);
    free(gaps);
    free(conflicts);
    return error;
}

static tn_error height_of(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint32_t headroom, int clean, uint64_t *height, size_t *count)
{
    tn_slots slots;
    tn_error error = tn_slots_make(s, chosen, per_octave, headroom, clean, &slots);
    if (error != TN_OK)
        return error;
    uint64_t *offsets = malloc((slots.count + 1) * sizeof *offsets);
    tn_pack_result result;
    error = offsets ? pack(&slots, 0, offsets, &result) : TN_E_NOMEM;
    *height = error == TN_OK && slots.count ? result.height : 0;
    *count = slots.count;
    free(offsets);
    tn_slots_free(&slots);
    return error;
}

tn_error tn_layout_estimate(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint64_t *capacity)
{
    size_t count;
    return height_of(s, chosen, per_octave, 0, 1, capacity, &count);
}

/* The lowest; of those that are next to equal the one with the fewest slots, which serves other mixes of requests best. */
static tn_error choose_fineness(const tn_section *s, const uint8_t *chosen, uint32_t headroom, uint32_t *best)
{
    uint64_t lowest = UINT64_MAX;
    size_t fewest = SIZE_MAX;
    int idle = 0;
    tn_error error = TN_OK;
    *best = 0;
    for (size_t i = 0; i < sizeof(finenesses) / sizeof(finenesses[0]) && error == TN_OK && idle < 2; i++) {
        uint64_t height;
        size_t count;
        error = height_of(s, chosen, finenesses[i], headroom, 1, &height, &count);
        if (error == TN_E_LIMIT && i + 1 < sizeof(finenesses) / sizeof(finenesses[0])) { /* coarser ones have fewer slots */
            error = TN_OK;
            continue;
        }
        idle = error == TN_OK && lowest != UINT64_MAX && height > lowest + lowest / IDLE_LOSS ? idle + 1 : 0;
        if (error == TN_OK && (height < lowest || (height <= lowest + lowest / SLOT_LOSS && count < fewest))) {
            lowest = height < lowest ? height : lowest;
            fewest = count;
            *best = finenesses[i];
        }
    }
    return error;
}

/* Slots of one size serve any mix of the sizes that were seen, where those of several do not: taken where they cost next to nothing. */
static tn_error try_one_size(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint32_t *headroom)
{
    uint64_t fine, one;
    size_t count;
    tn_error error = height_of(s, chosen, per_octave, 0, 1, &fine, &count);
    if (error == TN_OK)
        error = height_of(s, chosen, per_octave, TN_HEADROOM_ONE_SIZE, 1, &one, &count);
    if (error == TN_OK && one <= fine + fine / ONE_SIZE_LOSS)
        *headroom = TN_HEADROOM_ONE_SIZE;
    return error == TN_E_LIMIT ? TN_OK : error;
}

/* ---- how close it is ---- */

static int share_addresses(const tn_slot *a, const tn_slot *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static int by_begin(const void *a, const void *b)
{
    const tn_use *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* For each hand-out: was one of its addresses another site's since this slot had it, and how many hand-outs ago did that end? */
static tn_error look_at_sharing(const tn_slots *slots, tn_layout *out)
{
    size_t n = slots->count, cell_count = 0;
    uint32_t *first = calloc(n + 2, sizeof *first), *others = NULL;
    uint64_t *last_begin = calloc(n + 1, sizeof *last_begin), *last_end = calloc(n + 1, sizeof *last_end);
    tn_use *uses = malloc((slots->use_count + 1) * sizeof *uses);
    tn_error error = first && last_begin && last_end && uses ? TN_OK : TN_E_NOMEM;
    for (size_t i = 0; i < n && error == TN_OK; i++) {
        for (size_t k = 0; k < n && error == TN_OK; k++) {
            if (out->slots[i].unit == out->slots[k].unit || !share_addresses(&out->slots[i], &out->slots[k]))
                continue;
            uint32_t *at = TN_TRACE_PUSH(others, cell_count);
            if (!at)
                error = TN_E_NOMEM;
            else
                *at = (uint32_t)k;
        }
        first[i + 1] = (uint32_t)cell_count;
    }
    if (error == TN_OK) {
        memcpy(uses, slots->uses, slots->use_count * sizeof *uses);
        if (slots->use_count)
            qsort(uses, slots->use_count, sizeof *uses, by_begin);
        out->hand_outs = slots->use_count;
        out->nearest = 0;
        /* Ends are counted in hand-outs: those that began before the end. */
        for (size_t i = 0; i < slots->use_count; i++) {
            uint32_t slot = uses[i].slot;
            int shared = 0;
            for (uint32_t c = first[slot]; c < first[slot + 1]; c++) {
                uint32_t other = others[c];
                if (!last_begin[other] || (last_begin[slot] && last_begin[other] < last_begin[slot]))
                    continue;
                shared = 1;
                size_t low = last_begin[other], high = i;
                while (low < high) { /* the first hand-out behind the end of the other's use */
                    size_t middle = low + (high - low) / 2;
                    if (uses[middle].begin < last_end[other])
                        low = middle + 1;
                    else
                        high = middle;
                }
                uint64_t distance = i - low + 1;
                if (out->nearest == 0 || distance < out->nearest)
                    out->nearest = distance;
            }
            out->shared += (uint64_t)shared;
            last_begin[slot] = i + 1;
            last_end[slot] = uses[i].end;
        }
    }
    free(first);
    free(others);
    free(last_begin);
    free(last_end);
    free(uses);
    return error;
}

static tn_error make(const tn_section *s, const uint8_t *chosen, const tn_layout_options *options, tn_layout *out)
{
    *out = (tn_layout){.classes_an_octave = options->classes_an_octave};
    tn_error error = TN_OK;
    uint32_t headroom = options->headroom;
    uint64_t blocks = 0, steps = options->steps;
    for (size_t i = 0; i < s->unit_count; i++)
        blocks += chosen[i] ? s->units[i].blocks : 0;
    if (blocks > MANY_BLOCKS) {
        steps = 0;
        if (out->classes_an_octave == 0)
            out->classes_an_octave = TN_CLASSES_ONE;
    }
    if (out->classes_an_octave == 0)
        error = choose_fineness(s, chosen, headroom, &out->classes_an_octave);
    if (error == TN_OK && headroom == 0 && blocks <= MANY_BLOCKS)
        error = try_one_size(s, chosen, out->classes_an_octave, &headroom);
    tn_slots slots = {0};
    if (error == TN_OK)
        error = tn_slots_make(s, chosen, out->classes_an_octave, headroom, 1, &slots);
    uint64_t *offsets = error == TN_OK ? malloc((slots.count + 1) * sizeof *offsets) : NULL;
    tn_pack_result result;
    if (error == TN_OK)
        error = offsets ? pack(&slots, steps, offsets, &result) : TN_E_NOMEM;
    if (error == TN_OK) {
        for (size_t i = 0; i < slots.count; i++)
            slots.at[i].offset = offsets[i];
        out->slots = slots.at;
        out->slot_count = slots.count;
        slots.at = NULL;
        out->capacity = slots.count ? result.height : 0;
        out->lower_bound = slots.count ? result.lower_bound : 0;
        out->live_peak = slots.live_peak;
        out->live_exact = slots.live_exact;
        error = look_at_sharing(&slots, out);
    }
    size_t count;
    if (error == TN_OK)
        error = height_of(s, chosen, out->classes_an_octave, headroom, 0, &out->with_waits, &count);
    /* A wait more can never need more room: where the quick layout is no lower, the careful one holds for it too. */
    if (error == TN_OK && out->with_waits > out->capacity)
        out->with_waits = out->capacity;
    free(offsets);
    tn_slots_free(&slots);
    if (error != TN_OK)
        tn_layout_free(out);
    return error;
}

tn_error tn_layout_make(const tn_section *s, const uint8_t *chosen, const tn_layout_options *options, tn_layout *out)
{
    tn_section picked;
    tn_error error = tn_section_pick(s, chosen, &picked);
    *out = (tn_layout){0};
    if (error != TN_OK)
        return error;
    error = make(&picked, chosen, options, out);
    tn_section_unpick(&picked);
    return error;
}

void tn_layout_free(tn_layout *l)
{
    free(l->slots);
    *l = (tn_layout){0};
}
