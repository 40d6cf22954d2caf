#include "tiers/packed_index.h"

#include "tiers/size.h"

#define LOCK_TRIES 256 /* some microseconds: as long as a search may take */

/* What a keeper is beside a queue's place. */
enum { UNKNOWN = TN_PACKED_QUEUES, LIFE, FIRST_SLOT };

static uint32_t groups_of(size_t members)
{
    return (uint32_t)((members + TN_PACKED_FAN - 1) / TN_PACKED_FAN);
}

bool tn_packed_index_bytes(size_t count, size_t *bytes)
{
    size_t keepers, groups = 0, members = count;
    do
        groups += members = groups_of(members);
    while (members > 1);
    /* A word of `told` for each of the groups is a few more than need be. */
    return tn_size_multiply(count, sizeof(tn_packed_keeper), &keepers) &&
           tn_size_multiply(groups, sizeof(tn_packed_group) + sizeof(uint64_t), &groups) && tn_size_add(keepers, groups, bytes) &&
           tn_size_add(*bytes, sizeof(tn_packed_index), bytes);
}

tn_packed_index *tn_packed_index_place(void *memory, size_t count)
{
    tn_packed_index *index = memory;
    *index = (tn_packed_index){.count = (uint32_t)count, .keepers = (tn_packed_keeper *)(index + 1)};
    for (size_t i = 0; i < count; i++)
        index->keepers[i] = (tn_packed_keeper){.what = UNKNOWN};
    tn_packed_group *next = (tn_packed_group *)(index->keepers + count);
    for (size_t members = count; index->levels == 0 || members > 1; members = groups_of(members)) {
        index->groups[index->levels] = next;
        index->sizes[index->levels++] = groups_of(members);
        for (size_t rest = members; rest > 0; rest -= rest < TN_PACKED_FAN ? rest : TN_PACKED_FAN)
            *next++ = (tn_packed_group){.look = rest >= TN_PACKED_FAN ? UINT64_MAX : ((uint64_t)1 << rest) - 1};
    }
    index->told = (uint64_t *)next;
    for (uint32_t i = 0; i < index->sizes[0]; i++)
        index->told[i] = 0;
    return index;
}

/* ---- what is written down */

/* The queue's place, or one that becomes its; UNKNOWN where there is none. A place that changes hands is still named by groups, of which none but
 * lets a search in for nothing by that: what keeps their slots is in them beside it. */
static uint32_t place_of(tn_packed_index *index, uint64_t queue)
{
    uint32_t empty = UNKNOWN;
    for (uint32_t i = 0; i < TN_PACKED_QUEUES; i++) {
        if (index->queues[i] == queue)
            return i;
        if (index->kept[i] == 0 && empty == UNKNOWN)
            empty = i;
        if (index->queues[i] == TN_WORK_NO_QUEUE)
            break; /* the rest never had one */
    }
    if (empty != UNKNOWN) {
        index->queues[empty] = queue;
        index->changed |= (uint64_t)1 << empty;
    }
    return empty;
}

static bool add_user(tn_packed_group *group, uint32_t slot)
{
    for (uint32_t i = 0; i < group->user_count; i++)
        if (group->users[i] == slot)
            return false;
    if (group->user_count < TN_PACKED_USERS) {
        group->users[group->user_count++] = slot;
        return true;
    }
    bool was = group->full;
    group->full = true;
    return !was;
}

static bool add_mark(tn_packed_group *group, uint32_t place, uint64_t sequence)
{
    uint64_t bit = (uint64_t)1 << place;
    if (group->queues & bit && group->sequences[place] <= sequence)
        return false;
    group->queues |= bit;
    group->sequences[place] = sequence;
    return true;
}

/* Whether the group changed by it. */
static bool add_keeper(tn_packed_group *group, tn_packed_keeper keeper)
{
    if (keeper.what < UNKNOWN)
        return add_mark(group, keeper.what, keeper.sequence);
    return keeper.what >= FIRST_SLOT && add_user(group, keeper.what - FIRST_SLOT);
}

static bool must_look(const tn_packed_group *group)
{
    return group->look != 0 || group->full;
}

/* The group's bit in the groups around it. */
static void tell_up(tn_packed_index *index, unsigned level, uint32_t number)
{
    for (; level + 1 < index->levels; level++, number /= TN_PACKED_FAN) {
        tn_packed_group *above = &index->groups[level + 1][number / TN_PACKED_FAN];
        uint64_t bit = (uint64_t)1 << number % TN_PACKED_FAN;
        above->look = must_look(&index->groups[level][number]) ? above->look | bit : above->look & ~bit;
    }
}

static void set_keeper(tn_packed_index *index, uint32_t ordinal, tn_packed_keeper keeper)
{
    tn_packed_keeper *mine = &index->keepers[ordinal];
    if (keeper.what < UNKNOWN)
        index->kept[keeper.what]++;
    if (mine->what < UNKNOWN)
        index->kept[mine->what]--;
    *mine = keeper;
    uint32_t number = ordinal / TN_PACKED_FAN;
    uint64_t *look = &index->groups[0][number].look, bit = (uint64_t)1 << ordinal % TN_PACKED_FAN;
    *look = keeper.what == UNKNOWN ? *look | bit : *look & ~bit;
    for (unsigned level = 0; level < index->levels; level++, number /= TN_PACKED_FAN)
        if (!add_keeper(&index->groups[level][number], keeper))
            break;
    tell_up(index, 0, ordinal / TN_PACKED_FAN);
}

static void set_kept(tn_packed_index *index, uint32_t ordinal, const tn_packed_kept *kept)
{
    tn_packed_keeper keeper = {.what = UNKNOWN};
    if (kept->by == TN_PACKED_BY_WORK)
        keeper = (tn_packed_keeper){.what = place_of(index, kept->mark.queue), .sequence = kept->mark.sequence};
    else if (kept->by == TN_PACKED_BY_SLOT)
        keeper.what = FIRST_SLOT + kept->slot;
    else if (kept->by == TN_PACKED_BY_LIFE)
        keeper.what = LIFE;
    set_keeper(index, ordinal, keeper);
}

void tn_packed_index_freed(tn_packed_index *index, uint32_t ordinal, const tn_work_set *set)
{
    /* A search that found the slot live looked before the claim, and the bit is there for the next; one that looks later sees the claim. */
    if (!tn_spin_try(&index->lock)) {
        __atomic_fetch_or(&index->told[ordinal / TN_PACKED_FAN], (uint64_t)1 << ordinal % TN_PACKED_FAN, __ATOMIC_SEQ_CST);
        __atomic_store_n(&index->told_apart, 1, __ATOMIC_SEQ_CST);
        return;
    }
    tn_packed_kept kept = {.by = TN_PACKED_BY_UNKNOWN};
    if (set->count > 0) /* any of the marks keeps it; the last one was added last */
        kept = (tn_packed_kept){.by = TN_PACKED_BY_WORK, .mark = set->marks[set->count - 1]};
    set_kept(index, ordinal, &kept);
    tn_spin_unlock(&index->lock);
}

bool tn_packed_index_begin(tn_packed_index *index)
{
    for (int i = 0; !tn_spin_try(&index->lock); i++) {
        if (i == LOCK_TRIES)
            return false;
        tn_spin_relax();
    }
    if (!index->used)
        __atomic_exchange_n(&index->used, 1, __ATOMIC_SEQ_CST); /* before a slot is looked at: who claims it to free it later, sees this */
    if (!__atomic_load_n(&index->told_apart, __ATOMIC_RELAXED))
        return true;
    __atomic_exchange_n(&index->told_apart, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < index->sizes[0]; i++) {
        uint64_t bits = __atomic_load_n(&index->told[i], __ATOMIC_RELAXED) ? __atomic_exchange_n(&index->told[i], 0, __ATOMIC_SEQ_CST) : 0;
        for (; bits != 0; bits &= bits - 1)
            set_keeper(index, i * TN_PACKED_FAN + (uint32_t)__builtin_ctzll(bits), (tn_packed_keeper){.what = UNKNOWN});
    }
    return true;
}

void tn_packed_index_end(tn_packed_index *index)
{
    tn_spin_unlock(&index->lock);
}

/* ---- a search */

/* What is not known yet of a mark. */
static __attribute__((noinline)) bool ask(tn_packed_search *s, uint32_t place, uint64_t sequence)
{
    uint64_t bit = (uint64_t)1 << place;
    if (!(s->asked & bit)) {
        s->asked |= bit;
        s->ready[place] = 0;
        s->keeps[place] = UINT64_MAX;
    }
    const tn_work_table *table = s->work->table;
    tn_work_mark mark = {s->index->queues[place], sequence};
    bool keeps = !table->done(s->work->self, mark) &&
                 (s->queue == TN_WORK_NO_QUEUE || table->ordered == NULL || !table->ordered(s->work->self, mark, s->queue));
    if (keeps)
        s->keeps[place] = sequence;
    else if (sequence < UINT64_MAX)
        s->ready[place] = sequence + 1;
    return keeps;
}

/* Whether the mark keeps the taker: asked once for all the marks that the answer is also of. */
static inline bool mark_keeps(tn_packed_search *s, uint32_t place, uint64_t sequence)
{
    if (s->asked >> place & 1) {
        if (sequence >= s->keeps[place])
            return true;
        if (sequence < s->ready[place])
            return false;
    }
    return ask(s, place, sequence);
}

static inline bool is_sought(tn_packed_search *s, tn_packed_keeper keeper)
{
    if (s->sought == TN_PACKED_KEPT_BY_WORK)
        return keeper.what < UNKNOWN;
    if (s->sought == TN_PACKED_KEPT_BY_SLOT)
        return keeper.what >= FIRST_SLOT;
    return keeper.what < UNKNOWN ? !mark_keeps(s, keeper.what, keeper.sequence)
                                 : keeper.what == UNKNOWN || (keeper.what >= FIRST_SLOT && !s->uses(s->self, keeper.what - FIRST_SLOT));
}

static inline bool must_search(tn_packed_search *s, const tn_packed_group *group, unsigned level)
{
    /* The bit of a group may be there because that is full. */
    if (group->full || (group->look != 0 && (level > 0 || s->sought == TN_PACKED_ANY)))
        return true;
    if (s->sought == TN_PACKED_KEPT_BY_WORK)
        return group->queues != 0;
    if (s->sought == TN_PACKED_KEPT_BY_SLOT)
        return group->user_count > 0;
    for (uint64_t bits = group->queues; bits != 0; bits &= bits - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(bits);
        if (!mark_keeps(s, place, group->sequences[place]))
            return true;
    }
    for (uint32_t i = 0; i < group->user_count; i++)
        if (!s->uses(s->self, group->users[i]))
            return true;
    return false;
}

static uint32_t end_of(const tn_packed_index *index, unsigned level, uint32_t number)
{
    uint32_t members = level == 0 ? index->count : index->sizes[level - 1], first = number * TN_PACKED_FAN;
    return members - first < TN_PACKED_FAN ? members : first + TN_PACKED_FAN;
}

/* Says anew what keeps those in the group. */
static void tighten(tn_packed_index *index, unsigned level, uint32_t number)
{
    tn_packed_group *group = &index->groups[level][number];
    uint32_t end = end_of(index, level, number);
    group->queues = 0;
    group->user_count = 0;
    group->full = false;
    for (uint32_t i = number * TN_PACKED_FAN; i < end; i++) {
        if (level == 0) {
            (void)add_keeper(group, index->keepers[i]);
            continue;
        }
        const tn_packed_group *below = &index->groups[level - 1][i];
        for (uint64_t bits = below->queues; bits != 0; bits &= bits - 1)
            (void)add_mark(group, (uint32_t)__builtin_ctzll(bits), below->sequences[__builtin_ctzll(bits)]);
        for (uint32_t k = 0; k < below->user_count; k++)
            (void)add_user(group, below->users[k]);
    }
    tell_up(index, level, number);
}

static bool search_slots(tn_packed_search *s, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        s->steps++;
        if (!is_sought(s, s->index->keepers[i]))
            continue;
        tn_packed_kept kept;
        bool ends = s->slot(s->self, i, &kept);
        set_kept(s->index, i, &kept);
        s->asked &= ~s->index->changed; /* what is known was of another queue */
        s->index->changed = 0;
        if (ends)
            return true;
    }
    return false;
}

static bool search_group(tn_packed_search *s, unsigned level, uint32_t number)
{
    uint32_t first = number * TN_PACKED_FAN, end = end_of(s->index, level, number);
    if (level == 0 && search_slots(s, first, end))
        return true;
    for (uint32_t i = first; level > 0 && i < end; i++) {
        s->steps++;
        if (must_search(s, &s->index->groups[level - 1][i], level - 1) && search_group(s, level - 1, i))
            return true;
    }
    tighten(s->index, level, number); /* what it said let the search in for nothing */
    return false;
}

bool tn_packed_index_search(tn_packed_search *search, tn_packed_sought sought)
{
    search->sought = sought;
    search->steps = 1;
    unsigned top = search->index->levels - 1;
    bool ended = must_search(search, &search->index->groups[top][0], top) && search_group(search, top, 0);
    __atomic_store_n(&search->index->steps, search->index->steps + search->steps, __ATOMIC_RELAXED); /* by who has the lock alone */
    return ended;
}
