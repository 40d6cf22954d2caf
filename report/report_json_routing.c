/* Where a plan sent the program's requests, as JSON. */
#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_routing.h"

static json_t *causes(const tn_routing_counts *c)
{
    json_t *object = json_object();
    for (unsigned i = 1; i < TN_ROUTE_CAUSES; i++)
        tn_json_put_integer(object, tn_spill_name(i), c->causes[i]);
    return object;
}

static void put_counts(json_t *object, const tn_routing_counts *c)
{
    tn_json_put_integer(object, "served_calls", c->served);
    tn_json_put_integer(object, "native_calls", c->native);
    tn_json_put_integer(object, "spilled_calls", c->spilled);
    tn_json_put_integer(object, "unplanned_calls", c->unplanned);
    tn_json_put_integer(object, "waited_calls", c->waited);
    tn_json_put(object, "spilled_by_cause", causes(c));
}

json_t *tn_json_routing(tn_report *r)
{
    static const char *const keys[] = {"planned_sites", "served_calls", "native_calls", "spilled_calls", "unplanned_calls", "waited_calls", "spilled_by_cause", NULL};
    json_t *object = json_object();
    if (!r->routing->planned) {
        tn_json_put_nulls(object, keys);
        return object;
    }
    tn_json_put_integer(object, "planned_sites", r->routing->planned_sites);
    put_counts(object, &r->routing->total);
    return object;
}

json_t *tn_json_tiers(const tn_report *r, uint32_t place)
{
    if (!r->routing->planned)
        return json_null();
    json_t *object = json_object();
    for (unsigned tier = 1; place < r->routing->place_count && tier < TN_ROUTE_TIERS; tier++) {
        const tn_routing_tier *t = &r->routing->places[place][tier];
        if (!tn_routing_tier_used(t))
            continue;
        json_t *line = json_object();
        tn_json_put_integer(line, "capacity_bytes", t->arena_peak);
        tn_json_put_integer(line, "held_bytes", t->capacity);
        tn_json_put_integer(line, "live_bytes", t->live);
        tn_json_put_integer(line, "peak_bytes", t->peak);
        tn_json_put_integer(line, "served_calls", t->served);
        tn_json_put(object, tn_tier_name(tier), line);
    }
    return object;
}

void tn_json_put_routing(json_t *object, const tn_report *r, uint32_t row)
{
    const tn_routing_counts *c = tn_routing_of(r, row);
    json_t *routing = json_null();
    char words[64];
    if (c) {
        routing = json_object();
        tn_json_put_text(routing, "tier", tn_routing_words(r, row, words));
        put_counts(routing, c);
    }
    tn_json_put(object, "routing", routing);
}
