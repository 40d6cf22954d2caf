/* Reading and writing. The whole file is in memory; names are cut out of a copy of it. */
#define _GNU_SOURCE
#include "planner/pack_csv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "planner/text_file.h"

typedef enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, GAPS, HINT, OFFSET, COLUMNS } column;

enum { MAX_NAME = 200, MAX_SHOWN = 40 };

static const struct {
    const char *name;
    column column;
} column_names[] = {
    {"id", ID},       {"buffer", ID},    {"buffer_id", ID}, {"lower", LOWER},         {"start", LOWER}, {"begin", LOWER},
    {"upper", UPPER}, {"end", UPPER},    {"size", SIZE},    {"alignment", ALIGNMENT}, {"align", ALIGNMENT},
    {"gaps", GAPS},   {"hint", HINT},    {"offset", OFFSET},
};

static const char *const first_names[COLUMNS] = {"id", "lower", "upper", "size", "alignment", "gaps", "hint", "offset"};

typedef struct reader {
    const char *name;
    char *message;
    size_t line;
    char *at, *end;            /* what is left of the copy */
    int column_of[2 * COLUMNS]; /* what stands in the n-th field */
    int fields;
    tn_pack_csv *csv;
    size_t room, gap_count, gap_room;
    size_t *first_gap; /* per buffer: gaps move while they grow */
} reader;

__attribute__((format(printf, 2, 3))) static bool refuse(reader *r, const char *format, ...)
{
    va_list args;
    int used = r->line > 0 ? snprintf(r->message, TN_PACK_CSV_MESSAGE, "%.200s:%zu: ", r->name, r->line)
                           : snprintf(r->message, TN_PACK_CSV_MESSAGE, "%.200s: ", r->name);
    va_start(args, format);
    vsnprintf(r->message + used, TN_PACK_CSV_MESSAGE - (size_t)used, format, args);
    va_end(args);
    return false;
}

/* A field as it may be shown: short, and nothing in it that a terminal would obey. */
static const char *shown(const char *field, char out[MAX_SHOWN + 4])
{
    size_t n = 0;
    for (; field[n] && n < MAX_SHOWN; n++)
        out[n] = field[n] >= 0x20 && field[n] < 0x7F ? field[n] : '?';
    strcpy(out + n, field[n] ? "..." : "");
    return out;
}

/* The next line without its end, as a string; NULL after the last. */
static char *next_line(reader *r)
{
    if (r->at == r->end)
        return NULL;
    char *line = r->at, *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = stop ? stop + 1 : r->end;
    if (!stop)
        stop = r->end;
    if (stop > line && stop[-1] == '\r')
        stop--;
    *stop = '\0'; /* the copy has room for one at its end */
    r->line++;
    return line;
}

/* Cuts the next field off a line and trims it; NULL after the last. */
static char *next_field(char **rest)
{
    char *field = *rest;
    if (!field)
        return NULL;
    char *comma = strchr(field, ',');
    *rest = comma ? comma + 1 : NULL;
    char *stop = comma ? comma : field + strlen(field);
    while (stop > field && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    *stop = '\0';
    while (*field == ' ' || *field == '\t')
        field++;
    return field;
}

static bool read_header(reader *r, char *line)
{
    bool seen[COLUMNS] = {false};
    char part[MAX_SHOWN + 4];
    for (char *field; (field = next_field(&line)) != NULL;) {
        int column = -1;
        for (size_t k = 0; k < sizeof(column_names) / sizeof(column_names[0]); k++)
            if (strcmp(field, column_names[k].name) == 0)
                column = (int)column_names[k].column;
        if (column < 0)
            return refuse(r, "the header names a column \"%s\", which is none of id, lower, upper, size, alignment, gaps, hint, offset",
                          shown(field, part));
        if (seen[column])
            return refuse(r, "the header names the column %s twice", first_names[column]);
        seen[column] = true;
        r->column_of[r->fields++] = column;
    }
    for (int k = ID; k <= SIZE; k++)
        if (!seen[k])
            return refuse(r, "the header names no column %s", first_names[k]);
    r->csv->has_alignment = seen[ALIGNMENT];
    r->csv->has_gaps = seen[GAPS];
    r->csv->has_hint = seen[HINT];
    if (seen[OFFSET]) {
        r->csv->offsets = malloc(sizeof(*r->csv->offsets));
        if (!r->csv->offsets)
            return refuse(r, "no host memory is left");
    }
    return true;
}

/* Digits alone; *end is what follows them. */
static bool parse_number(const char *text, uint64_t *number, const char **end)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *number = value;
    *end = at;
    return at > text;
}

static bool read_number(reader *r, column column, const char *field, uint64_t *number)
{
    char part[MAX_SHOWN + 4];
    const char *end;
    if (parse_number(field, number, &end) && *end == '\0')
        return true;
    return refuse(r, "%s is \"%s\", which is not a whole number from 0 to 2^64 - 1", first_names[column], shown(field, part));
}

static bool add_gap(reader *r, tn_pack_gap gap)
{
    if (r->gap_count == r->gap_room) {
        size_t room = r->gap_room ? 2 * r->gap_room : 64;
        tn_pack_gap *gaps = realloc(r->csv->gaps, room * sizeof(*gaps));
        if (!gaps)
            return refuse(r, "no host memory is left");
        r->csv->gaps = gaps;
        r->gap_room = room;
    }
    r->csv->gaps[r->gap_count++] = gap;
    return true;
}

static int compare_gaps(const void *left, const void *right)
{
    const tn_pack_gap *a = left, *b = right;
    return a->lower < b->lower ? -1 : a->lower > b->lower;
}

static bool read_gaps(reader *r, const char *field, size_t *count)
{
    char part[MAX_SHOWN + 4];
    size_t first = r->gap_count;
    for (const char *at = field; *at; at += strspn(at, " \t;")) {
        tn_pack_gap gap;
        const char *end;
        if (!parse_number(at, &gap.lower, &end) || *end != '-' || !parse_number(end + 1, &gap.upper, &end) ||
            (*end && !strchr(" \t;", *end)))
            return refuse(r, "gaps is \"%s\", which is not a list such as 3-5 9-12", shown(field, part));
        if (!add_gap(r, gap))
            return false;
        at = end;
    }
    *count = r->gap_count - first;
    if (*count > 1)
        qsort(r->csv->gaps + first, *count, sizeof(*r->csv->gaps), compare_gaps);
    return true;
}

static bool check_row(reader *r, const tn_pack_buffer *b, const tn_pack_gap *gaps)
{
    if (b->lower > b->upper)
        return refuse(r, "lower %" PRIu64 " is above upper %" PRIu64, b->lower, b->upper);
    if (b->alignment == 0 || b->alignment > UINT64_C(1) << 40)
        return refuse(r, "alignment is %" PRIu64 ", which is not from 1 to 2^40", b->alignment);
    for (size_t k = 0; k < b->gap_count; k++) {
        if (gaps[k].lower >= gaps[k].upper)
            return refuse(r, "the gap %" PRIu64 "-%" PRIu64 " is empty", gaps[k].lower, gaps[k].upper);
        if (gaps[k].lower < b->lower || gaps[k].upper > b->upper)
            return refuse(r, "the gap %" PRIu64 "-%" PRIu64 " is not within the lifetime", gaps[k].lower, gaps[k].upper);
        if (k > 0 && gaps[k].lower <= gaps[k - 1].upper)
            return refuse(r, "the gaps %" PRIu64 "-%" PRIu64 " and %" PRIu64 "-%" PRIu64 " overlap or touch", gaps[k - 1].lower,
                          gaps[k - 1].upper, gaps[k].lower, gaps[k].upper);
    }
    return true;
}

static bool grow(reader *r)
{
    tn_pack_csv *csv = r->csv;
    if (csv->count < r->room)
        return true;
    size_t room = r->room ? 2 * r->room : 256;
    tn_pack_buffer *buffers = realloc(csv->buffers, room * sizeof(*buffers));
    csv->buffers = buffers ? buffers : csv->buffers;
    const char **names = realloc(csv->names, room * sizeof(*names));
    csv->names = names ? names : csv->names;
    size_t *lines = realloc(csv->lines, room * sizeof(*lines));
    csv->lines = lines ? lines : csv->lines;
    size_t *first_gap = realloc(r->first_gap, room * sizeof(*first_gap));
    r->first_gap = first_gap ? first_gap : r->first_gap;
    uint64_t *offsets = csv->offsets ? realloc(csv->offsets, room * sizeof(*offsets)) : NULL;
    bool good = buffers && names && lines && first_gap && (offsets || !csv->offsets);
    csv->offsets = offsets ? offsets : csv->offsets;
    if (!good)
        return refuse(r, "no host memory is left");
    r->room = room;
    return true;
}

static bool read_row(reader *r, char *line)
{
    tn_pack_csv *csv = r->csv;
    tn_pack_buffer b = {.alignment = 1, .hint = TN_PACK_NO_HINT};
    const char *name = "";
    char part[MAX_SHOWN + 4];
    size_t first = r->gap_count;
    uint64_t offset = 0;
    int fields = 0;
    for (char *field; (field = next_field(&line)) != NULL; fields++) {
        bool good = true;
        if (fields == r->fields)
            return refuse(r, "there are more fields than the header's %d", r->fields);
        switch (r->column_of[fields]) {
        case ID: name = field; break;
        case LOWER: good = read_number(r, LOWER, field, &b.lower); break;
        case UPPER: good = read_number(r, UPPER, field, &b.upper); break;
        case SIZE: good = read_number(r, SIZE, field, &b.size); break;
        case ALIGNMENT: good = !*field || read_number(r, ALIGNMENT, field, &b.alignment); break;
        case GAPS: good = read_gaps(r, field, &b.gap_count); break;
        case HINT: good = !*field || read_number(r, HINT, field, &b.hint); break;
        default: good = read_number(r, OFFSET, field, &offset);
        }
        if (!good)
            return false;
    }
    if (fields < r->fields)
        return refuse(r, "there are %d fields where the header has %d", fields, r->fields);
    if (!*name || strlen(name) > MAX_NAME)
        return refuse(r, *name ? "the id is longer than %d bytes" : "the id is empty", MAX_NAME);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F || *c == '"')
            return refuse(r, "the id \"%s\" holds a quotation mark or a control character", shown(name, part));
    if (!check_row(r, &b, b.gap_count ? csv->gaps + first : NULL) || !grow(r))
        return false;
    if (csv->offsets && !csv->has_hint)
        b.hint = offset;
    csv->buffers[csv->count] = b;
    csv->names[csv->count] = name;
    csv->lines[csv->count] = r->line;
    r->first_gap[csv->count] = first;
    if (csv->offsets)
        csv->offsets[csv->count] = offset;
    csv->count++;
    return true;
}

static int compare_names(const void *left, const void *right, void *context)
{
    const char *const *names = context;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int c = strcmp(names[a], names[b]);
    return c ? c : a < b ? -1 : a > b;
}

/* Ranks the names, so that the file's order of lines does not matter. */
static bool number_names(reader *r)
{
    tn_pack_csv *csv = r->csv;
    size_t *sorted = malloc((csv->count + 1) * sizeof(*sorted));
    char part[MAX_SHOWN + 4];
    bool good = true;
    if (!sorted)
        return refuse(r, "no host memory is left");
    for (size_t k = 0; k < csv->count; k++)
        sorted[k] = k;
    qsort_r(sorted, csv->count, sizeof(*sorted), compare_names, csv->names);
    for (size_t k = 0; good && k < csv->count; k++) {
        csv->buffers[sorted[k]].id = k;
        if (k > 0 && strcmp(csv->names[sorted[k]], csv->names[sorted[k - 1]]) == 0) {
            r->line = csv->lines[sorted[k]];
            good = refuse(r, "the id \"%s\" stands on line %zu too", shown(csv->names[sorted[k]], part), csv->lines[sorted[k - 1]]);
        }
    }
    free(sorted);
    return good;
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t")] == '\0';
}

static bool parse(reader *r, size_t length)
{
    char *line;
    if (length >= 3 && memcmp(r->at, "\xEF\xBB\xBF", 3) == 0)
        r->at += 3;
    while ((line = next_line(r)) != NULL && is_blank(line))
        continue;
    if (!line) {
        r->line = 0;
        return refuse(r, "the file holds no header");
    }
    if (!read_header(r, line))
        return false;
    while ((line = next_line(r)) != NULL)
        if (!is_blank(line) && !read_row(r, line))
            return false;
    if (r->csv->count == 0) {
        r->line = 0;
        return refuse(r, "the file holds a header and no buffers");
    }
    for (size_t k = 0; k < r->csv->count; k++)
        r->csv->buffers[k].gaps = r->csv->buffers[k].gap_count ? r->csv->gaps + r->first_gap[k] : NULL;
    return number_names(r);
}

bool tn_pack_csv_parse(const char *bytes, size_t length, const char *name, tn_pack_csv *csv,
                       char message[TN_PACK_CSV_MESSAGE])
{
    reader r = {.name = name, .message = message, .csv = csv};
    memset(csv, 0, sizeof(*csv));
    message[0] = '\0';
    const char *zero = length ? memchr(bytes, '\0', length) : NULL;
    if (zero) {
        r.line = 1;
        for (const char *c = bytes; c < zero; c++)
            r.line += *c == '\n';
        return refuse(&r, "the line holds a zero byte");
    }
    csv->text = malloc(length + 1);
    if (!csv->text)
        return refuse(&r, "no host memory is left");
    if (length)
        memcpy(csv->text, bytes, length);
    r.at = csv->text;
    r.end = csv->text + length;
    bool good = parse(&r, length);
    free(r.first_gap);
    if (!good)
        tn_pack_csv_free(csv);
    return good;
}

bool tn_pack_csv_read(const char *path, tn_pack_csv *csv, char message[TN_PACK_CSV_MESSAGE])
{
    reader r = {.name = path, .message = message, .csv = csv};
    char *bytes = NULL;
    size_t length = 0;
    memset(csv, 0, sizeof(*csv));
    int error = tn_text_file_read(path, SIZE_MAX, &bytes, &length);
    if (error)
        return refuse(&r, "the file cannot be read: %s", strerror(error));
    bool good = tn_pack_csv_parse(bytes, length, path, csv, message);
    free(bytes);
    return good;
}

void tn_pack_csv_free(tn_pack_csv *csv)
{
    free(csv->buffers);
    free(csv->names);
    free(csv->lines);
    free(csv->offsets);
    free(csv->text);
    free(csv->gaps);
    memset(csv, 0, sizeof(*csv));
}

bool tn_pack_csv_write(FILE *out, const tn_pack_csv *csv, const uint64_t *offsets)
{
    fprintf(out, "id,lower,upper,size%s%s%s,offset\n", csv->has_alignment ? ",alignment" : "", csv->has_gaps ? ",gaps" : "",
            csv->has_hint ? ",hint" : "");
    for (size_t k = 0; k < csv->count; k++) {
        const tn_pack_buffer *b = &csv->buffers[k];
        fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, csv->names[k], b->lower, b->upper, b->size);
        if (csv->has_alignment)
            fprintf(out, ",%" PRIu64, b->alignment);
        for (size_t g = 0; csv->has_gaps && (g == 0 || g < b->gap_count); g++)
            if (b->gap_count == 0)
                fputc(',', out);
            else
                fprintf(out, "%c%" PRIu64 "-%" PRIu64, g ? ' ' : ',', b->gaps[g].lower, b->gaps[g].upper);
        if (csv->has_hint && b->hint != TN_PACK_NO_HINT)
            fprintf(out, ",%" PRIu64, b->hint);
        else if (csv->has_hint)
            fputc(',', out);
        fprintf(out, ",%" PRIu64 "\n", offsets[k]);
    }
    return fflush(out) == 0 && !ferror(out);
}
