/* The head of the text: what could not be read or was dropped, then what ran, where and when. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "report/report_run.h"
#include "report/report_text_parts.h"

void tn_text_head(tn_report *r, const tn_report_options *options, FILE *out)
{
    (void)options;
    char a[TN_FIGURE], b[TN_FIGURE];
    tn_run run;
    tn_run_collect(r, &run);
    fputs("Tenure report\n\n", out);
    char *command = tn_run_command_text(r);
    tn_text_wrap(out, "  command    ", "             ", command ? command : "unknown");
    free(command);
    fputs("  host       ", out);
    tn_text_clean(out, run.host ? run.host : "unknown", 64);
    fprintf(out, "; CUDA driver %s", tn_format_version(run.driver_version, a));
    if (run.runtime_version) /* a program may call the driver alone */
        fprintf(out, ", CUDA runtime %s", tn_format_version(run.runtime_version, b));
    fputc('\n', out);
    fprintf(out, "  started    %s, ran %s", tn_format_time(run.start_ns, a), tn_format_duration(run.duration_ns, b));
    if (run.has_signal)
        fprintf(out, ", ended by signal %d\n", run.signal);
    else if (run.has_status)
        fprintf(out, ", exit status %d\n", run.status);
    else
        fputc('\n', out);
    size_t ended = 0, gone = 0, buffered = 0, wrapped = 0, own_walk = 0;
    uint64_t events = 0;
    for (size_t i = 0; i < r->process_count; i++) {
        uint32_t flags = tn_reader_header(r->processes[i].reader)->flags;
        ended += (flags & TN_HF_ENDED) != 0;
        gone += r->processes[i].ended != 0;
        buffered += (flags & TN_HF_BUFFERED) != 0;
        wrapped += (flags & TN_HF_WRAP) != 0;
        own_walk += (flags & TN_HF_UNWIND_OWN) != 0;
        events += tn_reader_event_count(r->processes[i].reader);
    }
    fprintf(out, "  processes  %zu with CUDA: %zu ended, %zu killed or gone by _exit, %zu running\n", r->process_count, ended,
            gone - ended, r->process_count - gone);
    fprintf(out, "  events     %" PRIu64 ", %" PRIu64 " dropped\n", events, r->dropped_events);
    if (wrapped)
        fprintf(out, "             %zu linked with --wrap: calls inside its libraries are covered only if it exports dlsym\n", wrapped);
    if (buffered)
        fprintf(out, "             %zu with buffered journals: being killed may lose each thread's last events\n", buffered);
    if (own_walk)
        fprintf(out, "             %zu without libunwind: stacks end at the first frame without a frame pointer\n", own_walk);
    if (r->stop.reached) {
        fprintf(out, "  state at   %s ", r->stop.number ? "mark" : "the beginning of");
        if (r->stop.number)
            fprintf(out, "%" PRIu32 " ", r->stop.number);
        tn_text_clean(out, r->stop.text ? r->stop.text : "", 48);
        fprintf(out, ", %s after the start; what came later is left out\n\n", tn_format_duration(r->stop.ns, a));
        return;
    }
    fputs("  Below, live is what each process had not freed at its end (or so far), all processes together;\n"
          "  peak is the most that was there at one time.\n", out);
    fputc('\n', out);
}

void tn_text_warnings(tn_report *r, const tn_report_options *options, FILE *out)
{
    (void)options;
    for (size_t i = 0; i < r->warning_count; i++)
        tn_text_wrap(out, "WARNING: ", "         ", r->warnings[i]);
    if (r->warning_count)
        fputc('\n', out);
}
