#include "tiers/packed_plan.h"

#include <stdbool.h>

#include "tiers/backend.h"
#include "tiers/metadata_use.h"
#include "tiers/size.h"
#include "tiers/sort.h"

static const char *const texts[TN_PACKED_FAULT_COUNT] = {
    [TN_PACKED_SOUND] = "the table is sound",
    [TN_PACKED_NO_TABLE] = "there are no slots, or too many",
    [TN_PACKED_BAD_SITE] = "the site is not one of the plan's",
    [TN_PACKED_BAD_ORDER] = "the slot does not come after the one before it",
    [TN_PACKED_BAD_ORDINAL] = "the ordinals of its class have a hole",
    [TN_PACKED_BAD_BYTES] = "its bytes are not those of its class, or not more than those of the class before",
    [TN_PACKED_BAD_ALIGNMENT] = "its alignment is not valid, or its offset no multiple of it",
    [TN_PACKED_BAD_CAPACITY] = "it reaches beyond the region",
    [TN_PACKED_BAD_OVERLAP] = "it shares addresses with another of its class",
};

const char *tn_packed_fault_text(tn_packed_fault fault)
{
    if ((unsigned)fault >= TN_PACKED_FAULT_COUNT || texts[fault] == NULL)
        return "an unknown fault";
    return texts[fault];
}

static bool same_class(const tn_packed_slot *a, const tn_packed_slot *b)
{
    return a->site == b->site && a->size_class == b->size_class;
}

static tn_packed_fault check_alone(const tn_packed_plan *plan, const tn_packed_slot *s)
{
    size_t alignment = s->alignment == 0 ? TN_ALIGNMENT_DEFAULT : s->alignment;
    if (s->site >= plan->site_count)
        return TN_PACKED_BAD_SITE;
    if (s->bytes == 0)
        return TN_PACKED_BAD_BYTES;
    if (!tn_is_power_of_two(alignment) || alignment > TN_ALIGNMENT_MAX || s->offset % alignment != 0)
        return TN_PACKED_BAD_ALIGNMENT;
    if (s->offset > plan->capacity || s->bytes > plan->capacity - s->offset)
        return TN_PACKED_BAD_CAPACITY;
    return TN_PACKED_SOUND;
}

/* Against the slot before it, NULL of the first. */
static tn_packed_fault check_order(const tn_packed_slot *before, const tn_packed_slot *s)
{
    if (before == NULL)
        return s->ordinal == 0 ? TN_PACKED_SOUND : TN_PACKED_BAD_ORDINAL;
    if (same_class(before, s)) {
        if (s->ordinal <= before->ordinal)
            return TN_PACKED_BAD_ORDER;
        if (s->ordinal != before->ordinal + 1)
            return TN_PACKED_BAD_ORDINAL;
        return s->bytes == before->bytes ? TN_PACKED_SOUND : TN_PACKED_BAD_BYTES;
    }
    if (s->site < before->site || (s->site == before->site && s->size_class < before->size_class))
        return TN_PACKED_BAD_ORDER;
    if (s->ordinal != 0)
        return TN_PACKED_BAD_ORDINAL;
    return s->site != before->site || s->bytes > before->bytes ? TN_PACKED_SOUND : TN_PACKED_BAD_BYTES;
}

/* The slots from `first` to before `end` are one class. */
static bool find_overlap(const tn_packed_plan *plan, tn_sort_item *items, size_t first, size_t end, tn_packed_problem *problem)
{
    for (size_t i = first; i < end; i++)
        items[i - first] = (tn_sort_item){.key = plan->slots[i].offset, .value = i};
    tn_sort(items, end - first);
    for (size_t i = 1; i < end - first; i++) {
        if (items[i].key - items[i - 1].key >= plan->slots[first].bytes)
            continue;
        *problem = (tn_packed_problem){.fault = TN_PACKED_BAD_OVERLAP, .slot = items[i].value, .other = items[i - 1].value};
        return true;
    }
    return false;
}

static void check_overlaps(const tn_packed_plan *plan, tn_sort_item *items, tn_packed_problem *problem)
{
    for (size_t first = 0, end; first < plan->slot_count; first = end) {
        for (end = first + 1; end < plan->slot_count && same_class(&plan->slots[first], &plan->slots[end]); end++)
            ;
        if (find_overlap(plan, items, first, end, problem))
            return;
    }
}

static void check_slots(const tn_packed_plan *plan, tn_packed_problem *problem)
{
    for (size_t i = 0; i < plan->slot_count && problem->fault == TN_PACKED_SOUND; i++) {
        tn_packed_fault fault = check_alone(plan, &plan->slots[i]);
        if (fault == TN_PACKED_SOUND)
            fault = check_order(i > 0 ? &plan->slots[i - 1] : NULL, &plan->slots[i]);
        *problem = (tn_packed_problem){.fault = fault, .slot = fault == TN_PACKED_SOUND ? 0 : i};
    }
}

tn_mem_error tn_packed_plan_check(const tn_packed_plan *plan, const tn_metadata *metadata, tn_packed_problem *problem)
{
    tn_packed_problem found = {0};
    if (plan == NULL || plan->slots == NULL || plan->slot_count == 0 || plan->slot_count > TN_PACKED_SLOTS_MAX)
        found.fault = TN_PACKED_NO_TABLE;
    else if (plan->capacity > TN_BYTES_MAX)
        found.fault = TN_PACKED_BAD_CAPACITY;
    else
        check_slots(plan, &found);
    if (found.fault == TN_PACKED_SOUND) {
        tn_metadata m = tn_metadata_or_malloc(metadata);
        size_t bytes = plan->slot_count * sizeof(tn_sort_item);
        tn_sort_item *items = m.resize(m.self, NULL, 0, bytes);
        if (items == NULL)
            return TN_MEM_E_HOST_MEMORY;
        check_overlaps(plan, items, &found);
        tn_metadata_free(&m, items, bytes);
    }
    if (problem != NULL)
        *problem = found;
    return found.fault == TN_PACKED_SOUND ? TN_MEM_OK : TN_MEM_E_ARGUMENT;
}
