/* What the debugging options of a served run found, as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "report/report_checks.h"
#include "report/report_json_put.h"

static json_t *site_object(const tn_report *r, uint32_t site)
{
    if (site == TN_NO_INDEX)
        return json_null();
    json_t *object = json_object();
    tn_json_put_site(object, &r->sites[site]);
    return object;
}

json_t *tn_json_checks(tn_report *r)
{
    const tn_checks *c = r->checks;
    json_t *object = json_object(), *array = json_array();
    tn_json_put_integer(object, "with_canary", c->guarded);
    tn_json_put_integer(object, "without_canary", c->bare);
    tn_json_put_integer(object, "intact", c->intact);
    tn_json_put_integer(object, "overwritten", c->overwritten);
    tn_json_put_integer(object, "not_done", c->not_done);
    tn_json_put_integer(object, "at_exit", c->at_exit);
    tn_json_put_integer(object, "at_exit_overwritten", c->at_exit_overwritten);
    tn_json_put_integer(object, "unseen", c->unseen);
    tn_json_put_integer(object, "poisoned", c->poisoned);
    tn_json_put_integer(object, "waits", c->waits);
    for (size_t i = 0; i < c->count; i++) {
        const tn_overwrite *o = &c->each[i];
        json_t *line = json_object();
        char address[24];
        snprintf(address, sizeof address, "0x%" PRIx64, o->address);
        tn_json_put_integer(line, "pid", tn_reader_header(r->processes[o->process].reader)->pid);
        tn_json_put(line, "allocated", site_object(r, o->site));
        tn_json_put(line, "freed", site_object(r, o->free_site));
        tn_json_put_integer(line, "blocks", o->count);
        tn_json_put_text(line, "address", address);
        tn_json_put_integer(line, "bytes", o->bytes);
        tn_json_put_integer(line, "first_byte", o->first);
        tn_json_put_integer(line, "overwritten_bytes", o->overwritten);
        tn_json_append(array, line);
    }
    tn_json_put(object, "overwrites", array);
    return object;
}
