/* Words and figures of the report: names of the journal's enums, bytes and times for people. Everything
 * returned is constant text or in the caller's buffer; any thread may use it. */
#ifndef TENURE_REPORT_REPORT_NAMES_H
#define TENURE_REPORT_REPORT_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Never NULL; "unknown" outside the enum. */
const char *tn_kind_name(unsigned kind);         /* "device", "pitch", "async" ... */
const char *tn_level_name(unsigned level);       /* "runtime", "driver" ... */
const char *tn_class_name(unsigned klass);       /* "alloc", "free" ... */
const char *tn_phase_name(unsigned phase);       /* "loading" ... */
const char *tn_tier_name(unsigned tier);         /* of TN_ROUTE_*: "T1" ... "packed", "T5b"; "native" for 0 */
const char *tn_spill_name(unsigned cause);       /* of TN_ROUTE_TOO_LARGE ...: as in the JSON: "too_large" ... */
const char *tn_coverage_name(unsigned what);     /* "bypass", "note" ... */

/* The ending of a noun after a number. */
#define TN_PLURAL(count) ((count) == 1 ? "" : "s")

#define TN_FIGURE 32
/* 0 B, 512 B, 1.5 KiB, 2.0 MiB, 139.8 GiB: one decimal from KiB on, and never above TiB. */
const char *tn_format_bytes(uint64_t bytes, char out[TN_FIGURE]);
/* 0.4 ms, 12.3 s, 3 min 12 s. */
const char *tn_format_duration(uint64_t ns, char out[TN_FIGURE]);
/* A CUDA version number (13000) as "13.0"; "unknown" for 0. */
const char *tn_format_version(uint32_t version, char out[TN_FIGURE]);
/* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, as nvidia-smi prints it. */
#define TN_UUID_TEXT 41
const char *tn_format_uuid(const uint8_t uuid[16], char out[TN_UUID_TEXT]);
/* Seconds since 1970 as "2026-01-31 12:00:00 UTC". */
const char *tn_format_time(uint64_t real_ns, char out[TN_FIGURE]);
/* The part after the last slash. */
const char *tn_base_name(const char *path);

#endif
