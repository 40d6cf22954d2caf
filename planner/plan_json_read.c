/* The reader. It keeps the place it is at as a path through the document, for the one sentence that it may have to say, and what lists hold on a
 * stack, since how many there are is known only at their ends. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/json_pull.h"
#include "planner/plan_check.h"
#include "planner/plan_load.h"
#include "planner/plan_shape.h"
#include "planner/text_mask.h"

#define STEPS 32u /* a plan is no deeper */

/* A step of the path: a key, which then need not end in a 0, or the number of an element. */
typedef struct step { const char *key; size_t number; } step;

typedef struct read_state {
    tn_pull json;
    tn_plan *plan;
    const tn_metadata *memory;
    char *stack; size_t used, room; /* elements of the lists that are not at their ends */
    const char *name;
    char *message;
    step steps[STEPS]; unsigned depth;
    uint8_t without_names, dropping; /* dropping: inside what is read and not kept */
    tn_error error;
} read_state;

static void put(char *out, size_t room, size_t *length, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out + *length, room - *length, format, args);
    va_end(args);
    *length += n < 0 ? 0 : (size_t)n < room - *length ? (size_t)n : room - *length - 1;
}

static void fail(read_state *r, tn_error error, const char *format, ...)
{
    char what[512], place[512] = "";
    size_t length = 0;
    va_list args;
    if (r->error != TN_OK)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    for (unsigned i = 0; i < r->depth; i++)
        if (r->steps[i].key)
            put(place, sizeof place, &length, "%s%.*s", length ? "." : "", (int)(r->steps[i].number < 200 ? r->steps[i].number : 200), r->steps[i].key);
        else
            put(place, sizeof place, &length, "[%zu]", r->steps[i].number);
    r->error = error;
    snprintf(r->message, TN_PLAN_MESSAGE, "%s: %s %s", r->name, place[0] ? place : "the document", what);
    tn_text_mask(r->message);
}

static void fail_by_memory(read_state *r)
{
    fail(r, TN_E_NOMEM, "does not fit into memory");
}

/* The text itself is at fault; then lines and columns say where. */
static void fail_by_text(read_state *r)
{
    size_t line, column;
    if (r->error != TN_OK)
        return;
    r->error = r->json.no_memory ? TN_E_NOMEM : TN_E_FORMAT;
    tn_pull_place(&r->json, &line, &column);
    snprintf(r->message, TN_PLAN_MESSAGE, "%s:%zu:%zu: %s", r->name, line, column, r->json.problem ? r->json.problem : "it cannot be read");
    tn_text_mask(r->message);
}

/* Goes into a member (its key and its length) or an element (NULL and its number). */
static void enter(read_state *r, const char *key, size_t number)
{
    if (r->depth == STEPS)
        fail(r, TN_E_FORMAT, "is nested too deeply");
    else
        r->steps[r->depth++] = (step){key, number};
}

static uint64_t read_number(read_state *r, uint64_t most)
{
    uint64_t n = 0;
    tn_pull_type type = tn_pull_peek(&r->json);
    int whole = type == TN_PULL_NUMBER ? tn_pull_number(&r->json, &n) : type == TN_PULL_NOTHING ? -1 : 0;
    if (whole < 0)
        fail_by_text(r);
    else if (!whole || n > most)
        fail(r, TN_E_FORMAT, "is no whole number from 0 to %" PRIu64, most);
    return r->error == TN_OK ? n : 0;
}

/* Until the next thing is read. */
static const char *read_text(read_state *r, size_t *bytes)
{
    const char *text = "";
    tn_pull_type type = tn_pull_peek(&r->json);
    *bytes = 0;
    if (type == TN_PULL_NOTHING || (type == TN_PULL_TEXT && !tn_pull_text(&r->json, &text, bytes)))
        fail_by_text(r);
    else if (type != TN_PULL_TEXT)
        fail(r, TN_E_FORMAT, "is no text");
    return text;
}

static const char *keep_text(read_state *r)
{
    size_t bytes;
    const char *text = read_text(r, &bytes);
    if (r->dropping || r->error != TN_OK)
        return "";
    text = tn_plan_text_of(r->plan, text, bytes);
    if (!text)
        fail_by_memory(r);
    return text;
}

/* A short text to compare with the names there are; a longer one is none of them. */
static void read_name(read_state *r, char name[24])
{
    size_t bytes;
    const char *text = read_text(r, &bytes);
    bytes = bytes < 24 ? bytes : 0;
    memcpy(name, text, bytes);
    name[bytes] = 0;
}

static uint64_t read_key(read_state *r)
{
    size_t bytes;
    const char *text = read_text(r, &bytes);
    uint64_t key = 0;
    int is_key = bytes == 16;
    for (size_t i = 0; i < 16 && is_key; i++) {
        unsigned digit = text[i] >= '0' && text[i] <= '9' ? (unsigned)(text[i] - '0') : text[i] >= 'a' && text[i] <= 'f' ? (unsigned)(text[i] - 'a' + 10) : 16;
        is_key = digit < 16;
        key = key << 4 | digit;
    }
    if (!is_key)
        fail(r, TN_E_FORMAT, "is not a key of 16 hexadecimal digits");
    return key;
}

/* ---- lists and objects ---- */

static void push(read_state *r, const void *element, size_t bytes)
{
    if (r->room - r->used < bytes) {
        size_t wanted = r->room ? r->room * 2 : 4096;
        char *grown = r->memory->resize(r->memory->self, r->stack, r->room, wanted);
        if (!grown) {
            fail_by_memory(r);
            return;
        }
        r->stack = grown;
        r->room = wanted;
    }
    memcpy(r->stack + r->used, element, bytes);
    r->used += bytes;
}

static void read_object(read_state *r, const tn_shape *shape, void *object);

static void read_elements(read_state *r, const tn_shape_field *f, size_t bytes, size_t *count)
{
    union { uint64_t number; const char *text; char bytes[TN_SHAPE_BYTES]; } element;
    int more = 0;
    *count = 0;
    while (r->error == TN_OK && (more = tn_pull_element(&r->json)) > 0) {
        enter(r, NULL, *count);
        memset(&element, 0, bytes);
        if (f->type == TN_SHAPE_ARRAY)
            read_object(r, f->shape, &element);
        else if (f->type == TN_SHAPE_TEXTS)
            element.text = keep_text(r);
        else
            element.number = f->type == TN_SHAPE_KEYS ? read_key(r) : read_number(r, INT64_MAX);
        if (r->error != TN_OK)
            return;
        if (!r->dropping) {
            push(r, &element, bytes);
            ++*count;
        }
        r->depth--;
    }
    if (more < 0)
        fail_by_text(r);
}

static void read_list(read_state *r, const tn_shape_field *f, void *object)
{
    size_t count, base = r->used, bytes = f->type == TN_SHAPE_ARRAY ? f->shape->bytes : sizeof(uint64_t);
    tn_pull_type type = tn_pull_peek(&r->json);
    uint8_t dropping = r->dropping;
    if (type != TN_PULL_ARRAY && type != TN_PULL_NOTHING) {
        fail(r, TN_E_FORMAT, "is no array");
        return;
    }
    if (!tn_pull_enter(&r->json, TN_PULL_ARRAY)) {
        fail_by_text(r);
        return;
    }
    r->dropping |= r->without_names && (f->flags & TN_SHAPE_NAMES);
    read_elements(r, f, bytes, &count);
    r->dropping = dropping;
    if (r->error != TN_OK)
        return;
    void *at = tn_plan_memory(r->plan, count, bytes);
    if (!at) {
        fail_by_memory(r);
        return;
    }
    if (count)
        memcpy(at, r->stack + base, count * bytes);
    r->used = base;
    *(void **)((char *)object + f->offset) = at;
    *(size_t *)((char *)object + f->count_offset) = count;
}

static void read_flag(read_state *r, const tn_shape_field *f, char *at)
{
    tn_pull_type type = tn_pull_peek(&r->json);
    if (type != TN_PULL_TRUE && type != TN_PULL_FALSE && type != TN_PULL_NOTHING)
        fail(r, TN_E_FORMAT, "is neither true nor false");
    else if (!tn_pull_word(&r->json))
        fail_by_text(r);
    else if (f->bytes == 1)
        *(uint8_t *)at = type == TN_PULL_TRUE;
    else
        *(int *)at = type == TN_PULL_TRUE;
}

static void read_value(read_state *r, const tn_shape_field *f, void *object)
{
    char *at = (char *)object + f->offset, name[24];
    switch (f->type) {
    case TN_SHAPE_U64:
        *(uint64_t *)at = read_number(r, INT64_MAX);
        break;
    case TN_SHAPE_U32:
        *(uint32_t *)at = (uint32_t)read_number(r, UINT32_MAX);
        break;
    case TN_SHAPE_U8:
        *(uint8_t *)at = (uint8_t)read_number(r, UINT8_MAX);
        break;
    case TN_SHAPE_FLAG:
        read_flag(r, f, at);
        break;
    case TN_SHAPE_TEXT:
        *(const char **)at = keep_text(r);
        break;
    case TN_SHAPE_KEY:
        *(uint64_t *)at = read_key(r);
        break;
    case TN_SHAPE_DISCIPLINE:
        read_name(r, name);
        *(tn_discipline *)at = tn_discipline_find(name);
        if (*(tn_discipline *)at == TN_D_COUNT)
            fail(r, TN_E_FORMAT, "is not native, T1, T2, T3, T4, packed, T5a or T5b");
        break;
    case TN_SHAPE_FAMILY:
        read_name(r, name);
        *(tn_family *)at = tn_family_find(name);
        if (*(tn_family *)at == TN_FAMILY_COUNT && strcmp(name, "other") != 0)
            fail(r, TN_E_FORMAT, "is not device, async, pinned, handle or other");
        break;
    case TN_SHAPE_PHASE:
        read_name(r, name);
        *(uint8_t *)at = 0;
        while (*(uint8_t *)at < TN_SHAPE_PHASES && strcmp(name, tn_shape_phases[*(uint8_t *)at]) != 0)
            ++*(uint8_t *)at;
        if (*(uint8_t *)at == TN_SHAPE_PHASES)
            fail(r, TN_E_FORMAT, "is not loading, planning or serving");
        break;
    case TN_SHAPE_FINENESS:
        if (tn_pull_peek(&r->json) != TN_PULL_TEXT) {
            *(uint32_t *)at = (uint32_t)read_number(r, 64);
            break;
        }
        read_name(r, name);
        *(uint32_t *)at = strcmp(name, "one") == 0 ? TN_CLASSES_ONE : TN_CLASSES_EACH;
        if (strcmp(name, "one") != 0 && strcmp(name, "each size") != 0)
            fail(r, TN_E_FORMAT, "is no number, \"one\" or \"each size\"");
        break;
    case TN_SHAPE_OBJECT:
        read_object(r, f->shape, at);
        if (f->flags & TN_SHAPE_IF_KNOWN)
            *(int *)at = 1;
        break;
    default:
        read_list(r, f, object);
        break;
    }
}

/* The shape's fields from `at` on, and then the others: a file has them in that order. */
static size_t field_of(const tn_shape *shape, size_t at, const char *key, size_t bytes)
{
    for (size_t i = 0; i < shape->count; i++, at++) {
        at = at < shape->count ? at : 0;
        if (strncmp(shape->fields[at].name, key, bytes) == 0 && shape->fields[at].name[bytes] == 0)
            return at;
    }
    return shape->count;
}

static void read_member(read_state *r, const tn_shape *shape, void *object, const char *key, size_t bytes, size_t *at, uint64_t *seen)
{
    static const char schema[] = "schema";
    size_t i = field_of(shape, *at, key, bytes);
    /* The schema, which is no field of a plan, has been looked at before. */
    int is_schema = shape == &tn_plan_shape && bytes == sizeof schema - 1 && memcmp(key, schema, bytes) == 0;
    uint64_t bit = (uint64_t)1 << (is_schema ? TN_SHAPE_FIELDS - 1 : i % TN_SHAPE_FIELDS);
    enter(r, i < shape->count ? shape->fields[i].name : is_schema ? schema : key, bytes);
    if (i == shape->count && !is_schema)
        fail(r, TN_E_FORMAT, "is no key of a plan");
    else if (*seen & bit)
        fail(r, TN_E_FORMAT, "is there twice");
    else if (!is_schema)
        read_value(r, &shape->fields[i], object);
    else if (!tn_pull_skip(&r->json))
        fail_by_text(r);
    if (r->error == TN_OK)
        r->depth--;
    *seen |= bit;
    *at = i + 1;
}

static void read_object(read_state *r, const tn_shape *shape, void *object)
{
    const char *key;
    size_t bytes, at = 0;
    uint64_t seen = 0;
    int more = 0;
    tn_pull_type type = tn_pull_peek(&r->json);
    if (type != TN_PULL_OBJECT && type != TN_PULL_NOTHING) {
        fail(r, TN_E_FORMAT, "is no object");
        return;
    }
    if (!tn_pull_enter(&r->json, TN_PULL_OBJECT)) {
        fail_by_text(r);
        return;
    }
    while (r->error == TN_OK && (more = tn_pull_member(&r->json, &key, &bytes)) > 0)
        read_member(r, shape, object, key, bytes, &at, &seen);
    if (more < 0)
        fail_by_text(r);
    for (size_t i = 0; i < shape->count && r->error == TN_OK; i++)
        if (!(shape->fields[i].flags & TN_SHAPE_OPTIONAL) && !(seen >> i & 1))
            fail(r, TN_E_FORMAT, "lacks the key %s", shape->fields[i].name);
}

/* ---- the document ---- */

/* Looks for the schema before anything else is read: of another version nothing else need be understood. It stands first in what is written. */
static void check_schema(read_state *r)
{
    static const char family[] = "tenure-plan/";
    const char *key, *schema = NULL;
    size_t bytes, schema_bytes = 0;
    int more = 0;
    if (tn_pull_peek(&r->json) == TN_PULL_OBJECT && tn_pull_enter(&r->json, TN_PULL_OBJECT))
        while (!schema && (more = tn_pull_member(&r->json, &key, &bytes)) > 0) {
            int found = bytes == 6 && memcmp(key, "schema", 6) == 0 && tn_pull_peek(&r->json) == TN_PULL_TEXT;
            if (found ? !tn_pull_text(&r->json, &schema, &schema_bytes) : !tn_pull_skip(&r->json))
                break;
        }
    if (r->json.problem)
        fail_by_text(r);
    else if (!schema || schema_bytes < sizeof family - 1 || memcmp(schema, family, sizeof family - 1) != 0)
        fail(r, TN_E_FORMAT, "is no plan: its schema is not %s", TN_PLAN_SCHEMA);
    else if (schema_bytes != sizeof TN_PLAN_SCHEMA - 1 || memcmp(schema, TN_PLAN_SCHEMA, schema_bytes) != 0)
        fail(r, TN_E_VERSION, "has the schema %.*s, and only %s is known here", (int)(schema_bytes < 40 ? schema_bytes : 40), schema, TN_PLAN_SCHEMA);
}

tn_error tn_plan_load_text(const char *text, size_t bytes, const char *name, unsigned flags, const tn_metadata *hook, tn_plan **out,
                           char message[TN_PLAN_MESSAGE])
{
    read_state r = {.name = name, .message = message, .memory = hook, .without_names = flags & TN_PLAN_WITHOUT_NAMES};
    *out = NULL;
    message[0] = 0;
    tn_pull_begin(&r.json, text, bytes, hook);
    check_schema(&r);
    tn_pull_end_use(&r.json);
    r.plan = r.error == TN_OK ? tn_plan_new_in(hook) : NULL;
    if (!r.plan)
        fail_by_memory(&r);
    tn_pull_begin(&r.json, text, bytes, hook);
    if (r.error == TN_OK)
        read_object(&r, &tn_plan_shape, r.plan);
    if (r.error == TN_OK && !tn_pull_finish(&r.json))
        fail_by_text(&r);
    tn_pull_end_use(&r.json);
    if (r.stack)
        (void)hook->resize(hook->self, r.stack, r.room, 0);
    if (r.error == TN_OK) {
        char what[TN_PLAN_CHECK_MESSAGE];
        r.error = tn_plan_check_in(r.plan, hook, what);
        if (r.error != TN_OK)
            snprintf(message, TN_PLAN_MESSAGE, "%s: %s", name, what);
    }
    if (r.error == TN_OK)
        *out = r.plan;
    else
        tn_plan_free(r.plan);
    return r.error;
}
