/* Sites and their frames as JSON. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "report/report_json_put.h"
#include "report/report_names.h"
#include "report/report_owner.h"
#include "report/report_stack.h"

static json_t *build_id_text(const tn_rec_module *module)
{
    char text[2 * sizeof(module->build_id) + 1];
    size_t bytes = module->build_id_bytes <= sizeof(module->build_id) ? module->build_id_bytes : sizeof(module->build_id);
    for (size_t i = 0; i < bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", module->build_id[i]);
    return bytes ? json_string(text) : json_null();
}

static void put_source(json_t *object, const char *function, const tn_symbol_frame *at)
{
    tn_json_put_text(object, "function", function ? function : at ? at->function : NULL);
    tn_json_put_text(object, "file", at ? at->file : NULL);
    tn_json_put(object, "line", at && at->line ? json_integer(at->line) : json_null());
}

static json_t *frame_object(tn_report *r, const tn_site *site, uint32_t i)
{
    const struct tn_frame *frame = &site->record->frames[i];
    tn_reader *reader = r->processes[site->process].reader;
    const tn_rec_module *module = tn_reader_module(reader, frame->module);
    const char *path = tn_reader_module_path(reader, frame->module);
    json_t *object = json_object();
    if (!module || module->jit) {
        tn_json_put_text(object, "module", module ? "jit" : NULL);
        tn_json_put(object, "path", json_null());
        tn_json_put(object, "build_id", json_null());
    } else {
        tn_json_put_text(object, "module", path ? tn_base_name(path) : NULL);
        tn_json_put_text(object, "path", path);
        tn_json_put(object, "build_id", build_id_text(module));
    }
    tn_json_put_hex(object, "offset", frame->offset, 1, "0x");
    const tn_symbol *symbol = tn_symbols_get(r->symbols, module, path, frame->offset);
    tn_json_put_text(object, "symbol", symbol->name);
    tn_json_put(object, "symbol_offset", symbol->name ? json_integer((json_int_t)symbol->delta) : json_null());
    tn_json_put_text(object, "symbol_source", symbol->source);
    tn_json_put_text(object, "symbol_missing", tn_symbol_state_text(symbol->state));
    const tn_symbol_frame *own = symbol->frame_count ? &symbol->frames[symbol->frame_count - 1] : NULL;
    put_source(object, symbol->function, own);
    json_t *inlined = json_array();
    for (uint32_t k = 0; k + 1 < symbol->frame_count; k++) {
        json_t *inner = json_object();
        put_source(inner, symbol->frames[k].function, &symbol->frames[k]);
        tn_json_append(inlined, inner);
    }
    tn_json_put(object, "inlined", inlined);
    tn_json_put_text(object, "line_missing", tn_symbol_state_text(symbol->line_state));
    return object;
}

static json_t *python_frame_object(const tn_report *r, const tn_site *site, uint32_t i)
{
    const struct tn_python_frame *frame = &site->python->frames[i];
    const char *file = NULL, *name = NULL;
    const tn_rec_python *python = tn_reader_python(r->processes[site->process].reader, frame->function, &file, &name);
    json_t *object = json_object();
    tn_json_put_text(object, "function", name);
    tn_json_put_text(object, "file", file);
    tn_json_put(object, "line", frame->line ? json_integer(frame->line) : json_null());
    tn_json_put(object, "first_line", python ? json_integer(python->first_line) : json_null());
    return object;
}

static void put_python(const tn_report *r, const tn_site *site, json_t *object)
{
    json_t *frames = json_array();
    for (uint32_t i = 0; site->python && i < site->python->frame_count; i++)
        tn_json_append(frames, python_frame_object(r, site, i));
    tn_json_put(object, "python_cut", json_boolean(site->python && site->python->flags & TN_PF_CUT));
    tn_json_put(object, "python_frames", frames);
}

static json_t *site_object(tn_report *r, const tn_row *row)
{
    const tn_site *site = &r->sites[row->site];
    json_t *object = json_object(), *names = json_array(), *frames = json_array();
    tn_json_put_site(object, site);
    for (unsigned i = 0; i < row->api_count; i++)
        tn_json_append(names, tn_json_text(r->apis[row->apis[i]].name));
    tn_json_put(object, "apis", names);
    tn_json_put_text(object, "kind", tn_kind_name(row->kind));
    const tn_place *place = &r->places[row->place];
    tn_json_put(object, "device", row->place == TN_PLACE_HOST || place->ordinal == TN_DEVICE_NONE ? json_null() : json_integer(place->ordinal));
    tn_json_put_stat(object, &row->stat);
    for (uint32_t i = 0; site->record && i < site->record->frame_count; i++)
        tn_json_append(frames, frame_object(r, site, i));
    const char *owner = tn_owner_of_site(r, row->site).name;
    tn_json_put_routing(object, r, (uint32_t)(row - r->rows));
    tn_json_put_text(object, "owner", strcmp(owner, TN_OWNER_UNKNOWN) == 0 ? NULL : owner);
    tn_json_put(object, "cut", json_boolean(site->record && site->record->flags & TN_SF_CUT));
    tn_json_put(object, "frames", frames);
    put_python(r, site, object);
    return object;
}

int tn_json_write_sites(tn_report *r, FILE *out)
{
    for (size_t i = 0; i < r->row_count; i++)
        tn_stack_want(r, r->rows[i].site);
    fputc('[', out);
    for (size_t i = 0; i < r->row_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        if (tn_json_write(site_object(r, &r->rows[r->row_order[i]]), out) != 0)
            return -1;
    }
    return fputs(r->row_count ? "\n]" : "]", out) == EOF ? -1 : 0;
}
