/* The ledger's hash tables: 8-byte slots in a mapping of their own, at most three quarters full. */
#define _GNU_SOURCE
#include "ledger/ledger_internal.h"
#include "ledger/tn_sys.h"

#define PLACES_MIN 512u /* one 4 KiB page */

uint32_t tn_hash_page(unsigned space, unsigned level, uint64_t page)
{
    uint64_t x = page ^ ((uint64_t)(level * TN_SPACE_COUNT + space + 1) << 55);
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

static void place(tn_slot *at, uint32_t mask, tn_slot slot)
{
    uint32_t i = slot.hash & mask;
    while (at[i].node != TN_NO_NODE)
        i = (i + 1) & mask;
    at[i] = slot;
}

static int resize(tn_slots *s, uint32_t places)
{
    tn_slot *at = tn_sys_map_memory((size_t)places * sizeof *at);
    if (at == NULL)
        return 0;
    if (s->at != NULL) {
        for (uint32_t i = 0; i <= s->mask; i++)
            if (s->at[i].node != TN_NO_NODE)
                place(at, places - 1, s->at[i]);
        tn_sys_unmap(s->at, ((size_t)s->mask + 1) * sizeof *at);
    }
    s->at = at;
    s->mask = places - 1;
    return 1;
}

int tn_slots_reserve(tn_slots *s, uint32_t more)
{
    uint64_t need = (uint64_t)s->used + more;
    uint64_t places = s->at == NULL ? 0 : (uint64_t)s->mask + 1;
    if (need * 4 <= places * 3)
        return 1;
    places = places == 0 ? PLACES_MIN : places * 2;
    return places <= (uint64_t)1 << 31 && resize(s, (uint32_t)places);
}

void tn_slots_add(tn_slots *s, uint32_t hash, uint32_t node)
{
    place(s->at, s->mask, (tn_slot){ hash, node });
    s->used++;
}

void tn_slots_remove(tn_slots *s, uint32_t hash, uint32_t node)
{
    uint32_t i = hash & s->mask;
    while (s->at[i].node != node || s->at[i].hash != hash)
        i = (i + 1) & s->mask;
    /* Close the gap: a later slot moves up unless its home lies behind the gap. */
    for (uint32_t k = (i + 1) & s->mask; s->at[k].node != TN_NO_NODE; k = (k + 1) & s->mask) {
        uint32_t home = s->at[k].hash & s->mask;
        if (((k - home) & s->mask) >= ((k - i) & s->mask)) {
            s->at[i] = s->at[k];
            i = k;
        }
    }
    s->at[i].node = TN_NO_NODE;
    s->used--;
    /* At an eighth it halves, to a quarter full, so that it does not grow again at once. Failing is no harm. */
    if (s->mask + 1 > PLACES_MIN && (uint64_t)s->used * 8 < (uint64_t)s->mask + 1)
        (void)resize(s, (s->mask + 1) / 2);
}
