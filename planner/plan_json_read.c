/* The reader. It keeps the place it is at as a path through the document, for the one sentence that it may have to say. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_shape.h"
#include "planner/text_file.h"

/* A file larger than this is no plan. */
#define FILE_BYTES_MAX ((size_t)1 << 30)

typedef struct read_state {
    tn_plan *plan;
    const char *name;
    char *message;
    char place[512];
    tn_error error;
} read_state;

static void fail(read_state *r, tn_error error, const char *format, ...)
{
    char what[512];
    va_list args;
    if (r->error != TN_OK)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    r->error = error;
    snprintf(r->message, TN_PLAN_MESSAGE, "%s: %s %s", r->name, r->place[0] ? r->place : "the document", what);
    tn_text_mask(r->message);
}

/* Goes into a key or an element; returns what leaves it again. */
static size_t enter(read_state *r, const char *key, size_t index)
{
    size_t length = strlen(r->place);
    if (key)
        snprintf(r->place + length, sizeof(r->place) - length, "%s%s", length ? "." : "", key);
    else
        snprintf(r->place + length, sizeof(r->place) - length, "[%zu]", index);
    return length;
}

static void leave(read_state *r, size_t length)
{
    r->place[length] = 0;
}

static int hex_key(const char *text, uint64_t *out)
{
    uint64_t key = 0;
    if (strlen(text) != 16 || text[strspn(text, "0123456789abcdef")])
        return 0;
    for (; *text; text++)
        key = key << 4 | (uint64_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
    *out = key;
    return 1;
}

static uint64_t read_number(read_state *r, const json_t *value, uint64_t most)
{
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    if (n < 0 || (uint64_t)n > most) {
        fail(r, TN_E_FORMAT, "is no whole number from 0 to %" PRIu64, most);
        return 0;
    }
    return (uint64_t)n;
}

static const char *read_text(read_state *r, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value)) {
        fail(r, TN_E_FORMAT, "is no text");
        return "";
    }
    return text;
}

static const char *keep_text(read_state *r, const json_t *value)
{
    const char *text = tn_plan_text(r->plan, read_text(r, value));
    if (!text)
        fail(r, TN_E_NOMEM, "does not fit into memory");
    return text;
}

static uint64_t read_key(read_state *r, const json_t *value)
{
    uint64_t key = 0;
    if (!hex_key(read_text(r, value), &key))
        fail(r, TN_E_FORMAT, "is not a key of 16 hexadecimal digits");
    return key;
}

static void read_object(read_state *r, const json_t *value, const tn_shape *shape, void *object, int with_schema);

static void read_list(read_state *r, const json_t *value, const tn_shape_field *f, void *object)
{
    size_t count = json_array_size(value), bytes = f->type == TN_SHAPE_ARRAY ? f->shape->bytes : sizeof(uint64_t);
    if (!json_is_array(value)) {
        fail(r, TN_E_FORMAT, "is no array");
        return;
    }
    char *at = tn_plan_memory(r->plan, count, bytes);
    if (!at) {
        fail(r, TN_E_NOMEM, "does not fit into memory");
        return;
    }
    for (size_t i = 0; i < count && r->error == TN_OK; i++) {
        size_t place = enter(r, NULL, i);
        const json_t *element = json_array_get(value, i);
        if (f->type == TN_SHAPE_ARRAY)
            read_object(r, element, f->shape, at + i * bytes, 0);
        else if (f->type == TN_SHAPE_TEXTS)
            ((const char **)at)[i] = keep_text(r, element);
        else
            ((uint64_t *)at)[i] = f->type == TN_SHAPE_KEYS ? read_key(r, element) : read_number(r, element, INT64_MAX);
        leave(r, place);
    }
    *(void **)((char *)object + f->offset) = at;
    *(size_t *)((char *)object + f->count_offset) = count;
}

static void read_value(read_state *r, const json_t *value, const tn_shape_field *f, void *object)
{
    char *at = (char *)object + f->offset;
    switch (f->type) {
    case TN_SHAPE_U64:
        *(uint64_t *)at = read_number(r, value, INT64_MAX);
        break;
    case TN_SHAPE_U32:
        *(uint32_t *)at = (uint32_t)read_number(r, value, UINT32_MAX);
        break;
    case TN_SHAPE_U8:
        *(uint8_t *)at = (uint8_t)read_number(r, value, UINT8_MAX);
        break;
    case TN_SHAPE_FLAG:
        if (!json_is_boolean(value))
            fail(r, TN_E_FORMAT, "is neither true nor false");
        else if (f->bytes == 1)
            *(uint8_t *)at = json_is_true(value);
        else
            *(int *)at = json_is_true(value);
        break;
    case TN_SHAPE_TEXT:
        *(const char **)at = keep_text(r, value);
        break;
    case TN_SHAPE_KEY:
        *(uint64_t *)at = read_key(r, value);
        break;
    case TN_SHAPE_DISCIPLINE:
        *(tn_discipline *)at = tn_discipline_find(read_text(r, value));
        if (*(tn_discipline *)at == TN_D_COUNT)
            fail(r, TN_E_FORMAT, "is not native, T1, T2, T3, T4, packed, T5a or T5b");
        break;
    case TN_SHAPE_FAMILY:
        *(tn_family *)at = tn_family_find(read_text(r, value));
        if (*(tn_family *)at == TN_FAMILY_COUNT && strcmp(read_text(r, value), "other") != 0)
            fail(r, TN_E_FORMAT, "is not device, async, pinned or other");
        break;
    case TN_SHAPE_PHASE:
        *(uint8_t *)at = 0;
        while (*(uint8_t *)at < TN_SHAPE_PHASES && strcmp(read_text(r, value), tn_shape_phases[*(uint8_t *)at]) != 0)
            ++*(uint8_t *)at;
        if (*(uint8_t *)at == TN_SHAPE_PHASES)
            fail(r, TN_E_FORMAT, "is not loading, planning or serving");
        break;
    case TN_SHAPE_FINENESS:
        if (json_is_string(value) && strcmp(json_string_value(value), "each size") == 0)
            *(uint32_t *)at = TN_CLASSES_EACH;
        else if (json_is_string(value) && strcmp(json_string_value(value), "one") == 0)
            *(uint32_t *)at = TN_CLASSES_ONE;
        else
            *(uint32_t *)at = (uint32_t)read_number(r, value, 64);
        break;
    case TN_SHAPE_OBJECT:
        read_object(r, value, f->shape, at, 0);
        if (f->flags & TN_SHAPE_IF_KNOWN)
            *(int *)at = 1;
        break;
    default:
        read_list(r, value, f, object);
        break;
    }
}

static const tn_shape_field *field_of(const tn_shape *shape, const char *key)
{
    for (size_t i = 0; i < shape->count; i++)
        if (strcmp(shape->fields[i].name, key) == 0)
            return &shape->fields[i];
    return NULL;
}

static void read_object(read_state *r, const json_t *value, const tn_shape *shape, void *object, int with_schema)
{
    const char *key;
    json_t *member;
    if (!json_is_object(value)) {
        fail(r, TN_E_FORMAT, "is no object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        const tn_shape_field *f = field_of(shape, key);
        size_t place = enter(r, key, 0);
        if (f)
            read_value(r, member, f, object);
        else if (!with_schema || strcmp(key, "schema") != 0)
            fail(r, TN_E_FORMAT, "is no key of a plan");
        leave(r, place);
        if (r->error != TN_OK)
            return;
    }
    for (size_t i = 0; i < shape->count; i++)
        if (!(shape->fields[i].flags & TN_SHAPE_OPTIONAL) && !json_object_get(value, shape->fields[i].name))
            fail(r, TN_E_FORMAT, "lacks the key %s", shape->fields[i].name);
}

static void check_schema(read_state *r, const json_t *root)
{
    static const char family[] = "tenure-plan/";
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!json_is_object(root) || !schema || strncmp(schema, family, sizeof family - 1) != 0)
        fail(r, TN_E_FORMAT, "is no plan: its schema is not %s", TN_PLAN_SCHEMA);
    else if (strcmp(schema, TN_PLAN_SCHEMA) != 0)
        fail(r, TN_E_VERSION, "has the schema %.40s, and only %s is known here", schema, TN_PLAN_SCHEMA);
}

tn_error tn_plan_parse(const char *text, size_t bytes, const char *name, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    read_state r = {.name = name, .message = message};
    json_error_t json_error;
    *out = NULL;
    message[0] = 0;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &json_error);
    if (!root) {
        snprintf(message, TN_PLAN_MESSAGE, "%s:%d:%d: %s", name, json_error.line, json_error.column, json_error.text);
        tn_text_mask(message);
        return json_error_code(&json_error) == json_error_out_of_memory ? TN_E_NOMEM : TN_E_FORMAT;
    }
    r.plan = tn_plan_new();
    if (!r.plan)
        fail(&r, TN_E_NOMEM, "does not fit into memory");
    check_schema(&r, root);
    if (r.error == TN_OK)
        read_object(&r, root, &tn_plan_shape, r.plan, 1);
    json_decref(root);
    if (r.error == TN_OK) {
        char what[TN_PLAN_CHECK_MESSAGE];
        r.error = tn_plan_check(r.plan, what);
        if (r.error != TN_OK)
            snprintf(message, TN_PLAN_MESSAGE, "%s: %s", name, what);
    }
    if (r.error == TN_OK)
        *out = r.plan;
    else
        tn_plan_free(r.plan);
    return r.error;
}

tn_error tn_plan_read(const char *path, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    char *text = NULL;
    size_t bytes = 0;
    int code = tn_text_file_read(path, FILE_BYTES_MAX, &text, &bytes);
    *out = NULL;
    if (code) {
        snprintf(message, TN_PLAN_MESSAGE, "%s: %s", path, code == ENOMEM ? "it does not fit into memory" : strerror(code));
        return code == ENOMEM ? TN_E_NOMEM : TN_E_OPEN;
    }
    tn_error error = tn_plan_parse(text, bytes, path, out, message);
    free(text);
    return error;
}
