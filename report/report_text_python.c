/* The Python part of a site in the text: who called the native frames, innermost first. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/report_text_parts.h"

enum { SHORT_CALLERS = 3 };

/* The last two parts of a path: a file of Python is often called __init__.py. */
static const char *short_path(const char *path)
{
    const char *at = path + strlen(path);
    for (int slashes = 0; at > path; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return at;
}

static void print_caller(const tn_report *r, const tn_site *site, uint32_t i, int full, FILE *out)
{
    const struct tn_python_frame *frame = &site->python->frames[i];
    const char *file = NULL, *name = NULL;
    (void)tn_reader_python(r->processes[site->process].reader, frame->function, &file, &name);
    fputs("       ", out);
    if (!name) {
        fputs("[unknown Python function]\n", out);
        return;
    }
    tn_text_clean(out, name, full ? SIZE_MAX : 40);
    fputs("  ", out);
    tn_text_clean(out, full ? file : short_path(file), full ? SIZE_MAX : 40);
    if (frame->line)
        fprintf(out, ":%" PRIu32, frame->line);
    fputc('\n', out);
}

void tn_text_python(const tn_report *r, const tn_site *site, int full, FILE *out)
{
    if (!site->python)
        return;
    uint32_t count = site->python->frame_count, shown = full || count <= SHORT_CALLERS + 1 ? count : SHORT_CALLERS;
    for (uint32_t i = 0; i < shown; i++)
        print_caller(r, site, i, full, out);
    if (shown < count)
        fprintf(out, "       ... %" PRIu32 " more Python callers\n", count - shown);
    else if (site->python->flags & TN_PF_CUT)
        fputs("       ... deeper Python callers were not recorded\n", out);
}
