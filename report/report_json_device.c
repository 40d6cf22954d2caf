/* What the account of a device knows, as keys of its JSON object. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "report/report_device_owners.h"
#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_owner.h"

static void put_signed(json_t *object, const char *key, int64_t value) { tn_json_put(object, key, json_integer((json_int_t)value)); }

static const char *cause_name(uint32_t cause)
{
    static const char *const names[] = {"call", "phase", "mark", "events", "time", "end"};
    return cause < sizeof(names) / sizeof(names[0]) ? names[cause] : "unknown";
}

/* null where the ratio has no meaning. */
static json_t *ratio(const tn_reading_view *v)
{
    return v->own_used > 0 ? json_real((double)v->accounted / (double)v->own_used) : json_null();
}

static json_t *charges(const tn_reading_view *v)
{
    json_t *object = json_object();
    for (int k = TN_LINE_BLOCKS + 1; k < TN_LINE_KINDS; k++)
        put_signed(object, tn_line_kind_name((tn_line_kind)k), v->kinds[k]);
    return object;
}

static json_t *view_object(const tn_reading_view *v)
{
    json_t *object = json_object();
    tn_json_put_text(object, "label", v->label);
    tn_json_put_integer(object, "at_ns", v->at_ns);
    tn_json_put_text(object, "cause", cause_name(v->cause));
    put_signed(object, "used_bytes", v->used);
    put_signed(object, "own_used_bytes", v->own_used);
    put_signed(object, "accounted_bytes", v->accounted);
    tn_json_put(object, "accounted_ratio", ratio(v));
    put_signed(object, "unattributed_bytes", v->unattributed);
    put_signed(object, "blocks_bytes", v->kinds[TN_LINE_BLOCKS]);
    tn_json_put(object, "charges", charges(v));
    return object;
}

static json_t *owners_array(const tn_report *r, const tn_device_account *a)
{
    size_t count;
    tn_owner_sum *sums = tn_device_owners(r, a, &count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object(), *kinds = json_object();
        tn_json_put_text(object, "owner", sums[i].name);
        put_signed(object, "bytes", sums[i].bytes);
        for (int k = 0; k < TN_LINE_KINDS; k++)
            if (sums[i].kinds[k])
                put_signed(kinds, tn_line_kind_name((tn_line_kind)k), sums[i].kinds[k]);
        tn_json_put(object, "kinds", kinds);
        tn_json_append(array, object);
    }
    free(sums);
    return array;
}

static json_t *lines_array(const tn_report *r, const tn_device_account *a)
{
    json_t *array = json_array();
    for (size_t i = 0; i < a->line_count; i++) {
        const tn_line *l = &a->lines[i];
        if (tn_line_bytes(l) == 0)
            continue;
        json_t *object = json_object();
        tn_json_put_text(object, "kind", tn_line_kind_name((tn_line_kind)l->kind));
        if (l->site == TN_NO_INDEX)
            tn_json_put(object, "site", json_null());
        else
            tn_json_put_hex(object, "site", r->sites[l->site].key, 16, "");
        tn_json_put_text(object, "owner", l->site == TN_NO_INDEX ? TN_OWNER_UNKNOWN : tn_owner_of_site(r, l->site).name);
        put_signed(object, "bytes", tn_line_bytes(l));
        tn_json_append(array, object);
    }
    return array;
}

void tn_json_put_account(json_t *object, const tn_report *r, uint32_t place)
{
    static const char *const unknown[] = {"own_used_bytes", "baseline_bytes", "neighbour_bytes", "accounted_bytes", "accounted_ratio",
                                          "accounted_label", "unattributed_bytes", "charges", "pools", "by_library", "lines", "marks", "readings", NULL};
    const tn_device_account *a = tn_device_account_of(r, place);
    if (!a) {
        tn_json_put_nulls(object, unknown);
        return;
    }
    const tn_reading_view *v = &a->last;
    json_t *pools = json_object(), *marks = json_array(), *readings = json_object();
    put_signed(object, "own_used_bytes", v->own_used);
    tn_json_put(object, "baseline_bytes", a->has_baseline ? json_integer((json_int_t)a->baseline) : json_null());
    tn_json_put(object, "neighbour_bytes", a->has_neighbours ? json_integer((json_int_t)a->neighbours) : json_null());
    put_signed(object, "accounted_bytes", v->accounted);
    tn_json_put(object, "accounted_ratio", ratio(v));
    tn_json_put_text(object, "accounted_label", a->has_neighbours ? NULL : "if alone");
    put_signed(object, "unattributed_bytes", v->unattributed);
    tn_json_put(object, "charges", charges(v));
    put_signed(pools, "reserved_bytes", v->pool_reserved);
    put_signed(pools, "used_bytes", v->pool_used);
    tn_json_put(object, "pools", pools);
    tn_json_put(object, "by_library", owners_array(r, a));
    tn_json_put(object, "lines", lines_array(r, a));
    for (size_t i = 0; i < a->mark_count; i++)
        tn_json_append(marks, view_object(&a->marks[i]));
    tn_json_put(object, "marks", marks);
    tn_json_put_integer(readings, "quiet", a->readings);
    tn_json_put_integer(readings, "unquiet", a->unquiet);
    put_signed(readings, "largest_unattributed_bytes", a->worst_unattributed);
    tn_json_put_integer(readings, "largest_unattributed_at_ns", a->worst_ns);
    tn_json_put(readings, "last", view_object(v));
    tn_json_put(object, "readings", readings);
}
