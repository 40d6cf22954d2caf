#include "tiers/work_mark.h"

bool tn_work_is_valid(const tn_work *work)
{
    return work != NULL && work->table != NULL && work->table->done != NULL && work->table->all != NULL;
}

static bool is_done(const tn_work *work, tn_work_mark mark)
{
    return work->table->done(work->self, mark);
}

void tn_work_set_add(tn_work_set *set, const tn_work *work, tn_work_mark mark)
{
    if (mark.queue == TN_WORK_NO_QUEUE)
        return;
    for (size_t i = 0; i < set->count; i++) {
        if (set->marks[i].queue != mark.queue)
            continue;
        if (set->marks[i].sequence < mark.sequence)
            set->marks[i].sequence = mark.sequence;
        return;
    }
    if (set->count == TN_WORK_SET_MARKS && !tn_work_set_is_clean(set, work) && set->count == TN_WORK_SET_MARKS) {
        /* Asked for now, when all these marks lie in the past: it covers them. */
        set->marks[0] = work->table->all(work->self);
        set->count = 1;
        return;
    }
    set->marks[set->count++] = mark;
}

void tn_work_set_merge(tn_work_set *set, const tn_work *work, const tn_work_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        tn_work_set_add(set, work, other->marks[i]);
}

bool tn_work_set_is_clean(tn_work_set *set, const tn_work *work)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!is_done(work, set->marks[i]))
            set->marks[kept++] = set->marks[i];
    set->count = kept;
    return kept == 0;
}

bool tn_work_set_is_ready(tn_work_set *set, const tn_work *work, uint64_t queue)
{
    if (tn_work_set_is_clean(set, work))
        return true;
    if (queue == TN_WORK_NO_QUEUE || work->table->ordered == NULL)
        return false;
    for (size_t i = 0; i < set->count; i++)
        if (!work->table->ordered(work->self, set->marks[i], queue))
            return false;
    return true;
}

tn_mem_error tn_work_set_wait(tn_work_set *set, const tn_work *work)
{
    if (work->table->wait == NULL)
        return TN_MEM_E_ARGUMENT;
    while (set->count > 0) {
        tn_mem_error error = work->table->wait(work->self, set->marks[set->count - 1]);
        if (error != TN_MEM_OK)
            return error;
        set->count--;
    }
    return TN_MEM_OK;
}
