/* The table of watchers. */
#include "report/report_watch.h"

#include "report/report_checks.h"
#include "report/report_device.h"
#include "report/report_growth.h"
#include "report/report_refusals.h"
#include "report/report_ranges.h"
#include "report/report_routing.h"
#include "report/report_serving.h"
#include "report/report_steps.h"

/* Ends with NULL, so that it may be empty. */
static const tn_watcher *const watchers[] = {
    &tn_steps_watcher,
    &tn_serving_watcher,
    &tn_ranges_watcher,
    &tn_growth_watcher,
    &tn_refusals_watcher,
    &tn_device_watcher,
    &tn_routing_watcher,
    &tn_checks_watcher,
    NULL,
};

tn_error tn_watch_begin(tn_report *report)
{
    tn_error error = TN_OK;
    for (size_t i = 0; watchers[i] && error == TN_OK; i++)
        if (watchers[i]->begin)
            error = watchers[i]->begin(report);
    return error;
}

tn_error tn_watch_event(const tn_moment *moment)
{
    tn_error error = TN_OK;
    for (size_t i = 0; watchers[i] && error == TN_OK; i++)
        if (watchers[i]->types & TN_WATCH(moment->event->type) && watchers[i]->event)
            error = watchers[i]->event(moment);
    return error;
}

tn_error tn_watch_change(const tn_moment *moment, const tn_change *change)
{
    tn_error error = TN_OK;
    for (size_t i = 0; watchers[i] && error == TN_OK; i++)
        if (watchers[i]->change)
            error = watchers[i]->change(moment, change);
    return error;
}

tn_error tn_watch_end(tn_report *report)
{
    tn_error error = TN_OK;
    for (size_t i = 0; watchers[i] && error == TN_OK; i++)
        if (watchers[i]->end)
            error = watchers[i]->end(report);
    return error;
}

void tn_watch_drop(tn_report *report)
{
    for (size_t i = 0; watchers[i]; i++)
        if (watchers[i]->drop)
            watchers[i]->drop(report);
}
