#include <sched.h>

#include "tiers/packed_state.h"
#include "tiers/seam_use.h"
#include "tiers/span_make.h"

/* Of a take that meets others half way: microseconds, less than a block from elsewhere costs; then a little longer, for a thread that was
 * stopped there. */
#define TRIES_AT_ONCE 64
#define TRIES 80

/* Slots that are asked one by one before an index is: it then costs less than they do, and its class's frees a little more from then on. */
#define FIRST_LOOKS 8

typedef enum outcome { TAKEN, ALIVE, IN_THE_WAY, WAITS, BUSY } outcome;

/* One hand-out under way. */
typedef struct attempt {
    tn_packed *packed;
    uint64_t queue;
    tn_packed_refusal refusal; /* of the candidate that is looked at */
    bool is_told;              /* of what is to be waited for, by an earlier candidate */
    tn_work_mark kept_by;      /* of a slot that waits: one of its marks; of no queue where it was ready a moment later */
    tn_work_mark blocked;      /* a mark that was found neither done nor ordered, and so are those after it in its queue */
} attempt;

/* The first slot to be waited for is the one that is named. */
static outcome refuse(attempt *a, outcome outcome, tn_packed_cause cause, uint32_t slot)
{
    if (cause == TN_PACKED_NOT_CLEAN && a->refusal.cause == cause)
        return outcome;
    a->refusal.cause = cause;
    a->refusal.slot = slot;
    return outcome;
}

static const tn_work_mark *behind_blocked(const attempt *a, const tn_work_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->marks[i].queue == a->blocked.queue && set->marks[i].sequence >= a->blocked.sequence)
            return &set->marks[i];
    return NULL;
}

/* Of a set that is not ready. A site that frees block after block between two waits has as many slots with marks of one queue, and each take looks
 * at all of them: to ask for each was the larger part of such a take (9,300 of 13,000 instructions of a pair, with 50 slots). */
static const tn_work_mark *note_blocked(attempt *a, const tn_work_set *set)
{
    const tn_work *work = &a->packed->work;
    for (size_t i = 0; i < set->count; i++)
        if (a->queue == TN_WORK_NO_QUEUE || work->table->ordered == NULL || !work->table->ordered(work->self, set->marks[i], a->queue)) {
            a->blocked = set->marks[i];
            return &set->marks[i];
        }
    return NULL;
}

/* The slot is the caller's. Whether its bytes may be used; else what is to be waited for is noted. */
static bool is_clean(attempt *a, uint32_t slot)
{
    tn_packed *p = a->packed;
    tn_work_set *set = &p->places[slot].set;
    if (set->count == 0)
        return true;
    const tn_work_mark *blocked = behind_blocked(a, set);
    if (blocked == NULL) {
        if (tn_work_set_is_ready(set, &p->work, a->queue))
            return true;
        blocked = note_blocked(a, set);
    }
    a->kept_by = blocked != NULL ? *blocked : (tn_work_mark){TN_WORK_NO_QUEUE, 0};
    if (!a->is_told)
        tn_work_set_merge(&a->refusal.wait_for, &p->work, set);
    return false;
}

/* Ends the take's hold on a slot. */
static void give_back(place *p, unsigned status)
{
    uint64_t state = load_state(p);
    __atomic_store_n(&p->claimer, NULL, __ATOMIC_RELAXED);
    store_state(p, with_status(state, status));
}

/* Claims the slot that was seen to have the cell *at, which the candidate needs; it is the caller's only where TAKEN. *at becomes the next
 * cell that may be another's. */
static outcome claim_other(attempt *a, uint32_t slot, uint32_t *at, unsigned *was)
{
    place *other = &a->packed->places[slot];
    uint64_t seen = load_state(other);
    *was = status_of(seen);
    if (*was == LIVE)
        return refuse(a, IN_THE_WAY, TN_PACKED_IN_THE_WAY, slot);
    if (*was == FREED && holds_of(seen))
        return refuse(a, IN_THE_WAY, TN_PACKED_HELD, slot);
    if (*was == CLAIMED || !claim_place(other, &seen))
        return refuse(a, BUSY, TN_PACKED_RACE, slot);
    outcome result = TAKEN;
    uint32_t next;
    /* Asked again, for before the claim any of its cells may have passed on, also others of the block; now they cannot. */
    if (tn_packed_cells_owner(&a->packed->cells, *at, &next) != slot + 1)
        result = refuse(a, BUSY, TN_PACKED_RACE, slot);
    else if (!is_clean(a, slot))
        result = refuse(a, WAITS, TN_PACKED_NOT_CLEAN, slot);
    *at = *was == FREED ? other->range.end : next;
    if (result != TAKEN)
        give_back(other, *was);
    return result;
}

/* The slots that a take has claimed. */
typedef struct claimed {
    uint32_t head;
    bool untouched; /* there are cells that no slot ever had */
} claimed;

static void keep_claimed(attempt *a, claimed *list, uint32_t slot, unsigned was)
{
    place *other = &a->packed->places[slot];
    __atomic_store_n(&other->claimer, a, __ATOMIC_RELAXED);
    other->was = was;
    other->next = list->head;
    list->head = slot;
}

/* Whether this take has claimed the slot; then its cells stay where they are. */
static bool is_ours(const attempt *a, uint32_t candidate, uint32_t slot)
{
    return slot == candidate || __atomic_load_n(&a->packed->places[slot].claimer, __ATOMIC_RELAXED) == a;
}

/* Claims every slot that has cells of the candidate's. Where one must be waited for it goes on to look only: one that is live is in the way
 * all the same. */
static outcome claim_all(attempt *a, uint32_t candidate, outcome result, claimed *list)
{
    tn_packed *p = a->packed;
    tn_packed_range range = p->places[candidate].range;
    for (uint32_t at = range.first; at < range.end && (result == TAKEN || result == WAITS);) {
        uint32_t next, owner = tn_packed_cells_owner(&p->cells, at, &next), slot = owner - 1;
        if (owner == 0 || is_ours(a, candidate, slot)) {
            list->untouched |= owner == 0;
            at = next;
            continue;
        }
        unsigned was;
        outcome met = claim_other(a, slot, &at, &was);
        if (met == TAKEN && result == TAKEN)
            keep_claimed(a, list, slot, was);
        else if (met == TAKEN)
            give_back(&p->places[slot], was);
        else
            result = met;
    }
    return result;
}

/* Cells that no slot ever had go to whoever is first. False where another was; what was got so far then stays with the candidate, FREE. */
static bool take_untouched(const attempt *a, uint32_t candidate)
{
    tn_packed_cells *cells = &a->packed->cells;
    tn_packed_range range = a->packed->places[candidate].range;
    for (uint32_t at = range.first, next; at < range.end; at = next) {
        uint32_t owner = tn_packed_cells_owner(cells, at, &next);
        if (owner == 0 ? !tn_packed_cells_take_untouched(cells, at, candidate) : !is_ours(a, candidate, owner - 1))
            return false;
    }
    return true;
}

/* Gets the cells of a claimed slot that has not all of them, where `result`, of what it has, is TAKEN. All or nothing. */
static outcome take_cells(attempt *a, uint32_t candidate, outcome result)
{
    tn_packed *p = a->packed;
    place *taker = &p->places[candidate];
    claimed list = {.head = TN_PACKED_NO_SLOT};
    result = claim_all(a, candidate, result, &list);
    if (result == TAKEN && list.untouched && !take_untouched(a, candidate))
        result = refuse(a, BUSY, TN_PACKED_RACE, TN_PACKED_NO_SLOT);
    if (result == TAKEN)
        tn_packed_cells_pass(&p->cells, taker->range, candidate);
    while (list.head != TN_PACKED_NO_SLOT) {
        place *other = &p->places[list.head];
        list.head = other->next;
        /* Its work is not known to be done, only to be before the taker's: that goes for who comes after the taker too. */
        if (result == TAKEN && other->set.count > 0)
            tn_work_set_merge(&taker->set, &p->work, &other->set);
        give_back(other, result == TAKEN ? FREE : other->was);
    }
    return result;
}

static outcome try_slot(attempt *a, uint32_t slot, size_t bytes)
{
    place *candidate = &a->packed->places[slot];
    uint64_t seen = load_state(candidate);
    if (status_of(seen) == LIVE)
        return refuse(a, ALIVE, TN_PACKED_ALL_ALIVE, slot);
    if (status_of(seen) == CLAIMED || !claim_place(candidate, &seen))
        return refuse(a, BUSY, TN_PACKED_RACE, slot);
    outcome result = TAKEN;
    if (!is_clean(a, slot))
        result = refuse(a, WAITS, TN_PACKED_NOT_CLEAN, slot);
    if (status_of(seen) == FREE)
        result = take_cells(a, slot, result);
    if (result == TAKEN) {
        __atomic_store_n(&candidate->asked, bytes, __ATOMIC_RELEASE);
        seen = with_status(seen, LIVE) + TAKE;
    }
    store_state(candidate, seen);
    return result;
}

/* What refuses the whole: a wait would do for one candidate; else what was met half way is asked again; else what is in the way. */
static unsigned weight(outcome o)
{
    return o == WAITS ? 3 : o == BUSY ? 2 : o == IN_THE_WAY ? 1 : 0;
}

/* A class looked through for one take. The refusal kept is the first of its weight. */
typedef struct look {
    attempt *a;
    size_class *class;
    size_t bytes;
    outcome worst;
    bool any;
    unsigned enough; /* weight of a refusal that ends a search by the index; 0: none does */
    uint32_t slot;   /* TAKEN: that */
    tn_packed_refusal *refusal;
} look;

static outcome look_at(look *l, uint32_t ordinal)
{
    attempt *a = l->a;
    a->refusal.cause = TN_PACKED_NOT_REFUSED;
    a->refusal.wait_for.count = 0;
    outcome met = try_slot(a, l->class->first + ordinal, l->bytes);
    if (met == TAKEN) {
        l->slot = l->class->first + ordinal;
    } else if (!l->any || weight(met) > weight(l->worst)) {
        l->any = true;
        l->worst = met;
        *l->refusal = a->refusal;
        a->is_told = met == WAITS;
    }
    return met;
}

/* `count` slots of the class one by one, from where the live ones end. Those below `lowest` are looked at last, for where threads cross it may be a
 * little late. */
static outcome look_at_each(look *l, uint32_t count)
{
    size_class *class = l->class;
    uint32_t lowest = __atomic_load_n(&class->lowest, __ATOMIC_RELAXED), live = lowest, i = 0;
    outcome met = ALIVE;
    for (; i < count && met != TAKEN; i++) {
        uint32_t ordinal = lowest + i < class->count ? lowest + i : lowest + i - class->count;
        met = look_at(l, ordinal);
        live += (met == ALIVE || met == TAKEN) && ordinal == live;
    }
    if (live != lowest)
        __atomic_store_n(&class->lowest, live, __ATOMIC_RELAXED);
    if (i > FIRST_LOOKS)
        __atomic_fetch_add(&l->a->packed->looks, i - FIRST_LOOKS, __ATOMIC_RELAXED);
    return met == TAKEN ? TAKEN : l->worst;
}

static bool look_for_index(void *self, uint32_t ordinal, tn_packed_kept *kept)
{
    look *l = self;
    const attempt *a = l->a;
    outcome met = look_at(l, ordinal);
    kept->by = TN_PACKED_BY_UNKNOWN;
    if (met == TAKEN || met == ALIVE) {
        kept->by = TN_PACKED_BY_LIFE;
    } else if (met == WAITS && a->kept_by.queue != TN_WORK_NO_QUEUE) {
        kept->by = TN_PACKED_BY_WORK;
        kept->mark = a->kept_by;
    } else if (met == IN_THE_WAY) {
        kept->by = TN_PACKED_BY_SLOT;
        kept->slot = a->refusal.slot;
    }
    return met == TAKEN || (l->enough > 0 && weight(met) >= l->enough);
}

/* Whether nobody else can have any of that slot's bytes. */
static bool is_in_use(void *self, uint32_t slot)
{
    const look *l = self;
    uint64_t state = load_state(&l->a->packed->places[slot]);
    return status_of(state) == LIVE || (status_of(state) == FREED && holds_of(state) > 0);
}

/* Whether a slot was taken, or nothing weightier than what the search found can be in the class. */
static bool search_for(tn_packed_search *search, look *l, tn_packed_sought sought, outcome reason)
{
    l->enough = weight(reason);
    (void)tn_packed_index_search(search, sought);
    return l->slot != TN_PACKED_NO_SLOT || weight(l->worst) >= weight(sought == TN_PACKED_ANY ? WAITS : reason);
}

/* The lowest ordinal of the class that is to be had; else a reason as weighty as looking at each would find. The caller has the index. */
static outcome look_by_index(look *l)
{
    tn_packed_search search;
    search.index = l->class->index;
    search.work = &l->a->packed->work;
    search.queue = l->a->queue;
    search.slot = look_for_index;
    search.uses = is_in_use;
    search.self = l;
    search.asked = 0;
    l->slot = TN_PACKED_NO_SLOT;
    if (!search_for(&search, l, TN_PACKED_ANY, TAKEN) && !search_for(&search, l, TN_PACKED_KEPT_BY_WORK, WAITS))
        (void)search_for(&search, l, TN_PACKED_KEPT_BY_SLOT, IN_THE_WAY);
    return l->slot != TN_PACKED_NO_SLOT ? TAKEN : l->worst;
}

/* Where the first that was looked at is not to be had: `met` says why. */
static __attribute__((noinline)) outcome try_others(attempt *a, size_class *class, size_t bytes, outcome met, uint32_t *slot,
                                                    tn_packed_refusal *refusal)
{
    look l = {.a = a, .class = class, .bytes = bytes, .worst = met, .any = true, .refusal = refusal};
    tn_packed_index *index = class->index;
    *refusal = a->refusal;
    a->is_told = met == WAITS;
    if (index == NULL || !__atomic_load_n(&index->used, __ATOMIC_RELAXED))
        met = look_at_each(&l, index == NULL ? class->count : FIRST_LOOKS);
    if (met != TAKEN && index != NULL) {
        if (tn_packed_index_begin(index)) {
            met = look_by_index(&l);
            tn_packed_index_end(index);
        } else {
            met = look_at_each(&l, class->count);
        }
    }
    *slot = l.slot;
    return met;
}

/* The lowest ordinal of the class that is to be had. */
static outcome try_class(attempt *a, size_class *class, size_t bytes, uint32_t *slot, tn_packed_refusal *refusal)
{
    uint32_t lowest = __atomic_load_n(&class->lowest, __ATOMIC_RELAXED), ordinal = lowest < class->count ? lowest : 0;
    a->is_told = false;
    a->blocked.queue = TN_WORK_NO_QUEUE;
    a->refusal.cause = TN_PACKED_NOT_REFUSED;
    a->refusal.wait_for.count = 0;
    outcome met = try_slot(a, class->first + ordinal, bytes);
    if (met != TAKEN)
        return try_others(a, class, bytes, met, slot, refusal);
    if (ordinal == lowest)
        __atomic_store_n(&class->lowest, ordinal + 1, __ATOMIC_RELAXED);
    *slot = class->first + ordinal;
    return TAKEN;
}

static size_class *find_class(const tn_packed *p, uint32_t site, size_t bytes)
{
    if (site >= p->site_count)
        return NULL;
    for (uint32_t i = p->site_classes[site]; i < p->site_classes[site + 1]; i++)
        if (p->classes[i].bytes >= bytes)
            return &p->classes[i];
    return NULL;
}

static void note_diverged(tn_packed *p, const tn_packed_refusal *refusal)
{
    if (__atomic_fetch_add(&p->diverged, 1, __ATOMIC_RELAXED) > 0)
        return;
    p->first_diverged = *refusal;
    __atomic_store_n(&p->first_diverged_is_there, 1, __ATOMIC_RELEASE);
}

static tn_mem_error answer(tn_packed *p, outcome result, tn_packed_refusal *refusal, tn_packed_refusal *why)
{
    if (refusal->slot != TN_PACKED_NO_SLOT)
        refusal->slot_site = p->slots[refusal->slot].site;
    if (result == WAITS) {
        __atomic_fetch_add(&p->must_waits, 1, __ATOMIC_RELAXED);
    } else {
        refusal->wait_for.count = 0;
        note_diverged(p, refusal);
    }
    if (why != NULL)
        *why = *refusal;
    return result == WAITS ? TN_MEM_E_MUST_WAIT : TN_MEM_E_DIVERGED;
}

tn_mem_error tn_packed_take(tn_packed *packed, uint32_t site, size_t bytes, uint64_t queue, tn_stable_span *span, tn_packed_refusal *why)
{
    if (packed == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    if (bytes == 0)
        return TN_MEM_E_ARGUMENT;
    attempt a;
    a.packed = packed;
    a.queue = queue;
    a.refusal.site = site;
    a.refusal.bytes = bytes;
    a.refusal.slot_site = 0;
    a.refusal.cause = TN_PACKED_NOT_REFUSED;
    size_class *class = find_class(packed, site, bytes);
    tn_packed_refusal refusal;
    if (class == NULL) {
        outcome none = refuse(&a, IN_THE_WAY, TN_PACKED_NO_CLASS, TN_PACKED_NO_SLOT);
        return answer(packed, none, &a.refusal, why);
    }
    outcome result = BUSY;
    for (int i = 0; i < TRIES; i++) {
        uint32_t slot = TN_PACKED_NO_SLOT;
        result = try_class(&a, class, bytes, &slot, &refusal);
        if (result == TAKEN) {
            TN_SEAM(handed_out, packed, packed->region.tag, packed->base + packed->slots[slot].offset, bytes);
            tn_stable_put(packed->base + packed->slots[slot].offset, bytes, span);
            return TN_MEM_OK;
        }
        if (result != BUSY)
            break;
        __atomic_fetch_add(&packed->races, 1, __ATOMIC_RELAXED);
        if (i < TRIES_AT_ONCE)
            tn_spin_relax();
        else
            (void)sched_yield();
    }
    return answer(packed, result, &refusal, why);
}
