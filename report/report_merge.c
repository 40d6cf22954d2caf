/* One numbering of calls, devices and sites over all journals of a run. */
#include "report/report_merge.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_owner.h"

static tn_error add_api(tn_report *report, tn_process *p, uint32_t id, size_t *hint)
{
    const char *name = NULL;
    const tn_rec_api *record = tn_reader_api(p->reader, id, &name);
    p->api_of[id] = TN_NO_INDEX;
    if (!record || !name)
        return TN_OK;
    /* Journals of one shim list the same names in the same order: look where the last one was found first. */
    size_t i = *hint;
    if (i >= report->api_count || strcmp(report->apis[i].name, name) != 0)
        for (i = 0; i < report->api_count && strcmp(report->apis[i].name, name) != 0;)
            i++;
    if (i == report->api_count) {
        tn_api *grown = realloc(report->apis, (i + 1) * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        report->apis = grown;
        grown[i] = (tn_api){.name = name, .level = record->level, .klass = record->klass};
        report->api_count++;
    }
    report->apis[i].calls += tn_reader_calls(p->reader, id);
    report->apis[i].resolved += tn_reader_resolved(p->reader, id);
    p->api_of[id] = (uint32_t)i;
    *hint = i + 1;
    return TN_OK;
}

static tn_error add_place(tn_report *report, const tn_rec_device *record, const char *name, uint32_t ordinal, uint32_t *out)
{
    static const uint8_t no_uuid[16];
    int has_uuid = record && memcmp(record->uuid, no_uuid, 16) != 0;
    for (uint32_t i = TN_PLACE_HOST + 1; i < report->place_count; i++) {
        const tn_place *place = &report->places[i];
        /* Without a uuid on both sides the ordinal is all there is to know a device by. */
        if (has_uuid && place->has_uuid ? memcmp(place->uuid, record->uuid, 16) == 0
                                        : has_uuid == place->has_uuid && place->ordinal == ordinal) {
            *out = i;
            return TN_OK;
        }
    }
    tn_place *grown = realloc(report->places, (report->place_count + 1) * sizeof(*grown));
    if (!grown)
        return TN_E_NOMEM;
    report->places = grown;
    tn_place *place = &grown[report->place_count];
    *place = (tn_place){.has_uuid = has_uuid, .ordinal = ordinal, .name = name};
    if (record) {
        memcpy(place->uuid, record->uuid, 16);
        place->total_bytes = record->total_bytes;
    }
    *out = (uint32_t)report->place_count++;
    return TN_OK;
}

static uint64_t python_key(const tn_rec_python_site *python)
{
    return python ? python->key : 0;
}

/* Sites by key. Open addressing over indices into report->sites; only alive while loading. */
typedef struct site_table { uint32_t *slots; size_t mask, used; } site_table;

static uint32_t *site_slot(const tn_report *report, const site_table *table, uint64_t key, const tn_rec_python_site *python, int stack)
{
    uint64_t both = key ^ python_key(python);
    size_t i = (size_t)((both ^ (both >> 32)) * 0x9e3779b97f4a7c15u >> 20) & table->mask;
    while (table->slots[i] != TN_NO_INDEX) {
        const tn_site *site = &report->sites[table->slots[i]];
        if (site->key == key && (site->record != NULL) == stack && (site->python != NULL) == (python != NULL) &&
            python_key(site->python) == python_key(python))
            break;
        i = (i + 1) & table->mask;
    }
    return &table->slots[i];
}

static tn_error grow_sites(tn_report *report, site_table *table)
{
    if (table->slots && table->used * 2 <= table->mask)
        return TN_OK;
    size_t size = table->slots ? (table->mask + 1) * 2 : 1024;
    tn_site *sites = realloc(report->sites, size * sizeof(*sites));
    if (!sites)
        return TN_E_NOMEM;
    report->sites = sites;
    uint32_t *slots = malloc(size * sizeof(*slots));
    if (!slots)
        return TN_E_NOMEM;
    memset(slots, 0xff, size * sizeof(*slots));
    free(table->slots);
    *table = (site_table){.slots = slots, .mask = size - 1, .used = table->used};
    for (size_t i = 0; i < report->site_count; i++)
        *site_slot(report, table, sites[i].key, sites[i].python, sites[i].record != NULL) = (uint32_t)i;
    return TN_OK;
}

static tn_error add_site(tn_report *report, site_table *table, uint32_t process, uint64_t key, const tn_rec_site *record,
                         const tn_rec_python_site *python, uint32_t *out)
{
    tn_error error = grow_sites(report, table);
    if (error != TN_OK)
        return error;
    uint32_t *slot = site_slot(report, table, key, python, record != NULL);
    if (*slot == TN_NO_INDEX) {
        report->sites[report->site_count] =
            (tn_site){.key = key, .python = python, .record = record, .process = process, .first_row = TN_NO_INDEX};
        *slot = (uint32_t)report->site_count++;
        table->used++;
    }
    *out = *slot;
    return TN_OK;
}

static tn_error number_process(tn_report *report, site_table *table, uint32_t index)
{
    tn_process *p = &report->processes[index];
    p->api_end = tn_reader_api_end(p->reader);
    p->site_end = tn_reader_site_end(p->reader);
    if (p->site_end < TN_SITE_FIRST)
        p->site_end = TN_SITE_FIRST;
    p->api_of = calloc(p->api_end ? p->api_end : 1, sizeof(uint32_t));
    p->site_of = calloc(p->site_end, sizeof(uint32_t));
    p->place_of = malloc(256 * sizeof(uint32_t));
    if (!p->api_of || !p->site_of || !p->place_of)
        return TN_E_NOMEM;
    tn_error error = TN_OK;
    size_t hint = 0;
    for (uint32_t id = 0; id < p->api_end && error == TN_OK; id++)
        error = add_api(report, p, id, &hint);
    memset(p->place_of, 0xff, 256 * sizeof(uint32_t));
    for (uint32_t ordinal = 0; ordinal < TN_DEVICE_NONE && error == TN_OK; ordinal++) {
        const char *name = NULL;
        const tn_rec_device *record = tn_reader_device(p->reader, ordinal, &name);
        if (record)
            error = add_place(report, record, name, ordinal, &p->place_of[ordinal]);
    }
    /* The two site ids that stand for no stack are one line each, told apart by their key. */
    for (uint32_t id = 0; id < TN_SITE_FIRST && error == TN_OK; id++)
        error = add_site(report, table, index, id, NULL, NULL, &p->site_of[id]);
    for (uint32_t id = TN_SITE_FIRST; id < p->site_end && error == TN_OK; id++) {
        const tn_rec_site *record = tn_reader_site(p->reader, id);
        p->site_of[id] = TN_NO_INDEX;
        if (record)
            error = add_site(report, table, index, record->key, record, tn_reader_site_python(p->reader, id), &p->site_of[id]);
    }
    return error;
}

/* A plan's tiers hold memory that no call of the program asked for. Their keys are like no others. */
static tn_error add_tier_sites(tn_report *report)
{
    tn_site *grown = realloc(report->sites, (report->site_count + TN_ROUTE_TIERS) * sizeof(*grown));
    if (!grown)
        return TN_E_NOMEM;
    report->sites = grown;
    report->tier_sites = (uint32_t)report->site_count;
    for (unsigned tier = TN_ROUTE_T1; tier < TN_ROUTE_TIERS; tier++)
        grown[report->site_count++] = (tn_site){.key = 0xa0 + tier, .first_row = TN_NO_INDEX, .tier = (uint8_t)tier};
    return TN_OK;
}

/* Every site's owner, by name: libraries of one name in several processes are one line. */
static tn_error set_owners(tn_report *report)
{
    size_t room = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const char *name = tn_owner_of_site(report, (uint32_t)i).name;
        size_t k = 0;
        while (k < report->owner_count && report->owners[k] != name && strcmp(report->owners[k], name) != 0)
            k++;
        if (k == room) {
            size_t more = room ? room * 2 : 32;
            const char **grown = realloc(report->owners, more * sizeof(*grown));
            if (!grown)
                return TN_E_NOMEM;
            report->owners = grown;
            room = more;
        }
        if (k == report->owner_count)
            report->owners[report->owner_count++] = name;
        report->sites[i].owner = (uint32_t)k;
    }
    return TN_OK;
}

/* Processes of one boot share CLOCK_MONOTONIC; otherwise only the wall clock is common to them. */
static void set_clocks(tn_report *report)
{
    const tn_journal_header *first = tn_reader_header(report->processes[0].reader);
    int one_boot = 1;
    for (size_t i = 1; i < report->process_count; i++) {
        const tn_journal_header *h = tn_reader_header(report->processes[i].reader);
        one_boot &= memcmp(h->boot_id, first->boot_id, sizeof(h->boot_id)) == 0;
    }
    for (size_t i = 0; i < report->process_count; i++) {
        const tn_journal_header *h = tn_reader_header(report->processes[i].reader);
        report->processes[i].start_ns = one_boot ? h->mono_start_ns : h->real_start_ns;
    }
}

tn_error tn_merge_place(tn_report *report, uint32_t process, uint32_t ordinal, uint32_t *out)
{
    tn_process *p = &report->processes[process];
    tn_error error = TN_OK;
    if (p->place_of[ordinal] == TN_NO_INDEX)
        error = add_place(report, NULL, NULL, ordinal, &p->place_of[ordinal]);
    *out = p->place_of[ordinal];
    return error;
}

tn_error tn_merge(tn_report *report)
{
    site_table table = {0};
    tn_error error = TN_OK;
    report->places = calloc(1, sizeof(tn_place));
    if (!report->places)
        return TN_E_NOMEM;
    report->place_count = 1;
    report->places[TN_PLACE_HOST] = (tn_place){.ordinal = TN_DEVICE_NONE, .name = "host"};
    for (size_t i = 0; i < report->process_count && error == TN_OK; i++)
        error = number_process(report, &table, (uint32_t)i);
    free(table.slots);
    if (error == TN_OK)
        error = add_tier_sites(report);
    if (error == TN_OK)
        error = set_owners(report);
    if (error == TN_OK)
        set_clocks(report);
    return error;
}
