/* Values into JSON objects, and what went wrong meanwhile. */
#define _GNU_SOURCE
#include "report/report_json_put.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Set where a value could not be made; jansson takes NULL for a value as a failure, so it is enough to look
 * once at the end. */
static _Thread_local int short_of_memory;

void tn_json_start(void)
{
    short_of_memory = 0;
}

int tn_json_failed(void)
{
    return short_of_memory;
}

void tn_json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        short_of_memory = 1;
}

void tn_json_put_integer(json_t *object, const char *key, uint64_t value)
{
    tn_json_put(object, key, json_integer((json_int_t)value));
}

void tn_json_put_text(json_t *object, const char *key, const char *text)
{
    tn_json_put(object, key, tn_json_text(text));
}

void tn_json_append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        short_of_memory = 1;
}

void tn_json_put_hex(json_t *object, const char *key, uint64_t value, int digits, const char *prefix)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%0*" PRIx64, prefix, digits, value);
    tn_json_put_text(object, key, text);
}

void tn_json_put_stat(json_t *object, const tn_stat *s)
{
    tn_json_put_integer(object, "live_requested_bytes", s->live_requested);
    tn_json_put_integer(object, "peak_requested_bytes", s->peak_requested);
    tn_json_put_integer(object, "live_backed_bytes", s->live_backed);
    tn_json_put_integer(object, "peak_backed_bytes", s->peak_backed);
    tn_json_put_integer(object, "allocs", s->allocs);
    tn_json_put_integer(object, "frees", s->frees);
    tn_json_put_integer(object, "refused", s->refused);
    tn_json_put_integer(object, "at_peak_backed_bytes", s->at_peak);
    tn_json_put_integer(object, "after_unload_backed_bytes", s->at_low);
}

json_t *tn_json_stat_object(const tn_stat *s)
{
    json_t *object = json_object();
    tn_json_put_stat(object, s);
    return object;
}

void tn_json_put_nulls(json_t *object, const char *const *keys)
{
    for (; *keys; keys++)
        tn_json_put(object, *keys, json_null());
}

void tn_json_put_site(json_t *object, const tn_site *site)
{
    tn_json_put_hex(object, "key", site->key, 16, "");
    if (site->python)
        tn_json_put_hex(object, "python_key", site->python->key, 16, "");
    else
        tn_json_put(object, "python_key", json_null());
}

void tn_json_put_field(json_t *object, const char *key, const char *field, size_t size)
{
    char text[1025];
    size_t length = strnlen(field, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
    memcpy(text, field, length);
    text[length] = 0;
    tn_json_put_text(object, key, length ? text : NULL);
}

void tn_json_put_version(json_t *object, const char *key, uint32_t version)
{
    tn_json_put(object, key, version ? json_integer(version) : json_null());
}
