/* What grew and what was refused as JSON. */
#define _GNU_SOURCE
#include "report/report_growth.h"
#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_refusals.h"

/* Which row of which process, as sites[] has it. */
static json_t *row_object(const tn_report *r, uint32_t process, uint32_t index)
{
    const tn_row *row = &r->rows[index];
    const tn_place *place = &r->places[row->place];
    json_t *object = json_object();
    tn_json_put_integer(object, "pid", tn_reader_header(r->processes[process].reader)->pid);
    tn_json_put_site(object, &r->sites[row->site]);
    tn_json_put_text(object, "kind", tn_kind_name(row->kind));
    tn_json_put(object, "device", row->place == TN_PLACE_HOST || place->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(place->ordinal));
    return object;
}

json_t *tn_json_growth(tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->growth->count; i++) {
        const tn_growth_site *g = &r->growth->sites[i];
        json_t *object = row_object(r, g->process, g->row);
        tn_json_put_text(object, "growth", tn_growth_kind_name(g->kind));
        tn_json_put(object, "serving", json_boolean(g->serving));
        tn_json_put_integer(object, "rise_backed_bytes", g->bytes);
        tn_json_put_integer(object, "rise_blocks", g->blocks);
        tn_json_put_integer(object, "allocs", g->allocs);
        tn_json_put_integer(object, "frees", g->frees);
        tn_json_put_integer(object, "first_backed_bytes", g->first_bytes);
        tn_json_put_integer(object, "last_backed_bytes", g->last_bytes);
        tn_json_append(array, object);
    }
    return array;
}

json_t *tn_json_refusals(tn_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->refusals->count; i++) {
        const tn_refusal *f = &r->refusals->each[i];
        json_t *object = row_object(r, f->process, f->row);
        tn_json_put_integer(object, "refused", f->count);
        tn_json_put(object, "granted_later", json_boolean(f->granted_later));
        tn_json_put_integer(object, "requested_bytes", f->requested);
        tn_json_put(object, "result", json_integer(f->result));
        tn_json_put_integer(object, "at_ns", f->ns);
        tn_json_put_integer(object, "live_backed_bytes", f->live);
        tn_json_put_integer(object, "idle_pool_bytes", f->idle);
        tn_json_append(array, object);
    }
    return array;
}
