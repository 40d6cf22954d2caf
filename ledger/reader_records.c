/* The journal's tables: modules, sites, APIs, devices, strings, coverage. A record enters its table only when
 * its length, counts and strings are right, so that whoever looks it up needs no checks of its own. */
#include <stdlib.h>
#include <string.h>

#include "ledger/reader_internal.h"

/* A later record of the same id replaces the earlier one. */
static tn_error enter(tn_table *t, uint32_t id, const void *payload)
{
    if (id >= t->room) {
        uint32_t room = t->room == 0 ? 64 : t->room;
        while (room <= id)
            room *= 2;
        const void **at = calloc(room, sizeof *at);
        if (at == NULL)
            return TN_E_NOMEM;
        if (t->end > 0)
            memcpy(at, t->at, t->end * sizeof *at);
        free(t->at);
        t->at = at;
        t->room = room;
    }
    t->at[id] = payload;
    if (id >= t->end)
        t->end = id + 1;
    return TN_OK;
}

static const void *lookup(const tn_table *t, uint32_t id)
{
    return id < t->end ? t->at[id] : NULL;
}

/* The text behind a record's fixed part ends inside the record. */
static int text_ends(const unsigned char *payload, uint32_t bytes, size_t fixed)
{
    return bytes > fixed && memchr(payload + fixed, '\0', bytes - fixed) != NULL;
}

static tn_error enter_coverage(tn_reader *r, const void *payload)
{
    if (r->coverage_count == r->coverage_room) {
        size_t room = r->coverage_room == 0 ? 16 : r->coverage_room * 2;
        const tn_rec_coverage **list = realloc(r->coverage, room * sizeof *list);
        if (list == NULL)
            return TN_E_NOMEM;
        r->coverage = list;
        r->coverage_room = room;
    }
    r->coverage[r->coverage_count++] = payload;
    return TN_OK;
}

static int site_is_sound(const unsigned char *p, uint32_t bytes)
{
    const tn_rec_site *site = (const tn_rec_site *)p;
    if (bytes < sizeof *site || site->frame_count > TN_FRAMES_MAX || site->id < TN_SITE_FIRST || site->id >= TN_ID_MAX)
        return 0;
    return bytes - sizeof *site >= site->frame_count * sizeof site->frames[0];
}

/* Two texts behind the fixed part: file and name. */
static int python_is_sound(const unsigned char *p, uint32_t bytes)
{
    const tn_rec_python *python = (const tn_rec_python *)p;
    if (bytes < sizeof *python || python->id >= TN_ID_MAX)
        return 0;
    const unsigned char *text = p + sizeof *python, *end = p + bytes;
    const unsigned char *file_end = memchr(text, '\0', (size_t)(end - text));
    return file_end != NULL && memchr(file_end + 1, '\0', (size_t)(end - file_end - 1)) != NULL;
}

static int python_site_is_sound(const unsigned char *p, uint32_t bytes)
{
    const tn_rec_python_site *site = (const tn_rec_python_site *)p;
    if (bytes < sizeof *site || site->id < TN_SITE_FIRST || site->id >= TN_ID_MAX || site->native < TN_SITE_FIRST ||
        site->native >= site->id || site->frame_count > TN_PYTHON_FRAMES_MAX)
        return 0;
    return bytes - sizeof *site >= site->frame_count * sizeof site->frames[0];
}

/* *bad is set for a record that is not what its type says. */
static tn_error take(tn_reader *r, uint32_t type, const unsigned char *p, uint32_t bytes, int *bad)
{
    *bad = 1;
    switch (type) {
    case TN_REC_API: {
        const tn_rec_api *api = (const tn_rec_api *)p;
        if (!text_ends(p, bytes, sizeof *api) || api->id >= TN_API_MAX)
            return TN_OK;
        *bad = 0;
        return enter(&r->apis, api->id, p);
    }
    case TN_REC_MODULE: {
        const tn_rec_module *module = (const tn_rec_module *)p;
        if (!text_ends(p, bytes, sizeof *module) || module->id >= TN_ID_MAX ||
            module->build_id_bytes > sizeof module->build_id)
            return TN_OK;
        *bad = 0;
        return enter(&r->modules, module->id, p);
    }
    case TN_REC_SITE:
        if (!site_is_sound(p, bytes))
            return TN_OK;
        *bad = 0;
        return enter(&r->sites, ((const tn_rec_site *)p)->id, p);
    case TN_REC_DEVICE: {
        const tn_rec_device *device = (const tn_rec_device *)p;
        if (!text_ends(p, bytes, sizeof *device) || device->ordinal >= TN_DEVICE_NONE)
            return TN_OK;
        *bad = 0;
        return enter(&r->devices, device->ordinal, p);
    }
    case TN_REC_STRING: {
        uint32_t id;
        if (!text_ends(p, bytes, sizeof id))
            return TN_OK;
        memcpy(&id, p, sizeof id);
        if (id >= TN_ID_MAX)
            return TN_OK;
        *bad = 0;
        return enter(&r->strings, id, p);
    }
    case TN_REC_COVERAGE:
        if (!text_ends(p, bytes, sizeof(tn_rec_coverage)))
            return TN_OK;
        *bad = 0;
        return enter_coverage(r, p);
    case TN_REC_PYTHON:
        if (!python_is_sound(p, bytes))
            return TN_OK;
        *bad = 0;
        return enter(&r->pythons, ((const tn_rec_python *)p)->id, p);
    case TN_REC_PYTHON_SITE:
        if (!python_site_is_sound(p, bytes))
            return TN_OK;
        *bad = 0;
        return enter(&r->python_sites, ((const tn_rec_python_site *)p)->id, p);
    default:
        return TN_OK;
    }
}

tn_error tn_reader_take_records(tn_reader *r, uint64_t offset)
{
    const unsigned char *chunk = r->map + offset;
    uint32_t at = (uint32_t)sizeof(tn_chunk_header);
    while (at + sizeof(tn_record) <= TN_CHUNK_BYTES) {
        const tn_record *record = (const tn_record *)(chunk + at);
        uint32_t type = __atomic_load_n(&record->type, __ATOMIC_ACQUIRE);
        if (type == 0)
            break;
        uint32_t room = TN_CHUNK_BYTES - at - (uint32_t)sizeof *record;
        if (record->bytes > room) {
            r->bad_records++; /* and with its length the place of the next one is lost */
            break;
        }
        int bad = 0;
        tn_error e = take(r, type, chunk + at + sizeof *record, record->bytes, &bad);
        if (e != TN_OK)
            return e;
        r->bad_records += (uint64_t)bad;
        at += (uint32_t)sizeof *record + ((record->bytes + 7) & ~7u);
    }
    return TN_OK;
}

void tn_reader_free_records(tn_reader *r)
{
    free(r->modules.at);
    free(r->sites.at);
    free(r->apis.at);
    free(r->devices.at);
    free(r->strings.at);
    free(r->pythons.at);
    free(r->python_sites.at);
    free(r->coverage);
}

const tn_rec_module *tn_reader_module(const tn_reader *r, uint32_t id)
{
    return lookup(&r->modules, id);
}

const char *tn_reader_module_path(const tn_reader *r, uint32_t id)
{
    const tn_rec_module *module = lookup(&r->modules, id);
    return module == NULL ? NULL : (const char *)(module + 1);
}

const tn_rec_site *tn_reader_site(const tn_reader *r, uint32_t id)
{
    const tn_rec_python_site *python = lookup(&r->python_sites, id);
    return lookup(&r->sites, python == NULL ? id : python->native);
}

const tn_rec_python_site *tn_reader_site_python(const tn_reader *r, uint32_t id)
{
    return lookup(&r->python_sites, id);
}

const tn_rec_python *tn_reader_python(const tn_reader *r, uint32_t id, const char **file, const char **name)
{
    const tn_rec_python *python = lookup(&r->pythons, id);
    *file = python == NULL ? NULL : (const char *)(python + 1);
    *name = python == NULL ? NULL : *file + strlen(*file) + 1;
    return python;
}

uint32_t tn_reader_site_end(const tn_reader *r)
{
    return r->sites.end > r->python_sites.end ? r->sites.end : r->python_sites.end;
}

const tn_rec_api *tn_reader_api(const tn_reader *r, uint32_t id, const char **name)
{
    const tn_rec_api *api = lookup(&r->apis, id);
    if (name != NULL)
        *name = api == NULL ? NULL : (const char *)(api + 1);
    return api;
}

uint32_t tn_reader_api_end(const tn_reader *r)
{
    return r->apis.end;
}

const tn_rec_device *tn_reader_device(const tn_reader *r, uint32_t ordinal, const char **name)
{
    const tn_rec_device *device = lookup(&r->devices, ordinal);
    if (name != NULL)
        *name = device == NULL ? NULL : (const char *)(device + 1);
    return device;
}

const char *tn_reader_string(const tn_reader *r, uint32_t id)
{
    const char *payload = lookup(&r->strings, id);
    return payload == NULL ? NULL : payload + sizeof(uint32_t);
}

const tn_rec_coverage *tn_reader_coverage(const tn_reader *r, size_t i, const char **text)
{
    const tn_rec_coverage *c = i < r->coverage_count ? r->coverage[i] : NULL;
    if (text != NULL)
        *text = c == NULL ? NULL : (const char *)(c + 1);
    return c;
}
