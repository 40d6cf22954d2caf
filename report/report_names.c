/* Names of the journal's enums, and figures for people. */
#define _GNU_SOURCE
#include "report/report_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ledger/journal_format.h"

#define NAME_OF(table, index) \
    ((index) < sizeof(table) / sizeof((table)[0]) && (table)[index] ? (table)[index] : "unknown")

const char *tn_kind_name(unsigned kind)
{
    static const char *const names[TN_KIND_COUNT] = {
        [TN_KIND_NONE] = "none",
        [TN_KIND_DEVICE] = "device",
        [TN_KIND_PITCH] = "pitch",
        [TN_KIND_ASYNC] = "async",
        [TN_KIND_POOL] = "pool",
        [TN_KIND_MANAGED] = "managed",
        [TN_KIND_PINNED] = "pinned",
        [TN_KIND_REGISTERED] = "registered",
        [TN_KIND_ARRAY] = "array",
        [TN_KIND_MIPMAP] = "mipmap",
        [TN_KIND_VMM_HANDLE] = "vmm_handle",
        [TN_KIND_GRAPH] = "graph",
        [TN_KIND_IMPORTED] = "imported",
        [TN_KIND_HANDED] = "handed_out",
        [TN_KIND_HANDED_HOST] = "handed_out",
    };
    return NAME_OF(names, kind);
}

const char *tn_level_name(unsigned level)
{
    static const char *const names[] = {
        [TN_LEVEL_RUNTIME] = "runtime",
        [TN_LEVEL_DRIVER] = "driver",
        [TN_LEVEL_NVML] = "nvml",
        [TN_LEVEL_LOADER] = "loader",
    };
    return NAME_OF(names, level);
}

const char *tn_class_name(unsigned klass)
{
    static const char *const names[] = {
        [TN_CLASS_ALLOC] = "alloc",
        [TN_CLASS_FREE] = "free",
        [TN_CLASS_QUERY] = "query",
        [TN_CLASS_WORK] = "work",
        [TN_CLASS_WAIT] = "wait",
        [TN_CLASS_ORDER] = "order",
        [TN_CLASS_CHARGE] = "charge",
        [TN_CLASS_EXPORT] = "export",
        [TN_CLASS_CONTEXT] = "context",
        [TN_CLASS_GRAPH] = "graph",
        [TN_CLASS_ATTRIBUTE] = "attribute",
        [TN_CLASS_RESOLVE] = "resolve",
    };
    return NAME_OF(names, klass);
}

const char *tn_phase_name(unsigned phase)
{
    static const char *const names[] = {
        [TN_PHASE_LOADING] = "loading",
        [TN_PHASE_PLANNING] = "planning",
        [TN_PHASE_SERVING] = "serving",
    };
    return NAME_OF(names, phase);
}

const char *tn_tier_name(unsigned tier)
{
    static const char *const names[TN_ROUTE_TIERS] = {
        "native", [TN_ROUTE_T1] = "T1", [TN_ROUTE_T2] = "T2", [TN_ROUTE_T3] = "T3", [TN_ROUTE_T4] = "T4", [TN_ROUTE_PACKED] = "packed", [TN_ROUTE_T5B] = "T5b",
    };
    return NAME_OF(names, tier);
}

const char *tn_spill_name(unsigned cause)
{
    static const char *const names[TN_ROUTE_CAUSES] = {
        "none",
        [TN_ROUTE_TOO_LARGE] = "too_large",
        [TN_ROUTE_TOO_MANY] = "too_many",
        [TN_ROUTE_IN_THE_WAY] = "in_the_way",
        [TN_ROUTE_NO_ROOM] = "no_room",
        [TN_ROUTE_CAPTURE] = "capture",
        [TN_ROUTE_NOT_CLEAN] = "not_clean",
    };
    return NAME_OF(names, cause);
}

const char *tn_coverage_name(unsigned what)
{
    static const char *const names[] = {
        [TN_COV_BYPASS] = "bypass",
        [TN_COV_SECOND_LIBCUDA] = "second_libcuda",
        [TN_COV_NINTH_CUDART] = "ninth_cudart",
        [TN_COV_NO_LIBUNWIND] = "no_libunwind",
        [TN_COV_TURNED_OFF] = "turned_off",
        [TN_COV_NOTE] = "note",
    };
    return NAME_OF(names, what);
}

const char *tn_format_bytes(uint64_t bytes, char out[TN_FIGURE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(out, TN_FIGURE, "%" PRIu64 " B", bytes);
        return out;
    }
    /* Whole numbers only, so that every machine rounds alike: tenths, half up. */
    size_t unit = 0;
    unsigned shift = 10;
    while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes >> shift >= 1024) {
        unit++;
        shift += 10;
    }
    uint64_t whole = bytes >> shift;
    uint64_t rest = bytes & (((uint64_t)1 << shift) - 1);
    uint64_t tenths = ((rest >> (shift - 10)) * 10 + 512) >> 10;
    if (tenths == 10) {
        whole++;
        tenths = 0;
    }
    if (whole == 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        whole = 1;
        unit++;
    }
    snprintf(out, TN_FIGURE, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths, units[unit]);
    return out;
}

const char *tn_format_duration(uint64_t ns, char out[TN_FIGURE])
{
    if (ns < 1000000000u)
        snprintf(out, TN_FIGURE, "%" PRIu64 ".%" PRIu64 " ms", ns / 1000000, ns / 100000 % 10);
    else if (ns < 60 * (uint64_t)1000000000)
        snprintf(out, TN_FIGURE, "%" PRIu64 ".%" PRIu64 " s", ns / 1000000000, ns / 100000000 % 10);
    else
        snprintf(out, TN_FIGURE, "%" PRIu64 " min %" PRIu64 " s", ns / 60000000000, ns / 1000000000 % 60);
    return out;
}

const char *tn_format_version(uint32_t version, char out[TN_FIGURE])
{
    if (version == 0)
        snprintf(out, TN_FIGURE, "unknown");
    else
        snprintf(out, TN_FIGURE, "%" PRIu32 ".%" PRIu32, version / 1000, version % 1000 / 10);
    return out;
}

const char *tn_format_uuid(const uint8_t uuid[16], char out[TN_UUID_TEXT])
{
    char *p = out;
    p += sprintf(p, "GPU-");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += sprintf(p, "%02x", uuid[i]);
    }
    return out;
}

const char *tn_format_time(uint64_t real_ns, char out[TN_FIGURE])
{
    time_t seconds = (time_t)(real_ns / 1000000000u);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || strftime(out, TN_FIGURE, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        snprintf(out, TN_FIGURE, "unknown");
    return out;
}

const char *tn_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
