/* Parts of the text that have files of their own, and the helpers they share. All write to the caller's
 * stream and own nothing; write errors are left in the stream for tn_report_text to find. */
#ifndef TENURE_REPORT_REPORT_TEXT_PARTS_H
#define TENURE_REPORT_REPORT_TEXT_PARTS_H

#include <stdio.h>

#include "report/report_model.h"
#include "report/report_names.h"

#define TN_TEXT_COLUMNS 100u

/* Control characters become '?'; beyond `limit` bytes the text is cut and ends in "...". */
void tn_text_clean(FILE *out, const char *text, size_t limit);
/* Words of `text`, cleaned, in lines of TN_TEXT_COLUMNS, and a newline. */
void tn_text_wrap(FILE *out, const char *first_indent, const char *indent, const char *text);
/* "device 0", "no device" or "host". */
void tn_text_place(const tn_place *place, int is_host, char out[TN_FIGURE]);

/* A site for narrow columns, the line first, since that is what tells it from its neighbours: "gemm.c:30 take_workspace"; where file or
 * line are not known, as tn_stack_words. */
void tn_text_site_line(tn_report *report, uint32_t site, char *out, size_t size);

/* The sections, one file a concept; report_text.c lists them in the order of printing. */
void tn_text_warnings(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_head(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_devices(tn_report *report, const tn_report_options *options, FILE *out);
/* Of one device, where its memory went; nothing where no reading was taken. */
void tn_text_device_account(tn_report *report, uint32_t place, const tn_report_options *options, FILE *out);
void tn_text_host(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_by(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_phases(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_checks(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_routing(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_serving(tn_report *report, const tn_report_options *options, FILE *out);
/* The Python callers of a site, a line each; nothing where it has none. */
void tn_text_python(const tn_report *report, const tn_site *site, int full, FILE *out);
void tn_text_sites(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_growth(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_left(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_refusals(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_apis(tn_report *report, const tn_report_options *options, FILE *out);
void tn_text_coverage(tn_report *report, const tn_report_options *options, FILE *out);

#endif
