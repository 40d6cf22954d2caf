/* The file's text into the model and back. Nothing is guessed: a key that is missing, twice there or of the wrong kind is an error with its place. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "planner/reserve_model.h"
#include "planner/text_file.h"

typedef struct reading {
    const char *name;
    char *message;
    tn_reserve_error error;
} reading;

static bool fail(reading *r, tn_reserve_error error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool fail(reading *r, tn_reserve_error error, const char *format, ...)
{
    size_t used = (size_t)snprintf(r->message, TN_RESERVE_MESSAGE, "%.400s: ", r->name);
    va_list args;
    va_start(args, format);
    vsnprintf(r->message + used, TN_RESERVE_MESSAGE - used, format, args);
    va_end(args);
    tn_text_mask(r->message);
    r->error = error;
    return false;
}

static bool corrupt(reading *r, const char *place, const char *what)
{
    return fail(r, TN_RESERVE_CORRUPT, "%s %s; move the file away to begin anew", place, what);
}

static bool has_only(reading *r, const json_t *object, const char *place, const char *const *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (!keys[i]) {
            char what[120];
            snprintf(what, sizeof(what), "has a key \"%.60s\" that is none of this format's", key);
            return corrupt(r, place, what);
        }
    }
    return true;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static bool read_text(reading *r, const json_t *value, const char *place, char out[TN_RESERVE_TEXT])
{
    const char *text = json_string_value(value);
    if (!text || json_string_length(value) != strlen(text) || strlen(text) >= TN_RESERVE_TEXT || has_control(text))
        return corrupt(r, place, "is no text of at most 127 bytes");
    memset(out, 0, TN_RESERVE_TEXT);
    memcpy(out, text, strlen(text));
    return true;
}

static bool read_member(reading *r, const json_t *object, const char *place, const char *key, char out[TN_RESERVE_TEXT])
{
    char whole[160];
    snprintf(whole, sizeof(whole), "%.100s.%s", place, key);
    return read_text(r, json_object_get(object, key), whole, out);
}

static bool read_charges(reading *r, const json_t *object, const char *place, tn_charges *out)
{
    const char *keys[TN_CHARGES + 1] = {NULL};
    for (int i = 0; i < TN_CHARGES; i++)
        keys[i] = tn_charge_key((tn_charge)i);
    if (!json_is_object(object))
        return corrupt(r, place, "is no object");
    if (!has_only(r, object, place, keys))
        return false;
    for (int i = 0; i < TN_CHARGES; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        char whole[160];
        snprintf(whole, sizeof(whole), "%.100s.%s", place, keys[i]);
        if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
            return corrupt(r, whole, "is no whole number of bytes");
        out->bytes[i] = value ? (uint64_t)json_integer_value(value) : 0;
    }
    return true;
}

static bool read_measurement(reading *r, const json_t *object, const char *place, tn_reserve_measured *out)
{
    static const char *const keys[] = {"run", "date", "bytes", NULL};
    char whole[160];
    snprintf(whole, sizeof(whole), "%.100s.bytes", place);
    if (!json_is_object(object))
        return corrupt(r, place, "is no object");
    return has_only(r, object, place, keys) && read_member(r, object, place, "run", out->run) &&
           read_member(r, object, place, "date", out->date) && read_charges(r, json_object_get(object, "bytes"), whole, &out->charges);
}

static bool read_libraries(reading *r, const json_t *array, const char *place, tn_reserve_entry *out)
{
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > TN_RESERVE_LIBRARIES)
        return corrupt(r, place, "is no list of at most 1024 texts");
    out->libraries = calloc(count + 1, TN_RESERVE_TEXT);
    if (!out->libraries)
        return fail(r, TN_RESERVE_NOMEM, "no host memory is left");
    for (size_t i = 0; i < count; i++) {
        char whole[160];
        snprintf(whole, sizeof(whole), "%.100s[%zu]", place, i);
        if (!read_text(r, json_array_get(array, i), whole, out->libraries[i]))
            return false;
    }
    out->library_count = count;
    tn_reserve_sort_libraries(out);
    return true;
}

/* `out` is zeroed; what it holds after a failure is the caller's to free. */
static bool read_entry(reading *r, const json_t *object, const char *place, tn_reserve_entry *out)
{
    static const char *const keys[] = {"gpu", "driver", "loading", "libraries", "measurements", NULL};
    char whole[160];
    if (!json_is_object(object))
        return corrupt(r, place, "is no object");
    snprintf(whole, sizeof(whole), "%.100s.libraries", place);
    if (!has_only(r, object, place, keys) || !read_member(r, object, place, "gpu", out->gpu) ||
        !read_member(r, object, place, "driver", out->driver) || !read_member(r, object, place, "loading", out->loading) ||
        !read_libraries(r, json_object_get(object, "libraries"), whole, out))
        return false;
    const json_t *array = json_object_get(object, "measurements");
    size_t count = json_array_size(array);
    snprintf(whole, sizeof(whole), "%.100s.measurements", place);
    if (!json_is_array(array) || count < 1 || count > TN_RESERVE_KEPT)
        return corrupt(r, whole, "is no list of 1 to 9 measurements");
    for (size_t i = 0; i < count; i++) {
        snprintf(whole, sizeof(whole), "%.100s.measurements[%zu]", place, i);
        if (!read_measurement(r, json_array_get(array, i), whole, &out->measured[i]))
            return false;
    }
    out->measured_count = count;
    return true;
}

static int compare_entries(const void *a, const void *b) { return tn_reserve_compare(a, b); }

static bool read_file(reading *r, const json_t *root, tn_reserve *out)
{
    static const char *const keys[] = {"schema", "entries", NULL};
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema)
        return corrupt(r, "schema", "is missing, so that this is no file of charges");
    if (strcmp(schema, TN_RESERVE_SCHEMA) != 0)
        return fail(r, TN_RESERVE_VERSION, "its schema is \"%.60s\", and %s is what is read here", schema, TN_RESERVE_SCHEMA);
    const json_t *array = json_object_get(root, "entries");
    if (!has_only(r, root, "the file", keys))
        return false;
    if (!json_is_array(array) || json_array_size(array) > TN_RESERVE_ENTRIES)
        return corrupt(r, "entries", "is no list of at most 256 set-ups");
    for (size_t i = 0; i < json_array_size(array); i++) {
        char place[40];
        snprintf(place, sizeof(place), "entries[%zu]", i);
        out->entry_count++; /* also of a failed one its libraries are freed */
        if (!read_entry(r, json_array_get(array, i), place, &out->entries[i]))
            return false;
    }
    qsort(out->entries, out->entry_count, sizeof(out->entries[0]), compare_entries);
    for (size_t i = 1; i < out->entry_count; i++)
        if (tn_reserve_compare(&out->entries[i - 1], &out->entries[i]) == 0)
            return corrupt(r, "entries", "has one set-up twice");
    return true;
}

tn_reserve_error tn_reserve_parse(const char *name, const void *bytes, size_t length, tn_reserve **out, char message[TN_RESERVE_MESSAGE])
{
    *out = NULL;
    reading r = {.name = name, .message = message};
    json_error_t error;
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fail(&r, TN_RESERVE_CORRUPT, "line %d: %.160s; move the file away to begin anew", error.line, error.text);
        return r.error;
    }
    tn_reserve *reserve = tn_reserve_new();
    if (!reserve)
        fail(&r, TN_RESERVE_NOMEM, "no host memory is left");
    else if (read_file(&r, root, reserve))
        *out = reserve;
    json_decref(root);
    if (!*out)
        tn_reserve_free(reserve);
    return r.error;
}

static json_t *entry_json(const tn_reserve_entry *e)
{
    json_t *libraries = json_array(), *measurements = json_array();
    for (size_t i = 0; i < e->library_count; i++)
        json_array_append_new(libraries, json_string(e->libraries[i]));
    for (size_t i = 0; i < e->measured_count; i++) {
        json_t *charges = json_object();
        for (int c = 0; c < TN_CHARGES; c++)
            json_object_set_new(charges, tn_charge_key((tn_charge)c), json_integer((json_int_t)e->measured[i].charges.bytes[c]));
        json_array_append_new(measurements,
                              json_pack("{s:s, s:s, s:o}", "run", e->measured[i].run, "date", e->measured[i].date, "bytes", charges));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "gpu", e->gpu, "driver", e->driver, "loading", e->loading, "libraries", libraries,
                     "measurements", measurements);
}

char *tn_reserve_text(const tn_reserve *reserve)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < reserve->entry_count; i++)
        json_array_append_new(entries, entry_json(&reserve->entries[i]));
    bool whole = json_array_size(entries) == reserve->entry_count;
    json_t *root = json_pack("{s:s, s:o}", "schema", TN_RESERVE_SCHEMA, "entries", entries);
    char *text = root && whole ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    return text;
}
