/* Building the JSON document. Values are handed over to the object or array they are put into. Where memory runs out the
 * functions go on, and tn_json_failed() says so at the end; a NULL value counts as that. One thread at a time a document. */
#ifndef TENURE_REPORT_REPORT_JSON_PUT_H
#define TENURE_REPORT_REPORT_JSON_PUT_H

#include "report/report_json_text.h"
#include "report/report_model.h"

void tn_json_start(void);
int tn_json_failed(void);

void tn_json_put(json_t *object, const char *key, json_t *value);
void tn_json_put_integer(json_t *object, const char *key, uint64_t value);
void tn_json_put_text(json_t *object, const char *key, const char *text); /* NULL: null */
/* `digits`: the least number of them. */
void tn_json_put_hex(json_t *object, const char *key, uint64_t value, int digits, const char *prefix);
/* `key` and `python_key` (null: no Python part): which site it is. */
void tn_json_put_site(json_t *object, const tn_site *site);
/* A field of fixed size; null where it is empty. */
void tn_json_put_field(json_t *object, const char *key, const char *field, size_t size);
void tn_json_put_version(json_t *object, const char *key, uint32_t version); /* 0: null */
/* null for each key; the list ends with NULL. */
void tn_json_put_nulls(json_t *object, const char *const *keys);
/* The nine keys of a stat (docs/REPORT.md). */
void tn_json_put_stat(json_t *object, const tn_stat *s);
json_t *tn_json_stat_object(const tn_stat *s);
void tn_json_append(json_t *array, json_t *value);
/* Writes a value, takes it over, and returns 0; -1 where it or one before could not be made or `out` failed. */
int tn_json_write(json_t *value, FILE *out);
/* The array of sites, piece by piece; 0 or -1. */
int tn_json_write_sites(tn_report *report, FILE *out);

/* The values of the document's top-level keys, one file a concept; report_json.c lists them in the order of writing. */
json_t *tn_json_run(tn_report *report);
/* The keys of a device that its account fills (report_device.h); null where no reading was taken. */
void tn_json_put_account(json_t *object, const tn_report *report, uint32_t place);
json_t *tn_json_devices(tn_report *report);
json_t *tn_json_host(tn_report *report);
json_t *tn_json_phases(tn_report *report);
json_t *tn_json_marks(tn_report *report);
json_t *tn_json_ranges(tn_report *report);
json_t *tn_json_serving(tn_report *report);
json_t *tn_json_checks(tn_report *report);
json_t *tn_json_routing(tn_report *report);
/* `tiers` of a place, and `routing` of a row. */
json_t *tn_json_tiers(const tn_report *report, uint32_t place);
void tn_json_put_routing(json_t *object, const tn_report *report, uint32_t row);
json_t *tn_json_growth(tn_report *report);
json_t *tn_json_refusals(tn_report *report);
json_t *tn_json_coverage(tn_report *report);
json_t *tn_json_coverage_notes(tn_report *report);
json_t *tn_json_processes(tn_report *report);

#endif
