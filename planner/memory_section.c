/* Tiers that a plan tells apart by family are one part of the arithmetic, with a line each. */
#include "planner/memory_section.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static tn_memory_part part_of(tn_discipline discipline)
{
    switch (discipline) {
    case TN_D_T1:
        return TN_PART_T1;
    case TN_D_T2:
        return TN_PART_T2;
    case TN_D_T3:
        return TN_PART_T3;
    case TN_D_T4:
    case TN_D_PACKED:
        return TN_PART_T4;
    default:
        return TN_PART_NATIVE;
    }
}

static bool is_sized(const tn_plan_section *s, const tn_plan_row *row)
{
    for (size_t i = 0; s->sizing.known && i < s->sizing.sized_count; i++)
        if (s->sizing.sized[i] == row->key)
            return true;
    return false;
}

/* Bytes of a tier that the sized sites have to themselves. Slots and stacks share addresses: what one site gives up, another still needs. */
static uint64_t own_of_sized(const tn_plan_section *s, tn_discipline discipline, tn_family family, uint64_t most)
{
    uint64_t sum = 0;
    if (discipline == TN_D_T4 || discipline == TN_D_PACKED)
        return 0;
    for (size_t i = 0; i < s->row_count; i++) {
        const tn_plan_row *row = &s->rows[i];
        if (row->discipline != discipline || (discipline != TN_D_NATIVE && row->family != family) || !is_sized(s, row))
            continue;
        if (row->capacity > most - sum)
            return most;
        sum += row->capacity;
    }
    return sum;
}

static bool add_charges(const tn_plan_section *s, tn_memory_input *out, char where[TN_MEMORY_NAME])
{
    for (size_t i = 0; i < s->charge_count; i++) {
        const tn_plan_charge *charge = &s->charges[i];
        snprintf(where, TN_MEMORY_NAME, "%.40s%s%.60s%s", charge->name, charge->source ? " (" : "", charge->source ? charge->source : "",
                 charge->source ? ")" : "");
        if (!tn_memory_add(out, TN_PART_CHARGE, where, charge->bytes))
            return false;
    }
    return true;
}

static bool add_tier(const tn_plan_section *s, const tn_plan_tier *tier, bool pool, tn_memory_input *out, char where[TN_MEMORY_NAME])
{
    uint64_t bytes = tier->capacity;
    if (tier->family == TN_FAMILY_PINNED)
        return true;
    snprintf(where, TN_MEMORY_NAME, "%s %s, %" PRIu64 " site%s", tn_family_name(tier->family), tn_discipline_name(tier->discipline), tier->sites,
             tier->sites == 1 ? "" : "s");
    if (tier->discipline == TN_D_T4 && __builtin_mul_overflow(bytes, tier->streams, &bytes))
        return false;
    if (pool)
        bytes -= own_of_sized(s, tier->discipline, tier->family, bytes);
    return tn_memory_add(out, part_of(tier->discipline), where, bytes);
}

bool tn_memory_of_section(const tn_plan_section *s, bool pool, tn_memory_input *out, char where[TN_MEMORY_NAME])
{
    memset(out, 0, sizeof(*out));
    out->granularity = 1;
    out->budget = TN_MEMORY_NO_BUDGET;
    snprintf(where, TN_MEMORY_NAME, "no memory query of the run sizes a pool");
    if (pool && (!s->sizing.known || s->sizing.sized_count == 0))
        return false;
    if (!add_charges(s, out, where))
        return false;
    uint64_t native = s->native_bytes;
    snprintf(where, TN_MEMORY_NAME, "left to the driver");
    if (pool)
        native -= own_of_sized(s, TN_D_NATIVE, TN_FAMILY_COUNT, native);
    if (!tn_memory_add(out, TN_PART_NATIVE, where, native))
        return false;
    for (size_t i = 0; i < s->tier_count; i++)
        if (!add_tier(s, &s->tiers[i], pool, out, where))
            return false;
    where[0] = 0;
    return true;
}
