/* Devices and the host as JSON. */
#define _GNU_SOURCE
#include "report/report_json_put.h"
#include "report/report_names.h"

static json_t *api_stats(const tn_report *r, const tn_place *place)
{
    json_t *array = json_array();
    for (size_t i = 0; place->apis && i < r->api_count * TN_KIND_COUNT; i++) {
        const tn_stat *s = &place->apis[i];
        if (!s->allocs && !s->frees && !s->refused)
            continue;
        json_t *object = json_object();
        tn_json_put_text(object, "api", r->apis[i / TN_KIND_COUNT].name);
        tn_json_put_text(object, "kind", tn_kind_name(i % TN_KIND_COUNT));
        tn_json_put_stat(object, s);
        tn_json_append(array, object);
    }
    return array;
}

static void put_line(json_t *array, const char *key, const char *name, const tn_stat *s)
{
    if (!s->allocs && !s->frees && !s->refused)
        return;
    json_t *object = json_object();
    tn_json_put_text(object, key, name);
    tn_json_put_stat(object, s);
    tn_json_append(array, object);
}

/* Lines that add up to the place's total. */
static void put_sums(json_t *object, const tn_report *r, const tn_place *p)
{
    json_t *libraries = json_array(), *phases = json_array();
    for (size_t i = 0; p->owners && i < r->owner_count; i++)
        put_line(libraries, "library", r->owners[i], &p->owners[i]);
    for (unsigned i = 0; i <= TN_PHASE_SERVING; i++)
        put_line(phases, "phase", tn_phase_name(i), &p->phases[i]);
    tn_json_put(object, "libraries", libraries);
    tn_json_put(object, "born_in", phases);
    tn_json_put(object, "peak_ns", p->moments.peak_epoch ? json_integer((json_int_t)p->moments.peak_ns) : json_null());
    tn_json_put(object, "after_unload_ns", p->moments.low_epoch ? json_integer((json_int_t)p->moments.low_ns) : json_null());
    tn_json_put(object, "unloaded_bytes", p->moments.low_epoch ? json_integer((json_int_t)p->moments.drop) : json_null());
}

static json_t *device_object(const tn_report *r, const tn_place *p)
{
    char uuid[TN_UUID_TEXT];
    json_t *object = json_object();
    tn_json_put_text(object, "uuid", p->has_uuid ? tn_format_uuid(p->uuid, uuid) : NULL);
    tn_json_put_text(object, "name", p->name);
    tn_json_put(object, "ordinal", p->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(p->ordinal));
    tn_json_put(object, "total_bytes", p->total_bytes ? json_integer((json_int_t)p->total_bytes) : json_null());
    tn_json_put_account(object, r, (uint32_t)(p - r->places));
    tn_json_put(object, "tiers", tn_json_tiers(r, (uint32_t)(p - r->places)));
    tn_json_put_stat(object, &p->total);
    tn_json_put_integer(object, "ended_with_context", p->ended_with_context);
    json_t *kinds = json_object();
    for (unsigned k = TN_KIND_NONE + 1; k < TN_KIND_COUNT; k++)
        if (!tn_kind_is_host((uint8_t)k))
            tn_json_put(kinds, tn_kind_name(k), tn_json_stat_object(&p->kinds[k]));
    tn_json_put(object, "kinds", kinds);
    put_sums(object, r, p);
    tn_json_put(object, "apis", api_stats(r, p));
    return object;
}

json_t *tn_json_host(tn_report *r)
{
    const tn_place *host = &r->places[TN_PLACE_HOST];
    json_t *object = json_object(), *ranges = json_object();
    tn_json_put(object, "pinned", tn_json_stat_object(&host->kinds[TN_KIND_PINNED]));
    tn_json_put(object, "registered", tn_json_stat_object(&host->kinds[TN_KIND_REGISTERED]));
    tn_json_put(object, "tiers", tn_json_tiers(r, TN_PLACE_HOST));
    tn_json_put_integer(object, "ended_with_context", host->ended_with_context);
    put_sums(object, r, host);
    tn_json_put(object, "apis", api_stats(r, host));
    tn_json_put(ranges, "reserved", tn_json_stat_object(&r->reserved));
    tn_json_put(ranges, "mapped", tn_json_stat_object(&r->mapped));
    tn_json_put(object, "address_ranges", ranges);
    return object;
}

json_t *tn_json_devices(tn_report *r)
{
    json_t *devices = json_array();
    for (size_t i = TN_PLACE_HOST + 1; i < r->place_count; i++)
        tn_json_append(devices, device_object(r, &r->places[i]));
    return devices;
}
