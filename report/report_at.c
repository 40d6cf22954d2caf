/* Marks by number or text, phases by name. */
#include "report/report_at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_names.h"

enum { RANGE_END = 2 };

static int is_number(const char *text)
{
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

static void remember(tn_stop *stop, const char *text)
{
    size_t used = strlen(stop->seen);
    if (used + 8 < sizeof(stop->seen))
        snprintf(stop->seen + used, sizeof(stop->seen) - used, "%s%u '%.40s'", used ? ", " : "", stop->number, text);
}

int tn_at_reached(const tn_moment *m)
{
    tn_stop *stop = &m->report->stop;
    const tn_event *e = m->event;
    const char *text;
    if (!stop->wanted)
        return 0;
    if (e->type == TN_EV_MARK && e->kind != RANGE_END) {
        text = tn_reader_string(m->report->processes[m->process].reader, (uint32_t)e->addr);
        stop->number = ++stop->marks;
        stop->reached = is_number(stop->wanted) ? strtoul(stop->wanted, NULL, 10) == stop->number : text && strcmp(text, stop->wanted) == 0;
        remember(stop, text ? text : "");
    } else if (e->type == TN_EV_PHASE) {
        text = tn_phase_name(e->kind);
        stop->number = 0;
        stop->reached = strcmp(text, stop->wanted) == 0;
    } else {
        return 0;
    }
    if (stop->reached) {
        stop->text = text;
        stop->ns = m->ns;
    }
    return stop->reached;
}
