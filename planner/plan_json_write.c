/* The writer. Objects of one line are those that come in great numbers. */
#include <inttypes.h>
#include <string.h>

#include "planner/plan_json.h"
#include "planner/plan_shape.h"

static void put_text(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(out, "\\u%04x", *c);
        else
            putc(*c, out);
    }
    putc('"', out);
}

static uint64_t number_at(const void *object, const tn_shape_field *f)
{
    const char *at = (const char *)object + f->offset;
    switch (f->type) {
    case TN_SHAPE_U32:
    case TN_SHAPE_FINENESS: return *(const uint32_t *)at;
    case TN_SHAPE_U8:
    case TN_SHAPE_PHASE: return *(const uint8_t *)at;
    case TN_SHAPE_FLAG: return f->bytes == 1 ? *(const uint8_t *)at : (uint64_t)*(const int *)at;
    case TN_SHAPE_DISCIPLINE: return *(const tn_discipline *)at;
    case TN_SHAPE_FAMILY: return *(const tn_family *)at;
    default: return *(const uint64_t *)at;
    }
}

static size_t count_at(const void *object, const tn_shape_field *f)
{
    return *(const size_t *)((const char *)object + f->count_offset);
}

static int is_there(const void *object, const tn_shape_field *f)
{
    const char *at = (const char *)object + f->offset;
    if (f->flags & TN_SHAPE_IF_KNOWN)
        return *(const int *)at;
    if (!(f->flags & TN_SHAPE_OPTIONAL))
        return 1;
    if (f->type == TN_SHAPE_TEXT)
        return *(const char *const *)at != NULL;
    return f->type >= TN_SHAPE_ARRAY ? count_at(object, f) > 0 : number_at(object, f) != 0;
}

static void put_object(FILE *out, const void *object, const tn_shape *shape, int depth);

static void put_break(FILE *out, int depth)
{
    putc('\n', out);
    for (int i = 0; i < depth; i++)
        putc(' ', out);
}

static void put_list(FILE *out, const void *object, const tn_shape_field *f, int depth)
{
    const char *at = *(const char *const *)((const char *)object + f->offset);
    size_t count = count_at(object, f);
    putc('[', out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            putc(',', out);
        switch (f->type) {
        case TN_SHAPE_ARRAY:
            put_break(out, depth + 1);
            put_object(out, at + i * f->shape->bytes, f->shape, depth + 1);
            break;
        case TN_SHAPE_TEXTS:
            put_break(out, depth + 1);
            put_text(out, ((const char *const *)at)[i] ? ((const char *const *)at)[i] : "");
            break;
        case TN_SHAPE_KEYS:
            fprintf(out, "%s\"%016" PRIx64 "\"", i ? " " : "", ((const uint64_t *)at)[i]);
            break;
        default:
            fprintf(out, "%s%" PRIu64, i ? " " : "", ((const uint64_t *)at)[i]);
            break;
        }
    }
    if (count && (f->type == TN_SHAPE_ARRAY || f->type == TN_SHAPE_TEXTS))
        put_break(out, depth);
    putc(']', out);
}

static void put_value(FILE *out, const void *object, const tn_shape_field *f, int depth)
{
    const char *at = (const char *)object + f->offset;
    uint64_t n;
    switch (f->type) {
    case TN_SHAPE_TEXT:
        put_text(out, *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case TN_SHAPE_KEY:
        fprintf(out, "\"%016" PRIx64 "\"", *(const uint64_t *)at);
        break;
    case TN_SHAPE_FLAG:
        fputs(number_at(object, f) ? "true" : "false", out);
        break;
    case TN_SHAPE_DISCIPLINE:
        put_text(out, tn_discipline_name(*(const tn_discipline *)at));
        break;
    case TN_SHAPE_FAMILY:
        put_text(out, *(const tn_family *)at == TN_FAMILY_COUNT ? "other" : tn_family_name(*(const tn_family *)at));
        break;
    case TN_SHAPE_PHASE:
        n = number_at(object, f);
        put_text(out, n < TN_SHAPE_PHASES ? tn_shape_phases[n] : "unknown");
        break;
    case TN_SHAPE_FINENESS:
        n = number_at(object, f);
        if (n >= TN_CLASSES_ONE)
            put_text(out, n == TN_CLASSES_EACH ? "each size" : "one");
        else
            fprintf(out, "%" PRIu64, n);
        break;
    case TN_SHAPE_OBJECT:
        put_object(out, at, f->shape, depth);
        break;
    case TN_SHAPE_ARRAY:
    case TN_SHAPE_U64S:
    case TN_SHAPE_KEYS:
    case TN_SHAPE_TEXTS:
        put_list(out, object, f, depth);
        break;
    default:
        n = number_at(object, f);
        fprintf(out, "%" PRIu64, n > INT64_MAX ? INT64_MAX : n); /* more is no number of JSON's readers, and comes from damaged journals alone */
        break;
    }
}

static void put_fields(FILE *out, const void *object, const tn_shape *shape, int depth, int first)
{
    for (size_t i = 0; i < shape->count; i++) {
        const tn_shape_field *f = &shape->fields[i];
        if (!is_there(object, f))
            continue;
        if (!first)
            putc(',', out);
        if (shape->one_line)
            fputs(first ? "" : " ", out);
        else
            put_break(out, depth + 1);
        fprintf(out, "\"%s\": ", f->name);
        put_value(out, object, f, depth + 1);
        first = 0;
    }
}

static void put_object(FILE *out, const void *object, const tn_shape *shape, int depth)
{
    putc('{', out);
    put_fields(out, object, shape, depth, 1);
    if (!shape->one_line)
        put_break(out, depth);
    putc('}', out);
}

tn_error tn_plan_write(const tn_plan *plan, FILE *out)
{
    fputs("{\n \"schema\": \"" TN_PLAN_SCHEMA "\"", out);
    put_fields(out, plan, &tn_plan_shape, 0, 0);
    fputs("\n}\n", out);
    return fflush(out) == 0 && !ferror(out) ? TN_OK : TN_E_IO;
}
