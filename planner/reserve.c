/* Which measurements count: set-ups found by name, measurements added and dropped, the median. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "planner/reserve_model.h"

tn_reserve *tn_reserve_new(void)
{
    tn_reserve *reserve = calloc(1, sizeof(*reserve));
    if (reserve && !(reserve->entries = calloc(TN_RESERVE_ENTRIES + 1, sizeof(*reserve->entries)))) {
        free(reserve);
        return NULL;
    }
    return reserve;
}

void tn_reserve_free(tn_reserve *reserve)
{
    if (!reserve)
        return;
    for (size_t i = 0; i < reserve->entry_count; i++)
        free(reserve->entries[i].libraries);
    free(reserve->entries);
    free(reserve);
}

static int compare_texts(const void *a, const void *b) { return strcmp(a, b); }

void tn_reserve_sort_libraries(tn_reserve_entry *entry)
{
    size_t kept = 0;
    if (entry->library_count)
        qsort(entry->libraries, entry->library_count, TN_RESERVE_TEXT, compare_texts);
    for (size_t i = 0; i < entry->library_count; i++)
        if (i == 0 || strcmp(entry->libraries[i], entry->libraries[kept - 1]) != 0)
            memmove(entry->libraries[kept++], entry->libraries[i], TN_RESERVE_TEXT);
    entry->library_count = kept;
}

int tn_reserve_compare(const tn_reserve_entry *a, const tn_reserve_entry *b)
{
    int order = strcmp(a->gpu, b->gpu);
    order = order ? order : strcmp(a->driver, b->driver);
    order = order ? order : strcmp(a->loading, b->loading);
    for (size_t i = 0; !order && i < a->library_count && i < b->library_count; i++)
        order = strcmp(a->libraries[i], b->libraries[i]);
    return order ? order : (a->library_count > b->library_count) - (a->library_count < b->library_count);
}

/* The entry like `key`, or where it would stand. */
static size_t place_of(const tn_reserve *reserve, const tn_reserve_entry *key, bool *there)
{
    size_t i = 0;
    int order = -1;
    while (i < reserve->entry_count && (order = tn_reserve_compare(&reserve->entries[i], key)) < 0)
        i++;
    *there = i < reserve->entry_count && order == 0;
    return i;
}

static const char *last_date(const tn_reserve_entry *entry)
{
    return entry->measured_count ? entry->measured[entry->measured_count - 1].date : "";
}

/* The one that was not measured for longest, but not the one just added to. */
static void drop_oldest_entry(tn_reserve *reserve, size_t spared)
{
    size_t oldest = spared == 0;
    for (size_t i = 0; i < reserve->entry_count; i++)
        if (i != spared && strcmp(last_date(&reserve->entries[i]), last_date(&reserve->entries[oldest])) < 0)
            oldest = i;
    free(reserve->entries[oldest].libraries);
    reserve->entry_count--;
    memmove(&reserve->entries[oldest], &reserve->entries[oldest + 1], (reserve->entry_count - oldest) * sizeof(reserve->entries[0]));
}

/* A run counts once: else one that was planned from nine times would be all that is remembered. */
static void add_measurement(tn_reserve_entry *entry, const tn_reserve_measured *measured)
{
    size_t drop = 0;
    while (drop < entry->measured_count && strcmp(entry->measured[drop].run, measured->run) != 0)
        drop++;
    if (drop == entry->measured_count && drop == TN_RESERVE_KEPT)
        drop = 0;
    if (drop < entry->measured_count) {
        entry->measured_count--;
        memmove(&entry->measured[drop], &entry->measured[drop + 1], (entry->measured_count - drop) * sizeof(entry->measured[0]));
    }
    entry->measured[entry->measured_count++] = *measured;
}

void tn_reserve_add(tn_reserve *reserve, tn_reserve_entry *key, const tn_reserve_measured *measured)
{
    bool there;
    size_t i = place_of(reserve, key, &there);
    if (there) {
        free(key->libraries);
    } else {
        memmove(&reserve->entries[i + 1], &reserve->entries[i], (reserve->entry_count - i) * sizeof(reserve->entries[0]));
        reserve->entries[i] = *key;
        reserve->entry_count++;
    }
    key->libraries = NULL;
    add_measurement(&reserve->entries[i], measured);
    if (reserve->entry_count > TN_RESERVE_ENTRIES)
        drop_oldest_entry(reserve, i);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A bad measurement or two move a median by one place in the order, however bad they are, and are gone after nine more. The larger of
 * two: what is reserved and not taken costs less than what is taken and not reserved. */
static void answer(const tn_reserve_entry *entry, tn_reserve_answer *out)
{
    memset(out, 0, sizeof(*out));
    for (int charge = 0; charge < TN_CHARGES; charge++) {
        uint64_t sizes[TN_RESERVE_KEPT] = {0};
        for (size_t i = 0; i < entry->measured_count; i++)
            sizes[i] = entry->measured[i].charges.bytes[charge];
        qsort(sizes, entry->measured_count, sizeof(sizes[0]), compare_sizes);
        out->charges.bytes[charge] = sizes[entry->measured_count / 2];
    }
    out->measurements = entry->measured_count;
    memcpy(out->date, last_date(entry), strlen(last_date(entry)));
    memcpy(out->gpu, entry->gpu, sizeof(out->gpu));
    memcpy(out->driver, entry->driver, sizeof(out->driver));
    memcpy(out->loading, entry->loading, sizeof(out->loading));
}

static bool has_library(const tn_reserve_key *key, const char *name)
{
    for (size_t i = 0; i < key->library_count; i++)
        if (strcmp(key->libraries[i], name) == 0)
            return true;
    return false;
}

static bool in_entry(const tn_reserve_entry *entry, const char *name)
{
    for (size_t i = 0; i < entry->library_count; i++)
        if (strcmp(entry->libraries[i], name) == 0)
            return true;
    return false;
}

static bool same_libraries(const tn_reserve_entry *entry, const tn_reserve_key *key)
{
    for (size_t i = 0; i < entry->library_count; i++)
        if (!has_library(key, entry->libraries[i]))
            return false;
    for (size_t i = 0; i < key->library_count; i++)
        if (!in_entry(entry, key->libraries[i]))
            return false;
    return true;
}

tn_reserve_error tn_reserve_find(const tn_reserve *reserve, const tn_reserve_key *key, tn_reserve_answer *out)
{
    for (size_t i = 0; i < reserve->entry_count; i++) {
        const tn_reserve_entry *e = &reserve->entries[i];
        if (strcmp(e->gpu, key->gpu) == 0 && strcmp(e->driver, key->driver) == 0 && strcmp(e->loading, key->loading) == 0 &&
            same_libraries(e, key)) {
            answer(e, out);
            return TN_RESERVE_OK;
        }
    }
    return TN_RESERVE_NOT_FOUND;
}

static bool asked(const char *wanted, const char *is) { return !wanted || !*wanted || strcmp(wanted, is) == 0; }

tn_reserve_error tn_reserve_select(const tn_reserve *reserve, const char *gpu, const char *driver, const char *loading,
                                   tn_reserve_answer *out, char message[TN_RESERVE_MESSAGE])
{
    const tn_reserve_entry *found = NULL;
    size_t count = 0;
    char list[TN_RESERVE_MESSAGE - 200] = "";
    size_t used = 0;
    for (size_t i = 0; i < reserve->entry_count; i++) {
        const tn_reserve_entry *e = &reserve->entries[i];
        if (!asked(gpu, e->gpu) || !asked(driver, e->driver) || !asked(loading, e->loading))
            continue;
        found = e;
        if (count++ < 4 && used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.60s / %.60s / %.20s with %zu libraries", count > 1 ? ", " : "", e->gpu,
                                     e->driver, e->loading, e->library_count);
    }
    if (count == 1) {
        answer(found, out);
        return TN_RESERVE_OK;
    }
    if (count == 0) {
        snprintf(message, TN_RESERVE_MESSAGE, "it has no measurement of gpu \"%.60s\", driver \"%.60s\", loading \"%.60s\"", gpu ? gpu : "",
                 driver ? driver : "", loading ? loading : "");
        return TN_RESERVE_NOT_FOUND;
    }
    snprintf(message, TN_RESERVE_MESSAGE, "it has measurements of %zu set-ups that may be meant: %s%s", count, list, count > 4 ? ", ..." : "");
    return TN_RESERVE_SEVERAL;
}
