/* The rules by which a module is passed over, and the walk. */
#include "report/report_owner.h"

#include <string.h>

#include "report/report_names.h"

/* Beginnings of file names. Libraries that carry a runtime of their own inside (libcublas, libnccl) are owners. */
static const char *const passed[] = {
    "libcuda.so",     /* driver */
    "libcudart.so",   /* runtime */
    "libnvidia-",     /* driver, NVML */
    "libtenure",      /* this shim */
    "libffi.so",      /* bridges from interpreters: whoever calls through them asked for the memory */
    "_ctypes.",
    "_cffi_backend.",
};

int tn_owner_is_passed(const char *path)
{
    const char *name = tn_base_name(path);
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        if (strncmp(name, passed[i], strlen(passed[i])) == 0)
            return 1;
    return 0;
}

static tn_owner owner_of_frame(const tn_reader *reader, const tn_rec_site *record, uint32_t i)
{
    const tn_rec_module *module = tn_reader_module(reader, record->frames[i].module);
    const char *path = tn_reader_module_path(reader, record->frames[i].module);
    if (module && module->jit)
        return (tn_owner){.name = TN_OWNER_JIT, .frame = i};
    if (!module || !path || !path[0])
        return (tn_owner){.name = TN_OWNER_UNKNOWN, .frame = i};
    return (tn_owner){.name = tn_base_name(path), .path = path, .frame = i};
}

tn_owner tn_owner_of_record(const tn_report *report, uint32_t process, const tn_rec_site *record)
{
    if (!record || record->frame_count == 0)
        return (tn_owner){.name = TN_OWNER_UNKNOWN};
    const tn_reader *reader = report->processes[process].reader;
    for (uint32_t i = 0; i < record->frame_count; i++) {
        tn_owner owner = owner_of_frame(reader, record, i);
        if (!owner.path || !tn_owner_is_passed(owner.path))
            return owner;
    }
    return owner_of_frame(reader, record, 0);
}

tn_owner tn_owner_of_site(const tn_report *report, uint32_t site)
{
    if (report->sites[site].tier)
        return (tn_owner){.name = TN_OWNER_ARENAS};
    return tn_owner_of_record(report, report->sites[site].process, report->sites[site].record);
}
