/* The report for people: at most 100 columns, sizes with one decimal, what is wrong first. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "report/report_text_parts.h"

void tn_text_clean(FILE *out, const char *text, size_t limit)
{
    /* Paths and arguments are the program's own: no control character of theirs reaches the terminal. */
    size_t length = strlen(text);
    size_t shown = length > limit && limit > 3 ? limit - 3 : length;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
    if (shown < length)
        fputs("...", out);
}

void tn_text_wrap(FILE *out, const char *first_indent, const char *indent, const char *text)
{
    size_t column = strlen(first_indent);
    int line_empty = 1;
    fputs(first_indent, out);
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (word && !line_empty && column + 1 + word > TN_TEXT_COLUMNS) {
            fprintf(out, "\n%s", indent);
            column = strlen(indent);
            line_empty = 1;
        }
        if (word) {
            if (!line_empty) {
                fputc(' ', out);
                column++;
            }
            for (size_t i = 0; i < word; i++)
                fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], out);
            column += word;
            line_empty = 0;
        }
        text += word;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

void tn_text_place(const tn_place *place, int is_host, char out[TN_FIGURE])
{
    if (is_host)
        snprintf(out, TN_FIGURE, "host");
    else if (place->ordinal == TN_DEVICE_NONE)
        snprintf(out, TN_FIGURE, "no device");
    else
        snprintf(out, TN_FIGURE, "device %" PRIu32, place->ordinal);
}

/* In the order of printing. A section that has nothing to say prints nothing, else it ends with an empty line. */
static void (*const sections[])(tn_report *report, const tn_report_options *options, FILE *out) = {
    tn_text_warnings,
    tn_text_head,
    tn_text_devices,
    tn_text_host,
    tn_text_by,
    tn_text_phases,
    tn_text_serving,
    tn_text_routing,
    tn_text_checks,
    tn_text_sites,
    tn_text_growth,
    tn_text_left,
    tn_text_refusals,
    tn_text_apis,
    tn_text_coverage,
};

int tn_report_text(tn_report *report, const tn_report_options *options, FILE *out)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        sections[i](report, options, out);
    return fflush(out) != 0 || ferror(out) ? -1 : 0;
}
